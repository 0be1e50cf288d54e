from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import PlanRefused
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.shared_cloud import SharedCloud
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.model import Action, Observed
from openstack_prep.core.plan import Plan
from openstack_prep.resources.compute.quota import Quota, VolumeTypeQuota
from openstack_prep.resources.identity.project import Project
from tests.unit.conftest import ENDPOINTS, failure, sent
from tests.unit.texts import Wording

NOVA, NEUTRON = ENDPOINTS["compute"], ENDPOINTS["network"] + "/v2.0"
CINDER = ENDPOINTS["block-storage"]
PROJECT = "admin-project"


def limit(value: int, used: int = 0) -> dict[str, int]:
    return {"limit": value, "in_use": used, "reserved": 0}


@pytest.fixture
def limits(services: requests_mock.Mocker) -> requests_mock.Mocker:
    nova = {"id": PROJECT, "cores": limit(20, 8), "ram": limit(51200)}
    neutron = {"network": {"limit": 10, "used": 3, "reserved": 0}, "security_group": {"limit": 10, "used": 1}}
    cinder = {"id": PROJECT, "volumes": limit(10), "gigabytes_ssd": limit(-1, 5)}
    services.get(f"{NOVA}/os-quota-sets/{PROJECT}/detail", json={"quota_set": nova})
    services.get(f"{NEUTRON}/quotas/{PROJECT}/details.json", json={"quota": neutron})
    services.get(f"{CINDER}/os-quota-sets/{PROJECT}", json={"quota_set": cinder})
    services.put(f"{NOVA}/os-quota-sets/{PROJECT}", json={})
    services.put(f"{NEUTRON}/quotas/{PROJECT}", json={})
    services.put(f"{CINDER}/os-quota-sets/{PROJECT}", json={})
    return services


def plan(run: CloudRun, quota: Quota) -> Plan:
    observed, mistakes = observation.examine(run, [quota])
    return planner.plan_apply("lab", [quota], observed, mistakes=mistakes)


def written(services: requests_mock.Mocker) -> list[Any]:
    return [request.json() for request in services.request_history if request.method == "PUT"]


def test_one_request_a_service_and_only_what_differs(run: CloudRun, limits: requests_mock.Mocker) -> None:
    quota = Quota(cores=40, ram=51200, security_groups=40, volumes=-1)
    executor.execute(plan(run, quota), run).raise_for_failures()
    assert written(limits) == [
        {"quota_set": {"cores": 40}},
        {"quota": {"security_group": 40}},
        {"quota_set": {"volumes": -1}},
    ]


def test_a_plan_says_whose_project_gets_other_limits(run: CloudRun, limits: requests_mock.Mocker) -> None:
    (step,) = plan(run, Quota(cores=40))
    assert [(change.before, change.after) for change in step.changes] == [(20, 40)]
    assert "not managed by this spec" in step.reason
    assert [step.reason for step in plan(run.fresh(), Quota(cores=20))] == [""]


def test_quotas_of_a_project_that_somebody_else_creates_stay(run: CloudRun, limits: requests_mock.Mocker) -> None:
    limits.get(f"{ENDPOINTS['identity']}/projects", json={"projects": []})
    made = plan(run, Quota(cores=40, project="lab"))
    assert [step.action for step in made] == [Action.CREATE]
    run.known[Project(name="lab").key] = Observed(id=PROJECT)
    (result,) = executor.execute(made, run).results
    assert isinstance(result.error, PlanRefused)
    assert [each.code for each in result.error.mistakes] == [Code.PLAN_CHANGED]
    assert written(limits) == []


@pytest.mark.parametrize("goes", [True, False])
def test_quotas_that_others_have_set_stay_unless_the_project_goes(
    run: CloudRun, limits: requests_mock.Mocker, goes: bool
) -> None:
    run.companions = {("project", PROJECT): (PROJECT,)} if goes else {}
    limits.delete(f"{NOVA}/os-quota-sets/{PROJECT}", json={})
    limits.get(f"{NOVA}/os-quota-sets/{PROJECT}/defaults", json={"quota_set": {"cores": 20, "instances": 10}})
    Quota(cores=40, instances=9).delete(run, Observed(id=PROJECT, ours=True, values={"cores": 40, "instances": 8}))
    assert written(limits) == ([] if goes else [{"quota_set": {"cores": 20}}])
    assert [each.split()[0] for each in sent(limits)] == (["DELETE"] if goes else ["GET", "PUT"])


def test_services_without_a_declared_key_are_not_asked(run: CloudRun, limits: requests_mock.Mocker) -> None:
    plan(run, Quota(networks=5))
    assert sent(limits) == [f"GET /v2.0/quotas/{PROJECT}/details.json"]


def test_limits_of_a_volume_type(run: CloudRun, limits: requests_mock.Mocker) -> None:
    quota = Quota(volume_types={"ssd": VolumeTypeQuota(gigabytes=100)})
    executor.execute(plan(run, quota), run).raise_for_failures()
    assert written(limits) == [{"quota_set": {"gigabytes_ssd": 100}}]


