"""Networks, routers and nodes' ports as Neutron tells of them."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Any, TypeVar

from openstack_prep.kubernetes.mesh.view import MeshCluster, VisibleNetworks
from openstack_prep.resources.lists.neutron_records import (
    AddressGroupRecord,
    GroupRecord,
    NetworkRecord,
    NeutronRecord,
    PortRecord,
    RouterRecord,
    SubnetRecord,
)

MINE = "project-1"
R = TypeVar("R", bound=NeutronRecord)


def subnet(name: str, cidr: str, network: str = "", **fields: Any) -> dict[str, Any]:
    """A subnet on a network of its own, with the first address for its gateway."""
    block = ipaddress.ip_network(cidr)
    raw = {"id": name, "name": name, "cidr": cidr, "network_id": network or f"net-{name}", "project_id": MINE}
    pool = {"start": str(block[2]), "end": str(block[-2])}
    raw |= {"gateway_ip": str(block[1]), "host_routes": [], "allocation_pools": [pool], "dns_nameservers": []}
    return raw | fields


def interface(router: str, of: dict[str, Any], address: str | None = None) -> dict[str, Any]:
    fixed = [{"subnet_id": of["id"], "ip_address": address or of["gateway_ip"]}]
    return {
        "id": f"{router}-{of['id']}",
        "device_id": router,
        "network_id": of["network_id"],
        "fixed_ips": fixed,
        "mac_address": "fa:16:3e:00:00:02",
        "device_owner": "network:router_interface",
    }


def router(name: str, *routes: tuple[str, str], **fields: Any) -> dict[str, Any]:
    listed = [{"destination": to, "nexthop": hop} for to, hop in routes]
    return {"id": name, "name": name, "routes": listed, "admin_state_up": True, "external_gateway_info": None} | fields


def port(name: str, of: dict[str, Any], address: str, *groups: str, **fields: Any) -> dict[str, Any]:
    raw = {"id": name, "name": name, "network_id": of["network_id"], "security_groups": list(groups)}
    raw |= {
        "mac_address": "fa:16:3e:00:00:01",
        "fixed_ips": [{"subnet_id": of["id"], "ip_address": address}],
        "allowed_address_pairs": [],
    }
    return raw | {"project_id": MINE, "device_id": f"server-{name}", "device_owner": "compute:nova"} | fields


def rule(**fields: Any) -> dict[str, Any]:
    """A rule; by itself it lets in everything of IPv4."""
    empty = ("protocol", "port_range_min", "port_range_max", "remote_ip_prefix", "remote_group_id")
    return {"direction": "ingress", "ethertype": "IPv4", **dict.fromkeys(empty)} | fields


def group(name: str, *rules: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A group that lets everything out."""
    out = [rule(direction="egress", ethertype=each) for each in ("IPv4", "IPv6")]
    return {"id": name, "name": name, "project_id": MINE, "security_group_rules": [*out, *rules]} | fields


def visible(
    *,
    subnets: Sequence[dict[str, Any]] = (),
    interfaces: Sequence[dict[str, Any]] = (),
    routers: Sequence[dict[str, Any]] = (),
    groups: Sequence[dict[str, Any]] = (),
    ports: Sequence[dict[str, Any]] = (),
    address_groups: Sequence[dict[str, Any]] = (),
    networks: Sequence[dict[str, Any]] = (),
    sees_all: bool = False,
) -> VisibleNetworks:
    return VisibleNetworks(
        cloud="mycloud",
        project_id=MINE,
        sees_all=sees_all,
        subnets=_by_id(SubnetRecord, subnets),
        networks=_by_id(NetworkRecord, networks),
        interfaces=list(map(PortRecord.read, interfaces)),
        routers=_by_id(RouterRecord, routers),
        groups=_by_id(GroupRecord, groups),
        address_groups=_by_id(AddressGroupRecord, address_groups),
        ports=list(map(PortRecord.read, ports)),
    )


def _by_id(kind: type[R], listed: Sequence[dict[str, Any]]) -> dict[str, R]:
    return {each["id"]: kind.read(each) for each in listed}


def cluster(name: str, of: dict[str, Any], *ports: dict[str, Any], **fields: Any) -> MeshCluster:
    return MeshCluster(name=name, ports=list(map(PortRecord.read, ports)), subnets=(SubnetRecord.read(of),), **fields)
