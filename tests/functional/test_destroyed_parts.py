"""A part of a spec destroyed by ``--target``, and a saved plan to destroy, also without the files that apply wrote."""

from __future__ import annotations

import json
import secrets
from typing import Any

import pytest

from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.conftest import Prep

WRITTEN = ("clouds.yaml", "lab.env")


@pytest.fixture(name="name")
def _name(prep: Prep) -> str:
    """A spec with two networks, of which a router joins one, and which writes two files; applied."""
    name = f"parts{secrets.token_hex(3)}"
    spec: dict[str, Any] = {
        "name": name,
        "project": {"name": name},
        "users": [{"name": name, "password": {"env": "PREP_PASSWORD"}}],
        "role_assignments": [{"user": name, "role": "member"}],
        "networks": [{"name": "nodes"}, {"name": "storage"}],
        "subnets": [
            {"name": "nodes", "network": "nodes", "cidr": "10.0.0.0/24"},
            {"name": "storage", "network": "storage", "cidr": "10.0.1.0/24"},
        ],
        "routers": [{"name": "out", "interfaces": ["nodes"]}],
        "application_credentials": [{"name": "app", "clouds_yaml": "clouds.yaml", "cloud": "app"}],
        "env_file": {"path": "lab.env", "cloud": "app"},
    }
    prep.write(spec)
    prep.apply()
    return name


def left(prep: Prep) -> set[str]:
    """Return the resources of the spec that exist, without those that are files of this machine."""
    shown = json.loads(prep.run("show", "--format", "json", prep.spec.name).stdout)
    return {key for key, found in shown.items() if found and key != "version" and not key.startswith("env_file/")}


def done(text: str) -> dict[str, tuple[str, str]]:
    """Return by resource what a run did with it, and how that ended."""
    return {step["resource"]: (step["action"], step["status"]) for step in json.loads(text)["steps"]}


@pytest.mark.parametrize("files", [True, pytest.param(False, marks=pytest.mark.more)])
def test_a_target_goes_with_what_needs_it(prep: Prep, name: str, *, files: bool) -> None:
    before = left(prep)
    if not files:
        for each in WRITTEN:
            (prep.folder / each).unlink()
    planned = json.loads(
        prep.run("plan", "--destroy", "--target", "subnet/nodes", "--format", "json", prep.spec.name).stdout
    )
    expected = {"subnet/nodes", "router/out"}
    assert {each["resource"] for each in planned["steps"] if each["action"] == "delete"} == expected
    ran = done(prep.destroy("--target", "subnet/nodes", "--format", "json").stdout)
    assert {key: value for key, value in ran.items() if value[0] == "delete"} == dict.fromkeys(
        expected, ("delete", "done")
    )
    assert left(prep) == before - expected
    if files:
        assert {key for key, action in prep.plan().items() if action == "create"} == expected
        prep.apply()
        assert left(prep) == before


@pytest.mark.parametrize("files", [pytest.param(True, marks=pytest.mark.more), False])
def test_a_saved_plan_destroys_what_it_shows(prep: Prep, devcloud: Devcloud, name: str, *, files: bool) -> None:
    if not files:
        for each in WRITTEN:
            (prep.folder / each).unlink()
    prep.run("plan", "--destroy", "--out", "old.plan", prep.spec.name)
    prep.destroy("--target", "network/storage")
    refused = json.loads(prep.run("apply", "--format", "json", "--plan", "old.plan", code=2).stdout)
    assert "network/storage" in {each["where"].rpartition(": ")[2] for each in refused["errors"]}
    assert {"network/nodes", f"project/{name}"} <= left(prep)

    shown = json.loads(prep.run("plan", "--destroy", "--format", "json", "-o", "new.plan", prep.spec.name).stdout)
    deleted = {each["resource"] for each in shown["steps"] if each["action"] == "delete"}
    assert "network/storage" not in deleted
    ran = done(prep.run("apply", "--format", "json", "--plan", "new.plan").stdout)
    assert {key for key, (action, status) in ran.items() if (action, status) == ("delete", "done")} == deleted
    assert left(prep) == set()
    assert devcloud.admin.identity.find_project(name) is None
    again = done(prep.run("apply", "--format", "json", "--plan", "new.plan").stdout)
    assert {action for action, _ in again.values()} <= {"keep"}
