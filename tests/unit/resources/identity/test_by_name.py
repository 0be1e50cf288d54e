"""Names in a domain: few are asked for one by one, many by one list."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests_mock

from openstack_prep.base.errors import NotUnique
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import observation
from openstack_prep.resources.identity.project import FEW, MOST
from openstack_prep.resources.identity.user import User
from tests.unit.conftest import IDENTITY, failure

Users = list[dict[str, Any]]


def keystone(services: requests_mock.Mocker, users: Users, whole: dict[str, Any] | None = None) -> None:
    """Let Keystone have these users; ``whole`` is added to its answer to a list of all of them."""

    def answer(request: Any, context: Any) -> dict[str, Any]:
        names = parse_qs(urlsplit(request.url).query).get("name")
        if names is None:
            return {"users": users} | (whole or {})
        return {"users": [each for each in users if each["name"].lower() == names[0].lower()]}  # as MySQL compares

    services.get(f"{IDENTITY}/users", json=answer)


def asked(services: requests_mock.Mocker) -> list[str]:
    """Return the name of each request, "*" for the list of all."""
    sent = [each for each in services.request_history if each.path.endswith("/users")]
    return [parse_qs(urlsplit(each.url).query).get("name", ["*"])[0] for each in sent]


def user(name: str, number: int = 0) -> dict[str, Any]:
    return {"id": f"{name}-{number}", "name": name, "domain_id": "default", "enabled": True, "description": ""}


NAMES = [f"u{number}" for number in range(3 * FEW)]


def found(run: CloudRun, names: list[str]) -> set[str]:
    return {key.name for key in observation.observe(run, [User(name=name) for name in names])}


def test_few_are_asked_for_by_name(services: requests_mock.Mocker, run: CloudRun) -> None:
    keystone(services, [user(name) for name in NAMES])
    assert found(run, NAMES[:FEW]) == set(NAMES[:FEW])
    assert asked(services) == NAMES[:FEW]


def test_many_cost_one_list(services: requests_mock.Mocker, run: CloudRun) -> None:
    keystone(services, [user(name) for name in NAMES[::2]])
    assert found(run, NAMES) == set(NAMES[::2])
    assert asked(services) == [*NAMES[:FEW], "*"]
    assert parse_qs(urlsplit(services.request_history[-1].url).query)["limit"] == [str(MOST)]


@pytest.mark.parametrize(
    "whole", [{"truncated": True}, {"links": {"next": f"{IDENTITY}/users?marker=1"}}, {"users": ["a text"]}]
)
def test_a_list_that_is_not_whole_is_not_used(
    services: requests_mock.Mocker, run: CloudRun, whole: dict[str, Any]
) -> None:
    keystone(services, [user(name) for name in NAMES], whole)
    assert found(run, NAMES) == set(NAMES)
    assert sorted(asked(services)) == sorted([*NAMES, "*"])


def test_a_list_that_keystone_refuses_is_not_used(services: requests_mock.Mocker, run: CloudRun) -> None:
    keystone(services, [user(name) for name in NAMES])
    services.get(f"{IDENTITY}/users?domain_id=default", **failure(403))
    for name in NAMES:
        services.get(f"{IDENTITY}/users?name={name}&domain_id=default", json={"users": [user(name)]})
    assert found(run, NAMES) == set(NAMES)


def test_a_name_in_another_case_is_for_keystone_to_compare(services: requests_mock.Mocker, run: CloudRun) -> None:
    keystone(services, [user(name) for name in [*NAMES, "Ann"]])
    assert found(run, [*NAMES, "ann"]) == {*NAMES, "ann"}
    assert asked(services)[-1] == "ann"


def test_two_of_one_name_are_an_error_in_a_list_too(services: requests_mock.Mocker, run: CloudRun) -> None:
    keystone(services, [user(name) for name in NAMES] + [user(NAMES[-1], 1)])
    with pytest.raises(NotUnique):
        found(run, NAMES)
