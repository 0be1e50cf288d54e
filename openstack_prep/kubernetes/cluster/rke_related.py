"""The declaration of a cluster, and the related resources of the spec: its stack, pools, networks, other clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from functools import cached_property
from typing import Any, ClassVar

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.fields import File
from openstack_prep.base.key import Key
from openstack_prep.base.raw import Raw
from openstack_prep.base.secret import Secret
from openstack_prep.core.model import Context, FromContext, Resource
from openstack_prep.core.text import show
from openstack_prep.kubernetes import networks
from openstack_prep.kubernetes.cilium import Cilium
from openstack_prep.kubernetes.codes import ClusterCode
from openstack_prep.kubernetes.kube_vip import KubeVip
from openstack_prep.kubernetes.metallb import MetalLB
from openstack_prep.kubernetes.model import ClusterName, KubernetesCluster
from openstack_prep.kubernetes.networks import ClusterNetworks, Taken
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.addresses.node_addresses import DeclaredAddresses
from openstack_prep.resources.heat.package import Package
from openstack_prep.resources.heat.parameters import items
from openstack_prep.resources.network.subnet import Subnet
from openstack_prep.resources.orchestration.inputs import OnStack
from openstack_prep.resources.orchestration.stack import Stack

NETWORKS = ("cluster_cidr", "service_cidr")
PARAMETERS = {
    "cluster_cidr": "cluster_cidr",
    "service_cidr": "service_cidr",
    "network_plugin": "cni",
    "kubernetes_version": "rke2_version",
    "external_cloud_provider": "external_cloud_provider",
}
"""Fields of an RKE2 cluster, and the corresponding parameters of its stack."""


@dataclass(frozen=True)
class RelatedResources(FromContext):
    """Resources of the spec: ``declared`` are the clusters with the values of their stacks, ``clusters`` also have all
    networks allocated."""

    declared: Mapping[str, RkeFields] = dataclass_field(default_factory=dict)
    clusters: Mapping[str, RkeFields] = dataclass_field(default_factory=dict)
    stacks: Mapping[Key, Stack] = dataclass_field(default_factory=dict)
    pools: Mapping[Key, AddressPool] = dataclass_field(default_factory=dict)
    taken: tuple[Taken, ...] = ()
    declared_by_place: Mapping[Sequence[str], DeclaredAddresses] = dataclass_field(default_factory=dict)
    """What the spec declares about addresses in the projects of its clusters."""

    allocated_from: ClusterNetworks = dataclass_field(default_factory=ClusterNetworks)

    @classmethod
    def of(cls, context: Context, allocated_from: ClusterNetworks) -> RelatedResources:
        """Return the related resources of a spec, collected once for all its clusters."""
        return context.read_once((cls, allocated_from), lambda: cls._collect(context.resources, allocated_from))

    @classmethod
    def _collect(cls, others: Sequence[Resource], allocated_from: ClusterNetworks) -> RelatedResources:
        """Collect the resources; networks stay empty when none is free, which ``mistakes`` reports."""
        stacks = {each.key: each for each in others if isinstance(each, Stack)}
        pools = {each.key: each for each in others if isinstance(each, AddressPool)}
        clusters: list[Any] = [resource for resource in others if resource.kind == "rke_cluster"]
        _refuse_shared_names(clusters)
        declared = {each.name: _with_stack_values(each, stacks) for each in clusters}
        subnets = [subnet for subnet in others if isinstance(subnet, Subnet) and subnet.cidr]
        taken = [Taken(str(subnet.key), str(subnet.cidr)) for subnet in subnets]
        within = {subnet.key for subnet in subnets}
        for pool in pools.values():
            if pool.key_of("subnet", pool.subnet) not in within:
                taken += [Taken(str(pool.key), addresses) for addresses in pool.addresses]
        try:
            allocated = networks.allocate(allocated_from, declared, taken)
        except SpecError:
            allocated = {}
        return cls(
            declared=declared,
            clusters={
                name: replace(each, **dict(zip(NETWORKS, allocated.get(name, ()), strict=False)))
                for name, each in declared.items()
            },
            stacks=stacks,
            pools=pools,
            taken=tuple(taken),
            declared_by_place={each.place: DeclaredAddresses.of(others, each) for each in clusters},
            allocated_from=allocated_from,
        )

    @cached_property
    def overlaps(self) -> Sequence[Mistake]:
        """Mistakes in the networks of all clusters together."""
        return networks.mistakes(self.allocated_from, self.declared, self.taken)

    # --- the stack and the pools ------------------------------------------------------------

    def stack(self, cluster: RkeFields) -> Stack | None:
        """Return the stack of a cluster, in the cluster's project; None when the spec does not declare it."""
        return self.stacks.get(cluster.key_of("stack", cluster.stack))

    def parameters(self, cluster: RkeFields) -> Raw:
        """Return the parameters without secrets that the spec declares for a cluster's stack."""
        stack = self.stack(cluster)
        return stack.given if stack else {}

    def secret_parameter(self, cluster: RkeFields, name: str) -> Secret | None:
        """Return a secret parameter that the spec declares for a cluster's stack."""
        stack = self.stack(cluster)
        return (stack.secret_parameters or {}).get(name) if stack else None

    def template(self, cluster: RkeFields) -> Raw | None:
        """Return the template of a cluster's stack; None when the spec does not declare it or it cannot be read."""
        stack = self.stack(cluster)
        package = stack.package if stack else None
        return package.template if isinstance(package, Package) else None

    def addresses(self, cluster: RkeFields) -> dict[str, tuple[str, ...]]:
        """Return the addresses of the pools of a cluster's project, by the pool's name."""
        return {each.name: tuple(each.addresses) for each in self.pools.values() if each.place == cluster.place}

    def declared_addresses(self, cluster: RkeFields) -> DeclaredAddresses:
        """Return what the spec declares about addresses in a cluster's project."""
        return self.declared_by_place.get(cluster.place, DeclaredAddresses())

    # --- checks -----------------------------------------------------------------------------

    def mistakes(self, name: str, more: Sequence[Taken], nodes: int) -> Iterator[Mistake]:
        """Yield conflicts of a cluster with other resources; ``more`` are addresses in use in the cloud."""
        cluster = self.declared[name]
        for other in list(self.declared.values())[: list(self.declared).index(name)]:
            if other.directory == cluster.directory:
                yield _shared(cluster, "directory", other)
            if (other.stack, other.place) == (cluster.stack, cluster.place):
                yield _shared(cluster, "stack", other)
        unknown = [each for each in more if each not in self.taken]
        allocated = self.clusters[name]
        alone = networks.mistakes(self.allocated_from, {name: allocated}, unknown, {name: max(nodes, 1)})
        alone = alone if allocated.has_networks else []  # missing networks cannot be checked
        mine = (overlap for overlap in self.overlaps if overlap.where == str(cluster.key))
        for mistake in dict.fromkeys([*mine, *alone]):
            yield cluster.mistake(mistake.what, mistake.fix, mistake.code, mistake.field)

    def has_own_directory(self, name: str) -> bool:
        """Whether no other cluster of the spec has the same directory."""
        return sum(each.directory == self.declared[name].directory for each in self.declared.values()) == 1

    def contradictions(self, name: str, live: Raw) -> Iterator[Mistake]:
        """Yield fields of an RKE2 cluster that differ from its stack; ``live`` are an existing stack's parameters."""
        of_spec = self.stack(self.declared[name]) is not None
        cluster = (self.declared if of_spec else self.clusters)[name]
        parameters = self.parameters(cluster) if of_spec else live
        for field, parameter in PARAMETERS.items() if cluster.distribution == "rke2" else ():
            one, other = getattr(cluster, field), _read(parameters.get(parameter))
            if one and other is not None and one != other:
                what = f"{field} {show(one)} differs from parameter {parameter} {show(other)} of stack/{cluster.stack}"
                written = f"write {field}: {show(other)}, with --stack as --set {field}={show(other)}"
                fix = f"remove {field}" if of_spec else written
                yield cluster.mistake(what, fix, ClusterCode.STACK, field)


