"""What the additions of a plan need together, against the quotas of their projects."""

from __future__ import annotations

from typing import Any

import pytest
import requests_mock

import openstack_prep as prep
from openstack_prep.base.codes import Code
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import Action, Resource
from openstack_prep.resources.compute.quota import Quota
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.lists.neutron_records import Route
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.router import Router
from openstack_prep.verbs.opening import LivePlan
from tests.unit.conftest import ADMIN_PROJECT, IDENTITY, connection, failure

NEUTRON = "http://neutron/v2.0/quotas"
TWO = (Network(name="one"), Network(name="two"))


def plan(services: requests_mock.Mocker, *resources: Resource, **networks: int) -> LivePlan:
    details = {"network": {"reserved": 0, **networks}}
    services.get(f"{NEUTRON}/{ADMIN_PROJECT}/details.json", json={"quota": details})
    return prep.plan(Cloud(connection()), resources, name="lab")


def shortages(made: LivePlan) -> list[tuple[tuple[str, ...], str]]:
    short = [each for each in made.refusals if each.code == Code.QUOTA_SHORT]
    return [(tuple(str(key) for key in each.keys), each.fix) for each in short]


@pytest.mark.parametrize(
    ("networks", "enough"),
    [
        ({"limit": 2, "used": 1}, 3),
        ({"limit": 2, "used": 2}, 4),
        ({"limit": 3, "used": 0, "reserved": 2}, 4),
        ({"limit": 3, "used": 1}, None),
        ({"limit": -1, "used": 9}, None),
    ],
)
def test_together_they_exceed_what_is_left(
    empty_cloud: requests_mock.Mocker, networks: dict[str, int], enough: int | None
) -> None:
    command = f"openstack quota set --networks {enough} {ADMIN_PROJECT}"
    expected = [(("network/one", "network/two"), f"raise the quota: {command}")] if enough else []
    assert shortages(plan(empty_cloud, *TWO, **networks)) == expected


def test_what_exists_needs_nothing_more(empty_cloud: requests_mock.Mocker) -> None:
    rows = [{"id": each.name, "name": each.name, "project_id": ADMIN_PROJECT} for each in TWO]
    empty_cloud.get("http://neutron/v2.0/networks", json={"networks": rows[:1]})
    assert shortages(plan(empty_cloud, *TWO, limit=2, used=1)) == []
    assert [keys for keys, _ in shortages(plan(empty_cloud, *TWO, limit=2, used=2))] == [("network/two",)]


@pytest.mark.parametrize(("limit", "short"), [(0, True), (1, False)])
def test_what_an_adoption_adds_counts(empty_cloud: requests_mock.Mocker, limit: int, short: bool) -> None:
    row = {"id": "n1", "name": "one", "project_id": ADMIN_PROJECT}
    empty_cloud.get("http://neutron/v2.0/networks", json={"networks": [row]})
    details = {"rbac_policy": {"limit": limit, "used": 0, "reserved": 0}}
    empty_cloud.get(f"{NEUTRON}/{ADMIN_PROJECT}/details.json", json={"quota": details})
    shared = Network(name="one", shared_with=("admin",))
    made = prep.plan(Cloud(connection()), [shared], name="lab", adopt=True)
    assert [step.action for step in made.pending] == [Action.ADOPT]
    assert [keys for keys, _ in shortages(made)] == [("network/one",)] * short


@pytest.mark.parametrize(("declared", "short"), [(2, True), (3, False), (-1, False)])
def test_the_limit_that_the_spec_declares_counts(empty_cloud: requests_mock.Mocker, declared: int, short: bool) -> None:
    """Its step comes before those that need it, whatever the limit is now."""
    made = plan(empty_cloud, Quota(networks=declared), *TWO, limit=9 if short else 1, used=1)
    fix = "raise quota.networks in the spec to 3"
    assert shortages(made) == ([(("network/one", "network/two"), fix)] if short else [])


@pytest.mark.parametrize(("default", "short"), [(1, True), (2, False)])
def test_a_new_project_has_the_default_limits(empty_cloud: requests_mock.Mocker, default: int, short: bool) -> None:
    empty_cloud.get(f"{IDENTITY}/projects?name=new", json={"projects": []})
    empty_cloud.get(f"{NEUTRON}/{ADMIN_PROJECT}/default", json={"quota": {"network": default}})
    networks = [Network(name=each.name, project="new") for each in TWO]
    found = shortages(plan(empty_cloud, Project(name="new"), *networks, limit=0, used=0))
    fix = "set networks: 2 in the quota of the new project in the spec"
    assert [each for _, each in found] == [fix] * short


@pytest.mark.parametrize("answer", [failure(403), failure(404)])
def test_quotas_that_cannot_be_read_refuse_nothing(
    services: requests_mock.Mocker, empty_cloud: requests_mock.Mocker, answer: dict[str, Any]
) -> None:
    made = plan(empty_cloud, *TWO, limit=0, used=0)
    assert len(shortages(made)) == 1
    services.get(f"{NEUTRON}/{ADMIN_PROJECT}/details.json", **answer)
    made = prep.plan(Cloud(connection()), TWO, name="lab")
    assert (shortages(made), len(made.not_checked)) == ([], 1)


def test_a_service_without_such_a_quota_limits_nothing(empty_cloud: requests_mock.Mocker) -> None:
    empty_cloud.get(f"{NEUTRON}/{ADMIN_PROJECT}/details.json", json={"quota": {}})
    made = prep.plan(Cloud(connection()), TWO, name="lab")
    assert (shortages(made), made.not_checked) == ([], ())


def test_routes_count_per_router(empty_cloud: requests_mock.Mocker) -> None:
    routes = tuple(Route(destination=f"10.{number}.0.0/16", nexthop="10.0.0.9") for number in range(3))
    details = {"router_route": {"limit": 3, "used": 0, "reserved": 0}, "router": {"limit": -1, "used": 0}}
    empty_cloud.get(f"{NEUTRON}/{ADMIN_PROJECT}/details.json", json={"quota": details})
    cloud = Cloud(connection())
    two = (Router(name="one", routes=routes), Router(name="two", routes=routes))
    assert shortages(prep.plan(cloud, two, name="lab")) == []
    more = Router(name="more", routes=(*routes, Route(destination="10.9.0.0/16", nexthop="10.0.0.9")))
    fix = f"raise the quota: openstack quota set --router-routes 4 {ADMIN_PROJECT}"
    assert shortages(prep.plan(cloud, (*two, more), name="lab")) == [(("router/more",), fix)]
