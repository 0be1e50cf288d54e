from __future__ import annotations

import shlex
import subprocess
from typing import Any

from openstack_prep.kubernetes.mesh.examination import own_addresses, pod_routes
from openstack_prep.kubernetes.mesh.view import VisibleNetworks
from tests.unit.kubernetes.mesh.cloud import cluster, interface, port, router, subnet, visible
from tests.unit.texts import Wording, contains

ONE, TWO = subnet("one", "10.1.0.0/24"), subnet("two", "10.2.0.0/24")
TRANSIT = subnet("transit", "192.168.0.0/29")
PODS = ("10.66.0.0/16",)
OPENSTACK = "openstack --os-cloud mycloud"


def node(n: int, *pairs: str, **fields: Any) -> dict[str, Any]:
    listed = [{"ip_address": each, "mac_address": "fa:16:3e:00:00:01"} for each in pairs]
    return port(f"two-{n}", TWO, f"10.2.0.1{n}", allowed_address_pairs=listed, **fields)


def test_every_node_may_use_the_mesh_address() -> None:
    well = [node(0, "10.2.0.192/28"), node(1, "10.2.0.200"), node(2, port_security_enabled=False)]
    assert list(own_addresses(visible(), cluster("two", TWO, *well, mesh_address="10.2.0.200"))) == []
    (found,) = own_addresses(visible(), cluster("two", TWO, *well, node(3), node(4), mesh_address="10.2.0.200"))
    assert found.code == "pairs.missing"
    assert contains(found.what, "two-3", "two-4", "10.2.0.200")
    set_pair = f"{OPENSTACK} port set --allowed-address ip-address=10.2.0.200"
    assert found.fix.partition("  # ")[0] == f"{set_pair} two-3 && {set_pair} two-4"


OVNS_PORT = port("ovn", TWO, "10.2.0.2", device_owner="network:distributed")


def reserving(*, enabled: bool) -> dict[str, Any]:
    return port("kept", TWO, "10.2.0.200", device_id="", device_owner="", admin_state_up=enabled)


def test_with_ovn_a_pair_with_another_mac_address_diverts_the_mesh_address() -> None:
    """Where an enabled port without a machine has it; the command leaves the other pairs."""
    own = [{"ip_address": "10.2.0.200", "mac_address": "fa:16:3e:00:00:01"}]
    pairs = [*own, {"ip_address": "10.2.0.200", "mac_address": "00:00:5e:00:01:1e"}]
    nodes = [node(0, "10.2.0.200"), node(1) | {"allowed_address_pairs": pairs}]
    two = cluster("two", TWO, *nodes, mesh_address="10.2.0.200")
    seen = visible(ports=[OVNS_PORT, reserving(enabled=True), *nodes])
    (found,) = own_addresses(seen, two)
    left = "--allowed-address ip-address=10.2.0.200,mac-address=fa:16:3e:00:00:01 two-1"
    assert (found.code, found.fix) == ("pairs.missing", f"{OPENSTACK} port set --no-allowed-address {left}")
    for harmless in ([reserving(enabled=True)], [OVNS_PORT, reserving(enabled=False)], [OVNS_PORT]):
        assert list(own_addresses(visible(ports=[*harmless, *nodes]), two)) == []


def test_with_ovn_a_network_around_a_reserved_mesh_address_is_not_enough() -> None:
    nodes = [node(0, "10.2.0.192/28"), node(1, "10.2.0.192/28")]
    two = cluster("two", TWO, *nodes, mesh_address="10.2.0.200")
    (found,) = own_addresses(visible(ports=[OVNS_PORT, reserving(enabled=False), *nodes]), two)
    set_pair = f"{OPENSTACK} port set --allowed-address ip-address=10.2.0.200"
    assert found.code == "pairs.missing"
    assert found.fix.partition("  # ")[0] == f"{set_pair} two-0 && {set_pair} two-1"
    for harmless in ([reserving(enabled=False)], [OVNS_PORT]):
        assert list(own_addresses(visible(ports=[*harmless, *nodes]), two)) == []


def test_the_mesh_address_is_among_the_nodes(wording: Wording) -> None:
    (found,) = own_addresses(visible(), cluster("two", TWO, node(0, "10.9.0.200"), mesh_address="10.9.0.200"))
    assert found.code == "mesh-address.outside-subnet"
    wording(found.what)
    announced = cluster("two", TWO, node(0, "10.9.0.200"), mesh_address="10.9.0.200", by_bgp=True)
    (found,) = own_addresses(visible(), announced)
    assert found.status == "warning"
    wording(found.fix)


def test_every_node_may_send_as_its_pods() -> None:
    whole = [node(0, "10.66.0.0/16"), node(1, "10.66.0.0/17", "10.66.128.0/17"), node(2, port_security_enabled=False)]
    assert list(own_addresses(visible(), cluster("two", TWO, *whole, pod_networks=PODS))) == []
    (found,) = own_addresses(visible(), cluster("two", TWO, *whole, node(3), pod_networks=PODS))
    assert found.code == "pairs.missing"
    assert contains(found.what, "two-3", "10.66.0.0/16")
    assert found.fix.startswith(f"{OPENSTACK} port set --allowed-address ip-address=10.66.0.0/16 two-3  # ")


def around_nodes(*routes: tuple[str, str]) -> VisibleNetworks:
    return visible(subnets=[TWO], interfaces=[interface("r1", TWO)], routers=[router("r1", *routes)])


