"""Upgrades of RKE2: what is rendered, and which versions do not fit the nodes that run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.kubernetes.cluster.rke_cluster import RkeCluster
from openstack_prep.kubernetes.cluster.rke_upgrade import (
    documents,
    mistakes,
    new_agent_warnings,
    registration_warnings,
    version_in,
)
from openstack_prep.kubernetes.model import NodeGroup, Registry
from openstack_prep.resources.heat.preview import Effect
from openstack_prep.resources.orchestration.stack import Stack
from openstack_prep.spec.targets import NoCloud
from tests.unit.conftest import resolved


def cluster(version: str | None, parameters: dict[str, Any] | None = None, **fields: Any) -> RkeCluster:
    one = Stack(name="a", template="shipped:rke2-cluster.yaml", parameters={"agent_count": 2} | (parameters or {}))
    given = {"name": "a", "stack": "a", "directory": "/tmp/a", "distribution": "rke2", "kubernetes_version": version}
    other = RkeCluster(**given | fields)
    found = resolved(other, [one, other], NoCloud.as_cloud())
    assert isinstance(found, RkeCluster)
    return found


@pytest.mark.parametrize(
    ("running", "wanted", "parameters", "refused"),
    [
        ("v1.35.7+rke2r1", "v1.36.1+rke2r1", {}, ""),
        ("v1.35.7+rke2r1", "v1.35.9+rke2r1", {"agent_count": 3}, ""),
        ("v1.35.7+rke2r1", "v1.36.1+rke2r1", {"agent_count": 3}, "agent_count 2"),
        ("v1.35.7+rke2r1", "v1.36.1+rke2r1", {"agent_count": 1}, ""),
        ("v1.35.7+rke2r1", "v1.36.1+rke2r1", {"agent_image": "new"}, "agent_image old"),
        ("v1.35.7+rke2r1", "v1.36.1+rke2r1", {"server_image": "new", "agent_image": "old"}, ""),
        ("v1.35.7+rke2r1", "v1.36.1+rke2r1", {"agents_to_remove": ["0"]}, "agents_to_remove"),
        ("v1.35.7+rke2r1", "v1.36.1+rke2r1", {"agents_to_remove": ["0"], "agent_count": 1}, ""),
        ("v1.35.7+rke2r1", "v1.36.1+rke2r1", {"agent_volume_size": 20}, "agent_volume_size 0"),
        ("v1.35.7+rke2r1", "v1.36.1+rke2r1", {"volume_type": "fast"}, ""),
        ("v1.35.7+rke2r1", "v1.36.1+rke2r1", {"key_name": "new"}, "key_name old"),
        ("v1.35.7+rke2r1", "v1.36.1+rke2r1", {"key_name": "old", "config_drive": "False", "zones": []}, ""),
        ("v1.35.7+rke2r1", "v1.36.1+rke2r1", {"config_drive": True}, "config_drive"),
        ("v1.35.7+rke2r1", "v1.36.1+rke2r1", {"zones": ["a", "b"]}, "zones"),
        ("v1.35.7+rke2r1", "v1.36.1+rke2r1", {"agent_group_policy": "affinity"}, "agent_group_policy"),
        ("v1.35.7+rke2r1", "v1.36.1+rke2r1", {"pool1_count": 2}, ""),
        ("v1.35.7+rke2r1", "v1.36.1+rke2r1", {"pool1_count": 3}, "pool1_count 2"),
        ("v1.35.7+rke2r1", "v1.36.1+rke2r1", {"pool1_count": 2, "pool1_to_remove": ["0"]}, "pool1_to_remove"),
        ("v1.35.7+rke2r1", "v1.36.1+rke2r1", {"pool1_count": 2, "pool1_image": "new"}, "pool1_image"),
        ("v1.35.7+rke2r1", "v1.36.1+rke2r1", {"pool2_count": 1}, "pool2_count"),  # of a template without pools
        ("v1.35.7+rke2r1", "v1.36.1+rke2r1", {"pool2_image": "new"}, ""),
        ("v1.34.1+rke2r1", "v1.36.1+rke2r1", {}, "v1.35"),
        ("v1.36.1+rke2r1", "v1.35.7+rke2r1", {}, "a new cluster"),
        ("", "v1.36.1+rke2r1", {"agent_count": 3}, ""),  # of a channel
        ("v1.35.7+rke2r1", None, {"agent_count": 3}, ""),
    ],
)
def test_skew(running: str, wanted: str | None, parameters: dict[str, Any], refused: str) -> None:
    live = {"rke2_version": running, "agent_count": "2", "agent_image": "old", "server_image": "old"}
    live |= {"key_name": "old", "agent_volume_size": "0", "zones": "", "pool1_count": "2", "pool1_name": "pool1"}
    found = list(mistakes(cluster(wanted, parameters), live))
    assert [each.code for each in found] == ["cluster.version"] * bool(refused)
    assert all(refused in each.fix for each in found)


@pytest.mark.parametrize(
    ("preview", "missing", "named"),
    [
        ([("add", "agents.2")], [], ["agents.2"]),
        ([("update", "agents.0"), ("replace", "agents.1.server"), ("add", "servers.3")], [], ["agents.1"]),
        ([], ["agents.0.server", "servers.0.port"], ["agents.0"]),
        ([("add", "pool1.0"), ("update", "pool2.0")], [], ["pool1.0"]),
        ([("delete", "agents.1")], [], []),
    ],
)
def test_agents_that_come_may_not_be_newer(
    preview: list[tuple[str, str]], missing: list[str], named: list[str]
) -> None:
    """Also those that Heat creates again, after the version of the stack has changed."""
    effects = tuple(Effect(verb, place, "rke2-node.yaml") for verb, place in preview)
    record: Any = SimpleNamespace(preview=effects, missing=dict.fromkeys(missing))
    found = list(new_agent_warnings(cluster("v1.36.1+rke2r1"), record))
    assert [each.partition(" will install v1.36.1+rke2r1")[0] for each in found] == [", ".join(named)] * bool(named)
    assert list(new_agent_warnings(cluster(None), record)) == []


@pytest.mark.parametrize(
    ("before", "after", "command"),
    [
        ({"node-label": ["a=b"]}, {"node-label": ["a=b"]}, None),
        ({}, {"node-label": ["a=b"]}, "kubectl label nodes --overwrite n0 a=b"),
        ({"node-label": ["a=b", "c=d"]}, {"node-label": ["a=x"]}, "kubectl label nodes --overwrite n0 a=x c-"),
        ({"node-taint": "a=b:NoSchedule"}, {}, "kubectl taint nodes --overwrite n0 a:NoSchedule-"),
        (
            {"node-taint": ["a=b:NoSchedule"]},
            {"node-taint": ["a=c:NoSchedule", "old:NoExecute"]},
            "kubectl taint nodes --overwrite n0 a=c:NoSchedule old:NoExecute",
        ),
        ({"debug": True}, {"debug": False}, None),
    ],
)
def test_labels_and_taints_of_nodes_that_run(
    before: dict[str, Any], after: dict[str, Any], command: str | None
) -> None:
    texts = [{"n0.yaml": dump({"node-name": "n0", **each}), "registries.yaml": dump({})} for each in (before, after)]
    found = list(registration_warnings(*texts))
    assert [each.partition("after the apply: ")[2] for each in found] == ([command] if command else [])
    assert list(registration_warnings({}, texts[1])) == []  # a node that comes registers with them


def test_a_label_of_many_nodes_is_one_command() -> None:
    before = {f"n{n}.yaml": dump({"node-name": f"n{n}"}) for n in range(3)}
    after = {name: dump({"node-name": name[:2], "node-label": ["a=b"]}) for name in before}
    (found,) = registration_warnings(before, after)
    assert found.endswith(": kubectl label nodes --overwrite n0 n1 n2 a=b")


def test_plans_wait_for_one_another() -> None:
    plans = documents(cluster("v1.36.1+rke2r1"))
    assert [each["metadata"]["name"] for each in plans] == ["rke2-servers", "rke2-agents"]
    assert {each["spec"]["version"] for each in plans} == {"v1.36.1+rke2r1"}
    servers, agents = (each["spec"] for each in plans)
    assert "prepare" not in servers
    assert agents["prepare"]["image"] == "rancher/rke2-upgrade"
    assert agents["prepare"]["command"] == ["kubectl"]
    assert agents["prepare"]["args"][2:4] == [
        "--selector=node-role.kubernetes.io/control-plane=true",
        "--for=jsonpath={.status.nodeInfo.kubeletVersion}=v1.36.1+rke2r1",
    ]
    assert [each.get("jobActiveDeadlineSecs") for each in (servers, agents)] == [None, 0]
    operators = [[each["operator"] for each in spec["nodeSelector"]["matchExpressions"]] for spec in (servers, agents)]
    assert operators == [["In"], ["NotIn", "NotIn"]]


def test_nodes_with_etcd_alone_come_first() -> None:
    roles = (
        NodeGroup(nodes="0", roles=("controlplane", "etcd")),
        NodeGroup(nodes="1-2", roles=("etcd",)),
        NodeGroup(nodes="3-", roles=("worker",)),
    )
    registry = Registry(url="r.example", is_default=True)
    plans = documents(cluster("v1.36.1-rc2+rke2r1", roles=roles, private_registries=(registry,)))
    assert [each["metadata"]["name"] for each in plans] == ["rke2-etcd", "rke2-servers", "rke2-agents"]
    selector, condition = plans[1]["spec"]["prepare"]["args"][2:4]
    assert selector == "--selector=node-role.kubernetes.io/etcd=true,node-role.kubernetes.io/control-plane!=true"
    assert condition.endswith("=v1.36.1+rke2r1")
    assert plans[0]["spec"]["upgrade"]["image"] == "r.example/rancher/rke2-upgrade"


def test_version_of_a_written_file() -> None:
    text = dump(*documents(cluster("v1.36.1+rke2r1")))
    assert len(list(yaml.safe_load_all(text))) == 2
    assert [version_in(each) for each in (text, "", "{}", "a: [", "spec: {version: 1}")] == [
        "v1.36.1+rke2r1",
        *[None] * 4,
    ]
