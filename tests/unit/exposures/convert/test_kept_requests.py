"""What old Services keep asking after server-side apply, by each load balancer: cleared, and proved after merging."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from openstack_prep.base.errors import InternalError, SpecError
from openstack_prep.exposures.convert import Old, convert, read, wanted
from openstack_prep.exposures.convert.objects import To
from openstack_prep.exposures.convert.proof import prove
from tests.unit.exposures.convert.generated import item

ONE, OTHER = "192.0.2.10", "192.0.2.99"
LB = {"type": "LoadBalancer"}
OCCM = {"loadbalancer.openstack.org/load-balancer-id": "1fa81053-3860-26b0-6820-8e1522b3a8db"}
INGRESS = {"loadBalancer": {"ingress": [{"ip": "198.51.100.7"}]}}


def service(annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    found = item("a", externalIPs=[ONE], **spec)
    found["metadata"]["annotations"] |= annotations or {}
    return found


def old_of(*items: dict[str, Any]) -> Old:
    return read({"x": json.dumps({"kind": "List", "items": list(items)})})


def by_name(text: str) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in yaml.safe_load_all(text)}


@pytest.mark.parametrize(
    ("to", "release", "annotations", "spec", "emptied"),
    [
        ("metallb", "0.16.1", {"metallb.universe.tf/address-pool": "production"}, {}, True),
        ("metallb", "0.16.1", {"metallb.io/address-pool": "production"}, {}, True),
        ("metallb", "0.14.8", {"metallb.universe.tf/address-pool": "production"}, {}, True),
        ("metallb", "0.16.1", {"metallb.universe.tf/loadBalancerIPs": OTHER}, {}, True),
        ("metallb", "0.16.1", {}, LB | {"loadBalancerIP": ONE}, True),
        ("metallb", "0.13.12", {}, LB | {"loadBalancerIP": OTHER}, True),
        ("cilium", "1.19", {"io.cilium/lb-ipam-ips": OTHER}, {}, True),
        ("cilium", "1.19", {}, LB | {"loadBalancerIP": OTHER}, True),
        ("cilium", "1.15", {}, LB | {"loadBalancerIP": OTHER}, True),
        ("kube-vip", "1.2.3", {"kube-vip.io/ignore": "true"}, {}, True),
        ("kube-vip", "1.2.3", {}, LB | {"loadBalancerIP": OTHER}, True),
        ("kube-vip", "1.2.3", {"kube-vip.io/loadbalancerIPs": OTHER}, {}, False),  # replaced by the new value
        ("metallb", "0.16.1", {"kube-vip.io/loadbalancerIPs": OTHER}, {}, False),  # nobody reads it there
        ("cilium", "1.19", {"metallb.universe.tf/address-pool": "production"}, {}, False),
    ],
)
def test_what_the_load_balancer_would_read_is_emptied(
    to: To, release: str, annotations: dict[str, str], spec: dict[str, Any], emptied: bool
) -> None:
    options = wanted(to, release=release)
    old = old_of(service(annotations, **spec))
    files = convert(old, options).files
    after, before = (by_name(files[name])["a"] for name in ("services.yaml", "before.yaml"))
    fields = {name: "" for name in ("loadBalancerIP",) if name in spec}
    assert (
        {each: after["metadata"]["annotations"].get(each) for each in annotations} == dict.fromkeys(annotations, "")
    ) is (emptied or not annotations)
    assert {name: after["spec"].get(name) for name in fields} == fields
    if emptied:
        assert (before["metadata"].get("annotations") or {}) == annotations
        assert {name: before["spec"].get(name) for name in fields} == {name: spec[name] for name in fields}
    assert prove(old, files["pools.yaml"], files["services.yaml"], options)[0].new == (ONE,)


@pytest.mark.parametrize(
    ("to", "annotations", "spec"),
    [
        ("metallb", {"metallb.universe.tf/address-pool": "production"}, {}),
        ("metallb", {"metallb.io/address-pool": "production"}, {}),
        ("metallb", {}, LB | {"loadBalancerIP": ONE}),
        ("cilium", {}, LB | {"loadBalancerIP": OTHER}),
        ("kube-vip", {"kube-vip.io/ignore": "true"}, {}),
    ],
)
def test_the_proof_merges_the_manifest_with_what_exists(
    to: To, annotations: dict[str, str], spec: dict[str, Any]
) -> None:
    """The texts of a Service without these fields lose the address in a cluster whose Service has them."""
    files = convert(old_of(service(**{**spec, **({"loadBalancerIP": ""} if spec else {})})), wanted(to)).files
    with pytest.raises(InternalError):
        prove(old_of(service(annotations, **spec)), files["pools.yaml"], files["services.yaml"], wanted(to))


def test_limits_of_sources_do_not_reach_the_address() -> None:
    """kube-proxy limits who reaches the address of a load balancer, and not who reaches an external IP."""
    old = old_of(service(**LB, loadBalancerSourceRanges=["10.0.0.0/8"]))
    after = by_name(convert(old, wanted("metallb")).files["services.yaml"])
    assert after["a"]["metadata"].get("annotations") is None
    assert "loadBalancerSourceRanges" not in after["a-external"]["spec"]


@pytest.mark.parametrize(
    ("to", "announce", "name"),
    [
        ("metallb", None, "metallb"),
        ("kube-vip", None, "kube-vip.io/kube-vip-class"),
        ("cilium", "l2", "io.cilium/l2-announcer"),
    ],
)
@pytest.mark.parametrize("kind", ["LoadBalancer", "ClusterIP", "pending"])
def test_beside_openstacks_load_balancer_services_get_a_class(
    to: To, announce: str | None, name: str, kind: str
) -> None:
    """It takes each Service of type LoadBalancer without one, and would create a second balancer."""
    fields: dict[str, Any] = {} if kind == "ClusterIP" else LB | ({"status": INGRESS} if kind == "LoadBalancer" else {})
    found = convert(old_of(service(OCCM, **fields)), wanted(to, announce=announce))
    (carrier,) = (each for each in by_name(found.files["services.yaml"]).values() if "annotations" in each["metadata"])
    assert carrier["spec"]["loadBalancerClass"] == name
    assert carrier["metadata"]["name"] == ("a" if kind == "ClusterIP" else "a-external")
    assert any(re.search(r"cloud-provider-openstack.*shop/a", note) for note in found.notes)
    assert OCCM.keys().isdisjoint(str(found.files).split())


def test_a_chosen_class_wins_beside_openstacks_load_balancer() -> None:
    found = convert(old_of(service(OCCM, **LB, status=INGRESS)), wanted("metallb", class_name="example.com/edge"))
    assert by_name(found.files["services.yaml"])["a-external"]["spec"]["loadBalancerClass"] == "example.com/edge"


@pytest.mark.parametrize(
    ("kubelet", "release", "refused"),
    [("v1.36.2", "0.15.3", True), ("v1.35.7", "0.15.3", False), ("v1.36.2", "0.16.0", False), (None, "0.15.3", False)],
)
def test_peers_that_kubernetes_refuses(kubelet: str | None, release: str, refused: bool) -> None:
    """The API server has the newest version of the nodes at least; without nodes a note names the limit."""
    nodes: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": each}} for each in ("n", "m")
    ]
    if kubelet:
        nodes[0]["status"] = {"nodeInfo": {"kubeletVersion": kubelet}, "addresses": []}
        nodes[1]["status"] = {"nodeInfo": {"kubeletVersion": "v1.34.1"}, "addresses": []}
    options = wanted("metallb", release=release, announce="bgp", my_asn="64512", peers=["192.0.2.254=64513"])
    old = old_of(service(), *(nodes if kubelet else []))
    if refused:
        with pytest.raises(SpecError) as caught:
            convert(old, options)
        assert [each.where for each in caught.value.mistakes] == ["metallb: version"]
    else:
        assert any("BGPPeer" in note for note in convert(old, options).notes) is (kubelet is None)


def test_the_annotation_of_internal_balancers_is_of_the_cloud_too() -> None:
    internal = {"service.beta.kubernetes.io/openstack-internal-load-balancer": "true"}
    old = old_of(service(internal, **LB, status=INGRESS))
    assert [each.by_cloud for each in old.services] == [True]
    assert old.by_cloud


def test_a_host_name_of_another_load_balancer_stays() -> None:
    """The cloud gives a name in place of the address for balancers that speak the proxy protocol."""
    names = {"loadBalancer": {"ingress": [{"hostname": "198.51.100.7.nip.io"}]}}
    found = convert(old_of(service(**LB, status=names)), wanted("metallb"))
    assert "a-external" in by_name(found.files["services.yaml"])
