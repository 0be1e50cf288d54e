"""Routers and their gateways."""

from __future__ import annotations

from tests.light.neutron.crud import Kind, bump, fresh, owner, register
from tests.light.neutron.ports import add_port
from tests.light.state import Cloud
from tests.light.table import Row
from tests.light.web import Json, Refused, Request

GATEWAY = "network:router_gateway"
INTERFACE = "network:router_interface"
ADMINISTRATORS = frozenset({"distributed", "ha"})


def interfaces(cloud: Cloud, router_id: str) -> list[Row]:
    """Return the ports that a router has in subnets."""
    ports = cloud.ports.having("device_id", router_id).values()
    return [each for each in ports if each["device_owner"] == INTERFACE]


def _make(asked: Request, given: Json) -> Row:
    if given.keys() & ADMINISTRATORS:
        asked.only_admin()
    cloud, project_id = asked.cloud, owner(asked, given)
    gateway = given.get("external_gateway_info")
    row = fresh(ROUTERS, project_id, given | {"external_gateway_info": None}, revision_number=1)
    if gateway:
        row |= {"external_gateway_info": _open(asked, row["id"], gateway), "revision_number": 2}
    return cloud.routers.add(row)


def _open(asked: Request, router_id: str, given: Json) -> Json:
    """Make the port of a gateway and return what the router says of it."""
    cloud = asked.cloud
    if given.keys() & {"external_fixed_ips", "enable_snat"}:
        asked.only_admin()
    network = cloud.networks.rows.get(given["network_id"])
    if network is None or not network["router:external"]:
        message = f"Bad router request: Network {given['network_id']} is not an external network."
        raise Refused(400, message, "BadRequest")
    wanted = {"fixed_ips": given["external_fixed_ips"]} if given.get("external_fixed_ips") else {}
    device = {"device_id": router_id, "device_owner": GATEWAY, "port_security_enabled": False}
    port = add_port(cloud, network, "", device | wanted)
    snat = given.get("enable_snat", True)
    return {"network_id": network["id"], "external_fixed_ips": port["fixed_ips"], "enable_snat": snat}


def _close(cloud: Cloud, router_id: str) -> None:
    for port in list(cloud.ports.having("device_id", router_id).values()):
        if port["device_owner"] == GATEWAY:
            cloud.ports.remove(port)


def _change(asked: Request, row: Row, given: Json) -> None:
    if given.keys() & ADMINISTRATORS:
        asked.only_admin()
    if "external_gateway_info" in given:
        gateway = given["external_gateway_info"] or None
        if gateway is None and asked.cloud.floating_ips.having("router_id", row["id"]):
            message = (
                f"Gateway cannot be updated for router {row['id']}, since a gateway to external network is required"
            )
            raise Refused(409, message, "RouterExternalGatewayInUseByFloatingIp")
        _close(asked.cloud, row["id"])
        given = given | {"external_gateway_info": gateway and _open(asked, row["id"], gateway)}
    bump(asked.cloud.routers, row, given)


def _delete(asked: Request, row: Row) -> None:
    if interfaces(asked.cloud, row["id"]):
        raise Refused(409, f"Router {row['id']} still has ports", "RouterInUse")
    _close(asked.cloud, row["id"])
    asked.cloud.routers.remove(row)


ROUTERS = Kind(
    collection="routers",
    member="router",
    what="Router",
    table=lambda cloud: cloud.routers,
    defaults={
        "name": "",
        "admin_state_up": True,
        "status": "ACTIVE",
        "external_gateway_info": None,
        "availability_zones": [],
        "distributed": False,
        "ha": False,
        "availability_zone_hints": [],
        "routes": [],
        "flavor_id": None,
    },
    make=_make,
    change=_change,
    delete=_delete,
    hidden=ADMINISTRATORS,
)

register(ROUTERS)
