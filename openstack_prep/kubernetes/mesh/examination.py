"""Which traffic must pass between clusters, and which of it is blocked, as far as OpenStack knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import permutations

from openstack_prep.base.diagnostic import Diagnostic, by_weight, errors, summary
from openstack_prep.base.raw import Raw, Values
from openstack_prep.kubernetes.cilium import Member, Passage, required
from openstack_prep.kubernetes.mesh import passages
from openstack_prep.kubernetes.mesh.addresses import own_addresses, pod_routes
from openstack_prep.kubernetes.mesh.admission import admission
from openstack_prep.kubernetes.mesh.inside import inside
from openstack_prep.kubernetes.mesh.routing import routing
from openstack_prep.kubernetes.mesh.visible import MeshCluster, VisibleNetworks


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
        return "\n".join([*_table([HEADER, *self.rows()]), "", *map(str, self.findings), end])


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """The nodes of one cluster."""

    ports: Sequence[Raw] = ()
    """The ports by which they reach one another."""
    subnets: Sequence[Raw] = ()
    """The subnets of these ports, or those that the ports will be in."""
    roles: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Roles of the nodes (controlplane, etcd, worker) by the ids of their ports; empty if they are not known."""
    by_bgp: bool = False
    """Whether MetalLB announces addresses by BGP."""
    speakers: bool = False
    """Whether MetalLB announces addresses by layer 2."""


HEADER = ("from", "to", "what", "why")


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{word:<{width}}" for word, width in zip(row, widths, strict=True)).rstrip()


def examine(visible: VisibleNetworks, members: Sequence[Member], nodes: Mapping[str, Nodes]) -> Examination:
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


def mesh_cluster(member: Member, nodes: Nodes) -> MeshCluster:
    """Return a cluster as the other clusters of the mesh see it."""
    cilium, pods = member.cilium, member.cluster.cluster_cidr
    return MeshCluster(
        name=member.name,
        ports=nodes.ports,
        subnets=nodes.subnets,
        roles=nodes.roles,
        pod_networks=(pods,) if pods and cilium.routing == "native" else (),
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
