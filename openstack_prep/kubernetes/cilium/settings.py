"""The declaration of Cilium: fields for a mesh of clusters; ``values`` takes any other Helm value.

The fields are those of Cilium's custom resources (pkg/k8s/apis/cilium.io/client/crds).

Sources: the charts of Cilium 1.13 to 1.20 (values.yaml, templates); operator/pkg/lbipam, pkg/annotation,
pkg/k8s/apis/cilium.io/client/crds and Documentation/network/l2-announcements.rst of 1.13.18, 1.14.18, 1.15.12, 1.16.5,
1.17.1 and of the main branch before 1.18 and 1.19; charts/rke2-cilium of RKE2's charts (1.19.601 contains 1.19.6).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Ge, Le, Len

from openstack_prep.base.fields import Address, Cidr, File, Name, Port, Reads, Strict
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.secret import Secret
from openstack_prep.kubernetes.model import Namespace
from openstack_prep.kubernetes.service_pools import Asn, LabelSelector, ServicePool

# --- load balancer ----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class CiliumPool(ServicePool):
    """Addresses for Services of type LoadBalancer, from an address pool of the spec or listed here."""

    namespaces: tuple[Name, ...] = ()
    """Namespaces whose Services may use the pool; default: all."""
    service_selector: LabelSelector | None = None
    """Services that may use the pool, by label; default: all."""


@dataclass(frozen=True, kw_only=True)
class CiliumLayer2(Strict):
    """Announcement by ARP and, since Cilium 1.19, NDP; it requires kube_proxy_replacement."""

    interfaces: tuple[Name, ...] = ()
    """Interfaces of the nodes to announce on, as regular expressions; default: all."""
    node_selector: LabelSelector | None = None
    """Nodes that announce; default: all."""
    service_selector: LabelSelector | None = None
    """Services that are announced; default: all."""


@dataclass(frozen=True, kw_only=True)
class CiliumPeer(Strict):
    """A BGP router."""

    name: Name
    """Name in Kubernetes, a DNS label."""
    peer_asn: Asn
    """AS number of the router."""
    peer_address: Address
    """Address of the router."""
    peer_port: Port | None = None
    """Port of the router (1.14 and later); default: 179."""
    hold_time: Annotated[int, Ge(3), Le(65535)] | None = None
    """Hold time in seconds (1.14 and later); a third of it is the time between keepalives."""
    ebgp_multi_hop: Annotated[int, Ge(1), Le(255)] | None = None
    """Maximum number of hops to the router (1.14 and later); default: 1."""
    password: Secret | None = field(default=None, repr=False)
    """Password of the session (TCP MD5, 1.15 and later); the file of the manifests contains it and has mode 0600."""


@dataclass(frozen=True, kw_only=True)
class CiliumBGP(Strict):
    """Announcement by BGP; before Cilium 1.16 by a CiliumBGPPeeringPolicy."""

    my_asn: Asn
    """AS number of the cluster."""
    peers: Annotated[tuple[CiliumPeer, ...], Len(1)] = field(repr=False)
    """BGP routers."""
    local_pref: Annotated[int, Ge(0), Le(2**32 - 1)] | None = None
    """LOCAL_PREF, for peers within the same AS (1.16 and later)."""
    communities: tuple[Name, ...] = ()
    """BGP communities (1.16 and later): 64512:1234, large 64512:1:2, or well-known such as no-export."""
    node_selector: LabelSelector | None = None
    """Nodes that announce; default: all."""
    service_selector: LabelSelector | None = None
    """Services that are announced; default: all."""


@dataclass(frozen=True, kw_only=True)
class CiliumLoadBalancer(Strict):
    """Cilium's own load balancer in place of MetalLB: addresses from pools, announced by layer 2, BGP or both."""

    pools: tuple[CiliumPool, ...]
    """Addresses for Services."""
    l2: CiliumLayer2 | None = None
    """Announcement by ARP; {} for all defaults."""
    bgp: CiliumBGP | None = field(default=None, repr=False)
    """Announcement by BGP."""

    @property
    def protocols(self) -> frozenset[str]:
        """How addresses are announced, as in pools of MetalLB: layer2, bgp."""
        found = {"layer2": self.l2, "bgp": self.bgp}
        return frozenset(name for name, options in found.items() if options is not None)

    @property
    def contains_secrets(self) -> bool:
        """Whether the manifests contain passwords, so that their file must have mode 0600."""
        return self.bgp is not None and any(peer.password for peer in self.bgp.peers)


# --- release ----------------------------------------------------------------------------------


