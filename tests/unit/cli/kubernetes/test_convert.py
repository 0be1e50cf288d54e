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

DATA = Path(__file__).parents[2] / "kubernetes" / "data"
GOOD = """\
cluster_name: prod
nodes:
- {address: 192.0.2.1, user: me, role: [controlplane, etcd, worker], hostname_override: a}
private_registries:
- {url: r.example.com, user: me, password: s3cret}
"""
FILES = {"a.yaml", "new.yaml", "registries.yaml", "rke2-ingress-nginx-config.yaml", "moving.txt"}


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


SPLIT = """\
kubernetes_version: v1.24.17-rancher1-1
nodes:
- {address: 192.0.2.1, user: me, role: [worker]}
- {address: 192.0.2.2, user: me, role: [etcd]}
- {address: 192.0.2.3, user: me, role: [controlplane], labels: {a: b}}
network: {plugin: weave}
services:
  kube-api: {audit_log: {enabled: true}, extra_args: {tls-sni-cert-key: s3cret}}
  kube-controller: {cluster_cidr: 10.64.0.0/16}
cloud_provider: {name: openstack, openstackCloudProvider: {global: {auth-url: "https://c.example.com:5000"}}}
addons: "apiVersion: v1\\nkind: Namespace\\nmetadata: {name: apps}\\n"
"""


@pytest.mark.parametrize(
    ("source", "servers", "agents", "by_template", "by_image"),
    [
        ("full.yml", 3, 1, set(), set()),
        ("one.yml", 1, 0, set(), set()),
        ("plain.yml", 3, 0, set(), set()),
        (
            "secrets.yml",
            *(1, 0, set()),
            {"admission.yaml", "audit-policy.yaml", "etcd-s3-ca.pem", "webhook.yaml", "private-config.yaml"},
        ),
        (SPLIT, 3, 1, {"/etc/rancher/rke2/audit-policy.yaml"}, {"private-config.yaml"}),
    ],
    ids=["roles apart", "one node", "all roles", "secrets", "split"],
)
def test_the_printed_steps_can_be_followed(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    servers: int,
    agents: int,
    by_template: set[str],
    by_image: set[str],
) -> None:
    """The files are there, a public key as well, and each command of openstack-prep and kubectl names what exists."""
    (folder / ".ssh").mkdir()
    (folder / ".ssh" / "id_ed25519.pub").write_text(
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB me@example\n"
    )
    monkeypatch.setenv("HOME", str(folder))
    (folder / "cluster.yml").write_text(source if "\n" in source else (DATA / source).read_text())
    assert main(["kubernetes", "convert", "cluster.yml"]) == 0
    assert "s3cret" not in capsys.readouterr().out
    assert main(["kubernetes", "convert", "cluster.yml", "--output", "new"]) == 0
    monkeypatch.chdir(folder / "new")
    assert main(["validate", "new.yaml"]) == 0
    spec = yaml.safe_load(Path("new.yaml").read_text())
    (parameters,) = (stack["parameters"] for stack in spec["stacks"])
    assert (parameters["server_count"], parameters["agent_count"]) == (servers, agents)
    assert parameters.get("extra_files", {}).keys() == by_template
    assert "s3cret" not in str(parameters)
    steps = Path("moving.txt").read_text()
    applied = re.findall(r"kubectl apply -f ([\w-]+\.yaml)", steps)
    assert len(applied) == len([each for each in Path().iterdir() if each.name.startswith(("addons.yaml", "rke2-"))])
    assert all(Path(each).exists() for each in applied)
    assert set(re.findall(r"Put ([\w.-]+) as /etc/rancher/rke2/", steps)) == by_image
    assert {each.name for each in Path().iterdir()} >= by_image
    if "private-config.yaml" in by_image:
        assert main(["rke", "check", "--rke2", "server", "private-config.yaml"]) == 0


def test_a_foreign_file_stays(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "new").mkdir()
    (folder / "new" / "a.yaml").write_text("mine: true\n")
    assert main(["kubernetes", "convert", "cluster.yml", "--output", "new"]) == 2
    assert (folder / "new" / "a.yaml").read_text() == "mine: true\n"
    assert [each.name for each in (folder / "new").iterdir()] == ["a.yaml"]
    assert "new/a.yaml exists" in capsys.readouterr().err


def test_a_second_run_keeps_the_edits_of_the_new_spec(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The printed steps tell the user to change it; a file that nobody changes is written again."""
    command = ["kubernetes", "convert", "cluster.yml", "--output", "new"]
    assert main(command) == 0
    assert "new.yaml has secrets" in (folder / "new" / "moving.txt").read_text()
    (folder / "new" / "moving.txt").unlink()
    assert main(command) == 0
    spec = folder / "new" / "new.yaml"
    spec.write_text(spec.read_text() + "# mine\n")
    before = {each.name: each.read_text() for each in (folder / "new").iterdir()}
    assert before.keys() == FILES
    (folder / "cluster.yml").write_text(GOOD.replace("hostname_override: a", "hostname_override: b"))
    capsys.readouterr()
    assert main(command) == 2
    assert "new/new.yaml exists with other content" in capsys.readouterr().err
    assert {each.name: each.read_text() for each in (folder / "new").iterdir()} == before


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
    assert "# --- a.yaml\n" in said.stdout if code == 0 else "standard input:6: kubernets_version" in said.stderr


SECRETS = Path(__file__).parents[2] / "kubernetes" / "data" / "secrets.yml"


def markers(text: str, kind: str = "") -> set[str]:
    return set(re.findall(rf"s3cret-{kind}[-a-z0-9]*", text))


@pytest.mark.parametrize("form", ["text", "json", "yaml"])
def test_no_secret_of_a_whole_file_is_printed(form: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = markers(SECRETS.read_text(), "kept")
    assert len(wanted) > 25
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
