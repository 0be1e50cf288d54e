"""Routes of subnets and routers."""

from __future__ import annotations

from dataclasses import dataclass

from openstack_prep.base.fields import Address, Cidr


@dataclass(frozen=True, kw_only=True)
class Route:
    """A route to a network by way of a next hop."""

    destination: Cidr
    """Network to reach."""
    nexthop: Address
    """Address of the next hop."""
