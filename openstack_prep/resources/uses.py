"""Who uses a network, subnet, router, group, floating IP or image of which there are twins; read only then.

Source: Networking API v2.0, "Ports", "Floating IPs".  A network's DHCP and metadata ports go with it
(neutron/db/db_base_plugin_v2.py, AUTO_DELETE_PORT_OWNERS); a router's interfaces and the ports that
reserve addresses go when their owner carries our tag.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from openstack_prep.cloud import Cloud
from openstack_prep.errors import NotAllowed, ResourceFailed
from openstack_prep.resources import queries, reserved_ports
from openstack_prep.resources.port import ports_of
from openstack_prep.site import Site, query

INTERFACES = (
    "network:router_interface",
    "network:router_interface_distributed",
    "network:ha_router_replicated_interface",
)
"""What owns the ports of interfaces: plain, distributed and highly available routers'."""
AUTOMATIC = ("network:dhcp", "network:distributed")
"""What owns the ports that Neutron deletes together with a network or subnet."""

Raw = Mapping[str, Any]


@dataclass(frozen=True)
class Use:
    """``others`` names what others have there, ``own`` what carries our tag and is deleted with it."""

    others: tuple[str, ...] = ()
    own: tuple[Raw, ...] = ()

    @property
    def holds(self) -> frozenset[str]:
        return frozenset(raw["id"] for raw in self.own)


def of_network(site: Site, network: Raw) -> Use:
    """Return the use of a network: its ports and its subnets."""
    subnets = _subnets_on(site, network["id"])
    foreign = [raw for raw in subnets if not site.mark.owns(raw["description"])]
    own = [raw for raw in subnets if raw not in foreign]
    ports = _of_ports(site, network, queries.ports_on(site, network["id"]))
    named = (f"subnet {raw['name']} {raw['id']}" for raw in foreign)
    return Use((*named, *ports.others), (*ports.own, *own))


def of_subnet(site: Site, subnet: Raw) -> Use:
    """Return the use of a subnet: the ports that have addresses there."""
    ports = queries.ports_on(site, subnet["network_id"])
    here = [port for port in ports if any(each["subnet_id"] == subnet["id"] for each in port["fixed_ips"])]
    return _of_ports(site, subnet, here)


def of_group(site: Site, group: Raw) -> Use:
    """Return the use of a security group: ports, and rules of ours."""
    ports = [port for port in ports_of(site, group["project_id"]) if group["id"] in port["security_groups"]]
    rules = [rule for rule in group["security_group_rules"] if site.mark.owns(rule["description"])]
    return Use(tuple(map(_shown, ports)), tuple(rules))


def of_router(site: Site, router: Raw, own_subnets: Iterable[str]) -> Use:
    """Return the use of a router: floating IPs behind it, and its interfaces."""
    served = [raw for raw in _addresses_behind(site, router["id"]) if raw["port_id"]]
    ports = _ports_of_device(site, router["id"])
    interfaces = [port for port in ports if port["device_owner"] in INTERFACES]
    known = set(own_subnets)
    foreign = [port for port in interfaces if not {each["subnet_id"] for each in port["fixed_ips"]} <= known]
    own = [port for port in interfaces if port not in foreign]
    addresses = (f"floating IP {raw['floating_ip_address']}" for raw in served)
    return Use((*addresses, *map(_shown, foreign)), tuple(own))


def of_floating_ip(raw: Raw) -> Use:
    return Use((f"port {raw['port_id']}",) if raw["port_id"] else ())


def of_image(site: Site, image: Raw) -> Use:
    """Return the servers that were booted from an image, as far as our credentials see them."""
    servers = site.admin.compute
    try:
        found = servers.list("/servers", "servers", all_tenants=True, image=image["id"])
    except NotAllowed:
        found = servers.list("/servers", "servers", image=image["id"])
    return Use(tuple(f"server {raw['name']} {raw['id']}" for raw in found))


def clear(cloud: Cloud, use: Use, what: str) -> None:
    """Delete what carries our tag from a network or subnet; refuse when others use it by now."""
    if use.others:
        raise ResourceFailed(f"{what} is now used by {', '.join(use.others)}; it is kept")
    ports = [raw for raw in use.own if "device_owner" in raw]
    for port in ports:
        if port["device_owner"] in INTERFACES:
            path = f"/routers/{port['device_id']}/remove_router_interface"
            cloud.network.put(path, {"port_id": port["id"]}, once=True)
        else:
            headers = {"If-Match": f"revision_number={port['revision_number']}"}
            cloud.network.delete(f"/ports/{port['id']}", headers=headers)
    for subnet in use.own:
        if subnet not in ports:
            cloud.network.delete(f"/subnets/{subnet['id']}")


def _of_ports(site: Site, within: Raw, ports: Sequence[Raw]) -> Use:
    left = [port for port in ports if port["device_owner"] not in AUTOMATIC]
    own = [port for port in left if _is_ours(site, within, port)]
    return Use(tuple(_shown(port) for port in left if port not in own), tuple(own))


def _is_ours(site: Site, within: Raw, port: Raw) -> bool:
    if port["device_owner"] in INTERFACES:
        routers = queries.in_project(site, "routers", "router", within["project_id"])
        return any(raw["id"] == port["device_id"] and site.mark.owns(raw["description"]) for raw in routers)
    return site.mark.owns(port["description"]) and not reserved_ports.use_of(port)


def _shown(port: Raw) -> str:
    owner = f" ({port['device_owner']} {port['device_id']})" if port["device_id"] else ""
    return f"{reserved_ports.shown(port)}{owner}"


@query
def _subnets_on(site: Site, network_id: str) -> Sequence[Raw]:
    return site.admin.network.list("/subnets", "subnets", network_id=network_id)


@query
def _ports_of_device(site: Site, device_id: str) -> Sequence[Raw]:
    return site.admin.network.list("/ports", "ports", device_id=device_id)


@query
def _addresses_behind(site: Site, router_id: str) -> Sequence[Raw]:
    return site.admin.network.list("/floatingips", "floatingips", router_id=router_id)
