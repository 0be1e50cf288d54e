"""Neutron; importing this registers its paths."""

from tests.light.neutron import crud, extensions, floating_ips, interfaces, networks, ports, routers, security_groups

__all__ = ["crud", "extensions", "floating_ips", "interfaces", "networks", "ports", "routers", "security_groups"]
