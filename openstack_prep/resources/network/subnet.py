"""Subnets.

Source: Networking API v2.0, "Subnets".
"""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Literal

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, NotUnique
from openstack_prep.base.fields import Address, Cidr, Name, Reads, address
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.ranges import Ip, Net, Range
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Change, Condition, Context, FromContext, Key, Observed, Resource
from openstack_prep.core.resource import Unguarded
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.neutron_records import INTERFACES, NetworkRecord, SubnetRecord
from openstack_prep.resources.lists.neutron_records import Route as Route
from openstack_prep.resources.network.network import LEAST_MTU, Network, subnets_on
from openstack_prep.resources.network.neutron import NetworkResource, is_new_value
from openstack_prep.resources.network.uses import Use, blockers_of_subnet, clear, of_subnet, port_text, removal


def pool(value: object) -> object:
    """Read a range of addresses, "first-last" or Neutron's own start and end."""
    if isinstance(value, dict) and value.keys() == {"start", "end"}:
        value = f"{value['start']}-{value['end']}"
    if not isinstance(value, str):
        return value
    try:
        first, last = (ipaddress.ip_address(part.strip()) for part in value.split("-"))
    except ValueError:
        raise InvalidValue("is not a range of addresses", "use one such as 10.0.0.10-10.0.0.99") from None
    if first.version != last.version or int(first) > int(last):
        raise InvalidValue("is not a range of addresses", "write the lower address first")
    return f"{first}-{last}"


def gateway(value: object) -> object:
    """Read the address of a gateway, or null, false or "none" for no gateway."""
    return False if value is None or value == "none" else address(value)


_POOL = {
    "anyOf": [
        {"type": "string", "description": "such as 10.0.0.10-10.0.0.99"},
        {
            "type": "object",
            "properties": {"start": {"type": "string"}, "end": {"type": "string"}},
            "required": ["start", "end"],
            "additionalProperties": False,
        },
    ]
}
AddressPool = Annotated[str, Reads(pool, _POOL)]
Gateway = Annotated[str | Literal[False] | None, Reads(gateway)]  # handles None, which a spec may contain
NO_GATEWAY = Condition("none")
"""How plans show a ``gateway_ip`` of no gateway."""
USUAL_MOST = {"dns_nameservers": 5, "host_routes": 20}
"""How many a subnet may have by default.

Source: Neutron 29.0.0, conf/common.py, max_dns_nameservers and max_subnet_host_routes.
"""
CHANGEABLE = ("gateway_ip", "allocation_pools")
"""Fields of an existing subnet that contradict each other, and what uses it."""
COMPUTED = ("slaac", "dhcpv6-stateless")
"""IPv6 modes in which the address of a port is derived from its MAC address, whatever the allocation pools are."""
Ipv6Mode = Literal["slaac", "dhcpv6-stateful", "dhcpv6-stateless"]


@dataclass(frozen=True)
class SubnetNeighbours(FromContext):
    """The related resources of a subnet."""

    network: Network | None = None
    """Its network, if the spec declares it."""


