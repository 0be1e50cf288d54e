"""Allowed address pairs of ports: pairs of this spec are ensured, all other pairs are left alone.

Source: Networking API v2.0, "Allowed address pairs", "Standard attributes tag" and "Revisions"; Neutron 29.0.0 and OVN
23.03 for the addresses that OVN reserves, or that nobody would reach although a pair allows them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Literal, Self

from openstack_prep.base import multicast, ranges
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, NotAllowed, NotFound, PlanRefused, PrepError, SpecError
from openstack_prep.base.fields import Name
from openstack_prep.base.multicast import PairMac
from openstack_prep.base.ranges import AddressRange, Range
from openstack_prep.base.raw import Values
from openstack_prep.base.suggestion import suggest
from openstack_prep.cloud.cloud_run import CloudRun, only_one
from openstack_prep.core.model import Change, Context, FromContext, Key, Observed, Resource
from openstack_prep.core.run import query
from openstack_prep.core.text import counted
from openstack_prep.resources.addresses import port_pairs
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.addresses.port_pairs import Pair, PortShares, Share, recorded_pairs
from openstack_prep.resources.heat.stacks import ports_in, servers_of, stack_names
from openstack_prep.resources.identity.in_project import ByProjectUser, InProject
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.cluster_naming import cluster_namings
from openstack_prep.resources.lists.neutron_records import PortRecord
from openstack_prep.resources.network.declared_port import Port
from openstack_prep.resources.network.port import ports_of, shown
from openstack_prep.resources.network.port_addresses import multicast_mistakes, multicast_obstacle, unchecked_pairs
from openstack_prep.resources.network.security_group import SecurityGroup
from openstack_prep.resources.orchestration.existing import Existing

# --- the selection of ports in a project: by name, by tag, by cluster, by stack, or by security group ---
#
# Source: Networking API v2.0, "Ports", "Security groups".


WAYS = ("ports", "infra_id", "tag", "stack", "security_group")
Role = Literal["master", "worker", "bootstrap"]


@dataclass(frozen=True, kw_only=True)
class PortChoice(ByProjectUser):
    """Base of kinds that apply to several ports, which are selected in one of these ways."""

    ports: tuple[Name, ...] = ()
    """Names of the ports; each must match exactly and be unique in the project."""
    infra_id: Name | None = None
    """InfraID of an OpenShift cluster: selects the ports of masters, workers and bootstrap on the cluster's network."""
    tag: Name | None = None
    """Tag of the ports."""
    roles: tuple[Role, ...] = ()
    """Only ports with these roles, which are part of the port names; needs infra_id or tag."""
    stack: Name | None = None
    """Stack whose servers' ports are selected; the spec may declare it or not."""
    security_group: Name | None = None
    """Name or id of a security group: selects all ports of the project in this group, including nodes added later."""

    @property
    def ways(self) -> list[str]:
        """The fields that select ports; exactly one must be set."""
        return [way for way in WAYS if getattr(self, way)]

    def chosen(self, run: CloudRun) -> list[PortRecord] | None:
        """Return the selected ports that exist; None if the stack, group or tag that selects them does not exist."""
        listed = ports_of(run, run.find_project_id(self.owner))
        if self.ports:
            named = {name: [port for port in listed if port.name == name] for name in self.ports}
            found = [only_one(matches, f"{self.key}: port {name}") for name, matches in named.items()]
            return [port for port in found if port is not None]
        if self.stack:
            servers = servers_of(run, self.owner, self.stack)
            return None if servers is None else [port for port in listed if port.device_id in servers]
        if self.security_group:
            group = self._group_id(run)
            return None if group is None else [port for port in listed if group in port.security_groups]
        infra_id, namings = self.infra_id or "", cluster_namings()
        if infra_id:
            meant = [port for naming in namings for port in naming.nodes_of(listed, infra_id)]
        else:
            meant = [port for port in listed if self.tag in port.tags]
        if not self.roles:
            return meant
        return [port for port in meant if any(naming.role_of(port, infra_id) in self.roles for naming in namings)]

    def between_servers(self, run: CloudRun) -> frozenset[str]:
        """Return the ids of the selected stack's own ports that no server of it has, as while Heat replaces one."""
        if not self.stack or len(self.ways) != 1:
            return frozenset()
        return ports_in(run, self.owner, self.stack).difference(port.id for port in self.chosen(run) or ())

    def _group_id(self, run: CloudRun) -> str | None:
        project_id = run.find_project_id(self.owner)
        if project_id is None:
            return None
        listed = _security_groups(run, project_id)
        named = [each_id for each_id, name in listed if name == self.security_group]
        if len(named) > 1:  # one of our twins is kept
            group = run.look(self.sibling(SecurityGroup, self.security_group or ""))
            named = [each_id for each_id in named if group is not None and each_id == group.id]
        by_id = (each_id for each_id, _ in listed if each_id == self.security_group)
        return next(iter(named), None) or next(by_id, None)

    def check_choice(
        self,
        run: CloudRun,
        chosen: Sequence[PortRecord] | None,
        *,
        expected: bool,
        coming: frozenset[str] = frozenset(),
    ) -> Iterator[Mistake]:
        """Yield what is wrong with the selection.

        ``expected``: the spec will create what selects the ports; ``coming`` are the names of ports that it creates.
        """
        if len(self.ways) != 1:
            yield self.mistake("no ports selected", f"set one of {', '.join(WAYS)}")
            return
        if self.roles and self.ways[0] not in ("infra_id", "tag"):
            yield self.mistake(
                "roles only applies together with infra_id or tag", "set infra_id or tag, or remove roles"
            )
        if chosen is None and not expected:
            kind, name = ("stack", self.stack) if self.stack else ("security_group", self.security_group)
            fix = self._suggest(run, kind, str(name), "create it first, or correct the name")
            what = f"{kind.replace('_', ' ')} {name} does not exist in the project"
            yield self.mistake(what, fix, Code.SPEC_UNRESOLVED)
        for name in sorted({*self.ports} - coming - {port.name for port in chosen or ()}):
            fix = suggest(name, coming, count=3) or self._suggest(run, "port", name, "correct the name")
            yield self.mistake(f"port {name} does not exist in the project", fix, Code.SPEC_UNRESOLVED)
        if not chosen and (self.tag or self.infra_id) and not expected:
            tag = self.tag or next(
                filter(None, (cluster_naming.tag_of(self.infra_id or "") for cluster_naming in cluster_namings())), ""
            )
            which = " or ".join(self.roles) if self.roles else "node"
            yield self.mistake(
                f"no {which} port in the project has the tag {tag}", "correct the tag, or wait until the ports exist"
            )

    def _suggest(self, run: CloudRun, kind: str, name: str, otherwise: str) -> str:
        """Return which existing resource of the project a name may mean, or else another fix."""
        project_id, known = run.find_project_id(self.owner), [""]
        if project_id is None:
            return otherwise
        with contextlib.suppress(PrepError):  # the mistake itself does not depend on it
            if kind == "port":
                known = [port.name for port in ports_of(run, project_id)]
            elif kind == "stack":
                known = [*stack_names(run, self.owner)]
            else:
                known = [each for _, each in _security_groups(run, project_id)]
        return suggest(name, filter(None, known), otherwise, count=3)


