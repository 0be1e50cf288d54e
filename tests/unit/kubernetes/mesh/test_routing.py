from __future__ import annotations

import itertools
from typing import Any

import pytest

from openstack_prep.base.diagnostic import Diagnostic
from openstack_prep.kubernetes.mesh.routing import routing
from tests.unit.kubernetes.mesh.cloud import cluster, interface, port, router, subnet, visible
from tests.unit.texts import Wording

ONE, TWO = subnet("one", "10.1.0.0/24"), subnet("two", "10.2.0.0/24")
TRANSIT = subnet("transit", "192.168.0.0/29")
OPENSTACK = "openstack --os-cloud mycloud"


def broken(one: dict[str, Any] = ONE, two: dict[str, Any] = TWO, **given: Any) -> list[Diagnostic]:
    subnets = [one, two, *given.pop("subnets", [])]
    return list(routing(visible(subnets=subnets, **given), cluster("one", one), cluster("two", two)))


def missing(found: Diagnostic, *values: str) -> list[str]:
    """Return the values that a diagnostic does not name."""
    return [each for each in values if each not in found.what]


def test_one_router_for_both() -> None:
    ways = {"interfaces": [interface("r", ONE), interface("r", TWO)], "routers": [router("r")]}
    assert broken(**ways) == []
    assert broken(two=ONE) == []


def test_two_routers_joined_by_a_network() -> None:
    joined = [interface("r1", ONE), interface("r1", TRANSIT), interface("r2", TRANSIT, "192.168.0.2")]
    given = {"subnets": [TRANSIT], "interfaces": [*joined, interface("r2", TWO)]}
    assert broken(routers=[router("r1", ("10.0.0.0/8", "192.168.0.2")), router("r2")], **given) == []
    (found,) = broken(routers=[router("r1"), router("r2")], **given)
    assert found.fix == f"{OPENSTACK} router set --route destination=10.2.0.0/24,gateway=192.168.0.2 r1"
    wrong = [router("r1", ("10.0.0.0/8", "192.168.0.2")), router("r2", external_gateway_info={"network_id": "ext"})]
    given["interfaces"] = joined
    (found,) = broken(routers=wrong, **given)
    assert found.code == "route.missing"
    assert found.fix == f"{OPENSTACK} router add subnet r2 two"


def test_a_host_route_is_stronger_than_the_gateway() -> None:
    routed = ONE | {"host_routes": [{"destination": "10.2.0.0/16", "nexthop": "10.1.0.9"}]}
    interfaces = [interface("r", ONE), interface("far", ONE, "10.1.0.9"), interface("far", TWO)]
    routers = [router("r"), router("far")]
    assert broken(one=routed, interfaces=interfaces, routers=routers) == []
    (found,) = broken(one=routed, interfaces=[interface("r", ONE), interface("r", TWO)], routers=routers)
    assert (found.code, missing(found, "one (10.1.0.0/24)", "10.2.0.0/16", "10.1.0.9")) == ("route.dead-end", [])
    command, _, note = found.fix.partition("  # ")
    assert command == f"{OPENSTACK} subnet unset --host-route destination=10.2.0.0/16,gateway=10.1.0.9 one"
    assert "10.2.0.0/24" in note


def test_a_gateway_that_is_not_the_routers_address() -> None:
    interfaces = [interface("r", ONE, "10.1.0.254"), interface("r", TWO)]
    (found,) = broken(interfaces=interfaces, routers=[router("r")])
    assert (found.code, missing(found, "one (10.1.0.0/24)", "10.1.0.1,", "r has 10.1.0.254")) == (
        "subnet.wrong-gateway",
        [],
    )
    apart = "--no-allocation-pool --allocation-pool start=10.1.0.2,end=10.1.0.253"
    assert found.fix.startswith(f"{OPENSTACK} subnet set {apart} --gateway 10.1.0.254 one  # ")
    (found,) = broken(one=ONE | {"gateway_ip": None}, interfaces=[interface("r", TWO)], routers=[router("r")])
    assert (found.code, missing(found, "one (10.1.0.0/24)", "10.2.0.0/24")) == ("subnet.no-gateway", [])
    assert found.fix.startswith(f"{OPENSTACK} subnet set --gateway 10.1.0.1 one  # ")


def test_an_appliance_is_looked_at_by_a_person() -> None:
    firewall = port("firewall", ONE, "10.1.0.1")
    (found,) = broken(ports=[firewall])
    assert (found.status, found.code) == ("warning", "route.through-machine")
    assert missing(found, "10.1.0.1", "firewall", "compute:nova") == []


