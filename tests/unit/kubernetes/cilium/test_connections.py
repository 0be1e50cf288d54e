"""What must get through between clusters, and the commands that are left to a person."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from openstack_prep.kubernetes.cilium import Cilium, Member, Passage, hint, install, required
from openstack_prep.kubernetes.model import KubernetesCluster

CILIUM = Cilium(cluster_id=1)


def member(number: int, cilium: Cilium = CILIUM, **said: Any) -> Member:
    mine = replace(cilium, cluster_id=number, mesh_address=f"10.{number}.0.200", **said)
    return Member(name=f"c{number}", cilium=mine, cluster=KubernetesCluster(cluster_cidr=f"10.6{number}.0.0/16"))


def told(passages: list[Passage]) -> list[tuple[Any, ...]]:
    return [(p.source, p.to, p.protocol, p.port, p.target, p.address) for p in passages]


def test_each_cluster_reaches_each_other() -> None:
    assert told(required([member(1), member(2)])) == [
        ("c1", "c2", "tcp", 4240, "nodes", None),
        ("c1", "c2", "icmp", None, "nodes", None),
        ("c1", "c2", "udp", 8472, "nodes", None),
        ("c1", "c2", "tcp", 2379, "mesh address", "10.2.0.200"),
        ("c2", "c1", "tcp", 4240, "nodes", None),
        ("c2", "c1", "icmp", None, "nodes", None),
        ("c2", "c1", "udp", 8472, "nodes", None),
        ("c2", "c1", "tcp", 2379, "mesh address", "10.1.0.200"),
    ]
    three = required([member(number) for number in (1, 2, 3)])
    assert len({(each.source, each.to) for each in three}) == 6


@pytest.mark.parametrize(
    ("said", "more"),
    [
        ({"tunnel_protocol": "geneve"}, ("udp", 6081, "nodes", None)),
        ({"encryption": "wireguard"}, ("udp", 51871, "nodes", None)),
        ({"encryption": "ipsec"}, ("esp", None, "nodes", None)),
        ({"routing": "native"}, ("any", None, "pods", "10.62.0.0/16")),
        ({"mesh_service": "NodePort", "mesh_node_port": 32380}, ("tcp", 32380, "nodes", None)),
    ],
)
def test_what_a_choice_asks_for(said: dict[str, Any], more: tuple[Any, ...]) -> None:
    passages = told(required([member(1, **said), member(2, **said)]))
    assert ("c1", "c2", *more) in passages
    assert ("udp", 8472) not in [each[2:4] for each in passages] or "encryption" in said or "mesh_service" in said


def test_who_takes_no_part_is_left_out() -> None:
    assert required([member(1), member(2, mesh="none")]) == []
    assert hint([member(1), member(2, mesh="none")]) == ""


HELM = "upgrade --install cilium cilium --repo https://helm.cilium.io --version 1.17.18 --namespace kube-system"


def test_the_hint_installs_cilium_with_one_ca_in_all() -> None:
    first, second = (replace(member(number), values_file=f"/c{number}/values.yaml") for number in (1, 2))
    third = replace(member(3), cluster=KubernetesCluster(distribution="rke2"), values_file="/a b/config.yaml")
    said = [each for each in hint([first, second, third]).splitlines() if not each.startswith("#")]
    copied = "kubectl --context c1 -n kube-system get secret cilium-ca -o yaml | kubectl --context"
    assert said == [
        f"helm --kube-context c1 {HELM} --values /c1/values.yaml",
        "kubectl --context c2 -n kube-system delete secret cilium-ca --ignore-not-found",
        f"{copied} c2 create -f -",
        f"helm --kube-context c2 {HELM} --values /c2/values.yaml",
        "kubectl --context c3 -n kube-system delete secret cilium-ca --ignore-not-found",
        f"{copied} c3 create -f -",
        "kubectl --context c3 apply -f '/a b/config.yaml'",
        *(f"cilium clustermesh status --context c{number} --wait" for number in (1, 2, 3)),
    ]


def test_the_hint_of_older_meshes() -> None:
    old = hint([member(number, version="1.13.1", encryption="ipsec") for number in (1, 2)])
    assert "get secret cilium-ipsec-keys -o yaml | kubectl --context c2 create -f -" in old
    assert "cilium clustermesh connect --context c1 --destination-context c2" in old
    etcd = hint([member(number, version="1.15", mesh="etcd") for number in (1, 2)])
    assert "generate-secret-yaml.sh" in etcd
    assert "clustermesh status" not in etcd
    assert "cilium-ca" not in etcd


def test_each_command_names_a_namespace_that_is_not_the_default() -> None:
    first = member(1, namespace="cilium")
    lines = hint([first, member(2, namespace="mesh"), member(3)]).splitlines()
    assert "--namespace cilium --create-namespace --values" in next(each for each in lines if each.startswith("helm"))
    assert [each for each in lines if "status" in each] == [
        "cilium clustermesh status --namespace cilium --context c1 --wait",
        "cilium clustermesh status --namespace mesh --context c2 --wait",
        "cilium clustermesh status --context c3 --wait",
    ]
    created = "kubectl --context c2 create namespace mesh --dry-run=client -o yaml | kubectl --context c2 apply -f -"
    assert created in lines
    copy = "kubectl --context c1 -n cilium get secret cilium-ca -o yaml | sed 's/^  namespace: cilium$/  namespace: "
    assert f"{copy}mesh/' | kubectl --context c2 create -f -" in lines
    assert f"{copy}kube-system/' | kubectl --context c3 create -f -" in lines
    older = hint([member(number, version="1.13", namespace="cilium") for number in (1, 2)])
    assert "cilium clustermesh connect --namespace cilium --context c1 --destination-context c2" in older


@pytest.mark.parametrize(
    ("version", "full"),
    [("1.13", "1.13.18"), ("1.20", "1.20.0"), ("1.18.3", "1.18.3"), ("1.21", "1.21"), (None, "1.17.18")],
)
def test_the_command_names_the_full_version(version: str | None, full: str) -> None:
    assert f"--version {full} " in install(member(1, version=version))