Minor = tuple[int, int]

NEWEST_PATCH = {13: 18, 14: 19, 15: 19, 16: 19, 17: 18, 18: 12, 19: 6, 20: 0}
"""Releases 1.N that the values and manifests were checked against, with the newest patch level of each."""
OLDEST: Minor = (1, 13)
DEFAULT = {"rke": "1.17", "rke2": "1.19"}
"""Releases without a declared one; RKE2 v1.35 installs its own chart 1.19."""
RKE2_CHART = 100
"""RKE2's charts multiply the patch level: 1.19.601 is its second chart of Cilium 1.19.6."""

NEWEST_MANAGED_ETCD: Minor = (1, 15)
ROUTING_MODE_SINCE: Minor = (1, 14)
SHARED_CA_SINCE: Minor = (1, 14)
LAYER2_SINCE: Minor = (1, 14)
RATE_LIMIT_SINCE: Minor = (1, 14)
BLOCKS_SINCE: Minor = (1, 15)
"""Pools list blocks with start and stop, in place of cidrs."""
BGP_PEER_OPTIONS_SINCE: Minor = (1, 14)
BGP_PASSWORD_SINCE: Minor = (1, 15)
BGP_RESOURCES_SINCE: Minor = (1, 16)
"""CiliumBGPClusterConfig and the like as they remained, in place of CiliumBGPPeeringPolicy."""
LBIPAM_ANNOTATION_SINCE: Minor = (1, 16)
DEFAULT_IPAM_SINCE: Minor = (1, 17)
"""The value defaultLBServiceIPAM: none leaves Services without a class to other load balancers."""
V2_SINCE: Minor = (1, 18)
"""Pools and BGP resources are cilium.io/v2, before v2alpha1."""
IPV6_TUNNEL_SINCE: Minor = (1, 18)
IPV6_IPSEC_SINCE: Minor = (1, 18)
IPV6_WIREGUARD_SINCE: Minor = (1, 19)
IPV6_LAYER2_SINCE: Minor = (1, 19)


def minor(version: str) -> Minor:
    """Return a release without its patch level."""
    first, second, *_ = version.split(".")
    return int(first), int(second)


def is_known(version: str) -> bool:
    """Whether values and manifests were checked against this release."""
    major, number = minor(version)
    return major == 1 and number in NEWEST_PATCH


def full(version: str) -> str:
    """Return a release with its patch level, by default the newest known one."""
    if version.count(".") > 1 or not is_known(version):
        return version
    return f"{version}.{NEWEST_PATCH[minor(version)[1]]}"


def range_of_known() -> str:
    """Return the known releases as text."""
    return f"1.{min(NEWEST_PATCH)} to 1.{max(NEWEST_PATCH)}"


def is_of_rke2(version: str) -> bool:
    """Whether this is the version of RKE2's own chart, such as 1.19.601."""
    return version.count(".") == 2 and int(version.rpartition(".")[2]) >= RKE2_CHART


def released(version: str) -> str:
    """Return the release of Cilium in RKE2's own chart: 1.19.6 for 1.19.601."""
    first, _, patch = version.rpartition(".")
    return f"{first}.{int(patch) // RKE2_CHART}"


# --- settings ---------------------------------------------------------------------------------


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
        if (int(found[1]), int(found[2])) < OLDEST:
            raise InvalidValue("is not supported", "write 1.13 or later")
        value = value.removeprefix("v")
    return value


Release = Annotated[str, Reads(release, {"type": "string", "pattern": r"^v?\d+\.\d+(\.\d+)?$"})]


@dataclass(frozen=True, kw_only=True)
class Cilium(Strict):
    """Cilium's Helm values for one cluster, in a mesh or alone."""

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
    load_balancer: CiliumLoadBalancer | None = field(default=None, repr=False)
    """Cilium as the load balancer of Services, in place of MetalLB."""
    chart: File | None = None
    """Archive of the chart (cilium-1.18.12.tgz, 1.16 and later) whose schema checks all values."""
    values: Mapping[Name, object] | None = field(default=None, repr=False)
    """Any other Helm values, by the names of Cilium's chart."""

    @property
    def release(self) -> str:
        """The declared release, else the default one of clusters without RKE2's chart."""
        return self.version or DEFAULT["rke"]

    @property
    def minor(self) -> Minor:
        """The release without its patch level."""
        return minor(self.release)

    @property
    def mesh_port(self) -> int:
        """Port at which the other clusters reach the Service of the mesh."""
        return self.mesh_node_port if self.mesh_service == "NodePort" else ETCD_PORT
