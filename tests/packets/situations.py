"""Situations of a cluster, good and broken: how each is brought about and taken back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from openstack.exceptions import BadRequestException, ConflictException

from tests.packets.conftest import INFRA_ID, World
from tests.packets.played_cluster import CHECKED, HOSTS, OAUTH, ROLES, Machine, ask_neighbours_often


@dataclass(frozen=True)
class Situation:
    """What is wrong in a cluster, what ``verify`` says of it, and whether a client outside is answered."""

    name: str
    brought_about: Callable[[World], AbstractContextManager[None]]
    codes: Mapping[str, str]
    """By service the codes of the links that are not ok, in order."""
    silent: frozenset[str]
    """The services that answer nobody outside."""
    words: Sequence[str] = ()
    """Further words of ``verify``."""
    asked: Mapping[str, int] = field(default_factory=lambda: CHECKED)
    """By service the TCP port that the client asks."""
    goes_out: bool | None = None
    """Whether a worker's request to a server outside is answered; None: it is not tried."""

    def __str__(self) -> str:
        return self.name


ASKED_80 = CHECKED | {"ingress": 80}
SITUATIONS: list[Situation] = []
Steps = Callable[[World], Iterator[None]]


def situation(
    name: str,
    *,
    api: str = "",
    ingress: str = "",
    silent: str = "",
    words: Sequence[str] = (),
    asked: Mapping[str, int] = CHECKED,
    goes_out: bool | None = None,
) -> Callable[[Steps], Steps]:
    """Declare a situation; ``silent`` are the names of the services that answer nobody outside."""

    def declare(steps: Steps) -> Steps:
        codes = {"api": api, "ingress": ingress}
        made = Situation(name, contextmanager(steps), codes, frozenset(silent.split()), words, asked, goes_out)
        SITUATIONS.append(made)
        return steps

    return declare


@situation("as installed", goes_out=True)
def as_installed(world: World) -> Iterator[None]:
    yield


# --- address pairs ----------------------------------------------------------------------------


@contextmanager
def pairs_of(world: World, ports: Sequence[Any], pairs: Sequence[Mapping[str, str]]) -> Iterator[None]:
    for port in ports:
        world.network.update_port(port.id, allowed_address_pairs=list(pairs))
    yield
    for port in ports:
        before = [{"ip_address": each["ip_address"]} for each in port.allowed_address_pairs]
        world.network.update_port(port.id, allowed_address_pairs=before)


@situation("no pair on any worker", ingress="pairs.missing", silent="ingress")
def no_pairs(world: World) -> Iterator[None]:
    with pairs_of(world, world.ports("worker"), []):
        yield


@situation("no pair on any master", api="pairs.missing", silent="api")
def no_pairs_on_masters(world: World) -> Iterator[None]:
    with pairs_of(world, world.ports("master"), []):
        yield


@situation("pairs with VRRP's MAC address, which the machines do not use", ingress="pairs.missing", silent="ingress")
def pairs_with_another_mac(world: World) -> Iterator[None]:
    address = world.played.virtual("ingress")
    with pairs_of(world, world.ports("worker"), [{"ip_address": address, "mac_address": "00:00:5e:00:01:1e"}]):
        yield


@situation("pairs with another address", ingress="pairs.missing", silent="ingress")
def pairs_with_another_address(world: World) -> Iterator[None]:
    with pairs_of(world, world.ports("worker"), [{"ip_address": "10.0.0.77"}]):
        yield


@situation(
    "pairs with a network around the addresses on every machine",
    api="pairs.missing",
    ingress="pairs.missing",
    silent="api ingress",
)
def pairs_with_a_network(world: World) -> Iterator[None]:
    with pairs_of(world, world.played.cluster.nodes(), [{"ip_address": "10.0.0.0/28"}]):
        yield


