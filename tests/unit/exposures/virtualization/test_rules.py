"""What is refused of virtual machines' ways outside: each mistake at its place, and all at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from openstack_prep.exposures.endpoint import ExposedPort, PlacedExposure
from openstack_prep.exposures.virtualization import (
    MacPool,
    NodeBridge,
    OutsideNetwork,
    RenderedMachine,
    Virtualization,
    WholeMachine,
    mistakes,
    warnings,
)
from tests.unit.exposures.virtualization.cases import BRIDGE, MAC, OUTSIDE, PLAIN, WEB, placed

OVS = NodeBridge(name="br-ex", type="ovs-bridge")
LOCALNET = OutsideNetwork(name="vlan30", type="localnet", bridge="br-ex", cidr="198.51.100.0/24", namespaces=("shop",))
SSH = placed("ssh", "node-port")


def places(settings: Virtualization, *given: PlacedExposure) -> list[str]:
    return [each.where for each in mistakes(settings, given)]


def with_bridge(**changes: Any) -> Virtualization:
    return replace(PLAIN, bridges=(replace(BRIDGE, **changes),))


def with_network(**changes: Any) -> Virtualization:
    return replace(PLAIN, networks=(replace(OUTSIDE, **changes),))


def with_machine(**changes: Any) -> Virtualization:
    return replace(PLAIN, machines=(RenderedMachine(**{"name": "shop/web", **changes}),))


STATIC = {"ipv4": "static", "node_addresses": {"node1": "10.0.0.5/24"}}


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"name": "Br1"}, ["name"]),
        ({"name": "br-with-16-chars"}, ["name"]),
        ({"name": "br1\n"}, ["name"]),
        ({"interface": "a b"}, ["interface"]),
        ({"interface": "sixteen-chars-16"}, ["interface"]),
        ({"interface": ".."}, ["interface"]),
        ({"interface": "br-ex"}, ["interface"]),
        ({"interface": "br1"}, ["interface"]),
        ({"interface": None}, ["interface"]),
        ({"interface": "enp129s0f0np0", "vlan": 100}, ["vlan"]),
        ({"interface": "enp129s0f0np0", "vlan": 1}, []),
        ({"node_selector": {"bad key": "x"}}, ["node_selector"]),
        ({"node_selector": {"zone": "a b"}}, ["node_selector"]),
        ({"node_selector": {}}, []),
        ({"node_addresses": {"node1": "10.0.0.5/24"}}, ["node_addresses"]),
        ({"ipv4": "static"}, ["node_addresses"]),
        (STATIC, []),
        ({**STATIC, "node_selector": {"a": "b"}}, ["node_selector"]),
        ({**STATIC, "node_addresses": {"node1": "10.0.0.5"}}, ["node_addresses"]),
        ({**STATIC, "node_addresses": {"node1": "10.0.0.5/255.255.255.0"}}, ["node_addresses"]),
        ({**STATIC, "node_addresses": {"node1": "10.0.0.255/24"}}, ["node_addresses"]),
        ({**STATIC, "node_addresses": {"node1": "fd00::1/64"}}, ["node_addresses"]),
        ({**STATIC, "node_addresses": {"Node_1": "10.0.0.5/24"}}, ["node_addresses"]),
        ({**STATIC, "node_addresses": {"a": "10.0.0.5/24", "b": "10.0.0.5/16"}}, ["node_addresses"]),
    ],
)
def test_bridges(changes: dict[str, Any], where: list[str]) -> None:
    settings = replace(with_bridge(**changes), networks=(replace(OUTSIDE, bridge="other"),))
    assert places(settings, WEB) == [f"bridges[0].{each}" for each in where]


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({}, []),
        ({"interface": "eth1"}, []),
        ({"interface": "eth1", "vlan": 5}, ["vlan"]),
        ({"ipv4": "dhcp"}, ["ipv4"]),
        ({"stp": True}, ["stp"]),
        ({"name": "br-other"}, ["name"]),
    ],
)
def test_ovs_bridges(changes: dict[str, Any], where: list[str]) -> None:
    bridge = replace(OVS, **changes)
    network = replace(LOCALNET, bridge=None if "name" in changes else "br-ex")
    found = places(Virtualization(bridges=(bridge,), networks=(network,)))
    assert found == [f"bridges[0].{each}" for each in where]


@pytest.mark.parametrize(
    ("one", "other", "refused"),
    [
        ({}, {}, True),
        ({}, {"vlan": 5}, False),
        ({"node_selector": {"zone": "a"}}, {"node_selector": {"zone": "b"}}, False),
        ({"node_selector": {"zone": "a"}}, {"node_selector": {}}, True),
        ({"node_selector": {"zone": "a"}}, STATIC, True),
    ],
)
def test_a_port_belongs_to_one_bridge(one: dict[str, Any], other: dict[str, Any], refused: bool) -> None:
    settings = Virtualization(bridges=(replace(BRIDGE, **one), replace(BRIDGE, name="br2", **other)))
    assert places(settings) == (["bridges[1].interface"] if refused else [])


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"name": "default"}, ["name"]),
        ({"bridge": None}, ["bridge"]),
        ({"bridge": "existing-bridge"}, []),
        ({"bridge": "no bridge"}, ["bridge"]),
        ({"type": "localnet"}, ["bridge"]),
        ({"type": "ovn-overlay", "bridge": "br-ex"}, ["bridge"]),
        ({"type": "localnet", "bridge": None}, []),
        ({"type": "localnet", "bridge": None, "physical_network": "a,b"}, ["physical_network"]),
        ({"type": "localnet", "bridge": None, "physical_network": "a:b"}, ["physical_network"]),
        ({"type": "localnet", "bridge": None, "physical_network": "p" * 254}, ["physical_network"]),
        ({"type": "localnet", "bridge": None, "mac_spoof_check": False}, ["mac_spoof_check"]),
        ({"physical_network": "physnet"}, ["physical_network"]),
        ({"gateway": "198.51.100.1"}, ["gateway"]),
        ({"gateway": "192.0.2.255"}, ["gateway"]),
        ({"gateway": None}, []),
        ({"namespaces": ("other",)}, ["namespaces"]),
        ({"namespaces": ("shop", "shop")}, ["namespaces"]),
    ],
)
def test_networks(changes: dict[str, Any], where: list[str]) -> None:
    assert places(with_network(**changes), WEB) == [f"networks[0].{each}" for each in where]


def test_a_network_with_a_tag_on_a_bridge_with_one() -> None:
    settings = replace(with_bridge(vlan=5), networks=(replace(OUTSIDE, vlan=6),))
    assert places(settings, WEB) == ["networks[0].vlan"]


def test_networks_of_one_name_or_with_common_addresses() -> None:
    settings = replace(PLAIN, networks=(OUTSIDE, replace(OUTSIDE, cidr="192.0.2.128/25", gateway=None)))
    assert places(settings, WEB) == ["networks[1]", "networks[1].namespaces", "networks[1].cidr"]


def test_a_mapping_leads_to_one_bridge() -> None:
    other = replace(LOCALNET, name="b", bridge="br2", cidr="203.0.113.0/24", physical_network="vlan30")
    settings = Virtualization(bridges=(OVS, NodeBridge(name="br2", type="ovs-bridge")), networks=(LOCALNET, other))
    assert places(settings) == ["networks[1].physical_network"]


def test_ipv6_needs_its_mtu() -> None:
    network = replace(LOCALNET, cidr="2001:db8::/64", bridge=None, mtu=1279)
    assert places(Virtualization(networks=(network,))) == ["networks[0].mtu"]


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"name": "shop/wbe"}, ["name"]),
        ({"whole": WholeMachine()}, ["whole"]),
        ({"whole": WholeMachine(claim="a", container_disk="b")}, ["whole"]),
        ({"whole": WholeMachine(claim="A_b")}, ["whole.claim"]),
        ({"whole": WholeMachine(container_disk="a b")}, ["whole.container_disk"]),
        ({"whole": WholeMachine(claim="a", user_data_secret="$(id)")}, ["whole.user_data_secret"]),
        ({"whole": WholeMachine(claim="a"), "interfaces": "replace"}, ["interfaces"]),
        ({"pod_interface": "a b"}, ["pod_interface"]),
        ({"pod_network": False}, []),
        ({"pod_network": False, "default_route": "pod"}, ["default_route"]),
        ({"labels": {}}, ["labels"]),
        ({"labels": {"a": "b c"}}, ["labels"]),
    ],
)
def test_machines(changes: dict[str, Any], where: list[str]) -> None:
    assert places(with_machine(**changes), WEB) == [f"machines[0].{each}" for each in where]


def test_a_machine_without_the_pod_network_has_no_services() -> None:
    assert places(with_machine(pod_network=False), WEB, SSH) == ["machines[0].pod_network"]


def test_network_data_must_fit_into_a_machine() -> None:
    settings = replace(
        with_machine(whole=WholeMachine(claim="a")), networks=(replace(OUTSIDE, dns=("192.0.2.2",) * 150),)
    )
    assert places(settings, WEB) == ["machines[0].whole"]


def test_one_default_route() -> None:
    second = OutsideNetwork(name="two", bridge="br1", cidr="198.51.100.0/24", gateway="198.51.100.1", vlan=4)
    settings = replace(PLAIN, networks=(OUTSIDE, second))
    two = placed("web2", address="198.51.100.9", mac="06:00:00:00:00:02")
    assert places(settings, WEB, two) == ["exposures[web2].address"]
    by_pod = replace(settings, machines=(RenderedMachine(name="shop/web", default_route="pod"),))
    assert places(by_pod, WEB, two) == []


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"address": None}, ["networks[0].namespaces"]),  # the exposure reports that it has none
        ({"address": "203.0.113.1"}, ["networks[0].namespaces", "address"]),
        ({"address": "192.0.2.0"}, ["address"]),
        ({"address": "192.0.2.255"}, ["address"]),
        ({"address": "192.0.2.1"}, ["address"]),
        ({"mac": None}, []),
        ({"mac": None, "exposure": replace(WEB.exposure, pool="office")}, ["how"]),
        ({"mac": "07:00:00:00:00:01"}, ["mac"]),
        ({"mac": "02:12:00:00:00:01"}, ["mac"]),
        ({"mac": "02:00:00:00:00:00"}, ["mac"]),
        ({"mac": "03:00:00:00:00:01"}, ["mac"]),
    ],
)
def test_what_is_reserved_for_a_machine_on_a_bridge(changes: dict[str, Any], where: list[str]) -> None:
    found = places(PLAIN, replace(WEB, **changes))
    assert found == [each if "[" in each else f"exposures[web].{each}" for each in where]


def test_another_range_of_kubemacpool() -> None:
    inside = replace(WEB, mac="02:12:00:00:00:01")
    narrow = MacPool(first="02:55:00:00:00:00", last="02:55:00:ff:ff:ff")
    assert places(replace(PLAIN, mac_pool=narrow), inside) == []
    assert places(replace(PLAIN, mac_pool=None), inside) == []
    wrong = MacPool(first="03:00:00:00:00:00", last="02:00:00:00:00:00")
    assert places(replace(PLAIN, mac_pool=wrong), WEB) == ["mac_pool.first", "mac_pool.last"]


def test_two_exposures_with_one_mac_address_or_one_interface() -> None:
    same = placed("web2", machine="shop/db", address="192.0.2.11", mac=MAC)
    again = placed("web3", address="192.0.2.12", mac="06:00:00:00:00:03")
    assert places(PLAIN, WEB, same, again) == ["exposures[web2].mac", "exposures[web3].target"]


def port(number: int = 80, **more: Any) -> ExposedPort:
    return ExposedPort(port=number, **more)


@pytest.mark.parametrize(
    ("exposed", "where"),
    [
        (placed("web", ports=(port(target=8080),), address="192.0.2.10", mac=MAC), ["ports"]),
        (placed("web", ports=(port(node_port=30080),), address="192.0.2.10", mac=MAC), ["ports"]),
        (placed("web", ports=(port(protocol="sctp"),), address="192.0.2.10", mac=MAC), []),
        (placed("ssh", "node-port", ports=(port(protocol="sctp"),)), ["ports"]),
        (placed("ssh", "node-port", ports=(port(), port())), ["ports"]),
        (placed("ssh", "node-port", ports=(port(), port(protocol="udp"))), []),
        (placed("ssh", "node-port", ports=(port(node_port=30001), port(81, node_port=30001))), ["ports"]),
        (placed("ssh", "external-ip", ports=(port(node_port=30001),), address="192.0.2.9"), ["ports"]),
        (placed("ssh", "external-ip"), []),  # the exposure reports that it has no address
        (placed("ssh", "external-ip", address="169.254.0.1"), ["address"]),
        (placed("ssh", "external-ip", address="127.0.0.1"), ["address"]),
        (placed("1ssh", "node-port"), ["name"]),
        (placed("ssh", "floating-ip", address="192.0.2.9"), ["how"]),
        (placed("ssh", "service-host", address="192.0.2.9"), ["how"]),
        (placed("ssh", "bridge", address="192.0.2.9", service="shop/web"), ["how"]),
    ],
)
def test_exposures(exposed: PlacedExposure, where: list[str]) -> None:
    settings = PLAIN if exposed.exposure.name == "web" else Virtualization()
    assert places(settings, exposed) == [f"exposures[{exposed.exposure.name}].{each}" for each in where]


def test_old_releases_of_kubevirt_need_labels() -> None:
    old = Virtualization(kubevirt_version="0.50")
    assert places(old, SSH) == ["exposures[ssh].target"]
    assert (
        places(replace(old, machines=(RenderedMachine(name="shop/web", labels={"kubevirt.io/vm": "web"}),)), SSH) == []
    )


def test_all_mistakes_come_at_once() -> None:
    settings = replace(
        with_bridge(name="Br"),
        machines=(RenderedMachine(name="shop/other"),),
        mac_pool=MacPool(last="01:00:00:00:00:00"),
    )
    assert len(places(settings, replace(WEB, mac=None), placed("1a", "external-ip"))) >= 5


@pytest.mark.parametrize(("version", "count"), [(None, 1), ("v1.35.7+rke2r1", 0), ("v1.36.1", 1), ("v1.40.0", 1)])
def test_external_ips_are_deprecated(version: str | None, count: int) -> None:
    found = [*warnings(Virtualization(), (placed("a", "external-ip", address="192.0.2.9"),), version)]
    assert len(found) == count
    assert all("externalIPs" in each for each in found)


def test_warnings() -> None:
    odd = placed("odd", "node-port", ports=(port(node_port=80),))
    settings = replace(PLAIN, nmstate_version="v1alpha1")
    assert [each.partition(":")[0] for each in warnings(settings, (WEB, odd))] == [
        "exposures[odd]",  # outside of the range of node ports
        "exposures[odd]",  # answers leave by the default route
        "nmstate_version",
    ]
    assert [*warnings(replace(PLAIN, cluster_networks=("10.128.0.0/14",)), (WEB, SSH))] == []


@pytest.mark.parametrize(("version", "count"), [(None, 1), ("1.5", 1), ("1.7", 0)])
def test_names_that_are_not_unique_as_labels(version: str | None, count: int) -> None:
    found = warnings(Virtualization(kubevirt_version=version), (placed("a", "node-port", "shop/web.blue"),))
    assert len([*found]) == count


@pytest.mark.parametrize("version", ["1.7", "v1.7.2"])
def test_the_version_of_kubevirt_in_a_spec(version: str) -> None:
    assert TypeAdapter(Virtualization).validate_json(f'{{"kubevirt_version": "{version}"}}').kubevirt_version == version


@pytest.mark.parametrize(
    "given",
    [
        {"kubevirt_version": 1.7},
        {"kubevirt_version": "latest"},
        {"nmstate_version": "v2"},
        {"bridges": [{"name": "br1", "vlan": 4095}]},
        {"bridges": [{"name": "br1", "vlan": 0}]},
        {"networks": [{"name": "a", "cidr": "192.0.2.0/24", "vlan": 4095}]},
        {"networks": [{"name": "a", "cidr": "192.0.2.1/24"}]},
        {"networks": [{"name": "a", "cidr": "192.0.2.0/24", "mtu": 575}]},
        {"networks": [{"name": "A", "cidr": "192.0.2.0/24"}]},
        {"machines": [{"name": "web"}]},
        {"mac_pool": {"first": "02:00"}},
        {"bridge": []},
    ],
)
def test_what_a_spec_cannot_say(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Virtualization).validate_python(given)
