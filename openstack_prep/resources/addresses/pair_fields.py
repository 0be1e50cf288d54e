"""The fields of address pairs, the related resources of the spec, and the pairs that result for each port."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from openstack_prep.base import ranges
from openstack_prep.base.fields import Name
from openstack_prep.base.multicast import PairMac
from openstack_prep.base.ranges import AddressRange, Range
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Key
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.addresses.pair_records import Share, block_of, recorded_pairs, with_mac
from openstack_prep.resources.addresses.port_choice import PortChoice
from openstack_prep.resources.lists.neutron_records import PortRecord
from openstack_prep.resources.network.port import ports_of
from openstack_prep.resources.orchestration.existing import Existing


@dataclass(frozen=True)
class PairNeighbours:
    """The related resources in the project of address pairs: pools, pairs, and stacks, groups and ports to create."""

    pools: tuple[AddressPool, ...] = ()
    pairs: tuple[PairFields, ...] = ()
    coming: frozenset[Key] = frozenset()
    used: frozenset[str] | None = None
    """If set, only these addresses of the pools."""
    alone: bool = False
    """Whether the pairs are updated without their pools, which then nothing else checks."""

    def pool(self, name: str) -> AddressPool:
        return next(each for each in self.pools if each.name == name)


@dataclass(frozen=True, kw_only=True)
class PairFields(PortChoice):
    """The fields of address pairs."""

    kind: ClassVar[str] = "address_pairs"

    name: Name
    """Name within this spec."""
    addresses: tuple[AddressRange, ...] | None = None
    """Addresses to allow: single addresses, networks, or ranges, which are split into the fewest networks."""
    pools: tuple[Name, ...] = ()
    """Address pools of this spec to allow; each pool applies to the ports on its own network."""
    network: Name | None = None
    """Only ports on this network; with pools, the network to which all pools apply."""
    mac_address: PairMac | None = None
    """MAC address of the pairs; default: the MAC address of each port."""
    prune: bool = True
    """Whether apply removes the pairs that this spec added earlier and no longer declares."""

    @property
    def neighbours(self) -> PairNeighbours:
        """The related resources of the spec; empty before the pairs are resolved."""
        return PairNeighbours()

    @property
    def given(self) -> frozenset[str]:
        """The addresses to allow on all ports, with each range as its own item."""
        return frozenset(block for each in self.addresses or () for block in ranges.blocks([Range.read(each)]))

    def pooled(self) -> dict[str, frozenset[str]]:
        """Return the fewest blocks that cover the pools, or their used addresses, by subnet."""
        by_subnet: dict[str, list[Range]] = {}
        for pool in (self.neighbours.pool(each) for each in self.pools):
            by_subnet.setdefault(pool.subnet, []).extend(pool.ranges)
        used = self.neighbours.used
        if used is None:
            return {subnet: frozenset(ranges.blocks(each)) for subnet, each in by_subnet.items()}
        singles = ranges.read(used)
        return {
            subnet: frozenset(ranges.blocks(one for one in singles if any(one.first in each for each in whole)))
            for subnet, whole in by_subnet.items()
        }

    @property
    def allowed(self) -> frozenset[str]:
        """All declared addresses, of whichever ports."""
        return self.given.union(*self.pooled().values())

    def pairs_by_port(self, run: CloudRun) -> dict[str, frozenset[str]] | None:
        """Return the pairs to have, as records name them, by port id; None if the ports do not exist yet."""
        return run.read_once((PairFields._pairs, self.key), lambda: self._pairs(run))

    def _pairs(self, run: CloudRun) -> dict[str, frozenset[str]] | None:
        chosen = self.chosen(run) if len(self.ways) == 1 else None
        if chosen is None:
            return None
        blocks = self._blocks(run, chosen)
        meant = (port for port in chosen if port.id in blocks and port.port_security_enabled)
        return {port.id: with_mac(blocks[port.id], self.mac_address, port) for port in meant}

    def unfiltered(self, run: CloudRun) -> list[PortRecord]:
        """Return the selected ports without port security: they may send from any address, and have no pairs."""
        chosen = (self.chosen(run) if len(self.ways) == 1 else None) or ()
        blocks = self._blocks(run, chosen)
        return [port for port in chosen if port.id in blocks and not port.port_security_enabled]

    def _blocks(self, run: CloudRun, chosen: Sequence[PortRecord]) -> dict[str, frozenset[str]]:
        """Return the addresses to allow, by port id, for those of the chosen ports to which any apply."""
        pooled = self.pooled()
        if self.network:
            here = run.find_id(self.sibling(Existing, self.network, of="network"))
            everything = self.given.union(*pooled.values())
            return {port.id: everything for port in chosen if port.network_id == here}
        if not self.pools:
            return {port.id: self.given for port in chosen}
        networks: dict[str | None, frozenset[str]] = {}
        for subnet, blocks in pooled.items():
            room = next(pool for pool in self.neighbours.pools if pool.subnet == subnet).room(run)
            network = room.network_id if room else None
            networks[network] = networks.get(network, self.given) | blocks
        return {port.id: networks[port.network_id] for port in chosen if port.network_id in networks}

    def prunes(self, run: CloudRun) -> bool:
        """Whether recorded pairs that are no longer declared are removed."""
        return self.prune

    def declares(self, pair: str, port: PortRecord) -> bool:
        """Whether a pair of a port has their MAC address, and addresses in common with these, used or not."""
        block = block_of(pair)
        if {pair} != with_mac([block], self.mac_address, port):
            return False
        pools = (self.neighbours.pool(each) for each in self.pools)
        declared = (*ranges.read(self.addresses or ()), *(one for pool in pools for one in pool.ranges))
        return any(each.overlap(Range.read(block)) for each in declared)

    def shares(self, run: CloudRun) -> list[Share]:
        """Return the work per port, for ports that are selected or that have a record of these pairs.

        The address pairs that declare a recorded pair maintain its record: first those that select the port, then those
        whose stack contains it, which has no server while Heat replaces the server and must keep its pairs. If no
        address pairs declare the pair, the first of these maintain the record.
        """
        siblings = self.neighbours.pairs or (self,)
        pairs_by_port = [each.pairs_by_port(run) for each in siblings]
        between = [each.between_servers(run) for each in siblings]
        place = next(i for i, each in enumerate(siblings) if each.name == self.name)
        complete = None not in pairs_by_port
        shares = []
        for port in ports_of(run, run.find_project_id(self.owner)):
            claimants = {i: each[port.id] for i, each in enumerate(pairs_by_port) if each and port.id in each}
            keepers = [i for i, each in enumerate(between) if port.id in each]
            places = [*claimants, *keepers]
            recorded = recorded_pairs(run.ownership, port)
            mine = frozenset(each for each in recorded if place == _maintainer(siblings, each, port, places))
            if place not in claimants and not mine:
                continue
            kept = frozenset(each for each in mine if any(siblings[i].declares(each, port) for i in keepers))
            prunes = (claimants or complete) and self.prunes(run)
            stale = mine.difference(kept, *claimants.values()) if prunes else frozenset()
            wanted = claimants.get(place)
            shares.append(Share(port, run.ownership, wanted or frozenset(), stale, mine, wanted is not None))
        return shares


def _maintainer(siblings: Sequence[PairFields], pair: str, port: PortRecord, first: Sequence[int]) -> int:
    """Return the place of the address pairs that maintain the record of a pair; ``first`` are those of its port."""
    places: list[int] = [*first, *range(len(siblings))]
    return next((i for i in places if siblings[i].declares(pair, port)), places[0])
