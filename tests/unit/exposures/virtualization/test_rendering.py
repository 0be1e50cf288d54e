"""All files as they are written: data/virtualization*; OPENSTACK_PREP_STORE=1 writes them again."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.exposures.endpoint import PlacedExposure
from openstack_prep.exposures.virtualization import NodeBridge, RenderedMachine, Virtualization, files, mistakes
from openstack_prep.exposures.virtualization.manifests import SERVICES
from tests.unit.exposures.virtualization import schemas
from tests.unit.exposures.virtualization.cases import FULL, MAC, OUTSIDE, PLACED, PLAIN, WEB, placed

DATA = Path(__file__).parents[1] / "data"
WORLDS = {"plain": (PLAIN, (WEB,)), "full": (FULL, PLACED)}


def stored(name: str) -> Path:
    return DATA / f"virtualization-{name}.txt"


@pytest.mark.parametrize("name", WORLDS)
def test_the_files_are_those_stored(name: str) -> None:
    text = "".join(f"##### {file}\n{content}" for file, content in files(*WORLDS[name]).items())
    if os.environ.get("OPENSTACK_PREP_STORE"):
        stored(name).write_text(text)
    assert stored(name).read_text() == text


@pytest.mark.parametrize("name", WORLDS)
def test_what_is_rendered_has_no_mistakes_and_is_valid(name: str) -> None:
    assert [*mistakes(*WORLDS[name])] == []
    for text in files(*WORLDS[name]).values():
        for document in yaml.safe_load_all(text):
            schemas.validate(document)


def test_the_order_of_exposures_does_not_matter() -> None:
    assert files(FULL, PLACED) == files(FULL, PLACED[::-1])


def test_nothing_is_rendered_for_services_and_hosts() -> None:
    others = (placed("a", "metallb", service="shop/web"), placed("b", "service-host", host="services"))
    assert files(Virtualization(), others) == {}


def test_names_of_files_have_no_slashes() -> None:
    assert all(re.fullmatch(r"[a-z0-9._-]+", each) for each in files(FULL, PLACED))


HOSTILE = ("$(id)", "a'b", 'a"b', "a\nb: c", "{{a}}", "- x", "# c", "yes", "!!x", "a: b", "&a", "`id`", "%x", "é\u0085")


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_with_metacharacters_remain_values(text: str) -> None:
    """Rules refuse most of these; what Python code renders without asking them is harmless all the same."""
    bridge = NodeBridge(name=text, interface=text, node_selector={text: text})
    network = replace(OUTSIDE, bridge=text)
    localnet = replace(OUTSIDE, type="localnet", physical_network=text, name="other", cidr="198.51.100.0/24")
    machine = RenderedMachine(name="shop/web", labels={text: text}, pod_interface=text)
    settings = Virtualization(bridges=(bridge,), networks=(network, localnet), machines=(machine,))
    read = {name: [*yaml.safe_load_all(each)] for name, each in files(settings, (WEB, SERVED)).items()}
    policy = read["network-policy.yaml"][0]
    assert policy["metadata"]["name"] == text
    assert policy["spec"]["nodeSelector"] == {text: text}
    assert policy["spec"]["desiredState"]["interfaces"][0]["bridge"]["port"] == [{"name": text}]
    definition, cluster = read["networks.yaml"]
    assert yaml.safe_load(definition["spec"]["config"])["plugins"][0]["bridge"] == text
    assert cluster["spec"]["network"]["localnet"]["physicalNetworkName"] == text
    assert read[SERVICES][0]["spec"]["selector"] == {text: text}
    assert text in read["cloud-init-shop_web.yaml"][0]["ethernets"]


SERVED = placed("ssh", "node-port")


def rendered(settings: Virtualization, *given: PlacedExposure) -> dict[str, Any]:
    assert [*mistakes(settings, given)] == []
    return {name: yaml.safe_load(text) for name, text in files(settings, given).items()}


def test_network_data_names_the_address_the_mac_address_and_the_gateway() -> None:
    data = rendered(PLAIN, WEB)["cloud-init-shop_web.yaml"]
    assert schemas.addresses(data) == {"192.0.2.10"}
    outside = data["ethernets"]["outside0"]
    assert outside["match"] == {"macaddress": MAC}
    assert outside["routes"] == [{"to": "0.0.0.0/0", "via": "192.0.2.1", "metric": 50}]
    assert data["ethernets"]["enp1s0"] == {"dhcp4": True, "dhcp4-overrides": {"route-metric": 1000}}


def test_the_default_route_may_remain_that_of_the_pod_network() -> None:
    settings = replace(PLAIN, machines=(RenderedMachine(name="shop/web", default_route="pod"),))
    ethernets = rendered(settings, WEB)["cloud-init-shop_web.yaml"]["ethernets"]
    assert ethernets["enp1s0"] == {"dhcp4": True}
    assert "routes" not in ethernets["outside0"]


def test_replacing_sets_the_pod_network_first() -> None:
    settings = replace(PLAIN, machines=(RenderedMachine(name="shop/web", interfaces="replace"),))
    spec = rendered(settings, WEB)["virtual-machine-shop_web.patch.yaml"]["spec"]["template"]["spec"]
    assert [each["name"] for each in spec["domain"]["devices"]["interfaces"]] == ["default", "outside"]
    assert spec["networks"] == [
        {"name": "default", "pod": {}},
        {"name": "outside", "multus": {"networkName": "shop/outside"}},
    ]


@pytest.mark.parametrize(
    ("version", "machine", "selector"),
    [
        (None, "shop/web", {"vm.kubevirt.io/name": "web"}),
        ("0.51", "shop/web.a", {"vm.kubevirt.io/name": "web"}),
        ("v1.6.3", f"shop/{'l' * 70}", {"vm.kubevirt.io/name": "l" * 63}),
        ("1.7", "shop/web", {"vmi.kubevirt.io/id": "web"}),
        ("1.7", f"shop/{'l' * 63}", {"vmi.kubevirt.io/id": "l" * 63}),
        # by KubeVirt's own CalculateVirtualMachineInstanceID
        ("1.9.0", f"shop/{'l' * 70}", {"vmi.kubevirt.io/id": "l" * 54 + "-1c038149"}),
    ],
)
def test_services_select_a_machine_as_virtctl_does(version: str | None, machine: str, selector: dict[str, str]) -> None:
    settings = Virtualization(kubevirt_version=version)
    assert rendered(settings, placed("ssh", "node-port", machine))[SERVICES]["spec"]["selector"] == selector


def test_the_annotation_of_an_older_load_balancer() -> None:
    found = files(Virtualization(), (placed("a", "cilium", address="192.0.2.3"),), {"cilium": "io.cilium/lb-ipam-ips"})
    assert yaml.safe_load(found[SERVICES])["metadata"]["annotations"] == {"io.cilium/lb-ipam-ips": "192.0.2.3"}