@query
def _security_groups(run: CloudRun, project_id: str) -> Sequence[tuple[str, str]]:
    """Return ids and names of a project's security groups."""
    fields = ["id", "name"]
    listed = run.admin.network.list("/security-groups", "security_groups", project_id=project_id, fields=fields)
    return [(raw["id"], raw["name"]) for raw in listed]


# --- address pairs --------------------------------------------------------------------------


JOBS = 4
"""Number of ports that one step changes in parallel."""
DISTRIBUTED = "network:distributed"
"""The device_owner of OVN's own ports on every node."""


@dataclass(frozen=True)
class PairNeighbours(FromContext):
    """The related resources in the project of address pairs: pools, pairs, and stacks, groups and ports to create."""

    pools: tuple[AddressPool, ...] = ()
    pairs: tuple[AddressPairs, ...] = ()
    coming: frozenset[Key] = frozenset()
    used: frozenset[str] | None = None
    """If set, only these addresses of the pools."""
    alone: bool = False
    """Whether the pairs are updated without their pools, which then nothing else checks."""

    def pool(self, name: str) -> AddressPool:
        return next(each for each in self.pools if each.name == name)


@dataclass(frozen=True)
class PairOrigin(FromContext):
    """What address pairs come from that no spec declares."""

    implied_by: Key | None = None
    """The resource of the spec that implies them, such as a cluster with exposures."""
    port_id: str | None = None
    """The port whose tags record them: it may have no name, or a name that is not unique."""


