"""Neutron's objects: one frozen record per object, created where the API's answer arrives, and the lists of them.

Kinds, checks, verify, rke mesh and drawings read Neutron by these functions alone.

Source: Networking API v2.0. Fields that only an extension provides (description, tags, revision_number, created_at and
the fields with a default of None) may be missing; so may those that a request with ``fields`` leaves out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from openstack_prep.base.fields import Address, Cidr
from openstack_prep.base.raw import Raw, record_of
from openstack_prep.core.run import IDS_PER_REQUEST

if TYPE_CHECKING:
    from openstack_prep.base.ranges import Ip, Net
    from openstack_prep.cloud.service import Service


@dataclass(frozen=True, kw_only=True)
class Route:
    """A route to a network by way of a next hop."""

    destination: Cidr
    """Network to reach."""
    nexthop: Address
    """Address of the next hop."""


@dataclass(frozen=True, kw_only=True)
class NeutronRecord:
    """The fields that all objects of Neutron have; a floating IP has no name."""

    collection: ClassVar[str]
    """The plural in paths, such as security-groups."""

    id: str
    name: str = ""
    project_id: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    revision_number: int = 0
    created_at: str = ""

    @classmethod
    def read(cls, raw: Raw) -> Self:
        return record_of(cls, raw)


@dataclass(frozen=True, kw_only=True)
class NetworkRecord(NeutronRecord):
    collection: ClassVar[str] = "networks"

    mtu: int | None = None
    port_security_enabled: bool | None = None
    admin_state_up: bool | None = None
    shared: bool | None = None
    external: bool | None = None
    provider_network_type: str | None = None
    """Only administrators see the provider attributes."""
    provider_physical_network: str | None = None
    provider_segmentation_id: int | None = None
    subnets: tuple[str, ...] = ()
    """Ids of its subnets, as far as these credentials see them."""

    @classmethod
    def read(cls, raw: Raw) -> Self:
        return record_of(
            cls,
            raw,
            external=raw.get("router:external"),
            provider_network_type=raw.get("provider:network_type"),
            provider_physical_network=raw.get("provider:physical_network"),
            provider_segmentation_id=raw.get("provider:segmentation_id"),
        )


@dataclass(frozen=True, kw_only=True)
class SubnetRecord(NeutronRecord):
    collection: ClassVar[str] = "subnets"

    network_id: str
    cidr: str
    gateway_ip: str | None
    allocation_pools: tuple[str, ...]
    """Ranges such as 10.0.0.10-10.0.0.99."""
    dns_nameservers: tuple[str, ...]
    host_routes: tuple[Route, ...]
    enable_dhcp: bool | None = None
    ipv6_ra_mode: str | None = None
    ipv6_address_mode: str | None = None

    @property
    def block(self) -> Net:
        return ip_network(self.cidr)

    @property
    def gateway(self) -> Ip | None:
        return ip_address(self.gateway_ip) if self.gateway_ip else None

    @property
    def ip_version(self) -> int:
        return self.block.version

    @classmethod
    def read(cls, raw: Raw) -> Self:
        return record_of(
            cls,
            raw,
            allocation_pools=tuple(
                f"{allocation_pool['start']}-{allocation_pool['end']}" for allocation_pool in raw["allocation_pools"]
            ),
            host_routes=tuple(Route(**route) for route in raw["host_routes"]),
        )


@dataclass(frozen=True, kw_only=True)
class RouterRecord(NeutronRecord):
    collection: ClassVar[str] = "routers"

    gateway_network_id: str | None
    gateway_addresses: tuple[str, ...]
    enable_snat: bool | None
    routes: tuple[Route, ...]
    distributed: bool | None = None
    ha: bool | None = None
    admin_state_up: bool | None = None
    status: str = ""
    joined: frozenset[str] = frozenset()
    """Ids of the subnets in which it has an interface; Neutron lists them separately."""

    @classmethod
    def read(cls, raw: Raw) -> Self:
        gateway = raw["external_gateway_info"] or {}
        return record_of(
            cls,
            raw,
            gateway_network_id=gateway.get("network_id"),
            gateway_addresses=tuple(
                external_fixed_ip["ip_address"] for external_fixed_ip in gateway.get("external_fixed_ips", ())
            ),
            enable_snat=gateway.get("enable_snat"),
            routes=tuple(Route(**route) for route in raw.get("routes") or ()),
        )


@dataclass(frozen=True, kw_only=True)
class RuleRecord:
    """A rule of a security group; a rule that only a spec declares has no ids."""

    direction: str
    ethertype: str
    protocol: str | None
    port_range_min: int | None
    port_range_max: int | None
    remote_ip_prefix: str | None
    normalized_cidr: str | None = None
    remote_group_id: str | None = None
    remote_address_group_id: str | None = None
    id: str = ""
    description: str = ""

    @classmethod
    def read(cls, raw: Raw) -> Self:
        return record_of(cls, raw)


@dataclass(frozen=True, kw_only=True)
class GroupRecord(NeutronRecord):
    collection: ClassVar[str] = "security-groups"

    stateful: bool | None = None
    security_group_rules: tuple[RuleRecord, ...] = ()

    @classmethod
    def read(cls, raw: Raw) -> Self:
        rules = tuple(map(RuleRecord.read, raw["security_group_rules"]))
        return record_of(cls, raw, security_group_rules=rules)


@dataclass(frozen=True, kw_only=True)
class PortForwarding:
    """Ports of a floating IP that lead to ports of an address: the first and the last one of each side."""

    protocol: str
    external_ports: tuple[int, int]
    internal_ports: tuple[int, int]
    internal_address: str
    id: str = ""
    """Empty, as ``internal_port_id``, before Neutron 2022.2, which lists floating IPs without them."""
    internal_port_id: str = ""

    @classmethod
    def read(cls, raw: Raw) -> Self:
        return cls(
            id=raw.get("id") or "",
            internal_port_id=raw.get("internal_port_id") or "",
            protocol=raw["protocol"],
            external_ports=_ports(raw, "external_port"),
            internal_ports=_ports(raw, "internal_port"),
            internal_address=raw["internal_ip_address"],
        )

    def __str__(self) -> str:
        external, internal = (
            "-".join(map(str, dict.fromkeys(each))) for each in (self.external_ports, self.internal_ports)
        )
        return f"{self.protocol} {external} to {self.internal_address}:{internal}"

    def is_to(self, address: str, port_id: str = "") -> bool:
        """Whether it leads to an address, of that port if both ports are known: two networks may have one address."""
        return self.internal_address == address and len({self.internal_port_id, port_id} - {""}) < 2


def _ports(raw: Raw, field: str) -> tuple[int, int]:
    """Return the first and the last port of a forwarding, given as a number, or as a range such as 80:90."""
    first, _, last = str(raw.get(field) or raw[f"{field}_range"]).partition(":")
    return int(first), int(last or first)


@dataclass(frozen=True, kw_only=True)
class FloatingIPRecord(NeutronRecord):
    collection: ClassVar[str] = "floatingips"

    address: str
    network_id: str
    """Id of its external network."""
    port_id: str | None
    """Id of the port that it is attached to."""
    fixed_ip_address: str | None = None
    """The address of that port that it leads to."""
    router_id: str | None = None
    """Id of the router that serves it, also if it has only port forwardings."""
    device_id: str = ""
    """Id of the device of that port, such as a server or a load balancer."""
    status: str = ""
    port_forwardings: tuple[PortForwarding, ...] = ()
    """Its ports that lead somewhere; only a floating IP without a port has them."""

    @classmethod
    def read(cls, raw: Raw) -> Self:
        return record_of(
            cls,
            raw,
            address=raw["floating_ip_address"],
            network_id=raw["floating_network_id"],
            device_id=bare_device((raw.get("port_details") or {}).get("device_id") or ""),
            port_forwardings=tuple(map(PortForwarding.read, raw.get("port_forwardings") or ())),
        )

    def forwards(self, protocol: str, port: int, address: str, port_id: str = "") -> bool:
        """Whether a port of it leads to the same port of an address; several of its ports may lead to one."""
        return any(
            port_forwarding.protocol == protocol
            and port_forwarding.is_to(address, port_id)
            and port_forwarding.external_ports[0] <= port <= port_forwarding.external_ports[1]
            and port_forwarding.internal_ports in (port_forwarding.external_ports, (port, port))
            for port_forwarding in self.port_forwardings
        )


@dataclass(frozen=True, kw_only=True)
class FixedIP:
    """An address of a port in a subnet."""

    subnet_id: str
    ip_address: str


@dataclass(frozen=True, kw_only=True)
class AddressPair:
    """An address or network that a port may use besides its own."""

    ip_address: str
    mac_address: str


@dataclass(frozen=True, kw_only=True)
class AddressHolder(NeutronRecord):
    """A port, limited to who uses which addresses."""

    collection: ClassVar[str] = "ports"

    device_owner: str
    fixed_ips: tuple[FixedIP, ...]

    @property
    def addresses(self) -> list[Ip]:
        return [ip_address(fixed.ip_address) for fixed in self.fixed_ips]

    @property
    def subnet_ids(self) -> set[str]:
        return {fixed.subnet_id for fixed in self.fixed_ips}

    @classmethod
    def read(cls, raw: Raw) -> Self:
        return record_of(cls, raw, fixed_ips=_fixed_ips(raw))


def _fixed_ips(raw: Raw) -> tuple[FixedIP, ...]:
    return tuple(
        FixedIP(subnet_id=fixed_ip["subnet_id"], ip_address=fixed_ip["ip_address"]) for fixed_ip in raw["fixed_ips"]
    )


INTERFACES = (
    "network:router_interface",
    "network:router_interface_distributed",
    "network:ha_router_replicated_interface",
)
"""Device owners of interface ports: plain, distributed and highly available routers."""
AUTOMATIC = ("network:dhcp", "network:distributed", "network:floatingip_agent_gateway")
"""Device owners of ports that Neutron deletes together with a network or subnet (neutron-lib 5.0.1, constants.py)."""


def bare_device(device_id: str) -> str:
    """Return the id of what a port goes with: of a load balancer, or of the subnet from which OVN asks its members.

    octavia 19.0.0, network/drivers/neutron/allowed_address_pairs.py; ovn-octavia-provider 11.0.0, helper.py.
    """
    return device_id.removeprefix("lb-").removeprefix("ovn-lb-hm-")


@dataclass(frozen=True, kw_only=True)
class PortRecord(AddressHolder):
    network_id: str
    mac_address: str
    device_id: str
    """Id of the server, router or other device of the port; empty if there is none."""
    security_groups: tuple[str, ...]
    """The ids of its security groups."""
    allowed_address_pairs: tuple[AddressPair, ...]
    port_security_enabled: bool = True
    admin_state_up: bool | None = None
    dns_name: str | None = None
    status: str = ""

    @classmethod
    def read(cls, raw: Raw) -> Self:
        own = raw["mac_address"].lower()
        pairs = (
            AddressPair(
                ip_address=allowed_address_pair["ip_address"],
                mac_address=allowed_address_pair.get("mac_address", own).lower(),
            )
            for allowed_address_pair in raw.get("allowed_address_pairs") or ()
        )
        return record_of(
            cls,
            raw,
            mac_address=own,
            fixed_ips=_fixed_ips(raw),
            security_groups=tuple(raw.get("security_groups") or ()),
            allowed_address_pairs=tuple(pairs),
        )


@dataclass(frozen=True, kw_only=True)
class AddressGroupRecord(NeutronRecord):
    """Networks that a rule of a security group names together (extension address-group)."""

    collection: ClassVar[str] = "address-groups"

    addresses: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Subport:
    """A port whose frames pass the parent of a trunk, with the tag of a VLAN."""

    port_id: str
    parent_id: str
    vlan: int


@dataclass(frozen=True, kw_only=True)
class TrunkRecord(NeutronRecord):
    """A port that carries the frames of other ports with tags of VLANs (extension trunk)."""

    collection: ClassVar[str] = "trunks"

    port_id: str
    """Id of its parent port."""
    sub_ports: tuple[Subport, ...]

    @classmethod
    def read(cls, raw: Raw) -> Self:
        parent = raw["port_id"]
        subports = (
            Subport(port_id=sub_port["port_id"], parent_id=parent, vlan=sub_port["segmentation_id"])
            for sub_port in raw["sub_ports"]
        )
        return record_of(cls, raw, sub_ports=tuple(subports))


# --- lists ------------------------------------------------------------------------------------


R = TypeVar("R", bound=NeutronRecord)


def list_records(network: Service, kind: type[R], **query: Any) -> list[R]:
    """Return what Neutron lists of a kind of records; raises CloudError."""
    member = kind.collection.replace("-", "_")
    return [kind.read(raw) for raw in network.list(f"/{kind.collection}", member, **query)]


def list_by(network: Service, kind: type[R], field: str, values: Iterable[str], **query: Any) -> dict[str, R]:
    """Return records by id of which a field has one of these values, in few requests; raises CloudError."""
    wanted = sorted(set(values))
    chunks = (wanted[start : start + IDS_PER_REQUEST] for start in range(0, len(wanted), IDS_PER_REQUEST))
    return {record.id: record for chunk in chunks for record in list_records(network, kind, **{field: chunk, **query})}


def list_by_id(network: Service, kind: type[R], ids: Iterable[str]) -> dict[str, R]:
    """Return records with these ids, by id; raises CloudError."""
    return list_by(network, kind, "id", ids)
