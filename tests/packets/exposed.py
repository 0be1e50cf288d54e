"""Situations of the shipped specs of exposures, whose nodes run: how each is brought about and taken back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.devcloud.data_plane import DataPlane
from tests.functional.conftest import Prep
from tests.packets.machines import OUTSIDE, Node, from_outside, get

HOST = "shop.example.com"
ADDRESS, ADDRESS6 = "10.1.0.201", "2001:db8:1::201"
SUBNET6, GATEWAY6 = "2001:db8:1::/64", "2001:db8:1::1"
PORTS = (443, 9090)


@dataclass(frozen=True)
class Exposed:
    """A project of a shipped spec with two nodes that run."""

    prep: Prep
    plane: DataPlane
    network: Any
    """Neutron, as the administrator."""
    project_id: str
    nodes: list[Node]
    """The first one is the node that announces."""

    @cached_property
    def outside(self) -> str:
        """The floating IP."""
        return str(self.floating_ip.floating_ip_address)

    @property
    def router(self) -> Any:
        (found,) = self.network.routers(project_id=self.project_id)
        return found

    @property
    def floating_ip(self) -> Any:
        (found,) = self.network.ips(project_id=self.project_id)
        return found

    def port(self, node: Node) -> Any:
        return self.network.get_port(node.port_id)

    @property
    def group(self) -> Any:
        (found,) = self.network.security_groups(project_id=self.project_id, name="nodes")
        return found

    def answers(self, exposure: str = "shop") -> bool:
        """Whether a client outside is answered by a node."""
        address = ADDRESS6 if exposure == "shop6" else self.outside
        return from_outside(self.plane, HOST, address) in [node.name for node in self.nodes]

    def connects_at_once(self) -> bool:
        """Whether a client outside is answered and no packet of its connection was lost: TCP repeats after a second.

        On a machine that is busy the answer itself may take longer.
        """
        words = ("--resolve", f"{HOST}:443:{self.outside}", "--write-out", " %{time_connect}")
        name, _, seconds = get(self.plane, OUTSIDE, f"https://{HOST}/", *words, seconds=10).partition(" ")
        return name in [node.name for node in self.nodes] and float(seconds) < 1

    def shown(self) -> dict[str, list[str]]:
        """Return by exposure the codes of the hops that ``exposures show`` does not find right."""
        return {name: [hop["code"] for hop in hops] for name, hops in self.broken().items()}

    def broken(self) -> dict[str, list[dict[str, Any]]]:
        """Return by exposure the hops that ``exposures show`` does not find right."""
        (hosts,) = self.prep.folder.glob("*-access/hosts")
        words = ("exposures", "show", self.prep.spec.name, "--hosts", str(hosts), "--format", "json")
        try:
            out = self.prep.run(*words).stdout
        except AssertionError:
            out = self.prep.run(*words, code=1).stdout
        return {
            each["name"]: [hop for hop in each["hops"] if hop["status"] != "ok"]
            for each in json.loads(out)["exposures"]
        }

    def renew(self) -> None:
        """Apply the spec, and let the first node announce again."""
        self.prep.apply()
        self.plane.sync()
        self.nodes[1].withdraw(ADDRESS)
        self.nodes[0].announce(ADDRESS)
        if SUBNET6 in self.prep.spec.read_text():
            self.lead_to_ipv6()
            self.nodes[0].announce(ADDRESS6)

    def lead_to_ipv6(self) -> None:
        """Tell the client outside of the router, and the nodes of theirs: no provider and no RA does so here."""
        fixed_ips = self.router.external_gateway_info["external_fixed_ips"]
        at = [each["ip_address"] for each in fixed_ips if ":" in each["ip_address"]]
        self.plane.run(OUTSIDE, "ip", "-6", "route", "replace", SUBNET6, "via", *at)
        for node in self.nodes:
            self.plane.run(node.id, "ip", "-6", "route", "replace", "default", "via", GATEWAY6)

    def access(self) -> Path:
        (folder,) = self.prep.folder.glob("*-access")
        return folder


@dataclass(frozen=True)
class Exposure:
    """What is wrong, what ``exposures show`` says of the exposure from outside, and whether a client is answered."""

    name: str
    brought_about: Callable[[Exposed], AbstractContextManager[None]]
    codes: str
    answered: bool
    of: str = "shop"
    """The exposure that is asked."""

    def __str__(self) -> str:
        return self.name


EXPOSURES: list[Exposure] = []
Steps = Callable[[Exposed], Iterator[None]]


def exposure(name: str, codes: str = "", *, answered: bool, of: str = "shop") -> Callable[[Steps], Steps]:
    def declare(steps: Steps) -> Steps:
        EXPOSURES.append(Exposure(name, contextmanager(steps), codes, answered, of))
        return steps

    return declare


@exposure("as applied", answered=True)
def as_applied(world: Exposed) -> Iterator[None]:
    yield


@exposure("the other node announces the address", answered=True)
def the_other_node(world: Exposed) -> Iterator[None]:
    first, other = world.nodes
    first.withdraw(ADDRESS)
    other.announce(ADDRESS)
    yield


@contextmanager
def pairs_of(world: Exposed, node: Node, addresses: list[str]) -> Iterator[None]:
    world.network.update_port(node.port_id, allowed_address_pairs=[{"ip_address": each} for each in addresses])
    yield


@exposure("the node that announces without pairs", "pairs.missing", answered=False)
def announcer_without_pairs(world: Exposed) -> Iterator[None]:
    with pairs_of(world, world.nodes[0], []):
        yield


@exposure("half of the pool paired on the node that announces", "pairs.missing", answered=False)
def half_of_the_pool(world: Exposed) -> Iterator[None]:
    with pairs_of(world, world.nodes[0], ["10.1.0.202", "10.1.0.203"]):
        yield


@exposure("the other half of the pool paired on both nodes", answered=True)
def the_other_half(world: Exposed) -> Iterator[None]:
    with pairs_of(world, world.nodes[0], [ADDRESS]), pairs_of(world, world.nodes[1], [ADDRESS]):
        yield


@exposure("the node that does not announce without pairs", "pairs.missing", answered=True)
def other_without_pairs(world: Exposed) -> Iterator[None]:
    """It is answered until the address moves."""
    with pairs_of(world, world.nodes[1], []):
        yield


@contextmanager
def instead_of_rule(world: Exposed, *, version: str = "IPv4", **rule: Any) -> Iterator[None]:
    group = world.group
    for each in group.security_group_rules:
        if each["port_range_min"] == 443 and each["ethertype"] == version:
            world.network.delete_security_group_rule(each["id"])
    added = None
    if rule:
        body = {"direction": "ingress", "ether_type": "IPv4", "protocol": "tcp"} | rule
        ports = {"port_range_min": 443, "port_range_max": 443}
        added = world.network.create_security_group_rule(security_group_id=group.id, **ports, **body)
    yield
    if added:
        world.network.delete_security_group_rule(added)


@exposure("no rule for the port", "security-group.blocks", answered=False)
def no_rule(world: Exposed) -> Iterator[None]:
    with instead_of_rule(world), instead_of_rule(world, version="IPv6"):
        yield


@exposure("a rule for the nodes' own network alone", "security-group.blocks", answered=False)
def rule_from_inside(world: Exposed) -> Iterator[None]:
    with instead_of_rule(world, remote_ip_prefix="10.1.0.0/24"):
        yield


@exposure("the floating IP on no port", "floating-ip.detached", answered=False)
def detached(world: Exposed) -> Iterator[None]:
    world.network.update_ip(world.floating_ip, port_id=None)
    yield


@exposure("the floating IP on a node's own port", "floating-ip.in-use", answered=True)
def on_a_node(world: Exposed) -> Iterator[None]:
    """It is answered as long as that node lives."""
    world.network.update_ip(world.floating_ip, port_id=None)
    world.network.update_ip(world.floating_ip, port_id=world.nodes[0].port_id)
    yield
    world.network.update_ip(world.floating_ip, port_id=None)


@exposure("a port forwarding on the floating IP instead of the port", answered=True)
def forwarded(world: Exposed) -> Iterator[None]:
    found, reserved = world.floating_ip, world.network.get_port(world.floating_ip.port_id)
    world.network.update_ip(found, port_id=None)
    body = {"protocol": "tcp", "internal_port": 443, "external_port": 443, "internal_ip_address": ADDRESS}
    made = world.network.create_port_forwarding(floatingip_id=found.id, internal_port_id=reserved.id, **body)
    yield
    world.network.delete_floating_ip_port_forwarding(found, made)


@exposure(
    "the port that reserves the address deleted",
    "exposure.files-differ exposure.not-reserved floating-ip.detached",
    answered=False,
)
def not_reserved(world: Exposed) -> Iterator[None]:
    world.network.delete_port(world.floating_ip.port_id)
    yield


@exposure(
    "the port that reserves the address deleted, and the address given to another one",
    "exposure.files-differ exposure.not-reserved",
    answered=True,
)
def given_away(world: Exposed) -> Iterator[None]:
    """As an allocation pool does with what nothing reserves; it is answered until a server has that port."""
    found, network = world.floating_ip, world.network
    reserved = network.get_port(found.port_id)
    network.delete_port(reserved.id)
    made = network.create_port(
        network_id=reserved.network_id, project_id=world.project_id, fixed_ips=[{"ip_address": ADDRESS}]
    )
    network.update_ip(found, port_id=made.id)
    yield
    network.update_ip(found, port_id=None)
    network.delete_port(made)


@exposure("the nodes' network with an MTU of 1280", answered=True)
def small_mtu(world: Exposed) -> Iterator[None]:
    (found,) = world.network.networks(project_id=world.project_id, name="nodes")
    before = found.mtu
    world.network.update_network(found, mtu=1280)
    yield
    world.network.update_network(found, mtu=before)


@exposure("the address of IPv6, which needs no floating IP", answered=True, of="shop6")
def by_ipv6(world: Exposed) -> Iterator[None]:
    yield


@exposure(
    "the address of IPv6 without its pair on the node that announces", "pairs.missing", answered=False, of="shop6"
)
def ipv6_without_pair(world: Exposed) -> Iterator[None]:
    with pairs_of(world, world.nodes[0], [ADDRESS]):
        yield


@exposure("the address of IPv6 with a rule for IPv4 alone", "security-group.blocks", answered=False, of="shop6")
def ipv6_without_rule(world: Exposed) -> Iterator[None]:
    with instead_of_rule(world, version="IPv6"):
        yield


@exposure(
    "the other node announces the address of IPv6 from that address, as keepalived does", answered=True, of="shop6"
)
def ipv6_moves(world: Exposed) -> Iterator[None]:
    with other_announces_ipv6(world):
        yield


@contextmanager
def other_announces_ipv6(world: Exposed, *words: str) -> Iterator[None]:
    first, other = world.nodes
    first.withdraw(ADDRESS6)
    other.announce(ADDRESS6, *words)
    yield
    other.withdraw(ADDRESS6)
    first.announce(ADDRESS6)


@exposure("the node that announces gone from the group", "security-group.blocks", answered=False)
def without_group(world: Exposed) -> Iterator[None]:
    port = world.port(world.nodes[0])
    world.network.update_port(port.id, security_groups=[])
    yield
    world.network.update_port(port.id, security_groups=port.security_group_ids)


@exposure("port security off on the node that announces", answered=True)
def port_security_off(world: Exposed) -> Iterator[None]:
    port = world.port(world.nodes[0])
    off = {"security_groups": [], "allowed_address_pairs": [], "port_security_enabled": False}
    world.network.update_port(port.id, **off)
    yield
    world.network.update_port(port.id, port_security_enabled=True, security_groups=port.security_group_ids)


@exposure("the address moved to a node with port security off", answered=True)
def moved_to_one_without_port_security(world: Exposed) -> Iterator[None]:
    """The pool's port is disabled, so that OVN's router learns the node's MAC address."""
    first, other = world.nodes
    port = world.port(other)
    off = {"security_groups": [], "allowed_address_pairs": [], "port_security_enabled": False}
    world.network.update_port(port.id, **off)
    world.plane.sync()
    first.withdraw(ADDRESS)
    other.announce(ADDRESS)
    yield
    world.network.update_port(port.id, port_security_enabled=True, security_groups=port.security_group_ids)


