"""Routers, with their external gateway and their interfaces.

Source: Networking API v2.0, "Routers".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from openstack_prep.errors import Mistake
from openstack_prep.fields import Name
from openstack_prep.model import Change, Observed, Resource
from openstack_prep.resources.network import ExternalNetwork
from openstack_prep.resources.neutron import NetworkResource
from openstack_prep.resources.subnet import Route, Subnet
from openstack_prep.site import Site

INTERFACES = (
    "network:router_interface",
    "network:router_interface_distributed",
    "network:ha_router_replicated_interface",
)


_GATEWAY = ("external_network", "enable_snat")
_LATER = ("interfaces", "routes")


@dataclass(frozen=True, kw_only=True)
class Router(NetworkResource):
    """A router of the project.

    Declared interfaces are made sure of; those that others added stay, and keep destroy from
    deleting the router.
    """

    kind: ClassVar[str] = "router"
    collection: ClassVar[str] = "routers"
    member: ClassVar[str] = "router"

    name: Name
    """Name of the router, unique in its project."""
    external_network: Name | None = None
    """Name of the external network that its gateway is on."""
    enable_snat: bool | None = None
    """Whether it translates addresses on the way out; an administrator's right."""
    interfaces: tuple[Name, ...] | None = None
    """Names of subnets of the project that it routes; the subnet's gateway address becomes its own."""
    routes: tuple[Route, ...] | None = None
    """Further routes."""
    admin_state_up: bool | None = None
    """Whether it forwards packets."""

    def references(self) -> Iterable[Resource]:
        yield from super().references()
        yield from self._subnets()
        if self.external_network:
            yield ExternalNetwork(name=self.external_network)

    def _subnets(self) -> list[Subnet]:
        return [self.sibling(Subnet, name) for name in self.interfaces or ()]

    def desired(self) -> dict[str, Any]:
        values = super().desired()
        if self.interfaces is not None:
            values["interfaces"] = frozenset(self.interfaces)
        return values

    def check(self, site: Site, observed: Observed | None) -> Iterable[Mistake]:
        if self.enable_snat is not None and not self.external_network:
            yield self.mistake("enable_snat goes with external_network", "name the external network")

    # --- the router itself ----------------------------------------------------------------

    def body(self, site: Site, values: Mapping[str, Any]) -> dict[str, Any]:
        body = {name: value for name, value in values.items() if name not in (*_LATER, *_GATEWAY)}
        if values.keys() & set(_GATEWAY) and self.external_network:
            gateway: dict[str, Any] = {"network_id": site.id(ExternalNetwork(name=self.external_network))}
            if self.enable_snat is not None:
                gateway["enable_snat"] = self.enable_snat
            body["external_gateway_info"] = gateway
        return body

    def values(self, site: Site, raw: Mapping[str, Any]) -> dict[str, Any]:
        gateway = raw["external_gateway_info"] or {}
        network = site.look(ExternalNetwork(name=self.external_network)) if self.external_network else None
        same = network is not None and network.id == gateway.get("network_id")
        joined = _joined(site, raw)
        subnets = {name: site.look(subnet) for name, subnet in zip(self.interfaces or (), self._subnets(), strict=True)}
        return super().values(site, raw) | {
            "external_network": self.external_network if same else gateway.get("network_id"),
            "enable_snat": gateway.get("enable_snat"),
            "routes": tuple(Route(**route) for route in raw["routes"]),
            "interfaces": frozenset(name for name, subnet in subnets.items() if subnet and subnet.id in joined),
        }

    def outputs(self, raw: Mapping[str, Any]) -> dict[str, str]:
        fixed = (raw["external_gateway_info"] or {}).get("external_fixed_ips", ())
        return {"gateway": ", ".join(each["ip_address"] for each in fixed)} if fixed else {}

    # --- its interfaces, and the routes through them ---------------------------------------

    def create(self, site: Site) -> Observed:
        observed = super().create(site)
        return self.update(site, observed, [Change(name, None, None) for name in _LATER if name in self.desired()])

    def update(self, site: Site, observed: Observed, changes: Sequence[Change]) -> Observed:
        own = [change for change in changes if change.field not in _LATER]
        if own:
            observed = super().update(site, observed, own)
        joined = self._join(site, observed)
        if self.routes is not None and any(change.field == "routes" for change in changes):
            cloud, _ = site.worker(self.owner)
            body = {"routes": [vars(route) for route in self.routes]}  # Neutron refuses them in a POST
            cloud.network.put(f"/routers/{observed.id}", {"router": body})
        return replace(observed, values=self.desired() | {"interfaces": joined})

    def _join(self, site: Site, observed: Observed) -> frozenset[str]:
        cloud, _ = site.worker(self.owner)
        there: frozenset[str] = observed.values["interfaces"]
        missing = frozenset(self.interfaces or ()) - there
        for name in sorted(missing):
            body = {"subnet_id": site.id(self.sibling(Subnet, name))}
            cloud.network.put(f"/routers/{observed.id}/add_router_interface", body, once=True)
        return there | missing

    def delete(self, site: Site, observed: Observed) -> None:
        cloud, _ = site.worker(self.owner)
        if observed.handle.get("routes"):
            cloud.network.put(f"/routers/{observed.id}", {"router": {"routes": []}})
        for name in observed.values["interfaces"]:
            body = {"subnet_id": site.id(self.sibling(Subnet, name))}
            cloud.network.put(f"/routers/{observed.id}/remove_router_interface", body, once=True)
        super().delete(site, observed)


def _joined(site: Site, raw: Mapping[str, Any]) -> set[str]:
    """Return the ids of the subnets that a router has an interface in."""
    project_id = raw["project_id"]
    ports = site.once(
        ("router interfaces", project_id),
        lambda: site.admin.network.list("/ports", "ports", project_id=project_id, device_owner=list(INTERFACES)),
    )
    return {fixed["subnet_id"] for port in ports if port["device_id"] == raw["id"] for fixed in port["fixed_ips"]}
