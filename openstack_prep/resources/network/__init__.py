"""Neutron: networks, subnets, routers, security groups, and ports of others."""
