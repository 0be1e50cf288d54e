"""Claims on ports that no declared exposure holds: of exposures, or in pools, that a spec no longer declares.

Of its own, because every plan scans for these, and shall not load the files of clusters for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Key, Observed, OwnershipTag, Resource
from openstack_prep.core.resource import Undeclarable
from openstack_prep.exposures.register.neutron import NeutronRegister
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.identity.in_project import InProject
from openstack_prep.resources.network import port as ports
from openstack_prep.resources.network.reserved_ports import addresses_of, claim_id, claim_of


@dataclass(frozen=True, kw_only=True)
class LeftClaim(InProject, Undeclarable):
    """An address that an exposure of the spec holds, as the register alone shows it."""

    kind: ClassVar[str] = "exposure"

    name: str
    pool: str

    @property
    def key(self) -> Key:
        """Return a key apart from that of the exposure, which may be declared and have moved to another pool."""
        return Key(self.kind, f"{self.name} ({self.pool})", self.scope)

    @classmethod
    def scan(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        """Yield the claims that ports of a project record."""
        for port in ports.ports_of(run, run.find_project_id(owner)):
            claim, pool = claim_of(port), OwnershipTag.name_in(port.description)
            if claim and pool and port.fixed_ips:
                left = cls(name=claim.exposure, pool=pool, **cls.placing(owner))
                address = addresses_of(port, port.fixed_ips[0].subnet_id)[0]
                yield left, left._observed(address, ours=run.ownership.owns(port.description))

    def _observed(self, address: str, *, ours: bool) -> Observed:
        outputs = {"address": address}
        return Observed(id=claim_id(self.pool, address), ours=ours, values={"pool": self.pool}, outputs=outputs)

    def find_one(self, run: CloudRun) -> Observed | None:
        claims = self.scan(run, self.owner)
        return next((seen for left, seen in claims if (left.name, left.pool) == (self.name, self.pool)), None)

    def needs(self) -> Iterable[Key]:
        """Return the pool, so that it is deleted after the claim."""
        return (self.key_of(AddressPool.kind, self.pool),)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        NeutronRegister(run=run, project=self.owner, pool=self.pool).release([self.name])
