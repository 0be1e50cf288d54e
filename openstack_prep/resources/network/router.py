"""Routers, with their external gateway and their interfaces.

Source: Networking API v2.0, "Routers".
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, ClassVar, Self

from openstack_prep.base import shell
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, NotFound, NotUnique
from openstack_prep.base.fields import Address, Name
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Change, Context, FromContext, Key, Observed, Resource
from openstack_prep.resources.cascades.row import HasCascades
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.neutron_records import INTERFACES, FixedIP, Route, RouterRecord, SubnetRecord
from openstack_prep.resources.network import external_addresses
from openstack_prep.resources.network.declared_port import Port
from openstack_prep.resources.network.external_addresses import AsksForAddresses
from openstack_prep.resources.network.network import ExternalNetwork, given_addresses, routers_of, subnets_on
from openstack_prep.resources.network.neutron import NetworkResource, added, changed, is_new_value
from openstack_prep.resources.network.subnet import Subnet
from openstack_prep.resources.network.uses import (
    Use,
    blockers_of_router,
    interfaces_of,
    of_router,
    remove_interface,
)

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud

GATEWAY = ("external_network", "external_fixed_ips", "enable_snat")
"""Fields that Neutron stores together."""
LATER = ("interfaces", "routes")
"""Fields that can only be set on an existing router, one after the other."""
ADMINISTRATORS = ("external_fixed_ips", "enable_snat", "distributed", "ha")
"""Fields that Neutron's default policy reserves for administrators."""


@dataclass(frozen=True)
class JoinedSubnet:
    """A subnet of a router's interface: as the spec declares it, and as it exists."""

    name: str
    cidr: str
    gateway: str | None
    network: str | None
    """Name of its network, if the spec declares the subnet."""
    is_declared: bool
    id: str = ""
    network_id: str = ""
    """Empty for a subnet that does not exist yet."""
    is_managed: bool = False
    """Whether the spec manages it."""

    @classmethod
    def of(cls, declared: Subnet | None, record: SubnetRecord | None) -> JoinedSubnet | None:
        """Return what is known of a subnet; None if nothing is."""
        cidr = declared.cidr if declared and declared.cidr else record and record.cidr
        if not cidr:
            return None
        gateway = record.gateway_ip if record else None
        if declared and (record is None or declared.gateway_ip is not None):
            gateway = declared.gateway(is_new=record is None)
        return cls(
            name=declared.name if declared else record.name if record else "",
            cidr=cidr,
            gateway=gateway,
            network=declared.network if declared else None,
            is_declared=bool(declared and declared.cidr),
            id=record.id if record else "",
            network_id=record.network_id if record else "",
        )

    def overlaps(self, cidr: str) -> bool:
        return ip_network(self.cidr).overlaps(ip_network(cidr))

    def refused_gateway(self) -> Iterator[tuple[str, str]]:
        """Yield why a new interface cannot get the gateway address, and the fix."""
        if self.gateway is None:
            what = f"subnet/{self.name} has no gateway_ip, which the interface gets"
            yield what, "set gateway_ip there, or leave it out"
        elif ip_address(self.gateway) not in ip_network(self.cidr):  # Neutron 29.0.0, ipam_backend_mixin.py
            what = f"the gateway {self.gateway} of subnet/{self.name} is outside {self.cidr}"
            yield what, "correct gateway_ip there, or take the interface out of the router"


