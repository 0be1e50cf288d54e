"""What a spec says of an RKE cluster, and what that takes from the rest: its stack, pools, networks, other clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as made
from functools import cached_property
from typing import Any, ClassVar

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.fields import File, Name
from openstack_prep.base.key import Key
from openstack_prep.base.raw import Raw
from openstack_prep.base.secret import Secret
from openstack_prep.core.model import Context, Resource
from openstack_prep.core.text import show
from openstack_prep.kubernetes import networks
from openstack_prep.kubernetes.cilium import Cilium
from openstack_prep.kubernetes.metallb import MetalLB
from openstack_prep.kubernetes.model import Cluster
from openstack_prep.kubernetes.networks import ClusterNetworks, Taken
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.heat.heat_package import Package
from openstack_prep.resources.heat.heat_parameters import items
from openstack_prep.resources.network.subnet import Subnet
from openstack_prep.resources.orchestration.stack import Stack
from openstack_prep.resources.orchestration.stack_inputs import OnStack

NETWORKS = ("cluster_cidr", "service_cidr")
PARAMETERS = {
    "cluster_cidr": "cluster_cidr",
    "service_cidr": "service_cidr",
    "network_plugin": "cni",
    "kubernetes_version": "rke2_version",
    "external_cloud_provider": "external_cloud_provider",
}
"""Fields of an RKE2 cluster, and the parameter of its stack that says the same."""


@dataclass(frozen=True, kw_only=True)
class RkeFields(OnStack, Cluster):
    """What a spec says of a cluster."""

    kind: ClassVar[str] = "rke_cluster"

    name: Name
    """Name of the cluster."""
    directory: File
    """Folder to write its files into, one for each cluster."""
    metallb: MetalLB | None = None
    """MetalLB's configuration."""
    cilium: Cilium | None = None
    """Cilium's values for Helm."""
    networks: ClusterNetworks | None = None
    """Where networks that nobody gives are drawn from; default: the spec's cluster_networks."""

    @property
    def drawn_from(self) -> ClusterNetworks:
        return self.networks or ClusterNetworks()

    @property
    def has_networks(self) -> bool:
        """Whether each was given, or could be drawn."""
        return all(getattr(self, name) for name in NETWORKS)

    @property
    def scene(self) -> Scene:
        """The rest of the spec; nothing is known of it before the cluster is resolved."""
        return Scene()


