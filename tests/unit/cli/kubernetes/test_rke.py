"""``rke check`` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from openstack_prep.cli.main import main
from tests.unit.texts import Wording

GOOD = "nodes:\n- {address: 192.0.2.1, user: me, role: [controlplane, etcd, worker]}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_good_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "cluster.yml").write_text(GOOD)
    (folder / "two.yml").write_text(GOOD + "- {address: 192.0.2.2, user: me, role: [etcd]}\n")
    assert main(["rke", "check", "cluster.yml", "two.yml"]) == 0
    said = capsys.readouterr()
    assert said.out == "cluster.yml: valid cluster.yml of RKE\ntwo.yml: valid cluster.yml of RKE\n"
    assert said.err.startswith("openstack-prep: warning: two.yml: 2 etcd nodes")


def test_mistakes_of_all_files_at_once(folder: Path, capsys: pytest.CaptureFixture[str], wording: Wording) -> None:
    (folder / "cluster.yml").write_text(f"{GOOD}kubernets_version: v1.31.1-rancher1-1\n")
    assert main(["rke", "check", "none.yml", "cluster.yml"]) == 2
    wording(capsys.readouterr().err.splitlines())


def test_config_of_rke2(folder: Path, capsys: pytest.CaptureFixture[str], wording: Wording) -> None:
    (folder / "config.yaml").write_text("server: https://192.0.2.1:9345\ntls-san: [x]\ncluster-init: true\n")
    assert main(["rke", "check", "--rke2", "server", "config.yaml"]) == 2
    assert main(["rke", "check", "--rke2", "agent", "config.yaml"]) == 2
    wording([each.partition(": ")[2] for each in capsys.readouterr().err.splitlines()])


@pytest.mark.parametrize(
    ("form", "text", "starts"),
    [
        ("server", "server: https://api.example.com:443\n", ["config.yaml: server: "]),
        ("agent", "server: https://192.0.2.1:9345\ntoken: a\n", []),
        ("agent", "server: https://192.0.2.1:9345\n", ["config.yaml: token is missing"]),
        ("server", "node-taint: [CriticalAddonsOnly=true:NoExecute]\n", ["config.yaml: node-taint: "]),
        ("agent", "node-taint: [gpu=true:NoSchedule]\n", []),
        ("server", "node-taint: [a=b:PreferNoSchedule]\n", []),
        ("agent", "kube-proxy-arg: [--proxy-mode=ipvs]\n", ["config.yaml: kube-proxy in mode ipvs"]),
        ("server", "kube-proxy-arg: [proxy-mode=ipvs, ipvs-strict-arp=true]\n", []),
    ],
)
def test_warnings_of_config(
    folder: Path, capsys: pytest.CaptureFixture[str], form: str, text: str, starts: list[str]
) -> None:
    (folder / "config.yaml").write_text(text)
    assert main(["rke", "check", "--rke2", form, "config.yaml", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["warnings"]
    assert len(found) == len(starts)
    assert all(map(str.startswith, found, starts))


@pytest.mark.parametrize(("servers", "even"), [(1, False), (2, True), (3, False), (4, True)])
def test_servers_of_one_cluster(folder: Path, capsys: pytest.CaptureFixture[str], servers: int, even: bool) -> None:
    """Their files, such as apply writes, show how many members etcd has."""
    names = [f"server-{number}.yaml" for number in range(servers)]
    for name in names:
        (folder / name).write_text("" if name == names[0] else "server: https://192.0.2.1:9345\n")
    (folder / "control-plane.yaml").write_text("server: https://192.0.2.1:9345\ndisable-etcd: true\n")
    assert main(["rke", "check", "--rke2", "server", *names, "control-plane.yaml", "--format", "json"]) == 0
    assert (
        json.loads(capsys.readouterr().out)["warnings"]
        == [f"{servers} etcd nodes tolerate no more failures than {servers - 1}; use an odd number"] * even
    )


def test_taints_on_all_nodes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node = "- {address: 192.0.2.%d, user: me, role: [controlplane, etcd, worker], taints: [{key: a, effect: %s}]}\n"
    found = []
    for effects in (("NoSchedule", "NoExecute"), ("NoSchedule", "PreferNoSchedule")):
        nodes = (node % (number, effect) for number, effect in enumerate((*effects, "NoSchedule"), 1))
        (folder / "cluster.yml").write_text(f"nodes:\n{''.join(nodes)}")
        assert main(["rke", "check", "cluster.yml", "--format", "json"]) == 0
        found.append(len(json.loads(capsys.readouterr().out)["warnings"]))
    assert found == [1, 0]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--rke2", "server"), 2),
        (("--rke2", "server", "--kubernetes-version", "v1.24.17+rke2r1"), 0),
        (("--rke2", "server", "--kubernetes-version", "v1.30.14+rke2r4"), 2),
        (("--rke2", "server", "--kubernetes-version", "v1.24"), 2),
        (("--kubernetes-version", "v1.24.17+rke2r1"), 2),
    ],
)
def test_keys_and_values_by_release(folder: Path, options: tuple[str, ...], code: int) -> None:
    (folder / "config.yaml").write_text("profile: cis-1.6\n")
    assert main(["rke", "check", "config.yaml", *options]) == code
