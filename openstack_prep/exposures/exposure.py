"""Exposures: addresses, and MAC addresses of virtual machines, that outside requests reach a cluster by."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, NotFound, PrepError
from openstack_prep.base.raw import Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Change, Context, Key, Observed
from openstack_prep.exposures import rules
from openstack_prep.exposures.cluster_fields import ClusterFields
from openstack_prep.exposures.endpoint import PlacedExposure
from openstack_prep.exposures.neighbours import (
    ExposureFields,
    ExposureNeighbours,
    Finding,
    Pool,
    expectations,
    register_of,
)
from openstack_prep.exposures.pool_file import PoolFile
from openstack_prep.exposures.register.pool import Claim, ClaimRequest, Outcomes, Register
from openstack_prep.exposures.register.pool_file import PoolFileRegister
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.addresses.floating_ip import AttachedFloatingIP, FloatingIP
from openstack_prep.resources.identity.in_project import InProject, access
from openstack_prep.resources.network.port import ports_of
from openstack_prep.resources.network.reserved_ports import claim_id

# --- claim ------------------------------------------------------------------------------------


def claim_together(run: CloudRun, pool: Pool, one: ExposureFields, neighbours: ExposureNeighbours) -> Claim:
    """Return the claim of an exposure, made together with those of the pool that the run claims next; raises PrepError.

    Steps that an interrupt skips may have their claims by then; the next apply finds them.
    """
    same_pool = [
        exposure
        for exposure in neighbours.exposures
        if exposure.pool == pool.name and (isinstance(pool, PoolFile) or exposure.owner == pool.owner)
    ]
    others = [exposure for exposure in same_pool if exposure.key in run.pending]
    outcomes = run.read_once((claim_together, pool.key), lambda: _claim(run, pool, [one, *others], neighbours.files))
    found = outcomes.get(one.name) or _claim(run, pool, [one], neighbours.files)[one.name]
    if isinstance(found, PrepError):
        raise found
    return found


def _claim(run: CloudRun, pool: Pool, exposures: Iterable[ExposureFields], files: Sequence[PoolFile]) -> Outcomes:
    register = register_of(run, pool)
    if register is None:
        raise NotFound(f"{pool.kind}/{pool.name} records no claims")
    by_name = {exposure.name: exposure for exposure in exposures}
    with_macs = [exposure for exposure in by_name.values() if exposure.needs_mac]
    macs: Collection[str] = ()
    if with_macs and isinstance(pool, PoolFile):  # the other register reads those of the ports itself
        macs = foreign_macs(run, with_macs, [file for file in files if file.key != pool.key])
    requests = [
        ClaimRequest(name=exposure.name, address=exposure.address, mac=exposure.needs_mac)
        for exposure in by_name.values()
    ]
    return register.claim_each(requests, macs)


@dataclass
class _Releases:
    """The names to release in one register, and those that are released."""

    turn: threading.Lock = field(default_factory=threading.Lock)
    names: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)


def release_together(run: CloudRun, register: Register, name: str) -> None:
    """Release a claim; in a file, which is written as a whole, with those that other steps release at this moment."""
    if not isinstance(register, PoolFileRegister):
        register.release([name])
        return
    releases = run.read_once((release_together, register.path), _Releases)
    releases.names.add(name)
    with releases.turn:
        if name not in releases.done:
            names = {*releases.names.copy()}
            register.release(sorted(names))
            releases.done |= names


def foreign_macs(run: CloudRun, those: Iterable[InProject], files: Iterable[PoolFile]) -> frozenset[str]:
    """Return the MAC addresses of ports and their pairs in the projects of some resources, and those in other files."""
    owners = dict.fromkeys(project.owner for project in those)
    fresh = run.fresh()
    listed = [port for owner in owners for port in ports_of(fresh, run.find_project_id(owner))]
    pairs = (pair.mac_address for port in listed for pair in port.allowed_address_pairs)
    pools = [pool for file in files if (pool := file.read(fresh))]
    claimed = (claim.mac for pool in pools for claim in pool.claims.values() if claim.mac)
    return frozenset((*claimed, *(port.mac_address for port in listed), *pairs))


# --- reference --------------------------------------------------------------------------------


def findings(exposure: ExposureFields, context: Context) -> Iterator[Finding]:
    """Yield names that the spec does not declare, and addresses that cannot be those of the exposure."""
    clusters = [cluster.name for cluster in exposure.of_project(context.declared(ClusterFields))]
    if exposure.cluster not in clusters and context.declared(ClusterFields):
        yield _unknown("cluster", exposure.cluster, "exposed_clusters", clusters)
    pools = exposure.of_project(context.declared(AddressPool))
    named = [each for each in pools if each.name == exposure.pool]
    known = [*(each.name for each in pools), *(file.name for file in context.declared(PoolFile))]
    if exposure.pool and exposure.pool not in known:
        yield _unknown("pool", exposure.pool, "address_pools or pool_files", known)
        return
    for pool in named:
        if exposure.address and not pool.has(ip_address(exposure.address)):
            listed = ", ".join(map(str, pool.ranges))
            what = f"{exposure.address} is not in address_pool/{pool.name} ({listed})"
            yield what, "choose one of them", Code.SPEC_CONTRADICTION
    yield from _floating_ip(exposure, context, reserved=any(each.reserve == "ports" for each in named))


def _floating_ip(exposure: ExposureFields, context: Context, *, reserved: bool) -> Iterator[Finding]:
    """Yield why a floating IP does not lead to the exposure; ``reserved``: ports reserve the addresses of its pool."""
    name = exposure.floating_ip
    if name is None:
        return
    declared = [floating_ip.name for floating_ip in exposure.of_project(context.declared(FloatingIP))]
    attached = {each.label for each in exposure.of_project(context.declared(AttachedFloatingIP))}
    if name not in declared:
        yield _unknown("floating IP", name, "floating_ips", declared)
    elif exposure.how != "floating-ip" and name not in attached and not (reserved and exposure.address):
        what = f"floating IP {name} can only be attached to a port that reserves a given address"
        yield what, "set address, and a pool with reserve: ports", Code.SPEC_CONTRADICTION


def _unknown(what: str, name: str, section: str, known: list[str]) -> Finding:
    text = f"{what} {name} is not in {section} (known: {', '.join(known) or 'none'})"
    return text, "declare it, or correct the name", Code.SPEC_UNRESOLVED


# --- exposure ---------------------------------------------------------------------------------


RESERVED = "reserved"
"""The value of ``mac``: which one it is, the register decides."""


@dataclass(frozen=True)
class Placement:
    """What an exposure holds, and in which pools: a move that was interrupted leaves it in two."""

    claim: Claim
    registers: Mapping[str, Register]
    """The registers in which it holds an address, by the name of the pool."""


@dataclass(frozen=True, kw_only=True)
class Exposure(ExposureFields):
    """What leads from outside to one service, virtual machine or host.

    Apply claims its address in the pool, and for ``how: bridge`` a MAC address; destroy releases both. In an address
    pool with ``reserve: ports`` the description of the port names the exposure; a pool file has a line per exposure.
    Both belong to one exposure alone. A pool with ``reserve: outside`` records nothing: give the address.
    """

    neighbours: ExposureNeighbours = field(default=ExposureNeighbours(), repr=False)
    """The related resources, which ``resolve`` finds in the spec."""

    def resolve(self, context: Context) -> Sequence[Exposure]:
        if self.neighbours.exposures:
            return (self,)
        return (replace(self, neighbours=ExposureNeighbours.of(context, self)),)

    def list_mistakes(self, context: Context) -> Iterable[Mistake]:
        neighbours = ExposureNeighbours.of(context, self)
        found = (*findings(self, context), *rules.declaration_findings(self, neighbours, for_plan=context.for_plan))
        return (self.mistake(*each) for each in found)

    def list_warnings(self, context: Context) -> Iterable[str]:
        return rules.declaration_warnings(self, ExposureNeighbours.of(context, self))

    def needs(self) -> Iterable[Key]:
        keys = (self.key_of(AddressPool.kind, self.pool), self.key_of(PoolFile.kind, self.pool)) if self.pool else ()
        files = (each.key for each in self.neighbours.named(self.pool))  # of another project of the spec
        return (access(self.owner), *keys, *files)

    def outlives(self) -> Iterable[Key]:
        return (access(self.owner),)

    def desired(self) -> Values:
        values: Values = {"pool": self.pool}
        if self.address is not None:
            values["address"] = self.address
        return values | ({"mac": RESERVED} if self.needs_mac else {})

    # --- existing state -------------------------------------------------------------------

    def find_one(self, run: CloudRun) -> Observed | None:
        found = [
            (name, register, held[self.name])
            for name, register, held in self.neighbours.registers(run)
            if self.name in held
        ]
        if found:
            found.sort(key=lambda each: each[0] != self.pool)
            claims = {name: claim for name, _, claim in found}
            return self._observed(claims, {name: register for name, register, _ in found})
        return None if self._register(run) else self._unregistered()

    def _unregistered(self) -> Observed:
        """Return an exposure whose address nobody records: there is nothing to do, nor to release."""
        outputs = {"address": self.address} if self.address else {}
        why = "nothing is reserved for it"
        return Observed(id=self.address or self.name, values=self.desired(), outputs=outputs, kept_because=why)

    def _observed(self, claims: Mapping[str, Claim], registers: Mapping[str, Register]) -> Observed:
        """Return what it holds in these pools, of which the first is its own, if it holds an address there.

        Several pools differ from the declared one, so that the next apply releases the others.
        """
        first, *others = (claim_id(pool, each.address) for pool, each in claims.items())
        claim = next(iter(claims.values()))
        return Observed(
            id=first,
            contained_ids=frozenset(others),
            ours=True,
            values={"pool": ", ".join(claims), "address": claim.address, "mac": RESERVED if claim.mac else None},
            outputs={"address": claim.address} | ({"mac": claim.mac} if claim.mac else {}),
            record=Placement(claim, registers),
        )

    def _register(self, run: CloudRun) -> Register | None:
        """Return the register of its pool; None if it has no pool, or one that nobody records."""
        return next((register_of(run, each) for each in self.neighbours.named(self.pool)), None)

    def placed(self, observed: Observed | None, public_address: str | None = None) -> PlacedExposure:
        """Return the exposure with what it holds, for those who render it."""
        outputs = observed.outputs if observed else {}
        return PlacedExposure(
            exposure=self,
            address=outputs.get("address", self.address),
            mac=outputs.get("mac"),
            public_address=public_address,
        )

    def expected(self, run: CloudRun | None) -> PlacedExposure:
        """Return the exposure as it may be placed, for checks before its claim: with free addresses of its pool.

        Without a run nothing of its pool is claimed.
        """
        placed = self.placed(run.look(self) if run else None)
        pool = next(iter(self.neighbours.named(self.pool)), None)
        if pool is None:
            return placed
        known = expectations(run, self.neighbours, pool) if run else self.neighbours.foreseen
        address, mac = known.get((self.name, self.owner), (None, None))
        return replace(placed, address=placed.address or address, mac=placed.mac or (mac if self.needs_mac else None))

    def check(self, run: CloudRun, observed: Observed | None) -> Iterator[Mistake]:
        for what, fix, code in rules.exposure_findings(run, self, self.neighbours):
            yield self.mistake(what, fix, code)

    # --- operations -----------------------------------------------------------------------

    def create(self, run: CloudRun) -> Observed:
        pool = next(iter(self.neighbours.named(self.pool)), None)
        register = register_of(run, pool) if pool else None
        if register is None or pool is None:
            raise NotFound(f"{self.key}: pool {self.pool} does not exist")
        claim = claim_together(run, pool, self, self.neighbours)
        return self._observed({pool.name: claim}, {pool.name: register})

    def update(self, run: CloudRun, observed: Observed, changes: Sequence[Change]) -> Observed:
        """Claim the new address first, then release those in other pools."""
        moved = self.create(run) if self._register(run) else self._unregistered()
        self._release(run, observed, kept=self.pool)
        return moved

    def delete(self, run: CloudRun, observed: Observed) -> None:
        self._release(run, observed)

    def _release(self, run: CloudRun, observed: Observed, kept: str | None = None) -> None:
        if observed.record is None:  # nobody records its address
            return
        for pool, register in observed.record_as(Placement).registers.items():
            if pool != kept:
                release_together(run, register, self.name)