@situation("pairs with every address on the workers")
def pairs_with_everything(world: World) -> Iterator[None]:
    with pairs_of(world, world.ports("worker"), [{"ip_address": "0.0.0.0/0"}]):
        yield


@situation("the workers with the pair of the API", ingress="pairs.missing", silent="ingress")
def pairs_of_the_api(world: World) -> Iterator[None]:
    with pairs_of(world, world.ports("worker"), [{"ip_address": world.played.virtual("api")}]):
        yield


@situation("pairs with the address and the machine's own MAC address")
def pairs_with_own_mac(world: World) -> Iterator[None]:
    ports = world.ports("worker")
    address = world.played.virtual("ingress")
    for port in ports:
        pair = {"ip_address": address, "mac_address": port.mac_address}
        world.network.update_port(port.id, allowed_address_pairs=[pair])
    yield
    for port in ports:
        before = [{"ip_address": each["ip_address"]} for each in port.allowed_address_pairs]
        world.network.update_port(port.id, allowed_address_pairs=before)


# --- security groups --------------------------------------------------------------------------


@contextmanager
def instead_of_rules(world: World, role: str, port: int, *instead: Mapping[str, Any]) -> Iterator[None]:
    """Replace the rules of a group for a TCP port by others."""
    network, group = world.network, world.group(role)

    def rules() -> list[Any]:
        found = network.security_group_rules(security_group_id=group.id, direction="ingress", protocol="tcp")
        return [each for each in found if each.port_range_min == port]

    before = rules()
    assert before
    for rule in before:
        network.delete_security_group_rule(rule)
    added = [add_rule(world, group.id, port, **each) for each in instead]
    yield
    for rule in (*added, *rules()):  # those of a fix as well
        network.delete_security_group_rule(rule)
    for rule in before:
        restore_rule(
            network,
            security_group_id=group.id,
            direction="ingress",
            protocol="tcp",
            port_range_min=port,
            port_range_max=port,
            ether_type=rule.ether_type,
            remote_ip_prefix=rule.remote_ip_prefix,
            remote_group_id=rule.remote_group_id,
        )


def restore_rule(network: Any, **body: Any) -> None:
    """Create a rule again, unless a fix has done so."""
    with suppress(ConflictException):
        network.create_security_group_rule(**body)


def add_rule(world: World, group: str, port: int, **fields: Any) -> Any:
    body = {
        "security_group_id": group,
        "direction": "ingress",
        "protocol": "tcp",
        "port_range_min": port,
        "port_range_max": port,
        "ether_type": "IPv4",
        **fields,
    }
    return world.network.create_security_group_rule(**body)


@situation("no rule for 443", ingress="security-group.blocks", silent="ingress")
def no_rule(world: World) -> Iterator[None]:
    with instead_of_rules(world, "worker", 443):
        yield


@situation("no rule for 6443", api="security-group.blocks", silent="api")
def no_rule_for_the_api(world: World) -> Iterator[None]:
    with instead_of_rules(world, "master", 6443):
        yield


@situation(
    "no rule for 80, which a browser asks first", ingress="security-group.blocks", silent="ingress", asked=ASKED_80
)
def no_rule_for_80(world: World) -> Iterator[None]:
    with instead_of_rules(world, "worker", 80):
        yield


@situation("6443 only from the cluster's own network", api="security-group.blocks", silent="api")
def api_only_from_inside(world: World) -> Iterator[None]:
    with instead_of_rules(world, "master", 6443, {"remote_ip_prefix": "10.0.0.0/16"}):
        yield


@situation("443 only from the cluster's own network", ingress="security-group.blocks", silent="ingress")
def only_from_inside(world: World) -> Iterator[None]:
    with instead_of_rules(world, "worker", 443, {"remote_ip_prefix": "10.0.0.0/16"}):
        yield


@situation("443 only from members of the group", ingress="security-group.blocks", silent="ingress")
def only_from_the_group(world: World) -> Iterator[None]:
    with instead_of_rules(world, "worker", 443, {"remote_group_id": world.group("worker").id}):
        yield