@exposure(
    "port security off on both nodes, and a router that does not know who announces it",
    "pairs.missing",
    answered=False,
)
def port_security_off_on_both(world: Exposed) -> Iterator[None]:
    """Without any pair OVN answers for the address itself."""
    ports = [world.port(node) for node in world.nodes]
    off = {"security_groups": [], "allowed_address_pairs": [], "port_security_enabled": False}
    for port in ports:
        world.network.update_port(port.id, **off)
    world.plane.forget_neighbours()
    yield
    for port in ports:
        world.network.update_port(port.id, port_security_enabled=True, security_groups=port.security_group_ids)


@exposure("both nodes announce the address", answered=True)
def both_announce(world: Exposed) -> Iterator[None]:
    world.nodes[1].announce(ADDRESS)
    yield


@contextmanager
def pairs_on_all(world: Exposed, **pair: str) -> Iterator[None]:
    for node in world.nodes:
        world.network.update_port(node.port_id, allowed_address_pairs=[pair])
    yield


@exposure("pairs with every address, and a router that does not know who announces it", "pairs.missing", answered=False)
def pairs_with_everything(world: Exposed) -> Iterator[None]:
    """OVN answers the router itself, with the MAC address of the port that reserves the address."""
    with pairs_on_all(world, ip_address="0.0.0.0/0"):
        world.plane.forget_neighbours()
        yield


