from __future__ import annotations

from typing import Any

import requests_mock

from openstack_prep.base.errors import NotUnique
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.resources.heat.stacks import stack_of
from tests.unit.texts import expect_error

OWN, OTHER = "admin-project", "another"


def listed(id: str, project: str = OWN, status: str = "CREATE_COMPLETE") -> dict[str, str]:
    return {"stack_name": "a", "id": id, "project": project, "stack_status": status}


def found(run: CloudRun, services: requests_mock.Mocker, *stacks: dict[str, str], **words: Any) -> str | None:
    services.get("http://heat/v1/admin-project/stacks", json={"stacks": stacks})
    seen = stack_of(run.fresh(), None, "a", **words)
    return seen[1]["id"] if seen else None


def test_of_all_that_an_administrator_sees_the_projects_own(run: CloudRun, services: requests_mock.Mocker) -> None:
    assert found(run, services, listed("1", OTHER), listed("2")) == "2"
    assert found(run, services, listed("1", OTHER)) is None
    assert found(run, services, listed("1", OTHER), elsewhere=True) == "1"
    assert found(run, services, listed("1", OTHER), listed("2"), elsewhere=True) == "2"


def test_what_is_deleted_is_not_there(run: CloudRun, services: requests_mock.Mocker) -> None:
    assert found(run, services, listed("1", status="DELETE_COMPLETE"), listed("2")) == "2"
    assert found(run, services, listed("1", status="DELETE_COMPLETE")) is None


def test_two_of_a_name_are_told(run: CloudRun, services: requests_mock.Mocker) -> None:
    with expect_error(NotUnique, "stack/a", "2", "1"):
        found(run, services, listed("1", OTHER), listed("2", OTHER), elsewhere=True)
