"""What a user declares of MetalLB.

The fields are those of MetalLB's custom resources (its config/crd/bases), a pool and how it is announced in one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Le

from openstack_prep.base.fields import Address, Name, Text
from openstack_prep.base.ranges import AddressRange
from openstack_prep.base.secret import Secret
from openstack_prep.kubernetes.model import STRICT

Asn = Annotated[int, Ge(1), Le(2**32 - 1)]


@dataclass(frozen=True, kw_only=True)
class LabelExpression:
    """One requirement of a Kubernetes label selector."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    key: Name
    """Name of the label."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How the label is judged."""
    values: tuple[Text, ...] = ()
    """Values for In and NotIn."""


@dataclass(frozen=True, kw_only=True)
class LabelSelector:
    """A Kubernetes label selector: all that is said must hold."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    match_labels: Mapping[Name, Text] | None = None
    """Labels and their values."""
    match_expressions: tuple[LabelExpression, ...] = ()
    """Further requirements."""


@dataclass(frozen=True, kw_only=True)
class MetalLBLayer2:
    """How a pool is announced by ARP and NDP (MetalLB 0.13 and later)."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    interfaces: tuple[Name, ...] = ()
    """Interfaces of the nodes to announce on (0.13.6 and later); default: all."""
    node_selectors: tuple[LabelSelector, ...] = ()
    """Nodes that announce; default: all."""


@dataclass(frozen=True, kw_only=True)
class MetalLBBGP:
    """How a pool is announced by BGP."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    aggregation_length: Annotated[int, Ge(1), Le(32)] | None = None
    """Prefix length that IPv4 addresses are announced with; default: 32."""
    aggregation_length_v6: Annotated[int, Ge(1), Le(128)] | None = None
    """Prefix length that IPv6 addresses are announced with; default: 128."""
    local_pref: Annotated[int, Ge(0), Le(2**31 - 1)] | None = None
    """LOCAL_PREF, for peers within the same AS."""
    communities: tuple[Name, ...] = ()
    """BGP communities, such as 64512:1234, or large:64512:1:2 (0.13 and later)."""
    peers: tuple[Name, ...] = ()
    """Peers to announce to (0.13 and later); default: all."""
    node_selectors: tuple[LabelSelector, ...] = ()
    """Nodes that announce (0.13 and later); default: all."""


@dataclass(frozen=True, kw_only=True)
class MetalLBPool:
    """Addresses for Services of type LoadBalancer: those of an address pool of the spec, or given here."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    name: Name | None = None
    """Name in Kubernetes, a DNS label; default: that of the address pool."""
    pool: Name | None = None
    """Address pool of the spec whose addresses these are."""
    addresses: tuple[AddressRange, ...] = ()
    """Addresses instead of a pool's: ranges, networks, single ones."""
    protocol: Literal["layer2", "bgp"] = "layer2"
    """How they are announced."""
    auto_assign: bool = True
    """Whether a Service that asks for no pool gets one of these."""
    avoid_buggy_ips: bool = False
    """Whether to leave out IPv4 addresses that end in .0 and .255."""
    namespaces: tuple[Name, ...] = ()
    """Namespaces whose Services get these (0.13.8 and later); default: all."""
    namespace_selectors: tuple[LabelSelector, ...] = ()
    """The same by labels of namespaces (0.13.8 and later)."""
    service_selectors: tuple[LabelSelector, ...] = ()
    """The same by labels of Services (0.13.8 and later)."""
    priority: Annotated[int, Ge(1), Le(2**31 - 1)] | None = None
    """Which pool is tried first when several fit: the lowest (0.13.8 and later; without the three above, 0.15)."""
    l2: MetalLBLayer2 | None = None
    """How they are announced by layer2."""
    bgp: MetalLBBGP | None = None
    """How they are announced by bgp."""

    @property
    def called(self) -> str:
        """Its name in Kubernetes."""
        return self.name or self.pool or ""


@dataclass(frozen=True, kw_only=True)
class MetalLBPeer:
    """A router to speak BGP with."""

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
    """Its port; default: 179."""
    source_address: Address | None = None
    """Address of the nodes to speak from."""
    router_id: Address | None = None
    """BGP router id to announce, in the form of an IPv4 address."""
    hold_time: Annotated[int, Ge(3), Le(65535)] | None = None
    """Hold time in seconds."""
    ebgp_multi_hop: bool | None = None
    """Whether the router is several hops away."""
    password: Secret | None = None
    """Password of the session (TCP MD5); it is written into the manifests, whose file is 0600 then."""
    node_selectors: tuple[LabelSelector, ...] = ()
    """Nodes that speak with it; default: all."""


@dataclass(frozen=True, kw_only=True)
class MetalLB:
    """MetalLB's configuration; MetalLB itself is installed by its own manifests or chart."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    pools: tuple[MetalLBPool, ...]
    """Addresses to give out."""
    peers: tuple[MetalLBPeer, ...] = ()
    """Routers to speak BGP with."""
    manifests: Literal["crd", "configmap"] = "crd"
    """crd for MetalLB 0.13 and later, configmap for earlier ones."""
    namespace: Name = "metallb-system"
    """Namespace that MetalLB runs in."""

    @property
    def holds_secrets(self) -> bool:
        """Whether its manifests hold passwords, so that their file must be 0600."""
        return any(each.password for each in self.peers)
