"""The resources of a spec that an exposure is related to, and the registers in which it may hold an address."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, TypeAlias

from openstack_prep.base import ranges
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Context, FromContext
from openstack_prep.core.run import query
from openstack_prep.exposures.cluster_fields import ClusterFields, declared_cluster
from openstack_prep.exposures.endpoint import Exposed
from openstack_prep.exposures.pool_file import PoolFile
from openstack_prep.exposures.register.neutron import NeutronRegister
from openstack_prep.exposures.register.pool import Claim, Register
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.addresses.node_addresses import DeclaredAddresses
from openstack_prep.resources.addresses.stack_addresses import decides_itself, network_of, on_nodes
from openstack_prep.resources.heat.package import SHIPPED
from openstack_prep.resources.identity.in_project import InProject
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.network.subnet import Subnet
from openstack_prep.resources.orchestration.inputs import OnStack
from openstack_prep.resources.orchestration.stack import Stack

Pool: TypeAlias = AddressPool | PoolFile
Finding: TypeAlias = tuple[str, str, str]
"""What is wrong, the fix, and the code; an empty code is that of the plan."""


EXPECTED_MAC = "d2:00:00:00:"


@dataclass(frozen=True)
class ExposureFields(Exposed, InProject):
    """The fields of an exposure in a spec."""

    kind: ClassVar[str] = "exposure"

    @property
    def needs_cloud(self) -> bool:
        return self.owner is not None or self.how == "floating-ip" or self.floating_ip is not None

    @property
    def needs_mac(self) -> bool:
        """Whether a MAC address is reserved, for the interface of a virtual machine."""
        return self.how == "bridge"


@dataclass(frozen=True)
class ExposureNeighbours(FromContext):
    """The related resources in the project of an exposure."""

    pools: tuple[Pool, ...] = ()
    subnets: tuple[Subnet, ...] = ()
    exposures: tuple[ExposureFields, ...] = ()
    clusters: frozenset[str] = frozenset()
    """Names of the exposed clusters."""
    addresses: DeclaredAddresses = field(default_factory=DeclaredAddresses)
    stacks: tuple[Stack, ...] = ()
    networks: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The networks of the nodes of each exposed cluster, as far as the spec says them."""
    undecided: frozenset[str] = frozenset()
    """The exposed clusters on stacks whose templates decide themselves what ports may send."""
    homes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The stack or infraID of the nodes of each cluster, as far as the spec says it."""

    @classmethod
    def of(cls, context: Context, owner: InProject) -> ExposureNeighbours:
        """Return the related resources, once for all exposures of a project."""
        return context.read_once((cls, owner.owner), lambda: cls._of(context, owner))

    @classmethod
    def _of(cls, context: Context, owner: InProject) -> ExposureNeighbours:
        pools = [each.resolve(context)[0] for each in owner.of_project(context.declared(AddressPool))]
        addresses = DeclaredAddresses.of(context.resources, owner)
        stacks = owner.of_project(context.declared(Stack))
        clusters = owner.of_project(context.declared(ClusterFields))
        rke = owner.of_project(of_stack for of_stack in context.declared(OnStack) if of_stack.kind == "rke_cluster")
        homes = {cluster.name: {"stack": cluster.stack} for cluster in rke}
        on = {cluster.name: [*_stacks(cluster, context, stacks)] for cluster in clusters}
        return cls(
            pools=(*pools, *context.declared(PoolFile)),
            subnets=tuple(owner.of_project(context.declared(Subnet))),
            exposures=tuple(context.declared(ExposureFields)),
            clusters=frozenset(on),
            addresses=addresses,
            stacks=tuple(stacks),
            networks={cluster.name: frozenset(_networks(cluster, on[cluster.name], addresses)) for cluster in clusters},
            undecided=frozenset(name for name, mine in on.items() if any(map(decides_itself, mine))),
            homes=homes | {cluster.name: _home(cluster, context) for cluster in clusters},
        )

    def may_select(self, cluster: str, pairs: AddressPairs) -> bool:
        """Whether pairs may be on the nodes of a cluster: not if they are on another stack, or on another cluster."""
        home = self.homes.get(cluster, {})
        if stack := home.get("stack"):
            shipped = (one.given for one in self.stacks_of(cluster) if one.template.startswith(SHIPPED))
            return on_nodes(pairs, stack, next(shipped, None))
        if home:
            return pairs.infra_id in (None, home["infra_id"])
        others = (choice for other in self.homes.values() for choice in other.items())
        return not any(getattr(pairs, name) == value for name, value in others)

    def stacks_of(self, cluster: str) -> list[Stack]:
        """Return the declared stacks on which the nodes of a cluster are, or may be."""
        if home := self.homes.get(cluster):
            return [stack for stack in self.stacks if stack.name == home.get("stack")]
        others = {home.get("stack") for home in self.homes.values()}
        return [stack for stack in self.stacks if stack.name not in others]

    def earlier(self, exposure: ExposureFields) -> list[ExposureFields]:
        """Return the earlier exposures of the spec with the name, the address or a DNS name of one, in their order."""
        places = {place for mark in _marks(exposure) for place in self._places.get(mark, ())}
        own = self._order.get((exposure.name, exposure.owner), 0)
        return [self.exposures[place] for place in sorted(places) if place < own]

    @cached_property
    def _order(self) -> Mapping[tuple[str, Project | None], int]:
        return {(each.name, each.owner): place for place, each in enumerate(self.exposures)}

    @cached_property
    def _places(self) -> Mapping[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for place, each in enumerate(self.exposures):
            for mark in _marks(each):
                found[mark].append(place)
        return found

    @cached_property
    def foreseen(self) -> Mapping[tuple[str, Project | None], tuple[str | None, str]]:
        """Return what exposures may get from their pools by their declarations alone, as ``expectations`` does."""
        return {name: each for pool in self.pools for name, each in _expected_from(pool, self, (), ())}

    @property
    def files(self) -> list[PoolFile]:
        return [file for file in self.pools if isinstance(file, PoolFile)]

    def named(self, name: str | None) -> list[Pool]:
        """Return the pools with a name: one, unless the spec contradicts itself."""
        return [each for each in self.pools if each.name == name]

    def registers(self, run: CloudRun) -> Iterator[tuple[str, Register, Mapping[str, Claim]]]:
        """Yield the registers of all pools by name, with what this spec holds there, read once per run."""
        for pool in self.pools:
            register = register_of(run, pool)
            if register is not None:
                yield pool.name, register, held(run, pool)


def _home(cluster: ClusterFields, context: Context) -> Mapping[str, str]:
    """Return the stack or infraID of a cluster's nodes; empty if the spec selects them otherwise, or not at all."""
    known = declared_cluster(cluster, context.resources)
    chosen = cluster.nodes.choice if cluster.nodes else {}
    home = {name: str(value) for name, value in chosen.items() if name in ("stack", "infra_id")}
    return home or ({"stack": known.stack} if known else {})


