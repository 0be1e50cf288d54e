"""Routers, with their external gateway and their interfaces.

Source: Networking API v2.0, "Routers".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from openstack_prep.cloud import Cloud
from openstack_prep.errors import Mistake
from openstack_prep.fields import Address, Name
from openstack_prep.model import Change, Observed, Resource
from openstack_prep.resources import queries
from openstack_prep.resources.network import ExternalNetwork
from openstack_prep.resources.neutron import NetworkResource
from openstack_prep.resources.subnet import Route, Subnet
from openstack_prep.resources.uses import INTERFACES, Use, of_router
from openstack_prep.site import Site

GATEWAY = ("external_network", "external_fixed_ips", "enable_snat")
"""Fields that Neutron keeps together."""
LATER = ("interfaces", "routes")
"""Fields that a router has only after it was made, one after the other."""
ADMINISTRATORS = ("external_fixed_ips", "enable_snat", "distributed", "ha")
"""Fields that Neutron's policy leaves to administrators."""


@dataclass(frozen=True, kw_only=True)
class Router(NetworkResource):
    """A router of the project.

    Declared interfaces are made sure of; those that others added stay, and keep destroy from
    deleting the router.
    """

    kind: ClassVar[str] = "router"
    collection: ClassVar[str] = "routers"
    member: ClassVar[str] = "router"
    immutable: ClassVar[frozenset[str]] = frozenset({"distributed", "ha"})

    name: Name
    """Name of the router, unique in its project."""
    external_network: Name | None = None
    """Name of the external network that its gateway is on."""
    external_fixed_ips: tuple[Address, ...] | None = None
    """Addresses of its gateway there; an administrator's right."""
    enable_snat: bool | None = None
    """Whether it translates addresses on the way out; an administrator's right."""
    interfaces: tuple[Name, ...] | None = None
    """Names of subnets of the project that it routes; the subnet's gateway address becomes its own."""
    routes: tuple[Route, ...] | None = None
    """Further routes, all of them; their next hops lie in its subnets."""
    distributed: bool | None = None
    """Whether it runs on every compute node; an administrator's right."""
    ha: bool | None = None
    """Whether another node takes over for it; an administrator's right."""
    admin_state_up: bool | None = None
    """Whether it forwards packets."""

    def references(self) -> Iterable[Resource]:
        yield from super().references()
        yield from self._subnets().values()
        if self.external_network:
            yield ExternalNetwork(name=self.external_network)

    def _subnets(self) -> dict[str, Subnet]:
        return {name: self.sibling(Subnet, name) for name in self.interfaces or ()}

    def desired(self) -> dict[str, Any]:
        values = super().desired()
        for unordered in ("external_fixed_ips", *LATER):
            if unordered in values:
                values[unordered] = frozenset(values[unordered])
        return values

    def check(self, site: Site, observed: Observed | None) -> Iterable[Mistake]:
        for field in ("external_fixed_ips", "enable_snat"):
            if getattr(self, field) is not None and not self.external_network:
                yield self.mistake(f"{field} goes with external_network", "name the external network")

    # --- the router itself ----------------------------------------------------------------

    def maker(self, site: Site) -> tuple[Cloud, dict[str, str]]:
        if all(getattr(self, field) is None for field in ADMINISTRATORS):
            return super().maker(site)
        return site.admin, {"project_id": site.id(self.owner)} if self.owner else {}

    def body(self, site: Site, values: Mapping[str, Any]) -> dict[str, Any]:
        body = {name: value for name, value in values.items() if name not in (*LATER, *GATEWAY)}
        if values.keys() & set(GATEWAY) and self.external_network:
            gateway: dict[str, Any] = {"network_id": site.id(ExternalNetwork(name=self.external_network))}
            if self.enable_snat is not None:
                gateway["enable_snat"] = self.enable_snat
            if self.external_fixed_ips is not None:
                gateway["external_fixed_ips"] = [{"ip_address": address} for address in self.external_fixed_ips]
            body["external_gateway_info"] = gateway
        return body

    def values(self, site: Site, raw: Mapping[str, Any]) -> dict[str, Any]:
        gateway = raw["external_gateway_info"] or {}
        network = site.look(ExternalNetwork(name=self.external_network)) if self.external_network else None
        same = network is not None and network.id == gateway.get("network_id")
        joined = _joined(site, raw)
        return super().values(site, raw) | {
            "external_network": self.external_network if same else gateway.get("network_id"),
            "external_fixed_ips": frozenset(_addresses(raw)),
            "enable_snat": gateway.get("enable_snat"),
            "routes": frozenset(Route(**route) for route in raw["routes"]),
            "interfaces": frozenset(
                name for name, subnet in self._subnets().items() if (found := site.look(subnet)) and found.id in joined
            ),
        }

    @classmethod
    def in_words(cls, site: Site, raw: Mapping[str, Any]) -> dict[str, Any]:
        gateway = raw["external_gateway_info"] or {}
        names = {each["id"]: each["name"] for each in Subnet.listing(site, raw["project_id"])}
        joined = sorted(names.get(each, each) for each in _joined(site, raw))
        network = gateway.get("network_id")
        return {
            "external_network": network and queries.external_network_name(site, network),
            "enable_snat": gateway.get("enable_snat"),
            "interfaces": tuple(joined) or None,
            "routes": tuple(Route(**route) for route in raw["routes"]) or None,
        }

    def outputs(self, raw: Mapping[str, Any]) -> dict[str, str]:
        addresses = ", ".join(_addresses(raw))
        return {"gateway": addresses} if addresses else {}

    def use(self, site: Site, raw: Mapping[str, Any]) -> Use:
        return of_router(site, raw, self._own_subnets(site, raw["project_id"]))

    def observe(self, site: Site, raw: Mapping[str, Any]) -> Observed:
        observed = super().observe(site, raw)
        return replace(observed, handle={**raw, "joined": _joined(site, raw)})

    # --- its interfaces, and the routes through them ---------------------------------------

    def create(self, site: Site) -> Observed:
        observed = super().create(site)
        return self.update(site, observed, [Change(name, None, None) for name in LATER if name in self.desired()])

    def update(self, site: Site, observed: Observed, changes: Sequence[Change]) -> Observed:
        there = observed.values["interfaces"]
        own = [change for change in changes if change.field not in LATER]
        if own:
            observed = super().update(site, observed, own)
        cloud, _ = self.maker(site)
        for name, subnet in sorted(self._subnets().items()):
            if name not in there:
                interface = {"subnet_id": site.id(subnet)}
                cloud.network.put(f"/routers/{observed.id}/add_router_interface", interface, once=True)
        if any(change.field == "routes" for change in changes):
            routes = [vars(route) for route in self.routes or ()]  # Neutron refuses them in a POST
            cloud.network.put(f"/routers/{observed.id}", {"router": {"routes": routes}})
        return replace(observed, values={**observed.values, **self.desired()})

    def check_delete(self, site: Site, observed: Observed, going: frozenset[str]) -> Iterable[Mistake]:
        foreign = observed.handle["joined"] - self._own(site, observed) - going
        if foreign:
            holds = f"has interfaces in subnets that this spec did not make: {', '.join(sorted(foreign))}"
            yield self.mistake(holds, "remove them first")

    def delete(self, site: Site, observed: Observed) -> None:
        cloud, _ = self.maker(site)
        if observed.handle["routes"]:
            cloud.network.put(f"/routers/{observed.id}", {"router": {"routes": []}})
        for subnet_id in sorted(observed.handle["joined"] & self._own(site, observed)):
            body = {"subnet_id": subnet_id}
            cloud.network.put(f"/routers/{observed.id}/remove_router_interface", body, once=True)
        super().delete(site, observed)

    def _own(self, site: Site, observed: Observed) -> frozenset[str]:
        """Return the ids of subnets whose interfaces go with the router: declared ones, and those with our mark."""
        return self._own_subnets(site, observed.handle["project_id"])

    def _own_subnets(self, site: Site, project_id: str) -> frozenset[str]:
        declared = {found.id for subnet in self._subnets().values() if (found := site.look(subnet))}
        listed = Subnet.listing(site, project_id)
        return frozenset(declared | {raw["id"] for raw in listed if site.mark.owns(raw["description"])})


def _addresses(raw: Mapping[str, Any]) -> list[str]:
    """Return the addresses of a router's gateway."""
    return [each["ip_address"] for each in (raw["external_gateway_info"] or {}).get("external_fixed_ips", ())]


def _joined(site: Site, raw: Mapping[str, Any]) -> frozenset[str]:
    """Return the ids of the subnets that a router has an interface in."""
    ports = queries.router_interfaces(site, raw["project_id"], INTERFACES)
    joined = (port["fixed_ips"] for port in ports if port["device_id"] == raw["id"])
    return frozenset(fixed["subnet_id"] for each in joined for fixed in each)
