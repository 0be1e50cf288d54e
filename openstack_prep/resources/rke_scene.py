"""What an RKE cluster takes from the rest of its spec: its stack, pools, networks, and the other clusters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as made
from functools import cached_property
from typing import TYPE_CHECKING, Any

from openstack_prep.errors import Mistake, SpecError
from openstack_prep.model import Context, Resource
from openstack_prep.resources.address_pool import AddressPool
from openstack_prep.resources.heat_package import Package
from openstack_prep.resources.heat_parameters import items
from openstack_prep.resources.stack import Stack
from openstack_prep.resources.subnet import Subnet
from openstack_prep.rke import networks
from openstack_prep.rke.networks import ClusterNetworks, Taken
from openstack_prep.secret import Secret
from openstack_prep.text import show

if TYPE_CHECKING:
    from openstack_prep.resources.rke_cluster import RkeCluster

NETWORKS = ("cluster_cidr", "service_cidr")
PARAMETERS = {
    "cluster_cidr": "cluster_cidr",
    "service_cidr": "service_cidr",
    "network_plugin": "cni",
    "kubernetes_version": "rke2_version",
    "external_cloud_provider": "external_cloud_provider",
}
"""Fields of an RKE2 cluster, and the parameter of its stack that says the same."""


@dataclass(frozen=True)
class Scene:
    """``declared`` are the spec's clusters with what their stacks say of them, ``clusters`` with all networks drawn."""

    declared: Mapping[str, RkeCluster] = made(default_factory=dict)
    clusters: Mapping[str, RkeCluster] = made(default_factory=dict)
    stacks: Mapping[str, Stack] = made(default_factory=dict)
    addresses: Mapping[str, tuple[str, ...]] = made(default_factory=dict)
    taken: tuple[Taken, ...] = ()

    drawn_from: ClusterNetworks = made(default_factory=ClusterNetworks)

    @classmethod
    def of(cls, context: Context, drawn_from: ClusterNetworks) -> Scene:
        """Look round in a spec, once for all its clusters."""
        return context.once((cls, drawn_from), lambda: cls._look_round(context.resources, drawn_from))

    @classmethod
    def _look_round(cls, others: Sequence[Resource], drawn_from: ClusterNetworks) -> Scene:
        """Networks that there is no room for stay open, and mistakes tells."""
        stacks = {each.name: each for each in others if isinstance(each, Stack)}
        pools = {each.name: each for each in others if isinstance(each, AddressPool)}
        declared: dict[str, Any] = {
            each.name: _as_its_stack_says(each, stacks) for each in others if each.kind == "rke_cluster"
        }
        subnets = [each for each in others if isinstance(each, Subnet) and each.cidr]
        taken = [Taken(str(each.key), str(each.cidr)) for each in subnets]
        within = {each.name for each in subnets}
        apart = [each for each in pools.values() if each.subnet not in within]
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
            addresses={name: tuple(each.addresses) for name, each in pools.items()},
            taken=tuple(taken),
            drawn_from=drawn_from,
        )

    @cached_property
    def overlaps(self) -> list[Mistake]:
        """What is wrong with the networks of all clusters together."""
        return networks.mistakes(self.drawn_from, self.declared, self.taken)

    # --- the stack ------------------------------------------------------------------------

    def parameters(self, stack: str) -> Mapping[str, Any]:
        """Return the parameters that the spec gives a stack and that anybody may see."""
        return self.stacks[stack].given if stack in self.stacks else {}

    def secret_parameter(self, stack: str, name: str) -> Secret | None:
        """Return a hidden parameter that the spec gives a stack."""
        return ((self.stacks[stack].secret_parameters or {}) if stack in self.stacks else {}).get(name)

    def template(self, stack: str) -> Mapping[str, Any] | None:
        """Return the template of a stack of the spec; None when it is not of the spec, or cannot be read."""
        package = self.stacks[stack].package if stack in self.stacks else None
        return package.template if isinstance(package, Package) else None

    # --- what is wrong --------------------------------------------------------------------

    def mistakes(self, name: str, more: Sequence[Taken], nodes: int) -> Iterator[Mistake]:
        """Yield what is wrong with a cluster beside the others; ``more`` is taken in the cloud."""
        cluster = self.declared[name]
        for other in list(self.declared.values())[: list(self.declared).index(name)]:
            if other.directory == cluster.directory:
                yield cluster.mistake(f"directory {cluster.directory} is that of {other.key}, too", "give each its own")
            if (other.stack, other.project) == (cluster.stack, cluster.project):
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

    def contradictions(self, name: str, live: Mapping[str, Any]) -> Iterator[Mistake]:
        """Yield what an RKE2 cluster says and its stack says otherwise; ``live`` are a standing stack's parameters."""
        of_spec = self.declared[name].stack in self.stacks
        cluster = (self.declared if of_spec else self.clusters)[name]
        parameters = self.parameters(cluster.stack) if of_spec else live
        for field, parameter in PARAMETERS.items() if cluster.distribution == "rke2" else ():
            one, other = getattr(cluster, field), _read(parameters.get(parameter))
            if one and other is not None and one != other:
                what = f"{field} is {show(one)}, and stack/{cluster.stack} has the parameter {parameter} {show(other)}"
                yield cluster.mistake(what, "say it once, in the stack" if of_spec else f"write {field}: {show(other)}")


def _as_its_stack_says(cluster: Any, stacks: Mapping[str, Stack]) -> Any:
    """Return an RKE2 cluster with what the parameters of its stack say, where it says nothing itself."""
    if cluster.distribution != "rke2" or cluster.stack not in stacks:
        return cluster
    given = stacks[cluster.stack].given
    said = {name: _read(given.get(parameter)) for name, parameter in PARAMETERS.items()}
    return replace(cluster, **{name: value for name, value in said.items() if value and not getattr(cluster, name)})


def _read(parameter: Any) -> str | bool | None:
    """Return the value of a stack's parameter as a field has it; None when it says nothing."""
    if str(parameter).lower() in ("true", "false"):
        return str(parameter).lower() == "true"
    return ",".join(items(parameter or ())) or None
