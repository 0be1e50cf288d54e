"""Whole config.yaml files: data/rke2-*.yaml; OPENSTACK_PREP_STORE=1 writes them anew."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.base.secret import Secret
from openstack_prep.kubernetes import reading
from openstack_prep.kubernetes.model import KubernetesCluster, Node, NodeGroup, Registry
from openstack_prep.kubernetes.nodes import nodes_of
from openstack_prep.kubernetes.rke2 import documents, kubeconfig_hint, mistakes, registries, warnings
from openstack_prep.kubernetes.versions import newest
from tests.unit.texts import Wording

PLAIN = KubernetesCluster(distribution="rke2", cluster_cidr="10.64.0.0/16", service_cidr="10.65.0.0/16")
FULL = KubernetesCluster(
    distribution="rke2",
    kubernetes_version="v1.35.7+rke2r1",
    roles=(
        NodeGroup(nodes="0", roles=("etcd",)),
        NodeGroup(nodes="1-2", roles=("controlplane",), taints=("a=b:NoSchedule",)),
        NodeGroup(
            nodes="3-",
            roles=("worker",),
            labels={"disk": "fast"},
            config={"kubelet-arg": ["max-pods=250"]},
        ),
    ),
    cluster_cidr="10.64.0.0/16",
    service_cidr="10.65.0.0/16",
    network_plugin="multus,cilium",
    external_cloud_provider=True,
    private_registries=(
        Registry(url="registry.example.com:5000", user="puller", password=Secret("hush"), is_default=True),
        Registry(url="mirror.example.com"),
    ),
    config={
        "tls-san": ["api.example.com"],
        "disable-kube-proxy": True,
        "etcd-s3": True,
        "etcd-s3-bucket": "etcd",
        "etcd-s3-secret-key": "hush",
        "profile": "cis",
    },
)


def nodes(cluster: KubernetesCluster, count: int) -> Sequence[Node]:
    return nodes_of(cluster, [(f"Node-{n}", f"192.0.2.{n + 10}", f"10.1.0.{n + 10}") for n in range(count)])


def said(cluster: KubernetesCluster, found: Sequence[Node] | None = None) -> list[str]:
    return [str(each) for each in mistakes(cluster, found)]


@pytest.mark.parametrize(
    ("name", "cluster", "count", "token"), [("plain", PLAIN, 4, Secret("s3cret")), ("full", FULL, 4, None)]
)
def test_whole_files(
    name: str,
    cluster: KubernetesCluster,
    count: int,
    token: Secret | None,
    stored: Callable[[str, str], None],
    tmp_path: Path,
) -> None:
    found = nodes(cluster, count)
    assert said(cluster, found) == []
    made = documents(cluster, found, api="10.1.0.5", token=token, tls_san=["192.0.2.5"])
    assert "s3cret" not in str(made)
    assert "hush" not in str(made)
    texts = {each: dump(document) for each, document in made.items()}
    shown = "".join(f"# {each}\n---\n{texts[each]}" for each in texts).rstrip("\n")
    stored(f"../kubernetes/data/rke2-{name}.yaml", shown)
    for each, node in zip(texts, found, strict=True):  # what we write, our own strict reader takes
        path = tmp_path / each
        path.write_text(texts[each])
        form: reading.Form = "agent" if node.roles == ("worker",) else "server"
        assert reading.read(path, form)[:2] == (yaml.safe_load(texts[each]), [])


def test_who_joins_whom() -> None:
    made = documents(PLAIN, nodes(PLAIN, 4), api="2001:db8::5", token=Secret("t"))
    assert [each.get("server") for each in made.values()] == [None, *["https://[2001:db8::5]:9345"] * 3]
    assert [("cni" in each, "tls-san" in each) for each in made.values()] == [(True, True)] * 3 + [(False, False)]
    own = replace(PLAIN, config={"token-file": "/etc/token", "tls-san": "10.1.0.5"})
    first = documents(own, nodes(own, 1), api="10.1.0.5", token=Secret("t"))["node-0"]
    assert (first["token-file"], first["tls-san"], "token" in first) == ("/etc/token", ["10.1.0.5"], False)


def test_a_datastore_in_place_of_etcd() -> None:
    group = NodeGroup(nodes="0-", roles=("controlplane",))
    cluster = replace(PLAIN, roles=(group,), config={"datastore-endpoint": "mysql://me:hush@db/rke2"})
    assert said(cluster, nodes(cluster, 2)) == []
    made = documents(cluster, nodes(cluster, 2), api="10.1.0.5", token=Secret("t"))
    assert "hush" not in str(made)
    assert [each.get("server") for each in made.values()] == [None, "https://10.1.0.5:9345"]
    assert not any("disable-etcd" in each for each in made.values())


def test_registries() -> None:
    assert registries(PLAIN) is None
    assert registries(replace(PLAIN, private_registries=(Registry(url="open.example.com"),))) is None
    assert yaml.safe_load(dump(registries(FULL) or {})) == {
        "configs": {"registry.example.com:5000": {"auth": {"username": "puller", "password": "hush"}}}
    }


def test_keys_of_others(wording: Wording) -> None:
    config = {
        "cluster-init": True,
        "flannel-backend": "none",
        "kube-controller-arg": [],
        "kubelet-args": ["max-pods=250"],
        "etcd-s3": True,
        "disable": {"rke2-ingress-nginx": True},
        "cni": "canal",
        "node-label": ["a=b"],
    }
    group = NodeGroup(
        nodes="0-2",
        roles=("controlplane", "etcd"),
        labels={
            "node-role.kubernetes.io/master": "x",
            "node.kubernetes.io/pool": "a",
            "topology.kubernetes.io/zone": "b",
        },
        config={"cluster-domain": "x.local", "server": "https://x:9345"},
    )
    workers = NodeGroup(nodes="3-", roles=("worker",), config={"tls-san": ["x"], "docker": True, "selinux": True})
    wording(said(replace(PLAIN, config=config, roles=(group, workers))))


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            {"kubernetes_version": "v1.31.1-rancher1-1"},
            ["kubernetes_version: 'v1.31.1-rancher1-1' is not a version of RKE2"],
        ),
        (
            {"kubernetes_version": "v1.31.1"},
            [f"kubernetes_version: 'v1.31.1' is not a version of RKE2; write one such as {newest(31)}"],
        ),
        ({"network_plugin": "weave"}, ["network_plugin: RKE2 does not support 'weave'"]),
        ({"network_plugin": "cilium,multus"}, ["network_plugin: RKE2 does not support 'cilium,multus'"]),
        ({"network_plugin": "multus,canal"}, []),
        ({"roles": (NodeGroup(nodes="0-", roles=("controlplane",)),)}, ["roles: no node has role etcd"]),
        (
            {"external_cloud_provider": True, "config": {"cloud-provider-name": "x"}},
            ["config.cloud-provider-name: is set"],
        ),
        ({"external_cloud_provider": False, "config": {"cloud-provider-name": "rancher-vsphere"}}, []),
        ({"config": {"etcd-s3": True, "etcd-s3-config-secret": "s3"}}, []),
    ],
)
def test_values(fields: dict[str, Any], told: list[str]) -> None:
    found = said(replace(PLAIN, **fields))
    assert len(found) == len(told)
    assert all(one.startswith(other) for one, other in zip(found, told, strict=True))


def test_warnings(wording: Wording) -> None:
    wording(list(warnings(replace(PLAIN, ssh_key_path="/k"), nodes(PLAIN, 3))))


def test_the_way_to_the_kubeconfig() -> None:
    assert kubeconfig_hint("rocky", "192.0.2.10", "10.1.0.5", "c1/kubeconfig", "c1").splitlines() == [
        r"(umask 077; ssh rocky@192.0.2.10 sudo cat /etc/rancher/rke2/rke2.yaml"
        r" | sed -e 's/127\.0\.0\.1/10.1.0.5/' -e 's/: default$/: c1/' > c1/kubeconfig)",
        "export KUBECONFIG=c1/kubeconfig",
        "kubectl get nodes",
    ]
    assert r"-e 's/\[::1\]/[2001:db8::5]/'" in kubeconfig_hint("rocky", "2001:db8::7", "2001:db8::5")


def test_the_way_to_the_kubeconfig_quotes_what_a_stack_says() -> None:
    hint = kubeconfig_hint("rocky", "192.0.2.10", "'; touch PWNED; '", "c1/kubeconfig", "'; reboot; '")
    words = shlex.split(hint.partition("\n")[0], comments=False)
    assert [each for each in words if "touch" in each or "reboot" in each] == [
        r"s/127\.0\.0\.1/'; touch PWNED; '/",
        "s/: default$/: '; reboot; '/",
    ]
