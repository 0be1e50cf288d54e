"""Situations of the shipped mesh, whose nodes run: how each is brought about and taken back."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from openstack.exceptions import BadRequestException

from tests.demo import KEY
from tests.devcloud.data_plane import DataPlane
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.qcow2 import qcow2
from tests.functional.conftest import Prep
from tests.packets.machines import Node, from_outside, until, wait_for_network

PASSAGES = Path(__file__).with_name("passages.py")
VXLAN, HEALTH, MESH, API = 8472, 4240, 2379, 6443
HOST = "mesh.example.com"
MESH_ADDRESSES = {"cluster1": "10.1.0.208", "cluster2": "10.2.0.208"}
ALL = "tcp 2379, tcp 4240, udp 8472, icmp"


@dataclass(frozen=True)
class Mesh:
    """Two clusters with two nodes each; the first node of each cluster has the address of the mesh."""

    prep: Prep
    network: Any
    """Neutron, as the administrator."""
    project_id: str
    nodes: Mapping[str, list[Node]]

    def serve(self) -> None:
        for cluster, nodes in self.nodes.items():
            for node in nodes:
                node.answer(self.prep.folder, HEALTH, MESH, API, host=HOST)
                log = self.prep.folder / f"udp-{node.name}.log"
                node.plane.start(node.id, sys.executable, str(PASSAGES), "serve", str(VXLAN), log=log)
            nodes[0].announce(MESH_ADDRESSES[cluster])

    def look(self, *options: str) -> dict[str, Any]:
        """Return what ``rke mesh`` says."""
        words = ("rke", "mesh", *options, "--format", "json", self.prep.spec.name)
        try:
            return dict(json.loads(self.prep.run(*words).stdout))
        except AssertionError:
            return dict(json.loads(self.prep.run(*words, code=1).stdout))

    def lost(self, required: list[dict[str, Any]]) -> set[str]:
        """Send what ``rke mesh`` says is required from each node to each; return what was not always answered."""
        wanted: dict[str, set[str]] = {}
        answered: dict[str, set[str]] = {}
        for source, nodes in self.nodes.items():
            asked = {}
            for each in (each for each in required if each["source"] == source):
                peers = [node.address for node in self.nodes[each["to"]]]
                for address in [each["address"]] if each["target"] == "mesh address" else peers:
                    asked[f"{each['protocol']}:{address}:{each['port'] or 0}"] = _name(each)

            def ask(node: Node, words: Iterable[str] = tuple(asked)) -> list[str]:
                return node.plane.run(node.id, sys.executable, str(PASSAGES), "ask", *words).stdout.split()

            with ThreadPoolExecutor() as pool:
                answers = list(pool.map(ask, nodes))
            for node, passed in zip(nodes, answers, strict=True):
                for word, name in asked.items():
                    wanted.setdefault(name, set()).add(f"{node.name} {word}")
                    if word in passed:
                        answered.setdefault(name, set()).add(f"{node.name} {word}")
        return {name for name, words in wanted.items() if answered.get(name) != words}

    def answers(self, cluster: str, address: str) -> bool:
        """Whether a node of a cluster answers a client outside as the API."""
        plane = self.nodes[cluster][0].plane
        return from_outside(plane, HOST, address, API) in [node.name for node in self.nodes[cluster]]

    def group(self, cluster: str) -> Any:
        (found,) = self.network.security_groups(project_id=self.project_id, name=cluster)
        return found


@contextmanager
def applied(devcloud: Devcloud, folder: Path, name: str, changes: Mapping[str, str]) -> Iterator[Mesh]:
    """Apply a shipped mesh with changes of its text, and start its nodes; in the end it is destroyed."""
    prep = Prep(folder, {"OS_CLIENT_CONFIG_FILE": str(devcloud.clouds_file), "OS_CLOUD": "devcloud-admin"})
    text = (resources.files("openstack_prep.install_configs") / f"{name}.yaml").read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    prep.spec.write_text(text)
    (folder / "disk.qcow2").write_bytes(qcow2(1))
    (folder / "id_ed25519.pub").write_text(KEY)
    prep.apply()
    admin, plane = devcloud.admin, DataPlane(devcloud.layout)
    project = admin.identity.find_project("mesh", ignore_missing=False).id
    nodes: dict[str, list[Node]] = {"cluster1": [], "cluster2": []}
    servers = {each.id: each.name for each in admin.compute.servers(all_projects=True, project_id=project)}
    for port in admin.network.ports(project_id=project):
        if server := servers.get(port.device_id):
            address = port.fixed_ips[0]["ip_address"]
            nodes[server.partition("-")[0]].append(Node(plane, server, port.device_id, address, port.id))
    wait_for_network([node for each in nodes.values() for node in each])
    made = Mesh(prep, admin.network, project, nodes)
    made.serve()
    yield made
    prep.destroy()


def outside_answers(world: Mesh, addresses: Mapping[str, str]) -> bool:
    """Whether each cluster is reached from outside, and each node from those of the other cluster."""
    seen = world.look()
    return seen["findings"] == [] and until(
        lambda: (
            all(world.answers(cluster, address) for cluster, address in addresses.items())
            and not world.lost(seen["required"])
        )
    )


def _name(passage: Mapping[str, Any]) -> str:
    """Return a passage such as 1>2 tcp 4240."""
    ends = f"{passage['source'][-1]}>{passage['to'][-1]}"
    return " ".join(filter(None, (ends, passage["protocol"], str(passage["port"] or ""))))


@dataclass(frozen=True)
class MeshSituation:
    """What is wrong, what ``rke mesh`` says, and which packets are not answered."""

    name: str
    brought_about: Callable[[Mesh], AbstractContextManager[None]]
    codes: str
    lost: frozenset[str]

    def __str__(self) -> str:
        return self.name


MESHES: list[MeshSituation] = []
Steps = Callable[[Mesh], Iterator[None]]


def mesh(name: str, codes: str = "", lost: str = "") -> Callable[[Steps], Steps]:
    """Declare a situation; ``lost`` are passages such as "1>2 tcp 4240, 2>1 icmp", or "all"."""
    every = [f"{ends} {each}" for ends in ("1>2", "2>1") for each in ALL.split(", ")]
    found = every if lost == "all" else [each for each in lost.split(", ") if each]

    def declare(steps: Steps) -> Steps:
        MESHES.append(MeshSituation(name, contextmanager(steps), codes, frozenset(found)))
        return steps

    return declare


@mesh("as applied")
def as_applied(world: Mesh) -> Iterator[None]:
    yield


@contextmanager
def without_rules(world: Mesh, cluster: str, **fields: Any) -> Iterator[None]:
    group = world.group(cluster)
    removed = [
        each for each in group.security_group_rules if all(each[name] == value for name, value in fields.items())
    ]
    assert removed
    for each in removed:
        world.network.delete_security_group_rule(each["id"])
    left = {each["id"] for each in world.group(cluster).security_group_rules}
    yield
    for each in world.group(cluster).security_group_rules:
        if each["id"] not in left:  # a fix has added it
            world.network.delete_security_group_rule(each["id"])
    for each in removed:
        kept = ("direction", "protocol", "port_range_min", "port_range_max", "remote_ip_prefix")
        body = {name: each[name] for name in kept} | {"description": each["description"] or ""}
        world.network.create_security_group_rule(security_group_id=group.id, ether_type=each["ethertype"], **body)


def from_network(number: int, **fields: Any) -> dict[str, Any]:
    return {"direction": "ingress", "remote_ip_prefix": f"10.{number}.0.0/24"} | fields


@mesh("no rule for Cilium's tunnels in one cluster", "security-group.blocks", "1>2 udp 8472")
def no_tunnels(world: Mesh) -> Iterator[None]:
    with without_rules(world, "cluster2", **from_network(1, port_range_min=VXLAN)):
        yield


@mesh("no rule for Cilium's health in one cluster", "security-group.blocks", "2>1 tcp 4240")
def no_health(world: Mesh) -> Iterator[None]:
    with without_rules(world, "cluster1", **from_network(2, port_range_min=HEALTH)):
        yield


@mesh("no rule for ping in one cluster", "security-group.blocks", "1>2 icmp")
def no_ping(world: Mesh) -> Iterator[None]:
    with without_rules(world, "cluster2", **from_network(1, protocol="icmp")):
        yield


@mesh("no rule for clustermesh-apiserver in one cluster", "security-group.blocks", "2>1 tcp 2379")
def no_mesh_api(world: Mesh) -> Iterator[None]:
    with without_rules(world, "cluster1", **from_network(2, port_range_min=MESH)):
        yield


@mesh(
    "no rule for what goes out in one cluster",
    "security-group.blocks",
    "1>2 tcp 2379, 1>2 tcp 4240, 1>2 udp 8472, 1>2 icmp",
)
def nothing_goes_out(world: Mesh) -> Iterator[None]:
    """Answers of connections from the other cluster pass."""
    with without_rules(world, "cluster1", direction="egress"):
        yield


@mesh("a rule for one node of the other cluster", "security-group.blocks", "1>2 tcp 4240")
def rule_for_one_node(world: Mesh) -> Iterator[None]:
    first, _ = world.nodes["cluster1"]
    with without_rules(world, "cluster2", **from_network(1, port_range_min=HEALTH)):
        made = world.network.create_security_group_rule(
            security_group_id=world.group("cluster2").id,
            direction="ingress",
            ether_type="IPv4",
            protocol="tcp",
            port_range_min=HEALTH,
            port_range_max=HEALTH,
            remote_ip_prefix=f"{first.address}/32",
        )
        yield
        world.network.delete_security_group_rule(made)


def router_of(world: Mesh) -> Any:
    (found,) = world.network.routers(project_id=world.project_id)
    return found


@mesh("no interface of the router in one network", "route.missing", "all")
def no_interface(world: Mesh) -> Iterator[None]:
    router = router_of(world)
    (subnet,) = world.network.subnets(project_id=world.project_id, name="nodes2")
    world.network.remove_interface_from_router(router, subnet_id=subnet.id)
    yield
    with suppress(BadRequestException):  # a fix has done so
        world.network.add_interface_to_router(router, subnet_id=subnet.id)


@mesh("the router disabled", "router.disabled", "all")
def router_disabled(world: Mesh) -> Iterator[None]:
    router = router_of(world)
    world.network.update_router(router, admin_state_up=False)
    yield
    world.network.update_router(router, admin_state_up=True)


@mesh("the router without a gateway")
def no_gateway(world: Mesh) -> Iterator[None]:
    """Between the nodes none is needed."""
    router = router_of(world)
    external = router.external_gateway_info["network_id"]
    world.network.update_router(router, external_gateway_info=None)
    yield
    world.network.update_router(router, external_gateway_info={"network_id": external})


@mesh("two routers without routes to each other", "route.missing", "all")
def two_routers(world: Mesh) -> Iterator[None]:
    with apart(world, routes=()):
        yield


@mesh("two routers with a route in one of them alone", "route.missing", "all")
def one_route(world: Mesh) -> Iterator[None]:
    with apart(world, routes=(1,)):
        yield


@mesh("two routers with routes to each other")
def both_routes(world: Mesh) -> Iterator[None]:
    with apart(world, routes=(1, 2)):
        yield


@contextmanager
def apart(world: Mesh, routes: tuple[int, ...]) -> Iterator[None]:
    """Give the second network a router of its own, and a network between both."""
    network, first = world.network, router_of(world)
    (subnet,) = network.subnets(project_id=world.project_id, name="nodes2")
    network.remove_interface_from_router(first, subnet_id=subnet.id)
    second = network.create_router(name="second", project_id=world.project_id)
    network.add_interface_to_router(second, subnet_id=subnet.id)
    between = network.create_network(name="between", project_id=world.project_id)
    joint = network.create_subnet(
        network_id=between.id, cidr="10.9.0.0/24", ip_version=4, gateway_ip=None, project_id=world.project_id
    )
    for router, address in ((first, "10.9.0.101"), (second, "10.9.0.102")):
        port = network.create_port(
            network_id=between.id,
            fixed_ips=[{"subnet_id": joint.id, "ip_address": address}],
            project_id=world.project_id,
        )
        network.add_interface_to_router(router, port_id=port.id)
    ways = {1: (first, "10.2.0.0/24", "10.9.0.102"), 2: (second, "10.1.0.0/24", "10.9.0.101")}
    for number in routes:
        router, destination, nexthop = ways[number]
        network.update_router(router, routes=[{"destination": destination, "nexthop": nexthop}])
    yield
    for router in (first, second):
        network.update_router(router.id, routes=[])  # those of a fix as well
        network.remove_interface_from_router(router, subnet_id=joint.id)
    network.remove_interface_from_router(second, subnet_id=subnet.id)
    network.delete_router(second)
    network.delete_network(between)
    network.add_interface_to_router(first, subnet_id=subnet.id)


@mesh("the network of one cluster with a smaller MTU", "network.mtu-differs", "1>2 udp 8472")
def smaller_mtu(world: Mesh) -> Iterator[None]:
    """TCP and pings pass; a tunnel's packet of full size does not, and nobody says so to the pod that sent it."""
    (found,) = world.network.networks(project_id=world.project_id, name="nodes2")
    before = found.mtu
    world.network.update_network(found, mtu=before - 100)
    yield
    world.network.update_network(found, mtu=before)


