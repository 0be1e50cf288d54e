"""Every key of the tables is taken, every misspelled one refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from openstack_prep.base.secret import Secret
from openstack_prep.kubernetes.keys.cluster_keys import ACI, CLUSTER, NODE, SYSTEM_IMAGES
from openstack_prep.kubernetes.keys.language import (
    WANTED,
    Each,
    Kind,
    Steps,
    Tree,
    dotted,
    faults,
    hidden,
    merged,
    ordered,
)
from openstack_prep.kubernetes.keys.rke2_keys import AGENT, SERVER

RIGHT: dict[Kind, Any] = {
    Kind.TEXT: "text",
    Kind.TEXTS: ["text"],
    Kind.NUMBER: 3,
    Kind.REAL: 0.5,
    Kind.TRUTH: True,
    Kind.ANY: {"apiVersion": "v1"},
    Kind.SECRET: "hush",
    Kind.PRIVATE: {"key": ["hush"]},
}
WRONG: dict[Kind, Any] = {
    Kind.TEXT: ["text"],
    Kind.TEXTS: {"a": "text"},
    Kind.NUMBER: "3",
    Kind.REAL: "half",
    Kind.TRUTH: "maybe",
    Kind.SECRET: ["hush"],
    Kind.PRIVATE: "hush",
}


def made(steps: Steps, value: Any) -> Any:
    """Return data with a value at a path."""
    for step in reversed(steps):
        value = [value] if isinstance(step, int) else {step: value}
    return value


def misspelled(name: str) -> str:
    """Return a name that nobody means to be another: two letters change places, or one is doubled."""
    return name[0] + name if len(name) < 4 else name[:-2] + name[-1] + name[-2] + "x"


def leaves(tree: Tree, steps: Steps = ()) -> Iterator[tuple[Steps, Kind]]:
    """Yield every path of a tree with what stands there; of lists the first, of free mappings the key "any"."""
    if isinstance(tree, Kind):
        yield steps, tree
    elif isinstance(tree, Each):
        yield from leaves(tree.of, (*steps, "any"))
    elif isinstance(tree, Mapping):
        for name, inner in tree.items():
            yield from leaves(inner, (*steps, name))
    else:
        yield from leaves(tree[0], (*steps, 0))


ENDS = [
    pytest.param(tree, steps, kind, id=f"{name}:{dotted(steps)}")
    for name, tree in (("cluster.yml", CLUSTER), ("server", SERVER), ("agent", AGENT))
    for steps, kind in leaves(tree)
]


def test_the_tables_are_whole() -> None:
    """As many keys as RKE 1.7 and RKE2 1.36 have."""
    assert (len(CLUSTER), len(NODE), len(ACI), len(SYSTEM_IMAGES)) == (30, 15, 124, 41)
    assert len(list(leaves(CLUSTER))) == len({steps for steps, _ in leaves(CLUSTER)})
    assert len(SERVER) == 135
    assert AGENT.keys() < SERVER.keys()


@pytest.mark.parametrize(("tree", "steps", "kind"), ENDS)
def test_each_key(tree: Tree, steps: Steps, kind: Kind) -> None:
    assert list(faults(made(steps, RIGHT[kind]), tree)) == []
    assert list(faults(made(steps, None), tree)) == []
    if kind is not Kind.ANY:
        (fault,) = faults(made(steps, WRONG[kind]), tree)
        assert fault.what.endswith(f"is not {WANTED.get(kind, kind.value)}")
        assert "hush" not in str(fault)
    known = [index for index, step in enumerate(steps) if isinstance(step, str) and step != "any"]
    for index in known:
        wrong = (*steps[:index], misspelled(str(steps[index])), *steps[index + 1 :])
        (fault,) = faults(made(wrong, RIGHT[kind]), tree)
        assert (fault.steps, fault.what) == (wrong[: index + 1], "unknown key")


@pytest.mark.parametrize(
    ("steps", "remedy"),
    [
        (("services", "kubeapi"), "did you mean kube-api?"),
        (("nodes", 0, "roles"), "did you mean role?"),
        (("nodes", 0, "hostnameOverride"), "did you mean hostname_override?"),
        (("nodes", 0, "node_name"), "did you mean nodeName?"),
        (("network", "tolerations", 0, "tolerationSeconds"), "did you mean tolerationseconds?"),
        (("services", "etcd", "backup_config", "s3_backup_config"), "did you mean s3backupconfig?"),
        (("rotate_certificates", "ca_certificates"), "did you mean cacertificates?"),
        (("kubelet",), "it belongs to services"),
        (("services", "kubelet", "service_node_port_range"), "it belongs to services.kube-api"),
        (("extra_args",), "take it out"),
        (("quux",), "take it out"),
    ],
)
def test_what_to_write_instead(steps: Steps, remedy: str) -> None:
    (fault,) = faults(made(steps, "x"), CLUSTER)
    assert fault.remedy == remedy


def test_all_at_once_by_their_places() -> None:
    data = {"nodes": [{"role": "etcd"}, "n2"], "network": [], "services": {"etcd": {"uid": True, "gid": 1.5}}}
    assert [str(each.mistake(dotted(each.steps))) for each in faults(data, CLUSTER)] == [
        "nodes[0].role: 'etcd' is not a list; write a list",
        "nodes[1]: 'n2' is not a mapping; write a mapping",
        "network: a list is not a mapping; write a mapping",
        "services.etcd.uid: True is not a whole number; write a whole number",
        "services.etcd.gid: 1.5 is not a whole number; write a whole number",
    ]


def test_secrets_are_hidden_wherever_they_stand() -> None:
    key = {"secret": "hush", "keys": [{"secret": "hush"}]}
    data = {
        "nodes": [{"ssh_key": "hush"}],
        "private_registries": [{"password": Secret("hush"), "user": "me"}],
        "cloud_provider": {"vsphereCloudProvider": {"virtual_center": {"here": {"password": "hush", "port": "1"}}}},
        "services": {"kube-api": {"secrets_encryption_config": {"custom_config": {"resources": [key]}}}},
        "unknown": "seen",
    }
    shown = str(hidden(data, CLUSTER))
    assert "hush" not in shown
    assert shown.count("********") == 5
    assert all(word in shown for word in ("'me'", "'1'", "'seen'"))
    assert "hush" in str(data)  # what was given is as it was


def test_order_and_merging() -> None:
    assert list(ordered({"new": 1, "services": {}, "nodes": [{"user": 1, "address": 2}]}, CLUSTER)) == [
        "nodes",
        "services",
        "new",
    ]
    assert list(ordered([{"user": 1, "address": 2}], CLUSTER["nodes"])[0]) == ["address", "user"]
    assert list(ordered({"b": 1, "a": 2}, Each(Kind.TEXT))) == ["b", "a"]
    assert merged({"a": {"b": 1}, "c": 2}, {"a": {"b": 3, "d": 4}, "c": {}}) == {"a": {"b": 1, "d": 4}, "c": 2}
