"""Convert keeps every address of 200 Services, whichever load balancer takes over."""

from __future__ import annotations

import functools
import ipaddress
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from openstack_prep.exposures.convert import ExposureConversion, convert, read, wanted
from openstack_prep.exposures.convert.objects import To
from tests.unit import kubernetes_schemas
from tests.unit.exposures.convert import generated

ALL: list[tuple[To, str, str]] = [
    ("metallb", "0.13.12", "l2"),
    ("metallb", "0.16.1", "bgp"),
    ("cilium", "1.16.5", "bgp"),
    ("cilium", "1.19", "l2"),
    ("kube-vip", "0.8.10", ""),
    ("kube-vip", "1.2.3", ""),
]
ANNOTATIONS = {
    "metallb.io/loadBalancerIPs",
    "metallb.universe.tf/loadBalancerIPs",
    "lbipam.cilium.io/ips",
    "kube-vip.io/loadbalancerIPs",
}
STAY = {
    **{f"shop/headless-{number}": "headless" for number in range(4)},
    **{f"shop/alias-{number}": "alias" for number in range(3)},
    **{f"shop/on-node-{number}": "node node-1" for number in range(2)},
    **{f"shop/twice-{number}": "port 80/TCP" for number in range(2)},
    "shop/other-version": "no IPv6",
}


@pytest.fixture(scope="module", params=ALL, ids=lambda each: "-".join(filter(None, each)))
def conversion(request: pytest.FixtureRequest) -> ExposureConversion:
    to, release, announce = request.param
    routers = {"my_asn": "64512", "peers": ["192.0.2.254=64513"]} if announce == "bgp" else {}
    return convert(read({"in": generated.text()}), wanted(to, release=release, announce=announce or None, **routers))


@functools.cache
def parsed(text: str) -> list[dict[str, Any]]:
    return list(yaml.load_all(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


def documents(conversion: ExposureConversion, name: str) -> list[dict[str, Any]]:
    return parsed(conversion.files[name])


def key(item: dict[str, Any]) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


def requested(item: dict[str, Any]) -> list[str]:
    notes = item["metadata"].get("annotations", {})
    return [each for name in ANNOTATIONS & notes.keys() for each in notes[name].split(",")]


def usual(addresses: list[str]) -> set[str]:
    return {str(ipaddress.ip_address(each)) for each in addresses}


def test_each_address_is_kept(conversion: ExposureConversion) -> None:
    """The addresses of all Services together, by what each one answers: selector and ports."""
    before = {key(each): each for each in generated.cluster()}
    after: dict[str, set[str]] = {name: set() for name in before}
    for each in documents(conversion, "services.yaml"):
        origin = each["metadata"].get("labels", {}).get("openstack-prep/of")
        name = f"{each['metadata']['namespace']}/{origin}" if origin else key(each)
        old = before[name]["spec"]
        assert each["spec"].get("selector") == old["selector"]
        assert [port["port"] for port in each["spec"]["ports"]] == [port["port"] for port in old["ports"]]
        after[name] |= {*requested(each), *each["spec"].get("externalIPs", [])}
    changed = {key(each) for each in documents(conversion, "before.yaml")}
    for name, old in before.items():
        addresses = usual(old["spec"].get("externalIPs", []))
        if name in changed:
            assert after[name] == addresses, name
        else:
            assert not addresses or name in STAY, name
    assert {each.service for each in conversion.kept} == changed


def test_what_stays_is_named_with_its_reason(conversion: ExposureConversion) -> None:
    left = {each.service: each.why for each in conversion.left}
    assert STAY.keys() == left.keys()
    for name, reason in STAY.items():
        assert reason in left[name]
    (half,) = [each for each in conversion.kept if each.service == "shop/on-node-1"]
    assert (half.new, half.remaining) == (("192.0.2.140",), ("192.0.2.1",))


def pools(conversion: ExposureConversion) -> Iterator[tuple[int, int]]:
    """Yield the first and last address of each range, as numbers."""
    for each in documents(conversion, "pools.yaml"):
        spec = each.get("spec", {})
        blocks = [f"{one['start']}-{one['stop']}" for one in spec.get("blocks", [])]
        texts = [*spec.get("addresses", []), *blocks, *",".join(each.get("data", {}).values()).split(",")]
        for text in filter(None, texts):
            ends = text.split("-") if "-" in text else [str(ipaddress.ip_network(text)[index]) for index in (0, -1)]
            first, last = (int(ipaddress.ip_address(end)) for end in ends)
            yield first, last


def test_pools_hold_exactly_the_addresses_that_carry_over(conversion: ExposureConversion) -> None:
    held = {number for first, last in pools(conversion) for number in range(first, last + 1)}
    assert held == {int(ipaddress.ip_address(address)) for each in conversion.kept for address in each.new}


def test_node_ports_are_kept_and_no_others_are_allocated(conversion: ExposureConversion) -> None:
    before = {key(each): each["spec"] for each in generated.cluster()}
    for each in documents(conversion, "services.yaml"):
        old = before.get(key(each))
        ports = [port.get("nodePort") for port in each["spec"]["ports"]]
        if old is None:
            assert each["spec"]["allocateLoadBalancerNodePorts"] is False
            assert ports == [None] * len(ports)
        else:
            assert ports == [port.get("nodePort") for port in old["ports"]]


def test_services_are_valid_and_hold_no_secret(conversion: ExposureConversion) -> None:
    for name in ("services.yaml", "before.yaml"):
        for each in documents(conversion, name):
            kubernetes_schemas.validate(each, "1.36")
    whole = "".join(conversion.files.values()) + str(conversion) + json.dumps(conversion.data())
    assert generated.SECRET not in whole
    assert "last-applied" not in whole


def test_the_way_back_restores_each_service(conversion: ExposureConversion) -> None:
    before = {key(each): each["spec"] for each in generated.cluster()}
    for each in documents(conversion, "before.yaml"):
        old = before[key(each)]
        assert each["spec"]["type"] == old["type"]
        assert set(each["spec"]["externalIPs"]) == usual(old["externalIPs"])
        assert each["metadata"].keys() == {"name", "namespace"}


def test_the_order_of_the_input_does_not_matter() -> None:
    data = json.loads(generated.text())
    data["items"].reverse()
    chosen = wanted("metallb")
    assert convert(read({"a": json.dumps(data)}), chosen).files == convert(read({"b": generated.text()}), chosen).files
