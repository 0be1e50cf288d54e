"""What a user declares of Cilium: as much as a mesh of clusters needs; any other Helm value can be given besides."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Le

from openstack_prep.base.fields import Address, Cidr, Name, Port, Reads
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.kubernetes.model import STRICT

OLDEST = (1, 13)
NEWEST_MANAGED_ETCD = (1, 15)
NODE_PORT = 32379
MESH_DOMAIN = "mesh.cilium.io"
ETCD_PORT = 2379


def release(value: object) -> object:
    """Read a release of Cilium, 1.17 or 1.17.4, with or without a v."""
    if isinstance(value, int | float) and not isinstance(value, bool):  # 1.20 without quotes is 1.2
        raise InvalidValue("is a number to YAML", 'write the release in quotes, such as "1.17"')
    if isinstance(value, str):
        found = re.fullmatch(r"v?(\d+)\.(\d+)(\.\d+)?", value)
        if not found:
            raise InvalidValue("is no release of Cilium", "write one such as 1.17 or 1.17.4")
        if (int(found[1]), int(found[2])) < OLDEST:
            raise InvalidValue("is older than what is known here", "write 1.13 or later")
        value = value.removeprefix("v")
    return value


Release = Annotated[str, Reads(release, {"type": "string", "pattern": r"^v?\d+\.\d+(\.\d+)?$"})]


@dataclass(frozen=True, kw_only=True)
class Cilium:
    """Cilium's Helm values for one cluster of a mesh, or for a cluster alone."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    cluster_id: Annotated[int, Ge(1), Le(255)]
    """Number of the cluster, unique in the mesh; it cannot change once there are pods."""
    version: Release = "1.17"
    """Cilium's release, in quotes, 1.13 or later: it decides how some values are spelt."""
    mesh: Literal["none", "clustermesh-apiserver", "etcd"] = "clustermesh-apiserver"
    """What the other clusters read from: the API server of Cilium's mesh, or (up to 1.15) its managed etcd."""
    mesh_service: Literal["LoadBalancer", "NodePort"] = "LoadBalancer"
    """Type of its Service."""
    mesh_address: Address | None = None
    """Address that the others reach it at: one out of a pool, or of a node where it is a NodePort."""
    mesh_node_port: Annotated[int, Ge(1), Le(65535)] = NODE_PORT
    """Its port on the nodes where it is a NodePort."""
    mesh_domain: Name = MESH_DOMAIN
    """Domain in which the clusters know one another, the same in the whole mesh; nobody has to resolve it."""
    encryption: Literal["none", "wireguard", "ipsec"] = "none"
    """Encryption between pods of different nodes, the same in the whole mesh."""
    routing: Literal["tunnel", "native"] = "tunnel"
    """How pods of different nodes reach one another; native needs routes to all pods in the network itself."""
    tunnel_protocol: Literal["vxlan", "geneve"] = "vxlan"
    """Protocol of the tunnels."""
    native_routing_cidr: Cidr | None = None
    """Network that holds the pods of all clusters, for native routing."""
    ipam: Literal["kubernetes", "cluster-pool"] = "kubernetes"
    """Who gives nodes their share of cluster_cidr: Kubernetes, as RKE and RKE2 set it up, or Cilium's operator."""
    kube_proxy_replacement: bool = False
    """Whether Cilium does the work of kube-proxy."""
    k8s_service_host: Name = "127.0.0.1"
    """Where the nodes reach the Kubernetes API without kube-proxy; RKE and RKE2 have a proxy on each node."""
    k8s_service_port: Port = 6443
    """Its port."""
    namespace: Name = "kube-system"
    """Namespace that Cilium runs in."""
    values: Mapping[Name, object] | None = None
    """Any other Helm values, as Cilium's chart calls them."""

    @property
    def minor(self) -> tuple[int, int]:
        """Its release without the patch."""
        major, minor, *_ = self.version.split(".")
        return int(major), int(minor)

    @property
    def mesh_port(self) -> int:
        """Port that the other clusters reach the mesh's Service at."""
        return self.mesh_node_port if self.mesh_service == "NodePort" else ETCD_PORT
