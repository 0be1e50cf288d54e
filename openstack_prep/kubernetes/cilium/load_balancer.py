"""The declaration of Cilium as a load balancer: its pools of addresses, and how nodes announce them.

The fields are those of Cilium's custom resources (pkg/k8s/apis/cilium.io/client/crds).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from annotated_types import Ge, Le, Len

from openstack_prep.base.fields import Address, Name, Port
from openstack_prep.base.secret import Secret
from openstack_prep.kubernetes.balancing.pools import Asn, LabelSelector, ServicePool
from openstack_prep.kubernetes.model import STRICT


@dataclass(frozen=True, kw_only=True)
class CiliumPool(ServicePool):
    """Addresses for Services of type LoadBalancer, from an address pool of the spec or listed here."""

    namespaces: tuple[Name, ...] = ()
    """Namespaces whose Services may use the pool; default: all."""
    service_selector: LabelSelector | None = None
    """Services that may use the pool, by label; default: all."""


@dataclass(frozen=True, kw_only=True)
class CiliumLayer2:
    """Announcement by ARP and, since Cilium 1.19, NDP; it requires kube_proxy_replacement."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    interfaces: tuple[Name, ...] = ()
    """Interfaces of the nodes to announce on, as regular expressions; default: all."""
    node_selector: LabelSelector | None = None
    """Nodes that announce; default: all."""
    service_selector: LabelSelector | None = None
    """Services that are announced; default: all."""


@dataclass(frozen=True, kw_only=True)
class CiliumPeer:
    """A BGP router."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

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
    password: Secret | None = None
    """Password of the session (TCP MD5, 1.15 and later); the file of the manifests contains it and has mode 0600."""


@dataclass(frozen=True, kw_only=True)
class CiliumBGP:
    """Announcement by BGP; before Cilium 1.16 by a CiliumBGPPeeringPolicy."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    my_asn: Asn
    """AS number of the cluster."""
    peers: Annotated[tuple[CiliumPeer, ...], Len(1)]
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
class CiliumLoadBalancer:
    """Cilium's own load balancer in place of MetalLB: addresses from pools, announced by layer 2, BGP or both."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    pools: tuple[CiliumPool, ...]
    """Addresses for Services."""
    l2: CiliumLayer2 | None = None
    """Announcement by ARP; {} for all defaults."""
    bgp: CiliumBGP | None = None
    """Announcement by BGP."""

    @property
    def protocols(self) -> frozenset[str]:
        """How addresses are announced, as in pools of MetalLB: layer2, bgp."""
        found = {"layer2": self.l2, "bgp": self.bgp}
        return frozenset(name for name, options in found.items() if options is not None)

    @property
    def contains_secrets(self) -> bool:
        """Whether the manifests contain passwords, so that their file must have mode 0600."""
        return self.bgp is not None and any(each.password for each in self.bgp.peers)
