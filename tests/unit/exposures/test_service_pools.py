"""The pool of each load balancer that exposures need: rendered, unless a cluster of the spec declares it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.base.ranges import Range
from openstack_prep.cloud.no_cloud import NoCloud
from openstack_prep.core.model import Context
from openstack_prep.exposures import exposed_cluster
from openstack_prep.exposures.endpoint import Exposed, ExposedPort, ExposureTarget, PlacedExposure, Way
from openstack_prep.exposures.exposed_cluster import ExposedCluster
from openstack_prep.spec import load_spec


def placed(how: Way, address: str | None, name: str = "frontend", target: str = "service") -> PlacedExposure:
    exposure = Exposed(
        name=name,
        cluster="c",
        target=ExposureTarget(**{target: f"shop/{name}"}),
        ports=(ExposedPort(port=443),),
        how=how,
    )
    return PlacedExposure(exposure=exposure, address=address)


def documents(text: str) -> dict[str, dict[str, Any]]:
    return {each["kind"]: each for each in yaml.safe_load_all(text)}


def test_metallb_gets_exactly_the_addresses_and_gives_them_to_no_other_service() -> None:
    mine = [placed("metallb", each, f"s{n}") for n, each in enumerate(["192.0.2.10", "192.0.2.11", "2001:db8::9"])]
    files = exposed_cluster.files("c", [*mine, placed("kube-vip", "192.0.2.99"), placed("node-port", None)], ())
    assert files.keys() == {exposed_cluster.FILES["metallb"]}
    found = documents(files[exposed_cluster.FILES["metallb"]])
    pool, announced = found["IPAddressPool"], found["L2Advertisement"]
    assert pool["spec"] == {"addresses": ["192.0.2.10/31", "2001:db8::9/128"], "autoAssign": False}
    assert announced["spec"] == {"ipAddressPools": [pool["metadata"]["name"]]}


def test_cilium_selects_the_services_alone() -> None:
    files = exposed_cluster.files("c", [placed("cilium", "192.0.2.10"), placed("cilium", "192.0.2.12", "two")], ())
    found = documents(files[exposed_cluster.FILES["cilium"]])
    pool, policy = found["CiliumLoadBalancerIPPool"]["spec"], found["CiliumL2AnnouncementPolicy"]["spec"]
    assert [each["start"] for each in pool["blocks"]] == ["192.0.2.10", "192.0.2.12"]
    names = {each["key"].rpartition(".")[2]: each["values"] for each in pool["serviceSelector"]["matchExpressions"]}
    assert names == {"namespace": ["shop"], "name": ["frontend", "two"]}
    assert policy["serviceSelector"] == pool["serviceSelector"]


@pytest.mark.parametrize(
    ("release", "version", "field"),
    [(None, "v2", "blocks"), ("1.18", "v2", "blocks"), ("1.17.4", "v2alpha1", "blocks"), ("1.14", "v2alpha1", "cidrs")],
)
def test_cilium_gets_the_resources_of_its_release(release: str | None, version: str, field: str) -> None:
    text = exposed_cluster.files("c", [placed("cilium", "192.0.2.10")], (), release)[exposed_cluster.FILES["cilium"]]
    pool = documents(text)["CiliumLoadBalancerIPPool"]
    assert pool["apiVersion"] == f"cilium.io/{version}"
    assert field in pool["spec"]
    assert (exposed_cluster.ASSUMED in text) is (release is None)


def test_a_release_without_announcement_by_layer_2_gets_the_pool_alone() -> None:
    files = exposed_cluster.files("c", [placed("cilium", "192.0.2.10")], (), "1.13")
    assert documents(files[exposed_cluster.FILES["cilium"]]).keys() == {"CiliumLoadBalancerIPPool"}


@pytest.mark.parametrize(
    ("name", "nodes", "distribution", "version", "expected"),
    [
        ("c", None, "rke2", "1.17", "1.17"),
        ("c", None, "rke", None, "1.17"),
        ("c", None, "rke2", None, "1.19"),
        ("other", None, "rke2", "1.17", None),
        ("other", {"stack": "s"}, "rke2", "1.17", "1.17"),
        ("c", {"stack": "another"}, "rke2", "1.17", None),
    ],
)
def test_the_release_is_that_of_the_specs_own_cluster(
    tmp_path: Path,
    name: str,
    nodes: dict[str, str] | None,
    distribution: str,
    version: str | None,
    expected: str | None,
) -> None:
    cilium = {"cluster_id": 1, "mesh": "none"} | ({"version": version} if version else {})
    sections = {
        "name": "lab",
        "rke_clusters": [{"name": "c", "distribution": distribution, "stack": "s", "directory": "c", "cilium": cilium}],
        "exposed_clusters": [{"name": name, "directory": "x"} | ({"nodes": nodes} if nodes else {})],
    }
    path = tmp_path / "spec.yaml"
    path.write_text(yaml.safe_dump(sections))
    spec = load_spec(path)
    context = Context(resources=spec.resources, cloud=NoCloud.as_cloud())
    (cluster,) = (each for each in spec.resources if isinstance(each, ExposedCluster))
    (resolved,) = cluster.resolve(context)
    assert isinstance(resolved, ExposedCluster)
    assert resolved.related.cilium == expected


def test_an_address_that_a_pool_has_is_left_out() -> None:
    known = [Range.read("192.0.2.8/30")]
    files = exposed_cluster.files("c", [placed("metallb", "192.0.2.10"), placed("metallb", "192.0.2.20", "two")], known)
    assert documents(files[exposed_cluster.FILES["metallb"]])["IPAddressPool"]["spec"]["addresses"] == ["192.0.2.20/32"]
    assert exposed_cluster.files("c", [placed("metallb", "192.0.2.10")], known) == {}


@pytest.mark.parametrize("section", ["metallb", "cilium", "none"])
def test_the_pools_of_the_specs_clusters_are_known(tmp_path: Path, section: str) -> None:
    """Whether an address pool provides the addresses, or the pool lists them."""
    balancers: dict[str, Any] = {
        "metallb": {"metallb": {"pools": [{"pool": "lb"}]}},
        "cilium": {
            "cilium": {
                "cluster_id": 1,
                "mesh": "none",
                "kube_proxy_replacement": True,
                "load_balancer": {"pools": [{"name": "x", "addresses": ["10.3.0.208/29"]}], "l2": {}},
            }
        },
        "none": {},
    }
    path = tmp_path / "spec.yaml"
    sections = {
        "name": "lab",
        "address_pools": [{"name": "lb", "subnet": "n", "addresses": ["10.3.0.208/29"], "reserve": "outside"}],
        "rke_clusters": [{"name": "c", "distribution": "rke2", "stack": "s", "directory": "c"} | balancers[section]],
        "exposed_clusters": [{"name": "c", "directory": "x"}],
    }
    path.write_text(yaml.safe_dump(sections))
    spec = load_spec(path)
    context = Context(resources=spec.resources, cloud=NoCloud.as_cloud())
    (cluster,) = (each for each in spec.resources if isinstance(each, ExposedCluster))
    ((resolved),) = cluster.resolve(context)
    assert isinstance(resolved, ExposedCluster)
    known = [str(each) for each in resolved.related.service_pools]
    assert known == ([] if section == "none" else ["10.3.0.208-10.3.0.215"])


@pytest.mark.parametrize(
    ("chosen", "warned"),
    [({"stack": "t"}, True), ({"infra_id": "ocp-x1y2z"}, True), ({"stack": "u"}, False), ({"tag": "node"}, False)],
)
def test_pairs_of_another_cluster_allow_nothing_on_nodes_that_the_spec_does_not_know(
    tmp_path: Path, chosen: dict[str, str], warned: bool
) -> None:
    web = {"name": "web", "cluster": "c", "how": "metallb", "pool": "lb", "address": "10.3.0.209"}
    web |= {"target": {"service": "shop/web", "selector": {"app": "web"}}, "ports": [{"port": 443}]}
    sections = {
        "name": "lab",
        "subnets": [{"name": "n", "network": "n", "cidr": "10.3.0.0/24", "allocation_pools": ["10.3.0.10-10.3.0.199"]}],
        "address_pools": [{"name": "lb", "subnet": "n", "addresses": ["10.3.0.208/29"], "reserve": "outside"}],
        "address_pairs": [{"name": "p", "pools": ["lb"]} | chosen],
        "exposures": [web],
        "exposed_clusters": [
            {"name": "c", "directory": "c"},
            {"name": "d", "directory": "d", "nodes": {"stack": "t"}},
            {"name": "e", "directory": "e", "nodes": {"infra_id": "ocp-x1y2z"}},
        ],
    }
    path = tmp_path / "spec.yaml"
    path.write_text(yaml.safe_dump(sections))
    spec = load_spec(path)
    context = Context(resources=spec.resources, cloud=NoCloud.as_cloud())
    (exposure,) = (each for each in spec.resources if each.kind == "exposure")
    assert bool([*exposure.list_warnings(context)]) == warned
