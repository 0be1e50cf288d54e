"""Floating IPs."""

from __future__ import annotations

from tests.light.neutron.crud import Kind, bump, find, fresh, owner, register
from tests.light.neutron.ports import PORTS, add_port
from tests.light.neutron.routers import INTERFACE
from tests.light.state import Cloud
from tests.light.table import Row
from tests.light.web import Json, Refused, Request

DETACHED: Json = {"port_id": None, "fixed_ip_address": None, "router_id": None, "status": "DOWN"}


def _make(asked: Request, given: Json) -> Row:
    cloud, project_id, address = asked.cloud, owner(asked, given), given.get("floating_ip_address")
    if address:
        asked.only_admin()
    network = cloud.networks.rows.get(given.get("floating_network_id", ""))
    if network is None or not network["router:external"]:
        message = f"Network {given.get('floating_network_id')} is not a valid external network"
        raise Refused(400, f"Bad floatingip request: {message}.", "BadRequest")
    row = fresh(ADDRESSES, project_id, {name: value for name, value in given.items() if name != "port_id"})
    device: Json = {"device_id": row["id"], "device_owner": "network:floatingip", "port_security_enabled": False}
    wanted = {"fixed_ips": [{"ip_address": address}]} if address else {}
    port = add_port(cloud, network, "", device | wanted)
    row["floating_ip_address"] = port["fixed_ips"][0]["ip_address"]
    if given.get("port_id"):
        row |= _attached(asked, row, given["port_id"])
    return cloud.floating_ips.add(row)


def _attached(asked: Request, row: Row, port_id: str) -> Json:
    """Return the fields of a floating IP on a port, which a router must reach."""
    cloud, port = asked.cloud, find(PORTS, asked, port_id)
    if cloud.floating_ips.having("port_id", port_id).keys() - {row["id"]}:
        message = f"Cannot associate floating IP {row['floating_ip_address']} with port {port_id}: it has one already."
        raise Refused(409, message, "FloatingIPPortAlreadyAssociated")
    fixed = port["fixed_ips"][0]
    router_id = _router(cloud, fixed["subnet_id"], row["floating_network_id"])
    if router_id is None:
        message = f"External network {row['floating_network_id']} is not reachable from subnet {fixed['subnet_id']}."
        raise Refused(404, message, "ExternalGatewayForFloatingIPNotFound")
    place = {"fixed_ip_address": fixed["ip_address"], "router_id": router_id}
    return {"port_id": port_id, "status": "ACTIVE", **place}


def _router(cloud: Cloud, subnet_id: str, network_id: str) -> str | None:
    for port in cloud.ports.having("fixed_ips", f"subnet_id={subnet_id}").values():
        if port["device_owner"] == INTERFACE:
            gateway = cloud.routers.rows[port["device_id"]]["external_gateway_info"] or {}
            if gateway.get("network_id") == network_id:
                return str(port["device_id"])
    return None


def _change(asked: Request, row: Row, given: Json) -> None:
    if "port_id" in given:
        port_id = given["port_id"]
        given = given | (_attached(asked, row, port_id) if port_id else DETACHED)
    bump(asked.cloud.floating_ips, row, given)


def _delete(asked: Request, row: Row) -> None:
    cloud = asked.cloud
    for port in list(cloud.ports.having("device_id", row["id"]).values()):
        cloud.ports.remove(port)
    cloud.floating_ips.remove(row)


ADDRESSES = Kind(
    collection="floatingips",
    member="floatingip",
    what="FloatingIP",
    table=lambda cloud: cloud.floating_ips,
    defaults={
        "floating_ip_address": None,
        "floating_network_id": None,
        "router_id": None,
        "port_id": None,
        "fixed_ip_address": None,
        "status": "DOWN",
        "qos_policy_id": None,
        "port_details": None,
        "port_forwardings": [],
    },
    make=_make,
    change=_change,
    delete=_delete,
)

register(ADDRESSES)