@exposure("pairs with the address, and with another MAC address as well", answered=True)
def pairs_with_both_macs(world: Exposed) -> Iterator[None]:
    """The port that reserves the address is disabled, so OVN learns the MAC address from the node."""
    for node in world.nodes:
        pairs = [{"ip_address": ADDRESS}, {"ip_address": ADDRESS, "mac_address": "00:00:5e:00:01:1e"}]
        world.network.update_port(node.port_id, allowed_address_pairs=pairs)
    world.plane.forget_neighbours()
    yield


@exposure("pairs with a MAC address that no node uses", "pairs.missing", answered=False)
def pairs_with_another_mac(world: Exposed) -> Iterator[None]:
    with pairs_on_all(world, ip_address=ADDRESS, mac_address="00:00:5e:00:01:1e"):
        yield


@exposure("the rule for the port by IPv6 only", "security-group.blocks", answered=False)
def rule_by_ipv6(world: Exposed) -> Iterator[None]:
    with instead_of_rule(world):  # that of IPv6 stays
        yield


@exposure("the rule for the port by UDP only", "security-group.blocks", answered=False)
def rule_by_udp(world: Exposed) -> Iterator[None]:
    with instead_of_rule(world, protocol="udp"):
        yield


@exposure("the rule for the port from members of the group only", "security-group.blocks", answered=False)
def rule_for_members(world: Exposed) -> Iterator[None]:
    with instead_of_rule(world, remote_group_id=world.group.id):
        yield


