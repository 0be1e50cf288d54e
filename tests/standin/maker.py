"""Makes, stage by stage, what the installer makes; by the project's own credentials.

Tags of Neutron's things come by a second request, a moment after the thing itself.
"""

from __future__ import annotations

import base64
import ipaddress
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from openstack import exceptions
from openstack.connection import Connection

from tests.devcloud.qcow2 import qcow2
from tests.standin.recipe import Recipe
from tests.standin.rules import DESCRIPTION, rules

MICROVERSION = "2.64"
ACTIVE_SECONDS = 120
IGNITION = 308_233
"""Bytes of the bootstrap machine's ignition."""
USER_DATA = {"master": 1704, "bootstrap": 741}
"""Bytes of a machine's user data, before base64."""
BY_CAPI = "Created by cluster-api-provider-openstack cluster"


class Maker:
    """One cluster being made; ``pause`` takes a share (0 to 1) of the time that all of it shall take."""

    def __init__(
        self, connection: Connection, recipe: Recipe, *, pause: Callable[[float], None], servers: bool = True
    ) -> None:
        self.neutron: Any = connection.network
        self.nova: Any = connection.compute
        self.glance: Any = connection.image
        self.recipe, self.pause, self.servers = recipe, pause, servers
        self.groups: dict[str, str] = {}
        self.server_groups: dict[str, str] = {}
        self.made: dict[str, str] = {}
        """Ids by name of ports and servers."""
        self.network_id = self.subnet_id = self.external_id = ""

    # --- stages, in the installer's order -------------------------------------------------

    def make_image(self) -> None:
        if self.recipe.image is None and self.servers:
            self._upload("rhcos", qcow2(1), "qcow2")

    def make_groups(self) -> None:
        for role in ("master", "worker"):
            body = {"name": f"{self.recipe.infra_id}-{role}", "description": DESCRIPTION}
            self.groups[role] = self._create("security_group", **body)["id"]
        for role in ("master", "worker"):
            more = {"schedulable": self.recipe.schedulable}
            bodies = rules(role, self.groups[role], self.recipe.machine_network, **more)
            _insist(self.neutron.post("/security-group-rules", json={"security_group_rules": bodies}))
        for role in self.recipe.server_groups:
            body = {"name": f"{self.recipe.infra_id}-{role}", "policy": "soft-anti-affinity"}
            answer = self.nova.post("/os-server-groups", json={"server_group": body}, microversion=MICROVERSION)
            self.server_groups[role] = _insist(answer)["server_group"]["id"]

    def make_network(self) -> None:
        """Make a network, or take the user's own, which stays without a tag."""
        recipe = self.recipe
        if recipe.external_network is not None:
            self.external_id = self.neutron.find_network(recipe.external_network, ignore_missing=False).id
        if recipe.own_subnet:
            subnet = self.neutron.find_subnet(recipe.own_subnet, ignore_missing=False)
            self.network_id, self.subnet_id = subnet.network_id, subnet.id
            return
        more = [] if recipe.capi else [f"{recipe.infra_id}-primaryClusterNetwork"]
        self.network_id = self._create("network", *more, name=recipe.network)["id"]
        self.subnet_id = self._create("subnet", **self._subnet())["id"]
        if recipe.external_network is None:
            return
        gateway = {"network_id": self.external_id}
        router = self._create("router", name=recipe.router, external_gateway_info=gateway, **self._by())
        body = {"subnet_id": self.subnet_id}
        _insist(self.neutron.put(f"/routers/{router['id']}/add_router_interface", json=body))

    def _subnet(self) -> dict[str, Any]:
        recipe = self.recipe
        body = {
            "name": recipe.subnet,
            "network_id": self.network_id,
            "ip_version": 4,
            "cidr": recipe.machine_network,
            "dns_nameservers": list(recipe.external_dns),
            **self._by(),
        }
        if not recipe.capi:  # Terraform's leaves the virtual addresses out of the pool
            machines = ipaddress.ip_network(recipe.machine_network)
            last = min(16000, machines.num_addresses - 2)
            body["allocation_pools"] = [{"start": str(machines[10]), "end": str(machines[last])}]
        return body

    def _by(self) -> dict[str, str]:
        made_by = (
            f"Created by cluster-api-provider-openstack cluster openshift-cluster-api-guests-{self.recipe.infra_id}"
        )
        return {"description": made_by} if self.recipe.capi else {}

    def make_virtual_ports(self) -> None:
        roles = {"api-port": "master", "ingress-port": "worker"}
        for name, address in self.recipe.vips.items():
            if name not in roles:
                continue
            # Cluster API's ask for no group, so Neutron gives them the project's default one
            groups = {} if self.recipe.capi else {"security_groups": [self.groups[roles[name]]]}
            self._port(f"{self.recipe.infra_id}-{name}", address=address, description=DESCRIPTION, **groups)
        self.pause(0.02)

    def attach_floating_ips(self) -> None:
        """Attach the user's floating IPs as the installer does: by a plain update, without a mark."""
        for name, address in self.recipe.attached.items():
            if address:
                (found,) = self.neutron.ips(floating_ip_address=address)
                body = {"floatingip": {"port_id": self.made[f"{self.recipe.infra_id}-{name}"]}}
                _insist(self.neutron.put(f"/floatingips/{found.id}", json=body))
                self.pause(0.02)

    def make_ignition(self) -> None:
        if self.recipe.release >= 4 and self.servers:
            self._upload("ignition", b" " * IGNITION, "raw")

    def make_machines(self, *, masters: bool = True, bootstrap: bool = True) -> None:
        """Make masters and bootstrap machine in any order, as controllers do that work side by side."""
        recipe = self.recipe
        names = [(f"{recipe.infra_id}-bootstrap", recipe.bootstrap_port, "bootstrap")] if bootstrap else []
        for number in range(recipe.masters if masters else 0):
            names.append((f"{recipe.infra_id}-master-{number}", recipe.master_port(number), "master"))
        random.shuffle(names)
        for each in names:
            self._machine(*each)

    def expose_bootstrap(self) -> None:
        """Make the bootstrap machine's floating IP, some time after all machines are ready."""
        recipe = self.recipe
        self.wait_for_servers()
        self.pause(0.1)
        if self.external_id:
            body = {
                "floating_network_id": self.external_id,
                "port_id": self.made[recipe.bootstrap_port],
                "description": f"{recipe.infra_id}-bootstrap-fip",
            }
            self._create("floatingip", **body)

    def remove_bootstrap(self) -> None:
        """Remove what only the bootstrap machine needed, found by name: another run may have made it."""
        recipe, tag = self.recipe, self.recipe.tag
        for image in self.glance.images(name=f"{recipe.infra_id}-ignition", tag=tag):
            self.glance.delete_image(image)
        for floating_ip in self.neutron.ips(tags=tag, description=f"{recipe.infra_id}-bootstrap-fip"):
            self.neutron.delete_ip(floating_ip)
        for server in servers_of(self.nova, recipe.infra_id):
            if server.name == f"{recipe.infra_id}-bootstrap":
                self.nova.delete_server(server)
                self.nova.wait_for_delete(server, interval=0.2, wait=ACTIVE_SECONDS)
        self.pause(0.1)
        for port in self.neutron.ports(tags=tag, name=recipe.bootstrap_port):
            self.neutron.delete_port(port)

    def make_workers(self) -> None:
        """Make what machine-api makes from inside the cluster."""
        for number in range(self.recipe.workers):
            machine = self.recipe.worker(number)
            self._machine(machine, self.recipe.worker_port(machine), "worker")

    # --- how ------------------------------------------------------------------------------

    def _create(self, kind: str, /, *more_tags: str, **body: Any) -> dict[str, Any]:
        """Make something of Neutron, and tag it a moment later."""
        plural = f"{kind.replace('_', '-')}s"
        made: dict[str, Any] = _insist(self.neutron.post(f"/{plural}", json={kind: body}))[kind]
        self.pause(0.01)
        tags = {"tags": [self.recipe.tag, *more_tags]}
        _insist(self.neutron.put(f"/{plural}/{made['id']}/tags", json=tags))
        return made

    def _port(self, name: str, *, address: str = "", **body: Any) -> str:
        where = {"subnet_id": self.subnet_id} | ({"ip_address": address} if address else {})
        made = self._create("port", name=name, network_id=self.network_id, fixed_ips=[where], **body)
        self.made[name] = made["id"]
        return str(made["id"])

    def _machine(self, name: str, port_name: str, role: str) -> None:
        """Make a machine's port, then its server."""
        group = self.groups["worker" if role == "worker" else "master"]
        pairs = [{"ip_address": each} for each in self.recipe.vips.values()]
        made_by = {"description": f"{BY_CAPI} {self.recipe.infra_id}"}
        port = self._port(
            port_name,
            security_groups=[group],
            allowed_address_pairs=pairs,
            **(made_by if self.recipe.capi else {}),
        )
        if not self.servers:
            return
        server: dict[str, Any] = {
            "name": name,
            "flavorRef": self._flavor(role),
            "imageRef": self._image(),
            "networks": [{"port": port}],
            "metadata": {"Name": f"{self.recipe.infra_id}-{role}", "openshiftClusterID": self.recipe.infra_id},
            "tags": [self.recipe.tag],
        }
        if role in USER_DATA:
            server["user_data"] = base64.b64encode(b" " * USER_DATA[role]).decode()
        body = {"server": server}
        if role in self.server_groups:
            body["os:scheduler_hints"] = {"group": self.server_groups[role]}
        answer = _insist(self.nova.post("/servers", json=body, microversion=MICROVERSION))
        self.made[name] = answer["server"]["id"]

    def _flavor(self, role: str) -> str:
        name = (self.recipe.worker_flavor if role == "worker" else "") or self.recipe.flavor
        return str(self.nova.find_flavor(name, ignore_missing=False).id)

    def _image(self) -> str:
        name = self.recipe.image or f"{self.recipe.infra_id}-rhcos"
        return str(self.glance.find_image(name, ignore_missing=False).id)

    def _upload(self, what: str, data: bytes, disk_format: str) -> None:
        """Upload an image by two plain requests: the SDK's own way would add properties of its own."""
        body = {
            "name": f"{self.recipe.infra_id}-{what}",
            "disk_format": disk_format,
            "container_format": "bare",
            "visibility": "shared" if self.recipe.capi else "private",
            "tags": [self.recipe.tag],
        }
        image = _insist(self.glance.post("/images", json=body))
        stream = {"Content-Type": "application/octet-stream"}
        exceptions.raise_from_response(self.glance.put(f"/images/{image['id']}/file", data=data, headers=stream))

    def wait_for_servers(self) -> None:
        """Wait until all servers of the cluster are ACTIVE."""
        deadline = time.monotonic() + ACTIVE_SECONDS
        while not_yet := [each for each in servers_of(self.nova, self.recipe.infra_id) if each.status != "ACTIVE"]:
            if any(each.status == "ERROR" for each in not_yet) or time.monotonic() > deadline:
                raise exceptions.SDKException(f"servers are not ACTIVE: {[each.name for each in not_yet]}")
            time.sleep(0.3)


def servers_of(nova: Any, infra_id: str) -> Sequence[Any]:
    """Return the servers whose metadata says that they belong to the cluster."""
    return [each for each in nova.servers() if each.metadata.get("openshiftClusterID") == infra_id]


def _insist(answer: Any) -> Any:
    exceptions.raise_from_response(answer)
    return answer.json()