@mesh("the node with the address of the mesh without pairs", "pairs.missing", "1>2 tcp 2379")
def no_pair(world: Mesh) -> Iterator[None]:
    port = world.network.get_port(world.nodes["cluster2"][0].port_id)
    world.network.update_port(port.id, allowed_address_pairs=[])
    yield
    pairs = [{"ip_address": pair["ip_address"]} for pair in port.allowed_address_pairs]
    world.network.update_port(port.id, allowed_address_pairs=pairs)


@contextmanager
def reserved(world: Mesh) -> Iterator[None]:
    """Let a port without a machine have the address of the mesh."""
    network = world.network.get_port(world.nodes["cluster2"][0].port_id).network_id
    fixed_ips = [{"ip_address": MESH_ADDRESSES["cluster2"]}]
    made = world.network.create_port(network_id=network, project_id=world.project_id, fixed_ips=fixed_ips)
    yield
    world.network.delete_port(made)


@mesh("a port with the address of the mesh, which pairs allow as part of a network", "pairs.missing", "1>2 tcp 2379")
def pairs_around(world: Mesh) -> Iterator[None]:
    """OVN answers for the address itself, with the MAC address of that port."""
    with reserved(world), pairs_restored(world):
        yield


@contextmanager
def pairs_restored(world: Mesh, *, both_macs: bool = False) -> Iterator[None]:
    """Take the changes of the second cluster's pairs back in the end, also those of a fix."""
    address = MESH_ADDRESSES["cluster2"]
    ports = [world.network.get_port(each.port_id) for each in world.nodes["cluster2"]]
    both = [{"ip_address": address}, {"ip_address": address, "mac_address": "00:00:5e:00:01:1e"}]
    for port in ports if both_macs else ():
        world.network.update_port(port.id, allowed_address_pairs=both)
    yield
    for port in ports:
        before = [{"ip_address": pair["ip_address"]} for pair in port.allowed_address_pairs]
        world.network.update_port(port.id, allowed_address_pairs=before)


