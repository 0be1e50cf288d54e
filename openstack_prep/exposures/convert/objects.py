"""What ``exposures convert`` reads and decides: old Services and pools, new Services, and what does not carry over."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from openstack_prep.base.ranges import Ip, Range
from openstack_prep.base.raw import Values

To: TypeAlias = Literal["metallb", "cilium", "kube-vip"]
"""The load balancer that announces the addresses from now on."""
Families: TypeAlias = tuple[int, ...]
"""IP versions of a Service, the first one first."""
POOL = "external-ips"
"""The pool of all addresses that no old pool contains, and the announcement of all pools."""
OF = "openstack-prep/of"
"""Label of an additional Service: the name of the Service whose addresses it carries."""
IN_POOL = "openstack-prep/pool"
"""Label by which Cilium's pools select Services, so that no other Service gets one of the old addresses."""


@dataclass(frozen=True)
class OldService:
    """A Service with externalIPs; ``where`` is its place in the input, ``spec`` are the fields that are kept."""

    where: str
    namespace: str
    name: str
    type: str
    addresses: tuple[str, ...]
    families: Families
    spec: Values
    class_name: str = ""
    balanced: tuple[str, ...] = ()
    """Addresses and host names that another load balancer assigned to this Service."""
    is_headless: bool = False
    keeps_annotation: str = ""
    """Annotation of the old controller, which becomes meaningless."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Those by which load balancers decide about addresses; no others are read, because they may hold secrets."""
    load_balancer_ip: str = ""
    source_ranges: tuple[str, ...] = ()
    by_cloud: bool = False
    """Whether cloud-provider-openstack has annotated it."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def policy(self) -> str:
        return str(self.spec.get("externalTrafficPolicy") or "Cluster")

    @property
    def selector(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self.spec.get("selector") or {}
        return found

    @property
    def ports(self) -> frozenset[tuple[str, int]]:
        return frozenset((port["protocol"], port["port"]) for port in self.spec["ports"])


@dataclass(frozen=True)
class OldPool:
    """The addresses of an IpClaimPool or Eip; ``interface`` is where its addresses were announced."""

    where: str
    name: str
    ranges: tuple[Range, ...]
    interface: str = ""


@dataclass(frozen=True)
class Old:
    """Everything that was read; ``others`` are LoadBalancer Services without externalIPs and without a class."""

    services: tuple[OldService, ...] = ()
    pools: tuple[OldPool, ...] = ()
    nodes: Mapping[str, str] = field(default_factory=dict)
    """Names of nodes by address."""
    taken: frozenset[str] = frozenset()
    """All Services, as namespace/name."""
    others: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Addresses of these Services by namespace/name."""
    has_claims: bool = False
    """Whether Mirantis' external IP controller is at work: there are its objects, or Services with its annotation."""
    has_nodes: bool = False
    kubernetes: str = ""
    """Newest version of the nodes; the API server has it, or a newer one."""
    by_cloud: tuple[str, ...] = ()
    """Services that cloud-provider-openstack has annotated, with the addresses of their load balancers."""
    count: int = 0
    """Number of all Services."""


@dataclass(frozen=True)
class BgpPeer:
    """A BGP router."""

    address: str
    asn: int


@dataclass(frozen=True)
class LoadBalancerOptions:
    """The load balancer and its options."""

    to: To
    release: str
    announce: Literal["l2", "bgp"] = "l2"
    interfaces: tuple[str, ...] = ()
    my_asn: int | None = None
    peers: tuple[BgpPeer, ...] = ()
    class_name: str = ""
    kubernetes: str = ""
    """Version of Kubernetes, the newest one of the nodes; empty if it is not known."""

    @property
    def minor(self) -> tuple[int, int]:
        first, second, *_ = (int(each) for each in self.release.split("."))
        return first, second

    @property
    def version(self) -> tuple[int, ...]:
        """The release for comparisons; without a patch level, the newest one."""
        found = tuple(int(each) for each in self.release.split("."))
        return found if len(found) > 2 else (*found, 999)


@dataclass(frozen=True)
class Carrier:
    """A Service that has some of the old addresses from now on: the old one, or an additional one beside it."""

    of: OldService
    name: str
    addresses: tuple[str, ...]
    sharing: str = ""
    """Key of the Services that share an address."""
    across: tuple[str, ...] = ()
    """Other namespaces among these Services."""

    @property
    def key(self) -> str:
        return f"{self.of.namespace}/{self.name}"

    @property
    def is_additional(self) -> bool:
        return self.name != self.of.name

    @property
    def families(self) -> Families:
        return families_of(self.addresses)


@dataclass(frozen=True)
class Left:
    """Addresses of a Service that do not carry over; they remain in its externalIPs."""

    service: str
    addresses: tuple[str, ...]
    why: str
    fix: str


@dataclass(frozen=True)
class Decision:
    """New Services and what does not carry over."""

    carriers: tuple[Carrier, ...]
    left: tuple[Left, ...]

    def remaining(self, service: OldService) -> tuple[str, ...]:
        """Return the addresses that remain in externalIPs of a Service."""
        gone = {address for carrier in self.carriers if carrier.of is service for address in carrier.addresses}
        return tuple(address for address in service.addresses if address not in gone)


def families_of(addresses: tuple[str, ...]) -> Families:
    return tuple(dict.fromkeys(ipaddress.ip_address(address).version for address in addresses))


def order(address: str) -> tuple[int, int]:
    """Return a key that sorts addresses by their numbers, IPv4 first."""
    found: Ip = ipaddress.ip_address(address)
    return found.version, int(found)
