"""What a spec says of address pairs, what the rest of it means to them, and what they want of each port."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from openstack_prep.base import ranges
from openstack_prep.base.fields import Mac, Name
from openstack_prep.base.ranges import AddressRange, Range
from openstack_prep.cloud.site import Site
from openstack_prep.core.model import Key
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.addresses.pair_records import Share, recorded
from openstack_prep.resources.addresses.port_choice import PortChoice
from openstack_prep.resources.network.port import ports_of
from openstack_prep.resources.orchestration.existing import Existing


@dataclass(frozen=True)
class PairNeighbours:
    """What the spec declares in the project of address pairs: pools, all pairs, and the stacks and groups to come."""

    pools: tuple[AddressPool, ...] = ()
    pairs: tuple[PairFields, ...] = ()
    coming: frozenset[Key] = frozenset()
    used: frozenset[str] | None = None
    """Of the pools only these addresses, when not all."""
    alone: bool = False
    """Whether the pairs are put right without their pools, which nobody else judges then."""

    def pool(self, name: str) -> AddressPool:
        return next(each for each in self.pools if each.name == name)


@dataclass(frozen=True, kw_only=True)
class PairFields(PortChoice):
    """What a spec says of address pairs."""

    kind: ClassVar[str] = "address_pairs"

    name: Name
    """What this spec calls them."""
    addresses: tuple[AddressRange, ...] | None = None
    """Addresses to allow: single ones, networks, or ranges, which become the fewest networks."""
    pools: tuple[Name, ...] = ()
    """Address pools of this spec to allow, each on the ports of its own network."""
    network: Name | None = None
    """Only ports on this network; with pools, it is where all of them are allowed."""
    mac_address: Mac | None = None
    """MAC address of the pairs; default: each port's own."""
    prune: bool = True
    """Whether what this spec put there earlier, and no longer declares, is taken away."""

    @property
    def neighbours(self) -> PairNeighbours:
        """What else the spec declares; nothing is known of it before the pairs are resolved."""
        return PairNeighbours()

    @property
    def given(self) -> frozenset[str]:
        """The addresses that are to be allowed on all ports, each range by itself."""
        return frozenset(block for each in self.addresses or () for block in ranges.blocks([Range.read(each)]))

    def pooled(self) -> dict[str, frozenset[str]]:
        """Return the fewest blocks that make up the pools, by subnet."""
        by_subnet: dict[str, list[Range]] = {}
        for pool in (self.neighbours.pool(each) for each in self.pools):
            by_subnet.setdefault(pool.subnet, []).extend(pool.ranges)
        used = self.neighbours.used
        if used is None:
            return {subnet: frozenset(ranges.blocks(each)) for subnet, each in by_subnet.items()}
        singles = ranges.read(used)
        return {
            subnet: frozenset(str(one) for one in singles if any(one.first in each for each in whole))
            for subnet, whole in by_subnet.items()
        }

    def claims(self, site: Site) -> dict[str, frozenset[str]] | None:
        """Return by id of port what is to be allowed there; None when there are no such ports yet."""
        return site.once((PairFields._claims, self.key), lambda: self._claims(site))

    def _claims(self, site: Site) -> dict[str, frozenset[str]] | None:
        chosen = self.chosen(site) if len(self.ways) == 1 else None
        if chosen is None:
            return None
        pooled = self.pooled()
        if self.network:
            here = site.find_id(self.sibling(Existing, self.network, of="network"))
            everything = self.given.union(*pooled.values())
            return {port.id: everything for port in chosen if port.network_id == here}
        if not self.pools:
            return {port.id: self.given for port in chosen}
        networks: dict[str | None, frozenset[str]] = {}
        for subnet, blocks in pooled.items():
            room = next(pool for pool in self.neighbours.pools if pool.subnet == subnet).room(site)
            network = room.network_id if room else None
            networks[network] = networks.get(network, self.given) | blocks
        return {port.id: networks[port.network_id] for port in chosen if port.network_id in networks}

    def shares(self, site: Site) -> list[Share]:
        """Return what there is to do with each port that is meant, or bears our record.

        Of several address pairs of a spec, the first that means a port looks after its record.
        """
        siblings = self.neighbours.pairs or (self,)
        claims = [each.claims(site) for each in siblings]
        place = next(i for i, each in enumerate(siblings) if each.name == self.name)
        complete = None not in claims
        shares = []
        for port in ports_of(site, site.find_project_id(self.owner)):
            claimants = {i: each[port.id] for i, each in enumerate(claims) if each and port.id in each}
            mine = recorded(site.mark, port) if place == min(claimants, default=0) else frozenset()
            if place not in claimants and not mine:
                continue
            stale = mine.difference(*claimants.values()) if self.prune and (claimants or complete) else frozenset()
            wanted = claimants.get(place)
            mac = self.mac_address and self.mac_address.lower()
            shares.append(Share(port, wanted or frozenset(), mac, stale, mine, wanted is not None))
        return shares
