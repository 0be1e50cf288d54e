from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests_mock

import openstack_prep as prep
from openstack_prep.base.errors import CloudError, ConfigError, NotAllowed, PlanRefused, SpecError
from openstack_prep.base.secret import Secret
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import Action, Key
from openstack_prep.core.plan import ApplyFailed, Plan
from openstack_prep.resources.compute.flavor import Flavor
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.identity.role_assignment import RoleAssignment, actors_of
from openstack_prep.resources.identity.user import User
from openstack_prep.resources.network.network import Network
from openstack_prep.spec import Spec
from openstack_prep.verbs import api, opening
from openstack_prep.verbs.opening import LivePlan
from tests.unit.conftest import ENDPOINTS, IDENTITY, connection, failure, sent
from tests.unit.texts import Wording, expect_error

MASTER = Flavor(name="master", vcpus=4, ram=16384, disk=25)
WORKER = Flavor(name="worker", vcpus=8, ram=32768, disk=100)
SPEC = Spec("lab", (MASTER, WORKER))
POST = f"{ENDPOINTS['compute']}/flavors"

Flavors = list[dict[str, Any]]


@pytest.fixture
def cloud(services: requests_mock.Mocker) -> Cloud:
    return Cloud(connection())


def writes(services: requests_mock.Mocker) -> list[str]:
    return [each for each in sent(services) if not each.startswith("GET")]


def old(plan: Plan) -> Plan:
    return replace(plan, made=plan.made - api.FRESH - 1)


# --- the main job -------------------------------------------------------------------------


def test_plan_changes_nothing(services: requests_mock.Mocker, cloud: Cloud, flavors: Flavors) -> None:
    plan = prep.plan(cloud, SPEC)
    assert [step.action for step in plan] == [Action.CREATE, Action.CREATE]
    assert writes(services) == []


def test_apply_makes_it_so_and_a_second_time_does_nothing(
    services: requests_mock.Mocker, cloud: Cloud, flavors: Flavors
) -> None:
    report = prep.apply(cloud, SPEC)
    report.raise_for_failures()
    assert sorted(flavor["name"] for flavor in flavors) == ["master", "worker"]
    assert report.outputs["flavor/master"] == next(each["id"] for each in flavors if each["name"] == "master")
    assert prep.apply(cloud, SPEC).changed == ()
    assert len(writes(services)) == 2


def test_an_apply_with_nothing_to_do_costs_one_request_a_kind(
    services: requests_mock.Mocker, cloud: Cloud, flavors: Flavors
) -> None:
    prep.apply(cloud, SPEC)
    before = len(sent(services))
    prep.apply(cloud, SPEC)
    lease = "GET /v2.0/security-groups?project_id=admin-project"
    assert sent(services)[before:] == [lease, "GET /v2.1/flavors/detail?is_public=none"]


def test_drift_is_seen(cloud: Cloud, flavors: Flavors) -> None:
    prep.apply(cloud, SPEC)
    flavors[0]["ram"] = 1
    assert [step.action for step in prep.plan(cloud, SPEC)].count(Action.REPLACE) == 1


def test_destroy_takes_back_what_is_ours(cloud: Cloud, flavors: Flavors) -> None:
    prep.apply(cloud, SPEC)
    flavors.append(flavors[0] | {"id": "theirs", "name": "theirs", "description": "not ours"})
    prep.destroy(cloud, Spec("lab", (*SPEC.resources, Flavor(name="theirs")))).raise_for_failures()
    assert [flavor["id"] for flavor in flavors] == ["theirs"]


def test_destroy_does_not_touch_what_another_spec_made(cloud: Cloud, flavors: Flavors) -> None:
    prep.apply(cloud, SPEC)
    prep.destroy(cloud, Spec("other", SPEC.resources))
    assert len(flavors) == 2


def test_show_tells_what_is_there_and_what_is_not(cloud: Cloud, flavors: Flavors) -> None:
    prep.apply(cloud, Spec("lab", (MASTER,)))
    found = prep.show(cloud, SPEC)
    master = found[Key("flavor", "master")]
    assert master is not None
    assert (master.id, master.ours) == ("f1", True)
    assert found[Key("flavor", "worker")] is None


def test_plain_resources_need_no_spec(cloud: Cloud, flavors: Flavors) -> None:
    prep.apply(cloud, [MASTER], name="lab").raise_for_failures()
    assert flavors[0]["description"] == "[openstack-prep:lab/master@admin-project]"


def test_nothing_wanted_is_nothing_to_do(cloud: Cloud) -> None:
    assert not prep.plan(cloud, [])
    assert prep.apply(cloud, []).results == ()


