"""Things of one name in two domains or two projects are two things."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from openstack.connection import Connection

from openstack_prep.base.errors import SpecError
from openstack_prep.base.secret import Secret
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import Resource
from openstack_prep.resources.compute.quota import Quota
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.identity.role_assignment import RoleAssignment
from openstack_prep.resources.identity.user import User
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.security_group import SecurityGroup
from openstack_prep.resources.network.subnet import Subnet
from openstack_prep.spec import Spec
from openstack_prep.verbs import api
from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.conftest import Prep


@pytest.fixture
def corp(devcloud: Devcloud) -> Iterator[str]:
    """A second domain, with a user ``ops`` of somebody else's."""
    identity = devcloud.admin.identity
    domain = identity.create_domain(name=f"corp-{secrets.token_hex(3)}")
    identity.create_user(name="ops", domain_id=domain.id, description="somebody else's")
    yield str(domain.name)
    identity.update_domain(domain, enabled=False)
    identity.delete_domain(domain)


def roles_of(admin: Connection, user_id: str, project_id: str) -> set[str]:
    found = admin.identity.role_assignments(user_id=user_id, scope_project_id=project_id, include_names=True)
    return {each.role["name"] for each in found}


def test_a_role_goes_to_the_user_of_the_domain_that_is_named(prep: Prep, devcloud: Devcloud, corp: str) -> None:
    prep.write(
        {
            "name": "two-domains",
            "project": {"name": "two-domains"},
            "users": [{"name": "ops"}],
            "role_assignments": [{"user": "ops", "user_domain": corp, "role": "admin"}],
        }
    )
    prep.apply()
    identity = devcloud.admin.identity
    project = identity.find_project("two-domains", ignore_missing=False)
    here = identity.find_user("ops", domain_id="default", ignore_missing=False)
    domain = identity.find_domain(corp, ignore_missing=False)
    there = identity.find_user("ops", domain_id=domain.id, ignore_missing=False)
    assert roles_of(devcloud.admin, here.id, project.id) == set()
    assert roles_of(devcloud.admin, there.id, project.id) == {"admin"}
    assert prep.changes() == set()
    prep.destroy()
    assert identity.find_user("ops", domain_id=domain.id) is not None
    assert identity.find_user("ops", domain_id="default") is None


def test_users_of_one_name_in_two_domains_are_both_made(prep: Prep, devcloud: Devcloud, corp: str) -> None:
    prep.write(
        {
            "name": "both-domains",
            "project": {"name": "both-domains"},
            "users": [{"name": "dev"}, {"name": "dev", "domain": corp}],
            "role_assignments": [
                {"user": "dev", "role": "reader"},
                {"user": "dev", "user_domain": corp, "role": "member"},
            ],
        }
    )
    done = prep.apply()
    assert {"user/dev", f"user/dev@{corp}"} <= done.keys()
    assert prep.changes() == set()
    identity = devcloud.admin.identity
    domain = identity.find_domain(corp, ignore_missing=False)
    project = identity.find_project("both-domains", ignore_missing=False)
    there = identity.find_user("dev", domain_id=domain.id, ignore_missing=False)
    assert roles_of(devcloud.admin, there.id, project.id) == {"member"}


def test_two_projects_hold_things_of_one_name(devcloud: Devcloud) -> None:
    names = [f"twin{secrets.token_hex(3)}{letter}" for letter in "ab"]
    resources: list[Resource] = []
    for number, name in enumerate(names):
        resources += [
            Project(name=name),
            User(name=name, password=Secret("of-the-lab")),
            RoleAssignment(role="member", user=name, project=name),
            Network(name="net", project=name),
            Subnet(name="sub", network="net", cidr=f"10.{number}.0.0/24", project=name),
            SecurityGroup(name="group", project=name),
        ]
    cloud, spec = Cloud(devcloud.admin), Spec("two-projects", tuple(resources))
    try:
        api.apply(cloud, spec).raise_for_failures()
        assert not api.plan(cloud, spec), str(api.plan(cloud, spec))
        for number, name in enumerate(names):
            project = devcloud.admin.identity.find_project(name, ignore_missing=False)
            (network,) = devcloud.admin.network.networks(project_id=project.id)
            (subnet,) = devcloud.admin.network.subnets(project_id=project.id)
            assert (subnet.network_id, subnet.cidr) == (network.id, f"10.{number}.0.0/24")
    finally:
        api.destroy(cloud, spec).raise_for_failures()
    assert all(devcloud.admin.identity.find_project(name) is None for name in names)


