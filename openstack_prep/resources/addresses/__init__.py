"""Neutron's addresses: floating IPs, address pools, allowed address pairs."""