def test_a_list_takes_any_iterable_and_a_name(cloud: Cloud, flavors: Flavors) -> None:
    prep.apply(cloud, (each for each in [MASTER]), name="lab").raise_for_failures()
    assert flavors[0]["description"] == "[openstack-prep:lab/master@admin-project]"
    assert not prep.plan(cloud, SPEC.resources[:1], name="lab")
    found = prep.show(cloud, [MASTER], name="other")[MASTER.key]
    assert found is not None
    assert not found.ours
    prep.destroy(cloud, [MASTER], name="lab").raise_for_failures()
    assert flavors == []


@pytest.mark.parametrize("verb", [prep.plan, prep.plan_destroy, prep.apply, prep.destroy, prep.show])
def test_what_is_no_spec_or_no_cloud_is_refused(
    services: requests_mock.Mocker, cloud: Cloud, verb: Callable[..., Any]
) -> None:
    for wanted in ("spec.yaml", Path("spec.yaml"), {"name": "lab"}, None, MASTER, [MASTER], [replace(MASTER, ram="x")]):
        with pytest.raises(SpecError):
            verb(cloud, wanted)
    for wrong in ("admin", None, connection()):
        with pytest.raises(ConfigError, match="not a Cloud; pass connect"):
            verb(wrong, SPEC)
    assert sent(services) == []


def test_a_plan_is_for_apply_and_destroy(cloud: Cloud, flavors: Flavors, wording: Wording) -> None:
    made: Any = prep.plan(cloud, SPEC)
    for verb in (prep.plan, prep.plan_destroy, prep.show):
        with pytest.raises(SpecError) as caught:
            verb(cloud, made)
        wording(caught.value)
    with pytest.raises(SpecError) as caught:
        prep.destroy(cloud, made)
    wording(caught.value)
    with pytest.raises(SpecError) as caught:
        prep.apply(cloud, made, name="other")
    wording(caught.value)
    assert flavors == []


# --- refusals -----------------------------------------------------------------------------


def test_a_plan_with_refusals_is_not_carried_out(
    services: requests_mock.Mocker, cloud: Cloud, flavors: Flavors
) -> None:
    prep.apply(cloud, SPEC)
    done = len(writes(services))
    bigger = Spec("lab", (replace(MASTER, ram=1024),))
    with pytest.raises(PlanRefused, match="--allow-replace"):
        prep.apply(cloud, bigger)
    assert len(writes(services)) == done
    prep.apply(cloud, bigger, allow_replace=True).raise_for_failures()
    assert len(writes(services)) == done + 2


