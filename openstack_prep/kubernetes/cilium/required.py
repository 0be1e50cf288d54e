"""What must get through between the clusters of a mesh, and what is left to do by hand.

Source: Cilium's system requirements ("Firewall Rules") and its guide to cluster mesh.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, permutations
from typing import Literal

from openstack_prep.kubernetes.cilium.model import Cilium
from openstack_prep.kubernetes.cilium.values import SHARED_CA_SINCE, Member

TUNNEL_PORTS = {"vxlan": 8472, "geneve": 6081}
HEALTH_PORT = 4240
WIREGUARD_PORT = 51871
CHARTS = "https://helm.cilium.io"

Protocol = Literal["tcp", "udp", "icmp", "esp", "any"]
Place = Literal["nodes", "mesh address", "pods"]


@dataclass(frozen=True, kw_only=True)
class Passage:
    """Packets that must get from the nodes (or pods) of one cluster to a place of another.

    ``port`` is None where the protocol has none, or any; ``target`` says what of ``to`` is reached, and
    ``address`` is that of the mesh, or the network (CIDR) of the pods.
    """

    protocol: Protocol
    port: int | None = None
    source: str
    to: str
    target: Place = "nodes"
    address: str | None = None
    why: str


def required(members: Sequence[Member]) -> list[Passage]:
    """Return what must get through, in both directions between each two clusters that take part in the mesh."""
    taking_part = [each for each in members if each.cilium.mesh != "none"]
    return [each for one, other in permutations(taking_part, 2) for each in _from(one, other)]


def _from(one: Member, other: Member) -> Iterator[Passage]:
    for protocol, port, why in _between_nodes(one.cilium):
        yield Passage(protocol=protocol, port=port, source=one.name, to=other.name, why=why)
    if one.cilium.routing == "native":
        pods, why = other.cluster.cluster_cidr, "pods reach pods by their own addresses"
        yield Passage(protocol="any", source=one.name, to=other.name, target="pods", address=pods, why=why)
    yield _to_the_mesh(one, other)


def _to_the_mesh(one: Member, other: Member) -> Passage:
    why, port = "agents read what the other cluster has", other.cilium.mesh_port
    if other.cilium.mesh_service == "NodePort":
        return Passage(protocol="tcp", port=port, source=one.name, to=other.name, why=why)
    at = other.cilium.mesh_address
    return Passage(
        protocol="tcp", port=port, source=one.name, to=other.name, target="mesh address", address=at, why=why
    )


def _between_nodes(cilium: Cilium) -> Iterator[tuple[Protocol, int | None, str]]:
    yield "tcp", HEALTH_PORT, "cilium-health asks the other nodes"
    yield "icmp", None, "cilium-health pings the other nodes"
    if cilium.routing == "tunnel":
        yield "udp", TUNNEL_PORTS[cilium.tunnel_protocol], f"pods reach pods through {cilium.tunnel_protocol}"
    if cilium.encryption == "wireguard":
        yield "udp", WIREGUARD_PORT, "what pods send is encrypted by WireGuard"
    elif cilium.encryption == "ipsec":
        yield "esp", None, "what pods send is encrypted by IPsec"


def hint(members: Sequence[Member]) -> str:
    """Return the commands that are left to a person: the clusters share a CA, and its key is in no file of ours.

    The names of the clusters stand for those of kubectl's contexts.
    """
    meshed = [each for each in members if each.cilium.mesh != "none"]
    if len(meshed) < 2:
        return ""
    lines = _of_etcd(meshed) if meshed[0].cilium.mesh == "etcd" else _of_apiserver(meshed)
    return "\n".join(lines) + "\n"


def _of_apiserver(meshed: Sequence[Member]) -> Iterator[str]:
    first, *others = meshed
    yield "# KUBECONFIG names the kubeconfigs of all, with colons between; each has a context of the cluster's name."
    if first.cilium.encryption == "ipsec":
        yield f"# The key of IPsec, the Secret cilium-ipsec-keys, is made in {first.name} first; all have that one."
    yield f"# Cilium in {first.name}; its CA is that of all the others, which have it before they get their values."
    yield install(first, first.name)
    for each in others:
        yield from _copied("cilium-ca", first, each)
        yield from _copied("cilium-ipsec-keys", first, each) if each.cilium.encryption == "ipsec" else ()
        yield install(each, each.name)
    if any(each.cilium.minor < SHARED_CA_SINCE for each in meshed):
        yield "# Cilium before 1.14 is given the others' certificates, which are in no file of ours:"
        for a, b in combinations(meshed, 2):
            yield f"cilium clustermesh connect --context {a.name} --destination-context {b.name}"
    served = any(each.cilium.mesh_service == "LoadBalancer" for each in meshed)
    yield f"# Then{', when MetalLB or its like has given the Services clustermesh-apiserver their addresses' * served}:"
    yield from (f"cilium clustermesh status --context {each.name} --wait" for each in meshed)


def install(member: Member, context: str = "") -> str:
    """Return the command that gives a cluster its values: RKE2 has Cilium already, and runs Helm itself."""
    cilium, file = member.cilium, shlex.quote(member.values_file)
    if member.cluster.distribution == "rke2":
        return f"kubectl {context and f'--context {context} '}apply -f {file}"
    helm = f"helm {context and f'--kube-context {context} '}upgrade --install cilium cilium"
    chart = f"--repo {CHARTS} --version {cilium.version} --namespace {cilium.namespace}"
    return f"{helm} {chart} --values {file}"


def _of_etcd(meshed: Sequence[Member]) -> Iterator[str]:
    first, *others = meshed
    if any(each.cilium.encryption == "ipsec" for each in meshed):
        yield "# The key of IPsec is one for all as well."
        yield from chain.from_iterable(_copied("cilium-ipsec-keys", first, each) for each in others)
    yield f"# The etcds of {_listed(meshed)} are connected by the scripts of github.com/cilium/clustermesh-tools:"
    yield "# extract-etcd-secrets.sh in each, then generate-secret-yaml.sh and generate-name-mapping.sh."


def _copied(secret: str, source: Member, target: Member) -> Iterator[str]:
    """Yield how a Secret comes from one cluster to another, in place of one that is there."""
    ours = f"kubectl --context {target.name}"
    theirs = f"kubectl --context {source.name} -n {source.cilium.namespace}"
    yield f"{ours} -n {target.cilium.namespace} delete secret {secret} --ignore-not-found"
    yield f"{theirs} get secret {secret} -o yaml | {ours} create -f -"


def _listed(members: Sequence[Member]) -> str:
    return ", ".join(each.name for each in members)
