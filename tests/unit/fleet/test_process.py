from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests_mock

from openstack_prep.base.errors import DownloadError
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.shared_cloud import SharedCloud
from openstack_prep.download.spool import Contents, Shared
from openstack_prep.fleet import process
from openstack_prep.fleet.order import Order, Verb
from openstack_prep.resources.identity.project import Project
from openstack_prep.spec import Spec
from tests.unit.conftest import IDENTITY, failure
from tests.unit.texts import Wording

pytestmark = pytest.mark.usefixtures("clouds_yaml")


def contents_of(phase: str, region: str | None = None) -> Contents:
    order = Order(target="red", verb="apply", spec="x", cloud="lab", region=region, phase=phase)
    found = process.cloud_of(order).contents
    assert found is not None
    return found


@pytest.fixture
def source(tmp_path: Path) -> str:
    (tmp_path / "disk").write_bytes(b"a disk")
    return str(tmp_path / "disk")


def test_all_connections_of_a_phase_share_contents(source: str, wording: Wording) -> None:
    first = contents_of("a")
    assert contents_of("a", "one") is first
    process.end_phase("a")
    with pytest.raises(DownloadError) as caught:
        list(Shared(first, source))
    wording(caught.value)


def test_two_phases_are_independent(source: str) -> None:
    first, second = contents_of("a"), contents_of("b")
    assert first is not second
    assert contents_of("a") is first
    process.end_phase("a")
    assert b"".join(Shared(second, source)) == b"a disk"
    process.end_phase("b")


def test_a_phase_that_nobody_ends_is_forgotten(source: str) -> None:
    first = contents_of("0")
    for each in range(1, process.MOST):
        contents_of(str(each))
    assert contents_of("0") is first
    for each in range(process.MOST, 2 * process.MOST):
        contents_of(str(each))
    assert b"".join(Shared(first, source)) == b"a disk"  # of a target that is still at work
    assert contents_of("0") is not first
    for each in range(2 * process.MOST):
        process.end_phase(str(each))


def test_few_targets_of_a_cloud_read_for_themselves() -> None:
    def cloud(neighbours: int) -> Cloud:
        order = Order(target="red", verb="plan", spec="x", cloud="lab", neighbours=neighbours, phase="a")
        return process.cloud_for_reading(order)

    assert cloud(process.FROM - 1) is cloud(1)
    shared = cloud(process.FROM)
    assert isinstance(shared, SharedCloud)
    assert shared is cloud(1000)
    assert shared.own is cloud(1)
    process.end_phase("a")
    assert cloud(process.FROM) is not shared
    process.end_phase("a")


def test_the_targets_of_another_wave_read_again() -> None:
    def cloud(wave: int) -> Cloud:
        order = Order(target="red", verb="apply", spec="x", cloud="lab", neighbours=process.FROM, phase="a", wave=wave)
        return process.cloud_for_reading(order)

    first = cloud(0)
    assert cloud(0) is first
    assert cloud(1) is not first
    assert cloud(1).own is first.own
    process.end_phase("a")


@pytest.fixture
def applied(services: requests_mock.Mocker) -> Iterator[Callable[..., bool]]:
    """Whether the plan of a project is created from what targets share."""

    def is_shared(name: str, verb: Verb = "apply", neighbours: int = process.FROM) -> bool:
        order = Order(target="red", verb=verb, spec="x", cloud="lab", neighbours=neighbours, phase="a")
        return isinstance(process.cloud_for_applying(order, Spec(name, (Project(name=name),))), SharedCloud)

    yield is_shared
    process.end_phase("a")


def test_a_target_whose_project_is_missing_is_planned_only_by_its_own_requests(
    services: requests_mock.Mocker, applied: Callable[..., bool]
) -> None:
    listed = services.get(f"{IDENTITY}/projects", json={"projects": [{"id": "1", "name": "red"}]})
    assert [applied(each) for each in ("red", "blue", "Red")] == [True, False, False]
    assert applied("blue", "destroy")  # whose plan is empty, as far as is known
    assert not applied("red", neighbours=process.FROM - 1)
    assert listed.call_count == 1


def test_without_a_list_of_all_projects_all_share(services: requests_mock.Mocker, applied: Callable[..., bool]) -> None:
    services.get(f"{IDENTITY}/projects", **failure(403))
    assert applied("blue")
