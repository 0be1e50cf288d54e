"""One path from outside into a cluster: an address, the names that lead there, and what answers inside.

Sources: Kubernetes API, Service v1; RFC 1123, section 2.1 (names of hosts).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Le, Len

from openstack_prep.base.fields import Address, Cidr, Mac, Name, Port, Reads, Strict, Text, matching
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.core.resource import Coherent
from openstack_prep.kubernetes.model import LABEL, DnsLabel

Way = Literal["floating-ip", "metallb", "cilium", "kube-vip", "external-ip", "node-port", "service-host", "bridge"]
"""Ways in which requests from outside reach a cluster."""
LONGEST_NAME = 253
HOST = rf"{LABEL}(\.{LABEL})*"


def dns_name(value: object) -> object:
    """Read a DNS name, perhaps a wildcard such as *.apps.example.com; upper case and a final dot do not matter."""
    if not isinstance(value, str):
        return value
    name = value.lower().removesuffix(".")
    if len(name) > LONGEST_NAME or not re.fullmatch(HOST, name.removeprefix("*.")):
        raise InvalidValue("is not a DNS name", "use one such as shop.example.com or *.apps.example.com")
    return name


Label = DnsLabel
"""A name that is also one in Kubernetes and in DNS."""
DnsName = Annotated[Name, Reads(dns_name)]
Namespaced = Annotated[Name, matching(rf"{LABEL}/{HOST}", "is not NAMESPACE/NAME", "use one such as shop/frontend")]
"""The namespace and the name of an object in Kubernetes."""
Interface = Annotated[
    Name,
    matching(
        r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}",
        "is not the name of an interface",
        "use at most 15 letters, digits, '_', '.' and '-'",
    ),
]
"""The name of an interface, of which Linux accepts more than is wise in a script."""


@dataclass(frozen=True, kw_only=True)
class ExposedPort(Strict):
    """One port that answers at the address."""

    port: Port
    """Port at the address."""
    protocol: Literal["tcp", "udp", "sctp"] = "tcp"
    """Protocol."""
    target: Port | None = None
    """Port of the pods, the virtual machine or the host; default: the same."""
    node_port: Annotated[int, Ge(1), Le(65535)] | None = None
    """Port on every node, for Services of type NodePort and LoadBalancer; default: chosen by Kubernetes."""

    @property
    def inner(self) -> int:
        """The port of the target."""
        return self.target or self.port

    @property
    def key(self) -> tuple[str, int]:
        return self.protocol, self.port

    def __str__(self) -> str:
        return f"{self.port}/{self.protocol}"


@dataclass(frozen=True, kw_only=True)
class ExposureTarget(Strict, Coherent):
    """What answers inside: exactly one of service, virtual_machine and host."""

    service: Namespaced | None = None
    """Service, as NAMESPACE/NAME."""
    selector: Mapping[Name, Text] | None = None
    """Labels of the pods, if the Service does not exist yet and is to be rendered."""
    virtual_machine: Namespaced | None = None
    """VirtualMachine of KubeVirt, as NAMESPACE/NAME."""
    host: Label | None = None
    """Host outside of Kubernetes, such as the services machine."""

    def contradictions(self) -> Iterable[InvalidValue]:
        if sum(each is not None for each in (self.service, self.virtual_machine, self.host)) != 1:
            yield InvalidValue("a target is one of service, virtual_machine and host", "set exactly one of them")
        if self.selector is not None and self.service is None:
            yield InvalidValue("selector is only for a service", "remove it, or set service")

    @property
    def namespace(self) -> str:
        """The namespace of the object in Kubernetes; empty for a host."""
        return (self.service or self.virtual_machine or "/").partition("/")[0]

    @property
    def object_name(self) -> str:
        """The name of the object, without its namespace."""
        return (self.service or self.virtual_machine or self.host or "").rpartition("/")[2]

    def __str__(self) -> str:
        if self.service:
            return f"service {self.service}"
        return f"virtual machine {self.virtual_machine}" if self.virtual_machine else f"host {self.host}"


@dataclass(frozen=True, kw_only=True)
class Exposed(Coherent):
    """The fields of one exposure."""

    name: Label
    """Name within this spec, a DNS label: files and objects in Kubernetes get this name."""
    cluster: Label
    """Cluster of exposed_clusters."""
    target: ExposureTarget
    """What answers inside."""
    ports: Annotated[tuple[ExposedPort, ...], Len(1)]
    """Ports that answer at the address."""
    how: Way
    """Way in which requests reach the cluster."""
    address: Address | None = None
    """Address; default: a free one of the pool, and the same one in every later run."""
    pool: Name | None = None
    """Address pool or pool file of this spec that the address belongs to."""
    floating_ip: Name | None = None
    """Floating IP of this spec that leads to the address from outside."""
    allowed_cidrs: tuple[Cidr, ...] = ()
    """Networks from which the ports are opened; default: everywhere."""
    names: tuple[DnsName, ...] = ()
    """DNS names that lead to the address, or to the floating IP."""


@dataclass(frozen=True, kw_only=True)
class PlacedExposure:
    """An exposure with the address and the MAC address that are reserved for it: the input of all renderers."""

    exposure: Exposed
    address: str | None = None
    """Address that answers: of the load balancer, the service host or the virtual machine; None for node-port alone."""
    mac: Mac | None = None
    """MAC address that is reserved for the interface of a virtual machine or a host."""
    public_address: str | None = None
    """Address of the floating IP that leads to ``address``."""

    @property
    def outside(self) -> str | None:
        """The address that names lead to."""
        return self.public_address or self.address