def test_a_limit_below_what_is_in_use_is_refused(run: CloudRun, limits: requests_mock.Mocker, wording: Wording) -> None:
    refusals = plan(run, Quota(cores=7, networks=3)).refusals
    wording([str(each) for each in refusals])


@pytest.mark.parametrize(("cores", "short"), [(9, True), (10, False)])
def test_what_is_reserved_is_in_use(run: CloudRun, limits: requests_mock.Mocker, cores: int, short: bool) -> None:
    reserved = {"cores": {"limit": 20, "in_use": 8, "reserved": 2}}
    limits.get(f"{NOVA}/os-quota-sets/{PROJECT}/detail", json={"quota_set": reserved})
    assert [each.code for each in plan(run, Quota(cores=cores)).refusals] == ["quota.short"] * short


def test_a_limit_below_usage_that_is_in_place_already_is_kept(run: CloudRun, limits: requests_mock.Mocker) -> None:
    """An administrator may set one by force; the spec asks for nothing then."""
    limits.get(f"{NOVA}/os-quota-sets/{PROJECT}/detail", json={"quota_set": {"cores": limit(20, 30)}})
    made = plan(run, Quota(cores=20))
    assert (made.refusals, [step.action for step in made]) == ((), [Action.KEEP])


def test_unlimited_is_never_below_usage(run: CloudRun, limits: requests_mock.Mocker) -> None:
    assert not plan(run, Quota(cores=-1)).refusals


@pytest.mark.parametrize("exists", [False, True])
def test_quotas_that_the_cloud_lacks_are_refused(
    run: CloudRun, limits: requests_mock.Mocker, wording: Wording, exists: bool
) -> None:
    """Neutron would refuse all others with them, and of a new project only its defaults are known."""
    limits.get(f"{ENDPOINTS['identity']}/projects", json={"projects": []})
    limits.get(f"{NEUTRON}/quotas/{PROJECT}/default", json={"quota": {"network": 100}})
    limits.get(f"{CINDER}/types", json={"volume_types": [{"name": "ssd", "id": "t1"}]})
    limits.get(f"{CINDER}/os-quota-sets/{PROJECT}/defaults", json={"quota_set": {"id": PROJECT, "gigabytes_ssd": -1}})
    types = {"ssd": VolumeTypeQuota(gigabytes=1000), "no-such": VolumeTypeQuota(gigabytes=1, volumes=1)}
    quota = Quota(cores=100, networks=100, router_routes=50, trunks=5, volume_types=types)
    wanted = [quota] if exists else [Project(name="new"), replace(quota, project="new")]
    _, mistakes = observation.examine(run, wanted)
    wording([(each.what, each.fix) for each in mistakes])


def test_quotas_that_all_clouds_have_are_not_asked_for(run: CloudRun, limits: requests_mock.Mocker) -> None:
    limits.get(f"{ENDPOINTS['identity']}/projects", json={"projects": []})
    _, mistakes = observation.examine(run, [Project(name="new"), Quota(project="new", cores=1, volumes=1)])
    assert mistakes == []
    assert [each for each in sent(limits) if "quota" in each] == []


def test_equal_limits_are_kept(run: CloudRun, limits: requests_mock.Mocker) -> None:
    assert [step.action for step in plan(run, Quota(cores=20, networks=10))] == [Action.KEEP]


def test_a_service_that_is_busy_is_asked_again(
    run: CloudRun, limits: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    limits.put(f"{NOVA}/os-quota-sets/{PROJECT}", [failure(503), {"json": {}}])
    executor.execute(plan(run, Quota(cores=40)), run).raise_for_failures()
    assert len(written(limits)) == 2


# --- a cloud that many plans share --------------------------------------------------------------


@pytest.mark.parametrize(("network", "reads"), [(10, ["GET /v2.0/quotas"]), (5, ["GET /v2.0/quotas", "details"])])
def test_only_a_limit_that_differs_needs_its_usage(
    services: requests_mock.Mocker, run: CloudRun, limits: requests_mock.Mocker, network: int, reads: list[str]
) -> None:
    limits.get(f"{NEUTRON}/quotas", json={"quotas": [{"project_id": PROJECT, "network": 10, "router": 3}]})
    run.admin = SharedCloud(run.admin, 8)
    made = plan(run, Quota(networks=network))
    assert bool(made) is (network != 10)
    asked = [each.replace(f"GET /v2.0/quotas/{PROJECT}/details.json", "details") for each in sent(limits)]
    assert asked == reads


def test_a_project_that_is_not_listed_is_read(run: CloudRun, limits: requests_mock.Mocker, wording: Wording) -> None:
    limits.get(f"{NEUTRON}/quotas", json={"quotas": []})
    run.admin = SharedCloud(run.admin, 8)
    (mistake,) = plan(run, Quota(networks=2)).refusals
    assert mistake.code == "quota.short"
    wording(mistake.what)
