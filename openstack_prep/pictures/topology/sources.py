"""Topologies of a spec, a cluster and a project: what is read, and what is drawn of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar, runtime_checkable

from openstack_prep.base.errors import NotFound
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.entries import ADMINISTRATOR, MEMBER
from openstack_prep.cloud.no_cloud import NoCloud
from openstack_prep.clusters import installer_names as naming
from openstack_prep.core.executor import JOBS
from openstack_prep.core.model import OwnershipTag, Resource
from openstack_prep.pictures.topology.elements import (
    Cluster,
    Interface,
    Topology,
    TopologyFloatingIP,
    TopologyNetwork,
    TopologyRouter,
    TopologySubnet,
    VirtualAddress,
    joined,
)
from openstack_prep.pictures.topology.project_topology import cluster_of, read, topology_of
from openstack_prep.resources.addresses import floating_ip, floating_ip_attachment
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.identity.in_project import InProject
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.network import declared_port, network, router, subnet
from openstack_prep.resources.orchestration.stack import Stack
from openstack_prep.spec import Spec
from openstack_prep.spec.python import spec_from
from openstack_prep.spec.resolution import refuse_mistakes, resolve_spec
from openstack_prep.verbs import opening

# What a spec declares, added to what exists: pure.  Names decide whether something exists already.
#
# The parameters of stacks are those of the shipped templates; of other templates those with the same names.

T = TypeVar("T", bound=InProject)


@runtime_checkable
class OfStack(Protocol):
    """A resource that describes a cluster on the nodes of a stack."""

    stack: str
    product: str
    """Name of the product, as people write it."""


@runtime_checkable
class OfInstaller(Protocol):
    """A resource that describes a cluster whose nodes an installer creates."""

    cluster_name: str
    product: str
    installer: str
    """Its command."""


COUNT = "_count"
"""End of the names of parameters that say how many nodes of a role a stack has."""


def with_declared(found: Topology, resources: Sequence[Resource], home: Project | None) -> Topology:
    """Return a topology with what a spec declares in a project and what does not exist in it."""
    place = (home.domain, home.name) if home else ()
    mine = [resource for resource in resources if isinstance(resource, InProject) and resource.place in (place, ())]
    declared = DeclaredResources(found, mine)
    networks = declared.networks()
    declared = replace(declared, found=replace(found, networks=networks))
    clusters = tuple(declared.clusters())
    virtual = (*found.virtual_addresses, *declared.ports(), *declared.pools())
    return replace(
        found,
        networks=networks,
        routers=(*found.routers, *declared.routers()),
        virtual_addresses=virtual,
        floating_ips=(*found.floating_ips, *declared.floating_ips()),
        clusters=clusters,
    )


@dataclass(frozen=True)
class DeclaredResources:
    """Resources of one project, beside what exists in it."""

    found: Topology
    resources: Sequence[InProject] = field(default=())

    def of(self, kind: type[T]) -> list[T]:
        return [resource for resource in self.resources if isinstance(resource, kind)]

    def key(self, name: str) -> str:
        """Return the key of a network by its name; that of a declared one if it does not exist."""
        return next((each.key for each in self.found.networks if name in (each.name, each.key)), f"network/{name}")

    def network_of(self, name: str) -> str:
        """Return the key of the network of a subnet; empty if nobody knows it."""
        own = next((each.network for each in self.of(subnet.Subnet) if each.name == name), None)
        if own:
            return self.key(own)
        known = (each.key for each in self.found.networks for inner in each.subnets if inner.name == name)
        return next(known, "")

    # --- networks -------------------------------------------------------------------------

    def networks(self) -> tuple[TopologyNetwork, ...]:
        """Return all networks: those that exist with further subnets, declared ones, and those that are referred to."""
        known = {each.key: each for each in self.found.networks}  # several may have the same name
        for each in self.of(network.Network):
            key = self.key(each.name)
            known.setdefault(key, TopologyNetwork(key=key, name=each.name, external=bool(each.external), exists=False))
        for name in self._outside():
            key = self.key(name)
            known.setdefault(key, TopologyNetwork(key=key, name=name, external=True, foreign=True))
        for inner in self.of(subnet.Subnet):
            if inner.network is None:  # only one that exists may leave it out
                continue
            key = self.key(inner.network)
            there = known.setdefault(key, TopologyNetwork(key=key, name=inner.network))
            if inner.cidr and inner.name not in {each.name for each in there.subnets}:
                added = TopologySubnet(name=inner.name, cidr=str(inner.cidr), exists=False)
                known[key] = replace(there, subnets=(*there.subnets, added))
        return tuple(known.values())

    def _outside(self) -> Iterator[str]:
        """Yield the names of the external networks that are referred to."""
        yield from filter(None, (each.external_network for each in self.of(router.Router)))
        yield from (each.external_network for each in self.of(floating_ip.FloatingIP))
        yield from filter(None, (_parameter(each, "floating_network") for each in self.of(Stack)))

    def routers(self) -> Iterator[TopologyRouter]:
        names = {each.name for each in self.found.routers}
        for each in (each for each in self.of(router.Router) if each.name not in names):
            gateway = each.external_network and Interface(
                network=self.key(each.external_network), addresses=tuple(map(str, each.external_fixed_ips or ()))
            )
            ends = dict.fromkeys(filter(None, map(self.network_of, each.interfaces or ())))
            inner = tuple(Interface(network=end) for end in ends)
            key = f"router/{each.name}"
            yield TopologyRouter(key=key, name=each.name, gateway=gateway or None, interfaces=inner, exists=False)

    # --- addresses ------------------------------------------------------------------------

    def _allowed(self) -> list[tuple[str, str]]:
        """Return addresses with the cluster whose nodes may use them."""
        existing = [
            (pair, server.cluster) for server in self.found.servers for port in server.ports for pair in port.pairs
        ]
        of_stacks = [each for each in self.of(AddressPairs) if each.stack]
        return [*existing, *((pair, each.stack or "") for each in of_stacks for pair in self._pairs(each))]

    def _pairs(self, pairs: AddressPairs) -> tuple[str, ...]:
        pools = (pool for pool in self.of(AddressPool) if pool.name in pairs.pools)
        return joined([*map(str, pairs.addresses or ()), *(str(one) for pool in pools for one in pool.ranges)])

    def ports(self) -> Iterator[VirtualAddress]:
        there = {virtual_address.name for virtual_address in self.found.virtual_addresses}
        used = {port.name for port in self.of(declared_port.Port)} & there
        for each in (port for port in self.of(declared_port.Port) if port.name not in used):
            addresses = tuple(str(one.address) for one in each.fixed_ips or () if one.address)
            yield VirtualAddress(
                key=f"port/{each.name}",
                name=each.name,
                network=self.key(each.network),
                addresses=addresses,
                cluster=cluster_of(addresses, self._allowed()),
                exists=False,
            )

    def pools(self) -> Iterator[VirtualAddress]:
        """Yield the pools without ports.  One outside the allocation pools exists as soon as its subnet does."""
        there = {virtual_address.name for virtual_address in self.found.virtual_addresses if virtual_address.pool}
        subnets = {inner.name for each in self.found.networks for inner in each.subnets if inner.exists}
        for each in (pool for pool in self.of(AddressPool) if pool.name not in there):
            addresses = tuple(map(str, each.ranges))
            yield VirtualAddress(
                key=f"address_pool/{each.name}",
                name=each.name,
                network=self.network_of(each.subnet),
                addresses=addresses,
                pool=True,
                cluster=cluster_of(addresses, self._allowed()),
                exists=each.reserve == "outside" and each.subnet in subnets,
            )

    def floating_ips(self) -> Iterator[TopologyFloatingIP]:
        targets = {
            attachment.floating_ip or attachment.address: attachment.port
            for attachment in self.of(floating_ip_attachment.FloatingIPAttachment)
        }
        there = {text for each in self.found.floating_ips for text in (each.name, each.address)} - {""}
        for each in self.of(floating_ip.FloatingIP):
            address = str(each.address or "")
            if each.name not in there and address not in there:
                target = targets.get(each.name) or targets.get(each.address) or ""
                outside = self.key(each.external_network)
                key = f"floating_ip/{each.name}"
                yield TopologyFloatingIP(
                    key=key, address=address, network=outside, name=each.name, target=target, exists=False
                )

    # --- clusters -------------------------------------------------------------------------

    def clusters(self) -> Iterator[Cluster]:
        """Yield the clusters that exist, with their product, and those that stacks or an installer will create."""
        products = {resource.stack: resource.product for resource in self.resources if isinstance(resource, OfStack)}
        there = {cluster.name for cluster in self.found.clusters}
        for cluster in self.found.clusters:
            yield replace(cluster, product=cluster.product or products.get(cluster.name, ""))
        for stack in (each for each in self.of(Stack) if each.name not in there):
            name = _parameter(stack, "network")
            ours = (pairs for pairs in self.of(AddressPairs) if pairs.stack == stack.name)
            yield Cluster(
                name=stack.name,
                product=products.get(stack.name, "Heat stack"),
                networks=(self.key(name),) if name else (),
                coming=_nodes(stack),
                pairs=joined(one for pairs in ours for one in self._pairs(pairs)),
            )
        yield from self._installed(there)

    def _installed(self, there: Collection[str]) -> Iterator[Cluster]:
        for installer in (resource for resource in self.resources if isinstance(resource, OfInstaller)):
            if not any(name.rpartition("-")[0] == naming.stem(installer.cluster_name) for name in there):
                yield Cluster(
                    name=installer.cluster_name, product=installer.product, coming=f"what {installer.installer} creates"
                )


def _parameter(stack: Stack, name: str) -> str:
    """Return a parameter of a stack if it is a text."""
    value = (stack.parameters or {}).get(name)
    return value if isinstance(value, str) else ""


def _nodes(stack: Stack) -> str:
    """Return how many nodes a stack will have, by its parameters; otherwise that it has some."""
    counts: Iterable[tuple[str, object]] = (stack.parameters or {}).items()
    found = [(name.removesuffix(COUNT), value) for name, value in counts if name.endswith(COUNT)]
    words = [f"{value} {role}{'' if value == 1 else 's'}" for role, value in found if isinstance(value, int) and value]
    return ", ".join(words) or "the nodes of its template"


def of_declared(spec: Spec) -> Topology:
    """Return what a spec declares, without a cloud; raises SpecError."""
    spec = spec_from(spec)
    refuse_mistakes(spec)
    resolved = resolve_spec(spec, NoCloud.as_cloud(), for_apply=False)
    return with_declared(Topology(subject=f"spec {spec.name}"), resolved.resources, _home(resolved))


def of_spec(cloud: Cloud, spec: Spec, *, jobs: int = JOBS) -> Topology:
    """Return what a spec declares, and what exists in its project; raises SpecError, CloudError."""
    spec = spec_from(spec)
    refuse_mistakes(spec)
    resolved, run = opening.open_run(cloud, spec, jobs)
    return of_run(run, resolved, jobs=jobs)


def of_run(run: CloudRun, spec: Spec, *, jobs: int = JOBS) -> Topology:
    """Return the same for a spec with its resources resolved; raises CloudError."""
    home = _home(spec)
    with run.admin.reading(ADMINISTRATOR):
        project_id = run.find_project_id(home)
        found = Topology(subject="")
        if project_id is not None:
            found = topology_of(read(_reader(run, home), project_id, jobs=jobs), "")
    return with_declared(replace(found, subject=f"spec {spec.name}"), spec.resources, home)


def _reader(run: CloudRun, home: Project | None) -> Cloud:
    """Return the connection that lists what is in a project: that of the run if it may, otherwise the project's own."""
    own = run.find_project_id(home) == run.admin.project_id or "admin" in run.admin.roles
    return run.admin if own else run.find_tenant(home) or run.admin


