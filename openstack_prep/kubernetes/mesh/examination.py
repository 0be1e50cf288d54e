"""Which traffic must pass between clusters, and which of it is blocked, as far as OpenStack knows.

Source: RKE's and RKE2's documentation of ports; Cilium's "Firewall Rules"; MetalLB's "Requirements".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import permutations
from typing import Literal

from openstack_prep.base.diagnostic import Diagnostic, by_weight, errors, summary
from openstack_prep.base.raw import Values
from openstack_prep.base.style import columns
from openstack_prep.kubernetes.cilium import Member, Passage, required
from openstack_prep.kubernetes.mesh import admission as passages
from openstack_prep.kubernetes.mesh.addresses import own_addresses, pod_routes
from openstack_prep.kubernetes.mesh.admission import admission
from openstack_prep.kubernetes.mesh.routing import routing
from openstack_prep.kubernetes.mesh.view import MeshCluster, VisibleNetworks
from openstack_prep.kubernetes.networks import split
from openstack_prep.resources.lists.neutron_records import PortRecord, SubnetRecord

# --- inside -----------------------------------------------------------------------------------


ALL = frozenset({"controlplane", "etcd", "worker"})
SERVERS = frozenset({"controlplane"})
ETCD = frozenset({"etcd"})
KUBERNETES = (
    (ALL, SERVERS, 6443, "nodes ask the Kubernetes API"),
    (ALL, ALL, 10250, "the Kubernetes API and metrics-server ask the kubelets"),
    (SERVERS | ETCD, ETCD, 2379, "the Kubernetes API keeps its state in etcd"),
    (ETCD, ETCD, 2380, "members of etcd agree with one another"),
)
"""Roles of those who send, roles of those who receive, TCP port, and what it is for."""
SPOKEN: tuple[Literal["tcp", "udp"], ...] = ("tcp", "udp")
SPEAKERS = 7946, "without it each of MetalLB's speakers believes that it is alone, and all announce one address"
JOINING = (ALL, SERVERS, 9345, "nodes of RKE2 join the cluster there")


def inside(
    visible: VisibleNetworks, cluster: MeshCluster, member: Member, required: Iterable[Passage]
) -> Iterator[Diagnostic]:
    """Yield what is blocked between the nodes of a cluster whose roles are known."""
    for sources, targets, port, why in (*KUBERNETES, *((JOINING,) if member.cluster.distribution == "rke2" else ())):
        passage = Passage(protocol="tcp", port=port, source=cluster.name, to=cluster.name, why=why)
        yield from _among(visible, cluster, sources, targets, passage)
    for protocol in SPOKEN if cluster.speakers else ():
        passage = Passage(protocol=protocol, port=SPEAKERS[0], source=cluster.name, to=cluster.name, why=SPEAKERS[1])
        yield from _among(visible, cluster, ALL, ALL, passage)
    between = (each for each in required if each.source == cluster.name and each.target == "nodes")
    for passage in {(each.protocol, each.port): each for each in between}.values():
        if passage.port != member.cilium.mesh_port:
            yield from _among(visible, cluster, ALL, ALL, replace(passage, to=cluster.name))


def _among(
    visible: VisibleNetworks, cluster: MeshCluster, sources: frozenset[str], targets: frozenset[str], passage: Passage
) -> Iterator[Diagnostic]:
    receivers = [port for port in cluster.ports if targets & cluster.roles.get(port.id, frozenset())]
    senders = [port for port in cluster.ports if sources & cluster.roles.get(port.id, frozenset())]
    if len(receivers) == 1:  # security groups do not filter what a machine sends to itself
        senders = [port for port in senders if port not in receivers]
    yield from admission(visible, replace(cluster, ports=senders), replace(cluster, ports=receivers), passage)


# --- examination ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Examination:
    """Clusters of a mesh, the traffic that must pass between them, and the problems found."""

    clusters: tuple[MeshCluster, ...]
    passages: tuple[Passage, ...]
    findings: tuple[Diagnostic, ...]
    """Errors first."""

    @property
    def ok(self) -> bool:
        """Whether there are no errors; what these credentials do not show has the status unknown."""
        return not errors(self.findings)

    def data(self) -> Values:
        """Return it as plain data."""
        return {
            "clusters": [each.name for each in self.clusters],
            "ok": self.ok,
            "required": [asdict(each) for each in self.passages],
            "findings": [each.data() for each in self.findings],
        }

    def rows(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield the required traffic: from where, to where, what, why; traffic in both directions once."""
        required = {(passages.describe(each), each.target, each.source, each.to): each for each in self.passages}
        for (what, target, source, to), each in required.items():
            back = (what, target, to, source) in required and target != "mesh address"
            if not back or source < to:
                yield passages.row(each, both_ways=back)

    def __str__(self) -> str:
        end = f"{', '.join(each.name for each in self.clusters)}: {summary(self.findings)}"
        return "\n".join([*columns([HEADER, *self.rows()]), "", *map(str, self.findings), end])


@dataclass(frozen=True, kw_only=True)
class MeshNodes:
    """The nodes of one cluster."""

    ports: Sequence[PortRecord] = ()
    """The ports by which they reach one another."""
    subnets: Sequence[SubnetRecord] = ()
    """The subnets of these ports, or those that the ports will be in."""
    roles: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Roles of the nodes (controlplane, etcd, worker) by the ids of their ports; empty if they are not known."""
    by_bgp: bool = False
    """Whether MetalLB announces addresses by BGP."""
    speakers: bool = False
    """Whether MetalLB announces addresses by layer 2."""


HEADER = ("from", "to", "what", "why")


def examine(visible: VisibleNetworks, members: Sequence[Member], nodes: Mapping[str, MeshNodes]) -> Examination:
    """Evaluate what was read about the nodes of clusters, by the clusters' names: pure."""
    needed = required(members)
    clusters = {each.name: mesh_cluster(each, nodes[each.name]) for each in members}
    paths = [
        each
        for pair in permutations(clusters.values(), 2)
        for each in (*routing(visible, *pair), *pod_routes(visible, *pair))
    ]
    found = [each for cluster in clusters.values() for each in own_addresses(visible, cluster)]
    found += _each_command_once(paths)
    for passage in needed:
        found += admission(visible, clusters[passage.source], clusters[passage.to], passage)
    for member in members:
        found += inside(visible, clusters[member.name], member, needed)
    return Examination(
        clusters=tuple(clusters.values()), passages=tuple(needed), findings=tuple(by_weight(_each_command_once(found)))
    )


def mesh_cluster(member: Member, nodes: MeshNodes) -> MeshCluster:
    """Return a cluster as the other clusters of the mesh see it."""
    cilium, pods = member.cilium, split(member.cluster.cluster_cidr)
    return MeshCluster(
        name=member.name,
        ports=nodes.ports,
        subnets=nodes.subnets,
        roles=nodes.roles,
        pod_networks=tuple(pods) if cilium.routing == "native" else (),
        by_bgp=nodes.by_bgp,
        speakers=nodes.speakers,
        mesh_address=cilium.mesh_address if cilium.mesh_service == "LoadBalancer" else None,
    )


def _each_command_once(found: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    """Yield diagnostics without those that an earlier command fixes: a route often serves both directions."""
    commands: set[str] = set()
    for each in found:
        if each.fix not in commands:
            yield each
        if each.fix.startswith("openstack "):
            commands.add(each.fix)
