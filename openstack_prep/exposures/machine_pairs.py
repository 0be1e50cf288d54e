"""Address pairs of virtual machines on bridges of nodes that are servers of OpenStack.

Such a machine sends with a MAC address of its own, from any node with the bridge: each of these nodes needs a pair with
the address and the MAC address that the machine's exposure has claimed. virtualization/openstack.py names the sources.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from openstack_prep.base import ranges
from openstack_prep.base.errors import Mistake
from openstack_prep.base.fields import Name
from openstack_prep.base.ranges import Range
from openstack_prep.base.raw import Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Context, Key, Observed, Resource
from openstack_prep.core.text import counted
from openstack_prep.exposures.neighbours import ExposureFields, ExposureNeighbours, Pool, held
from openstack_prep.exposures.pool_file import PoolFile
from openstack_prep.exposures.virtualization import OutsideNetwork, Virtualization
from openstack_prep.resources.addresses.address_pairs import AddressPairs, PairNeighbours, distributed, with_ovn
from openstack_prep.resources.addresses.port_pairs import Pair, PortShares, Share
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.neutron_records import PortRecord, Subport
from openstack_prep.resources.network.port import ports_of
from openstack_prep.resources.orchestration.existing import Existing

SERVER = "compute:"
"""Beginning of the device_owner of a server's port."""


@dataclass(frozen=True)
class ClaimedMachine:
    """What the exposure of a virtual machine has claimed."""

    exposure: str
    address: str
    mac: str

    def on(self, port: PortRecord) -> frozenset[Pair]:
        """Return its pair on a port."""
        return Pair.of([self.address], self.mac, port)

    def has_pairs_in(self, pairs: AddressPairs) -> bool:
        """Whether declared address pairs are for this machine."""
        if (pairs.mac_address or "").lower() != self.mac:
            return False
        pooled = (each for name in pairs.pools for each in pairs.neighbours.pool(name).ranges)
        wanted = ipaddress.ip_address(self.address)
        return any(wanted in each for each in (*ranges.read(pairs.addresses or ()), *pooled))