@contextmanager
def own_group(world: Exposed, **egress: Any) -> Iterator[None]:
    """Give the nodes a stateless group that lets everything in, with one rule for what goes out."""
    network, ports = world.network, [world.port(node) for node in world.nodes]
    group = network.create_security_group(name="stateless", stateful=False, project_id=world.project_id)
    for rule in group.security_group_rules:
        network.delete_security_group_rule(rule["id"])
    for body in ({"direction": "ingress"}, {"direction": "egress", **egress}):
        network.create_security_group_rule(security_group_id=group.id, ether_type="IPv4", **body)
    for port in ports:
        network.update_port(port.id, security_groups=[group.id])
    yield
    for port in ports:
        network.update_port(port.id, security_groups=port.security_group_ids)
    network.delete_security_group(group)


@exposure("a stateless group that lets answers out", answered=True)
def stateless(world: Exposed) -> Iterator[None]:
    with own_group(world):
        yield


@exposure("a stateless group that lets no answer out", "security-group.blocks", answered=False)
def stateless_without_answers(world: Exposed) -> Iterator[None]:
    with own_group(world, protocol="udp"):
        yield


@contextmanager
def disabled(update: Callable[..., Any], *ids: str) -> Iterator[None]:
    for each in ids:
        update(each, admin_state_up=False)
    yield
    for each in ids:
        update(each, admin_state_up=True)


