"""The whole life of a spec: plan, apply, apply again, drift, destroy; and what ``openstack`` says of it."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.conftest import Prep


def scenario(name: str) -> dict[str, Any]:
    """Return the scenario of the shipped ``openshift-lab`` spec under names of its own."""
    return {
        "name": name,
        "project": {"name": f"{name}-project", "description": "a lab"},
        "users": [{"name": f"{name}-user", "password": {"env": "PREP_PASSWORD"}}],
        "role_assignments": [
            *({"user": f"{name}-user", "role": role} for role in ("member", "admin", "swiftoperator")),
            {"user": "admin", "role": "admin"},
        ],
        "quota": {"cores": 40, "ram": "100GiB", "security_groups": 40, "security_group_rules": 500},
        "flavors": [{"name": f"{name}-master", "ram": "16GiB", "vcpus": 4, "disk": 25}],
        "images": [{"name": f"{name}-rhcos", "source": "disk.qcow2", "disk_format": "qcow2"}],
        "floating_ips": [
            {"name": "api", "external_network": "external", "address": "192.168.122.164"},
            {"name": "ingress", "external_network": "external", "address": "192.168.122.180"},
        ],
        "object_store": {"temp_url_key": {"env": "PREP_TEMP_URL_KEY"}},
        "clouds_yaml": [{"path": "clouds.yaml", "cloud": name, "user": f"{name}-user"}],
        "env_file": {"path": "env", "cloud": name},
    }


@pytest.fixture
def name() -> str:
    return f"s{secrets.token_hex(3)}"


@pytest.fixture
def applied(prep: Prep, name: str) -> Prep:
    prep.write(scenario(name))
    prep.apply()
    return prep


def test_apply_makes_what_the_spec_says(applied: Prep, name: str) -> None:
    project = applied.openstack("project", "show", f"{name}-project")
    assert project["description"] == "a lab"
    quota = applied.openstack("quota", "show", project["id"])
    limits = {each["Resource"]: each["Limit"] for each in quota}
    assert {each: limits[each] for each in ("cores", "ram", "secgroups", "secgroup-rules") if each in limits} or limits
    assert limits["cores"] == 40
    assert limits["ram"] == 102400
    roles = applied.openstack("role", "assignment", "list", "--names", "--project", project["id"])
    assert {(each["User"], each["Role"]) for each in roles} == {
        (f"{name}-user@Default", "member"),
        (f"{name}-user@Default", "admin"),
        (f"{name}-user@Default", "swiftoperator"),
        ("admin@Default", "admin"),
    }
    tenant = {"OS_CLIENT_CONFIG_FILE": str(applied.folder / "clouds.yaml"), "OS_CLOUD": name}
    addresses = applied.openstack("floating", "ip", "list", "--project", project["id"], **tenant)
    assert {each["Floating IP Address"] for each in addresses} == {"192.168.122.164", "192.168.122.180"}
    flavor = applied.openstack("flavor", "show", f"{name}-master")
    assert (flavor["ram"], flavor["vcpus"], flavor["disk"]) == (16384, 4, 25)
    assert applied.openstack("image", "show", f"{name}-rhcos", **tenant)["status"] == "active"


def test_a_second_apply_does_nothing_in_few_requests(applied: Prep, devcloud: Devcloud) -> None:
    mark = devcloud.mark()
    report = applied.apply()
    assert {step["action"] for step in report.values()} == {"keep"}
    requests = devcloud.requests_since(mark)
    assert {request.method for request in requests} <= {"GET", "HEAD", "POST"}
    assert {request.path for request in requests if request.method == "POST"} == {"/v3/auth/tokens"}
    assert len(requests) <= 25, [f"{each.service} {each.method} {each.path}" for each in requests]


def test_drift_is_shown_and_mended(applied: Prep, name: str, devcloud: Devcloud) -> None:
    project = devcloud.admin.identity.find_project(f"{name}-project")
    devcloud.admin.compute.update_quota_set(project, cores=7)
    assert "cores 7 -> 40" in applied.run("plan", applied.spec.name).stdout
    assert applied.run("plan", "--detailed-exitcode", applied.spec.name, code=2)
    assert applied.apply()[f"quota/{name}-project"]["action"] == "update"
    assert applied.changes() == set()


def test_destroy_leaves_the_cloud_as_it_was(prep: Prep, name: str, devcloud: Devcloud) -> None:
    before = inventory(devcloud)
    prep.write(scenario(name))
    prep.apply()
    assert inventory(devcloud) != before
    prep.destroy()
    assert inventory(devcloud) == before
    assert prep.destroy().stdout.count("\n") <= 2


def inventory(devcloud: Devcloud) -> dict[str, set[str]]:
    """Return the ids of everything in the cloud."""
    admin = devcloud.admin
    listings = {
        "projects": admin.identity.projects(),
        "users": admin.identity.users(),
        "role assignments": admin.identity.role_assignments(),
        "flavors": admin.compute.flavors(get_extra_specs=False),
        "images": admin.image.images(),
        "networks": admin.network.networks(),
        "ports": admin.network.ports(),
        "floating ips": admin.network.ips(),
        "groups": admin.network.security_groups(),
        "quotas": admin.network.quotas(),
    }
    return {kind: {str(each.id or each.to_dict()) for each in found} for kind, found in listings.items()}


def test_a_new_password_and_work_as_the_user_in_one_apply(applied: Prep, name: str) -> None:
    applied.environment["PREP_PASSWORD"] = "another-password-of-the-test"
    applied.write(scenario(name) | {"networks": [{"name": "nodes"}]})
    report = applied.apply()
    assert report[f"user/{name}-user"]["action"] == "update"
    assert report["network/nodes"]["status"] == "done"
    assert applied.changes() == set()


def test_names_that_would_end_our_mark(prep: Prep, devcloud: Devcloud) -> None:
    name = f"o,c/p ]{secrets.token_hex(3)}"
    prep.write(
        {
            "name": name,
            "project": {"name": "a strange [one]"},
            "networks": [{"name": "n]/1"}],
            "floating_ips": [{"name": "api]", "external_network": "external"}],
        }
    )
    prep.apply()
    assert prep.changes() == set()
    prep.destroy()
    assert devcloud.admin.identity.find_project("a strange [one]") is None