def test_a_node_may_send_from_the_part_that_is_routed_to_it() -> None:
    nodes = cluster("two", TWO, node(0, "10.66.0.0/24"), node(1, "10.66.1.0/24"), pod_networks=PODS)
    right, swapped = (("10.66.0.0/24", "10.66.1.0/24"), ("10.66.1.0/24", "10.66.0.0/24"))
    assert list(own_addresses(around_nodes((right[0], "10.2.0.10"), (right[1], "10.2.0.11")), nodes)) == []
    found = list(own_addresses(around_nodes((swapped[0], "10.2.0.10"), (swapped[1], "10.2.0.11")), nodes))
    assert [(each.code, each.status, each.fix.partition("  # ")[0]) for each in found] == [
        ("pairs.missing", "error", f"{OPENSTACK} port set --allowed-address ip-address=10.66.1.0/24 two-0"),
        ("pairs.missing", "error", f"{OPENSTACK} port set --allowed-address ip-address=10.66.0.0/24 two-1"),
    ]


def test_without_a_route_nobody_knows_which_part_is_the_nodes() -> None:
    nodes = [node(n, f"10.66.{n}.0/24") for n in range(4)]
    elsewhere = around_nodes(("10.66.0.0/16", "10.2.0.10"), ("10.66.0.0/24", "10.2.0.200"))  # to none of their parts
    (found,) = own_addresses(elsewhere, cluster("two", TWO, *nodes, pod_networks=PODS))
    assert (found.code, found.status, found.where) == ("pairs.partial", "unknown", "two")
    assert "two-0, two-1, two-2 and 1 more" in found.what
    assert found.fix.count(f"{OPENSTACK} port set --allowed-address ip-address=10.66.0.0/16 two-") == 4


def routes(*routers: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what is found on the way from one, by r1 alone or by r1 and r2 joined by a network."""
    interfaces = [interface("r1", ONE)]
    if len(routers) == 1:
        interfaces += [interface("r1", TWO)]
    else:
        transit = [interface("r1", TRANSIT), interface("r2", TRANSIT, "192.168.0.2")]
        interfaces += [*transit, interface("r2", TWO)]
    around = visible(subnets=[ONE, TWO, TRANSIT], interfaces=interfaces, routers=routers)
    two = cluster("two", TWO, node(0), node(1), pod_networks=PODS)
    return [(each.what, each.fix) for each in pod_routes(around, cluster("one", ONE), two)]


def test_the_router_beside_the_nodes_leads_to_the_pods_of_each(wording: Wording) -> None:
    assert routes(router("r1", ("10.66.0.0/24", "10.2.0.10"), ("10.66.1.0/24", "10.2.0.11"))) == []
    ((what, fix),) = routes(router("r1", ("10.66.0.0/24", "10.2.0.10")))
    wording(what)
    wording(run_fix(fix, "10.66.0.0/24 10.2.0.10 node0\n10.66.1.0/24 10.2.0.11 node1\n"))


def run_fix(fix: str, nodes: str) -> str:
    """Run a fix by a shell in which kubectl prints the nodes, and return the words that the client gets."""
    kubectl = f"kubectl() {{ printf {shlex.quote(nodes)}; }}"
    script = f'{kubectl}\nopenstack() {{ echo "$@"; }}\n{fix}'
    return subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True).stdout


def test_the_parts_that_routes_and_pairs_show_are_printed(wording: Wording) -> None:
    around = {"subnets": [ONE, TWO], "interfaces": [interface("r1", ONE), interface("r1", TWO)]}
    routers = [router("r1"), router("r9", ("10.66.7.0/24", "10.2.0.11"))]
    nodes = (node(0, "10.66.0.0/24"), node(1, "10.66.0.0/16"), node(2, "10.66.2.0/24", "10.66.9.0/24"))
    two = cluster("two", TWO, *nodes, pod_networks=PODS)
    known, unknown = pod_routes(visible(**around, routers=routers), cluster("one", ONE), two)
    route = "--route destination={},gateway={}"
    both = (route.format("10.66.0.0/24", "10.2.0.10"), route.format("10.66.7.0/24", "10.2.0.11"))
    assert known.fix == f"{OPENSTACK} router set {' '.join(both)} r1"
    wording(run_fix(unknown.fix, "10.66.2.0/24 10.2.0.12 node2\n10.66.3.0/24 10.2.0.13 node3\n"))


def test_routers_before_it_lead_there(wording: Wording) -> None:
    to_nodes, to_pods = ("10.2.0.0/24", "192.168.0.2"), ("10.66.0.0/16", "192.168.0.2")
    last = router("r2", ("10.66.0.0/24", "10.2.0.10"), ("10.66.1.0/24", "10.2.0.11"))
    assert routes(router("r1", to_nodes, to_pods), last) == []
    ((what, fix),) = routes(router("r1", to_nodes), last)
    wording(what)
    assert fix == f"{OPENSTACK} router set --route destination=10.66.0.0/16,gateway=192.168.0.2 r1"
    assert routes(router("r1"), last) == []  # the way to the nodes is told of elsewhere


def test_nodes_of_one_subnet_need_no_router() -> None:
    two = cluster("two", TWO, node(0), pod_networks=PODS)
    assert list(pod_routes(visible(subnets=[TWO]), cluster("one", TWO), two)) == []