@dataclass(frozen=True)
class Scene:
    """``declared`` are the spec's clusters with what their stacks say of them, ``clusters`` with all networks drawn."""

    declared: Mapping[str, RkeFields] = made(default_factory=dict)
    clusters: Mapping[str, RkeFields] = made(default_factory=dict)
    stacks: Mapping[Key, Stack] = made(default_factory=dict)
    pools: Mapping[Key, AddressPool] = made(default_factory=dict)
    taken: tuple[Taken, ...] = ()

    drawn_from: ClusterNetworks = made(default_factory=ClusterNetworks)

    @classmethod
    def of(cls, context: Context, drawn_from: ClusterNetworks) -> Scene:
        """Look round in a spec, once for all its clusters."""
        return context.once((cls, drawn_from), lambda: cls._look_round(context.resources, drawn_from))

    @classmethod
    def _look_round(cls, others: Sequence[Resource], drawn_from: ClusterNetworks) -> Scene:
        """Networks that there is no room for stay open, and mistakes tells."""
        stacks = {each.key: each for each in others if isinstance(each, Stack)}
        pools = {each.key: each for each in others if isinstance(each, AddressPool)}
        clusters: list[Any] = [each for each in others if each.kind == "rke_cluster"]
        _refuse_shared_names(clusters)
        declared = {each.name: _as_its_stack_says(each, stacks) for each in clusters}
        subnets = [each for each in others if isinstance(each, Subnet) and each.cidr]
        taken = [Taken(str(each.key), str(each.cidr)) for each in subnets]
        within = {each.key for each in subnets}
        apart = [each for each in pools.values() if each.key_of("subnet", each.subnet) not in within]
        taken += [Taken(str(pool.key), addresses) for pool in apart for addresses in pool.addresses]
        try:
            drawn = networks.draw(drawn_from, declared, taken)
        except SpecError:
            drawn = {}
        return cls(
            declared=declared,
            clusters={
                name: replace(each, **dict(zip(NETWORKS, drawn.get(name, ()), strict=False)))
                for name, each in declared.items()
            },
            stacks=stacks,
            pools=pools,
            taken=tuple(taken),
            drawn_from=drawn_from,
        )

    @cached_property
    def overlaps(self) -> list[Mistake]:
        """What is wrong with the networks of all clusters together."""
        return networks.mistakes(self.drawn_from, self.declared, self.taken)

    # --- the stack and the pools ------------------------------------------------------------

    def stack(self, cluster: RkeFields) -> Stack | None:
        """Return the stack of a cluster, in the cluster's project; None when it is not of the spec."""
        return self.stacks.get(cluster.key_of("stack", cluster.stack))

    def parameters(self, cluster: RkeFields) -> Raw:
        """Return the parameters that the spec gives a cluster's stack and that anybody may see."""
        stack = self.stack(cluster)
        return stack.given if stack else {}

    def secret_parameter(self, cluster: RkeFields, name: str) -> Secret | None:
        """Return a hidden parameter that the spec gives a cluster's stack."""
        stack = self.stack(cluster)
        return (stack.secret_parameters or {}).get(name) if stack else None

    def template(self, cluster: RkeFields) -> Raw | None:
        """Return the template of a cluster's stack; None when it is not of the spec, or cannot be read."""
        stack = self.stack(cluster)
        package = stack.package if stack else None
        return package.template if isinstance(package, Package) else None

    def addresses(self, cluster: RkeFields) -> dict[str, tuple[str, ...]]:
        """Return the addresses of the pools of a cluster's project, by the pool's name."""
        return {each.name: tuple(each.addresses) for each in self.pools.values() if each.place == cluster.place}

    # --- what is wrong --------------------------------------------------------------------

    def mistakes(self, name: str, more: Sequence[Taken], nodes: int) -> Iterator[Mistake]:
        """Yield what is wrong with a cluster beside the others; ``more`` is taken in the cloud."""
        cluster = self.declared[name]
        for other in list(self.declared.values())[: list(self.declared).index(name)]:
            if other.directory == cluster.directory:
                yield cluster.mistake(f"directory {cluster.directory} is that of {other.key}, too", "give each its own")
            if (other.stack, other.place) == (cluster.stack, cluster.place):
                yield cluster.mistake(f"stack {cluster.stack} is that of {other.key}, too", "give each its own")
        unknown = [each for each in more if each not in self.taken]
        drawn = self.clusters[name]
        alone = networks.mistakes(self.drawn_from, {name: drawn}, unknown, {name: max(nodes, 1)})
        alone = alone if drawn.has_networks else []  # what is not drawn cannot be judged
        mine = (each for each in self.overlaps if each.where == str(cluster.key))
        for each in dict.fromkeys([*mine, *alone]):
            yield cluster.mistake(each.what, each.remedy)

    def has_a_folder_of_its_own(self, name: str) -> bool:
        """Whether no other cluster of the spec writes where this one does."""
        return sum(each.directory == self.declared[name].directory for each in self.declared.values()) == 1

    def contradictions(self, name: str, live: Raw) -> Iterator[Mistake]:
        """Yield what an RKE2 cluster says and its stack says otherwise; ``live`` are a standing stack's parameters."""
        of_spec = self.stack(self.declared[name]) is not None
        cluster = (self.declared if of_spec else self.clusters)[name]
        parameters = self.parameters(cluster) if of_spec else live
        for field, parameter in PARAMETERS.items() if cluster.distribution == "rke2" else ():
            one, other = getattr(cluster, field), _read(parameters.get(parameter))
            if one and other is not None and one != other:
                what = f"{field} is {show(one)}, and stack/{cluster.stack} has the parameter {parameter} {show(other)}"
                yield cluster.mistake(what, "say it once, in the stack" if of_spec else f"write {field}: {show(other)}")


def _refuse_shared_names(clusters: Sequence[RkeFields]) -> None:
    """Raise SpecError for clusters of the same name: kubectl's contexts and Cilium's mesh tell clusters by the name."""
    names = [each.name for each in clusters]
    shared = [each for place, each in enumerate(clusters) if each.name in names[:place]]
    if shared:
        remedy = "give each cluster a name of its own, in all projects of the spec"
        raise SpecError([each.mistake("another cluster of this spec has the same name", remedy) for each in shared])


def _as_its_stack_says(cluster: Any, stacks: Mapping[Key, Stack]) -> Any:
    """Return an RKE2 cluster with what the parameters of its stack say, where it says nothing itself."""
    stack = stacks.get(cluster.key_of("stack", cluster.stack))
    if cluster.distribution != "rke2" or stack is None:
        return cluster
    given = stack.given
    said = {name: _read(given.get(parameter)) for name, parameter in PARAMETERS.items()}
    return replace(cluster, **{name: value for name, value in said.items() if value and not getattr(cluster, name)})


def _read(parameter: Any) -> str | bool | None:
    """Return the value of a stack's parameter as a field has it; None when it says nothing."""
    if str(parameter).lower() in ("true", "false"):
        return str(parameter).lower() == "true"
    return ",".join(items(parameter or ())) or None
