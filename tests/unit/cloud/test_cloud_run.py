from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import NotAllowed, NotFound, NotUnique
from openstack_prep.base.secret import Secret
from openstack_prep.cloud.cloud_run import Actor, CloudRun, only_one
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import Observed, OwnershipTag
from openstack_prep.resources.identity.project import Domain, Project
from tests.unit.box import Box, Shelf
from tests.unit.conftest import IDENTITY, connection, failure, token
from tests.unit.texts import Wording, expect_error

A = Box(name="a")
TOKENS = f"{IDENTITY}/auth/tokens"
PROJECT, OTHER = Project(name="ocp"), Project(name="other")
USER, ROLE = Box(name="ocp-user"), Box(name="member")


# --- reading ------------------------------------------------------------------------------


def test_many_threads_read_once_and_share_the_answer() -> None:
    asked: list[int] = []
    run = Shelf().run()

    def read() -> object:
        asked.append(1)
        time.sleep(0.02)
        return object()

    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(lambda _: run.read_once("list", read), range(8)))
    assert len(asked) == len(answers) == 1


def test_they_share_an_error_too() -> None:
    asked: list[int] = []
    run = Shelf().run()

    def read() -> None:
        asked.append(1)
        raise NotUnique("two")

    for _ in range(2):
        with pytest.raises(NotUnique):
            run.read_once("list", read)
    assert asked == [1]


def test_one_reading_may_need_another() -> None:
    run = Shelf().run()
    done = threading.Event()
    threading.Thread(
        target=lambda: (run.read_once("a", lambda: run.read_once("b", lambda: 1)), done.set()), daemon=True
    ).start()
    assert done.wait(30), "they wait for each other"


def test_a_fresh_view_reads_again_but_knows_what_was_made() -> None:
    shelf = Shelf()
    run = shelf.run()
    assert run.look(A) is None
    shelf.boxes["a"] = {}
    assert run.look(A) is None
    assert run.fresh().find_id(A) == "id-a"
    run.known[A.key] = Observed(id="made")
    assert run.fresh().find_id(A) == "made"


def test_what_is_known_is_not_asked_for() -> None:
    shelf = Shelf()
    run = shelf.run()
    run.known[A.key] = Observed(id="made")
    assert run.id(A) == "made"
    assert shelf.asked == []


def test_an_id_that_must_be_there_and_is_not(wording: Wording) -> None:
    with pytest.raises(NotFound) as caught:
        Shelf().run().id(A)
    wording(caught.value)


def test_a_name_has_one_bearer() -> None:
    assert only_one([], "network/n") is None
    assert only_one([{"id": "1"}], "network/n") == {"id": "1"}
    with expect_error(NotUnique, "network/n", "2", "1"):
        only_one([{"id": "1"}, {"id": "2"}], "network/n")


# --- who acts -----------------------------------------------------------------------------


def staffed(password: Secret | None = None) -> CloudRun:
    """Return a run whose project, user and role are there."""
    actor = Actor(USER, password or Secret("correct-horse"), "Default", PROJECT, (ROLE,))
    run = CloudRun(Cloud(connection()), OwnershipTag("lab"), actors={PROJECT.key: actor})
    run.known[PROJECT.key] = Observed(id="p1", values={"enabled": True})
    run.known[Domain().key] = Observed(id="default", values={"enabled": True})
    run.known[USER.key] = Observed(id="u1")
    run.known[ROLE.key] = Observed(id="r1")
    return run


def logins(services: requests_mock.Mocker) -> list[Any]:
    return [each.json()["auth"] for each in services.request_history if each.url == TOKENS]


def test_the_connection_itself_acts_in_its_own_project(services: requests_mock.Mocker, run: CloudRun) -> None:
    assert run.find_tenant(None) is run.admin
    run.known[PROJECT.key] = Observed(id=run.admin.project_id)
    assert run.tenant(PROJECT) is run.admin