@dataclass(frozen=True, kw_only=True)
class AddressPairs(PortChoice):
    """Addresses that ports may use besides their own, such as the virtual addresses of a cluster.

    Select the ports with exactly one of ``ports``, ``infra_id``, ``tag``, ``stack`` and ``security_group``. A tag of
    the port records each pair that this spec adds. Apply removes recorded pairs that the spec no longer declares, and
    destroy removes only recorded pairs; pairs that others have added are left alone.
    """

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
    neighbours: PairNeighbours = field(default=PairNeighbours(), repr=False)
    """The related resources, which ``resolve`` finds in the spec."""
    origin: PairOrigin = field(default=PairOrigin(), repr=False)
    """What they come from if the spec does not declare them."""

    def resolve(self, context: Context) -> Sequence[Resource]:
        if self.neighbours != PairNeighbours():
            return (self,)
        return (self.resolve_with(context.resources),)

    def resolve_with(
        self, others: Iterable[Resource], used: frozenset[str] | None = None, *, alone: bool = False
    ) -> AddressPairs:
        """Return the pairs resolved among other resources; of the spec's own pools only the addresses ``used``.

        ``alone``: the other resources are only read. Raises SpecError.
        """
        others = tuple(others)
        mine = self.of_project(project for project in others if isinstance(project, InProject))
        neighbours = PairNeighbours(
            pools=tuple(each for each in mine if isinstance(each, AddressPool)),
            coming=frozenset(project.key for project in mine if project.kind in ("stack", "security_group", Port.kind)),
            alone=alone,
        )
        pairs = [each for each in mine if isinstance(each, AddressPairs)]
        if unknown := [mistake for each in (*pairs, self) for mistake in each._unknown_pools(neighbours)]:
            raise SpecError([*dict.fromkeys(unknown)])
        own = replace(neighbours, used=used)
        siblings = ((each, own if each.name == self.name else neighbours) for each in pairs)
        known = tuple(each.beside(around, others) for each, around in siblings)
        return self.beside(replace(own, pairs=known), others)

    def beside(self, neighbours: PairNeighbours, others: Sequence[Resource]) -> AddressPairs:
        """Return the pairs with their neighbours; ``others`` are all resources of the spec."""
        return replace(self, neighbours=neighbours)

    def _unknown_pools(self, neighbours: PairNeighbours) -> Iterator[Mistake]:
        known = {each.name for each in neighbours.pools}
        for name in (each for each in self.pools if each not in known):
            fix = "declare it under address_pools, or set addresses"
            yield self.mistake(f"pool {name} is not in this spec", fix, Code.SPEC_UNRESOLVED)

    def references(self) -> Iterable[Resource]:
        network = (self.sibling(Existing, self.network, of="network"),) if self.network else ()
        return (*super().references(), *network)

    def needs(self) -> Iterable[Key]:
        group = (self.key_of("security_group", self.security_group),) if self.security_group else ()
        return (*super().needs(), *group, *(self.key_of(AddressPool.kind, each) for each in self.pools))

    def follows(self) -> Iterable[Key]:
        """Return the stacks whose servers are selected, or may be, and the spec's own ports."""
        if self.stack:
            return (self.key_of("stack", self.stack),)
        if self.ports:
            return self._coming_ports()
        any_port = self.tag or self.security_group
        return [key for key in self.neighbours.coming if key.kind in ("stack", Port.kind)] if any_port else ()

    def _coming_ports(self) -> list[Key]:
        """Return the selected ports that the spec creates."""
        return [key for name in self.ports if (key := self.key_of(Port.kind, name)) in self.neighbours.coming]

    # --- pairs per port ----------------------------------------------------------------------

    @property
    def given(self) -> frozenset[str]:
        """The addresses to allow on all ports, with each range as its own item."""
        return frozenset(block for address in self.addresses or () for block in ranges.blocks([Range.read(address)]))

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

    def pairs_by_port(self, run: CloudRun) -> dict[str, frozenset[Pair]] | None:
        """Return the pairs to have by port id; None if the ports do not exist yet."""
        return run.read_once((AddressPairs._pairs, self.key), lambda: self._pairs(run))

    def _pairs(self, run: CloudRun) -> dict[str, frozenset[Pair]] | None:
        chosen = self.chosen(run) if len(self.ways) == 1 else None
        if chosen is None:
            return None
        blocks = self._blocks(run, chosen)
        meant = (port for port in chosen if port.id in blocks and port.port_security_enabled)
        return {port.id: Pair.of(blocks[port.id], self.mac_address, port) for port in meant}

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

    def declares(self, pair: Pair, port: PortRecord) -> bool:
        """Whether a pair of a port has their MAC address, and addresses in common with these, used or not."""
        if {pair} != Pair.of([pair.block], self.mac_address, port):
            return False
        pools = (self.neighbours.pool(each) for each in self.pools)
        declared = (*ranges.read(self.addresses or ()), *(one for pool in pools for one in pool.ranges))
        return any(each.overlap(Range.read(pair.block)) for each in declared)

    def shares(self, run: CloudRun) -> list[Share]:
        """Return the work per port, for ports that are selected or that have a record of these pairs.

        The address pairs that declare a recorded pair maintain its record: first those that select the port, then those
        whose stack contains it, which has no server while Heat replaces the server and must keep its pairs. If no
        address pairs declare the pair, the first of these maintain the record.
        """
        siblings = self.neighbours.pairs or (self,)
        pairs_by_port = [sibling.pairs_by_port(run) for sibling in siblings]
        between = [sibling.between_servers(run) for sibling in siblings]
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

    # --- desired state --------------------------------------------------------------------

    def desired(self) -> Values:
        if self.pools and not self.neighbours.pools:  # only resolved pairs know the addresses of their pools
            return {"addresses": self.given, "pools": self.pools}
        return {"addresses": self.allowed, "elsewhere": frozenset()}

    # --- existing state -------------------------------------------------------------------

    def find_one(self, run: CloudRun) -> Observed | None:
        if self.origin.port_id:
            return next((found for _, found in self.scan(run, self.owner) if found.id == self.origin.port_id), None)
        return self._observe(run, self.shares(run), known=self.pairs_by_port(run) is not None)

    @classmethod
    def scan(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        """Yield for each port of a project the pairs that this spec has added, as recorded by the port's tags."""
        for port in ports_of(run, run.find_project_id(owner)):
            mine = recorded_pairs(run.ownership, port)
            if mine:
                macs = {each.mac for each in mine}
                declared = cls(
                    name=f"{port.name} {port.id}".lstrip(),
                    ports=(port.name,),
                    addresses=tuple(sorted({each.block for each in mine})),
                    mac_address=macs.pop() or None if len(macs) == 1 else None,
                    origin=PairOrigin(port_id=port.id),
                    **cls.placing(owner),
                )
                shares = PortShares((Share(port, run.ownership, mine, mine=mine),))
                yield declared, Observed(id=port.id, ours=True, record=shares)

    def deleted_ids(self, observed: Observed) -> frozenset[str]:
        return frozenset()  # the ports stay

    def cloud_ids(self, observed: Observed) -> frozenset[str]:
        return frozenset(each.port.id for each in observed.record_as(PortShares).shares if each.mine)

    def _observe(self, run: CloudRun, shares: Sequence[Share], *, known: bool) -> Observed | None:
        """Return what exists; ``known``: whether the selected ports do. None if there is something to create."""
        desired = self.desired()["addresses"]
        meant, unfiltered = [each for each in shares if each.meant], self.unfiltered(run)
        some = any(len(each.lacking) < len(each.wanted) for each in meant) or any(each.mine for each in shares)
        nothing_to_do = known and (not desired or (not meant and (self.stack or self.security_group or unfiltered)))
        if not some and not nothing_to_do:
            return None
        lacking = frozenset(pair.block for each in meant for pair in each.lacking)
        stale = [(pair, each.port.name or each.port.id) for each in shares for pair in each.stale]
        values = {
            "addresses": desired - lacking | {str(pair) for pair, _ in stale if pair.block not in desired},
            "elsewhere": frozenset(f"{pair} on {port}" for pair, port in stale if pair.block in desired),
        }
        return Observed(
            id=counted(len(meant), "port") + _without_filter(unfiltered),
            ours=any(each.mine for each in shares),
            values=values,
            record=PortShares(tuple(shares)),
        )

    # --- checks ---------------------------------------------------------------------------

    def check(self, run: CloudRun, observed: Observed | None) -> Iterator[Mistake]:
        chosen = self.chosen(run) if len(self.ways) == 1 else None
        coming = frozenset(key.name for key in self._coming_ports())
        yield from self.check_choice(run, chosen, expected=self._expected, coming=coming)
        if self.addresses is None and not self.pools:
            yield self.mistake("no addresses selected", "set addresses, or pools of the spec")
        if self.neighbours.alone:
            for pool in (self.neighbours.pool(each) for each in self.pools):
                yield from pool.conflicts(pool.room(run))
        pairs_by_port = self.pairs_by_port(run)
        yield from self._overlapping(run, pairs_by_port)
        if pairs_by_port is None or chosen is None:
            return
        meant = [*pairs_by_port, *self.unfiltered(run)]
        unknown = self.network and run.find_id(self.sibling(Existing, self.network, of="network")) is None
        if chosen and not meant and not unknown:  # the missing reference is reported already
            what = "none of the selected ports is on " + (
                f"network {self.network}" if self.network else "the pools' network"
            )
            yield self.mistake(what, "correct the network, the pools' subnet, or the selection of ports")
        shares = self.shares(run)
        lacking = {share.port.network_id for share in shares if share.missing}
        yield from distributed(run, self, self.desired()["addresses"], lacking)
        yield from self._impossible(run, lacking)
        yield from self._blocked(run, shares).values()

    def check_delete(self, run: CloudRun, observed: Observed, going: frozenset[str]) -> Iterator[Mistake]:
        yield from self._blocked(run, _without_ours(observed)).values()

    def list_unchecked(self, run: CloudRun, changes: Sequence[Change] | None) -> Iterable[str]:
        shares = self.shares(run)
        number = max((len(each.pairs()) for each in shares if not each.right), default=0)
        return unchecked_pairs(number, (each.port for each in shares))

    def list_warnings(self, context: Context) -> Iterable[str]:
        return multicast.warnings(sorted(self.given))

    def _overlapping(self, run: CloudRun, pairs_by_port: Mapping[str, Collection[Pair]] | None) -> Iterator[Mistake]:
        """Yield the declared addresses that Neutron refuses, unless all ports have had them since before it did."""
        shares = self.shares(run) if pairs_by_port is not None else []
        if shares and all(share.right for share in shares):
            return
        for what, fix in multicast_mistakes(run, self.allowed):
            yield self.mistake(what, fix, Code.ADDRESS_MULTICAST)

    def _check_machines(self, run: CloudRun, networks: Collection[str]) -> Iterator[Mistake]:
        """Yield the single addresses that other machines have as their own.

        With the next change of such a machine's port OVN makes it virtual, and no server can be bound to it any more.
        Source: Neutron 29.0.0, common/ovn/utils.py, get_virtual_port_parents, validate_port_binding_and_virtual_port.
        """
        single = tuple(sorted(address for address in self.given if "/" not in address))
        if not (single and networks):
            return
        own = {port.id for port in self.chosen(run) or ()}
        for port in queries.machines_with(run, tuple(sorted(networks)), single):
            for address in sorted({str(each) for each in port.addresses} & {*single}) if port.id not in own else ():
                what = f"{address} is used by {shown(port)} ({port.device_owner})"
                yield self.mistake(what, "choose another address", Code.ADDRESS_IN_USE)

    def _blocked(self, run: CloudRun, shares: Iterable[Share]) -> dict[str, Mistake]:
        """Return, by id, the ports whose pairs Neutron would not update because of pairs that others have added."""
        blocked = {}
        for share in shares:
            found = None if share.right else multicast_obstacle(run, share.port, share.staying)
            if found:
                blocked[share.port.id] = self.mistake(*found, Code.ADDRESS_MULTICAST)
        return blocked

    @property
    def _expected(self) -> bool:
        """Whether the spec creates the selected stack, security group or tag, or servers that may have the ports."""
        coming = self.neighbours.coming
        if self.stack or self.security_group:
            named = [self.key_of("stack", self.stack or ""), self.key_of("security_group", self.security_group or "")]
            return not coming.isdisjoint(named)
        return any(key.kind in ("stack", Port.kind) for key in coming)

    # --- the verbs ------------------------------------------------------------------------

    def create(self, run: CloudRun) -> Observed:
        return self._add(run, self.shares(run))

    def update(self, run: CloudRun, observed: Observed, changes: Sequence[Change]) -> Observed:
        return self._add(run, observed.record_as(PortShares).shares)

    def _add(self, run: CloudRun, shares: Sequence[Share]) -> Observed:
        """Update all ports; before that check again what the run has created, or somebody else since the plan."""
        wrong = [*self._impossible(run.fresh(), {share.port.network_id for share in shares if share.missing})]
        if wrong:
            raise PlanRefused(wrong)
        done = self._update_ports(run, shares, partial(self._judge, run))
        meant = sum(each.meant for each in done)
        return self._observe(run, done, known=True) or Observed(id=counted(meant, "port"), values=self.desired())

    def _impossible(self, run: CloudRun, networks: Collection[str]) -> Iterable[Mistake]:
        """Yield why pairs on some networks would do harm or lead nowhere, as far as what exists by now decides that."""
        yield from self._check_machines(run, networks)
        yield from reserved(run, self, networks)

    def _judge(self, run: CloudRun, share: Share) -> Share:
        """Return the work on a port that somebody has changed meanwhile; no pair is removed that was to stay before."""
        fresh = run.fresh()
        now = {each.port.id: each for each in self.shares(fresh)}.get(share.port.id)
        if now is not None:
            return replace(now, stale=now.stale & (share.stale | (now.stale - {*now.going})))
        ports = {each.id: each for each in ports_of(fresh, fresh.find_project_id(self.owner))}
        if share.port.id not in ports:
            raise NotFound(f"port {share.port.id} no longer exists")
        return Share(ports[share.port.id], run.ownership, frozenset(), meant=False)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        self._update_ports(run, _without_ours(observed))

    def _update_ports(
        self, run: CloudRun, shares: Sequence[Share], judge: Callable[[Share], Share] | None = None
    ) -> list[Share]:
        """Update all ports, some in parallel; all requests have ended when the first failure is raised.

        Ports that Neutron would not update do not stop the others, and are raised as PlanRefused.
        The API does not show how many pairs a port may have. Therefore the port that will have most pairs is updated
        first and alone, so that a refusal leaves all ports as they were.
        """
        blocked = self._blocked(run, shares)
        ordered = [each for each in shares if each.port.id not in blocked]
        ordered.sort(key=lambda each: (each.right, -len(each.pairs())))
        updated = [self._update_port(run, each, judge) for each in ordered[:1]]
        with ThreadPoolExecutor(JOBS) as pool:
            waiting = [
                pool.submit(self._update_port, run, each, judge) for each in ordered[1:]
            ]  # map would cancel the rest
        done = [share for share in (*updated, *(future.result() for future in waiting)) if share is not None]
        if blocked:
            raise PlanRefused([*blocked.values()])
        return done

    def _update_port(self, run: CloudRun, share: Share, judge: Callable[[Share], Share] | None) -> Share | None:
        """Return a port's share once its pairs match the spec; None if the port no longer exists."""
        if share.right:
            return share
        try:
            return self._write(run, share, judge)
        except NotFound:
            if self.ports and share.wanted:
                raise
            return None

    def _write(self, run: CloudRun, share: Share, judge: Callable[[Share], Share] | None) -> Share:
        """Update a port as the project's user, or as the user of the connection if only the network's owner may."""
        cloud = run.creator_of(self.owner)[0]
        try:
            return port_pairs.update_pairs(cloud.network, run.ownership, share, judge)
        except NotAllowed as error:
            if cloud is not run.admin:
                return port_pairs.update_pairs(run.admin.network, run.ownership, share, judge)
            fix = "on a network of another project, only its owner or an administrator may: apply as one of these"
            raise NotAllowed(f"{error}; {fix}", status=error.status) from error


def _without_filter(ports: Sequence[PortRecord]) -> str:
    """Return the ports that need no pairs, for plan and report, or nothing."""
    names = ", ".join(sorted(port.name or port.id for port in ports))
    return f", and no pair on {names}: port security is off, so nothing is filtered there" if names else ""


def _without_ours(observed: Observed) -> list[Share]:
    """Return the work that removes all recorded pairs."""
    nothing: frozenset[Pair] = frozenset()
    shares = observed.record_as(PortShares).shares
    return [replace(share, wanted=nothing, stale=share.mine) for share in shares if share.mine]


def _maintainer(siblings: Sequence[AddressPairs], pair: Pair, port: PortRecord, first: Sequence[int]) -> int:
    """Return the place of the address pairs that maintain the record of a pair; ``first`` are those of its port."""
    places: list[int] = [*first, *range(len(siblings))]
    return next((i for i in places if siblings[i].declares(pair, port)), places[0])


# --- addresses of OVN -------------------------------------------------------------------------


def with_ovn(run: CloudRun, networks: Collection[str]) -> set[str]:
    """Return those of some networks that OVN runs, by its own ports there, which only administrators see."""
    if not networks:
        return set()
    return {network for _, network, _ in queries.distributed_addresses(run, tuple(sorted(networks)))}


def distributed(
    run: CloudRun, pairs: AddressPairs, addresses: Collection[str], networks: Collection[str]
) -> Iterator[Mistake]:
    """Yield the addresses that OVN reserves for its own ports on every node.

    Neutron refuses them since 2025.1. Its first releases also refuse wider networks around such an address, later ones
    do not, and the API does not tell the difference; in that case Neutron's own error is shown.
    """
    if not networks:
        return
    for port_id, _, taken in queries.distributed_addresses(run, tuple(sorted(networks))):
        for address in sorted(taken.intersection(addresses)):
            kept = f"{address} belongs to port {port_id} ({DISTRIBUTED}), and Neutron allows it on no other port"
            yield pairs.mistake(kept, "choose another address", Code.ADDRESS_IN_USE)


def reserved(run: CloudRun, pairs: AddressPairs, networks: Collection[str]) -> Iterator[Mistake]:
    """Yield the pools for whose addresses OVN would answer itself, with the MAC address of the port that reserves.

    It leaves the answer to a machine only if the machine's port has a pair with exactly the address, not a network
    around it. Source: OVN 23.03, northd.c, build_lswitch_arp_nd_responder_known_ips, and Neutron 29.0.0,
    common/ovn/utils.py, get_virtual_port_parents; seen in OVN's flows (tests/ovn).
    """
    pooled = {subnet: [block for block in blocks if "/" in block] for subnet, blocks in pairs.pooled().items()}
    pools = [pool for pool in map(pairs.neighbours.pool, pairs.pools) if pool.reserve == "ports"]
    pools = [pool for pool in pools if pooled[pool.subnet]] if networks else []
    if not pools:
        return
    of_ovn = with_ovn(run, networks)
    for pool in pools:
        room = pool.room(run)
        if room and room.network_id in of_ovn:
            wide = ", ".join(sorted(pooled[pool.subnet]))
            what = f"pool {pool.name} reserves its addresses with ports, and would be allowed as networks ({wide}); "
            what += "with OVN nobody could then reach the addresses"
            fix = "set reserve: outside for the pool, or list its addresses one by one under addresses"
            yield pairs.mistake(what, fix)