@situation("443 only from the client's network", ingress="security-group.limited")
def only_from_the_client(world: World) -> Iterator[None]:
    with instead_of_rules(world, "worker", 443, {"remote_ip_prefix": "192.168.122.0/24"}):
        yield


@situation("443 only from the client's network, given by --from", words=["--from", "192.168.122.1"])
def only_from_the_given_client(world: World) -> Iterator[None]:
    with instead_of_rules(world, "worker", 443, {"remote_ip_prefix": "192.168.122.0/24"}):
        yield


@situation(
    "443 only from another network than that given by --from",
    ingress="security-group.blocks",
    silent="ingress",
    words=["--from", "192.168.122.1"],
)
def only_from_another_network(world: World) -> Iterator[None]:
    with instead_of_rules(world, "worker", 443, {"remote_ip_prefix": "198.51.100.0/24"}):
        yield


@situation("443 by IPv6 only", ingress="security-group.blocks", silent="ingress")
def only_by_ipv6(world: World) -> Iterator[None]:
    with instead_of_rules(world, "worker", 443, {"ether_type": "IPv6"}):
        yield


@situation("443 by UDP only", ingress="security-group.blocks", silent="ingress")
def only_by_udp(world: World) -> Iterator[None]:
    with instead_of_rules(world, "worker", 443, {"protocol": "udp"}):
        yield


@situation("443 within a range of ports")
def within_a_range(world: World) -> Iterator[None]:
    with instead_of_rules(world, "worker", 443, {"port_range_min": 400, "port_range_max": 500}):
        yield


@situation("443 by a rule for every protocol")
def any_protocol(world: World) -> Iterator[None]:
    with instead_of_rules(world, "worker", 443, {"protocol": None, "port_range_min": None, "port_range_max": None}):
        yield


@situation("443 from two networks that are everything together")
def from_both_halves(world: World) -> Iterator[None]:
    halves = [{"remote_ip_prefix": each} for each in ("0.0.0.0/1", "128.0.0.0/1")]
    with instead_of_rules(world, "worker", 443, *halves):
        yield


@contextmanager
def groups_of(world: World, ports: Sequence[Any], groups: Sequence[str], **more: Any) -> Iterator[None]:
    for port in ports:
        world.network.update_port(port.id, security_groups=list(groups), **more)
    yield
    for port in ports:
        before = [{"ip_address": each["ip_address"]} for each in port.allowed_address_pairs]
        world.network.update_port(
            port.id,
            security_groups=port.security_group_ids,
            port_security_enabled=True,
            allowed_address_pairs=before,
        )


@situation(
    "the default group instead of the workers' own",
    ingress="security-group.blocks security-group.blocks",
    silent="ingress",
)
def default_group(world: World) -> Iterator[None]:
    default = world.network.find_security_group("default", ignore_missing=False, project_id=world.tenant.project_id)
    with groups_of(world, world.ports("worker"), [default.id]):
        yield


@situation(
    "no group on the workers",
    ingress="security-group.no-vrrp security-group.blocks security-group.blocks",
    silent="ingress",
)
def no_group(world: World) -> Iterator[None]:
    with groups_of(world, world.ports("worker"), []):
        yield


@situation("no group on the masters", api="security-group.no-vrrp security-group.blocks", silent="api", ingress="")
def no_group_on_masters(world: World) -> Iterator[None]:
    with groups_of(world, world.ports("master"), []):
        yield


@situation("port security off on the masters", api="port-security.off")
def port_security_off_on_masters(world: World) -> Iterator[None]:
    with groups_of(world, world.ports("master"), [], port_security_enabled=False, allowed_address_pairs=[]):
        yield


