"""Specs of pool files and exposures alone: no cloud, no clouds.yaml and no login, as on a hypervisor or bare metal."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.spec import load_spec

SPEC: dict[str, Any] = {
    "name": "okd",
    "pool_files": [
        {
            "name": "outside",
            "path": "outside.yaml",
            "cidr": "10.19.41.0/24",
            "gateway": "10.19.41.254",
            "addresses": ["10.19.41.157"],
        },
        {
            "name": "inside",
            "path": "inside.yaml",
            "cidr": "10.0.0.0/24",
            "gateway": "10.0.0.254",
            "addresses": ["10.0.0.1-10.0.0.200"],
        },
    ],
    "exposures": [
        {
            "name": "okd",
            "cluster": "okd",
            "how": "service-host",
            "target": {"host": "okd-service-01"},
            "pool": "outside",
            "ports": [{"port": 6443}, {"port": 80}, {"port": 443}],
            "names": ["api.watata.kubeinit.local", "*.apps.watata.kubeinit.local"],
        }
    ],
    "exposed_clusters": [
        {
            "name": "okd",
            "directory": "okd-access",
            "service_host": {
                "domain": "watata.kubeinit.local",
                "network": "10.0.0.0/24",
                "address": "10.0.0.100",
                "mac": "52:54:00:f2:46:a7",
                "pool": "inside",
                "external": {"nic": "eno1", "gateway": "10.19.41.254", "prefix_length": 24},
                "masters": {"count": 3, "first_address": "10.0.0.1"},
                "workers": {"count": 2, "first_address": "10.0.0.4"},
                "forwarders": ["8.8.8.8"],
            },
        }
    ],
}
WEB = {"cluster": "okd", "how": "metallb", "pool": "inside", "address": "10.0.0.150", "ports": [{"port": 443}]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path


def run(folder: Path, *words: str, code: int = 0, **environment: str) -> dict[str, Any]:
    """Run the command with an empty HOME and no variable of OpenStack; return its data."""
    command = [sys.executable, "-I", "-m", "openstack_prep.cli.main", *words, "--format", "json"]
    given = {"HOME": str(folder / "home"), "PATH": "/usr/bin:/bin", **environment}
    found = subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, timeout=50, check=False)
    assert found.returncode == code, found.stderr + found.stdout
    data: dict[str, Any] = json.loads(found.stdout)
    return data


def written(folder: Path, **sections: Any) -> str:
    (folder / "spec.yaml").write_text(yaml.safe_dump(SPEC | sections))
    return "spec.yaml"


def actions(report: dict[str, Any]) -> set[str]:
    return {each["action"] for each in report["steps"]}


def test_from_plan_to_destroy(folder: Path) -> None:
    spec = written(folder)
    assert actions(run(folder, "plan", spec)) == {"create"}
    assert {each.name for each in folder.iterdir()} == {"home", "spec.yaml"}
    run(folder, "apply", "--yes", spec)
    assert "10.19.41.157" in (folder / "okd-access" / "haproxy.cfg").read_text()
    assert actions(run(folder, "apply", "--yes", spec)) == {"keep"}
    run(folder, "plan", spec, "--detailed-exitcode")
    assert run(folder, "show", spec)["exposure/okd"]["outputs"]["address"] == "10.19.41.157"
    found = run(folder, "exposures", "show", spec, "--hosts", "okd-access/hosts", code=1)  # hosts has no wildcards
    assert {hop["status"] for hop in found["exposures"][0]["hops"] if hop["where"] != "name"} == {"ok"}
    run(folder, "destroy", "--yes", spec)
    assert {each.name for each in folder.iterdir()} == {"home", "spec.yaml"}


def test_a_saved_plan_and_a_claim_that_the_spec_drops(folder: Path) -> None:
    web = WEB | {"name": "web", "target": {"service": "shop/web", "selector": {"app": "web"}}}
    spec = written(folder, exposures=[*SPEC["exposures"], web])
    run(folder, "plan", spec, "-o", "saved.plan")
    run(folder, "apply", "--yes", "--plan", "saved.plan")
    assert "okd/web" in yaml.safe_load((folder / "inside.yaml").read_text())["claims"]
    written(folder)
    report = run(folder, "apply", "--yes", "--prune", spec)
    assert {each["resource"] for each in report["steps"] if each["action"] == "delete"} == {"exposure/web (inside)"}
    assert "okd/web" not in yaml.safe_load((folder / "inside.yaml").read_text())["claims"]


def test_a_spec_of_the_same_name_that_has_a_project_is_left_alone(folder: Path) -> None:
    """Nothing here can tell whether that project is this spec's: its claims stay, and the plan is refused."""
    spec = written(folder)
    run(folder, "apply", "--yes", spec)
    path = folder / "outside.yaml"
    foreign = path.read_text().replace("okd: {}", "okd: {project: 18d6ff2e4c79421092857bc6b65ffa3b}")
    assert foreign != path.read_text()
    path.write_text(foreign)
    for words in (("plan", spec), ("apply", "--yes", spec)):
        assert "pool_file/outside" in str(run(folder, *words, code=2))
    run(folder, "destroy", "--yes", spec)
    assert path.read_text() == foreign


@pytest.mark.parametrize(
    "sections",
    [
        {"networks": [{"name": "n"}]},
        {"clouds": {"admin": "lab"}},
        {"exposures": [SPEC["exposures"][0] | {"project": "p"}]},
        {"exposed_clusters": [SPEC["exposed_clusters"][0] | {"nodes": {"stack": "s"}}]},
        {"exposed_clusters": [SPEC["exposed_clusters"][0] | {"open_in": "nodes"}]},
    ],
)
def test_what_needs_a_cloud_asks_for_one(folder: Path, sections: dict[str, Any]) -> None:
    path = folder / written(folder, **sections)
    assert load_spec(path).needs_cloud
    run(folder, "plan", path.name, code=2)


def test_a_cloud_that_somebody_names_is_asked(folder: Path) -> None:
    spec = written(folder)
    assert not load_spec(folder / spec).needs_cloud
    for words, environment in ((["--os-cloud", "lab"], {}), ([], {"OS_CLOUD": "lab"})):
        assert "lab" in str(run(folder, "plan", spec, *words, code=2, **environment))
