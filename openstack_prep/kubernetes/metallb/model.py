"""The declaration of MetalLB's configuration.

The fields are those of MetalLB's custom resources (config/crd/bases); a pool includes its advertisement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Le

from openstack_prep.base.fields import Address, Name
from openstack_prep.base.secret import Secret
from openstack_prep.kubernetes.balancing.pools import Asn, LabelSelector, ServicePool
from openstack_prep.kubernetes.model import STRICT, Namespace


@dataclass(frozen=True, kw_only=True)
class MetalLBLayer2:
    """Announcement of a pool by ARP and NDP (MetalLB 0.13 and later)."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    interfaces: tuple[Name, ...] = ()
    """Interfaces of the nodes to announce on (0.13.6 and later); default: all."""
    node_selectors: tuple[LabelSelector, ...] = ()
    """Nodes that announce; default: all."""
    service_selectors: tuple[LabelSelector, ...] = ()
    """Services that are announced (0.16 and later); default: all."""


@dataclass(frozen=True, kw_only=True)
class MetalLBBGP:
    """Announcement of a pool by BGP."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    aggregation_length: Annotated[int, Ge(1), Le(32)] | None = None
    """Prefix length of announced IPv4 networks; default: 32."""
    aggregation_length_v6: Annotated[int, Ge(1), Le(128)] | None = None
    """Prefix length of announced IPv6 networks; default: 128."""
    local_pref: Annotated[int, Ge(0), Le(2**31 - 1)] | None = None
    """LOCAL_PREF, for peers within the same AS."""
    communities: tuple[Name, ...] = ()
    """BGP communities, such as 64512:1234, or large:64512:1:2 (0.13.10 and later)."""
    peers: tuple[Name, ...] = ()
    """Peers to announce to (0.13 and later); default: all."""
    node_selectors: tuple[LabelSelector, ...] = ()
    """Nodes that announce (0.13 and later); default: all."""
    service_selectors: tuple[LabelSelector, ...] = ()
    """Services that are announced (0.16 and later); default: all."""


@dataclass(frozen=True, kw_only=True)
class MetalLBPool(ServicePool):
    """Addresses for Services of type LoadBalancer, from an address pool of the spec or listed here."""

    protocol: Literal["layer2", "bgp"] = "layer2"
    """Protocol of the announcement."""
    auto_assign: bool = True
    """Whether Services that request no pool may get addresses of this pool."""
    avoid_buggy_ips: bool = False
    """Whether to skip IPv4 addresses that end in .0 or .255."""
    namespaces: tuple[Name, ...] = ()
    """Namespaces whose Services may use the pool (0.13.8 and later); default: all."""
    namespace_selectors: tuple[LabelSelector, ...] = ()
    """Namespaces by label (0.13.8 and later)."""
    service_selectors: tuple[LabelSelector, ...] = ()
    """Services by label (0.13.8 and later)."""
    priority: Annotated[int, Ge(1), Le(2**31 - 1)] | None = None
    """Order in which matching pools are tried, lowest first (0.13.8 and later; 0.15 for pools without selectors)."""
    l2: MetalLBLayer2 | None = None
    """Options of the protocol layer2."""
    bgp: MetalLBBGP | None = None
    """Options of the protocol bgp."""


@dataclass(frozen=True, kw_only=True)
class MetalLBPeer:
    """A BGP router."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    name: Name
    """Name in Kubernetes, a DNS label."""
    my_asn: Asn
    """AS number of the cluster."""
    peer_asn: Asn
    """AS number of the router."""
    peer_address: Address
    """Address of the router."""
    peer_port: Annotated[int, Ge(1), Le(16384)] | None = None
    """Port of the router; default: 179."""
    source_address: Address | None = None
    """Source address of the nodes."""
    router_id: Address | None = None
    """BGP router ID, in the form of an IPv4 address."""
    hold_time: Annotated[int, Ge(3), Le(65535)] | None = None
    """Hold time in seconds."""
    ebgp_multi_hop: bool | None = None
    """Whether the router is more than one hop away."""
    password: Secret | None = None
    """Password of the session (TCP MD5); the file of the manifests contains it and has mode 0600."""
    node_selectors: tuple[LabelSelector, ...] = ()
    """Nodes that connect to the router; default: all."""


@dataclass(frozen=True, kw_only=True)
class MetalLB:
    """MetalLB's configuration; install MetalLB itself by its own manifests or chart."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    pools: tuple[MetalLBPool, ...]
    """Addresses for Services."""
    peers: tuple[MetalLBPeer, ...] = ()
    """BGP routers."""
    manifests: Literal["crd", "configmap"] = "crd"
    """crd for MetalLB 0.13 and later, configmap for earlier ones."""
    namespace: Namespace = "metallb-system"
    """Namespace of MetalLB."""
    bgp_mode: Literal["native", "frr", "frr-k8s"] | None = None
    """How MetalLB speaks BGP; default: frr (or frr-k8s, which has the same rules), and native with a ConfigMap."""

    @property
    def is_native(self) -> bool:
        """Whether MetalLB speaks BGP itself, without FRR."""
        return (self.bgp_mode or ("native" if self.manifests == "configmap" else "frr")) == "native"

    @property
    def contains_secrets(self) -> bool:
        """Whether the manifests contain passwords, so that their file must have mode 0600."""
        return any(each.password for each in self.peers)
