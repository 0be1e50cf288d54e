"""The run of a spec, and who acts in its projects."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests_mock
import yaml

from openstack_prep.base.errors import ConfigError
from openstack_prep.base.secret import Secret
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import Key
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.identity.role_assignment import RoleAssignment, actors_of
from openstack_prep.resources.identity.user import User
from openstack_prep.resources.network.network import Network
from openstack_prep.spec import Spec, load_spec
from openstack_prep.verbs.opening import open_run, refuse_no_cloud
from tests.unit.conftest import ADMIN_PROJECT, connection

PASSWORD = Secret("correct-horse")
LAB, MORE = Project(name="lab"), Project(name="more")
ROLES = (
    RoleAssignment(user="ci", role="reader", project="lab"),
    RoleAssignment(user="ci", role="member", project="lab"),
    RoleAssignment(user="ci", role="member", project="more"),
    RoleAssignment(user="ci", role="member"),
    RoleAssignment(user="ops", role="member", project="lab"),
)


def acting(*resources: User | RoleAssignment) -> dict[Key | None, tuple[str, Project | None, list[str]]]:
    return {
        key: (each.user.key.name, each.project, [role.role for role in each.roles])  # type: ignore[attr-defined]
        for key, each in actors_of(resources).items()
    }


def test_the_first_user_with_a_password_acts_in_each_project() -> None:
    users = (User(name="ci", password=PASSWORD), User(name="ops", password=PASSWORD))
    assert acting(*ROLES, *users) == {
        LAB.key: ("ci", LAB, ["reader", "member"]),
        MORE.key: ("ci", MORE, ["member"]),
        None: ("ci", None, ["member"]),
    }
    (actor,) = (each for key, each in actors_of((*ROLES, *users)).items() if key == LAB.key)
    assert (actor.password, actor.user_domain) == (PASSWORD, "Default")


def test_a_user_who_cannot_log_in_does_not_act() -> None:
    locked = User(name="ci", password=PASSWORD, enabled=False)
    assert acting(*ROLES, locked, User(name="ops", password=PASSWORD)) == {LAB.key: ("ops", LAB, ["member"])}
    assert acting(*ROLES, User(name="ci")) == {}
    inherited = RoleAssignment(user="ci", role="member", project="lab", inherited=True)
    assert acting(inherited, User(name="ci", password=PASSWORD)) == {}


@pytest.mark.parametrize("chosen", [True, False])
def test_a_connection_to_a_project_that_is_not_chosen_works_there(services: requests_mock.Mocker, chosen: bool) -> None:
    """Nothing has to be looked for: the project need not even be visible."""
    home = Project(name=ADMIN_PROJECT)
    network = Network(name="net", project=ADMIN_PROJECT)
    spec = Spec("lab", (home, network), only=None if chosen else frozenset({network.key}))
    cloud = Cloud(connection())
    _, run = open_run(cloud, spec, jobs=1)
    assert run.homes == (home,)
    assert (run.find_tenant(None) is cloud, home.key in run.known) == (True, not chosen)
    if not chosen:
        assert (run.find_tenant(home), run.find_project_id(home)) == (cloud, ADMIN_PROJECT)


def test_the_entry_of_a_spec_does_the_projects_own_work(
    services: requests_mock.Mocker, clouds_yaml: Path, tmp_path: Path
) -> None:
    data = yaml.safe_load(clouds_yaml.read_text())
    data["clouds"]["worker"] = data["clouds"]["lab"]
    clouds_yaml.write_text(yaml.safe_dump(data))
    (tmp_path / "spec.yaml").write_text("name: lab\nclouds: {tenant: worker}\nnetworks: [{name: net}]\n")
    _, run = open_run(Cloud(connection()), load_spec(tmp_path / "spec.yaml"), jobs=1)
    tenant = run.find_tenant(None)
    assert tenant is not None
    assert tenant.name == "worker"


def test_what_to_pass_instead_of_a_name() -> None:
    for wrong, fix in (("admin", "pass connect('admin')"), (None, "pass connect(), or connect(connection=...)")):
        with pytest.raises(ConfigError) as caught:
            refuse_no_cloud(wrong)
        assert str(caught.value).endswith(fix)