@dataclass(frozen=True, kw_only=True)
class Subnet(NetworkResource[SubnetRecord], Unguarded):
    """A range of addresses on a network of the project."""

    # Unguarded: its revision counts no change of name servers, host routes and pools (Neutron 29.0.0, db/models_v2.py:
    # DNSNameServer, SubnetRoute and IPAllocationPool have no revises_on_change)

    kind: ClassVar[str] = "subnet"
    collection: ClassVar[str] = "subnets"
    member: ClassVar[str] = "subnet"
    immutable: ClassVar[frozenset[str]] = frozenset({"network", "cidr", "ipv6_ra_mode", "ipv6_address_mode"})
    defaults: ClassVar[Values] = {"enable_dhcp": True}

    name: Name
    """Name of the subnet, unique in its project."""
    network: Name | None = None
    """Name of its network; required to create the subnet."""
    cidr: Cidr | None = None
    """Its addresses; required to create the subnet."""
    gateway_ip: Gateway = None
    """Address of the gateway; null, false or none for no gateway; default: the first address (in Python: None)."""
    enable_dhcp: bool | None = None
    """Whether Neutron assigns its addresses by DHCP."""
    dns_nameservers: tuple[Address, ...] | None = None
    """Name servers, in order of preference."""
    allocation_pools: tuple[AddressPool, ...] | None = None
    """Ranges from which ports get their addresses, such as 10.0.0.10-10.0.0.99."""
    host_routes: tuple[Route, ...] | None = None
    """Static routes of the servers."""
    ipv6_ra_mode: Ipv6Mode | None = None
    """How routers advertise an IPv6 subnet."""
    ipv6_address_mode: Ipv6Mode | None = None
    """How servers get their IPv6 addresses."""
    neighbours: SubnetNeighbours = field(default=SubnetNeighbours(), repr=False)
    """The related resources, which ``resolve`` finds in the spec."""

    @classmethod
    def read(cls, raw: Raw) -> SubnetRecord:
        return SubnetRecord.read(raw)

    def references(self) -> Iterable[Resource]:
        return (*super().references(), *((self.sibling(Network, self.network),) if self.network else ()))

    def provides(self) -> Iterable[Key]:
        return (self.key, *((subnets_on(self.network),) if self.network else ()))

    def desired(self) -> Values:
        values = super().desired()
        for unordered in ("allocation_pools", "host_routes"):
            if unordered in values:
                values[unordered] = frozenset(values[unordered])
        if values.get("gateway_ip") is False:
            values["gateway_ip"] = NO_GATEWAY
        return values

    def body(self, run: CloudRun, values: Raw) -> Values:
        body = dict(values)
        if "network" in body:
            body["network_id"] = run.id(self.sibling(Network, body.pop("network")))
        if "cidr" in body:
            body["ip_version"] = ipaddress.ip_network(body["cidr"]).version
        if "gateway_ip" in body:
            body["gateway_ip"] = None if body["gateway_ip"] is NO_GATEWAY else body["gateway_ip"]
        if "allocation_pools" in body:
            ranges = (allocation_pool.split("-") for allocation_pool in sorted(body["allocation_pools"]))
            body["allocation_pools"] = [{"start": first, "end": last} for first, last in ranges]
        if "host_routes" in body:
            body["host_routes"] = [vars(route) for route in sorted(body["host_routes"], key=str)]
        return body

    def values(self, run: CloudRun, record: SubnetRecord) -> Values:
        return super().values(run, record) | {
            "network": self.network if self._is_on_network(run, record) else record.network_id,
            "gateway_ip": record.gateway_ip or NO_GATEWAY,
            "dns_nameservers": record.dns_nameservers,
            "allocation_pools": frozenset(record.allocation_pools),
            "host_routes": frozenset(record.host_routes),
        }

    def _is_on_network(self, run: CloudRun, record: SubnetRecord) -> bool:
        try:
            network = run.look(self.sibling(Network, self.network)) if self.network else None
        except NotUnique:  # in a project that no spec has created; ``scan`` reports all existing subnets
            return queries.network_name(run, record.network_id, record.project_id) == self.network
        return network is not None and network.id == record.network_id

    @classmethod
    def in_words(cls, run: CloudRun, record: SubnetRecord) -> Values:
        return {
            "network": queries.network_name(run, record.network_id, record.project_id),
            "gateway_ip": record.gateway_ip or False,
            "allocation_pools": None if is_whole(record) else record.allocation_pools,
            "dns_nameservers": record.dns_nameservers or None,
            "host_routes": record.host_routes or None,
        }

    def outputs(self, record: SubnetRecord) -> dict[str, str]:
        return {"cidr": record.cidr}

    def named(self, run: CloudRun, listed: Iterable[SubnetRecord]) -> list[SubnetRecord]:
        """Exclude subnets on a twin of the network, which are deleted together with it."""
        found = super().named(run, listed)
        network = run.look(self.sibling(Network, self.network)) if self.network else None
        project_id = run.find_project_id(self.owner)
        if network is None or project_id is None or all(each.network_id == network.id for each in found):
            return found
        same = (each for each in Network.listing(run, project_id) if each.name == self.network)
        twins = {each.id for each in same if run.ownership.manages(each.name, each.description)} - {network.id}
        return [each for each in found if each.network_id not in twins]

    def use(self, run: CloudRun, record: SubnetRecord) -> Use:
        return of_subnet(run, record)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        """Delete it; for a twin first the interfaces and ports with our ownership tag."""
        if observed.contained_ids:
            use = of_subnet(run.fresh(), observed.record_as(SubnetRecord))
            clear(self.maker(run)[0], use, f"{self.key} {observed.id}")
        super().delete(run, observed)

    def gateway(self, *, is_new: bool) -> str | None:
        """Return the address of its gateway, as far as it is known; None if it has none.

        If the spec leaves it open, a new subnet gets Neutron's default, and an existing one may have any.
        """
        if self.gateway_ip is None and self.cidr is not None and is_new:
            return str(default_gateway(ipaddress.ip_network(self.cidr)))
        return self.gateway_ip or None

    def list_mistakes(self, context: Context) -> Iterable[Mistake]:
        if self.cidr is not None:
            whole = ipaddress.ip_network(self.cidr)
            is_new = not (context.for_plan or self.adopt)  # a plan judges what the spec leaves open once it has looked
            yield from self._check_ranges(whole, self.gateway(is_new=is_new))
            refused = (*self._refused(whole), *self._refused_dhcp(whole, is_new=is_new))
            yield from (self.mistake(what, fix, Code.SPEC_CONTRADICTION) for what, fix in refused)
            yield from self._check_neighbours(context, whole)

    def list_warnings(self, context: Context) -> Iterable[str]:
        gateway = ipaddress.ip_address(self.gateway_ip) if self.gateway_ip else None
        if gateway and self.cidr and not gateway.is_link_local and gateway not in ipaddress.ip_network(self.cidr):
            yield f"gateway_ip {gateway} is outside {self.cidr}: machines need a route of their own to it"

    def resolve(self, context: Context) -> Sequence[Subnet]:
        if self.neighbours != SubnetNeighbours():
            return (self,)
        declared = self.of_project(context.declared(Network))
        network = next((each for each in declared if each.name == self.network), None)
        return (replace(self, neighbours=SubnetNeighbours(network)),) if network else (self,)

    def check(self, run: CloudRun, observed: Observed | None) -> Iterable[Mistake]:
        if observed is not None:
            yield from self._check_update(run, observed, observed.record_as(SubnetRecord))
            return
        if not (self.network and self.cidr):
            yield self.mistake(
                "does not exist, and cannot be created without network and cidr", "set both, or correct the name"
            )
        if self.cidr is not None:
            whole = ipaddress.ip_network(self.cidr)
            yield from self._check_others(run, whole)
            yield from self._check_ranges(whole, self.gateway(is_new=True)) if self.gateway_ip is None else ()
            refused = self._refused_dhcp(whole, is_new=True) if self.enable_dhcp is None else ()
            yield from (self.mistake(what, fix, Code.SPEC_CONTRADICTION) for what, fix in refused)

    def list_unchecked(self, run: CloudRun, changes: Sequence[Change] | None) -> Iterator[str]:
        """Yield what is more than Neutron accepts by default; the limits are in its configuration alone."""
        for name, most in USUAL_MOST.items():
            number = len(getattr(self, name) or ())
            if number > most and is_new_value(name, changes):
                yield f"{number} {name}, beyond Neutron's default limit of {most}"

    def _check_update(self, run: CloudRun, observed: Observed, record: SubnetRecord) -> Iterator[Mistake]:
        """Yield what Neutron refuses of a change of the gateway or the pools, with what the spec leaves open.

        Source: Neutron 29.0.0, db/db_base_plugin_v2.py (_update_subnet_precommit, _validate_subnet).
        """
        values = self.desired()
        changed = [name for name in CHANGEABLE if name in values and values[name] != observed.values.get(name)]
        if not changed or self.cidr not in (None, record.cidr):
            return
        if self.cidr is None or not (self.gateway_ip and self.allocation_pools):  # else validate has compared them
            pools = self.allocation_pools if self.allocation_pools is not None else record.allocation_pools
            gateway = record.gateway_ip if self.gateway_ip is None else self.gateway_ip or None
            whole = replace(self, cidr=record.cidr, allocation_pools=pools)
            yield from whole._check_ranges(ipaddress.ip_network(record.cidr), gateway)
        if "gateway_ip" in changed and record.gateway_ip:
            for port in queries.ports_on(run, record.network_id):
                held = {fixed_ip.ip_address for fixed_ip in port.fixed_ips if fixed_ip.subnet_id == record.id}
                if port.device_owner in INTERFACES and record.gateway_ip in held:
                    what = f"router {port.device_id} has the gateway {record.gateway_ip}, so that it cannot change"
                    yield self.mistake(what, "keep it, or remove the interface of that router first", Code.STILL_USED)

    def check_delete(self, run: CloudRun, observed: Observed, going: frozenset[str]) -> Iterable[Mistake]:
        subnet = observed.record_as(SubnetRecord)
        if subnet.network_id in going:
            return  # the check of the network reports it
        for port in blockers_of_subnet(run, subnet, going):
            fix = removal(port, "first delete that port, or remove its address", subnet.id)
            yield self.mistake(f"{port_text(port)} has an address of the subnet", fix, Code.STILL_USED)

    def _refused(self, whole: Net) -> Iterator[tuple[str, str]]:
        """Yield what Neutron refuses in a subnet alone, and the fix.

        Source: Neutron 29.0.0, db/db_base_plugin_v2.py (_validate_subnet, _validate_ipv6_attributes,
        _validate_host_route), db/ipam_backend_mixin.py (_validate_subnet_cidr), ipam/utils.py
        (check_gateway_invalid_in_subnet); neutron-lib, api/validators (validate_nameservers).
        """
        v4 = whole.version == 4
        if not whole.prefixlen or (not v4 and not int(whole.network_address)):
            yield f"{whole} is not a network of addresses", "choose a private network"
        if v4 and self.gateway_ip in (str(whole.network_address), str(whole.broadcast_address)):
            yield f"{self.gateway_ip} is no address of a host in {whole}", "choose another address for gateway_ip"
        names = self.dns_nameservers or ()
        if len(set(names)) < len(names):
            yield "dns_nameservers has an address twice", "remove one of them"
        routes = ((route.destination, route.nexthop) for route in self.host_routes or ())
        for each in (*names, *itertools.chain(*routes)):
            if ipaddress.ip_interface(each).version != whole.version:
                yield f"{each} is not of IPv{whole.version}, as the subnet is", f"choose one of IPv{whole.version}"
        yield from self._refused_modes(whole)

    def _refused_dhcp(self, whole: Net, *, is_new: bool) -> Iterator[tuple[str, str]]:
        """Yield why Neutron cannot serve it by DHCP, which a new subnet has unless the spec disables it."""
        if self.enable_dhcp is False or (self.enable_dhcp is None and not is_new):
            return
        if whole.prefixlen > (30 if whole.version == 4 else 126):
            yield f"{whole} is too small for DHCP", "choose a larger cidr, or set enable_dhcp: false"
        if whole.is_multicast or whole.is_loopback or (whole.version == 4 and not int(whole.network_address)):
            yield f"DHCP does not serve {whole}", "choose a private network, or set enable_dhcp: false"

    def _refused_modes(self, whole: Net) -> Iterator[tuple[str, str]]:
        modes = [each for each in (self.ipv6_ra_mode, self.ipv6_address_mode) if each]
        if not modes:
            return
        if whole.version == 4:
            yield "ipv6_ra_mode and ipv6_address_mode do not apply to IPv4", "remove them"
            return
        if len(set(modes)) > 1:
            yield f"ipv6_ra_mode is {modes[0]}, and ipv6_address_mode {modes[1]}", "write the same mode in both"
        if self.enable_dhcp is False:
            yield "ipv6_ra_mode and ipv6_address_mode need enable_dhcp", "set enable_dhcp: true, or remove them"
        if set(modes) & set(COMPUTED) and whole.prefixlen != 64:
            yield f"mode {modes[0]} needs a network of length 64, not {whole}", "write a cidr with /64"

    def _check_neighbours(self, context: Context, whole: Net) -> Iterator[Mistake]:
        """Yield what contradicts the network, and its other subnets, as the spec declares them.

        Source: Neutron 29.0.0, db/db_base_plugin_v2.py (_validate_subnet_network_mtu), db/ipam_backend_mixin.py
        (_validate_subnet_cidr).
        """
        for network in self.of_project(context.declared(Network)):
            least = LEAST_MTU[whole.version]
            if network.name == self.network and network.mtu and network.mtu < least:
                what = f"{network.key} has an mtu of {network.mtu}, and IPv{whole.version} needs {least} or more"
                yield self.mistake(what, f"raise the mtu to {least} or more", Code.SPEC_CONTRADICTION)
        for other in self.of_project(context.declared(Subnet)):
            same = other.network == self.network is not None and other.cidr is not None and other.key < self.key
            if same and whole.overlaps(ipaddress.ip_network(str(other.cidr))):
                what = f"{whole} overlaps {other.cidr} of {other.key} on the same network"
                yield self.mistake(what, "choose another cidr", Code.SPEC_CONTRADICTION)

    def _check_ranges(self, whole: Net, known: str | None) -> Iterable[Mistake]:
        """Yield what is wrong with the pools, and the gateway as far as it is known.

        The gateway may be outside, such as fe80::1: db/db_base_plugin_v2.py (_validate_subnet) and ipam/utils.py
        (check_gateway_invalid_in_subnet) allow it alike in Neutron 24.0.0, 25.0.0, 26.0.0, 27.0.0, 28.0.0 and 29.0.0.
        Then no router gets an interface in the subnet, which the router reports.
        """
        pools = sorted(
            (_ends(allocation_pool) for allocation_pool in self.allocation_pools or ()), key=lambda ends: int(ends[0])
        )
        gateway = ipaddress.ip_address(known) if known else None
        for each in itertools.chain(*pools):
            if each not in whole:
                yield self.mistake(f"{each} is outside {whole}", "choose an address inside it", Code.SPEC_CONTRADICTION)
        for lower, upper in itertools.pairwise(pools):
            if int(upper[0]) <= int(lower[1]):
                what, fix = f"allocation pools overlap at {upper[0]}", "change the pools so that they do not overlap"
                yield self.mistake(what, fix, Code.SPEC_CONTRADICTION)
        if gateway and any(int(first) <= int(gateway) <= int(last) for first, last in pools):
            what = f"the gateway {gateway} is in an allocation pool"
            yield self.mistake(what, "exclude it from the pools", Code.SPEC_CONTRADICTION)

    def _check_others(self, run: CloudRun, whole: Net) -> Iterable[Mistake]:
        """Yield what keeps its network from a new subnet, as far as the project sees the others."""
        network = run.look(self.sibling(Network, self.network)) if self.network else None
        project_id = run.find_project_id(self.owner)
        if network is None or project_id is None:
            return
        for other in self.listing(run, project_id):
            if other.network_id == network.id and whole.overlaps(ipaddress.ip_network(other.cidr)):
                overlap = f"{whole} overlaps {other.cidr} of subnet {other.name} {other.id}"
                yield self.mistake(f"{overlap} on the same network", "choose another cidr")
        declared, mtu = self.neighbours.network, network.record_as(NetworkRecord).mtu
        if mtu and mtu < LEAST_MTU[whole.version] and not (declared and declared.mtu):
            what = (
                f"network {self.network} has an mtu of {mtu}, and IPv{whole.version} needs {LEAST_MTU[whole.version]}"
            )
            yield self.mistake(what, "raise the mtu of the network, or choose another one", Code.SPEC_CONTRADICTION)