@dataclass(frozen=True, kw_only=True)
class MachinePairs(AddressPairs):
    """The pairs of all virtual machines of a cluster on bridges of its nodes, with the addresses that they claimed.

    Machines for which the spec declares address pairs with their MAC address are left to these.
    """

    cluster: Name
    settings: Virtualization
    exposures: tuple[ExposureFields, ...] = field(default=(), repr=False)
    """The exposures of the machines; like the further fields empty until it is resolved."""
    around: ExposureNeighbours = field(default=ExposureNeighbours(), repr=False)
    """The pools of the exposures."""
    explicit: tuple[AddressPairs, ...] = field(default=(), repr=False)
    """The address pairs that the spec declares itself."""

    def beside(self, neighbours: PairNeighbours, others: Sequence[Resource]) -> Self:
        context = Context(resources=others, cloud=None)
        around = ExposureNeighbours.of(context, self)
        mine = (
            exposure
            for exposure in self.of_project(context.declared(ExposureFields))
            if exposure.cluster == self.cluster
        )
        there = tuple(
            exposure for exposure in mine if on_networks(exposure, around.named(exposure.pool), self.settings)
        )
        pairs = self.of_project(each for each in context.declared(AddressPairs) if not isinstance(each, MachinePairs))
        explicit = tuple(replace(each, neighbours=neighbours) for each in pairs)
        return replace(self, neighbours=neighbours, exposures=there, around=around, explicit=explicit)

    @property
    def networks(self) -> list[OutsideNetwork]:
        """The networks in OpenStack that machines may be on."""
        found = (on_networks(exposure, self.around.named(exposure.pool), self.settings) for exposure in self.exposures)
        return list(dict.fromkeys(each for those in found for each in those))

    def references(self) -> Iterable[Resource]:
        return (*super().references(), *(self._existing(each) for each in self.networks))

    def _existing(self, network: OutsideNetwork) -> Existing:
        found: Existing = self.sibling(Existing, network.openstack_network or "", of="network")
        return found

    def follows(self) -> Iterable[Key]:
        return (*super().follows(), *(exposure.key for exposure in self.exposures))

    def outlives(self) -> Iterable[Key]:
        return (*super().outlives(), *(exposure.key for exposure in self.exposures))

    def desired(self) -> Values:
        return {"pairs": frozenset(_named(exposure.name) for exposure in self.exposures)}

    # --- machines and ports -----------------------------------------------------------------

    def _machines(self, run: CloudRun) -> dict[str, ClaimedMachine | None]:
        """Return what each exposure holds in its pool by now; None if that is not what it asks for."""
        found: dict[str, ClaimedMachine | None] = {}
        for each in self.exposures:
            pool = next(iter(self.around.named(each.pool)), None)
            claim = held(run, pool).get(each.name) if pool else None
            right = claim is not None and claim.mac and each.address in (None, claim.address)
            found[each.name] = (
                ClaimedMachine(each.name, claim.address, claim.mac) if claim and claim.mac and right else None
            )
        return found

    def _own(self, run: CloudRun) -> list[ClaimedMachine]:
        """Return the machines for which the spec declares no address pairs itself."""
        declared = self.declared(run)
        return [machine for machine in self._machines(run).values() if machine and machine.exposure not in declared]

    def declared(self, run: CloudRun) -> set[str]:
        """Return the exposures of machines for which the spec declares address pairs itself."""
        machines = filter(None, self._machines(run).values())
        return {machine.exposure for machine in machines if any(map(machine.has_pairs_in, self.explicit))}

    def _nodes(self, run: CloudRun, chosen: Iterable[PortRecord]) -> dict[str, PortRecord]:
        """Return by id the chosen ports, and all others of the same servers."""
        servers = {port.device_id for port in chosen if port.device_owner.startswith(SERVER)}
        listed = ports_of(run, run.find_project_id(self.owner))
        return {port.id: port for port in (*chosen, *(each for each in listed if each.device_id in servers))}

    def _passed(self, run: CloudRun, network: OutsideNetwork, nodes: Mapping[str, PortRecord]) -> dict[str, PortRecord]:
        """Return the ports that frames of a network pass, each by the port of its node: itself, or a trunk's."""
        here, vlan = run.find_id(self._existing(network)), self._vlan(network)
        if vlan is None:
            return {node.id: node for node in nodes.values() if node.network_id == here}
        listed = {each.id: each for each in ports_of(run, run.find_project_id(self.owner)) if each.network_id == here}
        inner = (subport for subport in self._subports(run) if subport.vlan == vlan and subport.parent_id in nodes)
        return {subport.parent_id: listed[subport.port_id] for subport in inner if subport.port_id in listed}

    def _vlan(self, network: OutsideNetwork) -> int | None:
        bridge = self.settings.bridge(network.bridge)
        return network.vlan or (bridge.vlan if bridge else None)

    def _subports(self, run: CloudRun) -> Sequence[Subport]:
        project_id = run.find_project_id(self.owner)
        return queries.subports(run, project_id) if project_id and any(map(self._vlan, self.networks)) else ()

    def _filtered(self, run: CloudRun, network: OutsideNetwork) -> list[PortRecord]:
        """Return the ports that frames of a network pass, and that have port security."""
        nodes = self._nodes(run, self.chosen(run) or ())
        return [each for each in self._passed(run, network, nodes).values() if each.port_security_enabled]

    # --- pairs ------------------------------------------------------------------------------

    def _pairs(self, run: CloudRun) -> dict[str, frozenset[Pair]] | None:
        if self.chosen(run) is None:
            return None
        found: dict[str, frozenset[Pair]] = {}
        for network in self.networks:
            machines = [machine for machine in self._own(run) if _is_in(machine.address, network)]
            for port in self._filtered(run, network):
                found[port.id] = found.get(port.id, frozenset()).union(*(machine.on(port) for machine in machines))
        return found

    def prunes(self, run: CloudRun) -> bool:
        """Whether all machines are known: a pair of an unknown one would be taken for a former one."""
        return None not in self._machines(run).values()

    def declares(self, pair: Pair, port: PortRecord) -> bool:
        """Whether a pair may be that of a virtual machine, also of a former one."""
        block = Range.read(pair.block)
        return bool(pair.mac) and any(block.overlap(Range.read(each.cidr)) for each in self.networks)

    def between_servers(self, run: CloudRun) -> frozenset[str]:
        """Return ports that wait for a server; subports never have one."""
        return super().between_servers(run).difference(subport.port_id for subport in self._subports(run))

    def _observe(self, run: CloudRun, shares: Sequence[Share], *, known: bool) -> Observed | None:
        machines = self._machines(run)
        meant = [share for share in shares if share.meant]
        lacking = {pair for share in meant for pair in share.lacking}
        there = {pair for share in meant for pair in share.wanted} - lacking
        unclaimed = {name for name, each in machines.items() if each is None and not self.neighbours.alone}
        if not there and not any(share.mine for share in shares) and (not known or lacking or unclaimed):
            return None
        absent = unclaimed | {
            machine.exposure
            for machine in machines.values()
            if machine and Pair(machine.address, machine.mac) in lacking
        }
        stale = {f"{pair} on {share.port.name or share.port.id}" for share in shares for pair in share.stale}
        return Observed(
            id=counted(len(meant), "port"),
            ours=any(share.mine for share in shares),
            values={"pairs": frozenset(map(_named, machines.keys() - absent)) | stale},
            outputs={"pairs": ", ".join(map(str, sorted(there)))} if there else {},
            record=PortShares(tuple(shares)),
        )

    # --- what cannot work ---------------------------------------------------------------------

    def check(self, run: CloudRun, observed: Observed | None) -> Iterator[Mistake]:
        coming = frozenset(key.name for key in self._coming_ports())
        yield from self.check_choice(run, self.chosen(run), expected=self._expected, coming=coming)
        networks = {share.port.network_id for share in self.shares(run) if share.missing}
        addresses = {machine.address for machine in self._own(run)}
        yield from distributed(run, self, addresses, networks)
        yield from self._impossible(run, ())

    def _impossible(self, run: CloudRun, networks: Collection[str]) -> Iterator[Mistake]:
        """Yield the networks of OVN on which several ports would have the MAC address of one machine.

        OVN sends all its frames to one of them, wherever the machine runs.
        """
        unknown = None in self._machines(run).values()
        for network in self.networks:
            ports = self._filtered(run, network)
            concerned = unknown or any(_is_in(machine.address, network) for machine in self._own(run))
            here = {port.network_id for port in ports}
            if len(ports) < 2 or not concerned or not with_ovn(run, here):
                continue
            names = ", ".join(sorted(port.name or port.id for port in ports))
            what = f"OVN runs {network.openstack_network}, and sends all frames of a virtual machine to one port, "
            what += f"but the machine may run on each node with {names}"
            fix = "disable port security on these ports, which the owner of the network may; or select one port in "
            fix += "nodes of the cluster, and run the machine there (openstack-prep explain bridge.ovn-one-port)"
            yield self.mistake(what, fix)

    def _add(self, run: CloudRun, shares: Sequence[Share]) -> Observed:
        made = super()._add(run, shares)
        for text in self._missing(run):
            run.note(self.key, text)
        return made

    def _missing(self, run: CloudRun) -> Iterator[str]:
        """Yield the servers on which no port leads to a network."""
        nodes = self._nodes(run, self.chosen(run) or ())
        names: dict[str, str] = {}
        for node in nodes.values():
            if node.device_owner.startswith(SERVER):
                names.setdefault(node.device_id, node.name or node.id)
        for network in self.networks:
            reached = {nodes[each].device_id for each in self._passed(run, network, nodes)}
            vlan = self._vlan(network)
            lacking = sorted(name for server, name in names.items() if server not in reached)
            if lacking:
                what = f"no trunk with VLAN {vlan}" if vlan else "no port"
                yield (
                    f"the servers with {', '.join(lacking)} have {what} on {network.openstack_network}, so no virtual "
                    "machine is reached there; openstack-prep exposures show prints the commands"
                )


def on_networks(exposure: ExposureFields, pools: Iterable[Pool], settings: Virtualization) -> list[OutsideNetwork]:
    """Return the networks in OpenStack that the virtual machine of an exposure may be attached to."""
    if exposure.how != "bridge":
        return []
    possible = [Range.read(exposure.address)] if exposure.address else [one for pool in pools for one in _of(pool)]
    named = ((network, Range.read(network.cidr)) for network in settings.networks if network.openstack_network)
    return [each for each, cidr in named if any(map(cidr.overlap, possible))]


def _of(pool: Pool) -> Sequence[Range]:
    return pool.claimable() if isinstance(pool, PoolFile) else pool.ranges


def _is_in(address: str, network: OutsideNetwork) -> bool:
    return ipaddress.ip_address(address) in ipaddress.ip_network(network.cidr)


def _named(exposure: str) -> str:
    """Return the pair of an exposure in the vocabulary of the spec."""
    return f"address and MAC address of exposure/{exposure}"