@dataclass(frozen=True, kw_only=True)
class RkeFields(OnStack, KubernetesCluster):
    """The fields of a cluster in a spec."""

    kind: ClassVar[str] = "rke_cluster"

    name: ClusterName
    """Name of the cluster."""
    directory: File
    """Folder for the files of the cluster; each cluster needs its own."""
    metallb: MetalLB | None = dataclass_field(default=None, repr=False)
    """MetalLB's configuration."""
    cilium: Cilium | None = dataclass_field(default=None, repr=False)
    """Cilium's values for Helm."""
    kube_vip: KubeVip | None = None
    """Pools of kube-vip, as the load balancer of Services in place of MetalLB."""
    networks: ClusterNetworks | None = None
    """Range from which omitted networks are allocated; default: the spec's cluster_networks."""
    related: RelatedResources = dataclass_field(default=RelatedResources(), repr=False)
    """The related resources, which ``resolve`` finds in the spec."""

    @property
    def allocated_from(self) -> ClusterNetworks:
        return self.networks or ClusterNetworks()

    @property
    def has_networks(self) -> bool:
        """Whether all networks are declared or allocated."""
        return all(getattr(self, name) for name in NETWORKS)


def _refuse_shared_names(clusters: Sequence[RkeFields]) -> None:
    """Raise SpecError for clusters of the same name, which identifies them in kubectl and in Cilium's mesh."""
    names = [cluster.name for cluster in clusters]
    shared = [each for place, each in enumerate(clusters) if each.name in names[:place]]
    if shared:
        fix = "give each cluster its own name, across all projects of the spec"
        what = "another cluster of this spec has the same name"
        raise SpecError([cluster.mistake(what, fix, ClusterCode.SHARED, "name") for cluster in shared])


def _shared(cluster: RkeFields, field: str, other: RkeFields) -> Mistake:
    """Return the mistake for a folder or stack of two clusters."""
    what = f"{field} {getattr(cluster, field)} is also used by {other.key}"
    return cluster.mistake(what, "give each cluster its own", ClusterCode.SHARED, field)


def _with_stack_values(cluster: Any, stacks: Mapping[Key, Stack]) -> Any:
    """Return an RKE2 cluster with omitted fields from the parameters of its stack."""
    stack = stacks.get(cluster.key_of("stack", cluster.stack))
    if cluster.distribution != "rke2" or stack is None:
        return cluster
    given = stack.given
    values = {name: _read(given.get(parameter)) for name, parameter in PARAMETERS.items()}
    return replace(cluster, **{name: value for name, value in values.items() if value and not getattr(cluster, name)})


def _read(parameter: Any) -> str | bool | None:
    """Return the value of a stack's parameter in the form of a field; None when it is empty."""
    if str(parameter).lower() in ("true", "false"):
        return str(parameter).lower() == "true"
    return ",".join(items(parameter or ())) or None
