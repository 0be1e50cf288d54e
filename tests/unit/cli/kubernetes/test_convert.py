"""``kubernetes convert`` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from openstack_prep.cli.main import main

GOOD = """\
cluster_name: prod
nodes:
- {address: 192.0.2.1, user: me, role: [controlplane, etcd, worker], hostname_override: a}
private_registries:
- {url: r.example.com, user: me, password: s3cret}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cluster.yml").write_text(GOOD)
    return tmp_path


def test_files_are_shown_without_secrets(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kubernetes", "convert", "cluster.yml"]) == 0
    out = capsys.readouterr().out
    assert "# --- a.yaml\n" in out
    assert "# --- registries.yaml\n" in out
    assert "s3cret" not in out
    assert [each.name for each in folder.iterdir()] == ["cluster.yml"]


def test_files_are_written_for_their_owner_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):  # a second run writes the same
        assert main(["kubernetes", "convert", "cluster.yml", "--output", "new"]) == 0
        written = {each.name: each.stat().st_mode & 0o777 for each in (folder / "new").iterdir()}
        assert written == dict.fromkeys(("a.yaml", "registries.yaml", "moving.txt"), 0o600)
    text = (folder / "new" / "registries.yaml").read_text()
    assert text.startswith("# [openstack-prep:convert/prod]\n")
    assert "s3cret" in text
    assert "s3cret" not in capsys.readouterr().out
    assert main(["rke", "check", "--rke2", "server", "new/a.yaml"]) == 0


def test_a_foreign_file_stays(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "new").mkdir()
    (folder / "new" / "a.yaml").write_text("mine: true\n")
    assert main(["kubernetes", "convert", "cluster.yml", "--output", "new"]) == 1
    assert (folder / "new" / "a.yaml").read_text() == "mine: true\n"
    assert [each.name for each in (folder / "new").iterdir()] == ["a.yaml"]
    assert "new/a.yaml exists" in capsys.readouterr().err


def test_mistakes_are_reported_at_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "cluster.yml").write_text(f"{GOOD}kubernets_version: v1\nservice: {{}}\n")
    assert main(["kubernetes", "convert", "cluster.yml", "--output", "new"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2
    assert not (folder / "new").exists()


def test_a_version_that_rke2_does_not_have(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kubernetes", "convert", "cluster.yml", "--kubernetes-version", "1.35"]) == 2
    assert "--kubernetes-version 1.35" in capsys.readouterr().err


def test_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kubernetes", "convert", "cluster.yml", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    keys = {each["key"]: each["becomes"] for each in data["keys"]}
    assert keys["nodes[].hostname_override"] == "node-name"
    assert keys["cluster_name"] is None
    assert {"a.yaml", "registries.yaml", "moving.txt"} == data["files"].keys()