def is_host(address: str, cidr: str) -> bool:
    """Whether a port of no device may have an address of a network (Neutron 29.0.0, ipam/utils.py, check_subnet_ip).

    That of an IPv6 network itself is for such ports and routers. netaddr has no broadcast address of two addresses.
    """
    whole, given = ipaddress.ip_network(cidr), ipaddress.ip_address(address)
    ends = {whole[0], whole[-1]} if whole.num_addresses > 2 else {whole[0]}
    return given in whole and (whole.version == 6 or given not in ends)


def default_gateway(whole: Net) -> Ip:
    """Return the gateway of a new subnet that names none (Neutron 29.0.0, ipam_backend_mixin.py, _gateway_ip_str)."""
    return whole.network_address + (1 if whole.version == 4 else 0)


def gateway_of(network: Net, record: SubnetRecord | None, declared: Subnet | None) -> Ip | None:
    """Return the gateway of a subnet as the cloud reports and the spec changes it."""
    given = declared.gateway_ip if declared else None
    if given is None:
        given = record.gateway_ip if record else str(default_gateway(network))
    return ipaddress.ip_address(given) if given else None


def pools_of(network: Net, gateway: Ip | None, record: SubnetRecord | None, declared: Subnet | None) -> Sequence[Range]:
    """Return the ranges from which Neutron assigns addresses, as the cloud reports and the spec changes them."""
    if declared and declared.allocation_pools is not None:
        return [Range.read(allocation_pool) for allocation_pool in declared.allocation_pools]
    if record:
        return list(map(Range.read, record.allocation_pools))
    # Neutron's default: all addresses except the gateway and the reserved ones
    first, last = int(network[0]) + 1, int(network[-1]) - (network.version == 4)
    inside = gateway is not None and gateway in network
    parts = [(first, int(gateway) - 1), (int(gateway) + 1, last)] if gateway and inside else [(first, last)]
    make = type(network[0])
    return [Range(make(start), make(end)) for start, end in parts if start <= end]


def is_whole(record: SubnetRecord) -> bool:
    """Whether the only pool of a subnet is the one that Neutron sets by default: all addresses but the gateway's.

    Source: neutron 29.0.0 ipam/utils.py, generate_pools.
    """
    block = ipaddress.ip_network(record.cidr)
    own = 1 if block.version == 6 else 2 if block.prefixlen <= 30 else 0  # the network's and the broadcast address
    inside = record.gateway_ip is not None and ipaddress.ip_address(record.gateway_ip) in block
    ends = map(_ends, record.allocation_pools)
    return sum(int(last) - int(first) + 1 for first, last in ends) == block.num_addresses - own - inside


def _ends(pool: str) -> tuple[Ip, Ip]:
    first, last = pool.split("-")
    return ipaddress.ip_address(first), ipaddress.ip_address(last)
