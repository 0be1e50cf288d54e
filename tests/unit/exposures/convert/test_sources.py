"""What others wrote: hostile, damaged and wrong input is refused with its place, all mistakes at once."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from openstack_prep.base.errors import SpecError
from openstack_prep.exposures.convert import read
from openstack_prep.exposures.convert.objects import Old
from tests.unit.exposures.convert.generated import item

POOL = {
    "apiVersion": "ipcontroller.ext/v1",
    "kind": "IpClaimPool",
    "metadata": {"name": "test-pool"},
    "spec": {
        "cidr": "192.168.0.248/29",
        "ranges": [["192.168.0.249", "192.168.0.250"], ["192.168.0.252", "192.168.0.253"]],
        "allocated": {"192.168.0.249": "192-168-0-249-29"},
    },
}
EIP = {
    "apiVersion": "network.kubesphere.io/v1alpha2",
    "kind": "Eip",
    "metadata": {"name": "eip.sample"},
    "spec": {"address": "192.0.2.91-192.0.2.100", "interface": "eth0", "protocol": "layer2"},
}


def whole(*items: Any) -> str:
    return json.dumps({"kind": "List", "apiVersion": "v1", "items": list(items)})


def places(*texts: str) -> list[str]:
    """Return the places of all mistakes."""
    with pytest.raises(SpecError) as caught:
        read({f"f{number}": text for number, text in enumerate(texts)})
    return [each.where for each in caught.value.mistakes]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "{",
        whole(item("a"))[:-9],
        "[" * 100_000,
        '{"a":' * 100_000,
        "- " * 3000,
        "a: b: c",
        "a: 1\na: 2\n",
        "--- ]\n",
        "null",
        "42",
        '"text"',
        "[]",
        "{}",
        whole(),
        whole(None, 3, []),
        '{"kind": "List", "items": 3}',
        "x: &a [*a]",
        "&a a: &b b\n<<: *b\n",
        "a" * (3 * 2**20),
        "\x00",
        "a: \ud800".encode("utf-8", "surrogatepass").decode("utf-8", "replace"),
    ],
    ids=range(23),
)
def test_what_is_no_list_of_services_is_refused(text: str) -> None:
    assert places(text)


def test_all_mistakes_of_all_files_are_reported_with_their_places() -> None:
    wrong = item("a", externalIPs=["192.0.2.300", "fe80::1%eth0", 7, "127.0.0.1", "0.0.0.0", "224.0.0.1"], type="Other")
    wrong["spec"] |= {"selector": {"app": 1}, "ports": [{"port": "80"}, {"port": 80, "protocol": "ICMP"}, 1]}
    wrong["spec"] |= {"externalTrafficPolicy": "Nowhere", "ipFamilies": ["IPv5"], "sessionAffinityConfig": 3}
    found = places(whole(wrong), "{")
    prefix = "f0: items[0]: spec"
    assert {*found} == {
        *(f"{prefix}.externalIPs[{number}]" for number in range(6)),
        *(f"{prefix}.{name}" for name in ("type", "selector", "ports[0].port", "ports[1].protocol", "ports[2]")),
        *(f"{prefix}.{name}" for name in ("externalTrafficPolicy", "ipFamilies", "sessionAffinityConfig")),
        "f1",
    }


@pytest.mark.parametrize(
    "name", ["a b", "$(reboot)", "`id`", "a;b", "a\nb", "-a", "A", "a" * 64, "", "../a", "a'b", "a/b"]
)
def test_names_that_kubernetes_does_not_accept_are_refused(name: str) -> None:
    assert places(whole(item(name, externalIPs=["192.0.2.1"], selector=None))) == ["f0: items[0]: metadata.name"]
    if name:
        assert places(whole(item("a", name, externalIPs=["192.0.2.1"]))) == ["f0: items[0]: metadata.namespace"]


def test_a_service_in_two_files_is_refused() -> None:
    assert places(whole(item("a")), whole(item("b"), item("a"))) == ["f1: items[1]"]


@pytest.mark.parametrize(
    ("kind", "version"),
    [("Pod", "v1"), ("Secret", "v1"), ("Service", "v2"), ("IpClaimPool", "v1"), (None, "v1"), (["Service"], "v1")],
)
def test_other_kinds_are_refused(kind: object, version: str) -> None:
    assert places(whole({"kind": kind, "apiVersion": version, "metadata": {"name": "a"}})) == ["f0: items[0]"]


def test_secrets_are_not_repeated_in_errors() -> None:
    secret = {"kind": "Secret", "apiVersion": "v1", "data": {"password": "hush"}}
    with pytest.raises(SpecError) as caught:
        read({"a": whole(secret, {**item("a"), "spec": {"externalIPs": ["hush-not-here"]}})})
    assert "hush'" not in str(caught.value)


def test_yaml_with_several_documents_and_lists() -> None:
    documents = [
        {"apiVersion": "v1", "kind": "ServiceList", "items": [item("a", externalIPs=["192.0.2.1"])]},
        None,
        item("on", "null", externalIPs=["2001:DB8::1", "2001:db8:0::1", "::ffff:192.0.2.2"]),
        POOL,
    ]
    del documents[0]["items"][0]["kind"]  # type: ignore[index]
    old = read({"x": yaml.safe_dump_all(documents)})
    assert {each.key: each.addresses for each in old.services} == {
        "shop/a": ("192.0.2.1",),
        "null/on": ("2001:db8::1", "192.0.2.2"),
    }
    assert old.pools[0].name == "test-pool"


def pool_of(data: dict[str, Any]) -> Old:
    return read({"x": whole(item("a"), data)})


def test_pools_of_old_controllers() -> None:
    (pool,) = pool_of(POOL).pools
    assert list(map(str, pool.ranges)) == ["192.168.0.249-192.168.0.250", "192.168.0.252-192.168.0.253"]
    (pool,) = pool_of({**POOL, "spec": {"cidr": "192.168.0.248/29"}}).pools
    assert list(map(str, pool.ranges)) == ["192.168.0.249-192.168.0.254"]
    (pool,) = pool_of(EIP).pools
    assert (pool.name, list(map(str, pool.ranges)), pool.interface) == (
        "eip-sample",
        ["192.0.2.91-192.0.2.100"],
        "eth0",
    )
    (pool,) = pool_of({**EIP, "spec": {"address": "192.0.2.7/28", "interface": "can_reach:192.0.2.1"}}).pools
    assert (list(map(str, pool.ranges)), pool.interface) == (["192.0.2.0-192.0.2.15"], "")


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        ({}, "spec.cidr"),
        ({"cidr": "192.0.2.0/33"}, "spec.cidr"),
        ({"cidr": "192.0.2.0/24", "ranges": [[]]}, "spec.ranges[0]"),
        ({"cidr": "192.0.2.0/24", "ranges": ["192.0.2.1"]}, "spec.ranges[0]"),
        ({"cidr": "192.0.2.0/24", "ranges": [["192.0.2.9", "192.0.2.1"]]}, "spec.ranges[0]"),
        ({"cidr": "192.0.2.0/24", "ranges": [["192.0.3.1", "192.0.3.9"]]}, "spec.ranges[0]"),
    ],
)
def test_damaged_pools(spec: dict[str, Any], place: str) -> None:
    assert places(whole(item("a"), {**POOL, "spec": spec})) == [f"f0: items[1]: {place}"]


def test_pools_that_overlap_or_have_one_name_are_refused() -> None:
    other = {**POOL, "metadata": {"name": "other"}}
    assert places(whole(item("a"), POOL, other)) == ["f0: items[2]", "f0: items[2]"]
    assert "f0: items[2]" in places(whole(item("a"), POOL, POOL))
