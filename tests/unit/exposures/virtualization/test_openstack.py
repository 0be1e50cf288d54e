"""Nodes that are servers of OpenStack: the pairs they need, and what keeps frames from passing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from openstack_prep.base.diagnostic import DiagnosticStatus
from openstack_prep.exposures.virtualization import Virtualization, VisibleNodes, diagnose
from openstack_prep.resources.lists.neutron_records import NetworkRecord, PortRecord, SubnetRecord, TrunkRecord
from tests.unit.conftest import subnet_row
from tests.unit.exposures.virtualization.cases import MAC, OUTSIDE, PLAIN, WEB

SETTINGS = replace(PLAIN, networks=(replace(OUTSIDE, openstack_network="provider"),))
PAIR = {"ip_address": "192.0.2.10", "mac_address": MAC}
OVN = {"device_owner": "network:distributed", "device_id": "ovnmeta-n", "port_security_enabled": False}


def port(id: str, server: str = "", network: str = "n", **more: Any) -> dict[str, Any]:
    found = {"id": id, "name": f"port-{id}", "network_id": network, "device_id": server, "fixed_ips": []}
    found |= {"device_owner": "compute:nova" if server else "", "mac_address": f"fa:16:3e:00:00:0{id[-1]}"}
    return {**found, "port_security_enabled": True, "allowed_address_pairs": [], **more}


def visible(*ports: dict[str, Any], servers: int = 1, **more: Any) -> VisibleNodes:
    given: Any = {
        "networks": [{"id": "n", "name": "provider"}],
        "subnets": [subnet_row(id="s", network_id="n", cidr="192.0.2.0/24")],
        "servers": {f"s{index}": f"node{index}" for index in range(1, servers + 1)},
        "trunks": [],
    }
    given |= more
    for field, kind in (("networks", NetworkRecord), ("subnets", SubnetRecord), ("trunks", TrunkRecord)):
        given[field] = None if given[field] is None else list(map(kind.read, given[field]))
    return VisibleNodes(cloud="a cloud", ports=list(map(PortRecord.read, ports)), **given)


def codes(nodes: VisibleNodes, settings: Virtualization = SETTINGS) -> list[str]:
    return [each.code for each in diagnose(settings, (WEB,), nodes)]


def test_a_node_with_the_pair() -> None:
    assert codes(visible(port("p1", "s1", allowed_address_pairs=[PAIR]))) == []


def test_a_network_as_pair_is_enough() -> None:
    wide = {"ip_address": "192.0.2.0/28", "mac_address": MAC.upper()}
    assert codes(visible(port("p1", "s1", allowed_address_pairs=[wide]))) == []


def test_without_port_security_no_pair_is_needed() -> None:
    assert codes(visible(port("p1", "s1", port_security_enabled=False))) == []


@pytest.mark.parametrize("pairs", [[], [{"ip_address": "192.0.2.10", "mac_address": "fa:16:3e:00:00:01"}]])
def test_without_a_pair_with_its_mac_address_frames_are_dropped(pairs: list[dict[str, str]]) -> None:
    (found,) = diagnose(SETTINGS, (WEB,), visible(port("p1", "s1", allowed_address_pairs=pairs)))
    assert (found.code, found.status) == ("bridge.pair-missing", DiagnosticStatus.ERROR)
    assert ("another MAC address" in found.what) == bool(pairs)
    assert found.fix == "openstack-prep apply"


def test_neutron_29_refuses_the_pair_with_ovn() -> None:
    (found,) = diagnose(SETTINGS, (WEB,), visible(port("p1", "s1"), port("o3", **OVN)))
    command, _, rest = found.fix.partition("  # ")
    assert found.code == "bridge.pair-missing"
    assert command.startswith("openstack --os-cloud ")
    assert command.endswith(" --disable-port-security p1")
    assert "openstack-prep apply" in rest


def test_pairs_that_the_spec_declares_itself_may_be_on_one_node_alone() -> None:
    ports = [port("p1", "s1", allowed_address_pairs=[PAIR]), port("p2", "s2"), port("o3", **OVN)]
    assert codes(visible(*ports, servers=2)) == ["bridge.pair-missing", "bridge.ovn-one-port"]
    assert codes(visible(*ports, servers=2, declared=["web"])) == []


def test_every_node_needs_a_port() -> None:
    nodes = visible(port("p1", "s1", allowed_address_pairs=[PAIR]), port("p2", "s2", network="other"), servers=2)
    (found,) = diagnose(SETTINGS, (WEB,), nodes)
    assert found.code == "bridge.no-port"
    assert "node2" in found.what
    assert "node1" not in found.what


TAGGED = replace(SETTINGS, networks=(replace(SETTINGS.networks[0], vlan=30),))


def trunk(vlan: int) -> dict[str, Any]:
    return {"id": "t1", "port_id": "parent", "sub_ports": [{"port_id": "sub1", "segmentation_id": vlan}]}


def test_tagged_frames_cannot_pass_a_neutron_without_trunks() -> None:
    assert codes(visible(trunks=None), TAGGED) == ["bridge.no-trunks"]


@pytest.mark.parametrize(("vlan", "said"), [(30, ["bridge.pair-missing"]), (31, ["bridge.no-subport"])])
def test_tagged_frames_need_a_trunk(vlan: int, said: list[str]) -> None:
    ports = (port("parent", "s1", network="other"), port("sub1", device_id="t1", device_owner="trunk:subport"))
    assert codes(visible(*ports, trunks=[trunk(vlan)]), TAGGED) == said
    assert codes(visible(port("p1", "s1"), trunks=[]), TAGGED) == ["bridge.no-subport"]


def test_the_pair_of_tagged_frames_is_that_of_the_subport() -> None:
    ports = (port("parent", "s1", network="other"), port("sub1", device_id="t1", allowed_address_pairs=[PAIR]))
    assert codes(visible(*ports, trunks=[trunk(30)]), TAGGED) == []


def test_ovn_has_one_port_per_mac_address() -> None:
    ports = [port(f"p{each}", f"s{each}", allowed_address_pairs=[PAIR]) for each in (1, 2)]
    (found,) = diagnose(SETTINGS, (WEB,), visible(*ports, port("o3", **OVN), servers=2))
    assert (found.code, found.status) == ("bridge.ovn-one-port", DiagnosticStatus.ERROR)
    (unknown,) = diagnose(SETTINGS, (WEB,), visible(*ports, servers=2))
    assert unknown.status is DiagnosticStatus.UNKNOWN
    agent = port("d3", device_owner="network:dhcp", device_id="dhcp0-x")
    assert codes(visible(*ports, agent, servers=2)) == []
    off = [{**each, "port_security_enabled": False, "allowed_address_pairs": []} for each in ports]
    assert codes(visible(*off, port("o3", **OVN), servers=2)) == []


def fixed(address: str = "192.0.2.10") -> list[dict[str, str]]:
    return [{"ip_address": address, "subnet_id": "x"}]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (port("r9", fixed_ips=fixed()), []),
        (port("r9", fixed_ips=fixed("192.0.2.11")), []),
        (port("r9", mac_address=MAC, fixed_ips=fixed()), ["bridge.mac-in-use"]),
        (port("r9", "elsewhere", fixed_ips=fixed()), ["bridge.address-taken"]),
        (port("r9", fixed_ips=fixed(), device_owner="network:router_interface"), ["bridge.address-taken"]),
    ],
)
def test_ports_with_the_address_or_the_mac_address(other: dict[str, Any], said: list[str]) -> None:
    node = port("p1", "s1", allowed_address_pairs=[PAIR])
    assert codes(visible(node, other, port("o3", **OVN))) == said


def test_ovn_answers_for_a_reserved_address_that_no_pair_has() -> None:
    node, reserved = port("p1", "s1", port_security_enabled=False), port("r9", fixed_ips=fixed())
    assert codes(visible(node, reserved, port("o3", **OVN))) == ["bridge.reserved-by-port"]
    assert codes(visible(node, reserved, port("d3", device_owner="network:dhcp", device_id="dhcp0-x"))) == []


@pytest.mark.parametrize(
    ("name", "networks", "status"),
    [
        ("provider", [], DiagnosticStatus.ERROR),
        ("provider", [{"id": "a", "name": "provider"}, {"id": "b", "name": "provider"}], DiagnosticStatus.ERROR),
        (None, [{"id": "n", "name": "provider"}], DiagnosticStatus.UNKNOWN),
    ],
)
def test_a_network_that_is_not_known(
    name: str | None, networks: list[dict[str, str]], status: DiagnosticStatus
) -> None:
    settings = replace(SETTINGS, networks=(replace(OUTSIDE, openstack_network=name),))
    (found,) = diagnose(settings, (WEB,), visible(networks=networks))
    assert (found.code, found.status) == ("bridge.network-unknown", status)


def test_an_address_outside_of_the_subnets() -> None:
    node = port("p1", "s1", allowed_address_pairs=[PAIR])
    assert codes(visible(node, subnets=[subnet_row(id="s", network_id="n")])) == ["bridge.outside-subnet"]
