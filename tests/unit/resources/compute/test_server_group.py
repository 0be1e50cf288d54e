from __future__ import annotations

from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import PlanRefused
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.deletion_loss import Deletion, DeletionLoss
from openstack_prep.core.model import Action, Observed
from openstack_prep.core.plan import Plan
from openstack_prep.core.twin import late_twins
from openstack_prep.resources.compute.server_group import ServerGroup
from tests.unit.conftest import ADMIN_PROJECT, ENDPOINTS, IDENTITY, declared_mistakes, sent

NOVA = ENDPOINTS["compute"]
GROUP = ServerGroup(name="masters", policy="soft-anti-affinity")


def answer(**fields: Any) -> dict[str, Any]:
    """Return a server group as Nova tells it."""
    return {
        "id": "g1",
        "name": "masters",
        "policy": "soft-anti-affinity",
        "rules": {},
        "project_id": ADMIN_PROJECT,
    } | fields


@pytest.fixture
def listed(services: requests_mock.Mocker) -> list[dict[str, Any]]:
    """What Nova lists; a test fills it."""
    found: list[dict[str, Any]] = []

    def page(request: Any, context: Any) -> Any:
        start = int(request.qs.get("offset", ["0"])[0])
        return {"server_groups": found[start : start + 2]}

    services.get(f"{NOVA}/os-server-groups", json=page)
    return found


def plan(run: CloudRun, *wanted: ServerGroup) -> Plan:
    observed, mistakes = observation.examine(run, wanted)
    return planner.plan_apply("lab", wanted, observed, mistakes=mistakes)


def test_it_is_made(run: CloudRun, services: requests_mock.Mocker, listed: list[Any]) -> None:
    made = services.post(f"{NOVA}/os-server-groups", json={"server_group": answer()})
    group = ServerGroup(name="masters", policy="anti-affinity", max_server_per_host=2)
    executor.execute(plan(run, group), run).raise_for_failures()
    assert made.last_request.json() == {
        "server_group": {"name": "masters", "policy": "anti-affinity", "rules": {"max_server_per_host": 2}}
    }
    assert made.last_request.headers["X-OpenStack-Nova-API-Version"] == "2.64"


def test_it_is_kept(run: CloudRun, listed: list[Any]) -> None:
    listed.append(answer())
    assert not plan(run, GROUP)


def test_another_policy_is_refused(run: CloudRun, listed: list[Any]) -> None:
    listed.append(answer(policy="affinity"))
    with pytest.raises(PlanRefused, match="policy 'affinity' -> 'soft-anti-affinity'"):
        plan(run, GROUP).raise_for_refusals()


def test_two_of_one_name(run: CloudRun, listed: list[Any]) -> None:
    listed += [answer(), answer(id="g2", policy="affinity")]
    with pytest.raises(PlanRefused, match="g1, g2"):
        plan(run, GROUP)


def test_a_deletion_shows_the_servers_that_lose_their_policy(
    run: CloudRun, services: requests_mock.Mocker, listed: list[Any]
) -> None:
    listed.append(answer(members=["s1"], rules={"max_server_per_host": 2}))
    limited = ServerGroup(name="masters", policy="soft-anti-affinity", max_server_per_host=2)
    assert (plan(run, GROUP).pending, plan(run, limited).pending) == ((), ())
    ((declared, observed),) = ServerGroup.scan(run, None)
    assert (declared, observed.ours, observed.used_by) == (limited, False, ("server s1",))
    services.get(f"{NOVA}/servers/detail", json={"servers": [{"id": "s1", "name": "web", "tenant_id": "p9"}]})
    losses = ServerGroup.find_losses(run, [Deletion(GROUP, observed)], frozenset())
    assert [(key, found.address) for key, found in losses if isinstance(found, DeletionLoss)] == [
        (GROUP.key, "server/s1")
    ]
    deleted = services.delete(f"{NOVA}/os-server-groups/g1", status_code=204)
    GROUP.delete(run, observed)
    assert deleted.called_once


@pytest.fixture
def in_our_project(services: requests_mock.Mocker, listed: list[Any]) -> ServerGroup:
    """Two groups of one name and policy, in a project that carries our tag."""
    project = {"id": "p1", "enabled": True, "tags": ["openstack-prep:lab"]}
    services.get(f"{IDENTITY}/projects", json={"projects": [project]})
    listed += [answer(project_id="p1"), answer(id="g2", project_id="p1")]
    return ServerGroup(name="masters", policy="soft-anti-affinity", project="lab")


def test_of_two_alike_none_is_deleted(run: CloudRun, in_our_project: ServerGroup) -> None:
    """Somebody else may have created one of them: neither apply nor destroy takes it, and both name it."""
    made = plan(run, in_our_project)
    destruction = planner.plan_destroy("lab", [in_our_project], observation.observe(run, [in_our_project]))
    for each in (made, destruction):
        assert {step.action for step in each} == {Action.KEEP}
        assert "duplicate g2" in str(each)
    assert "delete it manually" in str(made)


def test_one_that_appears_at_the_end_of_a_run_is_left_alone(run: CloudRun, in_our_project: ServerGroup) -> None:
    """This run has created g2; the other one is somebody's."""
    run.known[in_our_project.key] = Observed(id="g2", ours=True)
    assert late_twins(run, [in_our_project]) == []


def test_a_number_a_host_goes_with_anti_affinity() -> None:
    (mistake,) = declared_mistakes(ServerGroup(name="masters", policy="affinity", max_server_per_host=2))
    assert (mistake.code, mistake.field) == ("spec.contradiction", "max_server_per_host")


@pytest.mark.parametrize(("tags", "ours"), [([], False), (["openstack-prep:lab"], True)])
def test_it_is_ours_when_its_project_is(
    run: CloudRun, services: requests_mock.Mocker, listed: list[Any], tags: list[str], ours: bool
) -> None:
    services.get(f"{IDENTITY}/projects", json={"projects": [{"id": "p1", "enabled": True, "tags": tags}]})
    listed += [answer(id="g2", project_id="p2"), answer(id="g3", project_id="p3"), answer(project_id="p1")]
    group = ServerGroup(name="masters", policy="soft-anti-affinity", project="lab")
    (observed,) = observation.observe(run, [group]).values()
    assert (observed.id, observed.ours) == ("g1", ours)
    assert [each for each in sent(services) if "server-groups" in each] == [
        f"GET /v2.1/os-server-groups?all_projects=true&offset={offset}" for offset in (0, 2, 3)
    ]


def test_of_the_groups_of_two_runs_at_once_one_remains(
    run: CloudRun, services: requests_mock.Mocker, listed: list[Any]
) -> None:
    def post(request: Any, _: Any) -> dict[str, Any]:
        listed.extend([answer(), answer(id="g2")])
        return {"server_group": answer(id="g2")}

    def delete(request: Any, context: Any) -> str:
        listed[:] = [each for each in listed if each["id"] != "g2"]
        context.status_code = 204
        return ""

    services.post(f"{NOVA}/os-server-groups", json=post)
    deleted = services.delete(f"{NOVA}/os-server-groups/g2", text=delete)
    report = executor.execute(plan(run, GROUP), run)
    report.raise_for_failures()
    (result,) = report.results
    assert (result.observed.id, deleted.call_count) == ("g1", 1)