def test_an_address_that_machines_share_is_no_dead_end() -> None:
    pairs = [{"ip_address": "10.1.0.77", "mac_address": "fa:16:3e:00:00:01"}]
    for machines in (
        [port("vip", ONE, "10.1.0.77", device_id="")],
        [port("vpn", ONE, "10.1.0.5", allowed_address_pairs=pairs)],
    ):
        routers = [router("r", ("10.0.0.0/8", "10.1.0.77"))]
        (found,) = broken(interfaces=[interface("r", ONE)], routers=routers, ports=machines)
        assert (found.status, found.code) == ("warning", "route.through-machine")


def test_a_circle() -> None:
    interfaces = [interface("r1", ONE), interface("r1", TRANSIT), interface("r2", TRANSIT, "192.168.0.2")]
    routers = [router("r1", ("10.2.0.0/24", "192.168.0.2")), router("r2", ("10.0.0.0/8", "192.168.0.1"))]
    (found,) = broken(subnets=[TRANSIT], interfaces=interfaces, routers=routers)
    assert (found.code, missing(found, "10.2.0.0/24", "r1", "r2")) == ("route.loop", [])
    command, _, note = found.fix.partition("  # ")
    assert command == f"{OPENSTACK} router unset --route destination=10.0.0.0/8,gateway=192.168.0.1 r2"
    assert "10.2.0.0/24" in note


def test_a_dead_route_to_more_than_the_target_stays() -> None:
    """Others may use it; a route to the target alone is the stronger one."""
    interfaces = [interface("r1", ONE), interface("r2", TWO)]
    routers = [router("r1", ("10.0.0.0/8", "10.1.0.77")), router("r2")]
    (found,) = broken(interfaces=interfaces, routers=routers)
    assert (found.code, "unset" in found.fix) == ("route.dead-end", False)


def test_networks_that_cannot_be_told_apart() -> None:
    (found,) = broken(two=subnet("two", "10.1.0.128/25"))
    assert (found.code, missing(found, "one (10.1.0.0/24)", "two (10.1.0.128/25)")) == ("network.overlap", [])
    twin = subnet("twin", "10.2.0.0/16")
    interfaces = [interface("r", ONE), interface("r", twin), interface("r2", TWO)]
    (found,) = broken(subnets=[twin], interfaces=interfaces, routers=[router("r"), router("r2")])
    assert (found.code, missing(found, "router r", "10.2.0.0/24", "twin (10.2.0.0/16)")) == ("network.overlap", [])
    (found,) = broken(two=subnet("two", "2001:db8::/64"))
    assert (found.code, missing(found, "one", "two")) == ("network.no-common-ip-version", [])


@pytest.mark.parametrize(("sees_all", "level"), [(False, "warning"), (True, "error")])
def test_on_other_projects_networks_not_all_routers_are_seen(sees_all: bool, level: str) -> None:
    (found,) = broken(one=ONE | {"project_id": "theirs"}, sees_all=sees_all)
    assert found.status == level
    assert found.code == "router.missing"
    (found,) = broken(interfaces=[interface("r", ONE)])
    assert (found.status, found.code, missing(found, "router r")) == ("unknown", "access.denied", [])


@pytest.mark.parametrize("way", ["router:external", "shared"])
def test_on_a_providers_network_the_router_may_be_of_metal(way: str, wording: Wording) -> None:
    (found,) = broken(networks=[{"id": "net-one", way: True}], sees_all=True)
    assert (found.status, found.code) == ("warning", "router.missing")
    wording(found.what)
    assert broken(networks=[{"id": "net-one", way: False}])[0].status == "error"


def test_a_link_local_gateway_is_a_router_of_metal() -> None:
    one, two = subnet("one", "2001:db8:1::/64", gateway_ip="fe80::1"), subnet("two", "2001:db8:2::/64")
    (found,) = broken(one=one, two=two)
    assert found.status == "warning"


def test_the_order_in_which_neutron_lists_things_does_not_matter() -> None:
    """Neutron sorts by id, and ids are random: every order gives the same findings."""
    interfaces = [interface("r1", ONE), interface("r2", TWO), interface("r1", TWO, "10.2.0.9")]
    interfaces += [interface("r1", TRANSIT), interface("r2", TRANSIT, "192.168.0.2")]
    routers = [router("r1", admin_state_up=False), router("r2", ("10.1.0.0/24", "10.2.0.177"))]
    for ways in itertools.permutations(interfaces):
        for listed in itertools.permutations(routers):
            given = visible(subnets=[TRANSIT, TWO, ONE], interfaces=ways, routers=listed)
            (there,) = routing(given, cluster("one", ONE), cluster("two", TWO))
            (back,) = routing(given, cluster("two", TWO), cluster("one", ONE))
            assert (there.code, missing(there, "router r1")) == ("router.disabled", [])
            assert (back.code, missing(back, "router r2", "10.1.0.0/24", "10.2.0.177")) == ("route.dead-end", [])
            assert back.fix == f"{OPENSTACK} router unset --route destination=10.1.0.0/24,gateway=10.2.0.177 r2"
