from __future__ import annotations

from pathlib import Path

import pytest
import requests_mock

from openstack_prep.cli.main import main
from tests.unit.conftest import ENDPOINTS
from tests.unit.texts import contains

HEAT = ENDPOINTS["orchestration"]
OUTPUTS = {"node_names": ["a-0"], "node_addresses": ["10.1.0.10"], "login_user": "core"}


@pytest.fixture(autouse=True)
def stack(services: requests_mock.Mocker, clouds_yaml: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS_CLOUD", "lab")
    outputs = [{"output_key": key, "output_value": value} for key, value in OUTPUTS.items()]
    stack = {"stack_name": "a", "id": "1", "project": "admin-project", "stack_status": "CREATE_COMPLETE"}
    services.get(f"{HEAT}/stacks", json={"stacks": [stack]})
    services.get(f"{HEAT}/stacks/a/1", json={"stack": {"stack_status": "CREATE_COMPLETE", "outputs": outputs}})


def test_fields_are_set_by_dotted_keys(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--set", "config.ingress.provider=none", "--set", "user=me", "--set", "roles=[{nodes: 0, roles: [etcd]}]"]
    assert main(["rke", "render", "--stack", "a", *words]) == 2
    assert contains(capsys.readouterr().err, "controlplane", "[cluster.config]")
    assert main(["rke", "render", "--stack", "a", *words[:4]]) == 0
    said = capsys.readouterr().out
    assert "ingress:\n  provider: none\n" in said
    assert "user: me\n" in said


def test_a_secret_is_no_argument(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--set", "private_registries=[{url: registry, user: me, password: of-the-registry}]"]
    assert main(["rke", "render", "--stack", "a", *words]) == 2
    said = capsys.readouterr().err
    assert contains(said, "other users", "{file: PATH}")
    assert "of-the-registry" not in said


def test_secrets_are_stars_on_the_screen_and_open_in_the_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    password = tmp_path / "password"
    password.write_text("of-the-registry")
    password.chmod(0o600)
    words = ["--set", f"private_registries=[{{url: registry, user: me, password: {{file: {password}}}}}]"]
    assert main(["rke", "render", "--stack", "a", *words]) == 0
    assert main(["rke", "render", "--stack", "a", *words, "--output", str(tmp_path / "out")]) == 0
    said = capsys.readouterr()
    assert "password: '********'" in said.out
    assert "of-the-registry" not in said.out + said.err
    assert "of-the-registry" in (tmp_path / "out" / "cluster.yml").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "has neither prep.yaml nor another spec"),
        (["spec.yaml", "--stack", "a"], "exactly one of SPEC and --stack is required"),
        (["--stack", "a", "--set", "user"], "--set user: is not KEY=VALUE"),
        (["--stack", "a", "--set", ".=x"], "--set .=x: is not KEY=VALUE"),
        (["--stack", "a", "--set", "name.x=y"], "--set name.x=y: is not KEY=VALUE"),
        (["--stack", "a", "--set", "user=["], "--set user: the value is not YAML"),
        (["--stack", "a", "--set", "usr=x"], "usr: unknown key; did you mean user?"),
        (["--stack", "b"], "stack/b does not exist; create the stack, or correct the name"),
        (["--stack", "a", "--distribution", "rke2"], "stack/a has no output server_names, server_addresses"),
    ],
)
def test_what_is_wrong_is_said(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rke", "render", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_cluster_that_the_spec_has_not(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text("name: x\nrke_clusters: [{name: a, stack: a, directory: a}]\n")
    assert main(["rke", "render", str(spec), "--cluster", "b"]) == 2
    assert contains(capsys.readouterr().err, "rke_cluster b", "[spec.invalid]")
    spec.write_text("name: x\n")
    assert main(["rke", "render", str(spec)]) == 2
    assert contains(capsys.readouterr().err, "rke_cluster", "rke_clusters", "[spec.invalid]")


def test_only_the_files_are_made(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        "name: x\nnetworks: [{name: n}]\n"
        "rke_clusters: [{name: a, stack: a, directory: a}, {name: b, stack: b, directory: b}]\n"
        "stacks: [{name: b, template: 'shipped:rke-cluster.yaml'}]\n"
    )
    assert main(["rke", "render", str(spec)]) == 2
    assert contains(capsys.readouterr().err, "rke_cluster/b", "stack/b", "[spec.unresolved-reference]")
    assert main(["rke", "render", str(spec), "--cluster", "a"]) == 0
    assert "rke_cluster/a" in capsys.readouterr().out
    assert (tmp_path / "a" / "cluster.yml").exists()


def test_the_plan_has_the_style_of_apply(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["rke", "render", "--color", "always", "--stack", "a", "--output", "out"]) == 0
    assert "\x1b[32m  + rke_cluster/a" in capsys.readouterr().out
