from __future__ import annotations

import json
from typing import Any

import pytest

from openstack_prep.base.errors import SpecError
from openstack_prep.kubernetes.services import ServiceRecord, read, records
from tests.unit.texts import Wording


def service(name: str = "front", **parts: Any) -> dict[str, Any]:
    """Return a Service as kubectl prints it; ``parts`` are its spec but for ingress and annotations."""
    metadata = {"namespace": "shop", "name": name, "annotations": parts.pop("annotations", {})}
    status = {"loadBalancer": {"ingress": parts.pop("ingress", [])}}
    spec = {"type": "LoadBalancer", "clusterIP": "10.43.0.9"} | parts
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec, "status": status}


def said(*items: Any, kind: str = "List") -> str:
    """Return a list of Services as kubectl prints it, with the one that is in every cluster."""
    api = {"kind": "Service", "metadata": {"namespace": "default", "name": "kubernetes"}, "spec": {"type": "ClusterIP"}}
    return json.dumps({"apiVersion": "v1", "kind": kind, "items": [*items, api]})


def test_every_place_in_which_a_service_names_an_address() -> None:
    found = read(
        said(
            service("status", ingress=[{"ip": "10.1.0.200"}, {"ip": "fd00:0::1", "ipMode": "VIP"}]),
            service("spec", loadBalancerIP="10.1.0.201"),
            service("new", annotations={"metallb.io/loadBalancerIPs": "10.1.0.202, fd00::2"}),
            service("old", annotations={"metallb.universe.tf/loadBalancerIPs": "10.1.0.203"}),
            service("cilium", annotations={"lbipam.cilium.io/ips": "10.1.0.205,fd00::5"}),
            service("cilium-1.13", annotations={"io.cilium/lb-ipam-ips": "10.1.0.206"}),
            service("kube-vip", annotations={"kube-vip.io/loadbalancerIPs": "10.1.0.207"}),
            service("class", loadBalancerClass="io.cilium/l2-announcer", ingress=[{"ip": "10.1.0.208"}]),
            service("external", type="ClusterIP", externalIPs=["10.1.0.204"], ingress=[{"ip": "10.1.0.250"}]),
            service("again", loadBalancerIP="10.1.0.200"),
            service("pending"),
            {"kind": "Service"},
        )
    )
    assert found.addresses == {
        "10.1.0.200": "shop/status",
        "fd00::1": "shop/status",
        "10.1.0.201": "shop/spec",
        "10.1.0.202": "shop/new",
        "fd00::2": "shop/new",
        "10.1.0.203": "shop/old",
        "10.1.0.205": "shop/cilium",
        "fd00::5": "shop/cilium",
        "10.1.0.206": "shop/cilium-1.13",
        "10.1.0.207": "shop/kube-vip",
        "10.1.0.208": "shop/class",
        "10.1.0.204": "shop/external",
    }
    assert found.notes == ()


def test_a_list_may_be_empty_and_a_name_is_told_of(wording: Wording) -> None:
    assert read(said()).addresses == read(said(kind="ServiceList")).addresses == {}
    found = read(said(service(ingress=[{"hostname": "lb.example.com"}])))
    wording(found.notes)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "services: is empty; pass the output of kubectl get services -A -o json"),
        ("error: the server is away", "services: is not JSON"),
        ("[]", "services: is an array, not a list of Services"),
        ("null", "services: is null, not a list"),
        ("{}", "services: is an object without a kind, not a list"),
        ('{"kind": "List"}', "services: is List, not a list of Services"),
        (json.dumps(service()), "services: is Service, not a list of Services"),
        (said(kind="PodList"), "services: is PodList, not a list of Services"),
        (said({"kind": "Pod"}), "services: items[0]: is Pod, not a Service"),
        (said("x"), "services: items[0]: is a string, not a Service"),
        (said(service() | {"spec": "x"}), "services: items[0]: spec is a string, not an object; pass the output"),
        (said(service(externalIPs="10.1.0.9")), "services: items[0]: spec.externalIPs is a string, not an array"),
        (said(service(ingress=["10.1.0.9"])), "services: items[0]: ingress is a string, not an object"),
        ("[" * 100_000, "services: is not JSON"),
    ],
)
def test_what_is_no_list_of_services_is_refused(text: str, why: str) -> None:
    with pytest.raises(SpecError) as caught:
        read(text)
    assert str(caught.value).startswith(why)


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(SpecError) as caught:
        read(said({"kind": "Pod"}, service("a", loadBalancerIP=7), service("b", externalIPs=8)))
    assert len(caught.value.mistakes) == 3


@pytest.mark.parametrize("junk", ["10.1.0.300", "10.1.0.0/24", "fe80::1%eth0", "all", 5, True, None])
def test_what_is_no_address_keeps_no_other_from_its_own(junk: object, wording: Wording) -> None:
    """Whoever may annotate a Service may write anything there; a number is none either, though Python takes it."""
    found = read(said(service("bad", externalIPs=[junk]), service("good", ingress=[{"ip": "10.1.0.200"}])))
    assert found.addresses == {"10.1.0.200": "shop/good"}
    wording(found.notes)


def test_a_list_of_one_namespace_is_told_of(wording: Wording) -> None:
    """It looks like any other, and would take their addresses from the Services of the rest."""
    (note,) = read('{"kind": "List", "items": []}').notes
    wording(note)


def test_a_byte_order_mark_is_passed_over() -> None:
    assert read("\ufeff" + said()).addresses == {}


def test_services_by_name() -> None:
    ports = [{"port": 443, "protocol": "TCP", "nodePort": 30443}, {"port": 53, "protocol": "UDP"}, {"port": 80}]
    requests = {"annotations": {"metallb.io/loadBalancerIPs": "10.1.0.202, fd00:0::2"}, "loadBalancerIP": "10.1.0.201"}
    given = [{"ip": "fd00:0::2"}, {"hostname": "shop.example.com"}]
    found = records(said(service(ports=ports, externalIPs=["192.0.2.1", "?"], ingress=given, **requests)))
    assert found == {
        "shop/front": ServiceRecord(
            type="LoadBalancer",
            external_ips=("192.0.2.1",),
            requested=("10.1.0.201", "10.1.0.202", "fd00::2"),
            given=("fd00::2",),
            ports={("tcp", 443): 30443, ("udp", 53): None, ("tcp", 80): None},
        ),
        "default/kubernetes": ServiceRecord(type="ClusterIP"),
    }


@pytest.mark.parametrize("item", [3, service(ports=["443"]), service(ports=[{"port": "443"}]), {"spec": 3}])
def test_what_is_no_service_is_named(item: object, wording: Wording) -> None:
    with pytest.raises(SpecError) as caught:
        records(said(item))
    wording(caught.value)
