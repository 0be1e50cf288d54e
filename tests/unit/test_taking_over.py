"""What another spec manages by the time of the write is not taken over, whatever the plan has seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import PlanRefused
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import executor, observation
from openstack_prep.core.model import Action, Resource
from openstack_prep.core.planner import plan_apply
from openstack_prep.resources.compute.flavor import Flavor
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.identity.user import User
from openstack_prep.resources.image.glance import SPEC
from openstack_prep.resources.image.image import Image
from openstack_prep.resources.network.network import Network
from tests.unit.conftest import IDENTITY

THEIRS = "[openstack-prep:theirs/x]"
Row = dict[str, Any]


def _project(services: requests_mock.Mocker) -> Row:
    row: Row = {"id": "p1", "name": "x", "domain_id": "default", "enabled": True, "description": "", "tags": []}
    services.get(f"{IDENTITY}/projects", json=lambda *_: {"projects": [row]})
    services.get(f"{IDENTITY}/projects/p1", json=lambda *_: {"project": row})
    return row


def _user(services: requests_mock.Mocker) -> Row:
    row: Row = {"id": "u1", "name": "x", "enabled": True, "description": ""}
    services.get(f"{IDENTITY}/users", json=lambda *_: {"users": [row]})
    return row


def _flavor(services: requests_mock.Mocker) -> Row:
    row: Row = {"id": "f1", "name": "x", "description": "", "os-flavor-access:is_public": True}
    services.get("http://nova/v2.1/flavors/detail", json=lambda *_: {"flavors": [row]})
    return row


def _network(services: requests_mock.Mocker) -> Row:
    row: Row = {"id": "n1", "name": "x", "description": "", "mtu": 1500, "revision_number": 1}
    row |= {"project_id": "admin-project", "admin_state_up": True, "shared": False, "tags": []}
    services.get("http://neutron/v2.0/networks", json=lambda *_: {"networks": [row]})
    return row


def _image(services: requests_mock.Mocker) -> Row:
    row: Row = {"id": "i1", "name": "x", "status": "active", "owner": "admin-project", "visibility": "private"}
    row |= {"checksum": "0" * 32, "size": 1, "tags": []}
    services.get("http://glance/v2/images", json=lambda *_: {"images": [row]})
    return row


@pytest.mark.parametrize(
    ("kind", "play", "tag"),
    [
        (Project, _project, {"tags": ["openstack-prep:theirs"]}),
        (User, _user, {"description": THEIRS}),
        (Flavor, _flavor, {"description": THEIRS}),
        (Network, _network, {"description": THEIRS}),
        (Image, _image, {SPEC: "theirs"}),
    ],
)
def test_a_tag_that_came_after_the_plan_is_left_alone(
    empty_cloud: requests_mock.Mocker, run: CloudRun, kind: type[Resource], play: Callable[..., Row], tag: Row
) -> None:
    row = play(empty_cloud)
    wanted = kind(name="x", adopt="permanently")  # type: ignore[call-arg]
    observed, mistakes = observation.examine(run, [wanted])
    plan = plan_apply("lab", [wanted], observed, mistakes=mistakes)
    assert (plan.refusals, [step.action for step in plan]) == ((), [Action.ADOPT])
    row |= tag
    (failed,) = executor.execute(plan, run).failed
    assert isinstance(failed.error, PlanRefused)
    assert [each.keys for each in failed.error.mistakes] == [(wanted.key,)]
    assert "theirs" in str(failed.error)
    assert {each.method for each in empty_cloud.request_history} <= {"GET", "POST"}  # POST: the login