@situation("port security off on the masters, and the address moves", api="port-security.off", silent="api")
def port_security_off_and_a_move(world: World) -> Iterator[None]:
    """The workers still have pairs for the address, so that OVN waits for one of them to announce it."""
    with groups_of(world, world.ports("master"), [], port_security_enabled=False, allowed_address_pairs=[]):
        world.played.settle()
        holder = world.played.wait_for_holder("api")
        assert world.played.fall(holder)
        yield
        world.played.start_keepalived(holder)


@situation("the address moved to a master with port security off", api="port-security.off", silent="api")
def moved_to_one_without_port_security(world: World) -> Iterator[None]:
    holder = world.played.wait_for_holder("api")
    others = [port for port in world.ports("master") if not port.name.startswith(holder.name)]
    with groups_of(world, others, [], port_security_enabled=False, allowed_address_pairs=[]):
        world.played.settle()
        assert world.played.fall(holder)
        yield
        world.played.start_keepalived(holder)


@situation("port security off on the workers", ingress="port-security.off")
def port_security_off(world: World) -> Iterator[None]:
    with groups_of(world, world.ports("worker"), [], port_security_enabled=False, allowed_address_pairs=[]):
        yield


@situation(
    "port security off on every machine",
    api="port-security.off pairs.missing",
    ingress="port-security.off pairs.missing",
    silent="api ingress",
)
def port_security_off_everywhere(world: World) -> Iterator[None]:
    """Without any pair OVN answers for the virtual addresses itself."""
    ports = world.played.cluster.nodes()
    with groups_of(world, ports, [], port_security_enabled=False, allowed_address_pairs=[]):
        yield


@contextmanager
def own_group(world: World, *egress: Mapping[str, Any], stateful: bool) -> Iterator[None]:
    """Give the workers a group that lets everything in, with these rules for what goes out."""
    network = world.network
    group = network.create_security_group(name=f"{INFRA_ID}-own", stateful=stateful)
    for rule in list(network.security_group_rules(security_group_id=group.id)):
        network.delete_security_group_rule(rule)
    network.create_security_group_rule(security_group_id=group.id, direction="ingress", ether_type="IPv4")
    for each in egress:
        network.create_security_group_rule(security_group_id=group.id, direction="egress", ether_type="IPv4", **each)
    with groups_of(world, world.ports("worker"), [group.id]):
        yield
    network.delete_security_group(group)


@situation("a group without rules for what goes out")
def nothing_goes_out(world: World) -> Iterator[None]:
    """Answers pass all the same: Neutron keeps the state of connections."""
    with own_group(world, {"protocol": "112"}, stateful=True):
        yield


@situation("a stateless group that lets answers out")
def stateless(world: World) -> Iterator[None]:
    with own_group(world, {}, stateful=False):
        yield


@situation(
    "a stateless group that lets no answer out",
    ingress="security-group.blocks security-group.blocks",
    silent="ingress",
)
def stateless_without_answers(world: World) -> Iterator[None]:
    with own_group(world, {"protocol": "112"}, stateful=False):
        yield


# --- floating IPs -----------------------------------------------------------------------------


@contextmanager
def floating_ip_on(world: World, port_id: str | None, service: str = "ingress") -> Iterator[None]:
    network = world.network
    (found,) = network.ips(floating_ip_address=world.played.floating[service])
    network.update_ip(found, port_id=None)
    if port_id:
        network.update_ip(found, port_id=port_id)
    yield
    network.update_ip(found, port_id=None)
    network.update_ip(found, port_id=world.played.cluster.port(f"{service}-port").id)


@situation("the floating IP on no port", ingress="floating-ip.detached", silent="ingress")
def detached(world: World) -> Iterator[None]:
    with floating_ip_on(world, None):
        yield


@situation("the API's floating IP on no port", api="floating-ip.detached", silent="api")
def api_detached(world: World) -> Iterator[None]:
    with floating_ip_on(world, None, "api"):
        yield


