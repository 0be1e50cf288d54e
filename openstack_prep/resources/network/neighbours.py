"""What the rest of a spec means to its address pools and address pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from openstack_prep.core.model import Key

if TYPE_CHECKING:
    from openstack_prep.resources.addresses.address_pairs import AddressPairs
    from openstack_prep.resources.addresses.address_pool import AddressPool
    from openstack_prep.resources.network.subnet import Subnet


@dataclass(frozen=True)
class PoolNeighbours:
    """What the spec declares in the project of a pool: its subnet, all pools, and the limit of ports."""

    subnet: Subnet | None = None
    pools: tuple[AddressPool, ...] = ()
    port_limit: int | None = None


@dataclass(frozen=True)
class PairNeighbours:
    """What the spec declares in the project of address pairs: pools, all pairs, and the stacks and groups to come."""

    pools: tuple[AddressPool, ...] = ()
    pairs: tuple[AddressPairs, ...] = ()
    coming: frozenset[Key] = frozenset()
    used: frozenset[str] | None = None
    """Of the pools only these addresses, when not all."""
    alone: bool = False
    """Whether the pairs are put right without their pools, which nobody else judges then."""

    def pool(self, name: str) -> AddressPool:
        return next(each for each in self.pools if each.name == name)
