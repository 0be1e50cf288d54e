"""The declaration of externalIPs: which nodes carry the addresses, and how the network learns of it.

``externalIPs`` of a Service only tells kube-proxy to accept an address; somebody must lead it to a node.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Le, Len

from openstack_prep.base.fields import Address, Name, Reads
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.ranges import AddressRange
from openstack_prep.base.secret import Secret
from openstack_prep.exposures.model import HOST, Interface, Label
from openstack_prep.kubernetes.balancing.pools import Asn
from openstack_prep.kubernetes.model import STRICT, Namespace

LONGEST_LABEL = 63


def node_name(value: object) -> object:
    """Read the name of a node, which is also the value of its label kubernetes.io/hostname."""
    if isinstance(value, str) and (len(value) > LONGEST_LABEL or not re.fullmatch(HOST, value)):
        raise InvalidValue("is not the name of a node", "use at most 63 lower-case letters, digits, hyphens and dots")
    return value


NodeName = Annotated[Name, Reads(node_name)]


@dataclass(frozen=True, kw_only=True)
class ExternalIPNode:
    """A node that may carry addresses."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    name: NodeName
    """Name of the node in Kubernetes."""
    addresses: Annotated[tuple[Address, ...], Len(1, 2)]
    """Its own addresses, at most one per IP version: next hops of static routes, and the BGP router ID."""
    router_id: Address | None = None
    """BGP router ID, in the form of an IPv4 address; default: the IPv4 address of the node."""


@dataclass(frozen=True, kw_only=True)
class ExternalIPPeer:
    """A BGP router."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    name: Label
    """Name, a DNS label."""
    peer_asn: Asn
    """AS number of the router."""
    peer_address: Address
    """Address of the router."""
    hold_time: Annotated[int, Ge(3), Le(65535)] | None = None
    """Hold time in seconds; a third of it is the time between keepalives."""
    ebgp_multi_hop: bool = False
    """Whether the router is more than one hop away."""
    password: Secret | None = None
    """Password of the session (TCP MD5); the files contain it and have mode 0600."""


@dataclass(frozen=True, kw_only=True)
class ExternalIPBGP:
    """Announcement by BGP."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    my_asn: Asn
    """AS number of the nodes."""
    peers: Annotated[tuple[ExternalIPPeer, ...], Len(1)]
    """BGP routers."""
    software: Literal["frr", "frr-k8s"] = "frr"
    """FRR on the nodes (a frr.conf per node), or frr-k8s in the cluster (FRRConfiguration objects)."""
    namespace: Namespace = "frr-k8s-system"
    """Namespace of frr-k8s."""


@dataclass(frozen=True, kw_only=True)
class ExternalIPs:
    """Services with externalIPs, and the nodes that carry the addresses."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    nodes: Annotated[tuple[ExternalIPNode, ...], Len(1)]
    """Nodes that may carry addresses."""
    interface: Interface
    """Interface of the nodes that gets the addresses."""
    create_interface: bool = False
    """Whether to create the interface on the nodes, of type dummy; not for addresses of the nodes' own network."""
    mask: Annotated[int, Ge(1), Le(32)] = 32
    """Prefix length of IPv4 addresses on the interface."""
    mask_v6: Annotated[int, Ge(1), Le(128)] = 128
    """Prefix length of IPv6 addresses on the interface."""
    pools: tuple[AddressRange, ...] = ()
    """Ranges that the addresses must be in; default: any."""
    carriers: Literal["one", "all"] = "one"
    """Nodes that carry an address: one, or all of them, between which routers then choose (ECMP)."""
    configuration: Literal["script", "networkd", "netplan", "nmstate"] = "script"
    """Form of the files that assign the addresses on the nodes."""
    bgp: ExternalIPBGP | None = None
    """Announcement by BGP."""
    static_routes: bool = False
    """Whether the router gets static routes to the nodes that carry the addresses."""

    @property
    def is_routed(self) -> bool:
        """Whether a router knows the way to each address, so that nobody needs to answer ARP for it."""
        return self.bgp is not None or self.static_routes

    @property
    def contains_secrets(self) -> bool:
        """Whether the files contain passwords, so that they must have mode 0600."""
        return self.bgp is not None and any(each.password for each in self.bgp.peers)