@situation("the floating IP on a worker's own port", ingress="floating-ip.in-use")
def on_a_worker(world: World) -> Iterator[None]:
    """It is answered as long as that worker lives."""
    with floating_ip_on(world, world.ports("worker")[0].id):
        yield


@situation("the floating IP on a master's own port", ingress="floating-ip.in-use", silent="ingress")
def on_a_master(world: World) -> Iterator[None]:
    with floating_ip_on(world, world.ports("master")[0].id):
        yield


@situation(
    "the floating IPs swapped",
    api="dns.wrong-address",
    ingress="dns.wrong-address dns.wrong-address",
    silent="api ingress",
)
def on_the_api(world: World) -> Iterator[None]:
    network = world.network
    (api,) = network.ips(floating_ip_address=world.played.floating["api"])
    network.update_ip(api, port_id=None)
    with floating_ip_on(world, world.played.cluster.port("api-port").id):
        network.update_ip(api, port_id=world.played.cluster.port("ingress-port").id)
        yield
        network.update_ip(api, port_id=None)
    network.update_ip(api, port_id=world.played.cluster.port("api-port").id)


# --- ports, networks, routers -----------------------------------------------------------------


@contextmanager
def ports_down(world: World, ports: Sequence[Any]) -> Iterator[None]:
    for port in ports:
        world.network.update_port(port.id, admin_state_up=False)
    yield
    for port in ports:
        world.network.update_port(port.id, admin_state_up=True)
    for port in ports:  # OVN tells Neutron later; until then the next verdict is right to call them down
        if port.status == "ACTIVE":
            world.network.wait_for_status(world.network.get_port(port.id), "ACTIVE", interval=0.2, wait=30)


@situation("the workers' ports disabled", ingress="port.down", silent="ingress")
def workers_ports_down(world: World) -> Iterator[None]:
    with ports_down(world, world.ports("worker")):
        yield


@situation("the masters' ports disabled", api="port.down", silent="api")
def masters_ports_down(world: World) -> Iterator[None]:
    with ports_down(world, world.ports("master")):
        yield


@situation("the virtual address's port disabled", ingress="port.disabled")
def virtual_port_down(world: World) -> Iterator[None]:
    """Nothing is plugged into it."""
    with ports_down(world, [world.played.cluster.port("ingress-port")]):
        yield


@situation("the router disabled", api="router.disabled", ingress="router.disabled", silent="api ingress")
def router_down(world: World) -> Iterator[None]:
    (router,) = world.network.routers(project_id=world.tenant.project_id)
    world.network.update_router(router, admin_state_up=False)
    yield
    world.network.update_router(router, admin_state_up=True)


@contextmanager
def without_floating_ips(world: World) -> Iterator[Any]:
    """Take both floating IPs from their ports, without which Neutron lets nobody change the router; returns it."""
    (router,) = world.network.routers(project_id=world.tenant.project_id)
    with floating_ip_on(world, None, "api"), floating_ip_on(world, None):
        yield router


@situation(
    "SNAT only: the router has a gateway, and no floating IP is on a port",
    api="floating-ip.detached",
    ingress="floating-ip.detached",
    silent="api ingress",
    goes_out=True,
)
def snat_only(world: World) -> Iterator[None]:
    with without_floating_ips(world):
        yield


@situation("floating IPs only: the router's gateway does not translate other addresses", goes_out=False)
def without_snat(world: World) -> Iterator[None]:
    network = world.administrator.network
    (router,) = network.routers(project_id=world.tenant.project_id)
    external = router.external_gateway_info["network_id"]
    network.update_router(router, external_gateway_info={"network_id": external, "enable_snat": False})
    yield
    network.update_router(router, external_gateway_info={"network_id": external, "enable_snat": True})


