"""Neutron: networks, subnets, routers, security groups, and the ports of others."""