@exposure("the port of the node that announces disabled", "port.down", answered=False)
def port_disabled(world: Exposed) -> Iterator[None]:
    with disabled(world.network.update_port, world.nodes[0].port_id):
        yield


@exposure("the router disabled", "router.disabled", answered=False)
def router_disabled(world: Exposed) -> Iterator[None]:
    with disabled(world.network.update_router, world.router.id):
        yield


@exposure("the router disabled, for the address of IPv6", "router.disabled", answered=False, of="shop6")
def router_disabled_for_ipv6(world: Exposed) -> Iterator[None]:
    with disabled(world.network.update_router, world.router.id):
        yield


@contextmanager
def without_gateway(world: Exposed) -> Iterator[None]:
    """Neutron takes the gateway only from a router that serves no floating IP."""
    world.network.update_ip(world.floating_ip, port_id=None)
    world.network.update_router(world.router, external_gateway_info=None)
    yield


@exposure("the router without a gateway", "floating-ip.detached", answered=False)
def no_gateway(world: Exposed) -> Iterator[None]:
    with without_gateway(world):
        yield


@exposure("the router without a gateway, for the address of IPv6", "router.no-gateway", answered=False, of="shop6")
def no_gateway_for_ipv6(world: Exposed) -> Iterator[None]:
    with without_gateway(world):
        yield


@contextmanager
def interface_elsewhere(world: Exposed, name: str, cidr: str) -> Iterator[None]:
    """Give the router an interface in another subnet of the nodes' network instead of a named one."""
    network, router = world.network, world.router
    (subnet,) = network.subnets(project_id=world.project_id, name=name)
    given = {"network_id": subnet.network_id, "ip_version": subnet.ip_version, "project_id": world.project_id}
    other = network.create_subnet(cidr=cidr, **given)
    network.remove_interface_from_router(router, subnet_id=subnet.id)
    network.add_interface_to_router(router, subnet_id=other.id)
    yield
    network.remove_interface_from_router(router, subnet_id=other.id)
    network.delete_subnet(other)


@exposure("the router with an interface in another subnet", "floating-ip.detached", answered=False)
def other_subnet(world: Exposed) -> Iterator[None]:
    world.network.update_ip(world.floating_ip, port_id=None)
    with interface_elsewhere(world, "nodes", "10.7.0.0/24"):
        yield


@exposure(
    "the router with an interface in another subnet of IPv6, for the address of IPv6",
    "router.missing",
    answered=False,
    of="shop6",
)
def other_subnet_of_ipv6(world: Exposed) -> Iterator[None]:
    with interface_elsewhere(world, "nodes6", "2001:db8:7::/64"):
        yield
