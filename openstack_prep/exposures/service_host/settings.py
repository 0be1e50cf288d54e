"""The declaration of a services machine: BIND and HAProxy beside a cluster of virtual machines, such as KubeInit's.

Sources: KubeInit 0.5.4 to 1.0.2 (hosts/okd/inventory, roles/kubeinit_libvirt/defaults/main.yml); Linux, IFNAMSIZ.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Le

from openstack_prep.base.fields import Address, Cidr, Mac, Name, Port, Strict, matching
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.core.resource import Coherent
from openstack_prep.exposures.endpoint import DnsName, Interface, Label

Role = Literal["master", "worker", "service", "bootstrap"]
ROLES: tuple[Role, ...] = ("master", "worker", "service", "bootstrap")


Folder = Annotated[
    Name, matching("(/[A-Za-z0-9_.-]+)+", "is not an absolute path of plain characters", "use one such as /var/named")
]
"""An absolute path that named.conf contains in quotes."""
Word = Annotated[
    Name,
    matching("[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}", "is not a plain name", "use letters, digits, '_', '.' and '-'"),
]
"""A name that inventories and commands contain."""


@dataclass(frozen=True, kw_only=True)
class ExternalInterface(Strict):
    """The second interface of the services machine, on a bridge of the hypervisor, with the exposures' address."""

    nic: Interface
    """Physical interface of the hypervisor that becomes a port of the bridge, such as eno1."""
    bridge: Interface = "kiextbr0"
    """Bridge of the hypervisor."""
    device: Interface = "eth1"
    """Name of the interface in the services machine."""
    gateway: Address
    """Router of the external network."""
    prefix_length: Annotated[int, Ge(1), Le(127)]
    """Prefix length of the external network, such as 24."""
    confirm_within: Annotated[int, Ge(30), Le(3600)] = 120
    """Seconds after which the bridge script undoes its changes unless they were confirmed."""


@dataclass(frozen=True, kw_only=True)
class MachineGroup(Strict):
    """Machines with consecutive addresses."""

    count: Annotated[int, Ge(1), Le(250)]
    """Number of machines."""
    first_address: Address
    """Address of the first machine; each of the others has the next one."""
    macs: tuple[Mac, ...] = ()
    """MAC addresses, one per machine; default: those that pool reserves for the names of the machines."""


@dataclass(frozen=True, kw_only=True)
class KubeInit(Strict):
    """Files for KubeInit 0.5.4 to 1.0.2; later releases have no external interface."""

    user: Word = "root"
    """User for logins to the hypervisor."""
    hypervisor: Word = "hypervisor-01"
    """Name of the hypervisor in the inventory (1.0)."""


@dataclass(frozen=True, kw_only=True)
class ServiceHost(Strict, Coherent):
    """A services machine with BIND and HAProxy, through which a cluster is reached from outside."""

    domain: DnsName
    """Domain of the cluster, such as okdcluster.kubeinit.local."""
    distribution: Label = "okd"
    """First part of the machines' names and of the inventory's groups."""
    network: Cidr
    """Network of the cluster's machines; they ask BIND from inside."""
    address: Address
    """Address of the services machine within the cluster's network."""
    mac: Mac | None = None
    """MAC address of the services machine within the cluster's network; default: one that pool reserves."""
    pool: Name | None = None
    """Pool file of this spec for the cluster's network: it records the addresses of all machines, and reserves a MAC
    address for each machine without one."""
    external: ExternalInterface
    """Interface of the services machine to the network outside."""
    masters: MachineGroup
    """Control plane."""
    workers: MachineGroup | None = None
    """Workers; without them, the masters are workers."""
    bootstrap: MachineGroup | None = None
    """Bootstrap machine; remove it when the cluster is installed."""
    forwarders: tuple[Address, ...] = ()
    """Name servers that BIND asks for all other names, for clients inside."""
    inside: tuple[Cidr, ...] = ()
    """Further networks whose clients see the names from inside and may ask for any name."""
    zone_directory: Folder = "/var/named"
    """Directory of the zone files on the services machine."""
    dnssec_validation: bool = True
    """Whether BIND validates the forwarders' answers; without DNSSEC there, it would refuse them."""
    ingress_health_port: Port | None = 1936
    """Port of OpenShift's routers that tells whether they are ready; null: connections to the port itself."""
    kubeinit: KubeInit | None = None
    """Set it, {} suffices, to render files for KubeInit."""

    def contradictions(self) -> Iterable[InvalidValue]:
        if self.domain.startswith("*."):
            yield InvalidValue("domain is a wildcard", "use the domain of the cluster, without '*.'")
        if self.bootstrap and self.bootstrap.count != 1:
            yield InvalidValue("bootstrap.count is not 1", "declare one bootstrap machine")


@dataclass(frozen=True)
class ClusterMachine:
    """One machine of the cluster's network."""

    name: str
    role: Role
    address: str
    mac: str | None


def machines(settings: ServiceHost, macs: Mapping[str, str] | None = None) -> Iterator[ClusterMachine]:
    """Yield the machines; ``macs`` are the MAC addresses that are reserved for those without one, by name."""
    for role in ROLES:
        for index, (address, mac) in enumerate(_of_role(settings, role)):
            name = f"{settings.distribution}-{role}-{index + 1:02}"
            yield ClusterMachine(name, role, address, mac or (macs or {}).get(name))


def _of_role(settings: ServiceHost, role: Role) -> Iterator[tuple[str, str | None]]:
    if role == "service":
        yield settings.address, settings.mac
        return
    group = {"master": settings.masters, "worker": settings.workers, "bootstrap": settings.bootstrap}[role]
    for index in range(group.count if group else 0):
        assert group
        mac = group.macs[index] if index < len(group.macs) else None
        yield str(ipaddress.ip_address(group.first_address) + index), mac


def ingress_role(settings: ServiceHost) -> Role:
    """Return the role of the machines that run the routers."""
    return "worker" if settings.workers else "master"
