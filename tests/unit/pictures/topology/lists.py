"""The lists of a project with two meshed clusters of RKE2, as the APIs answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from openstack_prep.pictures.topology.project_topology import Lists
from openstack_prep.resources.lists.neutron_records import (
    FloatingIPRecord,
    NetworkRecord,
    PortRecord,
    RouterRecord,
    SubnetRecord,
)
from openstack_prep.resources.lists.nova_records import ServerRecord
from tests.unit.conftest import port_row, subnet_row

PROJECT = "p"
FOREIGN = {"id": "e", "name": "external", "project_id": "admin", "router:external": True}


def fixed(subnet: str, *addresses: str) -> list[dict[str, str]]:
    return [{"subnet_id": subnet, "ip_address": each} for each in addresses]


def server(cluster: int, role: str, index: int, **fields: Any) -> dict[str, Any]:
    name = f"cluster{cluster}-{role}-{index}"
    of_stack = {"role": role, "cluster": f"cluster{cluster}", "node_flavor": "x"}
    return {"id": f"id-{name}", "name": name, "status": "ACTIVE", "metadata": of_stack} | fields


def port(cluster: int, name: str, *addresses: str, pairs: tuple[str, ...] = (), **fields: Any) -> dict[str, Any]:
    allowed = [{"ip_address": each, "mac_address": "fa:16:3e:00:00:01"} for each in pairs]
    own = {"id": f"port-{name}", "name": name, "network_id": f"n{cluster}", "allowed_address_pairs": allowed}
    return port_row(**own, fixed_ips=fixed(f"s{cluster}", *addresses)) | fields


Rows = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Answers:
    project_id: str
    networks: Rows
    subnets: Rows
    routers: Rows
    ports: Rows
    floating_ips: Rows
    servers: Rows

    @property
    def lists(self) -> Lists:
        return Lists(
            project_id=self.project_id,
            networks=list(map(NetworkRecord.read, self.networks)),
            subnets=list(map(SubnetRecord.read, self.subnets)),
            routers=list(map(RouterRecord.read, self.routers)),
            ports=list(map(PortRecord.read, self.ports)),
            floating_ips=list(map(FloatingIPRecord.read, self.floating_ips)),
            servers=list(map(ServerRecord.read, self.servers)),
        )


def mesh() -> Answers:
    servers, ports, floating = [], [], []
    for number in (1, 2):
        start = f"10.{number}.0"
        for index in range(5):
            role = "server" if index < 3 else "agent"
            made = server(number, role, index % 3)
            pairs = (f"{start}.208/29", *((f"{start}.5/32",) if index < 3 else ()))
            of_server = {"device_id": made["id"], "device_owner": "compute:nova"}
            ports.append(port(number, made["name"], f"{start}.1{index}", pairs=pairs, **of_server))
            servers.append(made)
        ports.append(port(number, f"cluster{number}-api", f"{start}.5"))
        tag = f"[openstack-prep:mesh/mesh{number}]"
        reserved = {"device_owner": "openstack-prep:reserved", "description": tag}
        ports += (port(number, f"mesh{number}-{start}.{last}", f"{start}.{last}", **reserved) for last in (208, 209))
        interface = {"device_owner": "network:router_interface", "device_id": "r"}
        ports.append(port(number, "", f"{start}.1", **interface, id=f"interface{number}"))
        ports.append(port(number, "", f"{start}.2", device_owner="network:dhcp", device_id="dhcp", id=f"dhcp{number}"))
        attached = {"floating_ip_address": f"192.0.2.1{number}", "port_id": f"port-cluster{number}-api"}
        floating.append({"id": f"f{number}", "floating_network_id": "e", "description": "", **attached})
    gateway = {"network_id": "e", "external_fixed_ips": [{"ip_address": "192.0.2.9"}]}
    own = [{"id": f"n{each}", "name": f"nodes{each}", "project_id": PROJECT} for each in (1, 2)]
    return Answers(
        project_id=PROJECT,
        networks=[FOREIGN, *own],
        subnets=[subnet_row(id=f"s{n}", name=f"v{n}", network_id=f"n{n}", cidr=f"10.{n}.0.0/24") for n in (1, 2)],
        routers=[{"id": "r", "name": "mesh", "external_gateway_info": gateway, "routes": []}],
        ports=ports,
        floating_ips=floating,
        servers=servers,
    )
