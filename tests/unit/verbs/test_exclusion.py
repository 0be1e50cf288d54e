"""A plan's way to being carried out while others work on the same spec."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import pytest
import requests_mock

import openstack_prep as prep
from openstack_prep.base.errors import LeaseHeld, LeaseLost, NotAllowed, PlanRefused
from openstack_prep.cloud import lease
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.lease import Description, Entry, digest
from openstack_prep.core.model import Action, Resource, Status
from openstack_prep.resources.compute.flavor import Flavor
from openstack_prep.resources.dns.recordset import Recordset
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.network.network import Network
from openstack_prep.spec import Spec
from openstack_prep.verbs import api, exclusion
from tests.unit.conftest import ENDPOINTS, IDENTITY, LEASE, connection, default_group, failure
from tests.unit.texts import Wording

SPEC = Spec("lab", (Flavor(name="master", vcpus=4, ram=16384, disk=25),))
BIGGER = Spec("lab", (replace(SPEC.resources[0], ram=32768),))
THEIRS = Entry(spec=digest("lab"), run="thei", since=1, place="else", pid=1, start="abc", who="ann@laptop")

Row = dict[str, Any]


@pytest.fixture
def cloud(services: requests_mock.Mocker) -> Cloud:
    return Cloud(connection())


@pytest.fixture
def group(services: requests_mock.Mocker) -> Row:
    return default_group(services)


def taken_and_released(group: Row) -> None:
    group["revision_number"] += 2


def held(group: Row, holder: Entry = THEIRS) -> None:
    group["description"] = Description.read(group["description"]).holding(holder).write()
    group["revision_number"] += 1


def refused_plan(cloud: Cloud, flavors: list[Row], wanted: Spec = BIGGER) -> prep.Plan:
    """Return a plan that another run's half-done work makes a refusal of; that run then ends its work."""
    prep.apply(cloud, SPEC)
    plan = prep.plan(cloud, wanted)
    assert plan.refusals
    flavors[0]["ram"] = 32768
    return plan


def test_a_refusal_while_nobody_else_is_at_work_stands(
    services: requests_mock.Mocker, cloud: Cloud, flavors: list[Row], group: Row
) -> None:
    plan = refused_plan(cloud, flavors)
    before = len(services.request_history)
    with pytest.raises(PlanRefused, match="--allow-replace"):
        api.apply(cloud, plan, agreed=False)
    assert [each.method for each in services.request_history[before:]] == ["GET"]


def test_a_refusal_of_what_another_run_was_changing_is_planned_again(
    cloud: Cloud, flavors: list[Row], group: Row
) -> None:
    plan = refused_plan(cloud, flavors)
    taken_and_released(group)
    report = api.apply(cloud, plan, agreed=False)
    assert (report.failed, report.changed) == ((), ())


def test_a_refusal_that_stays_is_refused_under_the_lease(cloud: Cloud, flavors: list[Row], group: Row) -> None:
    plan = refused_plan(cloud, flavors)
    flavors[0]["ram"] = 1
    taken_and_released(group)
    with pytest.raises(PlanRefused, match="--allow-replace"):
        api.apply(cloud, plan, agreed=False)
    assert group["description"] == "Default security group"


def test_a_refusal_while_another_run_is_at_work_names_that_run(cloud: Cloud, flavors: list[Row], group: Row) -> None:
    plan = refused_plan(cloud, flavors)
    held(group)
    with pytest.raises(LeaseHeld, match="ann@laptop"):
        api.apply(cloud, plan, agreed=False, lock_timeout=0)


def test_a_plan_gives_no_fix_for_what_another_run_may_be_changing(
    cloud: Cloud, flavors: list[Row], group: Row, wording: Wording
) -> None:
    """Such as a network that a destroy finds in the project, and that an apply has just created."""
    prep.apply(cloud, SPEC)
    held(group)
    (refusal,) = prep.plan(cloud, BIGGER).refusals
    assert refusal.code == "plan.replaces"
    wording(refusal.fix)
    assert "--allow-replace" not in refusal.fix


def test_nobody_has_agreed_to_a_plan_with_refusals(cloud: Cloud, flavors: list[Row], group: Row) -> None:
    plan = refused_plan(cloud, flavors)
    taken_and_released(group)
    with pytest.raises(PlanRefused, match="--allow-replace"):
        prep.apply(cloud, plan)


def test_a_plan_without_steps_is_planned_again_once_it_was_carried_out(
    cloud: Cloud, flavors: list[Row], group: Row
) -> None:
    prep.apply(cloud, SPEC)
    plan = prep.plan(cloud, SPEC)
    assert prep.apply(cloud, plan).changed == ()
    flavors.clear()
    api.apply(cloud, plan, agreed=False).raise_for_failures()
    assert [each["name"] for each in flavors] == ["master"]


