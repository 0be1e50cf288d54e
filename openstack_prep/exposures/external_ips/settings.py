"""Which node carries which address, and the routes to it: pure functions.

``externalIPs`` of a Service only tells kube-proxy to accept an address; somebody must lead it to a node.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Ge, Le, Len

from openstack_prep.base.fields import Address, Name, Strict, matching
from openstack_prep.base.ranges import AddressRange
from openstack_prep.base.secret import Secret
from openstack_prep.exposures.endpoint import HOST, Interface, Label, PlacedExposure
from openstack_prep.kubernetes.model import Namespace
from openstack_prep.kubernetes.service_pools import Asn

# --- settings ---------------------------------------------------------------------------------


NodeName = Annotated[
    Name,
    matching(
        rf"(?=.{{1,63}}$){HOST}",
        "is not the name of a node",
        "use at most 63 lower-case letters, digits, hyphens and dots",
    ),
]
"""The name of a node, which is also the value of its label kubernetes.io/hostname."""


@dataclass(frozen=True, kw_only=True)
class ExternalIPNode(Strict):
    """A node that may carry addresses."""

    name: NodeName
    """Name of the node in Kubernetes."""
    addresses: Annotated[tuple[Address, ...], Len(1, 2)]
    """Its own addresses, at most one per IP version: next hops of static routes, and the BGP router ID."""
    router_id: Address | None = None
    """BGP router ID, in the form of an IPv4 address; default: the IPv4 address of the node."""


@dataclass(frozen=True, kw_only=True)
class ExternalIPPeer(Strict):
    """A BGP router."""

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
    password: Secret | None = field(default=None, repr=False)
    """Password of the session (TCP MD5); the files contain it and have mode 0600."""


@dataclass(frozen=True, kw_only=True)
class ExternalIPBGP(Strict):
    """Announcement by BGP."""

    my_asn: Asn
    """AS number of the nodes."""
    peers: Annotated[tuple[ExternalIPPeer, ...], Len(1)] = field(repr=False)
    """BGP routers."""
    software: Literal["frr", "frr-k8s"] = "frr"
    """FRR on the nodes (a frr.conf per node), or frr-k8s in the cluster (FRRConfiguration objects)."""
    namespace: Namespace = "frr-k8s-system"
    """Namespace of frr-k8s."""


@dataclass(frozen=True, kw_only=True)
class ExternalIPs(Strict):
    """Services with externalIPs, and the nodes that carry the addresses."""

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
    bgp: ExternalIPBGP | None = field(default=None, repr=False)
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
        return self.bgp is not None and any(peer.password for peer in self.bgp.peers)


# --- carrier ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hop:
    """A static route to one address; several next hops share the requests."""

    address: str
    next_hops: tuple[str, ...]

    @property
    def destination(self) -> str:
        """The address as a network."""
        return str(ipaddress.ip_network(self.address))


def chosen(placed: Iterable[PlacedExposure]) -> list[PlacedExposure]:
    """Return the exposures that use externalIPs and have an address."""
    return [exposure for exposure in placed if exposure.exposure.how == "external-ip" and exposure.address]


def addresses(placed: Iterable[PlacedExposure]) -> list[str]:
    """Return their addresses, each once, IPv4 first."""
    found = {ipaddress.ip_address(exposure.address or "") for exposure in chosen(placed)}
    return [str(each) for each in sorted(found, key=lambda one: (one.version, int(one)))]


def nodes_of(settings: ExternalIPs, address: str) -> list[ExternalIPNode]:
    """Return the nodes that carry an address.

    For one node, each node gets a number from its name and the address, and the highest one carries: a node that comes
    or goes only moves the addresses that it gets or had.
    """
    if settings.carriers == "all":
        return list(settings.nodes)
    return [max(settings.nodes, key=lambda each: hashlib.sha256(f"{address} {each.name}".encode()).digest())]


def carried(settings: ExternalIPs, placed: Iterable[PlacedExposure]) -> dict[str, list[str]]:
    """Return the addresses of each node by its name, also of nodes that carry none."""
    found: dict[str, list[str]] = {each.name: [] for each in settings.nodes}
    for address in addresses(placed):
        for node in nodes_of(settings, address):
            found[node.name].append(address)
    return found


def hops(settings: ExternalIPs, placed: Iterable[PlacedExposure]) -> Iterator[Hop]:
    """Yield the static routes to all addresses, through the nodes that carry them."""
    for address in addresses(placed):
        found = [each for node in nodes_of(settings, address) for each in node.addresses if _is_like(each, address)]
        yield Hop(address, tuple(found))


def _is_like(one: str, other: str) -> bool:
    return ipaddress.ip_address(one).version == ipaddress.ip_address(other).version
