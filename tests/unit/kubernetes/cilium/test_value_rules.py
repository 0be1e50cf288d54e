"""Helm values against the table of names, and against the schema of a chart that nobody vouches for."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.base.codes import Code
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.kubernetes.cilium import Cilium, Member, mistakes
from openstack_prep.kubernetes.cilium.rules import MOST_BYTES, by_chart, by_table, names, read_chart
from openstack_prep.kubernetes.model import KubernetesCluster


@pytest.mark.parametrize(
    ("release", "values", "found"),
    [
        ("1.18", {"hubble": {"enabled": True}, "MTU": 1400, "l7Proxy": False, "devices": "eth+"}, {}),
        ("1.18", {"hubbel": {}}, {"hubbel": "did you mean hubble?"}),
        ("1.18", {"kubeproxyReplacement": True}, {"kubeproxyReplacement": "did you mean kubeProxyReplacement?"}),
        ("1.18", {"zzz": 1}, {"zzz": "remove it"}),
        ("1.18", {"hubble": True}, {"hubble": "write a mapping"}),
        ("1.18", {"l7Proxy": "yes"}, {"l7Proxy": "write true or false"}),
        ("1.18", {"MTU": "jumbo"}, {"MTU": "write a number"}),
        ("1.18", {"tolerations": {"key": "x"}}, {"tolerations": "write a list"}),
        ("1.18", {"routingMode": ["native"]}, {"routingMode": "write a string"}),
        ("1.18", {"hubble": None}, {}),
        ("1.14", {"tunnel": "vxlan"}, {}),
        ("1.15", {"tunnel": "vxlan"}, {"tunnel": "remove it, or correct version"}),
        ("1.16", {"k8sServiceHostRef": {}}, {"k8sServiceHostRef": "remove it, or correct version"}),
        ("1.19.601", {"portmapPlugin": {}, "global": {}}, {}),
        ("1.99", {"tunnel": "vxlan", "k8sServiceHostRef": {}}, {}),
    ],
)
def test_names_at_the_top_level(release: str, values: dict[str, Any], found: dict[str, str]) -> None:
    assert {str(each.steps[0]): each.fix for each in by_table(values, release)} == found


def test_the_table_names_each_value_once() -> None:
    table = names()
    assert {*table.since, *table.until} <= table.kinds.keys()
    assert all(table.since.get(name, 13) <= last for name, last in table.until.items())


def test_a_long_value_is_not_shown() -> None:
    (fault,) = by_table({"hubble": "k" * 100}, "1.18")
    assert "k" * 10 not in fault.what


@pytest.mark.parametrize("value", ["user:secret=hush", "https://u:hush@host/"])
def test_a_value_that_may_be_a_secret_is_not_shown(value: str) -> None:
    (fault,) = by_table({"hubble": value}, "1.18")
    assert "hush" not in fault.what


SCHEMA = {
    "type": "object",
    "properties": {
        "cluster": {"type": "object", "properties": {"name": {"type": "string"}, "id": {"type": "integer"}}},
        "hubble": {
            "type": "object",
            "properties": {
                "enabled": {"type": "boolean"},
                "relay": {"type": "object", "properties": {"replicas": {"type": ["null", "integer"]}}},
                "metrics": {
                    "type": "object",
                    "properties": {"enabled": {"type": "array", "items": {"type": "string"}}},
                },
            },
        },
        "k8sServicePort": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "policyDenyResponse": {"enum": ["none", "icmp"]},
        "podLabels": {"type": "object", "properties": {}},
        "evil": {"$ref": "http://192.0.2.1/schema", "pattern": "(a+)+$"},
        "ipam": {"type": "object"},
        "k8s": {"type": "object"},
        "routingMode": {"type": "string"},
        "tunnelProtocol": {"type": "string"},
    },
}


def archive(path: Path, members: Mapping[str, bytes]) -> str:
    with tarfile.open(path, "w:gz") as made:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            made.addfile(info, io.BytesIO(content))
    return str(path)


def chart(tmp_path: Path, name: str = "cilium", version: str = "1.18.12", schema: Any = SCHEMA) -> str:
    about = f"name: {name}\nversion: {version}\n".encode()
    members = {"Chart.yaml": about, "values.schema.json": json.dumps(schema).encode(), "values.yaml": b"a: 1"}
    return archive(tmp_path / "c.tgz", {f"{name}/{each}": content for each, content in members.items()})


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"hubble": {"enabled": True, "relay": {"replicas": None}}, "k8sServicePort": "6443"}, {}),
        ({"hubble": {"enabld": True}}, {"hubble.enabld": "did you mean enabled?"}),
        ({"hubble": {"relay": {"replicas": "2"}}}, {"hubble.relay.replicas": "write an integer"}),
        ({"hubble": {"metrics": {"enabled": [1]}}}, {"hubble.metrics.enabled.0": "write a string"}),
        ({"hubble": "on"}, {"hubble": "write a mapping"}),
        ({"policyDenyResponse": "drop"}, {"policyDenyResponse": "write one of none, icmp"}),
        ({"k8sServicePort": [1]}, {"k8sServicePort": "see values.yaml of the chart"}),
        ({"podLabels": {"any": "thing"}, "evil": "a" * 50 + "b", "kubeProxyReplacement": True}, {}),
    ],
)
def test_a_chart(tmp_path: Path, values: dict[str, Any], found: dict[str, str]) -> None:
    faults = list(by_chart(values, read_chart(chart(tmp_path))))
    assert {".".join(map(str, each.steps)): each.fix for each in faults} == found
    assert all(each.code in (Code.SPEC_UNKNOWN_KEY, Code.SPEC_INVALID_VALUE) for each in faults)


def refused(path: str, distribution: Any = "rke", **said: Any) -> list[str]:
    given = {"version": "1.18", "mesh": "none", "chart": path} | said
    member = Member(
        name="one", cilium=Cilium(cluster_id=1, **given), cluster=KubernetesCluster(distribution=distribution)
    )
    return [each.where for each in mistakes(member, [member])]


def test_the_chart_of_a_cluster(tmp_path: Path) -> None:
    path = chart(tmp_path)
    assert refused(path) == []
    assert refused(path, values={"hubble": {"enabld": True}}) == ["values.hubble.enabld"]
    assert refused(path, values={"cluster": {"name": 1}}) == ["values"]  # once: a field sets it
    assert refused(path, version="1.17") == ["chart"]
    assert refused(str(tmp_path / "none.tgz")) == ["chart"]
    of_rke2 = chart(tmp_path, "rke2-cilium", "1.18.1201")
    assert refused(of_rke2, "rke2") == []
    assert refused(of_rke2) == ["chart"]


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"cilium/Chart.yaml": b"name: cilium\nversion: 1.15.1"},
        {"cilium/values.schema.json": b"{}"},
        {"cilium/Chart.yaml": b"[1]", "cilium/values.schema.json": b"{}"},
        {"cilium/Chart.yaml": b"a: b: c", "cilium/values.schema.json": b"{}"},
        {"cilium/Chart.yaml": b"name: cilium", "cilium/values.schema.json": b"[" * 100_000},
        {"cilium/Chart.yaml": b"name: cilium", "cilium/values.schema.json": b"\xff"},
        {"cilium/Chart.yaml": b"name: cilium", "cilium/values.schema.json": b" " * (2**22 + 1)},
        {"cilium/charts/x/Chart.yaml": b"name: x", "cilium/charts/x/values.schema.json": b"{}"},
    ],
)
def test_archives_that_are_no_chart(tmp_path: Path, members: dict[str, bytes]) -> None:
    with pytest.raises(InvalidValue):
        read_chart(archive(tmp_path / "c.tgz", members))


def test_a_small_archive_of_a_large_file(tmp_path: Path) -> None:
    path = tmp_path / "c.tgz"
    info = tarfile.TarInfo("cilium/zeros")
    info.size = MOST_BYTES + 2**20
    with gzip.open(path, "wb", compresslevel=1) as stream:
        stream.write(info.tobuf())
        for _ in range(info.size // 2**20):
            stream.write(bytes(2**20))
    with pytest.raises(InvalidValue, match="larger than 64 MiB"):
        read_chart(str(path))


def test_a_file_that_is_no_archive(tmp_path: Path) -> None:
    path = tmp_path / "c.tgz"
    for content in (b"", b"plain", gzip.compress(b"text")[:-4], gzip.compress(b"text" * 500)):
        path.write_bytes(content)
        with pytest.raises(InvalidValue):
            read_chart(str(path))
