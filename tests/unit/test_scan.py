from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import requests_mock

from openstack_prep import executor, scan
from openstack_prep.cloud import Cloud
from openstack_prep.model import Mark, Resource
from openstack_prep.resources import Flavor, Network, Project, RoleAssignment, SecurityGroup, User
from openstack_prep.resources.security_group import SecurityGroupRules
from openstack_prep.resources.security_group_rule import SecurityGroupRule
from openstack_prep.site import Site
from tests.unit.conftest import ADMIN_PROJECT, IDENTITY, connection

NEUTRON = "http://neutron/v2.0"
LAB = Project(name="lab")
DOMAIN = {"id": "default", "name": "Default"}
OURS = "[openstack-prep:lab/x]"


def project(project_id: str, name: str, *tags: str) -> dict[str, Any]:
    return {"id": project_id, "name": name, "domain_id": "default", "enabled": True, "tags": list(tags)}


@pytest.fixture(autouse=True)
def cloud(empty_cloud: requests_mock.Mocker) -> requests_mock.Mocker:
    """Project lab is that of the connection, too; nothing else stands there."""
    empty_cloud.get(
        f"{IDENTITY}/projects?name=lab", json={"projects": [project(ADMIN_PROJECT, "lab", "openstack-prep:lab")]}
    )
    return empty_cloud


def left(*resources: Resource) -> dict[str, bool]:
    """Return what the resources leave undeclared, each with whether it is the spec's for sure."""
    site = Site(Cloud(connection()), Mark("lab"), homes=scan.homes_of(resources) or (None,))
    observed = executor.observe(site, resources)
    site.known.update(observed)
    return {str(each.key): found.ours for each, found in scan.undeclared(site, resources, observed, jobs=1)}


# --- one thing under two names --------------------------------------------------------------


def test_the_connections_own_project_may_be_named_too(cloud: requests_mock.Mocker) -> None:
    rule = {
        "id": "r",
        "security_group_id": "g",
        "direction": "ingress",
        "ethertype": "IPv4",
        "protocol": "tcp",
        "description": OURS,
    }
    rule |= {"port_range_min": 22, "port_range_max": 22, "remote_ip_prefix": None, "remote_group_id": None}
    group = {"id": "g", "name": "web", "description": "", "stateful": True, "security_group_rules": [rule]}
    cloud.get(f"{NEUTRON}/security-groups", json={"security_groups": [group | {"project_id": ADMIN_PROJECT}]})
    rules = (SecurityGroupRule(protocol="tcp", ports="22"),)
    declared: Sequence[Resource] = (SecurityGroup(name="web"), SecurityGroupRules(name="web", rules=rules))
    assert left(*declared, Network(name="net", project="lab")) == {}
    assert left(Network(name="net", project="lab"), Network(name="other")) == {"security_group_rules/web": True}


def test_a_role_is_known_by_what_it_is_not_by_what_it_is_called(cloud: requests_mock.Mocker) -> None:
    user = {"id": "u1", "name": "ops", "description": OURS, "enabled": True, "domain": DOMAIN}
    role = {"role": {"id": "r1", "name": "member"}, "user": user, "scope": {"project": {"id": ADMIN_PROJECT}}}
    cloud.get(f"{IDENTITY}/users", json={"users": [user]})  # Keystone on MySQL compares names without case
    cloud.get(f"{IDENTITY}/roles", json={"roles": [role["role"]]})
    cloud.get(f"{IDENTITY}/role_assignments", json={"role_assignments": [role]})
    ops = User(name="Ops")
    assert left(LAB, ops, RoleAssignment(role="member", user="Ops", project="lab")) == {}
    assert left(LAB, ops, RoleAssignment(role="member", user="Ops"), Network(name="net", project="lab")) == {}
    assert left(LAB, ops) == {"role_assignment/user:ops@project:lab/member": True}


# --- two specs of one name ------------------------------------------------------------------


def flavor(home: str) -> dict[str, Any]:
    text = Mark("lab", home=home).describe("small")
    return {"id": "f1", "name": "small", "ram": 512, "vcpus": 1, "disk": 0, "description": text}


@pytest.mark.parametrize(
    ("home", "expected"),
    [
        (ADMIN_PROJECT, {"flavor/small": True}),
        ("", {"flavor/small": False}),
        ("gone", {"flavor/small": False}),
        ("of-another", {}),
    ],
)
def test_a_flavor_is_the_specs_by_its_home_project(
    cloud: requests_mock.Mocker, home: str, expected: dict[str, bool]
) -> None:
    cloud.get("http://nova/v2.1/flavors/detail", json={"flavors": [flavor(home)]})
    cloud.get(f"{IDENTITY}/projects/gone", status_code=404)
    cloud.get(f"{IDENTITY}/projects/of-another", json={"project": project("of-another", "their")})
    assert left(LAB) == expected


@pytest.mark.parametrize(("home", "ours"), [(ADMIN_PROJECT, True), ("", True), ("gone", True), ("of-another", False)])
def test_a_declared_flavor_of_another_specs_home_is_not_managed(
    cloud: requests_mock.Mocker, home: str, ours: bool
) -> None:
    cloud.get("http://nova/v2.1/flavors/detail", json={"flavors": [flavor(home)]})
    cloud.get(f"{IDENTITY}/projects/gone", status_code=404)
    cloud.get(f"{IDENTITY}/projects/of-another", json={"project": project("of-another", "their")})
    site = Site(Cloud(connection()), Mark("lab"), homes=[LAB])
    (found,) = executor.observe(site, [Flavor(name="small")]).values()
    assert found.ours is ours


def test_an_undeclared_project_is_the_specs_when_it_names_the_home_project(cloud: requests_mock.Mocker) -> None:
    tag = "openstack-prep:lab"
    second, other = project("p2", "second", f"{tag}~{ADMIN_PROJECT}", tag), project("p3", "other", tag)
    tagged = [project(ADMIN_PROJECT, "lab", tag), second, other]
    cloud.get(f"{IDENTITY}/projects?tags=openstack-prep%3Alab", json={"projects": tagged})
    cloud.get(f"{IDENTITY}/projects?name=second", json={"projects": [second]})
    network = {"id": "n", "name": "net", "description": OURS, "project_id": "p2"}
    cloud.get(f"{NEUTRON}/networks?project_id=p2", json={"networks": [network]})
    assert left(LAB) == {"project/second": True, "project/other": False, "network/net": True}
    declared = Network(name="net", project="second")
    assert left(Project(name="second"), declared) == {"project/lab": True, "project/other": False}
