"""Ports, and which addresses are free."""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Iterable

from tests.light.neutron.crud import Kind, bump, find, fresh, owner, register
from tests.light.neutron.networks import NETWORKS
from tests.light.neutron.security_groups import ensure_default
from tests.light.state import Cloud
from tests.light.table import Row
from tests.light.web import Json, Refused, Request

_macs = itertools.count(1)


# --- addresses ----------------------------------------------------------------------------


def is_taken(cloud: Cloud, network_id: str, address: str) -> bool:
    return bool(cloud.ports.having("place", f"{network_id}/{address}"))


def subnet_of(cloud: Cloud, network: Row, address: str) -> Row | None:
    subnets = (cloud.subnets.rows[each] for each in network["subnets"])
    parsed = ipaddress.ip_address(address)
    return next((each for each in subnets if parsed in ipaddress.ip_network(each["cidr"])), None)


def choose(cloud: Cloud, network: Row, given: Iterable[Json] | None) -> list[Json]:
    """Return the addresses of a new port on a network: those asked for, or else the next free one."""
    if given is None:
        return [_next_of(cloud, network, network["subnets"])] if network["subnets"] else []
    return [_asked_for(cloud, network, each) for each in given]


def _asked_for(cloud: Cloud, network: Row, given: Json) -> Json:
    address = given.get("ip_address")
    if address is None:
        return _next_of(cloud, network, [given["subnet_id"]])
    subnet = cloud.subnets.rows.get(given["subnet_id"]) if "subnet_id" in given else subnet_of(cloud, network, address)
    if subnet is None:
        message = f"IP address {address} is not a valid IP for any of the subnets on the specified network."
        raise Refused(400, message, "InvalidIpForNetwork")
    if is_taken(cloud, network["id"], address):
        message = f"IP address {address} already allocated in subnet {subnet['id']}"
        raise Refused(409, message, "IpAddressAlreadyAllocated")
    return {"subnet_id": subnet["id"], "ip_address": address}


def _next_of(cloud: Cloud, network: Row, subnet_ids: Iterable[str]) -> Json:
    """Return the next free address in pools, each searched from where the last search ended."""
    for subnet_id in subnet_ids:
        for pool in cloud.subnets.rows[subnet_id]["allocation_pools"]:
            first, last = (ipaddress.ip_address(pool[end]) for end in ("start", "end"))
            size, place = int(last) - int(first) + 1, f"{subnet_id}/{first}"
            begin = cloud.next_address.get(place, 0)
            for step in range(size):
                number = (begin + step) % size
                address = str(first + number)
                if not is_taken(cloud, network["id"], address):
                    cloud.next_address[place] = number + 1
                    return {"subnet_id": subnet_id, "ip_address": address}
    message = f"No more IP addresses available on network {network['id']}."
    raise Refused(409, message, "IpAddressGenerationFailure")


# --- ports --------------------------------------------------------------------------------


def add_port(cloud: Cloud, network: Row, project_id: str, given: Json, revision: int = 1) -> Row:
    """Add a port; ``fixed_ips`` in what is given are those that are asked for."""
    number = next(_macs)
    mac = "fa:16:3e:" + ":".join(f"{number >> shift & 255:02x}" for shift in (16, 8, 0))
    addresses = choose(cloud, network, given.get("fixed_ips"))
    values = {"mac_address": given.get("mac_address") or mac, "fixed_ips": addresses, "network_id": network["id"]}
    return cloud.ports.add(fresh(PORTS, project_id, given | values, revision_number=revision))


def _make(asked: Request, given: Json) -> Row:
    cloud, project_id = asked.cloud, owner(asked, given)
    network = find(NETWORKS, asked, given.get("network_id", ""))
    secured = given.get("port_security_enabled", network["port_security_enabled"])
    given = given | {"port_security_enabled": secured}
    if "security_groups" not in given:
        given["security_groups"] = [ensure_default(cloud, project_id)["id"]] if secured else []
    return add_port(cloud, network, project_id, given)


def _change(asked: Request, row: Row, given: Json) -> None:
    cloud = asked.cloud
    if "fixed_ips" in given:
        network = cloud.networks.rows[row["network_id"]]
        kept = [each for each in row["fixed_ips"] if _is_among(each, given["fixed_ips"])]
        new = [each for each in given["fixed_ips"] if not any(_is_among(old, [each]) for old in kept)]
        given = given | {"fixed_ips": kept + choose(cloud, network, new)}
    bump(cloud.ports, row, given)


def _is_among(present: Json, given: Iterable[Json]) -> bool:
    return any(present.items() >= each.items() for each in given)


def _delete(asked: Request, row: Row) -> None:
    if row["device_owner"].startswith("network:router"):
        message = (
            f"Port {row['id']} cannot be deleted directly via the port API: has device owner {row['device_owner']}."
        )
        raise Refused(409, message, "ServicePortInUse")
    cloud = asked.cloud
    for each in list(cloud.floating_ips.having("port_id", row["id"]).values()):
        detached = {"port_id": None, "fixed_ip_address": None, "router_id": None, "status": "DOWN"}
        bump(cloud.floating_ips, each, detached)
    cloud.ports.remove(row)


PORTS = Kind(
    collection="ports",
    member="port",
    what="Port",
    table=lambda cloud: cloud.ports,
    defaults={
        "name": "",
        "network_id": None,
        "mac_address": None,
        "admin_state_up": True,
        "status": "ACTIVE",
        "device_id": "",
        "device_owner": "",
        "fixed_ips": [],
        "allowed_address_pairs": [],
        "extra_dhcp_opts": [],
        "security_groups": [],
        "binding:vnic_type": "normal",
        "binding:profile": {},
        "binding:host_id": "",
        "binding:vif_type": "unbound",
        "binding:vif_details": {},
        "port_security_enabled": True,
        "qos_policy_id": None,
        "qos_network_policy_id": None,
        "resource_request": None,
        "ip_allocation": "immediate",
    },
    make=_make,
    change=_change,
    delete=_delete,
    hidden=frozenset(
        {"binding:profile", "binding:host_id", "binding:vif_type", "binding:vif_details", "resource_request"}
    ),
)

register(PORTS)
