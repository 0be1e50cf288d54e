"""The claims of a services machine and its cluster's machines in a pool file: addresses and MAC addresses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Key, Observed, OwnershipTag, Resource
from openstack_prep.core.resource import Undeclarable
from openstack_prep.exposures.cluster_fields import ClusterFields
from openstack_prep.exposures.exposure import foreign_macs
from openstack_prep.exposures.neighbours import Finding, held, holders
from openstack_prep.exposures.pool_file import PoolFile
from openstack_prep.exposures.register.neutron import NeutronRegister
from openstack_prep.exposures.register.pool import Claim, ClaimRequest, key_of
from openstack_prep.exposures.service_host import ClusterMachine, machines
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.identity.in_project import InProject
from openstack_prep.resources.network import port as ports
from openstack_prep.resources.network.reserved_ports import addresses_of, claim_id, claim_of, port_name

# --- claims on ports that no declared exposure holds: of exposures, or in pools, that a spec no longer declares ---


@dataclass(frozen=True, kw_only=True)
class LeftClaim(InProject, Undeclarable):
    """An address that an exposure of the spec holds, as the register alone shows it."""

    kind: ClassVar[str] = "exposure"

    name: str
    pool: str
    address: str

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
                address = addresses_of(port, port.fixed_ips[0].subnet_id)[0]
                left = cls(name=claim.exposure, pool=pool, address=address, **cls.placing(owner))
                yield left, left._observed(ours=run.ownership.owns(port.description))

    def _observed(self, *, ours: bool) -> Observed:
        outputs = {"address": self.address}
        return Observed(id=claim_id(self.pool, self.address), ours=ours, values={"pool": self.pool}, outputs=outputs)

    def find_one(self, run: CloudRun) -> Observed | None:
        claims = self.scan(run, self.owner)
        return next((seen for left, seen in claims if (left.name, left.pool) == (self.name, self.pool)), None)

    def provides(self) -> Iterable[Key]:
        """Return also its port: a floating IP there is detached first, because the claim proves whose that is."""
        return (self.key, self.key_of("port", port_name(self.pool, self.address)))

    def needs(self) -> Iterable[Key]:
        """Return the pool, so that it is deleted after the claim."""
        return (self.key_of(AddressPool.kind, self.pool),)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        NeutronRegister(run=run, project=self.owner, pool=self.pool).release([self.name])


SEPARATOR = "."
"""Between the names of a cluster and of a machine; names of exposures do not contain it."""


def cluster_of(claim: str) -> str | None:
    """Return the cluster that a claim in a pool file belongs to; None if it is that of an exposure."""
    cluster, found, _ = claim.partition(SEPARATOR)
    return cluster if found else None


@dataclass(frozen=True)
class MachineClaims:
    """The machines of one cluster, and the pool file that has their claims."""

    cluster: ClusterFields
    pool: PoolFile

    @property
    def machines(self) -> list[ClusterMachine]:
        return list(machines(self.cluster.service_host)) if self.cluster.service_host else []

    def _name(self, machine: ClusterMachine) -> str:
        return f"{self.cluster.name}{SEPARATOR}{machine.name}"

    # --- reading --------------------------------------------------------------------------

    def held(self, run: CloudRun) -> Mapping[str, Claim]:
        """Return all claims of the cluster by name, also those of machines that it no longer has."""
        return {name: each for name, each in held(run, self.pool).items() if cluster_of(name) == self.cluster.name}

    def macs(self, run: CloudRun) -> dict[str, str]:
        """Return the MAC addresses that are claimed, by the names of the machines."""
        return _macs(self.held(run))

    def drift(self, run: CloudRun) -> Iterator[str]:
        """Yield how the claims differ from the machines."""
        claims, names = self.held(run), {self._name(each): each for each in self.machines}
        for name, machine in names.items():
            claim = claims.get(name)
            if claim is None or claim.address != machine.address or not (machine.mac or claim.mac):
                yield f"{machine.name} has no claim in {self.pool.path}"
        yield from (f"{self.pool.path} has a claim of {name}" for name in claims if name not in names)

    def findings(self) -> Iterator[Finding]:
        """Yield what is wrong as the spec declares it."""
        assert self.cluster.service_host is not None
        if self.pool.cidr != self.cluster.service_host.network:
            what = (
                f"service_host.pool {self.pool.name} is for {self.pool.cidr}, not {self.cluster.service_host.network}"
            )
            yield what, "name a pool file for the cluster's network", Code.SPEC_CONTRADICTION
            return
        for each in self.machines:
            if why := self.pool.settings.refuse(each.address):
                what = f"{each.address} of {each.name} {why} in pool_file/{self.pool.name}"
                yield what, "choose another address, or change the pool", Code.SPEC_CONTRADICTION
        if not self.pool.macs and any(each.mac is None for each in self.machines):
            what = f"pool_file/{self.pool.name} has no MAC addresses (macs: false)"
            yield what, "set macs to a range", Code.SPEC_CONTRADICTION

    def check(self, run: CloudRun) -> Iterator[Mistake]:
        """Yield addresses that somebody else has claimed."""
        taken, own = holders(run, self.pool), {key_of(run.ownership.spec, each) for each in self.held(run)}
        for each in self.machines:
            holder = taken.get(each.address)
            if holder and holder not in own:  # its own machines may exchange addresses
                what = f"{each.address} of {each.name} is claimed by {holder} in {self.pool.path}"
                yield self.cluster.mistake(what, "choose another address, or release it there", Code.ADDRESS_IN_USE)

    # --- writing --------------------------------------------------------------------------

    def claim(self, run: CloudRun, others: Sequence[PoolFile]) -> dict[str, str]:
        """Release the claims of former machines, claim for all, and return the MAC addresses; raises PrepError."""
        register, names = self.pool.register(run), {self._name(each) for each in self.machines}
        if former := [each for each in register.held() if cluster_of(each) == self.cluster.name and each not in names]:
            register.release(former)
        requests = [
            ClaimRequest(name=self._name(each), address=each.address, mac=each.mac is None) for each in self.machines
        ]
        given = {each.mac for each in self.machines if each.mac}
        return _macs(register.claim(requests, foreign_macs(run, [self.cluster], others) | given))

    def release(self, run: CloudRun) -> None:
        register = self.pool.register(run)
        if names := [name for name in register.held() if cluster_of(name) == self.cluster.name]:
            register.release(names)


def _macs(claims: Mapping[str, Claim]) -> dict[str, str]:
    return {name.partition(SEPARATOR)[2]: each.mac for name, each in claims.items() if each.mac}


@dataclass(frozen=True, kw_only=True)
class LeftFileClaim(LeftClaim):
    """An address in a pool file that an exposure of the spec holds."""

    file: PoolFile

    @classmethod
    def in_files(
        cls, run: CloudRun, files: Iterable[PoolFile], clusters: Collection[tuple[str, str]] = ()
    ) -> Iterator[tuple[Self, Observed]]:
        """Yield the claims of the spec in the pool files that it still names.

        ``clusters`` are the names of pools and of clusters whose machines have claims there, which are not left.
        """
        for file in files:
            register = file.register(run)
            pool = file.read(run)
            for name, claim in pool.of_spec(run.ownership.spec).items() if pool else ():
                if (file.name, cluster_of(name)) in clusters:
                    continue
                left = cls(name=name, pool=file.name, address=claim.address, file=file, **cls.placing(file.owner))
                assert pool is not None
                yield left, left._observed(ours=register.is_user(pool))

    def find_one(self, run: CloudRun) -> Observed | None:
        claims = self.in_files(run, (self.file,))
        return next((seen for left, seen in claims if (left.name, left.pool) == (self.name, self.pool)), None)

    def needs(self) -> Iterable[Key]:
        """Return the pool, so that it is deleted after the claim."""
        return (self.key_of(PoolFile.kind, self.pool),)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        self.file.register(run).release([self.name])
