from __future__ import annotations

from typing import Any

from openstack_prep.kubernetes.mesh.addresses import own_addresses, pod_routes
from tests.unit.kubernetes.mesh.cloud import cluster, interface, port, router, subnet, visible

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
    assert found.what == "the ports two-3, two-4 have no allowed address pair for the mesh address 10.2.0.200"
    set_pair = f"{OPENSTACK} port set --allowed-address ip-address=10.2.0.200"
    assert found.fix.partition("  # ")[0] == f"{set_pair} two-3 && {set_pair} two-4"


def test_the_mesh_address_is_among_the_nodes() -> None:
    (found,) = own_addresses(visible(), cluster("two", TWO, node(0, "10.9.0.200"), mesh_address="10.9.0.200"))
    assert found.what == "the mesh address 10.9.0.200 lies in no subnet of the nodes: 10.2.0.0/24"
    announced = cluster("two", TWO, node(0, "10.9.0.200"), mesh_address="10.9.0.200", by_bgp=True)
    (found,) = own_addresses(visible(), announced)
    assert (found.status, found.fix) == ("warning", "check the routers for a route to 10.9.0.200")


def test_every_node_may_send_as_its_pods() -> None:
    assert list(own_addresses(visible(), cluster("two", TWO, node(0, "10.66.3.0/24"), pod_networks=PODS))) == []
    (found,) = own_addresses(visible(), cluster("two", TWO, node(0), pod_networks=PODS))
    assert found.what == "the ports two-0 have no allowed address pair for the pods' 10.66.0.0/16"
    assert found.fix.startswith(f"{OPENSTACK} port set --allowed-address ip-address=10.66.0.0/16 two-0  # ")


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


def test_the_router_beside_the_nodes_leads_to_the_pods_of_each() -> None:
    assert routes(router("r1", ("10.66.0.0/24", "10.2.0.10"), ("10.66.1.0/24", "10.2.0.11"))) == []
    ((what, fix),) = routes(router("r1", ("10.66.0.0/24", "10.2.0.10")))
    assert what == "router r1 r1 has no route to the pods' 10.66.0.0/16 by 10.2.0.11"
    assert fix.startswith(f"{OPENSTACK} router set --route destination=PODS_OF_10.2.0.11,gateway=10.2.0.11 r1  # ")


def test_routers_before_it_lead_there() -> None:
    to_nodes, to_pods = ("10.2.0.0/24", "192.168.0.2"), ("10.66.0.0/16", "192.168.0.2")
    last = router("r2", ("10.66.0.0/24", "10.2.0.10"), ("10.66.1.0/24", "10.2.0.11"))
    assert routes(router("r1", to_nodes, to_pods), last) == []
    ((what, fix),) = routes(router("r1", to_nodes), last)
    assert what == "router r1 r1 has no route to the pods' 10.66.0.0/16 by 192.168.0.2"
    assert fix == f"{OPENSTACK} router set --route destination=10.66.0.0/16,gateway=192.168.0.2 r1"
    assert routes(router("r1"), last) == []  # the way to the nodes is told of elsewhere


def test_nodes_of_one_subnet_need_no_router() -> None:
    two = cluster("two", TWO, node(0), pod_networks=PODS)
    assert list(pod_routes(visible(subnets=[TWO]), cluster("one", TWO), two)) == []
