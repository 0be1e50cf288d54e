"""Cilium's Helm values, with the names of its release, and the Service of a mesh by managed etcd.

Source: install/kubernetes/cilium/values.yaml of Cilium 1.13, 1.14, 1.16 and 1.18, the upgrade notes (tunnel became
routingMode and tunnelProtocol in 1.14), and the guide to cluster mesh; for the managed etcd that of Cilium 1.8.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.base.raw import Values
from openstack_prep.kubernetes import kube_vip
from openstack_prep.kubernetes.cilium import announcement
from openstack_prep.kubernetes.cilium.settings import (
    ETCD_PORT,
    IPV6_TUNNEL_SINCE,
    MESH_DOMAIN,
    ROUTING_MODE_SINCE,
    SHARED_CA_SINCE,
    Cilium,
)
from openstack_prep.kubernetes.keys.schema import merge
from openstack_prep.kubernetes.model import KubernetesCluster
from openstack_prep.kubernetes.networks import split
from openstack_prep.kubernetes.service_pools import Addresses

ANNOTATIONS = ("metallb.io/loadBalancerIPs", "metallb.universe.tf/loadBalancerIPs")
"""Annotations that request an address from MetalLB 0.13 and later; the first one since 0.14.9."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """A cluster of the mesh; its networks must be declared or allocated.

    ``old_metallb``: MetalLB is configured by a ConfigMap, and its release does not support the annotation.
    ``by_kube_vip``: kube-vip assigns the addresses of Services. ``addresses`` are those of the spec's address pools.
    ``values_file`` is the path of the values in commands.
    """

    name: str
    cilium: Cilium
    cluster: KubernetesCluster
    old_metallb: bool = False
    by_kube_vip: bool = False
    addresses: Addresses = field(default_factory=dict)
    values_file: str = "cilium-values.yaml"


def document(member: Member, members: Sequence[Member]) -> dict[str, object]:
    """Return the Helm values of one cluster; ``members`` are all clusters of the mesh.

    They contain no certificate and no key: each cluster creates its own from the shared CA, see ``hint``.
    """
    values = field_values(member, members)
    return merge(values, member.cilium.values or {})


def helm_chart_config(values: Mapping[str, object]) -> dict[str, object]:
    """Return values as a manifest for RKE2, which installs Cilium itself when cni is cilium.

    Apply it by kubectl: RKE2 would re-apply a file in a server's folder of manifests at each start and undo later
    changes.
    """
    metadata = {"name": "rke2-cilium", "namespace": "kube-system"}
    return {
        "apiVersion": "helm.cattle.io/v1",
        "kind": "HelmChartConfig",
        "metadata": metadata,
        "spec": {"valuesContent": dump(values)},
    }


def field_values(member: Member, members: Sequence[Member]) -> dict[str, object]:
    """Return the values that the fields set, without those of the field ``values``."""
    cilium = member.cilium
    found: dict[str, object] = {"cluster": {"name": member.name, "id": cilium.cluster_id}}
    found |= _addresses(cilium, member.cluster) | _routing(cilium, member.cluster)
    found |= announcement.values(cilium, member.addresses)
    if cilium.kube_proxy_replacement:
        found["kubeProxyReplacement"] = True if cilium.minor >= ROUTING_MODE_SINCE else "strict"
        found["k8sServiceHost"] = cilium.k8s_service_host
        found["k8sServicePort"] = cilium.k8s_service_port
    if cilium.encryption != "none":
        found["encryption"] = {"enabled": True, "type": cilium.encryption}
    if cilium.mesh == "etcd":
        found |= {"etcd": {"enabled": True, "managed": True}, "identityAllocationMode": "kvstore"}
    elif cilium.mesh == "clustermesh-apiserver":
        found["clustermesh"] = _mesh(member, members)
    return found


def _addresses(cilium: Cilium, cluster: KubernetesCluster) -> dict[str, object]:
    """Return the values of IP address management; IPv6 must be enabled."""
    pods: dict[int, str | None] = {ipaddress.ip_network(each).version: each for each in split(cluster.cluster_cidr)}
    pods = pods or {4: None}
    families = {"ipv4": {"enabled": 4 in pods}, "ipv6": {"enabled": True}} if 6 in pods else {}
    if cilium.ipam == "kubernetes":
        required = {f"requireIPv{version}PodCIDR": True for version in pods}
        return {"ipam": {"mode": "kubernetes"}, "k8s": required, **families}
    operator: dict[str, object] = {f"clusterPoolIPv{version}PodCIDRList": [each] for version, each in pods.items()}
    if 6 in pods:
        operator["clusterPoolIPv6MaskSize"] = 64  # the default, 120, only suits networks from /104 on
    return {"ipam": {"mode": "cluster-pool", "operator": operator}, **families}


def ip_version(cluster: KubernetesCluster) -> int:
    """Return the IP version of the pods: in a dual-stack cluster the first one, that of the nodes' first address."""
    pods = split(cluster.cluster_cidr)
    return ipaddress.ip_network(pods[0]).version if pods else 4