def test_a_list_works_in_its_only_project_not_in_the_administrators(devcloud: Devcloud) -> None:
    admin, name = devcloud.admin, f"only{secrets.token_hex(3)}"
    cloud, own = Cloud(admin), admin.current_project_id
    listed = [Quota(cores=3), Network(name=f"net-{name}"), Project(name=name)]

    def quota(project: str) -> int:
        return int(admin.compute.get_quota_set(project).cores)

    before = quota(own)
    try:
        with pytest.raises(SpecError):  # whose quota would it be?
            api.apply(cloud, [*listed, Project(name=f"{name}-second")], name=name)
        assert admin.identity.find_project(name) is None
        assert len(api.plan(cloud, listed, prune=True).pending) == 3
        api.apply(cloud, listed).raise_for_failures()
        project = admin.identity.find_project(name, ignore_missing=False)
        assert (quota(own), quota(project.id)) == (before, 3)
        assert [each.project_id for each in admin.network.networks(name=f"net-{name}")] == [project.id]
        assert not api.plan(cloud, listed[::-1], prune=True)
        assert {key.kind: found is not None for key, found in api.show(cloud, listed).items()} == {
            "project": True,
            "quota": True,
            "network": True,
        }
    finally:
        api.destroy(cloud, listed).raise_for_failures()
    assert admin.identity.find_project(name) is None
    assert not list(admin.network.networks(name=f"net-{name}"))
    assert quota(own) == before


@pytest.mark.parametrize("role", ["member", "reader"])
def test_members_declare_their_project_their_user_and_their_role(prep: Prep, devcloud: Devcloud, role: str) -> None:
    """Members of a project may list neither projects nor users, roles and assignments."""
    identity, name = devcloud.admin.identity, f"shop{secrets.token_hex(3)}"
    project = identity.create_project(name=name, domain_id="default")
    user = identity.create_user(name=name, password=f"{name}-pw", domain_id="default", description="of the shop")
    identity.assign_project_role_to_user(project, user, identity.find_role(role))
    auth_url = devcloud.admin.config.config["auth"]["auth_url"]
    login = {"auth_url": auth_url, "username": name, "password": f"{name}-pw", "user_domain_name": "Default"}
    entry = {"auth": {**login, "project_name": name, "project_domain_name": "Default"}}
    (prep.folder / "clouds.yaml").write_text(yaml.safe_dump({"clouds": {name: entry}}))
    as_admin, prep.environment["OS_CLOUD"] = dict(prep.environment), name
    prep.environment["OS_CLIENT_CONFIG_FILE"] = str(prep.folder / "clouds.yaml")
    own: dict[str, Any] = {
        "name": name,
        "project": {"name": name},
        "users": [{"name": name, "password": {"env": "SHOP_PASSWORD"}}],
        "role_assignments": [{"user": name, "role": role}],
    }
    prep.environment["SHOP_PASSWORD"] = f"{name}-pw"
    try:
        prep.write(own)
        assert set(prep.plan().values()) == {"keep"}
        prep.apply()
        prep.write({**own, "networks": [{"name": "net"}]})
        if role == "reader":
            assert "create_network" in prep.run("apply", "--yes", prep.spec.name, code=1).stdout
        else:
            assert prep.apply()["network/net"]["action"] == "create"
            assert prep.changes() == set()
            prep.apply()
            prep.write({**own, "role_assignments": [{"user": name, "role": "admin"}]})
            assert "list_roles" in prep.run("plan", prep.spec.name, code=1).stderr
            prep.write({**own, "networks": [{"name": "net"}]})
        prep.destroy()
        assert not list(devcloud.admin.network.networks(project_id=project.id))
        assert identity.get_user(user).description == "of the shop"
        assert roles_of(devcloud.admin, user.id, project.id) == {role}
    finally:
        prep.environment.update(as_admin)
        identity.delete_user(user)
        identity.delete_project(project)
        prep.spec.unlink()