def _home(spec: Spec) -> Project | None:
    return next((resource for resource in spec.resources if isinstance(resource, Project)), None)


def of_project(cloud: Cloud, project: Project | None = None, *, jobs: int = JOBS) -> Topology:
    """Return what is in a project (default: that of the connection); raises NotFound, CloudError."""
    cloud.allow_parallel(jobs).authenticate()
    with cloud.reading(ADMINISTRATOR if project else MEMBER):
        project_id, name = cloud.project_id, cloud.project_name
        if project and (project.name, project.domain) != (cloud.project_name, cloud.project_domain_name):
            found = CloudRun(cloud, OwnershipTag("")).look(project)
            if found is None:
                raise NotFound(f"project {project.name} does not exist in domain {project.domain}, or is not visible")
            project_id, name = found.id, project.name
        return topology_of(read(cloud, project_id, jobs=jobs), f"project {name}")


def of_cluster(cloud: Cloud, infra_id: str, *, jobs: int = JOBS) -> Topology:
    """Return the part of an installer's cluster in the project of the connection; raises CloudError."""
    cloud.allow_parallel(jobs).authenticate()
    with cloud.reading():
        whole = topology_of(read(cloud, cloud.project_id, jobs=jobs), f"cluster {infra_id}")
    return whole.of_cluster(infra_id)
