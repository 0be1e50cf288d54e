from __future__ import annotations

import pytest

from openstack_prep.openshift.check.capacity.quota import object_store, why_unusable
from tests.unit.conftest import failure
from tests.unit.openshift.check.project import SWIFT, Project
from tests.unit.texts import Wording, contains


def test_one_that_serves_us(project: Project) -> None:
    assert project.found(object_store) == []


@pytest.mark.parametrize(("release", "level"), [("4.18", "warning"), ("4.4", "warning"), ("4.3", "error")])
def test_without_one_the_registry_gets_a_volume_and_old_releases_stop(
    project: Project, release: str, level: str, wording: Wording
) -> None:
    project.without("object-store")
    (found,) = project.findings(object_store, release=release)
    assert found.status == level
    wording(found.what)
    assert found.code == "object-store.unusable"
    wording(found.fix)


def test_it_is_for_those_with_the_role_alone(project: Project) -> None:
    project.login(roles=("member", "reader"))
    (found,) = project.findings(object_store)
    assert found.code == "object-store.unusable"
    assert contains(found.what, "swiftoperator", "member", "reader")
    assert found.fix == (
        "openstack role create --or-show swiftoperator"
        " && openstack role add --user admin-user --project admin-project swiftoperator  # as an administrator"
    )
    project.login(roles=("member", "swiftoperator"))
    project.services.head(f"{SWIFT}/", **failure(403))
    (found,) = project.findings(object_store)
    assert "operator_roles" in found.fix


def test_one_that_refuses_is_asked_once(project: Project) -> None:
    asked = project.services.head(f"{SWIFT}/", **failure(403))
    context = project.context()
    assert contains(why_unusable(context), "HEAD", "403")
    assert why_unusable(context)
    assert asked.call_count == 1