def test_a_refusal_names_the_line_of_the_spec(cloud: Cloud, flavors: Flavors, tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text("name: lab\nflavors:\n  - name: huge\n")
    plan = prep.plan(cloud, prep.load_spec(path))
    assert [each.where for each in plan.refusals] == [f"{path}:3: flavor/huge"]


def test_one_resource_twice_is_refused(cloud: Cloud, flavors: Flavors) -> None:
    with expect_error(SpecError, "flavor/master", code="spec.duplicate-name"):
        prep.plan(cloud, [MASTER, MASTER], name="lab")


def test_a_cloud_that_cannot_be_read_is_an_error(services: requests_mock.Mocker, cloud: Cloud) -> None:
    services.get(f"{ENDPOINTS['compute']}/flavors/detail", **failure(501))
    with pytest.raises(CloudError, match="501"):
        prep.plan(cloud, SPEC)


def test_a_wrong_password_is_one_clear_error(services: requests_mock.Mocker, cloud: Cloud) -> None:
    services.post(f"{IDENTITY}/auth/tokens", **failure(401))
    with pytest.raises(NotAllowed, match=f"authenticate to {IDENTITY}"):
        prep.plan(cloud, [MASTER, Network(name="n")], name="lab")


def test_a_failure_is_raised_on_demand(services: requests_mock.Mocker, cloud: Cloud, flavors: Flavors) -> None:
    services.post(POST, **failure(403, "Policy does not allow it"))
    with expect_error(ApplyFailed, "flavor/master", "POST compute/flavors", "403", code="apply.failed"):
        prep.apply(cloud, SPEC).raise_for_failures()


# --- plans that have become old -----------------------------------------------------------


def test_a_fresh_plan_is_carried_out_without_reading_again(
    services: requests_mock.Mocker, cloud: Cloud, flavors: Flavors
) -> None:
    plan = prep.plan(cloud, SPEC)
    before = len(sent(services))
    prep.apply(cloud, plan).raise_for_failures()
    assert [each.split()[0] for each in sent(services)[before:]] == ["POST", "POST"]


def test_an_old_plan_that_still_holds_is_carried_out(cloud: Cloud, flavors: Flavors) -> None:
    prep.apply(cloud, old(prep.plan(cloud, SPEC))).raise_for_failures()
    assert len(flavors) == 2


def test_an_old_plan_that_does_not_hold_any_more_is_refused(
    services: requests_mock.Mocker, cloud: Cloud, flavors: Flavors
) -> None:
    plan = old(prep.plan(cloud, SPEC))
    prep.apply(cloud, Spec("lab", (WORKER,)))
    done = len(writes(services))
    with expect_error(PlanRefused, "flavor/worker", "created", code="plan.changed"):
        prep.apply(cloud, plan)
    assert len(writes(services)) == done


def test_an_old_destruction_that_does_not_hold_any_more_is_refused(cloud: Cloud, flavors: Flavors) -> None:
    prep.apply(cloud, SPEC)
    plan = old(prep.plan_destroy(cloud, SPEC))
    flavors[0]["description"] = "somebody took it over"
    with pytest.raises(PlanRefused, match="has changed since"):
        prep.destroy(cloud, plan)
    assert len(flavors) == 2


def test_a_plan_is_carried_out_once(services: requests_mock.Mocker, cloud: Cloud, flavors: Flavors) -> None:
    plan = prep.plan(cloud, SPEC)
    prep.apply(cloud, plan)
    assert prep.apply(cloud, plan).changed == ()
    assert len(writes(services)) == 2
    del flavors[:1]
    with pytest.raises(PlanRefused, match="has changed since"):
        prep.apply(cloud, plan)
    assert len(writes(services)) == 2


# --- what is told -------------------------------------------------------------------------


def test_an_old_plan_is_created_again_by_its_own_function(cloud: Cloud, flavors: Flavors) -> None:
    one = prep.plan(cloud, Spec("lab", (MASTER,)))
    calls: list[str] = []

    def remake() -> LivePlan:
        calls.append("again")
        return prep.plan(cloud, Spec("lab", (MASTER,)))

    rest = {"wanted": one.wanted, "run": one.run, "lease": one.lease}
    made = LivePlan.of(Plan(spec="lab", purpose="apply", steps=one.steps), **rest, remake=remake)
    api.apply(cloud, old(made), agreed=False).raise_for_failures()
    assert calls == ["again"]
    assert len(flavors) == 1


@pytest.mark.parametrize(("domain", "own"), [("Default", True), ("Other", False)])
def test_only_a_project_of_the_connections_domain_is_the_connections(
    services: requests_mock.Mocker, cloud: Cloud, domain: str, own: bool
) -> None:
    domains = [{"id": "d2", "name": "Other"}]
    services.get(f"{IDENTITY}/domains", json={"domains": domains})
    services.get(f"{IDENTITY}/projects?name={cloud.project_name}&domain_id=d2", json={"projects": []})
    project = Project(name=cloud.project_name, domain=domain)
    spec = Spec("lab", (project, Network(name="net"))).limited_to("network")
    _, run = opening.open_run(cloud, spec, 1)
    assert run.find_project_id(project) == (cloud.project_id if own else None)
    assert (run.find_tenant(project) is cloud) == own


def test_events_are_told(cloud: Cloud, flavors: Flavors) -> None:
    events: list[str] = []
    prep.apply(cloud, [MASTER], name="lab", tell=lambda event: events.append(f"{event.phase} {event.step.key}"))
    assert events == ["started flavor/master", "ended flavor/master"]


def test_every_public_name_is_there() -> None:
    assert [name for name in prep.__all__ if not hasattr(prep, name)] == []


@pytest.mark.parametrize("consent", [True, False])
def test_a_plan_that_is_made_again_keeps_its_consent(cloud: Cloud, flavors: Flavors, consent: bool) -> None:
    plan = prep.plan(cloud, SPEC, allow_replace=consent)
    prep.apply(cloud, plan).raise_for_failures()
    stale = prep.plan(cloud, SPEC, allow_replace=consent)
    assert api._made_again(cloud, stale, 1, lambda *_: None, agreed=True, prune=False).allow_replace is consent


def test_the_first_user_of_the_spec_acts_in_the_project(cloud: Cloud, flavors: Flavors) -> None:
    """Not the user whose role assignment comes first."""
    names = ("first", "second")
    users = [User(name=name, password=Secret("a")) for name in names]
    roles = [RoleAssignment(user=name, role="member", project="lab") for name in reversed(names)]
    actors = actors_of([User(name="zero"), *users, *roles])
    assert [each.user.name for each in actors.values()] == ["first"]
