"""Programs and sessions of the documentation: docs/examples/*.py and docs/reference*.md, as a reader would run them."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import openstack_prep
from openstack_prep import hooks
from tests import doc_examples
from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.conftest import Prep

EXAMPLES = doc_examples.DOCS / "examples"


def program(name: str, *words: str, folder: Path, cloud: dict[str, str], code: int = 0) -> str:
    """Run a program of docs/examples and insist on its exit code; return what it printed."""
    process = subprocess.run(
        [sys.executable, EXAMPLES / name, *words],
        cwd=folder,
        env=os.environ | cloud,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert process.returncode == code, process.stdout + process.stderr
    return process.stdout


@pytest.fixture
def cloud(devcloud: Devcloud, tmp_path: Path) -> dict[str, str]:
    """The environment of a shell in which the administrator's entry is called admin."""
    entries = yaml.safe_load(devcloud.clouds_file.read_text())["clouds"]
    path = tmp_path / "admin" / "clouds.yaml"
    path.parent.mkdir()
    path.write_text(yaml.safe_dump({"clouds": {"admin": entries["devcloud-admin"]}}))
    return {"OS_CLIENT_CONFIG_FILE": str(path), "OS_CLOUD": "admin"}


@pytest.mark.parametrize("page", doc_examples.PAGES, ids=lambda page: page.name)
def test_sessions_print_what_the_reference_says(
    page: Path, cloud: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in cloud.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    doc_examples.write_files(tmp_path)
    names: dict[str, Any] = {"prep": openstack_prep, "hooks": hooks}
    try:
        wrong = doc_examples.run(list(doc_examples.examples(page)), names)
        assert not wrong, "".join(wrong)
    finally:
        leftover = [openstack_prep.Project(name="reference-one"), openstack_prep.Network(name="web")]
        openstack_prep.destroy(openstack_prep.connect("admin"), leftover)


def test_teams_get_projects_even_if_one_fails(cloud: dict[str, str], tmp_path: Path) -> None:
    prefix = secrets.token_hex(3)
    members = ["admin", "nobody-here", "admin"]
    rows = [f"{prefix}{number},{each},{number + 1},8" for number, each in enumerate(members)]
    (tmp_path / "teams.csv").write_text("\n".join(["team,members,cores,ram", *rows]) + "\n")
    first = program("teams.py", "teams.csv", folder=tmp_path, cloud=cloud, code=1)
    assert ["5 done, 0 failed" in line for line in first.splitlines()] == [True, True]
    (tmp_path / "teams.csv").write_text("\n".join(["team,members,cores,ram", rows[0], rows[2]]) + "\n")
    second = program("teams.py", "teams.csv", folder=tmp_path, cloud=cloud).splitlines()
    assert [line.partition(": ")[2] for line in second] == ["nothing to do: 5 unchanged"] * 2
    gone = program("teams.py", "--destroy", "teams.csv", folder=tmp_path, cloud=cloud)
    assert gone.count("5 done, 0 failed") == 2


def test_drift_is_reported(prep: Prep, cloud: dict[str, str]) -> None:
    name = f"drift{secrets.token_hex(3)}"
    spec: dict[str, Any] = {"name": name, "project": {"name": name}, "networks": [{"name": "web"}]}
    prep.write(spec)
    prep.apply()
    assert "no drift" in program("drift.py", "spec.yaml", folder=prep.folder, cloud=cloud)
    prep.write(spec | {"networks": [{"name": "web", "mtu": 1400}]})
    found = program("drift.py", "spec.yaml", folder=prep.folder, cloud=cloud, code=1)
    assert "- `network/web` (changed): plan: update" in found
    assert program("drift.py", "nonesuch.yaml", folder=prep.folder, cloud=cloud, code=2) == ""


def test_credentials_are_rotated(prep: Prep, cloud: dict[str, str]) -> None:
    name = f"ci{secrets.token_hex(3)}"
    credential = {"name": "ci", "clouds_yaml": "clouds.yaml", "cloud": "ci", "roles": ["member"]}
    prep.write(
        {
            "name": name,
            "project": {"name": name},
            "users": [{"name": name, "password": {"generate": "password"}}],
            "role_assignments": [{"user": name, "role": "member"}],
            "application_credentials": [credential],
        }
    )
    prep.apply()
    before = yaml.safe_load((prep.folder / "clouds.yaml").read_text())["clouds"]["ci"]
    out = program("rotate.py", "spec.yaml", folder=prep.folder, cloud=cloud)
    assert out.startswith("spec.yaml: application_credential/ci: ")
    after = yaml.safe_load((prep.folder / "clouds.yaml").read_text())["clouds"]
    assert after["ci-old"]["auth"] == before["auth"] != after["ci"]["auth"]
