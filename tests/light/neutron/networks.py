"""Networks and subnets."""

from __future__ import annotations

import ipaddress
import itertools

from tests.light.neutron.crud import Kind, bump, find, fresh, owner, register
from tests.light.neutron.security_groups import ensure_default
from tests.light.state import Cloud
from tests.light.table import Row
from tests.light.web import Json, Refused, Request

AUTOMATIC = ("network:dhcp", "network:distributed")
PROVIDER = ("provider:network_type", "provider:physical_network", "provider:segmentation_id")
_numbers = itertools.count(16385)


# --- networks -----------------------------------------------------------------------------


def _make_network(asked: Request, given: Json) -> Row:
    if given.keys() & {*PROVIDER, "shared", "router:external"}:
        asked.only_admin()
    project_id = owner(asked, given)
    ensure_default(asked.cloud, project_id)
    return add_network(asked.cloud, project_id, given)


def add_network(cloud: Cloud, project_id: str, given: Json) -> Row:
    if "provider:network_type" not in given:
        given = given | {"provider:network_type": "geneve", "provider:segmentation_id": next(_numbers)}
    return cloud.networks.add(fresh(NETWORKS, project_id, given, revision_number=1, subnets=[]))


def _change_network(asked: Request, row: Row, given: Json) -> None:
    if given.keys() & {*PROVIDER, "shared", "router:external"}:
        asked.only_admin()
    bump(asked.cloud.networks, row, given)


def _delete_network(asked: Request, row: Row) -> None:
    cloud = asked.cloud
    ports = cloud.ports.having("network_id", row["id"]).values()
    if any(each["device_owner"] not in AUTOMATIC for each in ports):
        message = f"Unable to complete operation on network {row['id']}. There are one or more ports still in use."
        raise Refused(409, message, "NetworkInUse")
    for each in list(ports):
        cloud.ports.remove(each)
    for subnet_id in row["subnets"]:
        cloud.subnets.remove(cloud.subnets.rows[subnet_id])
    cloud.networks.remove(row)


NETWORKS = Kind(
    collection="networks",
    member="network",
    what="Network",
    table=lambda cloud: cloud.networks,
    defaults={
        "name": "",
        "admin_state_up": True,
        "mtu": 1442,
        "status": "ACTIVE",
        "subnets": [],
        "shared": False,
        "availability_zone_hints": [],
        "availability_zones": [],
        "ipv4_address_scope": None,
        "ipv6_address_scope": None,
        "router:external": False,
        "qinq": False,
        "vlan_transparent": False,
        "port_security_enabled": True,
        "qos_policy_id": None,
        "l2_adjacency": True,
        **dict.fromkeys(PROVIDER),
    },
    make=_make_network,
    change=_change_network,
    delete=_delete_network,
    everybodys=(("shared", "true"), ("router:external", "true")),
    hidden=frozenset(PROVIDER),
)


# --- subnets ------------------------------------------------------------------------------

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _make_subnet(asked: Request, given: Json) -> Row:
    network = find(NETWORKS, asked, given.get("network_id", ""), to_write=True)
    return add_subnet(asked.cloud, network, given)


def add_subnet(cloud: Cloud, network: Row, given: Json) -> Row:
    try:
        whole = ipaddress.ip_network(given["cidr"])
    except (KeyError, ValueError):
        raise Refused(400, f"Invalid input for cidr: {given.get('cidr')!r}") from None
    for subnet_id in network["subnets"]:
        other = cloud.subnets.rows[subnet_id]
        if whole.overlaps(ipaddress.ip_network(other["cidr"])):
            message = f"Requested subnet with cidr: {whole} overlaps with another subnet ({other['cidr']})."
            raise Refused(400, f"Invalid input for operation: {message}", "InvalidInput")
    gateway = given.get("gateway_ip", str(whole[1]))
    pools = given.get("allocation_pools") or _pools(whole, gateway)
    values = {"gateway_ip": gateway, "allocation_pools": pools, "router:external": network["router:external"]}
    row = cloud.subnets.add(fresh(SUBNETS, network["project_id"], given | values))
    bump(cloud.networks, network, {"subnets": [*network["subnets"], row["id"]]})
    return row


def _pools(whole: _Network, gateway: str | None) -> list[Json]:
    """Return the ranges of all addresses but that of the gateway, and those of the network and of all its hosts."""
    first, last = int(whole[1]), int(whole[-2])
    kind = type(whole[1])
    if gateway is None or ipaddress.ip_address(gateway) not in whole:
        return [{"start": str(kind(first)), "end": str(kind(last))}]
    middle = int(ipaddress.ip_address(gateway))
    ranges = ((first, middle - 1), (middle + 1, last))
    return [{"start": str(kind(low)), "end": str(kind(high))} for low, high in ranges if low <= high]


def _change_subnet(asked: Request, row: Row, given: Json) -> None:
    bump(asked.cloud.subnets, row, given)


def _delete_subnet(asked: Request, row: Row) -> None:
    cloud = asked.cloud
    ports = cloud.ports.having("fixed_ips", f"subnet_id={row['id']}").values()
    if any(each["device_owner"] not in AUTOMATIC for each in ports):
        message = f"Unable to complete operation on subnet {row['id']}: One or more ports have an IP allocation."
        raise Refused(409, message, "SubnetInUse")
    network = cloud.networks.rows[row["network_id"]]
    bump(cloud.networks, network, {"subnets": [each for each in network["subnets"] if each != row["id"]]})
    cloud.subnets.remove(row)


SUBNETS = Kind(
    collection="subnets",
    member="subnet",
    what="Subnet",
    table=lambda cloud: cloud.subnets,
    defaults={
        "name": "",
        "network_id": None,
        "ip_version": 4,
        "subnetpool_id": None,
        "enable_dhcp": True,
        "ipv6_ra_mode": None,
        "ipv6_address_mode": None,
        "gateway_ip": None,
        "cidr": None,
        "allocation_pools": [],
        "host_routes": [],
        "dns_nameservers": [],
        "router:external": False,
        "service_types": [],
        "segment_id": None,
    },
    make=_make_subnet,
    change=_change_subnet,
    delete=_delete_subnet,
    everybodys=(("router:external", "true"),),
)

register(NETWORKS)
register(SUBNETS)