def test_a_run_that_has_lost_its_lease_writes_nothing_more(
    services: requests_mock.Mocker, cloud: Cloud, flavors: list[Row], group: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Suspended for long, such as a laptop, while another run takes the lease."""
    two = Spec("lab", (*SPEC.resources, Flavor(name="other", vcpus=4, ram=16384)))

    def create(request: Any, context: Any) -> Row:
        held(group)
        later = lease.now() + lease.DURATION
        monkeypatch.setattr(lease, "now", lambda: later)
        return {"flavor": {"id": "f1", **request.json()["flavor"]}}

    created = services.post(f"{ENDPOINTS['compute']}/flavors", json=create)
    report = prep.apply(cloud, two, jobs=1)
    assert [each.status for each in report.results] == [Status.DONE, Status.FAILED]
    assert isinstance(report.failed[0].error, LeaseLost)
    assert created.call_count == 1
    assert Description.read(group["description"]).of_spec(THEIRS.spec) == THEIRS


# --- a project that the plan creates, in which the lease will lie ---------------------------

NEW = Spec("lab", (Project(name="lab"), *SPEC.resources))


@pytest.fixture
def projects(services: requests_mock.Mocker) -> list[Row]:
    """The projects of a Keystone that remembers what it is told."""
    known: list[Row] = []

    def create(request: Any, context: Any) -> Row:
        context.status_code = 201
        known.append({"id": "p1"} | request.json()["project"])
        return {"project": known[-1]}

    services.get(f"{IDENTITY}/domains?name=Default", json={"domains": [{"id": "default", "name": "Default"}]})
    services.get(f"{IDENTITY}/projects?name=lab", json=lambda *_: {"projects": known})
    services.get(f"{IDENTITY}/projects/p1", json=lambda *_: {"project": known[0]})
    services.post(f"{IDENTITY}/projects", json=create)
    return known


def written(services: requests_mock.Mocker) -> list[str]:
    requests = (each for each in services.request_history if each.method != "GET" and "/auth/tokens" not in each.path)
    return [f"{each.method} {each.path.split('/')[2]}" for each in requests]


def test_a_project_is_created_before_its_lease_and_all_else_after_it(
    services: requests_mock.Mocker, cloud: Cloud, flavors: list[Row], group: Row, projects: list[Row]
) -> None:
    report = prep.apply(cloud, NEW)
    assert [str(each.step) for each in report.changed] == ["project/lab", "flavor/master"]
    assert not report.failed
    lease_of_project = "PUT security-groups"
    assert written(services) == ["POST projects", lease_of_project, "POST flavors", lease_of_project]
    assert report.results[0].seconds <= report.seconds


def test_without_its_project_nothing_else_is_done(
    services: requests_mock.Mocker, cloud: Cloud, flavors: list[Row], group: Row, projects: list[Row]
) -> None:
    kept = Flavor(name="kept", vcpus=1, ram=512)
    services.get(f"{IDENTITY}/projects/admin-project", **failure(404))
    prep.apply(cloud, Spec("lab", (kept,)))
    before = written(services)
    services.post(f"{IDENTITY}/projects", **failure(403))
    report = prep.apply(cloud, Spec("lab", (*NEW.resources, kept)))
    outcomes = {str(each.step): (each.status, each.cause) for each in report.results}
    assert outcomes == {
        "project/lab": (Status.FAILED, ""),
        "flavor/master": (Status.SKIPPED, "project/lab"),
        "flavor/kept": (Status.DONE, ""),
    }
    assert written(services) == [*before, "POST projects"]


@pytest.mark.parametrize("agreed", [True, False])
def test_a_project_that_somebody_else_has_created_since_an_old_plan_is_not_created(
    services: requests_mock.Mocker, cloud: Cloud, flavors: list[Row], group: Row, projects: list[Row], agreed: bool
) -> None:
    plan = prep.plan(cloud, NEW)
    projects.append({"id": "p1", "name": "lab", "domain_id": "default", "enabled": True, "tags": []})
    plan = replace(plan, made=plan.made - api.FRESH - 1)
    with pytest.raises(PlanRefused) if agreed else contextlib.nullcontext():
        api.apply(cloud, plan, agreed=agreed)
    assert "POST projects" not in written(services)
    assert len(flavors) == (0 if agreed else 1)


# --- errors while another run is at work ----------------------------------------------------


def failing_once(services: requests_mock.Mocker, flavors: list[Row]) -> None:
    """Let the list of flavors fail once: it names what another run has just deleted."""
    answers = [failure(404), {"json": lambda *_: {"flavors": flavors}}]
    services.get(f"{ENDPOINTS['compute']}/flavors/detail", answers)


@pytest.mark.parametrize("verb", [prep.apply, prep.destroy])
def test_what_cannot_be_read_while_another_run_is_at_work_is_planned_again(
    services: requests_mock.Mocker, cloud: Cloud, flavors: list[Row], verb: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = default_group(services)
    failing_once(services, flavors)
    monkeypatch.setattr(lease, "place", lambda: "here")
    lives = [True]
    monkeypatch.setattr(lease, "started", lambda pid: "")
    monkeypatch.setattr(lease, "exists", lambda pid: bool(lives) and lives.pop())
    held(group, replace(THEIRS, place=digest("here")))  # and is then killed
    verb(cloud, SPEC).raise_for_failures()


def test_a_killed_run_is_not_at_work(
    cloud: Cloud, flavors: list[Row], group: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "place", lambda: "here")
    monkeypatch.setattr(lease, "exists", lambda pid: False)
    prep.apply(cloud, SPEC)
    held(group, replace(THEIRS, place=digest("here")))
    plan = prep.plan(cloud, BIGGER)
    assert (plan.lease.worker, str(plan.lease.holder).count("ann@laptop")) == (None, 1)
    assert "--allow-replace" in plan.refusals[0].fix  # and not: wait


def test_what_a_killed_run_was_changing_is_planned_again(
    cloud: Cloud, flavors: list[Row], group: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last request may arrive while the cloud is read: the ports of a pool after the pool, before their network."""
    monkeypatch.setattr(lease, "place", lambda: "here")
    monkeypatch.setattr(lease, "exists", lambda pid: False)
    prep.apply(cloud, SPEC)
    held(group, replace(THEIRS, place=digest("here")))
    plan = prep.plan(cloud, BIGGER)
    assert plan.refusals
    flavors[0]["ram"] = 32768
    report = api.apply(cloud, plan, agreed=False)
    assert (report.failed, report.changed) == ((), ())


def test_a_plan_says_that_another_run_was_at_work(
    services: requests_mock.Mocker, cloud: Cloud, flavors: list[Row], group: Row, wording: Wording
) -> None:
    failing_once(services, flavors)
    held(group)
    (refusal,) = prep.plan(cloud, SPEC).refusals
    assert refusal.where == "spec lab"
    assert refusal.code == "lease.held"
    wording(refusal.what)


def test_what_cannot_be_read_under_our_own_lease_is_an_error(
    services: requests_mock.Mocker, cloud: Cloud, flavors: list[Row], group: Row
) -> None:
    plan = prep.plan(cloud, SPEC)
    taken_and_released(group)
    services.get(f"{ENDPOINTS['compute']}/flavors/detail", **failure(403))
    with pytest.raises(NotAllowed):
        api.apply(cloud, plan, agreed=False)
    assert group["description"] == "Default security group"


@pytest.mark.parametrize(
    ("resources", "project", "declared"),
    [
        ((Network(name="net", project="other"), Project(name="lab"), Project(name="more")), "lab", True),
        (
            (
                Recordset(name="a.example.com.", zone="example.com.", type="A", project="dns"),
                Flavor(name="x"),
                Network(name="net", project="other"),
                Network(name="net", project="more"),
            ),
            "other",
            False,
        ),
        ((Network(name="net"),), None, False),
    ],
)
def test_the_lease_lies_in_the_project_of_the_resources(
    run: CloudRun,
    services: requests_mock.Mocker,
    resources: tuple[Resource, ...],
    project: str | None,
    declared: bool,
) -> None:
    services.get(f"{IDENTITY}/projects", json={"projects": []})
    seen = exclusion.look(run, "lab", resources)
    assert (seen.project and seen.project.key.name, seen.declared) == (project, declared)


def test_what_is_left_of_an_absent_project_is_destroyed_without_a_lease(
    services: requests_mock.Mocker, cloud: Cloud, flavors: list[Row], group: Row, projects: list[Row]
) -> None:
    services.get(f"{IDENTITY}/projects/project", **failure(404))
    services.delete(LEASE, status_code=204)
    prep.apply(cloud, SPEC)
    flavors[0]["description"] = "[openstack-prep:lab/master]"
    group["tags"] = ["openstack-prep:lab~default"]
    before = len(written(services))
    prep.destroy(cloud, NEW).raise_for_failures()
    assert flavors == []
    assert set(written(services)[before:]) == {"DELETE flavors", "DELETE security-groups"}  # the group of the project


def test_a_project_is_deleted_last_with_the_lease_in_it(
    cloud: Cloud, flavors: list[Row], group: Row, projects: list[Row]
) -> None:
    made = prep.plan(cloud, NEW)
    assert exclusion._home_last(made) is made
    deletions = tuple(replace(step, action=Action.DELETE) for step in made)
    home, flavor = exclusion._home_last(replace(made, steps=deletions))
    assert (home.after, flavor) == (frozenset({frozenset({flavor.key})}), deletions[1])
