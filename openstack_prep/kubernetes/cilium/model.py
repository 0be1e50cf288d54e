"""The declaration of Cilium: fields for a mesh of clusters; ``values`` takes any other Helm value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Le

from openstack_prep.base.fields import Address, Cidr, File, Name, Port, Reads
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.kubernetes.cilium import releases
from openstack_prep.kubernetes.cilium.load_balancer import CiliumLoadBalancer
from openstack_prep.kubernetes.model import STRICT, Namespace

NODE_PORT = 32379
MESH_DOMAIN = "mesh.cilium.io"
ETCD_PORT = 2379


def release(value: object) -> object:
    """Validate a release of Cilium, 1.17 or 1.17.4, with or without a v."""
    if isinstance(value, int | float) and not isinstance(value, bool):  # 1.20 without quotes is 1.2
        raise InvalidValue("is a number in YAML", 'write the release in quotes, such as "1.17"')
    if isinstance(value, str):
        found = re.fullmatch(r"v?(\d+)\.(\d+)(\.\d+)?", value)
        if not found:
            raise InvalidValue("is not a release of Cilium", "write one such as 1.17 or 1.17.4")
        if (int(found[1]), int(found[2])) < releases.OLDEST:
            raise InvalidValue("is not supported", "write 1.13 or later")
        value = value.removeprefix("v")
    return value


Release = Annotated[str, Reads(release, {"type": "string", "pattern": r"^v?\d+\.\d+(\.\d+)?$"})]


@dataclass(frozen=True, kw_only=True)
class Cilium:
    """Cilium's Helm values for one cluster, in a mesh or alone."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    cluster_id: Annotated[int, Ge(1), Le(255)]
    """Number of the cluster, unique in the mesh; it cannot change while pods exist."""
    version: Release | None = None
    """Release of Cilium, in quotes, 1.13 or later; names of values and resources depend on it. Default: 1.17; for RKE2,
    which installs its own chart, 1.19."""
    mesh: Literal["none", "clustermesh-apiserver", "etcd"] = "clustermesh-apiserver"
    """Source of the other clusters' data: the API server of Cilium's mesh, or (up to 1.15) its managed etcd."""
    mesh_service: Literal["LoadBalancer", "NodePort"] = "LoadBalancer"
    """Type of the Service of the mesh."""
    mesh_address: Address | None = None
    """Address at which the other clusters reach the mesh: one of a pool, or of a node for a NodePort."""
    mesh_node_port: Annotated[int, Ge(1), Le(65535)] = NODE_PORT
    """Port on the nodes for a NodePort."""
    mesh_domain: Name = MESH_DOMAIN
    """Domain of the clusters' names, the same in the whole mesh; DNS need not resolve it."""
    encryption: Literal["none", "wireguard", "ipsec"] = "none"
    """Encryption between pods of different nodes, the same in the whole mesh."""
    routing: Literal["tunnel", "native"] = "tunnel"
    """Routing between pods of different nodes; native requires routes to all pods in the network."""
    tunnel_protocol: Literal["vxlan", "geneve"] = "vxlan"
    """Protocol of the tunnels."""
    native_routing_cidr: Cidr | None = None
    """Network that holds the pods of all clusters, for native routing."""
    ipam: Literal["kubernetes", "cluster-pool"] = "kubernetes"
    """Component that divides cluster_cidr among the nodes: Kubernetes (default of RKE2, RKE) or Cilium's operator."""
    kube_proxy_replacement: bool = False
    """Whether Cilium replaces kube-proxy."""
    k8s_service_host: Name = "127.0.0.1"
    """Address of the Kubernetes API without kube-proxy; RKE2 and RKE run a proxy on each node."""
    k8s_service_port: Port = 6443
    """Port of the Kubernetes API."""
    namespace: Namespace = "kube-system"
    """Namespace of Cilium."""
    load_balancer: CiliumLoadBalancer | None = None
    """Cilium as the load balancer of Services, in place of MetalLB."""
    chart: File | None = None
    """Archive of the chart (cilium-1.18.12.tgz, 1.16 and later) whose schema checks all values."""
    values: Mapping[Name, object] | None = None
    """Any other Helm values, by the names of Cilium's chart."""

    @property
    def release(self) -> str:
        """The declared release, else the default one of clusters without RKE2's chart."""
        return self.version or releases.DEFAULT["rke"]

    @property
    def minor(self) -> releases.Minor:
        """The release without its patch level."""
        return releases.minor(self.release)

    @property
    def mesh_port(self) -> int:
        """Port at which the other clusters reach the Service of the mesh."""
        return self.mesh_node_port if self.mesh_service == "NodePort" else ETCD_PORT
