from __future__ import annotations

from pathlib import Path

import pytest
import requests_mock

import openstack_prep as prep
from openstack_prep.base.errors import SpecError
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import Action
from openstack_prep.resources.credentials.application_credential import (
    ApplicationCredential,
    RotatedCredential,
    RotatedKeepingOld,
)
from openstack_prep.resources.identity.role_assignment import RoleAssignment
from openstack_prep.spec import Spec
from openstack_prep.verbs.rotation import plan_rotation
from tests.unit.conftest import IDENTITY, connection
from tests.unit.resources.credentials.test_application_credential import Keystone


@pytest.fixture
def cloud(services: requests_mock.Mocker) -> Cloud:
    return Cloud(connection())


@pytest.fixture
def keystone(services: requests_mock.Mocker) -> Keystone:
    services.get(f"{IDENTITY}/users", json={"users": [{"id": "u2", "name": "person", "enabled": True}]})
    services.get(f"{IDENTITY}/roles", json={"roles": [{"id": "r1", "name": "member"}]})
    return Keystone(services)


def credentials(folder: Path, *names: str) -> Spec:
    made = (ApplicationCredential(name=each, clouds_yaml=str(folder / "clouds.yaml"), cloud=each) for each in names)
    return Spec("lab", tuple(made))


@pytest.mark.parametrize(("chosen", "renewed"), [(None, ["a", "b"]), ("a", ["a"])])
@pytest.mark.parametrize("keep_old", [False, True])
def test_what_is_renewed(
    cloud: Cloud, keystone: Keystone, tmp_path: Path, chosen: str | None, renewed: list[str], keep_old: bool
) -> None:
    spec = credentials(tmp_path, "a", "b")
    prep.apply(cloud, spec).raise_for_failures()
    assert not prep.plan(cloud, spec)
    made = plan_rotation(cloud, spec, credential=chosen, keep_old=keep_old)
    assert made.refusals == ()
    kind = RotatedKeepingOld if keep_old else RotatedCredential
    assert [(each.key.name, type(each.resource), each.action) for each in made.pending] == [
        (name, kind, Action.UPDATE) for name in renewed
    ]
    prep.apply(cloud, made).raise_for_failures()
    assert sorted(keystone.names) == sorted(
        [f"{each}-new" for each in renewed] + [each for each in "ab" if keep_old or each not in renewed]
    )
    assert not prep.plan(cloud, spec)


def test_one_that_is_not_in_use_yet_is_planned_as_by_plan(cloud: Cloud, keystone: Keystone, tmp_path: Path) -> None:
    prep.apply(cloud, credentials(tmp_path, "a")).raise_for_failures()
    made = plan_rotation(cloud, credentials(tmp_path, "a", "b"))
    assert [(each.key.name, each.action) for each in made.pending] == [("a", Action.UPDATE), ("b", Action.CREATE)]


def test_its_roles_are_given_and_others_are_not(
    cloud: Cloud, services: requests_mock.Mocker, keystone: Keystone, tmp_path: Path
) -> None:
    """A new credential has the roles that its user has then."""
    needed = RoleAssignment(role="member", user="person")
    spec = credentials(tmp_path, "a")
    spec = Spec("lab", (*spec.resources, needed, RoleAssignment(role="member", user="person", domain="Default")))
    made = plan_rotation(cloud, spec)
    assert [str(each.key) for each in made.pending] == [str(needed.key), "application_credential/a"]


def test_a_credential_that_is_not_declared(cloud: Cloud, tmp_path: Path) -> None:
    for name in ("c", None):
        with pytest.raises(SpecError):
            plan_rotation(cloud, credentials(tmp_path, *("a" if name else ())), credential=name)