@dataclass(frozen=True)
class RouterNeighbours(FromContext):
    """The related resources of a router in its project."""

    subnets: tuple[Subnet, ...] = ()
    """Those of its interfaces that the spec declares."""
    routers: tuple[Router, ...] = ()
    """Those before it in the order of keys, so that one of two reports what both do."""
    ports: tuple[Port, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Router(HasCascades, AsksForAddresses, NetworkResource[RouterRecord]):
    """A router of the project.

    Declared interfaces are ensured; interfaces that others added are kept, and prevent destroy from deleting the
    router.
    """

    kind: ClassVar[str] = "router"
    collection: ClassVar[str] = "routers"
    member: ClassVar[str] = "router"
    immutable: ClassVar[frozenset[str]] = frozenset({"distributed", "ha"})
    defaults: ClassVar[Values] = {"admin_state_up": True, "enable_snat": True, "distributed": False, "ha": False}

    name: Name
    """Name of the router, unique in its project."""
    external_network: Name | None = None
    """Name of the external network of its gateway."""
    external_fixed_ips: tuple[Address, ...] | None = None
    """Addresses of its gateway on the external network; only administrators may set them."""
    enable_snat: bool | None = None
    """Whether it performs source NAT; only administrators may set this."""
    interfaces: tuple[Name, ...] | None = None
    """Names of subnets of the project to attach; the router gets the gateway address of each."""
    routes: tuple[Route, ...] | None = None
    """Static routes, all of them; their next hops are in its subnets."""
    distributed: bool | None = None
    """Whether it is distributed over all compute nodes; only administrators may set this."""
    ha: bool | None = None
    """Whether it is highly available; only administrators may set this."""
    admin_state_up: bool | None = None
    """Administrative state: whether it forwards packets."""
    neighbours: RouterNeighbours = field(default=RouterNeighbours(), repr=False)
    """The related resources, which ``resolve`` finds in the spec."""

    @classmethod
    def read(cls, raw: Raw) -> RouterRecord:
        return RouterRecord.read(raw)

    def references(self) -> Iterable[Resource]:
        yield from super().references()
        yield from self._subnets().values()
        if self.external_network:
            yield ExternalNetwork(name=self.external_network)

    def needs(self) -> Iterable[Key]:
        return (*super().needs(), *((subnets_on(self.external_network),) if self.external_network else ()))

    def yields_to(self) -> Iterable[Key]:
        if self.external_network and not self.external_fixed_ips:
            yield given_addresses(self.external_network)

    def quota_need(self, run: CloudRun, changes: Sequence[Change] | None) -> Mapping[str, int]:
        needed = {**super().quota_need(run, changes), "ports": added(self, "interfaces", changes)}
        return needed | ({"router_routes": len(self.routes or ())} if is_new_value("routes", changes) else {})

    def provides(self) -> Iterable[Key]:
        yield self.key
        yield routers_of(self.place)
        if self.external_network and self.external_fixed_ips:
            yield given_addresses(self.external_network)

    @property
    def asked_addresses(self) -> tuple[str, ...]:
        return self.external_fixed_ips or ()

    def _subnets(self) -> dict[str, Subnet]:
        return {name: self.sibling(Subnet, name) for name in self.interfaces or ()}

    def desired(self) -> Values:
        values = super().desired()
        for unordered in ("external_fixed_ips", *LATER):
            if unordered in values:
                values[unordered] = frozenset(values[unordered])
        return values

    def list_mistakes(self, context: Context) -> Iterable[Mistake]:
        for name in ("external_fixed_ips", "enable_snat"):
            if getattr(self, name) is not None and not self.external_network:
                what = f"{name} only applies together with external_network"
                yield self.mistake(what, "set external_network", Code.SPEC_CONTRADICTION, name)
        yield from super().list_mistakes(context)
        for one, other in itertools.combinations(self._joined_subnets(context), 2):
            if ip_network(str(one.cidr)).overlaps(ip_network(str(other.cidr))):
                what = f"{one.cidr} of {one.key} overlaps {other.cidr} of {other.key}"
                yield self.mistake(what, "change one cidr, or use two routers", Code.SPEC_CONTRADICTION, "interfaces")
        if not (context.for_plan or self.adopt):  # a plan knows which interfaces exist: those keep their addresses
            new = (
                JoinedSubnet.of(joined_subnet, None)
                for joined_subnet in self._joined_subnets(context)
                if not joined_subnet.adopt
            )
            for subnet in filter(None, new):
                for what, fix in subnet.refused_gateway():
                    yield self.mistake(what, fix, Code.SPEC_CONTRADICTION, "interfaces")

    def _joined_subnets(self, context: Context) -> list[Subnet]:
        declared = {each.name: each for each in self.of_project(context.declared(Subnet)) if each.cidr}
        return [declared[name] for name in dict.fromkeys(self.interfaces or ()) if name in declared]

    def resolve(self, context: Context) -> Sequence[Router]:
        if self.neighbours != RouterNeighbours():
            return (self,)
        routers, ports = context.declared(Router), context.declared(Port)
        related = RouterNeighbours(
            subnets=tuple(self._joined_subnets(context)),
            routers=tuple(each for each in self.of_project(routers) if each.key < self.key),
            ports=tuple(self.of_project(ports)),
        )
        return (replace(self, neighbours=related),)

    # --- checks: what Neutron refuses in the gateway, and in interfaces and routes that are new -----------------
    # Source: Neutron 29.0.0, db/l3_db.py (_add_interface_by_subnet, _check_for_dup_router_subnets, _validate_gw_info),
    # db/extraroute_db.py (_validate_routes_nexthop).

    def check(self, run: CloudRun, observed: Observed | None) -> Iterable[Mistake]:
        record = observed.record_as(RouterRecord) if observed else None
        present = observed.values.get("interfaces", ()) if observed else ()
        mine = self._interface_subnets(run)
        new = [each for each in mine if each.name not in present]
        external = self._external_subnets(run, record) if new else []
        joined = [
            joined_record
            for joined_record in self._joined_records(run, record)
            if joined_record.name not in {one.name for one in mine}
        ]
        refused = [*self._refused_interfaces(run, new), *self._refused_overlaps(new, [*mine, *joined], external)]
        yield from (self.mistake(what, fix, Code.SPEC_CONTRADICTION, "interfaces") for what, fix in refused)
        if self.routes and (observed is None or observed.values.get("routes") != frozenset(self.routes)):
            routes = self._refused_routes(run, record, [*mine, *joined])
            yield from (self.mistake(what, fix, Code.SPEC_CONTRADICTION, "interfaces") for what, fix in routes)
        yield from self._check_gateway(run, record)

    def _interface_subnets(self, run: CloudRun) -> list[JoinedSubnet]:
        """Return the subnets of its interfaces, as the spec declares them, or else as they exist."""
        declared = {each.name: each for each in self.neighbours.subnets}
        found = []
        for name, reference in self._subnets().items():
            observed = None if name in declared and run.find_project_id(self.owner) is None else run.look(reference)
            record = observed.record_as(SubnetRecord) if observed else None
            if joined := JoinedSubnet.of(declared.get(name), record):
                found.append(joined)
        return found

    def _joined_records(self, run: CloudRun, record: RouterRecord | None) -> list[JoinedSubnet]:
        """Return the subnets of the project in which the router has an interface already."""
        listed = Subnet.listing(run, record.project_id) if record else ()
        return [
            replace(found, is_managed=run.ownership.manages(each.name, each.description))
            for each in listed
            if record and each.id in record.joined and (found := JoinedSubnet.of(None, each))
        ]

    def _external_subnets(self, run: CloudRun, record: RouterRecord | None) -> list[queries.Block]:
        """Return the subnets on the network of its gateway."""
        named = run.find_id(ExternalNetwork(name=self.external_network)) if self.external_network else None
        network_id = named or (record.gateway_network_id if record else None)
        return [*queries.subnets_of(run, network_id)] if network_id else []

    def _refused_interfaces(self, run: CloudRun, new: Sequence[JoinedSubnet]) -> Iterator[tuple[str, str]]:
        """Yield why an interface of a subnet cannot get its gateway address."""
        for subnet in new:
            yield from subnet.refused_gateway()
            for router in self.neighbours.routers:
                found = run.look(router)
                if subnet.name in (router.interfaces or ()) and subnet.name not in (
                    found.values.get("interfaces", ()) if found else ()
                ):
                    what = f"{router.key} gets the gateway address of subnet/{subnet.name}, too"
                    yield what, "leave the interface to one of the two routers"
            for port in self.neighbours.ports:
                if port.network == subnet.network and subnet.gateway in {
                    fixed_ip.address for fixed_ip in port.fixed_ips or ()
                }:
                    what = f"{port.key} has {subnet.gateway}, the gateway of subnet/{subnet.name}"
                    yield what, "give the port another address"
            yield from self._refused_holders(run, subnet)

    def _refused_holders(self, run: CloudRun, subnet: JoinedSubnet) -> Iterator[tuple[str, str]]:
        """Yield which existing port has the gateway address of a subnet, as far as these credentials see it."""
        for port in queries.ports_on(run, subnet.network_id) if subnet.network_id else ():
            held = {fixed_ip.ip_address for fixed_ip in port.fixed_ips if fixed_ip.subnet_id == subnet.id}
            if subnet.gateway not in held:
                continue
            if port.device_owner in INTERFACES:
                router = queries.named(run, "routers", "router", port.device_id)
                what = f"router {router} has {subnet.gateway}, the gateway of subnet/{subnet.name}"
                yield what, "leave the interface to that router, or remove it there"
            elif port.name not in {each.name for each in self.neighbours.ports}:
                what = f"port {port.name} {port.id} has {subnet.gateway}, the gateway of subnet/{subnet.name}"
                yield what, "give that port another address, or delete it"

    def _removal(self, joined: JoinedSubnet) -> str:
        """Return the command that removes an interface which the spec does not declare, as one more way.

        Machines in a subnet of somebody else would be cut off by it.
        """
        if joined.name in (self.interfaces or ()):
            return ""
        if not joined.is_managed:
            return f", or ask whoever has added subnet {joined.id}, which this spec does not manage, to take it out"
        return f", or first run: {shell.join(['openstack', 'router', 'remove', 'subnet', self.name, joined.id])}"

    def _refused_overlaps(
        self, new: Sequence[JoinedSubnet], others: Sequence[JoinedSubnet], external: Sequence[queries.Block]
    ) -> Iterator[tuple[str, str]]:
        """Yield which subnets of the router overlap, apart from declared ones, which validate compares."""
        for one in new:
            for other in others:
                is_earlier = other in new and other.name >= one.name
                if is_earlier or (one.is_declared and other.is_declared) or not one.overlaps(other.cidr):
                    continue
                what = f"{one.cidr} of subnet/{one.name} overlaps {other.cidr} of subnet/{other.name}"
                yield what, "use two routers, or another subnet" + self._removal(other)
            for block in external:
                if one.overlaps(block.cidr):
                    what = f"{one.cidr} of subnet/{one.name} overlaps {block.cidr} of the external network"
                    yield what, "choose another cidr, or another external_network"

    def _refused_routes(
        self, run: CloudRun, record: RouterRecord | None, mine: Sequence[JoinedSubnet]
    ) -> Iterator[tuple[str, str]]:
        """Yield the next hops that no interface of the router reaches, and those that are the router itself."""
        if {*(self.interfaces or ())} - {each.name for each in mine}:
            return
        known = {each.id for each in mine}
        if record and record.joined - known:  # of other projects, which may reach the next hop
            return
        own = (
            {interface_address.ip_address for interface_address in _interface_addresses(run, record)}
            if record
            else set()
        )
        own |= {each.gateway or "" for each in mine if not (record and each.id in record.joined)}  # it will get these
        own |= {*(record.gateway_addresses if record else ()), *(self.external_fixed_ips or ())}
        for hop in dict.fromkeys(route.nexthop for route in self.routes or ()):
            if hop in own:
                yield f"the next hop {hop} is the router itself", "write the address of another router"
            elif not any(ip_address(hop) in ip_network(each.cidr) for each in mine):
                has_gateway = self.external_network or (record and record.gateway_network_id)
                external = self._external_subnets(run, record)
                if has_gateway and not external:  # a member does not see them unless the network is shared
                    continue
                if not any(ip_address(hop) in ip_network(each.cidr) for each in external):
                    yield f"the next hop {hop} is in no subnet of the router", "add its subnet to interfaces"

    def _check_gateway(self, run: CloudRun, record: RouterRecord | None) -> Iterator[Mistake]:
        """Yield the given addresses of its gateway that the external network does not offer."""
        name = self.external_network
        network_id = run.find_id(ExternalNetwork(name=name)) if name and self.external_fixed_ips else None
        if not (name and network_id):
            return
        present = record.gateway_addresses if record else ()
        new = [
            external_fixed_ip for external_fixed_ip in self.external_fixed_ips or () if external_fixed_ip not in present
        ]
        if len(new) > 1:
            external_addresses.ask_for_holders(run, network_id, new)
        for address in new:
            for what, fix, code in external_addresses.refused(run, name, network_id, address):
                yield self.mistake(what, fix, code, "external_fixed_ips")

    # --- the router itself ----------------------------------------------------------------

    def maker(self, run: CloudRun) -> tuple[Cloud, dict[str, str]]:
        if all(getattr(self, field) is None for field in ADMINISTRATORS):
            return super().maker(run)
        return run.admin, {"project_id": run.id(self.owner)} if self.owner else {}

    def body(self, run: CloudRun, values: Raw) -> Values:
        body = {name: value for name, value in values.items() if name not in (*LATER, *GATEWAY)}
        if values.keys() & set(GATEWAY) and self.external_network:
            gateway: dict[str, object] = {"network_id": run.id(ExternalNetwork(name=self.external_network))}
            if self.enable_snat is not None:
                gateway["enable_snat"] = self.enable_snat
            if self.external_fixed_ips is not None:
                gateway["external_fixed_ips"] = [
                    {"ip_address": address} for address in dict.fromkeys(self.external_fixed_ips)
                ]
            body["external_gateway_info"] = gateway
        return body

    def values(self, run: CloudRun, record: RouterRecord) -> Values:
        network, joined = record.gateway_network_id, _joined(run, record)
        return super().values(run, record) | {
            "external_network": network and queries.external_network_name(run, network),
            "external_fixed_ips": frozenset(record.gateway_addresses),
            "enable_snat": record.enable_snat,
            "routes": frozenset(record.routes),
            "interfaces": frozenset(
                name for name, subnet in self._subnets().items() if _ids_of(run, subnet, record.project_id) & joined
            ),
        }

    @classmethod
    def in_words(cls, run: CloudRun, record: RouterRecord) -> Values:
        names = {each.id: each.name for each in Subnet.listing(run, record.project_id)}
        joined = sorted(names.get(each, each) for each in _joined(run, record))
        network = record.gateway_network_id
        return {
            "external_network": network and queries.external_network_name(run, network),
            "interfaces": tuple(joined) or None,
            "routes": record.routes or None,
        }

    def outputs(self, record: RouterRecord) -> dict[str, str]:
        addresses = ", ".join(record.gateway_addresses)
        return {"gateway": addresses} if addresses else {}

    def use(self, run: CloudRun, record: RouterRecord) -> Use:
        return of_router(run, record, self._own_subnets(run, record.project_id))

    def observe(self, run: CloudRun, record: RouterRecord) -> Observed:
        return super().observe(run, replace(record, joined=_joined(run, record)))

    # --- its interfaces, and the routes through them ---------------------------------------

    def create(self, run: CloudRun) -> Observed:
        observed = super().create(run)
        return self.update(run, observed, [Change(name, None, None) for name in LATER if name in self.desired()])

    def update(self, run: CloudRun, observed: Observed, changes: Sequence[Change]) -> Observed:
        is_off = observed.record_as(RouterRecord).enable_snat is False
        if self.enable_snat is None and is_off and any(change.field in GATEWAY for change in changes):
            # left out of a gateway, Neutron sets its default (29.0.0, db/l3_gwmode_db.py, _get_enable_snat)
            return replace(self, enable_snat=False).update(run, observed, changes)
        present = observed.values["interfaces"]
        own = [change for change in changes if change.field not in LATER]
        if own:
            observed = super().update(run, observed, own)
        cloud, _ = self.maker(run)
        missing = [subnet for name, subnet in sorted(self._subnets().items()) if name not in present]
        for subnet in missing:
            cloud.network.put(f"/routers/{observed.id}/add_router_interface", {"subnet_id": run.id(subnet)}, once=True)
        if any(change.field == "routes" for change in changes):
            routes = [vars(route) for route in dict.fromkeys(self.routes or ())]  # Neutron refuses them in a POST
            before = observed.record_as(RouterRecord)
            seen = self._with_routes(cloud, observed, before.routes) if missing else before
            self.put(run, replace(observed, record=seen), {"routes": routes})
        return replace(observed, values={**observed.values, **self.desired()})

    def check_delete(self, run: CloudRun, observed: Observed, going: frozenset[str]) -> Iterable[Mistake]:
        foreign = interfaces_of(run, observed.id) - self._own(run, observed) - going
        if foreign:
            what = f"has interfaces in subnets that this spec does not manage: {', '.join(sorted(foreign))}"
            yield self.mistake(what, "remove them first", Code.STILL_USED)
        for user in blockers_of_router(run, observed.id, going):
            yield self.mistake(f"{user} needs the router", "detach or delete it first", Code.STILL_USED)

    def delete(self, run: CloudRun, observed: Observed) -> None:
        cloud, _ = self.maker(run)
        record = observed.record_as(RouterRecord)
        if record.routes:
            self.put(run, observed, {"routes": []})
        interfaces = sorted(record.joined & self._own(run, observed))
        for subnet_id in interfaces:
            remove_interface(cloud, observed.id, {"subnet_id": subnet_id})
        if record.gateway_network_id:
            # Neutron 29.0.0 would compare the revision again after it has removed the gateway, which changes it
            # (db/l3_db.py, _delete_current_gw_port: a copy of the context), and answer 412 with the gateway gone
            self._with_routes(cloud, observed, ())
            cloud.network.delete(f"/routers/{observed.id}")
            return
        seen = self._with_routes(cloud, observed, ()) if record.routes or interfaces else record
        super().delete(run, replace(observed, record=seen))

    def _with_routes(self, cloud: Cloud, observed: Observed, routes: Collection[Route]) -> RouterRecord:
        """Return the router as it is now; raises CloudError (412) if it has other routes, or another owner.

        Its interfaces are part of its revision (Neutron 29.0.0, db/models/l3.py, RouterPort.revises_on_change), so that
        of a router whose interfaces this run has changed is read again.
        """
        now = self.again(cloud, observed)
        if now is None:
            raise NotFound(f"{self.key} {observed.id} was deleted meanwhile")
        if set(now.routes) != set(routes) or now.description != observed.record_as(RouterRecord).description:
            raise changed(f"router {observed.id}")
        return now

    @classmethod
    def scan_tagged(cls, run: CloudRun, owner: Resource | None) -> Iterator[tuple[Self, Observed]]:
        """Yield the routers of ``scan`` with what the spec surely added: others may have added the rest, and routes."""
        for declared, observed in cls.scan(run, owner):
            record = observed.record_as(RouterRecord)
            listed = Subnet.listing(run, record.project_id)
            managed = (each.name for each in listed if each.id in record.joined and _is_managed(run, each))
            yield replace(declared, interfaces=tuple(sorted(managed)) or None, routes=None), observed

    def _own(self, run: CloudRun, observed: Observed) -> frozenset[str]:
        """Return the ids of subnets whose interfaces are deleted with the router: declared ones, and tagged ones."""
        return self._own_subnets(run, observed.record_as(RouterRecord).project_id)

    def _own_subnets(self, run: CloudRun, project_id: str) -> frozenset[str]:
        declared = {found.id for subnet in self._subnets().values() if (found := run.look(subnet))}
        listed = Subnet.listing(run, project_id)
        return frozenset(declared | {each.id for each in listed if _is_managed(run, each)})


def _is_managed(run: CloudRun, subnet: SubnetRecord) -> bool:
    return run.ownership.manages(subnet.name, subnet.description)


def _ids_of(run: CloudRun, subnet: Subnet, project_id: str) -> frozenset[str]:
    """Return the id of the subnet with a name; all ids if the name is not unique in a project that no spec created."""
    try:
        found = run.look(subnet)
    except NotUnique:
        return frozenset(each.id for each in Subnet.listing(run, project_id) if each.name == subnet.name)
    return frozenset({found.id} if found else ())


def _joined(run: CloudRun, router: RouterRecord) -> frozenset[str]:
    """Return the ids of the subnets in which a router has an interface."""
    return frozenset(fixed.subnet_id for fixed in _interface_addresses(run, router))


def _interface_addresses(run: CloudRun, router: RouterRecord) -> Iterator[FixedIP]:
    """Yield the addresses of a router in its subnets: an interface that was joined by port has any of them."""
    ports = queries.router_interfaces(run, router.project_id, INTERFACES)
    return (fixed for port in ports if port.device_id == router.id for fixed in port.fixed_ips)
