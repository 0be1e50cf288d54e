"""A plan's way to being carried out while others work on the same spec."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import requests_mock

import openstack_prep as prep
from openstack_prep import api
from openstack_prep.cloud import Cloud
from openstack_prep.errors import LeaseHeld, PlanRefused
from openstack_prep.lease.text import Description, Entry, digest
from openstack_prep.resources import Flavor
from openstack_prep.spec import Spec
from tests.unit.conftest import connection, default_group

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


def held(group: Row) -> None:
    group["description"] = Description.read(group["description"]).holding(THEIRS).write()
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


def test_nobody_has_agreed_to_a_plan_with_refusals(cloud: Cloud, flavors: list[Row], group: Row) -> None:
    plan = refused_plan(cloud, flavors)
    taken_and_released(group)
    with pytest.raises(PlanRefused, match="--allow-replace"):
        prep.apply(cloud, plan)
