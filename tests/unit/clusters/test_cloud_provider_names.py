"""Whose a resource is, by names built as cloud-provider-openstack 1.36.0 builds them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from openstack_prep.clusters.cloud_provider_names import CSI, claim_of, cluster_of, cluster_of_tag
from tests.unit.openshift.test_leftover_owner import record

CLUSTERS = [
    "prod",
    "prod_eu",
    "prod-eu",
    "prod_eu_default",
    "kubernetes",
    "dev-x7k2p",
    "a cluster",
    "_",
    "from cluster b",
]
OBJECTS = [("default", "web"), ("eu", "default"), ("from", "cluster"), ("prod", "prod-eu"), ("kube-system", "n" * 63)]
UID = "1fa81053-3860-26b0-6820-8e1522b3a8db"


def made(cluster: str, namespace: str, name: str) -> dict[str, dict[str, Any]]:
    """Return what the provider creates for a Service and an Ingress, by label."""
    service = f"{namespace}/{name}"
    within = f"{name} in namespace {namespace} from cluster {cluster}"
    return {
        "load_balancer": {
            "name": f"kube_service_{cluster}_{namespace}_{name}"[:255],
            "description": f"Kubernetes external service {service} from cluster {cluster}",
        },
        "load_balancer of an ingress": {
            "name": f"kube_ingress_{cluster}_{namespace}_{name}",
            "description": f"Kubernetes Ingress {within}, version: 7",
        },
        "floating_ip": {"description": f"Floating IP for Kubernetes external service {service} from cluster {cluster}"},
        "floating_ip of an ingress": {"description": f"Floating IP for Kubernetes ingress {within}"},
        "security_group": {
            "name": f"lb-sg-{UID}-{namespace}-{name}",
            "description": f"Security Group for {service} Service LoadBalancer in cluster {cluster}",
        },
        "security_group of an ingress": {
            "name": f"kube_ingress_{cluster}_{namespace}_{name}",
            "description": f"Security group created for Ingress {service} from cluster {cluster}",
        },
        "volume": {"name": f"pvc-{UID}", "metadata": {CSI: cluster}},
        "volume of Kubernetes itself": {"name": f"{cluster}-dynamic-pvc-{UID}", "metadata": {}},
        "volume_snapshot": {"name": f"snapshot-{UID}", "metadata": {CSI: cluster}},
    }


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_each_resource_belongs_to_its_own_cluster(cluster: str) -> None:
    for namespace, name in OBJECTS:
        for label, raw in made(cluster, namespace, name).items():
            assert cluster_of(record(label.partition(" ")[0], raw)) == cluster, (label, raw)


def test_names_that_were_cut_never_name_another_cluster() -> None:
    lengths = (170, 180, 240, 241, 242, 243, 250)
    for length, (namespace, name) in itertools.product(lengths, OBJECTS):
        cluster = ("prod_eu_" * 40)[:length]
        raw = made(cluster, namespace, name)["load_balancer"]
        assert cluster_of(record("load_balancer", raw)) in (cluster, None)
        assert cluster_of(record("load_balancer", raw | {"description": "edited"})) in (cluster, None)


def test_the_name_of_a_load_balancer_decides() -> None:
    """Only the name follows when a cluster gets another one."""
    raw = made("old", "default", "web")["load_balancer"] | {"name": "kube_service_new_default_web"}
    assert cluster_of(record("load_balancer", raw)) == "new"


NOBODYS = [
    ("load_balancer", {"name": "kube_service_prod", "description": None}),
    ("load_balancer", {"name": "my_kube_service_prod_default_web", "description": ""}),
    ("load_balancer", {"name": "a1fa81053386026b068208e1522b3a8d", "description": "Kubernetes external service a"}),
    ("floating_ip", {"description": "web of cluster prod"}),
    ("floating_ip", {"description": "Floating IP for Kubernetes external service default/web from cluster "}),
    ("floating_ip", {"description": "was: Floating IP for Kubernetes external service a/b from cluster prod"}),
    ("security_group", {"name": "mine", "description": "Security Group for a/b Service LoadBalancer in cluster prod"}),
    ("security_group", {"name": f"lb-sg-{UID}-a-b", "description": ""}),
    ("volume", {"name": f"pvc-{UID}", "metadata": {CSI: ""}}),
    ("volume", {"name": f"prod-dynamic-pvc-{UID}", "metadata": {CSI: ""}}),
    ("volume", {"name": "prod-dynamic-pvc-backup", "metadata": {}}),
    ("volume_snapshot", {"name": f"snapshot-{UID}", "metadata": None}),
    ("port", {"name": "kube_service_prod_default_web"}),
]


@pytest.mark.parametrize(("thing", "raw"), NOBODYS)
def test_what_belongs_to_no_cluster(thing: str, raw: dict[str, Any]) -> None:
    assert cluster_of(record(thing, raw)) is None


@pytest.mark.parametrize(
    ("tag", "cluster"),
    [("kube_service_prod_eu_default_web", "prod_eu"), ("mine", None), ("kube_service_" + "a_b_" * 61, None)],
)
def test_tags_of_a_shared_load_balancer(tag: str, cluster: str | None) -> None:
    assert cluster_of_tag(tag[:255]) == cluster


def test_the_claim_of_a_volume() -> None:
    key = "csi.storage.k8s.io/pvc/"
    assert claim_of(record("volume", {"metadata": {f"{key}name": "data", f"{key}namespace": "shop"}})) == "shop/data"
    assert claim_of(record("volume", {"metadata": {f"{key}name": "data"}})) == ""
