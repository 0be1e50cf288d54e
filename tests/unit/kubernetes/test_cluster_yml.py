"""Whole files as RKE gets them: data/*.yml; OPENSTACK_PREP_STORE=1 writes them anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.base.secret import Secret
from openstack_prep.kubernetes import reading
from openstack_prep.kubernetes.cluster_yml import document, kubeconfig_hint, mistakes, warnings
from openstack_prep.kubernetes.model import KubernetesCluster, Node, NodeGroup, Registry
from openstack_prep.kubernetes.nodes import MASTER, nodes_of
from tests.unit.texts import Wording

PLAIN = KubernetesCluster(cluster_cidr="10.64.0.0/16", service_cidr="10.65.0.0/16")
FULL = KubernetesCluster(
    kubernetes_version="v1.31.1-rancher1-1",
    roles=(
        NodeGroup(nodes="0-2", roles=("controlplane", "etcd"), config={"docker_socket": "/run/docker.sock"}),
        NodeGroup(
            nodes="3-", roles=("worker",), labels={"disk": "fast"}, taints=("gpu=yes:NoSchedule", "old:NoExecute")
        ),
    ),
    user="rocky",
    ssh_key_path="/home/me/.ssh/id_ed25519",
    cluster_cidr="10.64.0.0/16",
    service_cidr="10.65.0.0/16",
    cluster_dns="10.65.0.53",
    network_plugin="none",
    external_cloud_provider=True,
    private_registries=(
        Registry(url="registry.example.com:5000", user="puller", password=Secret("no"), is_default=True),
        Registry(url="mirror.example.com"),
    ),
    config={
        "authentication": {"strategy": "x509|webhook", "sans": ["api.example.com"]},
        "services": {
            "kube-api": {"extra_args": {"v": 4, "audit-log-path": "-"}, "always_pull_images": True},
            "etcd": {
                "backup_config": {
                    "interval_hours": 6,
                    "s3backupconfig": {"endpoint": "s3.example.com", "bucket_name": "etcd", "secret_key": "hush"},
                },
            },
            "kubelet": {"extra_args": {"max-pods": "250"}},
        },
        "addons": "apiVersion: v1\nkind: Namespace\nmetadata: {name: apps}\n",
        "ingress": {"provider": "none"},
        "bastion_host": {"address": "192.0.2.99", "user": "jump"},
        "addon_job_timeout": 120,
    },
)


def nodes(cluster: KubernetesCluster, count: int) -> Sequence[Node]:
    return nodes_of(cluster, [(f"Node-{n}", f"192.0.2.{n + 10}", f"10.1.0.{n + 10}") for n in range(count)])


def said(cluster: KubernetesCluster, found: Sequence[Node] | None = None) -> list[str]:
    return [str(each) for each in mistakes(cluster, found)]


@pytest.mark.parametrize(
    ("name", "cluster", "count"), [("plain", PLAIN, 3), ("one", KubernetesCluster(), 1), ("full", FULL, 4)]
)
def test_whole_files(
    name: str, cluster: KubernetesCluster, count: int, stored: Callable[[str, str], None], tmp_path: Path
) -> None:
    found = nodes(cluster, count)
    assert said(cluster, found) == []
    written = dump(document(cluster, found, name))
    stored(f"../kubernetes/data/{name}.yml", written.rstrip("\n"))
    path = tmp_path / "cluster.yml"  # what we write, our own strict reader takes
    path.write_text(written)
    assert reading.read(path)[:2] == (yaml.safe_load(written), [])


def test_secrets_show_in_the_file_alone() -> None:
    made = document(FULL, nodes(FULL, 4), "full")
    assert "hush" not in str(made)
    assert str(made["private_registries"][0]["password"]) == "********"
    assert "secret_key: hush" in dump(made)
    assert "password: 'no'" in dump(made)


def test_an_object_that_is_a_secret_as_a_whole() -> None:
    """What says which object it is is read all the same."""
    given: dict[str, Any] = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration"}
    api = {"secrets_encryption_config": {"enabled": True, "custom_config": given}}
    cluster = replace(PLAIN, config={"services": {"kube-api": api}})
    assert said(cluster) == []
    given["apiVersion"] = "v9"
    (found,) = said(cluster)
    assert "RKE does not support 'v9'" in found


def test_cri_dockerd_is_asked_for_where_kubernetes_needs_it() -> None:
    def asked(version: str | None, **config: Any) -> Any:
        return document(KubernetesCluster(kubernetes_version=version, config=config), (), "c").get("enable_cri_dockerd")

    assert [asked(None), asked("v1.23.16-rancher2-3"), asked("v1.24.17-rancher1-1")] == [None, None, True]
    assert asked("v1.24.17-rancher1-1", enable_cri_dockerd=False) is False


def test_unknown_keys_and_wrong_types_all_at_once(wording: Wording) -> None:
    config = {
        "services": {"kubeapi": {}, "kubelet": {"extra_args": ["max-pods=250"], "fail_swap_on": "no"}},
        "kubelet": {"image": "x"},
        "ingres": {"provider": "none"},
    }
    wording(said(replace(PLAIN, config=config, roles=(NodeGroup(nodes="0-", roles=MASTER, config={"prot": 22}),))))


def test_what_has_fields_of_ours_is_not_said_twice(wording: Wording) -> None:
    config = {
        "nodes": [],
        "cluster_name": "x",
        "kubernetes_version": "v1.31.1-rancher1-1",
        "network": {"plugin": "canal", "mtu": 1400},
        "services": {"kubelet": {"cluster_dns_server": "10.65.0.10", "extra_args": {}}},
        "private_registries": [],
        "cloud_provider": {"name": "aws"},
    }
    group = NodeGroup(nodes="0-", roles=MASTER, config={"user": "me"})
    found = said(replace(FULL, config=config, roles=(group,)))
    wording(found)
    free = {name: config[name] for name in ("private_registries", "cloud_provider")}
    assert said(replace(PLAIN, config=free)) == []


def test_values_by_the_names_of_our_fields(wording: Wording) -> None:
    cluster = KubernetesCluster(
        kubernetes_version="1.31",
        network_plugin="cilium",
        config={"ingress": {"provider": "traefik"}, "services": {"etcd": {"external_urls": ["https://etcd"]}}},
        roles=(NodeGroup(nodes="0-", roles=("worker",)),),
    )
    wording(said(cluster))


def test_roles_of_the_nodes_there_are(wording: Wording) -> None:
    lonely = [replace(each, roles=("worker",)) for each in nodes(PLAIN, 2)]
    wording(said(PLAIN, lonely))


def test_etcd_elsewhere(wording: Wording) -> None:
    outside = {"external_urls": ["https://etcd"], "ca_cert": "a", "cert": "b", "key": "c", "path": "/k"}
    cluster = replace(PLAIN, config={"services": {"etcd": outside}})
    assert said(cluster) == []
    wording(said(cluster, nodes(cluster, 1)))
    assert said(cluster, [replace(each, roles=("controlplane", "worker")) for each in nodes(cluster, 1)]) == []


def test_networks_without_room_are_somebody_elses_to_tell() -> None:
    small = KubernetesCluster(service_cidr="10.0.0.0/30")
    assert "kubelet" not in document(small, (), "c")["services"]
    assert said(small) == []


def test_warnings(wording: Wording) -> None:
    four = replace(PLAIN, kubernetes_version="v1.99.0-rancher1-1", network_plugin="weave")
    both = [replace(each, roles=MASTER) for each in nodes(PLAIN, 2)]
    wording(list(warnings(four, both)))
    assert list(warnings(FULL, nodes(FULL, 4))) == []


def test_the_way_to_the_kubeconfig() -> None:
    assert kubeconfig_hint("cluster1/cluster.yml").splitlines() == [
        "rke up --config cluster1/cluster.yml",
        "export KUBECONFIG=cluster1/kube_config_cluster.yml",
        "kubectl get nodes",
    ]
    assert "KUBECONFIG=kube_config_cluster.yml" in kubeconfig_hint()


@pytest.mark.parametrize(("plugin", "fields"), [(None, ["cluster_cidr", "service_cidr"]), ("calico", [])])
def test_networks_of_both_ip_versions(plugin: str | None, fields: list[str]) -> None:
    both = {"cluster_cidr": "10.42.0.0/16,fd00:42::/56", "service_cidr": "10.43.0.0/16,fd00:43::/112"}
    assert [each.where for each in mistakes(KubernetesCluster(network_plugin=plugin, **both), None)] == fields
