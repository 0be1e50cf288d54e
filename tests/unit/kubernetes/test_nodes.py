from __future__ import annotations

from typing import Any

import pytest

from openstack_prep.base.errors import SpecError
from openstack_prep.kubernetes.model import KubernetesCluster, Node, NodeGroup
from openstack_prep.kubernetes.nodes import (
    etcd_warning,
    group_mistakes,
    missing_roles,
    node_mistakes,
    nodes_of,
    taint_parts,
)
from tests.unit.texts import Wording, expect_error

MASTER = ("controlplane", "etcd")


def machines(count: int) -> list[tuple[str, str, str]]:
    return [(f"Node{n}", f"192.0.2.{n}", f"10.1.0.{n}") for n in range(count)]


def node(**said: Any) -> Node:
    given: dict[str, Any] = {"name": "n0", "address": "192.0.2.1", "internal_address": "10.1.0.1"}
    return Node(**given | {"roles": ("worker",), "labels": {}, "taints": ()} | said)


@pytest.mark.parametrize(("count", "masters"), [(0, 0), (1, 1), (2, 1), (3, 3), (5, 3)])
def test_who_does_what_when_nobody_says(count: int, masters: int) -> None:
    found = nodes_of(KubernetesCluster(), machines(count))
    assert [set(each.roles) == {"controlplane", "etcd", "worker"} for each in found[:masters]] == [True] * masters
    assert [each.roles for each in found[masters:]] == [("worker",)] * (count - masters)
    assert [each.name for each in found] == [f"node{n}" for n in range(count)]


def test_groups() -> None:
    cluster = KubernetesCluster(
        roles=(
            NodeGroup(nodes="0-2", roles=MASTER, taints=("a=b:NoSchedule",), config={"port": 2222}),
            NodeGroup(nodes="3-", roles=("worker",), labels={"disk": "fast"}),
        )
    )
    assert list(group_mistakes(cluster)) == []
    first, *_, last = nodes_of(cluster, machines(5))
    assert first == node(
        name="node0",
        address="192.0.2.0",
        internal_address="10.1.0.0",
        roles=MASTER,
        taints=("a=b:NoSchedule",),
        config={"port": 2222},
    )
    assert (last.roles, last.labels, last.taints) == (("worker",), {"disk": "fast"}, ())


def test_nodes_of_no_group_and_groups_without_a_node(wording: Wording) -> None:
    groups = tuple(NodeGroup(nodes=each, roles=MASTER) for each in ("0", "7-9", "3-5"))
    with pytest.raises(SpecError) as caught:
        nodes_of(KubernetesCluster(roles=groups), machines(4))
    wording(str(caught.value).splitlines())


def test_what_is_wrong_with_groups(wording: Wording) -> None:
    cluster = KubernetesCluster(
        roles=(
            NodeGroup(nodes="0-2", roles=MASTER, labels={"-a": "ok", "example.com/b": "no good", "c": ""}),
            NodeGroup(
                nodes="2-", roles=("worker",), taints=("a:NoSchedule", "a=b:Never", "=b:NoExecute", "a=:NoExecute")
            ),
            NodeGroup(nodes="7", roles=("worker",)),
        )
    )
    wording([str(each) for each in group_mistakes(cluster)])
    assert [taint_parts(each) for each in ("a:NoSchedule", "x.y/a=b:NoExecute", "a=:NoExecute")] == [
        ("a", "", "NoSchedule"),
        ("x.y/a", "b", "NoExecute"),
        ("a", "", "NoExecute"),
    ]
    with expect_error(ValueError) as caught:
        taint_parts("a=b")
    wording(caught.value)


def test_what_is_wrong_with_nodes(wording: Wording) -> None:
    found = [node(), node(name="a_b", address="", internal_address="10.1.0.1"), node(address="192.0.2.9")]
    wording([str(each) for each in node_mistakes(found)])
    assert list(node_mistakes([node(address="node.example.com", internal_address="2001:db8::1")])) == []


def test_roles_that_nobody_has(wording: Wording) -> None:
    wording([each.what for each in missing_roles(("controlplane", "etcd"), [("worker",), ("etcd",)])])
    assert list(missing_roles(("etcd",), [])) == []


@pytest.mark.parametrize(("count", "told"), [(0, 0), (1, 0), (2, 1), (3, 0), (4, 1)])
def test_an_even_number_of_etcd(count: int, told: int) -> None:
    assert len(list(etcd_warning(count))) == told
