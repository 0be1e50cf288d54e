"""Allowed address pairs of ports: pairs of this spec are ensured, all other pairs are left alone.

Source: Networking API v2.0, "Allowed address pairs", "Standard attributes tag" and "Revisions".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Self

from openstack_prep.base import multicast
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, NotAllowed, NotFound, PlanRefused, SpecError
from openstack_prep.base.raw import Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Change, Context, Key, Observed, Resolved, Resource
from openstack_prep.core.text import counted
from openstack_prep.resources.addresses import pair_checks, pair_writing
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.addresses.pair_fields import PairFields, PairNeighbours
from openstack_prep.resources.addresses.pair_records import PortShares, Share, block_of, recorded_pairs
from openstack_prep.resources.identity.in_project import InProject
from openstack_prep.resources.lists.neutron_records import PortRecord
from openstack_prep.resources.network import multicast_pairs
from openstack_prep.resources.network.declared_port import Port
from openstack_prep.resources.network.port import ports_of
from openstack_prep.resources.orchestration.existing import Existing

JOBS = 4
"""Number of ports that one step changes in parallel."""


@dataclass(frozen=True, kw_only=True)
class AddressPairs(PairFields):
    """Addresses that ports may use besides their own, such as the virtual addresses of a cluster.

    Select the ports with exactly one of ``ports``, ``infra_id``, ``tag``, ``stack`` and ``security_group``. A tag of
    the port records each pair that this spec adds. Apply removes recorded pairs that the spec no longer declares, and
    destroy removes only recorded pairs; pairs that others have added are left alone.
    """

    def resolve(self, context: Context) -> Sequence[Resource]:
        return (self.resolve_with(context.resources),)

    def resolve_with(
        self, others: Iterable[Resource], used: frozenset[str] | None = None, *, alone: bool = False
    ) -> ResolvedAddressPairs:
        """Return the pairs resolved among other resources; of the spec's own pools only the addresses ``used``.

        ``alone``: the other resources are only read. Raises SpecError.
        """
        others = tuple(others)
        mine = self.of_project(each for each in others if isinstance(each, InProject))
        neighbours = PairNeighbours(
            pools=tuple(each for each in mine if isinstance(each, AddressPool)),
            coming=frozenset(each.key for each in mine if each.kind in ("stack", "security_group", Port.kind)),
            alone=alone,
        )
        pairs = [each for each in mine if isinstance(each, AddressPairs)]
        if unknown := [mistake for each in (*pairs, self) for mistake in each._unknown_pools(neighbours)]:
            raise SpecError([*dict.fromkeys(unknown)])
        own = replace(neighbours, used=used)
        siblings = ((each, own if each.name == self.name else neighbours) for each in pairs)
        known = tuple(each.beside(around, others) for each, around in siblings)
        return self.beside(replace(own, pairs=known), others)

    def beside(self, neighbours: PairNeighbours, others: Sequence[Resource]) -> ResolvedAddressPairs:
        """Return the pairs with their neighbours; ``others`` are all resources of the spec."""
        return ResolvedAddressPairs.of(self, neighbours=neighbours)

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

    # --- desired state --------------------------------------------------------------------

    def desired(self) -> Values:
        if self.pools and not self.neighbours.pools:  # only resolved pairs know the addresses of their pools
            return {"addresses": self.given, "pools": self.pools}
        return {"addresses": self.allowed, "elsewhere": frozenset()}

    # --- existing state -------------------------------------------------------------------

    def find_one(self, run: CloudRun) -> Observed | None:
        return self._observe(run, self.shares(run), known=self.pairs_by_port(run) is not None)

    @classmethod
    def scan(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        """Yield for each port of a project the pairs that this spec has added, as recorded by the port's tags."""
        for port in ports_of(run, run.find_project_id(owner)):
            mine = recorded_pairs(run.ownership, port)
            if mine:
                name, addresses = f"{port.name} {port.id}".lstrip(), tuple(sorted(set(map(block_of, mine))))
                macs = {each.partition(" ")[2] or None for each in mine}
                mac = macs.pop() if len(macs) == 1 else None
                fields = {"addresses": addresses, "mac_address": mac, **cls.placing(owner)}
                declared = cls(name=name, ports=(port.name,), **fields)
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
        lacking = frozenset(block_of(pair) for each in meant for pair in each.lacking)
        stale = [(pair, each.port.name or each.port.id) for each in shares for pair in each.stale]
        values = {
            "addresses": desired - lacking | {pair for pair, _ in stale if block_of(pair) not in desired},
            "elsewhere": frozenset(f"{pair} on {port}" for pair, port in stale if block_of(pair) in desired),
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
        yield from self.check_choice(chosen, expected=self._expected, coming=coming)
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
        yield from pair_checks.distributed(run, self, self.desired()["addresses"], lacking)
        yield from pair_checks.reserved(run, self, lacking)
        yield from self._blocked(run, shares).values()

    def check_delete(self, run: CloudRun, observed: Observed, going: frozenset[str]) -> Iterator[Mistake]:
        yield from self._blocked(run, _without_ours(observed)).values()

    def list_warnings(self, context: Context) -> Iterable[str]:
        return multicast.warnings(sorted(self.given))

    def _overlapping(self, run: CloudRun, pairs_by_port: Mapping[str, Collection[str]] | None) -> Iterator[Mistake]:
        """Yield the declared addresses that Neutron refuses, unless all ports have had them since before it did."""
        shares = self.shares(run) if pairs_by_port is not None else []
        if shares and all(share.right for share in shares):
            return
        for what, fix in multicast_pairs.overlapping(run, self.allowed):
            yield self.mistake(what, fix, Code.ADDRESS_MULTICAST)

    def _blocked(self, run: CloudRun, shares: Iterable[Share]) -> dict[str, Mistake]:
        """Return, by id, the ports whose pairs Neutron would not update because of pairs that others have added."""
        blocked = {}
        for share in shares:
            found = None if share.right else multicast_pairs.obstacle(run, share.port, share.staying)
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
        """Update all ports; before that check again what the plan could not if this run has created the network."""
        wrong = [*self._impossible(run, {share.port.network_id for share in shares if share.missing})]
        if wrong:
            raise PlanRefused(wrong)
        return self._update_ports(run, shares, partial(self._judge, run))

    def _impossible(self, run: CloudRun, networks: Collection[str]) -> Iterable[Mistake]:
        """Yield why pairs on some networks would lead nowhere, as far as that depends on what the run creates."""
        return pair_checks.reserved(run, self, networks)

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
    ) -> Observed:
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
        done = [share for share in (*updated, *(each.result() for each in waiting)) if share is not None]
        if blocked:
            raise PlanRefused([*blocked.values()])
        meant = sum(each.meant for each in done)
        return self._observe(run, done, known=True) or Observed(id=counted(meant, "port"), values=self.desired())

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
            return pair_writing.update_pairs(cloud.network, run.ownership, share, judge)
        except NotAllowed as error:
            if cloud is not run.admin:
                return pair_writing.update_pairs(run.admin.network, run.ownership, share, judge)
            fix = "on a network of another project, only its owner or an administrator may: apply as one of these"
            raise NotAllowed(f"{error}; {fix}", status=error.status) from error


def _without_filter(ports: Sequence[PortRecord]) -> str:
    """Return the ports that need no pairs, for plan and report, or nothing."""
    names = ", ".join(sorted(port.name or port.id for port in ports))
    return f", and no pair on {names}: port security is off, so nothing is filtered there" if names else ""


def _without_ours(observed: Observed) -> list[Share]:
    """Return the work that removes all recorded pairs."""
    nothing: frozenset[str] = frozenset()
    shares = observed.record_as(PortShares).shares
    return [replace(each, wanted=nothing, stale=each.mine) for each in shares if each.mine]


@dataclass(frozen=True, kw_only=True)
class LeftPairs(AddressPairs):
    """The recorded pairs of one port, which is found by id: a port may have no name, or a name that is not unique."""

    declarable: ClassVar[bool] = False

    port_id: str

    def find_one(self, run: CloudRun) -> Observed | None:
        return next((found for _, found in AddressPairs.scan(run, self.owner) if found.id == self.port_id), None)


@dataclass(frozen=True, kw_only=True)
class ResolvedAddressPairs(Resolved, AddressPairs):
    """Address pairs together with the related resources of the spec."""

    neighbours: PairNeighbours = field(default=PairNeighbours(), repr=False)
