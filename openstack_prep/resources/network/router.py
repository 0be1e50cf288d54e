"""Routers, with their external gateway and their interfaces.

Source: Networking API v2.0, "Routers".
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, ClassVar

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, NotFound, NotUnique
from openstack_prep.base.fields import Address, Name
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.deletion_loss import Deletion, Finding
from openstack_prep.core.model import Change, Context, FromContext, Key, Observed, Resource
from openstack_prep.resources.cascades import row as cascades
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.neutron_records import INTERFACES, Route, RouterRecord
from openstack_prep.resources.network.declared_port import Port
from openstack_prep.resources.network.network import ExternalNetwork, given_addresses, routers_of, subnets_on
from openstack_prep.resources.network.neutron import NetworkResource, added, changed
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
class RouterNeighbours(FromContext):
    """The related resources of a router in its project."""

    subnets: tuple[Subnet, ...] = ()
    """Those of its interfaces that the spec declares."""
    routers: tuple[Router, ...] = ()
    """Those before it in the order of keys, so that one of two reports what both do."""
    ports: tuple[Port, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Router(NetworkResource[RouterRecord]):
    """A router of the project.

    Declared interfaces are ensured; interfaces that others added are kept, and prevent destroy from deleting the
    router.
    """

    kind: ClassVar[str] = "router"
    collection: ClassVar[str] = "routers"
    member: ClassVar[str] = "router"
    immutable: ClassVar[frozenset[str]] = frozenset({"distributed", "ha"})

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
        return {**super().quota_need(run, changes), "ports": added(self, "interfaces", changes)}

    def provides(self) -> Iterable[Key]:
        yield self.key
        yield routers_of(self.place)
        if self.external_network and self.external_fixed_ips:
            yield given_addresses(self.external_network)

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
        for one, other in itertools.combinations(self._joined_subnets(context), 2):
            if ip_network(str(one.cidr)).overlaps(ip_network(str(other.cidr))):
                what = f"{one.cidr} of {one.key} overlaps {other.cidr} of {other.key}"
                yield self.mistake(what, "change one cidr, or use two routers", Code.SPEC_CONTRADICTION, "interfaces")

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

    # --- checks: what Neutron refuses in interfaces and routes that are new -----------------
    # Source: Neutron 29.0.0, db/l3_db.py (_add_interface_by_subnet, _check_for_dup_router_subnets),
    # db/extraroute_db.py (_validate_routes_nexthop).

    def check(self, run: CloudRun, observed: Observed | None) -> Iterable[Mistake]:
        present = observed.values.get("interfaces", ()) if observed else ()
        new = [each for each in self.neighbours.subnets if each.name not in present]
        refused = [*self._refused_interfaces(run, new)]
        if observed is None and self.external_network is None:
            refused += self._refused_routes(new)
        yield from (self.mistake(what, fix, Code.SPEC_CONTRADICTION, "interfaces") for what, fix in refused)

    def _refused_interfaces(self, run: CloudRun, new: Sequence[Subnet]) -> Iterator[tuple[str, str]]:
        """Yield why an interface of a subnet cannot get its gateway address."""
        for subnet in new:
            if subnet.gateway_ip is False:
                what = f"{subnet.key} has no gateway_ip, which the interface gets"
                yield what, "set gateway_ip there, or leave it out"
            for router in self.neighbours.routers:
                found = run.look(router)
                if subnet.name in (router.interfaces or ()) and subnet.name not in (
                    found.values.get("interfaces", ()) if found else ()
                ):
                    what = f"{router.key} gets the gateway address of {subnet.key}, too"
                    yield what, "leave the interface to one of the two routers"
            gateway = subnet.gateway(is_new=run.look(subnet) is None)
            for port in self.neighbours.ports:
                if port.network == subnet.network and gateway in {each.address for each in port.fixed_ips or ()}:
                    what = f"{port.key} has {gateway}, the gateway of {subnet.key}"
                    yield what, "give the port another address"

    def _refused_routes(self, mine: Sequence[Subnet]) -> Iterator[tuple[str, str]]:
        """Yield the next hops that no interface of a new router reaches; ``mine``: the declared ones."""
        if len(mine) < len({*(self.interfaces or ())}):
            return
        for hop in dict.fromkeys(route.nexthop for route in self.routes or ()):
            if not any(ip_address(hop) in ip_network(str(subnet.cidr)) for subnet in mine):
                yield f"the next hop {hop} is in no subnet of the router", "add its subnet to interfaces"
            elif hop in {subnet.gateway_ip for subnet in mine}:
                yield f"the next hop {hop} is the router itself", "write the address of another router"

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
                gateway["external_fixed_ips"] = [{"ip_address": address} for address in self.external_fixed_ips]
            body["external_gateway_info"] = gateway
        return body

    def values(self, run: CloudRun, record: RouterRecord) -> Values:
        network = run.look(ExternalNetwork(name=self.external_network)) if self.external_network else None
        same = network is not None and network.id == record.gateway_network_id
        joined = _joined(run, record)
        return super().values(run, record) | {
            "external_network": self.external_network if same else record.gateway_network_id,
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
        present = observed.values["interfaces"]
        own = [change for change in changes if change.field not in LATER]
        if own:
            observed = super().update(run, observed, own)
        cloud, _ = self.maker(run)
        missing = [subnet for name, subnet in sorted(self._subnets().items()) if name not in present]
        for subnet in missing:
            cloud.network.put(f"/routers/{observed.id}/add_router_interface", {"subnet_id": run.id(subnet)}, once=True)
        if any(change.field == "routes" for change in changes):
            routes = [vars(route) for route in self.routes or ()]  # Neutron refuses them in a POST
            before = observed.record_as(RouterRecord)
            seen = self._with_routes(cloud, observed, before.routes) if missing else before
            self.put(run, replace(observed, record=seen), {"routes": routes})
        return replace(observed, values={**observed.values, **self.desired()})

    @classmethod
    def find_losses(cls, run: CloudRun, deletions: Sequence[Deletion], going: frozenset[str]) -> Iterable[Finding]:
        return cascades.find_losses(run, deletions, going)

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

    def _own(self, run: CloudRun, observed: Observed) -> frozenset[str]:
        """Return the ids of subnets whose interfaces are deleted with the router: declared ones, and tagged ones."""
        return self._own_subnets(run, observed.record_as(RouterRecord).project_id)

    def _own_subnets(self, run: CloudRun, project_id: str) -> frozenset[str]:
        declared = {found.id for subnet in self._subnets().values() if (found := run.look(subnet))}
        listed = Subnet.listing(run, project_id)
        return frozenset(declared | {each.id for each in listed if run.ownership.manages(each.name, each.description)})


def _ids_of(run: CloudRun, subnet: Subnet, project_id: str) -> frozenset[str]:
    """Return the id of the subnet with a name; all ids if the name is not unique in a project that no spec created."""
    try:
        found = run.look(subnet)
    except NotUnique:
        return frozenset(each.id for each in Subnet.listing(run, project_id) if each.name == subnet.name)
    return frozenset({found.id} if found else ())


def _joined(run: CloudRun, router: RouterRecord) -> frozenset[str]:
    """Return the ids of the subnets in which a router has an interface."""
    ports = queries.router_interfaces(run, router.project_id, INTERFACES)
    return frozenset(fixed.subnet_id for port in ports if port.device_id == router.id for fixed in port.fixed_ips)
