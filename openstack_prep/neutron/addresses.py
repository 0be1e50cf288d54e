"""Addresses and networks of Neutron's records."""

from __future__ import annotations

import ipaddress

from openstack_prep.base.raw import Raw

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Block = ipaddress.IPv4Network | ipaddress.IPv6Network


def addresses_of(port: Raw) -> list[Address]:
    """Return the fixed IP addresses of a port."""
    return [ipaddress.ip_address(each["ip_address"]) for each in port["fixed_ips"]]


def covers(outer: Block, inner: Block) -> bool:
    """Whether a network contains another one of the same IP version."""
    return outer.version == inner.version and inner.subnet_of(outer)  # type: ignore[arg-type]
