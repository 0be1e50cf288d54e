from __future__ import annotations

from typing import Any

import pytest

from openstack_prep.clusters import installer_names as names
from openstack_prep.resources.lists.cluster_naming import foreign_tags

ID = "dev-x7k2p"


def port(name: str, tags: tuple[str, ...] = (f"openshiftClusterID={ID}",), owner: str = "") -> dict[str, Any]:
    return {"name": name, "tags": list(tags), "device_owner": owner}


@pytest.mark.parametrize(
    ("cluster_name", "stem"),
    [("dev", "dev"), ("dev2", "dev2"), ("eu.dev--1", "eu-dev-1"), (f"{'a' * 20}-bcd", "a" * 20), ("b" * 30, "b" * 21)],
)
def test_what_an_infra_id_keeps_of_a_name(cluster_name: str, stem: str) -> None:
    assert names.stem(cluster_name) == stem
    assert names.is_infra_id(f"{stem}-x7k2p")


@pytest.mark.parametrize(
    ("name", "role"),
    [
        (f"{ID}-master-port-0", "master"),  # 4.2
        (f"{ID}-master-0", "master"),  # to 4.16
        (f"{ID}-master-0-0", "master"),  # since 4.17
        (f"{ID}-bootstrap-0", "bootstrap"),
        (f"{ID}-worker-0-abcde", "worker"),
        (f"{ID}-worker-0-abcde-0", "worker"),
        (f"{ID}-api-port", None),
        ("masterly", None),
    ],
)
def test_roles_of_all_eras(name: str, role: str | None) -> None:
    assert names.role(name, ID) == role


def test_a_cluster_may_be_called_worker() -> None:
    assert names.role("worker-x7k2p-master-0", "worker-x7k2p") == "master"


@pytest.mark.parametrize(
    ("found", "node"),
    [
        (port(f"{ID}-master-0"), True),
        (port(f"{ID}-infra-0-abcde", owner="compute:nova"), True),
        (port(f"{ID}-infra-0-abcde"), False),
        (port(f"{ID}-ingress-port"), False),
        (port("dual", (f"openshiftClusterID={ID}", f"{ID}-dual-stack-vips-port"), "compute:nova"), False),
        (port(f"{ID}-master-0", ()), False),
        (port(f"{ID}-master-0", ("openshiftClusterID=dev-x7k2q",)), False),
    ],
)
def test_nodes(found: dict[str, Any], node: bool) -> None:
    assert names.is_node(found["name"], found["tags"], found["device_owner"], ID) is node


@pytest.mark.parametrize(
    ("text", "good"),
    [
        (ID, True),
        ("a-b.c-00000", True),
        ("dev", False),
        ("Dev-x7k2p", False),
        ("-x7k2p", False),
        (f"{'a' * 22}-x7k2p", False),
    ],
)
def test_infra_ids(text: str, good: bool) -> None:
    assert names.is_infra_id(text) is good


def test_tags_of_other_clusters() -> None:
    tags = ["openshiftClusterID=other-aaaaa", names.tag(ID), "openshiftClusterID2=x"]
    assert foreign_tags(tags, names.tag(ID)) == ["openshiftClusterID=other-aaaaa"]


@pytest.mark.parametrize(
    ("name", "infra_id"),
    [
        ("dev-x7k2p-master-0", "dev-x7k2p"),
        ("dev-x7k2p-worker", "dev-x7k2p"),
        ("dev-x7k2p-worker-0-abcde", "dev-x7k2p"),
        ("dev-x7k2p-rhcos", "dev-x7k2p"),
        ("k8s-clusterapi-cluster-openshift-cluster-api-guests-dev-x7k2p", "dev-x7k2p"),
        ("fedora-rhcos", None),
        ("k8s-master-0", None),
        ("dev-x7k2p-api", None),
    ],
)
def test_the_infra_id_in_a_name(name: str, infra_id: str | None) -> None:
    assert names.infra_id_of(name) == infra_id