def test_nobody_acts_in_a_project_that_nobody_may_enter(
    services: requests_mock.Mocker, run: CloudRun, wording: Wording
) -> None:
    run.known[PROJECT.key] = Observed(id="p1")
    assert run.find_tenant(PROJECT) is None
    with pytest.raises(NotAllowed) as caught:
        run.tenant(PROJECT)
    wording(caught.value)


def test_the_administrator_works_for_a_project_that_nobody_may_enter(
    services: requests_mock.Mocker, run: CloudRun
) -> None:
    run.known[PROJECT.key] = Observed(id="p1")
    assert run.creator_of(PROJECT) == (run.admin, {"project_id": "p1"})


def test_a_connection_given_for_the_project_comes_first(services: requests_mock.Mocker) -> None:
    tenant = Cloud(connection())
    run = CloudRun(Cloud(connection()), OwnershipTag("lab"), tenant=tenant)
    run.known[PROJECT.key] = Observed(id=tenant.project_id)
    assert run.tenant(PROJECT) is tenant
    assert run.creator_of(PROJECT) == (tenant, {})


def test_a_connection_given_for_a_project_does_nothing_for_another_one(services: requests_mock.Mocker) -> None:
    """Its token would send what is meant for the other project to its own."""
    tenant = Cloud(connection())
    run = CloudRun(Cloud(connection()), OwnershipTag("lab"), tenant=tenant)
    run.known |= {PROJECT.key: Observed(id=tenant.project_id), OTHER.key: Observed(id="p2")}
    assert run.find_tenant(OTHER) is None
    assert run.creator_of(OTHER) == (run.admin, {"project_id": "p2"})


def test_the_user_of_the_spec_acts_logged_in_once(services: requests_mock.Mocker) -> None:
    services.post(TOKENS, json=token("u1", "p1"), status_code=201, headers={"X-Subject-Token": "4f2a9c"})
    run = staffed()
    assert run.tenant(PROJECT).user_id == "u1"
    assert run.tenant(PROJECT) is run.fresh().tenant(PROJECT)
    (login,) = logins(services)
    assert login["identity"]["password"]["user"]["name"] == "ocp-user"
    assert login["scope"] == {"project": {"id": "p1"}}


@pytest.mark.parametrize("lacking", [PROJECT, ROLE])
def test_the_user_waits_for_its_project_and_roles(
    services: requests_mock.Mocker, lacking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    services.get(f"{IDENTITY}/projects", json={"projects": []})
    monkeypatch.setattr(Box, "find", classmethod(lambda *_: {}))
    run = staffed()
    del run.known[lacking.key]
    assert run.find_tenant(PROJECT) is None
    assert all(each["identity"]["password"]["user"]["name"] != "ocp-user" for each in logins(services))


@pytest.mark.parametrize("disabled", [PROJECT, Domain()])
def test_nobody_enters_a_disabled_project_or_domain(services: requests_mock.Mocker, disabled: Any) -> None:
    run = staffed()
    run.known[disabled.key] = Observed(id="p1", values={"enabled": False})
    assert run.find_tenant(PROJECT) is None


def test_nobody_logs_in_with_a_password_that_is_yet_to_be_made(services: requests_mock.Mocker) -> None:
    run = staffed(Secret(fetch=lambda: "later", path="/no/such.password"))
    assert run.find_tenant(PROJECT) is None


def test_a_wrong_password_is_tried_once_until_it_changes(services: requests_mock.Mocker) -> None:
    services.post(TOKENS, **failure(401))
    run = staffed()
    assert run.find_tenant(PROJECT) is None
    assert run.find_tenant(PROJECT) is None
    assert len(logins(services)) == 1
    run.log_out(USER)
    services.post(TOKENS, json=token("u1", "p1"), status_code=201, headers={"X-Subject-Token": "4f2a9c"})
    assert run.tenant(PROJECT).user_id == "u1"


def test_another_project_has_another_user(services: requests_mock.Mocker) -> None:
    run = staffed()
    run.known[OTHER.key] = Observed(id="p2", values={"enabled": True})
    assert run.find_tenant(OTHER) is None
