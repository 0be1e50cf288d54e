from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import NotAllowed, NotFound, NotUnique
from openstack_prep.base.secret import Secret
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.site import Actor, Site, only_one
from openstack_prep.core.model import Mark, Observed
from openstack_prep.resources.identity.project import Project
from tests.unit.box import Box, Shelf
from tests.unit.conftest import IDENTITY, connection, failure, token

A = Box(name="a")
TOKENS = f"{IDENTITY}/auth/tokens"
PROJECT, OTHER = Project(name="ocp"), Project(name="other")
USER, ROLE = Box(name="ocp-user"), Box(name="member")


# --- reading ------------------------------------------------------------------------------


def test_many_threads_read_once_and_share_the_answer() -> None:
    asked: list[int] = []
    site = Shelf().site()

    def read() -> object:
        asked.append(1)
        time.sleep(0.02)
        return object()

    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(lambda _: site.once("list", read), range(8)))
    assert len(asked) == len(answers) == 1


def test_they_share_an_error_too() -> None:
    asked: list[int] = []
    site = Shelf().site()

    def read() -> None:
        asked.append(1)
        raise NotUnique("two")

    for _ in range(2):
        with pytest.raises(NotUnique):
            site.once("list", read)
    assert asked == [1]


def test_one_reading_may_need_another() -> None:
    site = Shelf().site()
    done = threading.Event()
    threading.Thread(
        target=lambda: (site.once("a", lambda: site.once("b", lambda: 1)), done.set()), daemon=True
    ).start()
    assert done.wait(2), "they wait for each other"


def test_a_fresh_view_reads_again_but_knows_what_was_made() -> None:
    shelf = Shelf()
    site = shelf.site()
    assert site.look(A) is None
    shelf.boxes["a"] = {}
    assert site.look(A) is None
    assert site.fresh().find_id(A) == "id-a"
    site.known[A.key] = Observed(id="made")
    assert site.fresh().find_id(A) == "made"


def test_what_is_known_is_not_asked_for() -> None:
    shelf = Shelf()
    site = shelf.site()
    site.known[A.key] = Observed(id="made")
    assert site.id(A) == "made"
    assert shelf.asked == []


def test_an_id_that_must_be_there_and_is_not() -> None:
    with pytest.raises(NotFound, match="box/a exists neither in the spec nor in the cloud"):
        Shelf().site().id(A)


def test_a_name_has_one_bearer() -> None:
    assert only_one([], "network/n") is None
    assert only_one([{"id": "1"}], "network/n") == {"id": "1"}
    with pytest.raises(NotUnique, match=r"network/n: 2 resources have this name \(1, 2\)"):
        only_one([{"id": "1"}, {"id": "2"}], "network/n")


# --- who acts -----------------------------------------------------------------------------


def staffed(password: Secret | None = None) -> Site:
    """Return a site whose project, user and role are there."""
    actor = Actor(USER, password or Secret("correct-horse"), "Default", PROJECT, (ROLE,))
    site = Site(Cloud(connection()), Mark("lab"), actors={PROJECT.key: actor})
    site.known[PROJECT.key] = Observed(id="p1", values={"enabled": True})
    site.known[USER.key] = Observed(id="u1")
    site.known[ROLE.key] = Observed(id="r1")
    return site


def logins(services: requests_mock.Mocker) -> list[Any]:
    return [each.json()["auth"] for each in services.request_history if each.url == TOKENS]


def test_the_connection_itself_acts_in_its_own_project(services: requests_mock.Mocker, site: Site) -> None:
    assert site.find_tenant(None) is site.admin
    site.known[PROJECT.key] = Observed(id=site.admin.project_id)
    assert site.tenant(PROJECT) is site.admin


def test_nobody_acts_in_a_project_that_nobody_may_enter(services: requests_mock.Mocker, site: Site) -> None:
    site.known[PROJECT.key] = Observed(id="p1")
    assert site.find_tenant(PROJECT) is None
    with pytest.raises(NotAllowed, match="no user can log in to project/ocp: declare a user"):
        site.tenant(PROJECT)


def test_the_administrator_works_for_a_project_that_nobody_may_enter(
    services: requests_mock.Mocker, site: Site
) -> None:
    site.known[PROJECT.key] = Observed(id="p1")
    assert site.worker(PROJECT) == (site.admin, {"project_id": "p1"})


def test_a_connection_given_for_the_project_comes_first(services: requests_mock.Mocker) -> None:
    tenant = Cloud(connection())
    site = Site(Cloud(connection()), Mark("lab"), tenant=tenant)
    assert site.tenant(PROJECT) is tenant
    assert site.worker(PROJECT) == (tenant, {})


def test_the_user_of_the_spec_acts_logged_in_once(services: requests_mock.Mocker) -> None:
    services.post(TOKENS, json=token("u1", "p1"), status_code=201, headers={"X-Subject-Token": "t"})
    site = staffed()
    assert site.tenant(PROJECT).user_id == "u1"
    assert site.tenant(PROJECT) is site.fresh().tenant(PROJECT)
    (login,) = logins(services)
    assert login["identity"]["password"]["user"]["name"] == "ocp-user"
    assert login["scope"] == {"project": {"id": "p1"}}


@pytest.mark.parametrize("lacking", [PROJECT, ROLE])
def test_the_user_waits_for_its_project_and_roles(
    services: requests_mock.Mocker, lacking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    services.get(f"{IDENTITY}/projects", json={"projects": []})
    monkeypatch.setattr(Box, "find", classmethod(lambda *_: {}))
    site = staffed()
    del site.known[lacking.key]
    assert site.find_tenant(PROJECT) is None
    assert all(each["identity"]["password"]["user"]["name"] != "ocp-user" for each in logins(services))


def test_nobody_enters_a_disabled_project(services: requests_mock.Mocker) -> None:
    site = staffed()
    site.known[PROJECT.key] = Observed(id="p1", values={"enabled": False})
    assert site.find_tenant(PROJECT) is None


def test_nobody_logs_in_with_a_password_that_is_yet_to_be_made(services: requests_mock.Mocker) -> None:
    site = staffed(Secret(fetch=lambda: "later", path="/no/such.password"))
    assert site.find_tenant(PROJECT) is None


def test_a_wrong_password_is_tried_once_until_it_changes(services: requests_mock.Mocker) -> None:
    services.post(TOKENS, **failure(401))
    site = staffed()
    assert site.find_tenant(PROJECT) is None
    assert site.find_tenant(PROJECT) is None
    assert len(logins(services)) == 1
    site.log_out(USER)
    services.post(TOKENS, json=token("u1", "p1"), status_code=201, headers={"X-Subject-Token": "t"})
    assert site.tenant(PROJECT).user_id == "u1"


def test_another_project_has_another_user(services: requests_mock.Mocker) -> None:
    site = staffed()
    site.known[OTHER.key] = Observed(id="p2", values={"enabled": True})
    assert site.find_tenant(OTHER) is None
