"""``kubernetes convert`` as a user calls it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from openstack_prep.cli.main import main

GOOD = """\
cluster_name: prod
nodes:
- {address: 192.0.2.1, user: me, role: [controlplane, etcd, worker], hostname_override: a}
private_registries:
- {url: r.example.com, user: me, password: s3cret}
"""
FILES = {"a.yaml", "registries.yaml", "rke2-ingress-nginx-config.yaml", "moving.txt"}


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
        assert written == dict.fromkeys(FILES, 0o600)
    text = (folder / "new" / "registries.yaml").read_text()
    assert text.startswith("# registries.yaml [openstack-prep:convert/prod]\n")
    assert "s3cret" in text
    assert "s3cret" not in capsys.readouterr().out
    assert main(["rke", "check", "--rke2", "server", "new/a.yaml"]) == 0


def test_a_foreign_file_stays(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "new").mkdir()
    (folder / "new" / "a.yaml").write_text("mine: true\n")
    assert main(["kubernetes", "convert", "cluster.yml", "--output", "new"]) == 2
    assert (folder / "new" / "a.yaml").read_text() == "mine: true\n"
    assert [each.name for each in (folder / "new").iterdir()] == ["a.yaml"]
    assert "new/a.yaml exists" in capsys.readouterr().err


def test_mistakes_are_reported_at_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "cluster.yml").write_text(f"{GOOD}kubernets_version: v1\nservice: {{}}\n")
    assert main(["kubernetes", "convert", "cluster.yml", "--output", "new"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2
    assert not (folder / "new").exists()


@pytest.mark.parametrize(
    "version", ["1.35", "v1.17.1+rke2r1", "v1.30.3+rke2r5", "v1.25.1+rke2r1", "v1.30.3+rke2r0", ""]
)
def test_a_version_that_rke2_does_not_have(version: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kubernetes", "convert", "cluster.yml", "--kubernetes-version", version]) == 2
    assert f"--kubernetes-version {version!r}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("v1.35.7+rke2r1", 0),
        ("v1.30.14+rke2r4", 0),
        ("v1.99.0+rke2r1", 1),
        ("v1.32.13+rke2r9", 1),
        ("v1.32.14+rke2r1", 1),
        ("v1.30.0-rc1+rke2r1", 1),
    ],
)
def test_a_newer_version_is_a_warning(version: str, told: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kubernetes", "convert", "cluster.yml", "--kubernetes-version", version]) == 0
    assert capsys.readouterr().err.count("warning: --kubernetes-version") == told


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("cluster.yml", "--output cluster.yml: cluster.yml is a file"),
        ("cluster.yml/new", "--output cluster.yml/new: cluster.yml is a file"),
        ("/proc/new", "--output /proc/new cannot be created"),
    ],
)
def test_a_folder_that_cannot_be_one(output: str, said: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kubernetes", "convert", "cluster.yml", "--output", output]) == 2
    assert said in capsys.readouterr().err
    assert [each.name for each in folder.iterdir()] == ["cluster.yml"]


@pytest.mark.parametrize(("text", "code"), [(GOOD, 0), (f"{GOOD}kubernets_version: v1\n", 2)])
def test_standard_input(text: str, code: int) -> None:
    command = [sys.executable, "-m", "openstack_prep.cli.main", "kubernetes", "convert", "-"]
    said = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
    assert said.returncode == code
    assert "# --- a.yaml\n" in said.stdout if code == 0 else "-:6: kubernets_version" in said.stderr


SECRETS = Path(__file__).parents[2] / "kubernetes" / "data" / "secrets.yml"


def markers(text: str, kind: str = "") -> set[str]:
    return set(re.findall(rf"s3cret-{kind}[-a-z0-9]*", text))


@pytest.mark.parametrize("form", ["text", "json", "yaml"])
def test_no_secret_of_a_whole_file_is_printed(form: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = markers(SECRETS.read_text(), "kept")
    assert len(wanted) > 30
    for more in ([], ["--output", "new"]):
        assert main(["kubernetes", "convert", str(SECRETS), "--format", form, *more]) == 0
        said = capsys.readouterr()
        assert markers(said.out + said.err) == set()
    files = list((folder / "new").iterdir())
    assert {each.stat().st_mode & 0o777 for each in files} == {0o600}
    assert markers("".join(each.read_text() for each in files)) == wanted


def test_errors_show_no_secret(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each text becomes a value of a wrong type: a list where a text belongs, or a text where a list does."""
    data = yaml.safe_load(SECRETS.read_text())

    def spoil(value: object) -> object:
        if isinstance(value, dict):
            return {name: spoil(each) for name, each in value.items()}
        if isinstance(value, list):
            return spoil(value[0]) if value and isinstance(value[0], dict) else " ".join(map(str, value))
        return [value]

    (folder / "cluster.yml").write_text(yaml.safe_dump(spoil(data)))
    assert main(["kubernetes", "convert", "cluster.yml"]) == 2
    said = capsys.readouterr().err
    assert "services.kube-api.extra_env" in said
    assert markers(said) == set()


def test_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kubernetes", "convert", "cluster.yml", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    keys = {each["key"]: each["becomes"] for each in data["keys"]}
    assert keys["nodes[].hostname_override"] == "node-name"
    assert keys["cluster_name"] is None
    assert data["files"].keys() == FILES
