from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import requests_mock

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Action
from openstack_prep.resources.image.image import Image
from tests.unit.conftest import IDENTITY
from tests.unit.resources.glance import NEW, OLD, Glance, apply, plan, settle


@pytest.fixture
def shared(services: requests_mock.Mocker, image: Image) -> Image:
    def projects(request: Any, context: Any) -> Any:
        name = request.qs["name"][0]
        return {"projects": [{"id": f"id-{name}", "name": name, "enabled": True}]}

    services.get(f"{IDENTITY}/projects", json=projects)
    return replace(image, shared_with=("b", "c"))


def test_a_new_one_is_shared_and_accepted(run: CloudRun, glance: Glance, shared: Image) -> None:
    settle(run, glance, shared)
    assert glance.images["i1"]["visibility"] == "shared"
    assert glance.asked[3:] == ["share id-b", "accepted id-b", "share id-c", "accepted id-c"]


def test_a_private_one_is_shared_first(run: CloudRun, glance: Glance, shared: Image) -> None:
    glance.ours("rhcos", NEW)
    (step,) = plan(run, shared)
    assert [change.field for change in step.changes] == ["shared_with", "visibility"]
    settle(run, glance, shared)
    assert glance.asked[0] == "patch rhcos visibility"


@pytest.mark.parametrize(
    ("members", "asked"),
    [
        ({"id-b": "accepted", "id-c": "rejected", "theirs": "pending"}, []),
        ({"id-b": "pending", "id-c": "accepted"}, ["accepted id-b"]),
        ({"id-c": "rejected"}, ["share id-b", "accepted id-b"]),
    ],
)
def test_what_members_said_and_other_members_stay(
    run: CloudRun, glance: Glance, shared: Image, members: dict[str, str], asked: list[str]
) -> None:
    glance.ours("rhcos", NEW, visibility="shared")
    glance.members |= members
    settle(run, glance, shared)
    assert glance.asked == asked
    assert glance.members.items() >= {name: said for name, said in members.items() if said != "pending"}.items()


def test_the_next_release_is_shared_before_it_has_the_name(run: CloudRun, glance: Glance, shared: Image) -> None:
    glance.ours("rhcos", OLD, visibility="shared")
    settle(run, glance, shared)
    assert glance.asked.index("accepted id-c") < glance.asked.index("patch rhcos-new name")


def test_one_that_is_not_ours(run: CloudRun, glance: Glance, shared: Image) -> None:
    glance.image("rhcos", visibility="shared")
    wanted = replace(shared, source=None, checksum=None, adopt=True)
    apply(run, wanted).raise_for_failures()
    (step,) = plan(run, wanted)
    assert step.action is Action.KEEP
    assert set(glance.members) == {"id-b", "id-c"}


def test_an_empty_list_shares_with_nobody(run: CloudRun, glance: Glance, shared: Image) -> None:
    glance.ours("rhcos", NEW)
    assert not plan(run, replace(shared, shared_with=()))