def _stacks(cluster: ClusterFields, context: Context, stacks: Iterable[Stack]) -> Iterator[Stack]:
    """Yield the stack of a cluster's nodes, if the spec declares it."""
    known = declared_cluster(cluster, context.resources)
    names = {cluster.nodes.stack if cluster.nodes else None, known.stack if known else None}
    yield from (stack for stack in stacks if stack.name in names)


def _networks(cluster: ClusterFields, stacks: Iterable[Stack], declared: DeclaredAddresses) -> Iterator[str]:
    """Yield the networks of a cluster's nodes, by the parameters of their stack or by their declared ports."""
    yield from filter(None, (network_of(stack.given, declared) for stack in stacks))
    ports = cluster.nodes.ports if cluster.nodes else ()
    yield from (port.network for port in declared.ports if port.name in ports)


def _marks(exposure: ExposureFields) -> Iterator[str]:
    """Yield what two exposures may have in common."""
    yield f"name {exposure.name}"
    yield from (f"address {each}" for each in (exposure.address,) if each)
    yield from (f"DNS name {name}" for name in exposure.names)


def is_registered(pool: Pool) -> bool:
    """Whether a register has the addresses of a pool."""
    return isinstance(pool, PoolFile) or pool.reserve == "ports"


def register_of(run: CloudRun, pool: Pool) -> Register | None:
    """Return the register of a pool; None if nobody records who has its addresses."""
    if isinstance(pool, PoolFile):
        return pool.register(run)
    if pool.reserve == "outside":
        return None
    return NeutronRegister(run=run, project=pool.owner, pool=pool.name)


@query
def held(run: CloudRun, pool: Pool) -> Mapping[str, Claim]:
    """Return what this spec holds in a pool, by name, as the run has read it."""
    if isinstance(pool, PoolFile):
        found = pool.read(run)
        return found.of_spec(run.ownership.spec) if found and pool.register(run).is_user(found) else {}
    register = register_of(run, pool)
    return register.held() if register else {}


def expectations(
    run: CloudRun, neighbours: ExposureNeighbours, pool: Pool
) -> Mapping[tuple[str, Project | None], tuple[str | None, str]]:
    """Return which addresses and MAC addresses exposures without claims may get, by name and project, once per run."""
    return run.read_once(
        (expectations, pool.key),
        lambda: dict(_expected_from(pool, neighbours, held(run, pool), holders(run, pool))),
    )


def _expected_from(
    pool: Pool, neighbours: ExposureNeighbours, mine: Collection[str], taken: Collection[str]
) -> Iterator[tuple[tuple[str, Project | None], tuple[str | None, str]]]:
    wanting = [exposure for exposure in neighbours.exposures if exposure.pool == pool.name]
    free = free_in(pool, {*taken, *(exposure.address for exposure in wanting if exposure.address)})
    for number, each in enumerate(neighbours.exposures):  # of all pools: no two of them get one MAC address
        if each.pool == pool.name:
            address = next(free, None) if each.address is None and each.name not in mine else None
            yield (each.name, each.owner), (address, f"{EXPECTED_MAC}{number // 256:02x}:{number % 256:02x}")


def free_in(pool: Pool, taken: Collection[str]) -> Iterator[str]:
    """Yield the addresses of a pool that are not taken, in their order."""
    if isinstance(pool, PoolFile):
        return pool.settings.free(taken)
    return (str(each) for one in ranges.without(pool.ranges, ranges.read(taken)) for each in one)


@query
def holders(run: CloudRun, pool: Pool) -> Mapping[str, str]:
    """Return who holds each claimed address of a pool, as the run has read it."""
    if isinstance(pool, PoolFile):
        found = pool.read(run)
        return {each.address: key for key, each in found.claims.items()} if found else {}
    register = register_of(run, pool)
    return register.holders() if register else {}
