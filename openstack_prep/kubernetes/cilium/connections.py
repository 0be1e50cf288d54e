"""The connections that a mesh of clusters requires, and the commands that connect the clusters.

Source: Cilium's system requirements ("Firewall Rules") and its guide to cluster mesh.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, permutations
from typing import Literal

from openstack_prep.base import shell
from openstack_prep.kubernetes.cilium.settings import SHARED_CA_SINCE, Cilium, full
from openstack_prep.kubernetes.cilium.values import Member
from openstack_prep.kubernetes.networks import split

TUNNEL_PORTS = {"vxlan": 8472, "geneve": 6081}
HEALTH_PORT = 4240
WIREGUARD_PORT = 51871
CHARTS = "https://helm.cilium.io"
DEFAULT_NAMESPACE = "kube-system"
"""The namespace that cilium's commands use without an option, and that exists in every cluster."""

Protocol = Literal["tcp", "udp", "icmp", "esp", "any"]
Place = Literal["nodes", "mesh address", "pods"]


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A required connection from the nodes (or pods) of one cluster to a target in another cluster.

    ``port`` is None for protocols without ports and for any port; ``target`` is the part of cluster ``to``, and
    ``address`` the address of the mesh or the network (CIDR) of the pods.
    """

    protocol: Protocol
    port: int | None = None
    source: str
    to: str
    target: Place = "nodes"
    address: str | None = None
    why: str


def required(members: Sequence[Member]) -> list[Passage]:
    """Return the required connections, in both directions between every two clusters of the mesh."""
    meshed = [member for member in members if member.cilium.mesh != "none"]
    return [each for one, other in permutations(meshed, 2) for each in _from(one, other)]


def _from(one: Member, other: Member) -> Iterator[Passage]:
    for protocol, port, why in _between_nodes(one.cilium):
        yield Passage(protocol=protocol, port=port, source=one.name, to=other.name, why=why)
    if one.cilium.routing == "native":
        why = "pods reach pods by their own addresses"
        networks: list[str | None] = [*split(other.cluster.cluster_cidr)]
        for pods in networks or [None]:
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
    """Return the commands that connect the clusters; they copy the shared CA, whose key is not in the written files.

    The names of the clusters are also the names of kubectl's contexts.
    """
    meshed = [member for member in members if member.cilium.mesh != "none"]
    if len(meshed) < 2:
        return ""
    lines = _of_etcd(meshed) if meshed[0].cilium.mesh == "etcd" else _of_apiserver(meshed)
    return "\n".join(lines) + "\n"


def _of_apiserver(meshed: Sequence[Member]) -> Iterator[str]:
    first, *others = meshed
    yield "# KUBECONFIG lists the kubeconfigs of all clusters, separated by colons; contexts are named like clusters."
    if first.cilium.encryption == "ipsec":
        yield f"# First create the IPsec key, the Secret cilium-ipsec-keys, in {first.name}; all clusters share it."
    yield f"# Install Cilium in {first.name}, then copy its CA to each other cluster before Cilium is installed there."
    yield install(first, first.name)
    for member in others:
        yield from _copied("cilium-ca", first, member)
        yield from _copied("cilium-ipsec-keys", first, member) if member.cilium.encryption == "ipsec" else ()
        yield install(member, member.name)
    if any(member.cilium.minor < SHARED_CA_SINCE for member in meshed):
        yield "# Cilium before 1.14 needs the certificates of the other clusters:"
        for a, b in combinations(meshed, 2):
            yield f"cilium clustermesh connect{_namespace(a)} --context {a.name} --destination-context {b.name}"
    served = any(member.cilium.mesh_service == "LoadBalancer" for member in meshed)
    yield f"# Check the mesh{' when the Services clustermesh-apiserver have their addresses' * served}:"
    yield from (f"cilium clustermesh status{_namespace(member)} --context {member.name} --wait" for member in meshed)


def install(member: Member, context: str = "") -> str:
    """Return the command that applies the values of a cluster; RKE2 runs Helm itself."""
    cilium, file = member.cilium, shell.quote(member.values_file)
    if member.cluster.distribution == "rke2":
        chosen = f"--context {shell.quote(context)} " if context else ""
        return f"kubectl {chosen}apply -f {file}"
    chosen = f"--kube-context {shell.quote(context)} " if context else ""
    helm = f"helm {chosen}upgrade --install cilium cilium"
    chart = f"--repo {CHARTS} --version {full(cilium.release)} --namespace {cilium.namespace}"
    chart += "" if cilium.namespace == DEFAULT_NAMESPACE else " --create-namespace"
    return f"{helm} {chart} --values {file}"


def _of_etcd(meshed: Sequence[Member]) -> Iterator[str]:
    first, *others = meshed
    if any(member.cilium.encryption == "ipsec" for member in meshed):
        yield "# All clusters share the IPsec key:"
        yield from chain.from_iterable(_copied("cilium-ipsec-keys", first, member) for member in others)
    yield f"# Connect the etcds of {_listed(meshed)} by the scripts of github.com/cilium/clustermesh-tools:"
    yield "# run extract-etcd-secrets.sh in each cluster, then generate-secret-yaml.sh and generate-name-mapping.sh."


def _namespace(member: Member) -> str:
    """Return the option of cilium's commands for a namespace that is not the default one."""
    namespace = member.cilium.namespace
    return "" if namespace == DEFAULT_NAMESPACE else f" --namespace {namespace}"


def _copied(secret: str, source: Member, target: Member) -> Iterator[str]:
    """Yield the commands that copy a Secret to another cluster and replace an existing one."""
    at_target, there, here = f"kubectl --context {target.name}", target.cilium.namespace, source.cilium.namespace
    if there != DEFAULT_NAMESPACE:
        yield f"{at_target} create namespace {there} --dry-run=client -o yaml | {at_target} apply -f -"
    change = "" if here == there else f"sed 's/^  namespace: {here}$/  namespace: {there}/' | "
    yield f"{at_target} -n {there} delete secret {secret} --ignore-not-found"
    read = f"kubectl --context {source.name} -n {here} get secret {secret} -o yaml"
    yield f"{read} | {change}{at_target} create -f -"


def _listed(members: Sequence[Member]) -> str:
    return ", ".join(member.name for member in members)