@situation(
    "the router without a gateway",
    api="floating-ip.detached router.no-gateway",
    ingress="floating-ip.detached router.no-gateway",
    silent="api ingress",
    goes_out=False,
)
def no_gateway(world: World) -> Iterator[None]:
    with without_floating_ips(world) as router:
        external = router.external_gateway_info["network_id"]
        world.network.update_router(router, external_gateway_info=None)
        yield
        world.network.update_router(router, external_gateway_info={"network_id": external})


@situation(
    "the router with its gateway on another external network",
    api="floating-ip.detached router.other-gateway",
    ingress="floating-ip.detached router.other-gateway",
    silent="api ingress",
    goes_out=False,
)
def other_gateway(world: World) -> Iterator[None]:
    administrators = world.administrator.network
    other = administrators.create_network(name="second", is_router_external=True)
    administrators.create_subnet(network_id=other.id, ip_version=4, cidr="198.51.100.0/24", is_dhcp_enabled=False)
    with without_floating_ips(world) as router:
        external = router.external_gateway_info["network_id"]
        world.network.update_router(router, external_gateway_info={"network_id": other.id})
        yield
        world.network.update_router(router, external_gateway_info={"network_id": external})
    administrators.delete_network(other)


@contextmanager
def interface_elsewhere(world: World, network_id: str) -> Iterator[None]:
    """Give the router an interface in another subnet of a network instead of that in the machines' subnet."""
    network = world.network
    (machines,) = network.subnets(network_id=world.played.cluster.port("ingress-port").network_id)
    other = network.create_subnet(network_id=network_id, ip_version=4, cidr="10.7.0.0/24")
    for machine in world.played.machines:
        ask_neighbours_often(world.played.plane, machine.id)
    with without_floating_ips(world) as router:
        network.remove_interface_from_router(router, subnet_id=machines.id)
        network.add_interface_to_router(router, subnet_id=other.id)
        yield
        with suppress(BadRequestException):  # a fix has done so
            network.add_interface_to_router(router, subnet_id=machines.id)
        network.remove_interface_from_router(router, subnet_id=other.id)
    network.delete_subnet(other)


MISSING_ROUTER = {"api": "floating-ip.detached router.missing", "ingress": "floating-ip.detached router.missing"}


@situation(
    "the router with an interface in another subnet of the machines' network",
    **MISSING_ROUTER,
    silent="api ingress",
    goes_out=False,
)
def other_subnet(world: World) -> Iterator[None]:
    with interface_elsewhere(world, world.played.cluster.port("ingress-port").network_id):
        yield


@situation(
    "the router with an interface in another network instead of the machines'",
    **MISSING_ROUTER,
    silent="api ingress",
    goes_out=False,
)
def other_network(world: World) -> Iterator[None]:
    elsewhere = world.network.create_network(name="elsewhere")
    with interface_elsewhere(world, elsewhere.id):
        yield
    world.network.delete_network(elsewhere)


@situation("the network disabled")
def network_down(world: World) -> Iterator[None]:
    """OVN takes no notice."""
    network_id = world.played.cluster.port("ingress-port").network_id
    world.network.update_network(network_id, admin_state_up=False)
    yield
    world.network.update_network(network_id, admin_state_up=True)


@situation("the machines' network with an MTU of 1280")
def small_mtu(world: World) -> Iterator[None]:
    """Answers of several packets pass: TCP tells the other side how much fits."""
    network = world.network.get_network(world.played.cluster.port("ingress-port").network_id)
    before = network.mtu
    world.network.update_network(network, mtu=1280)
    yield
    world.network.update_network(network, mtu=before)


@situation(
    "the virtual address's port deleted, and the address given to another port with the floating IP",
    ingress="port.missing port.missing port.missing",
)
def given_away(world: World) -> Iterator[None]:
    """As an allocation pool does with what nothing reserves."""
    network, port = world.network, world.played.cluster.port("ingress-port")
    (found,) = network.ips(floating_ip_address=world.played.floating["ingress"])
    address = {"network_id": port.network_id, "fixed_ips": port.fixed_ips}
    network.delete_port(port)
    other = network.create_port(name="somebody", **address)
    network.update_ip(found, port_id=other.id)
    yield
    network.update_ip(found, port_id=None)
    network.delete_port(other)
    again = network.create_port(
        name=port.name, description=port.description, security_groups=port.security_group_ids, **address
    )
    network.set_tags(again, list(port.tags))
    network.update_ip(found, port_id=again.id)


