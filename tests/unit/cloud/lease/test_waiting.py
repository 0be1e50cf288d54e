"""Getting and keeping a lease against Neutron's rare answers."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import requests
import requests_mock

from openstack_prep.base.errors import CloudError, LeaseHeld, LeaseLost, NotFound
from openstack_prep.cloud import lease
from openstack_prep.cloud import lease as keeping
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.lease import Description, Entry, digest
from openstack_prep.core.model import OwnershipTag
from openstack_prep.resources.identity.project import Project
from tests.unit.conftest import IDENTITY, LEASE, connection, default_group, failure, token

LIST = "http://neutron/v2.0/security-groups"
THEIRS = Entry(spec=digest("lab"), run="thei", since=1, place="else", pid=1, start="abc", who="ann@laptop")
ANOTHER = replace(THEIRS, spec=digest("another"), run="anot")

Group = dict[str, Any]


@pytest.fixture
def group(services: requests_mock.Mocker) -> Group:
    return default_group(services)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "POLL", 0.01)
    monkeypatch.setattr(lease, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(lease, "RELEASE_PAUSE", 0.001)
    monkeypatch.setattr(lease, "PAUSE", 0.001)


def put_in(group: Group, *entries: Entry) -> None:
    text = Description.read(group["description"])
    for each in entries:
        text = text.holding(each)
    group["description"] = text.write()
    group["revision_number"] += 1


def entries(group: Group) -> tuple[Entry, ...]:
    return Description.read(group["description"]).entries


def writes(services: requests_mock.Mocker) -> list[Any]:
    return [each for each in services.request_history if each.method == "PUT"]


def asked(services: requests_mock.Mocker) -> int:
    return sum("/security-groups" in each.path for each in services.request_history)


def test_a_free_one_costs_three_requests(services: requests_mock.Mocker, run: CloudRun, group: Group) -> None:
    with lease.held(run, lease.look(run, "lab", None)) as held:
        assert held.untouched
        held.check()
        assert [each.spec for each in entries(group)] == [digest("lab")]
    assert group["description"] == "Default security group"
    assert asked(services) == 3


@pytest.mark.parametrize("text", ["", "Ours", None])
def test_it_leaves_the_description_as_it_was(run: CloudRun, group: Group, text: str | None) -> None:
    group["description"] = text
    with lease.held(run, lease.look(run, "lab", None)):
        assert (group["description"].partition("[openstack-prep ")[0]).strip() == (text or "")
    assert group["description"] == (text or "")


@pytest.mark.parametrize("error", [ValueError("x"), LeaseLost("x")])
def test_it_is_released_after_any_error(run: CloudRun, group: Group, error: Exception) -> None:
    with pytest.raises(type(error)), lease.held(run, lease.look(run, "lab", None)):
        raise error
    assert entries(group) == ()


def test_who_leaves_at_once_lets_it_end_by_itself(run: CloudRun, group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "RENEWAL", 0.02)
    with pytest.raises(KeyboardInterrupt), lease.held(run, lease.look(run, "lab", None)):
        raise KeyboardInterrupt
    (left,) = entries(group)
    time.sleep(0.2)
    assert entries(group) == (left,)


def test_a_held_one_is_named(run: CloudRun, group: Group) -> None:
    put_in(group, THEIRS)
    with (
        pytest.raises(
            LeaseHeld, match=r"ann@laptop \(pid 1\) since 1970.*openstack-prep unlock --os-cloud \S+ --name lab"
        ),
        lease.held(run, lease.look(run, "lab", None), 0.05),
    ):
        pass
    assert entries(group) == (THEIRS,)


def test_two_runs_of_one_process_are_two(run: CloudRun, group: Group) -> None:
    seen = lease.look(run, "lab", None)
    with lease.held(run, seen), pytest.raises(LeaseHeld), lease.held(run, seen, 0):
        pass


def test_a_wait_is_reported_once(run: CloudRun, group: Group, caplog: pytest.LogCaptureFixture) -> None:
    put_in(group, THEIRS)
    with pytest.raises(LeaseHeld), lease.held(run, lease.look(run, "lab", None), 0.05):
        pass
    assert [each.levelno for each in caplog.records if each.name == lease.__name__] == [logging.WARNING]


def test_another_spec_is_not_in_the_way(run: CloudRun, group: Group) -> None:
    put_in(group, ANOTHER)
    with lease.held(run, lease.look(run, "lab", None), 0) as held:
        assert held.untouched
        assert len(entries(group)) == 2
    assert entries(group) == (ANOTHER,)


def test_a_change_since_the_look_is_no_untouched_plan(run: CloudRun, group: Group) -> None:
    seen = lease.look(run, "lab", None)
    put_in(group, THEIRS)
    group["description"] = "Default security group"  # taken and released
    with lease.held(run, seen) as held:
        assert not held.untouched


def test_a_holder_that_is_seen_not_to_renew_is_followed(
    run: CloudRun, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "DURATION", 0.05)
    put_in(group, replace(THEIRS, since=int(time.time()) + 7200))  # its clock is two hours ahead
    with lease.held(run, lease.look(run, "lab", None), 5) as held:
        assert not held.untouched
        assert [each.run for each in entries(group)] != [THEIRS.run]


def test_time_during_which_this_machine_slept_ends_no_lease(
    run: CloudRun, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_in(group, THEIRS)
    seen = lease.look(run, "lab", None)
    clock = itertools.count(step=1000)
    monkeypatch.setattr(lease.time, "monotonic", lambda: float(next(clock)))
    with pytest.raises(LeaseHeld), lease.held(run, seen, 9000):
        pass
    assert entries(group) == (THEIRS,)


def test_a_holder_that_renews_is_not_followed(
    services: requests_mock.Mocker, run: CloudRun, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "DURATION", 0.05)
    put_in(group, THEIRS)

    def renewing(*_: Any) -> dict[str, Any]:
        put_in(group, entries(group)[0].renewed())
        return {"security_group": dict(group)}

    services.get(LEASE, json=renewing)
    with pytest.raises(LeaseHeld), lease.held(run, lease.look(run, "lab", None), 0.5):
        pass


def test_a_dead_process_of_this_host_is_followed_at_once(
    run: CloudRun, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "place", lambda: "here")
    monkeypatch.setattr(lease, "exists", lambda pid: False)
    put_in(group, replace(THEIRS, place=digest("here")))
    with lease.held(run, lease.look(run, "lab", None), 0) as held:
        assert not held.untouched


@pytest.mark.parametrize(("here", "started"), [("elsewhere", "9"), ("here", ""), ("here", "7")])
def test_a_live_or_foreign_process_is_not(
    run: CloudRun, group: Group, monkeypatch: pytest.MonkeyPatch, here: str, started: str
) -> None:
    """Of another namespace; hidden by /proc; alive."""
    monkeypatch.setattr(lease, "place", lambda: here)
    monkeypatch.setattr(lease, "exists", lambda pid: here == "here")
    monkeypatch.setattr(lease, "started", lambda pid: started)
    put_in(group, replace(THEIRS, place=digest("here"), start=digest("7", 3)))
    with pytest.raises(LeaseHeld), lease.held(run, lease.look(run, "lab", None), 0):
        pass


# --- whose group it is --------------------------------------------------------------------


def test_it_lies_in_the_project_of_the_spec(
    services: requests_mock.Mocker, run: CloudRun, project: Project, group: Group
) -> None:
    seen = lease.look(run, "lab", project)
    assert (seen.existed, seen.group is not None) == (True, True)
    assert [each.qs["project_id"] for each in services.request_history if each.url.startswith(LIST)] == [["p"]]


def log_in_to(services: requests_mock.Mocker, project_id: str) -> None:
    answer = token(project_id=project_id)
    services.post(f"{IDENTITY}/auth/tokens", json=answer, headers={"X-Subject-Token": "4f2a9c"}, status_code=201)


@pytest.mark.parametrize("hidden", [failure(403), {"json": {"security_groups": []}}])
def test_a_user_of_the_project_reads_what_the_administrator_may_not(
    services: requests_mock.Mocker, group: Group, project: Project, hidden: dict[str, Any]
) -> None:
    log_in_to(services, "p")
    tenant = Cloud(connection(username="tenant"))
    run = CloudRun(Cloud(connection()), OwnershipTag("lab"), tenant=tenant)
    services.get(f"{LIST}?project_id=p", **hidden)
    other = {**group, "id": "other", "name": "web"}
    services.get(f"{LIST}?name=default&project_id=p", json=lambda *_: {"security_groups": [other, dict(group)]})
    seen = lease.look(run, "lab", project)
    assert seen.group is not None
    assert (seen.group.id, seen.group.cloud) == (group["id"], tenant)


def test_a_plan_is_outdated_once_its_project_exists(
    services: requests_mock.Mocker, run: CloudRun, group: Group, project: Project
) -> None:
    rows = services.get(f"{IDENTITY}/projects?name=lab", json={"projects": []})
    seen = lease.look(run, "lab", project, declared=True)
    assert (seen.existed, seen.group, lease.is_outdated(run, seen)) == (False, None, False)
    services._adapter._matchers.remove(rows)
    assert lease.is_outdated(run, seen)


@pytest.mark.parametrize(("status", "outdated"), [(404, True), (403, False)])
def test_a_plan_is_outdated_if_its_group_is_gone(
    services: requests_mock.Mocker, run: CloudRun, group: Group, status: int, outdated: bool
) -> None:
    seen = lease.look(run, "lab", None)
    services.get(LEASE, **failure(status))
    assert lease.is_outdated(run, seen) is outdated


@pytest.mark.parametrize(
    ("description", "untouched"),
    [
        ("Default security group", True),
        ("Default security group [openstack-prep 1]", False),  # another run has declared the project
        (Description().holding(replace(THEIRS, place="")).write(), False),
    ],
)
def test_a_created_project_that_others_found_first_is_not_untouched(
    services: requests_mock.Mocker,
    run: CloudRun,
    group: Group,
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    description: str,
    untouched: bool,
) -> None:
    monkeypatch.setattr(lease, "DURATION", 0.05)
    rows = services.get(f"{IDENTITY}/projects?name=lab", json={"projects": []})
    seen = lease.look(run, "lab", project, declared=True)
    services._adapter._matchers.remove(rows)
    group["description"] = description
    with lease.held(run.fresh(), seen, 5) as held:
        assert held.untouched is untouched


@pytest.fixture
def project(services: requests_mock.Mocker) -> Project:
    row = {"id": "p", "name": "lab", "domain_id": "default", "enabled": True, "tags": []}
    services.get(f"{IDENTITY}/projects?name=lab", json={"projects": [row]})
    services.get(f"{IDENTITY}/projects/p", json={"project": row})
    return Project(name="lab")


def dead_holder(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "place", lambda: "here")
    monkeypatch.setattr(lease, "exists", lambda pid: False)
    put_in(group, replace(THEIRS, place=digest("here")))


def test_a_group_that_a_killed_destroy_left_without_its_project_is_no_carrier(
    services: requests_mock.Mocker, run: CloudRun, group: Group, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    group["description"] = "Default security group [openstack-prep 3]"
    dead_holder(group, monkeypatch)
    seen = lease.look(run, "lab", project, declared=True)
    services.get(f"{IDENTITY}/projects/p", **failure(404))
    deletion = services.delete(LEASE, status_code=204)
    with pytest.raises(lease.Vanished), lease.held(run, seen, 0):
        pass
    assert deletion.called_once


def test_a_dead_holder_in_a_project_that_exists_is_followed(
    run: CloudRun, group: Group, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    group["description"] = "Default security group [openstack-prep 3]"
    dead_holder(group, monkeypatch)
    with lease.held(run, lease.look(run, "lab", project, declared=True), 0) as held:
        assert not held.untouched


def test_a_lost_answer_is_our_lease(services: requests_mock.Mocker, run: CloudRun, group: Group) -> None:
    """keystoneauth sends a PUT again; Neutron has done it and answers 412."""
    seen = lease.look(run, "lab", None)

    def lost(request: Any, _: Any) -> None:
        group["description"] = request.json()["security_group"]["description"]
        group["revision_number"] += 1
        default = services.register_uri("PUT", LEASE, json=None)
        services._adapter._matchers.remove(default)
        services._adapter._matchers.remove(broken)
        raise requests.exceptions.ConnectionError("reset")

    broken = services.put(LEASE, text=lost)
    with lease.held(run, seen, 0):
        assert len(entries(group)) == 1
    assert entries(group) == ()


@pytest.mark.parametrize(
    "answer",
    [
        failure(403, "disallowed by policy"),
        failure(404, "no such path"),
        {"json": {"security_groups": []}},
        {"json": {"security_groups": [{"id": "g", "name": "default", "description": "x"}]}},  # no revisions
    ],
)
def test_without_a_carrier_it_says_so_once_and_goes_on(
    services: requests_mock.Mocker, run: CloudRun, caplog: pytest.LogCaptureFixture, answer: dict[str, Any]
) -> None:
    services.get(LIST, **answer)
    with lease.held(run, lease.look(run, "lab", None)) as held:
        assert held.untouched
        held.check()
    assert [each.levelno for each in caplog.records if "no lease" in each.message] == [logging.WARNING]


def test_who_may_not_change_the_group_goes_on_without(
    services: requests_mock.Mocker, run: CloudRun, group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    services.put(LEASE, **failure(403, "disallowed by policy"))
    with lease.held(run, lease.look(run, "lab", None)) as held:
        assert held.lease is None
    assert "disallowed by policy" in caplog.text


def test_a_service_in_trouble_is_an_error(services: requests_mock.Mocker, run: CloudRun, group: Group) -> None:
    services.put(LEASE, **failure(500))
    with pytest.raises(CloudError), lease.held(run, lease.look(run, "lab", None)):
        pass
    assert len(writes(services)) == 1 + lease.FAILURES


def once(
    services: requests_mock.Mocker,
    method: str,
    url: str,
    before: Callable[[Any], None] = lambda _: None,
    status: int = 500,
) -> None:
    """Have the next such request end with an error, perhaps after its work was done."""

    def fail(request: Any, context: Any) -> Any:
        before(request)
        services._adapter._matchers.remove(broken)
        context.status_code = status
        return failure(status)["json"]

    broken = services.register_uri(method, url, json=fail)


@pytest.mark.parametrize("done", [False, True])
def test_a_passing_error_of_the_write_is_met(
    services: requests_mock.Mocker, run: CloudRun, group: Group, done: bool
) -> None:
    """The run ended before its first step."""

    def write(request: Any) -> None:
        if done:
            group["description"] = request.json()["security_group"]["description"]
            group["revision_number"] += 1

    seen = lease.look(run, "lab", None, declared=True)
    once(services, "PUT", LEASE, write)
    once(services, "GET", LEASE, status=409)  # which no layer below sends again
    with lease.held(run, seen) as held:
        assert held.lease
        assert not held.untouched
        assert len(entries(group)) == 1
        assert Description.read(group["description"]).count == 1
    assert entries(group) == ()


def test_a_passing_error_of_the_first_look_is_met(services: requests_mock.Mocker, run: CloudRun, group: Group) -> None:
    once(services, "GET", LIST, status=409)
    seen = lease.look(run, "lab", None)
    assert seen.group is None
    once(services, "GET", LIST, status=409)
    with lease.held(run, seen) as held:
        assert held.lease


def test_foreign_text_that_fills_the_description_leaves_no_lease(
    run: CloudRun, group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    group["description"] = "x" * 255
    with lease.held(run, lease.look(run, "lab", None)):
        assert group["description"] == "x" * 255
    assert "no room" in caplog.text


def test_a_full_description_is_waited_for(run: CloudRun, group: Group) -> None:
    put_in(group, *(replace(THEIRS, spec=digest(str(number))) for number in range(21)))
    with pytest.raises(LeaseHeld, match="21 other specs"), lease.held(run, lease.look(run, "lab", None), 0.05):
        pass


# --- while it is held ---------------------------------------------------------------------


def test_it_is_renewed_and_others_changes_are_met(run: CloudRun, group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "RENEWAL", 0.02)
    with lease.held(run, lease.look(run, "lab", None)) as held:
        put_in(group, ANOTHER)
        deadline = time.monotonic() + 120
        while max(each.beat for each in entries(group)) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        held.check()
    assert entries(group) == (ANOTHER,)


def test_pauses_grow_with_the_number_of_faster_writers(
    services: requests_mock.Mocker, run: CloudRun, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    """16 runs in one project took all their attempts at once, and some of them never came to write."""
    longest: list[float] = []
    monkeypatch.setattr(keeping.random, "uniform", lambda least, most: longest.append(most) or least)

    def overtaken(times: int) -> None:
        longest.clear()
        for _ in range(times):
            once(services, "PUT", LEASE, status=412)

    overtaken(3)
    with lease.held(run, lease.look(run, "lab", None)):
        assert longest == [0.002, 0.004, 0.008]
        overtaken(2)
    assert longest == [0.002, 0.004]
    assert entries(group) == ()


def test_a_lease_that_was_taken_is_lost_and_not_released(
    run: CloudRun, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "MARGIN", keeping.DURATION)  # as after a long sleep
    with lease.held(run, lease.look(run, "lab", None)) as held:
        put_in(group, THEIRS)
        for _ in range(2):
            with pytest.raises(LeaseLost, match="ann@laptop"):
                held.check()
    assert entries(group) == (THEIRS,)


def test_who_slept_and_finds_it_untaken_goes_on(run: CloudRun, group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "MARGIN", keeping.DURATION)
    with lease.held(run, lease.look(run, "lab", None)) as held:
        put_in(group, ANOTHER)
        held.check()


def test_a_release_that_fails_is_no_error(
    services: requests_mock.Mocker, run: CloudRun, group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    with lease.held(run, lease.look(run, "lab", None)):
        services.put(LEASE, **failure(500))
    assert "expires in 30 s" in caplog.text


def test_a_release_is_tried_again(
    services: requests_mock.Mocker, run: CloudRun, group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    with lease.held(run, lease.look(run, "lab", None)):
        once(services, "PUT", LEASE)
    assert entries(group) == ()
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


def test_a_release_after_the_group_has_gone_is_silent(
    services: requests_mock.Mocker, run: CloudRun, group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    with lease.held(run, lease.look(run, "lab", None)):
        services.put(LEASE, **failure(404))
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


def test_unlock_takes_the_run_that_was_seen(run: CloudRun, group: Group) -> None:
    put_in(group, THEIRS)
    seen = lease.look(run, "lab", None)
    put_in(group, ANOTHER, THEIRS.renewed())
    lease.unlock(seen)
    assert entries(group) == (ANOTHER,)


def test_unlock_takes_no_other_run(run: CloudRun, group: Group) -> None:
    put_in(group, THEIRS)
    seen = lease.look(run, "lab", None)
    put_in(group, replace(THEIRS, run="newr"))
    with pytest.raises(LeaseHeld):
        lease.unlock(seen)
    assert len(entries(group)) == 1


def test_the_group_is_read_by_the_user_of_its_project_where_the_connection_sees_none(
    services: requests_mock.Mocker,
) -> None:
    services.get(f"{IDENTITY}/projects?name=lab", json={"projects": [{"id": "p1", "name": "lab", "enabled": True}]})
    mine = {"id": "g1", "name": "default", "description": "of p1", "revision_number": 7, "project_id": "p1"}
    web = mine | {"id": "g2", "name": "web"}
    services.get(f"{LIST}?project_id=p1", json={"security_groups": [web]})
    by_tenant = services.get(f"{LIST}?name=default&project_id=p1", json={"security_groups": [web, mine]})
    log_in_to(services, "p1")
    tenant = Cloud(connection(username="tenant"))
    run = CloudRun(Cloud(connection()), OwnershipTag("lab"), tenant=tenant)
    found = lease.read(run, Project(name="lab"))
    assert (found.id, found.revision, found.cloud, by_tenant.call_count) == ("g1", 7, tenant, 1)
    services.get(f"{LIST}?project_id=p1", **failure(403))
    services.get(f"{LIST}?name=default&project_id=p1", json={"security_groups": [mine]})
    assert lease.read(run.fresh(), Project(name="lab")).id == "g1"
    services.get(f"{LIST}?name=default&project_id=p1", json={"security_groups": []})
    with pytest.raises(NotFound):
        lease.read(run.fresh(), Project(name="lab"))
