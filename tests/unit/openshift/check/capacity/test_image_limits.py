from __future__ import annotations

from typing import Any

import pytest

from openstack_prep.openshift.check.capacity.image import image_limits
from tests.unit.conftest import IDENTITY, failure
from tests.unit.openshift.check.project import GLANCE, Project


def usage(project: Project, **limits: tuple[int, int]) -> None:
    told = {name: {"limit": limit, "usage": used} for name, (limit, used) in limits.items()}
    project.services.get(f"{GLANCE}/info/usage", json={"usage": told})
    project.services.get(f"{IDENTITY}/limits", json={"limits": []})
    default = {"service_id": "glance-id", "region_id": None}
    project.services.get(f"{IDENTITY}/registered_limits", json={"registered_limits": [default]})


def test_a_glance_that_tells_nothing_or_is_too_old_to(project: Project) -> None:
    usage(project)
    assert project.found(image_limits) == []
    project.services.get(f"{GLANCE}/info/usage", **failure(404))
    assert project.found(image_limits) == []


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({}, 2),
        ({"cluster_os_image": "https://mirror.example.com/rhcos.qcow2.gz"}, 2),
        ({"cluster_os_image": "rhcos"}, 1),
        ({"release": "4.3"}, 1),
    ],
)
def test_images_are_counted(project: Project, fields: dict[str, Any], count: int) -> None:
    usage(project, image_count_total=(10, 10 - count), image_size_total=(-1, 0))
    assert project.found(image_limits, **fields) == []
    usage(project, image_count_total=(10, 11 - count))
    (said,) = project.found(image_limits, **fields)
    assert said == f"error quota.image_count_total: {count} are needed, {count - 1} of 10 are free"


def test_rhcos_needs_room_unless_it_is_there(project: Project) -> None:
    usage(project, image_size_total=(3000, 700))
    (found,) = project.findings(image_limits)
    assert found.what == "2400 MiB are needed, 2300 of 3000 MiB are free"
    assert found.fix == (
        "openstack limit create --project admin-project --service glance-id --resource-limit 3100 image_size_total"
        "  # as an administrator"
    )
    project.services.get(f"{IDENTITY}/limits", json={"limits": [{"id": "l1", "project_id": "admin-project"}]})
    (found,) = project.findings(image_limits)
    assert found.fix == "openstack limit set --resource-limit 3100 l1  # as an administrator"
    assert project.found(image_limits, cluster_os_image="rhcos") == []