# --- machines ---------------------------------------------------------------------------------


@contextmanager
def stopped(world: World, machines: Sequence[Machine]) -> Iterator[None]:
    for machine in machines:
        world.compute.stop_server(machine.id)
    for machine in machines:
        world.compute.wait_for_server(world.compute.get_server(machine.id), "SHUTOFF", interval=0.2, wait=60)
    yield
    for machine in machines:
        with suppress(ConflictException):  # a fix has done so
            world.compute.start_server(machine.id)
    for machine in machines:
        world.compute.wait_for_server(world.compute.get_server(machine.id), interval=0.2, wait=60)
    world.played.restart(machines)


@situation("the workers stopped", ingress="machine.not-active", silent="ingress")
def workers_stopped(world: World) -> Iterator[None]:
    with stopped(world, world.played.of("ingress")):
        yield


@situation("only VRRP is not let through", ingress="security-group.no-vrrp")
def no_vrrp(world: World) -> Iterator[None]:
    network, group = world.network, world.group("worker")
    rules = [
        each
        for each in network.security_group_rules(security_group_id=group.id)
        if each.direction == "ingress" and each.protocol in ("112", "vrrp")
    ]
    assert rules
    for rule in rules:
        network.delete_security_group_rule(rule)
    yield
    for rule in rules:
        restore_rule(
            network,
            security_group_id=group.id,
            direction="ingress",
            protocol=rule.protocol,
            ether_type=rule.ether_type,
            remote_ip_prefix=rule.remote_ip_prefix,
            remote_group_id=rule.remote_group_id,
        )


# --- names ------------------------------------------------------------------------------------


@contextmanager
def hosts_file(world: World, text: str) -> Iterator[None]:
    path = world.prep.folder / "hosts"
    before = path.read_text()
    path.write_text(text)
    yield
    path.write_text(before)


@situation(
    "the names swapped", api="dns.wrong-address", ingress="dns.wrong-address dns.wrong-address", silent="api ingress"
)
def names_swapped(world: World) -> Iterator[None]:
    floating = world.played.floating
    lines = [f"{floating['ingress']} {HOSTS['api']}", f"{floating['api']} {HOSTS['ingress']} {OAUTH}"]
    with hosts_file(world, "\n".join([*lines, ""])):
        yield


@situation("a name that is in no hosts file", ingress="dns.missing", silent="")
def no_name(world: World) -> Iterator[None]:
    floating = world.played.floating
    with hosts_file(world, f"{floating['api']} {HOSTS['api']}\n{floating['ingress']} {HOSTS['ingress']}\n"):
        yield


@situation("a name with an address of nobody", api="dns.wrong-address", silent="api")
def wrong_name(world: World) -> Iterator[None]:
    floating = world.played.floating
    lines = [f"192.168.122.199 {HOSTS['api']}", f"{floating['ingress']} {HOSTS['ingress']} {OAUTH}"]
    with hosts_file(world, "\n".join([*lines, ""])):
        yield


# --- more floating IPs, ports and machines ----------------------------------------------------


@contextmanager
def forwardings(world: World, *numbers: int) -> Iterator[None]:
    """Let ports of the floating IP lead to the virtual address, and no others."""
    network = world.network
    with floating_ip_on(world, None):
        (found,) = network.ips(floating_ip_address=world.played.floating["ingress"])
        port = world.played.cluster.port("ingress-port")
        body = {"protocol": "tcp", "internal_port_id": port.id, "internal_ip_address": world.played.virtual("ingress")}
        for each in numbers:
            network.create_port_forwarding(floatingip_id=found.id, internal_port=each, external_port=each, **body)
        yield
        for made in list(network.port_forwardings(found)):  # those of a fix, too
            network.delete_floating_ip_port_forwarding(found, made)


