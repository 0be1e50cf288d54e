"""Which Service carries which address: what each load balancer can share and assign, and what stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from openstack_prep.base.errors import InternalError, SpecError
from openstack_prep.exposures.convert import ExposureConversion, convert, read, wanted
from openstack_prep.exposures.convert.objects import To
from openstack_prep.exposures.convert.proof import prove
from tests.unit.exposures.convert.generated import DUAL, item
from tests.unit.exposures.convert.test_sources import EIP, POOL

TCP, UDP = ({"port": 53, "protocol": each} for each in ("TCP", "UDP"))
ONE = "192.0.2.10"


def run(*items: Any, to: To = "metallb", **options: Any) -> ExposureConversion:
    return convert(read({"x": json.dumps({"kind": "List", "items": list(items)})}), wanted(to, **options))


def services(conversion: ExposureConversion) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in yaml.safe_load_all(conversion.files["services.yaml"])}


def notes(conversion: ExposureConversion, name: str) -> dict[str, str]:
    return dict(services(conversion)[name]["metadata"]["annotations"])


@pytest.mark.parametrize(
    ("to", "release", "key"),
    [
        ("metallb", "0.14.8", "metallb.universe.tf/allow-shared-ip"),
        ("metallb", "0.14", "metallb.io/allow-shared-ip"),
        ("metallb", "0.16.1", "metallb.io/allow-shared-ip"),
        ("cilium", "1.15.4", "io.cilium/lb-ipam-sharing-key"),
        ("cilium", "1.18", "lbipam.cilium.io/sharing-key"),
        ("kube-vip", "1.2.3", "kube-vip.io/leaseName"),
    ],
)
def test_services_that_share_an_address_get_one_key(to: To, release: str, key: str) -> None:
    """Also through others: a and c have no common address, and b has one with each."""
    other = "192.0.2.11"
    ports = [[{"port": each, "protocol": "TCP"}] for each in (80, 81, 82)]
    a, b = item("a", ports=ports[0], externalIPs=[ONE]), item("b", ports=ports[1], externalIPs=[ONE, other], **DUAL)
    b["spec"] |= {"clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"}
    found = run(a, b, item("c", ports=ports[2], externalIPs=[other]), to=to, release=release)
    assert not found.left
    keys = [each["metadata"]["annotations"][key] for each in services(found).values()]
    assert len({keys[0], keys[1]}) == 1
    assert found.kept[1].new == (ONE, other)


@pytest.mark.parametrize(
    ("to", "release", "one", "other", "carries"),
    [
        ("metallb", "0.16.1", {"ports": [TCP]}, {"ports": [UDP]}, True),
        ("kube-vip", "1.2.3", {"ports": [TCP]}, {"ports": [UDP]}, True),
        ("cilium", "1.19", {"ports": [TCP]}, {"ports": [UDP]}, False),
        ("metallb", "0.16.1", {"ports": [TCP]}, {"ports": [TCP]}, False),
        ("metallb", "0.16.1", {}, {"ports": [TCP], "externalTrafficPolicy": "Local"}, False),
        ("cilium", "1.19", {}, {"ports": [TCP], "externalTrafficPolicy": "Local"}, False),
        ("kube-vip", "1.2.3", {}, {"ports": [TCP], "externalTrafficPolicy": "Local"}, False),
        ("cilium", "1.14", {}, {"ports": [TCP]}, False),
        ("cilium", "1.15", {}, {"ports": [TCP]}, True),
    ],
)
def test_who_can_share(to: To, release: str, one: Any, other: Any, carries: bool) -> None:
    found = run(item("a", externalIPs=[ONE], **one), item("b", externalIPs=[ONE], **other), to=to, release=release)
    assert [each.service for each in found.left] == ([] if carries else ["shop/a", "shop/b"])
    assert bool(found.files) is carries


def test_local_services_share_with_the_same_selector() -> None:
    local = {"externalIPs": [ONE], "externalTrafficPolicy": "Local"}
    same = {"app": "x"}
    for to in ("metallb", "cilium"):
        both = (item("a", **local, selector=same), item("b", **local, selector=same, ports=[TCP]))
        assert not run(*both, to=to).left
        both[1]["spec"]["selector"] = {"app": "y"}
        assert len(run(*both, to=to).left) == 2


def test_sharing_between_namespaces() -> None:
    both = (item("a", "one", externalIPs=[ONE]), item("b", "two", externalIPs=[ONE], ports=[TCP]))
    found = run(*both, to="cilium", release="1.16")
    assert notes(found, "a")["lbipam.cilium.io/sharing-cross-namespace"] == "two"
    assert notes(found, "b")["lbipam.cilium.io/sharing-cross-namespace"] == "one"
    assert len(run(*both, to="cilium", release="1.15").left) == 2
    assert notes(run(*both, to="kube-vip"), "b")["kube-vip.io/leaseName"].startswith("one/")


def test_a_service_moves_without_the_address_that_it_cannot_share() -> None:
    found = run(item("a", externalIPs=[ONE, "192.0.2.11"]), item("b", externalIPs=[ONE]))
    (kept,) = found.kept
    assert (kept.service, kept.new, kept.remaining) == ("shop/a", ("192.0.2.11",), (ONE,))
    assert services(found)["a"]["spec"]["externalIPs"] == [ONE]
    assert ONE not in found.files["pools.yaml"]


def test_additional_services_have_free_names_of_valid_length() -> None:
    long = "a" * 63
    addresses = [f"192.0.2.{number}" for number in range(10, 13)]
    found = run(
        item(long, externalIPs=addresses), item("b", externalIPs=["192.0.2.1", "192.0.2.2"]), item("b-external")
    )
    names = set(services(found))
    assert names == {long, "a" * 54 + "-external", "a" * 52 + "-external-2", "b", "b-external-2"}


def test_without_a_selector_there_is_no_additional_service() -> None:
    found = run(item("a", externalIPs=[ONE, "192.0.2.11"], selector=None))
    assert [(each.service, each.addresses) for each in found.left] == [("shop/a", ("192.0.2.11",))]
    assert run(item("a", externalIPs=[ONE, "192.0.2.11"], selector=None), to="cilium").left == ()


def test_a_balanced_service_keeps_its_own_address() -> None:
    balanced = {"type": "LoadBalancer", "status": {"loadBalancer": {"ingress": [{"ip": "10.9.0.1"}]}}}
    found = services(run(item("a", externalIPs=[ONE], **balanced)))
    assert "annotations" not in found["a"]["metadata"]
    assert found["a"]["spec"]["externalIPs"] == []
    assert found["a-external"]["spec"]["ports"] == found["a"]["spec"]["ports"]


def test_an_address_of_another_load_balancer_stays() -> None:
    other = item("b", type="LoadBalancer", status={"loadBalancer": {"ingress": [{"ip": ONE}]}}, ports=[TCP])
    found = run(item("a", externalIPs=[ONE]), other)
    assert [each.service for each in found.left] == ["shop/a"]
    assert "shop/b" in found.left[0].why


def test_services_of_openelb_move_with_the_addresses_of_their_status() -> None:
    elb = item("a", type="LoadBalancer", status={"loadBalancer": {"ingress": [{"ip": "192.0.2.91"}]}})
    elb["metadata"]["annotations"]["lb.kubesphere.io/v1alpha1"] = "openelb"
    found = run(elb, EIP)
    assert notes(found, "a") == {"metallb.io/loadBalancerIPs": "192.0.2.91"}
    assert "eip-sample" in found.files["pools.yaml"]
    assert "annotate service a lb.kubesphere.io/v1alpha1-" in found.files["commands.txt"]


def test_addresses_of_one_service_are_in_one_pool() -> None:
    """MetalLB takes both from one pool; the address leaves its old pool."""
    both = item("a", externalIPs=["192.168.0.249", "2001:db8::1"], **DUAL)
    found = list(yaml.safe_load_all(run(both, POOL).files["pools.yaml"]))
    pools = {
        each["metadata"]["name"]: each["spec"].get("addresses") for each in found if each["kind"] == "IPAddressPool"
    }
    assert pools == {
        "external-ips": ["192.168.0.249/32", "2001:db8::1/128"],
        "test-pool": ["192.168.0.250/32", "192.168.0.252/31"],
    }


def test_a_single_address_does_not_get_a_second_one() -> None:
    spec = {"externalIPs": [ONE], "ipFamilyPolicy": "PreferDualStack"}
    assert services(run(item("a", **spec)))["a"]["spec"]["ipFamilyPolicy"] == "SingleStack"


def test_the_class_is_only_set_for_services_that_become_load_balancers() -> None:
    balanced = {"type": "LoadBalancer", "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.11"}]}}}
    found = run(
        item("a", externalIPs=[ONE]), item("b", externalIPs=["192.0.2.11"], **balanced), class_name="example.com/mine"
    )
    assert services(found)["a"]["spec"]["loadBalancerClass"] == "example.com/mine"
    assert [each.service for each in found.left] == ["shop/b"]


def test_nothing_to_convert() -> None:
    found = run(item("a"))
    assert (found.files, found.kept, found.left, found.steps) == ({}, (), (), ())


@pytest.mark.parametrize(
    ("to", "options", "places"),
    [
        ("metallb", {"release": "0.12.1"}, ["--release 0.12.1"]),
        ("metallb", {"release": "new"}, ["--release new"]),
        ("cilium", {"release": "1.12"}, ["--release 1.12"]),
        ("kube-vip", {"announce": "bgp", "interfaces": ["eth0"]}, ["--announce", "--interface"]),
        ("metallb", {"announce": "bgp"}, ["--my-asn", "--peer"]),
        ("metallb", {"my_asn": "1", "peers": ["192.0.2.1=1"]}, ["--my-asn", "--peer"]),
        ("metallb", {"announce": "bgp", "my_asn": "0", "peers": ["x"]}, ["--my-asn 0", "--peer x"]),
        ("metallb", {"interfaces": ["eth0; reboot"]}, ["--interface eth0; reboot"]),
        ("metallb", {"class_name": "a\nb"}, ["--load-balancer-class a\nb"]),
        (
            "cilium",
            {"class_name": "io.cilium/bgp-control-plane"},
            ["--load-balancer-class io.cilium/bgp-control-plane"],
        ),
    ],
)
def test_options_that_do_not_fit(to: To, options: dict[str, Any], places: list[str]) -> None:
    with pytest.raises(SpecError) as caught:
        wanted(to, **options)
    assert [each.where for each in caught.value.mistakes] == places


def test_what_a_release_does_not_announce_is_refused() -> None:
    six = item("a", externalIPs=["2001:db8::1"], clusterIPs=["fd00::1"], ipFamilies=["IPv6"])
    with pytest.raises(SpecError) as caught:
        run(six, to="cilium", release="1.18")
    assert [each.where for each in caught.value.mistakes] == ["cilium: pools[0]"]


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("pools.yaml", "192.0.2.10/32", "192.0.2.12/32"),
        ("services.yaml", "loadBalancerIPs: 192.0.2.10", "loadBalancerIPs: 192.0.2.12"),
        ("services.yaml", "allow-shared-ip: external-ip-192.0.2.10", "allow-shared-ip: other"),
        ("services.yaml", "port: 53", "port: 80"),
        ("services.yaml", "ipFamilyPolicy: SingleStack", "ipFamilyPolicy: PreferDualStack"),
    ],
)
def test_the_proof_finds_what_would_lose_an_address(file: str, old: str, new: str) -> None:
    items = [item("a", externalIPs=[ONE]), item("b", externalIPs=[ONE], ports=[TCP])]
    both = read({"x": json.dumps({"kind": "List", "items": items})})
    files = dict(convert(both, wanted("metallb")).files)
    assert len(prove(both, files["pools.yaml"], files["services.yaml"], wanted("metallb"))) == 2
    assert old in files[file]
    files[file] = files[file].replace(old, new, 1)
    with pytest.raises(InternalError):
        prove(both, files["pools.yaml"], files["services.yaml"], wanted("metallb"))