def _routing(cilium: Cilium, cluster: KubernetesCluster) -> dict[str, object]:
    """Return the values of routing; since 1.18, tunnels over IPv6 are possible and must be chosen."""
    native = cilium.routing == "native"
    if cilium.minor < ROUTING_MODE_SINCE:
        found: dict[str, object] = {"tunnel": "disabled" if native else cilium.tunnel_protocol}
    elif native:
        found = {"routingMode": "native"}
    else:
        found = {"routingMode": "tunnel", "tunnelProtocol": cilium.tunnel_protocol}
        if ip_version(cluster) == 6 and cilium.minor >= IPV6_TUNNEL_SINCE:
            found["underlayProtocol"] = "ipv6"
    if native and cilium.native_routing_cidr:
        version = ipaddress.ip_network(cilium.native_routing_cidr).version
        found[f"ipv{version}NativeRoutingCIDR"] = cilium.native_routing_cidr
    return found


def _mesh(member: Member, members: Sequence[Member]) -> dict[str, object]:
    cilium = member.cilium
    apiserver: dict[str, object] = {"service": _service(member)}
    if cilium.mesh_domain != MESH_DOMAIN:  # the only name in the certificate by default
        apiserver["tls"] = {"server": {"extraDnsNames": [f"*.{cilium.mesh_domain}"]}}
    found: dict[str, object] = {"useAPIServer": True, "apiserver": apiserver}
    peers = [each for each in members if each.name != member.name and each.cilium.mesh == "clustermesh-apiserver"]
    if peers and cilium.minor >= SHARED_CA_SINCE:
        clusters = [_peer(peer) for peer in peers]
        found["config"] = {"enabled": True, "domain": cilium.mesh_domain, "clusters": clusters}
    return found


def _peer(member: Member) -> dict[str, object]:
    cilium = member.cilium
    addresses = [cilium.mesh_address] if cilium.mesh_address else []
    return {"name": member.name, "port": cilium.mesh_port, "ips": addresses}


def _service(member: Member) -> dict[str, object]:
    """Return the Service of the mesh; MetalLB refuses a Service that requests its address in both ways."""
    cilium = member.cilium
    if cilium.mesh_service == "NodePort":
        return {"type": "NodePort", "nodePort": cilium.mesh_node_port}
    request = _address_request(member)
    annotations = {"annotations": request["annotations"]} if "annotations" in request else {}
    return {"type": "LoadBalancer", **annotations, **request.get("spec", {})}


def _address_request(member: Member) -> Values:
    """Return what requests the mesh's address: annotations, or a field of the Service for old releases of MetalLB."""
    address = member.cilium.mesh_address
    if address is None:
        return {}
    if member.old_metallb:
        return {"spec": {"loadBalancerIP": address}}
    if member.cilium.load_balancer is not None:
        return {"annotations": {announcement.address_annotation(member.cilium): address}}
    if member.by_kube_vip:
        return {"annotations": {kube_vip.ANNOTATION: address}}
    return {"annotations": dict.fromkeys(ANNOTATIONS, address)}


def manifests(member: Member) -> list[dict[str, object]]:
    """Return further manifests: the Service of a managed etcd, which the chart does not contain."""
    cilium = member.cilium
    if cilium.mesh != "etcd":
        return []
    request = _address_request(member) if cilium.mesh_service == "LoadBalancer" else {}
    metadata = {"name": "cilium-etcd-external", "namespace": cilium.namespace}
    metadata |= {"annotations": request["annotations"]} if "annotations" in request else {}
    port: dict[str, object] = {"port": ETCD_PORT}
    if cilium.mesh_service == "NodePort":
        port["nodePort"] = cilium.mesh_node_port
    spec = {
        "type": cilium.mesh_service,
        **request.get("spec", {}),
        "ports": [port],
        "selector": {"app": "etcd", "etcd_cluster": "cilium-etcd", "io.cilium/app": "etcd-operator"},
    }
    return [{"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}]


def conflicts(values: Mapping[str, object], more: Mapping[str, object], path: str = "") -> Iterator[str]:
    """Yield the dotted names of values that both set."""
    for name in [each for each in more if each in values]:
        one, other = values[name], more[name]
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            yield from conflicts(one, other, f"{path}{name}.")
        else:
            yield f"{path}{name}"
