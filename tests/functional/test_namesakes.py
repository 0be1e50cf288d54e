"""Two specs of one name with home projects of their own, in a third project that both work in."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional import client
from tests.functional.conftest import Prep

SHARED = "namesakes-shared"


@pytest.fixture
def shared(devcloud: Devcloud) -> Iterator[str]:
    """Return the id of a project that no spec manages."""
    project = devcloud.admin.identity.create_project(name=SHARED)
    yield project.id
    for group in devcloud.admin.network.security_groups(project_id=project.id):
        devcloud.admin.network.delete_security_group(group.id)
    devcloud.admin.identity.delete_project(project.id)


def spec_of(home: str, port: int) -> dict[str, Any]:
    """Return a spec whose group is in the shared project."""
    rules = [{"protocol": "tcp", "ports": port}]
    groups = [{"name": f"web-{home}", "project": SHARED, "rules": rules}]
    return {"name": "ocp4", "project": {"name": f"namesakes-{home}"}, "security_groups": groups}


def groups_of(devcloud: Devcloud, project_id: str) -> dict[str, list[str]]:
    """Return the tags of the groups of a project, by their names."""
    return {each.name: list(each.tags) for each in devcloud.admin.network.security_groups(project_id=project_id)}


def refusal(prep: Prep) -> dict[str, str]:
    """Return what refuses a plan on behalf of the other spec."""
    listed = json.loads(prep.run("plan", "--format", "json", prep.spec.name, code=2).stdout)["refusals"]
    (found,) = (each for each in listed if each["code"] == "plan.other-spec")
    return dict(found)


def test_the_second_is_refused_until_the_first_is_destroyed(prep: Prep, devcloud: Devcloud, shared: str) -> None:
    prep.write(spec_of("dev", 443))
    prep.apply()
    prep.write(spec_of("prod", 8443))
    found = refusal(prep)
    assert "ocp4 of project namesakes-dev" in found["what"]
    prep.run("apply", "--yes", prep.spec.name, code=2)
    prep.destroy(code=2)
    assert {*groups_of(devcloud, shared)} == {"default", "web-dev"}
    prep.write(spec_of("dev", 443))
    assert prep.changes() == set()
    prep.destroy()
    assert groups_of(devcloud, shared) == {"default": []}
    prep.write(spec_of("prod", 8443))
    prep.apply()
    prep.destroy()


def test_a_record_that_was_left_is_removed_by_the_command_of_the_refusal(
    prep: Prep, devcloud: Devcloud, shared: str
) -> None:
    prep.write(spec_of("dev", 443))
    prep.apply()
    left = next(each for each in devcloud.admin.network.security_groups(project_id=shared) if each.name != "default")
    devcloud.admin.network.delete_security_group(left.id)
    prep.write(spec_of("prod", 8443))
    command = shlex.split(refusal(prep)["fix"].partition(": ")[2])
    assert command[0] == "openstack"
    client.openstack(command[1:], prep.environment, prep.folder)
    prep.apply()
    prep.destroy()
    prep.write(spec_of("dev", 443))
    prep.destroy()


def test_of_two_at_the_same_time_at_most_one_changes_the_shared_project(
    prep: Prep, devcloud: Devcloud, shared: str
) -> None:
    runs = []
    for home, port in (("dev", 443), ("prod", 8443)):
        prep.write(spec_of(home, port))
        path = prep.spec.rename(prep.spec.with_name(f"{home}.yaml"))
        runs.append(prep.start("apply", "--yes", path.name))
    codes = [run.wait(timeout=120) for run in runs]
    assert sorted(codes) in ([0, 2], [2, 2])
    assert len({*groups_of(devcloud, shared)} - {"default"}) == codes.count(0)
    for home in ("dev", "prod"):
        prep.run("destroy", "--yes", f"{home}.yaml")
