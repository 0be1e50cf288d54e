"""Traffic that must pass among the nodes of one cluster, because a mesh needs working clusters.

Source: RKE's and RKE2's documentation of ports; Cilium's "Firewall Rules"; MetalLB's "Requirements".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal

from openstack_prep.base.diagnostic import Diagnostic
from openstack_prep.kubernetes.cilium import Member, Passage
from openstack_prep.kubernetes.mesh.admission import admission
from openstack_prep.kubernetes.mesh.visible import MeshCluster, VisibleNetworks

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
    receivers = [port for port in cluster.ports if targets & cluster.roles.get(port["id"], frozenset())]
    senders = [port for port in cluster.ports if sources & cluster.roles.get(port["id"], frozenset())]
    if len(receivers) == 1:  # security groups do not filter what a machine sends to itself
        senders = [port for port in senders if port not in receivers]
    yield from admission(visible, replace(cluster, ports=senders), replace(cluster, ports=receivers), passage)
