from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from openstack_prep.openshift.check.credentials import credentials
from tests.unit.conftest import IDENTITY, failure
from tests.unit.openshift.check.project import Project
from tests.unit.texts import Wording, contains

PATH = f"{IDENTITY}/users/admin-user/application_credentials/c1"


def with_credential(project: Project, expires: timedelta | None = None) -> Any:
    project.login(application_credential={"id": "c1", "name": "c", "restricted": True})
    moment = expires and f"{datetime.now(UTC) + expires:%Y-%m-%dT%H:%M:%S}.000000"
    return project.services.get(PATH, json={"application_credential": {"name": "c", "expires_at": moment}})


def test_one_that_does_not_expire(project: Project) -> None:
    with_credential(project)
    assert project.found(credentials) == []


def test_a_password_is_a_warning_where_there_is_something_better(project: Project, wording: Wording) -> None:
    (found,) = project.findings(credentials)
    assert found.status == "warning"
    wording(found.what)
    command, _, then = found.fix.partition("  # ")
    wording(command)
    assert "application_credential_secret" in then
    project.credentials = [{"name": "dev"}, {"name": "dev-2"}]
    (found,) = project.findings(credentials)
    assert found.code == "credential.password"
    assert contains(found.fix, "application credential create dev-3")
    project.services.get(f"{IDENTITY}/users/admin-user/application_credentials", **failure(403))
    (found,) = project.findings(credentials)
    assert found.code == "credential.password"
    assert contains(found.fix, "application credential create dev  #")
    assert project.found(credentials, release="4.11") == []


def test_a_token_is_no_password_and_its_end_is_known(project: Project) -> None:
    context = project.context()
    (found,) = credentials(replace(context, token_expires=datetime(2026, 11, 26, 18, 30, tzinfo=UTC)))
    assert (found.code, found.status) == ("credential.expires", "error")
    assert "2026-11-26T18:30:00" in found.what
    assert "application credential create" in found.fix


def test_releases_before_4_12_take_none(project: Project, wording: Wording) -> None:
    with_credential(project)
    (found,) = project.findings(credentials, release="4.11")
    assert found.status == "error"
    wording(found.fix)


@pytest.mark.parametrize(
    ("hours", "level", "why"), [(2, "error", "during the installation"), (24 * 90, "warning", "afterwards")]
)
def test_one_that_expires(project: Project, hours: int, level: str, why: str) -> None:
    with_credential(project, timedelta(hours=hours))
    (found,) = project.findings(credentials)
    assert found.status == level
    assert why in found.why
    assert found.fix.startswith("openstack application credential create dev  # as the user, with the password; ")


@pytest.mark.parametrize(
    ("roles", "codes"),
    [
        (("reader",), ["credential.read-only"]),
        (("reader", "member"), []),
        (("member",), []),
        (("reader", "openshift"), []),  # a role of this cloud, which may allow all that is needed
        ((), []),
    ],
)
def test_one_that_may_only_read(project: Project, roles: tuple[str, ...], codes: list[str]) -> None:
    project.login(application_credential={"id": "c1", "name": "c", "restricted": True}, roles=roles)
    project.services.get(PATH, json={"application_credential": {"name": "c", "expires_at": None}})
    found = project.findings(credentials)
    assert [each.code for each in found] == codes
    assert all(each.status == "error" and " create --role member dev  # as a user " in each.fix for each in found)


def test_a_user_without_the_role_member(project: Project) -> None:
    project.login(roles=("reader",))
    (grant,) = (each.fix for each in project.findings(credentials) if each.code == "credential.read-only")
    assert grant == "openstack role add --user admin-user --project admin-project member  # as an administrator"
