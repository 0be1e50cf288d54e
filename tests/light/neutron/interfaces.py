"""Interfaces of routers in subnets."""

from __future__ import annotations

from tests.light.apis import NETWORK
from tests.light.neutron.crud import bump, find
from tests.light.neutron.networks import SUBNETS
from tests.light.neutron.ports import PORTS, add_port
from tests.light.neutron.routers import INTERFACE, ROUTERS, interfaces
from tests.light.table import Row
from tests.light.web import Answer, Json, Refused, Request


def _given(asked: Request) -> tuple[str, str]:
    """Return which of subnet_id and port_id is given, and its value."""
    for name in ("subnet_id", "port_id"):
        if b'"%s"' % name.encode() in asked.body:
            return name, asked.json(name)
    raise Refused(400, "Bad router request: Either subnet_id or port_id must be specified.", "BadRequest")


def _answer(router: Row, port: Row) -> Answer:
    ids = [each["subnet_id"] for each in port["fixed_ips"]]
    found: Json = {"id": router["id"], "project_id": router["project_id"], "port_id": port["id"]}
    return Answer(200, found | {"network_id": port["network_id"], "subnet_id": ids[0], "subnet_ids": ids})


@NETWORK.on("PUT", "/v2.0/routers/{}/add_router_interface")
def add_interface(asked: Request, router_id: str) -> Answer:
    cloud, router = asked.cloud, find(ROUTERS, asked, router_id, to_write=True)
    name, value = _given(asked)
    device = {"device_id": router_id, "device_owner": INTERFACE}
    if name == "port_id":
        port = find(PORTS, asked, value, to_write=True)
        if port["device_id"]:
            raise Refused(409, f"Port {value} is in use by device {port['device_id']}", "PortInUse")
        bump(cloud.ports, port, device)
    else:
        port = _in_subnet(asked, router, find(SUBNETS, asked, value), device)
    bump(cloud.routers, router)
    return _answer(router, port)


def _in_subnet(asked: Request, router: Row, subnet: Row, device: Json) -> Row:
    cloud = asked.cloud
    for each in interfaces(cloud, router["id"]):
        if any(fixed["subnet_id"] == subnet["id"] for fixed in each["fixed_ips"]):
            message = f"Bad router request: Router already has a port on subnet {subnet['id']}."
            raise Refused(400, message, "BadRequest")
    if not subnet["gateway_ip"]:
        message = f"Bad router request: Subnet for router interface must have a gateway IP: {subnet['id']}."
        raise Refused(400, message, "BadRequest")
    address = {"subnet_id": subnet["id"], "ip_address": subnet["gateway_ip"]}
    given = device | {"fixed_ips": [address], "port_security_enabled": False}
    network = cloud.networks.rows[subnet["network_id"]]
    return add_port(cloud, network, router["project_id"], given, revision=2)


@NETWORK.on("PUT", "/v2.0/routers/{}/remove_router_interface")
def remove_interface(asked: Request, router_id: str) -> Answer:
    cloud, router = asked.cloud, find(ROUTERS, asked, router_id, to_write=True)
    name, value = _given(asked)
    for port in interfaces(cloud, router_id):
        subnets = [each["subnet_id"] for each in port["fixed_ips"]]
        if value == port["id"] or value in subnets:
            _check_floating(asked, router, subnets)
            cloud.ports.remove(port)
            bump(cloud.routers, router)
            return _answer(router, port)
    message = f"Router {router_id} has no interface on {name.removesuffix('_id')} {value}."
    raise Refused(404, message, "RouterInterfaceNotFoundForSubnet")


def _check_floating(asked: Request, router: Row, subnets: list[str]) -> None:
    cloud = asked.cloud
    for each in cloud.floating_ips.having("router_id", router["id"]).values():
        port = cloud.ports.rows[each["port_id"]]
        if any(fixed["subnet_id"] in subnets for fixed in port["fixed_ips"]):
            message = f"Router interface for subnet {subnets[0]} on router {router['id']} cannot be deleted, as it is "
            raise Refused(409, f"{message}required by one or more floating IPs.", "RouterInterfaceInUseByFloatingIP")
