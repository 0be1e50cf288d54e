"""Exposures: addresses, and MAC addresses of virtual machines, that outside requests reach a cluster by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from openstack_prep.base.errors import Mistake, NotFound
from openstack_prep.base.raw import Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Change, Context, Key, Observed, Resolved, Resource
from openstack_prep.exposures import references
from openstack_prep.exposures.claiming import claim_together, release_together
from openstack_prep.exposures.model import Placed
from openstack_prep.exposures.neighbours import (
    ExposureFields,
    ExposureNeighbours,
    expectations,
    register_of,
)
from openstack_prep.exposures.pool_file import PoolFile
from openstack_prep.exposures.register.claims import Claim, Register
from openstack_prep.exposures.rules import declared_rules, exposure_rules
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.identity.in_project import access
from openstack_prep.resources.network.reserved_ports import claim_id

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

    @property
    def neighbours(self) -> ExposureNeighbours:
        """The related resources of the spec; empty before the exposure is resolved."""
        return ExposureNeighbours()

    def resolve(self, context: Context) -> Sequence[Resource]:
        return (ResolvedExposure.of(self, neighbours=ExposureNeighbours.of(context, self)),)

    def list_mistakes(self, context: Context) -> Iterable[Mistake]:
        neighbours = ExposureNeighbours.of(context, self)
        found = (*references.findings(self, context), *declared_rules.findings(self, neighbours))
        return (self.mistake(*each) for each in found)

    def needs(self) -> Iterable[Key]:
        keys = (self.key_of(AddressPool.kind, self.pool), self.key_of(PoolFile.kind, self.pool)) if self.pool else ()
        files = (each.key for each in self.neighbours.named(self.pool))  # of another project of the spec
        return (access(self.owner), *keys, *files)

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
        return Observed(id=self.address or self.name, values=self.desired(), outputs=outputs)

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

    def placed(self, observed: Observed | None, public_address: str | None = None) -> Placed:
        """Return the exposure with what it holds, for those who render it."""
        outputs = observed.outputs if observed else {}
        return Placed(
            exposure=self,
            address=outputs.get("address", self.address),
            mac=outputs.get("mac"),
            public_address=public_address,
        )

    def expected(self, run: CloudRun | None) -> Placed:
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
        for what, fix, code in exposure_rules.findings(run, self, self.neighbours):
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


@dataclass(frozen=True, kw_only=True)
class ResolvedExposure(Resolved, Exposure):
    """An exposure together with the related resources of the spec."""

    neighbours: ExposureNeighbours = field(default=ExposureNeighbours(), repr=False)
