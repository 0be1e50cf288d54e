"""``rke check`` as a user calls it."""

from __future__ import annotations

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