@mesh("pairs with another MAC address as well")
def both_macs(world: Mesh) -> Iterator[None]:
    """No port has the address, so OVN learns the MAC address from the node."""
    with pairs_restored(world, both_macs=True):
        yield


@mesh(
    "pairs with another MAC address as well, and a port with the address of the mesh", "pairs.missing", "1>2 tcp 2379"
)
def diverted(world: Mesh) -> Iterator[None]:
    with reserved(world), pairs_restored(world, both_macs=True):
        yield


@mesh("port security off on one cluster")
def port_security_off(world: Mesh) -> Iterator[None]:
    with unfiltered(world):
        yield


@mesh("port security off on one cluster, and a port with the address of the mesh", "pairs.missing", "1>2 tcp 2379")
def reserved_without_port_security(world: Mesh) -> Iterator[None]:
    """OVN answers for the address itself, with the MAC address of that port."""
    with unfiltered(world), reserved(world):
        yield


@contextmanager
def unfiltered(world: Mesh) -> Iterator[None]:
    ports = [world.network.get_port(node.port_id) for node in world.nodes["cluster2"]]
    off = {"port_security_enabled": False, "security_groups": [], "allowed_address_pairs": []}
    for port in ports:
        world.network.update_port(port.id, **off)
    yield
    for port in ports:
        pairs = [{"ip_address": each["ip_address"]} for each in port.allowed_address_pairs]
        groups = port.security_group_ids
        world.network.update_port(
            port.id, port_security_enabled=True, security_groups=groups, allowed_address_pairs=pairs
        )


@mesh(
    "a node without a group",
    "security-group.blocks",
    "1>2 tcp 4240, 1>2 udp 8472, 1>2 icmp, 2>1 tcp 2379, 2>1 tcp 4240, 2>1 udp 8472, 2>1 icmp",
)
def without_group(world: Mesh) -> Iterator[None]:
    port = world.network.get_port(world.nodes["cluster2"][1].port_id)
    before = {rule["id"] for rule in world.group("cluster2").security_group_rules}
    world.network.update_port(port.id, security_groups=[])
    yield
    for rule in world.group("cluster2").security_group_rules:
        if rule["id"] not in before:  # a fix has added it
            world.network.delete_security_group_rule(rule["id"])
    world.network.update_port(port.id, security_groups=port.security_group_ids)