@situation("port forwardings on the floating IP instead of the port")
def port_forwardings(world: World) -> Iterator[None]:
    with forwardings(world, 80, 443):
        yield


@situation("a port forwarding of 80 alone", ingress="floating-ip.not-forwarded", silent="ingress")
def port_forwarding_of_80(world: World) -> Iterator[None]:
    with forwardings(world, 80):
        yield


@situation("a second port with the name of the virtual address's", ingress="port.ambiguous port.missing port.missing")
def second_port(world: World) -> Iterator[None]:
    port = world.played.cluster.port("ingress-port")
    made = world.network.create_port(network_id=port.network_id, name=port.name)
    yield
    world.network.delete_port(made, ignore_missing=True)  # a fix has done so


@situation(
    "a second port with the name of the virtual address's, which install-config.yaml names",
    ingress="port.ambiguous port.missing port.missing",
    words=["--install-config", "install-config.yaml"],
)
def second_port_beside_the_file(world: World) -> Iterator[None]:
    vips = f"apiVIPs: [{world.played.virtual('api')}]\n    ingressVIPs: [{world.played.virtual('ingress')}]"
    document = f"baseDomain: example.com\nmetadata: {{name: dev}}\nplatform:\n  openstack:\n    {vips}\n"
    (world.prep.folder / "install-config.yaml").write_text(document)
    yield from second_port(world)


@situation("the virtual address's port without a tag", ingress="port.no-tag")
def no_tag(world: World) -> Iterator[None]:
    port = world.played.cluster.port("ingress-port")
    tags = list(port.tags)
    world.network.set_tags(port, [])
    yield
    world.network.set_tags(port, tags)


@contextmanager
def one_without_pair(world: World, service: str, *, holder: bool) -> Iterator[None]:
    """Take the pair of the machine that holds an address, or of the other one."""
    (found,) = world.played.holders(service)
    ports = world.ports(ROLES[service])
    with pairs_of(world, [port for port in ports if (port.id == found.port_id) == holder], []):
        yield


@situation("one worker without a pair, the other one holds the address", ingress="pairs.missing")
def other_worker_without_pair(world: World) -> Iterator[None]:
    """The address is answered until it moves."""
    with one_without_pair(world, "ingress", holder=False):
        yield


@situation("the holder without a pair", ingress="pairs.missing", silent="ingress")
def holder_without_pair(world: World) -> Iterator[None]:
    with one_without_pair(world, "ingress", holder=True):
        yield


@situation("one master without a pair, the other one holds the address", api="pairs.missing")
def other_master_without_pair(world: World) -> Iterator[None]:
    with one_without_pair(world, "api", holder=False):
        yield


@situation("the master that holds the address without a pair", api="pairs.missing", silent="api")
def master_without_pair(world: World) -> Iterator[None]:
    with one_without_pair(world, "api", holder=True):
        yield


@contextmanager
def other_stopped(world: World, service: str) -> Iterator[None]:
    (holder,) = world.played.holders(service)
    with stopped(world, [each for each in world.played.of(service) if each != holder]):
        yield


@situation("one worker stopped, the other one holds the address", ingress="machine.not-active")
def other_worker_stopped(world: World) -> Iterator[None]:
    with other_stopped(world, "ingress"):
        yield


@situation("one master stopped, the other one holds the address", api="machine.not-active")
def other_master_stopped(world: World) -> Iterator[None]:
    with other_stopped(world, "api"):
        yield


@situation("the masters stopped", api="machine.not-active", silent="api")
def masters_stopped(world: World) -> Iterator[None]:
    with stopped(world, world.played.of("api")):
        yield
