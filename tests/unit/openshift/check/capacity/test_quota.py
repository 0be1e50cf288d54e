from __future__ import annotations

import pytest

from openstack_prep.openshift.check.capacity.quota import quota
from openstack_prep.openshift.install_config import MachinePool, Machines, RootVolume
from tests.unit.conftest import failure
from tests.unit.openshift.check.project import UNLIMITED, Project

TWO = MachinePool(replicas=2)


def test_without_limits_nothing_is_found(project: Project) -> None:
    project.quotas["compute"] = {"cores": UNLIMITED, "ram": UNLIMITED, "server_group_members": UNLIMITED}
    assert project.found(quota) == []


def test_what_is_used_and_reserved_is_not_free(project: Project) -> None:
    project.quotas["compute"] = {"cores": {"limit": 30, "in_use": 4, "reserved": 3}}
    (found,) = project.findings(quota, compute=TWO)
    assert found.what == "24 are needed (3 x 4 + 2 x 4 + 1 x 4), 23 of 30 are free"
    spec = "or set quota in the spec, which otherwise resets it"
    assert found.fix == f"openstack quota set --cores 31 admin-project  # as an administrator; {spec}"


def test_more_in_use_than_allowed_is_nothing_free(project: Project) -> None:
    project.quotas["network"] = {"port": {"limit": 10, "used": 15, "reserved": 0}}
    assert "0 of 10 are free" in project.found(quota)[0]


def test_the_group_called_default_is_yet_to_come_in_a_project_that_nobody_used(project: Project) -> None:
    project.quotas["network"] = {
        "security_group": {"limit": 2, "used": 0, "reserved": 0},
        "security_group_rule": {"limit": 59, "used": 0, "reserved": 0},
    }
    groups, rules = project.findings(quota)
    assert groups.what.endswith(" 1 of 2 are free")
    assert rules.what.endswith(" 55 of 59 are free")
    assert rules.fix.startswith("openstack quota set --secgroup-rules 60 admin-project ")


def test_members_are_counted_a_group(project: Project) -> None:
    project.quotas["compute"] = {"server_group_members": {"limit": 3, "in_use": 3, "reserved": 0}}
    assert project.found(quota) == []


def test_a_volume_type_has_a_name_of_its_own_words(project: Project) -> None:
    project.quotas["volume"] = {"gigabytes_very fast": {"limit": 10, "in_use": 0, "reserved": 0}}
    machines = Machines(flavor="master", root_volume=RootVolume(size=100, types=("very fast",)))
    (found,) = project.findings(quota, machines=machines)
    assert found.where == "quota.gigabytes_very fast"
    assert found.what.startswith("700 GiB are needed")
    assert found.fix.startswith("openstack quota set --volume-type 'very fast' --gigabytes 700 admin-project ")


@pytest.mark.parametrize(
    ("status", "level", "why"), [(403, "unknown", "is skipped, too"), (501, "error", "fails, too")]
)
def test_a_service_that_does_not_tell_leaves_the_others(project: Project, status: int, level: str, why: str) -> None:
    project.fail("GET", "http://neutron/v2.0/quotas/.*", **failure(status, "not yours"))
    project.quotas["compute"] = {"instances": {"limit": 1, "in_use": 0, "reserved": 0}}
    found = {each.where: each for each in project.findings(quota)}
    instances, network = found["quota.instances"], found["quota"]
    assert (instances.where, instances.status) == ("quota.instances", "error")
    assert (network.where, network.status) == ("quota", level)
    assert why in network.why
    assert "not yours" in network.what
    assert "11 ports" in network.why
