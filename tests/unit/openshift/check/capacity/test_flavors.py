from __future__ import annotations

from typing import Any

import pytest

from openstack_prep.openshift.check.capacity.machines import flavors_of_machines
from openstack_prep.openshift.install_config import MachinePool, Machines, RootVolume
from tests.unit.openshift.check.project import Project, flavor
from tests.unit.texts import Wording, contains

ALL = "platform.openstack.defaultMachinePlatform.type"
VOLUME = RootVolume(size=100, types=("fast",))


def test_flavors_that_are_large_enough(project: Project) -> None:
    assert project.found(flavors_of_machines, compute=MachinePool(flavor="worker")) == []


def test_one_that_is_missing_is_told_once_and_with_what_the_installer_makes_of_it(
    project: Project, wording: Wording
) -> None:
    (found,) = project.findings(flavors_of_machines, machines=Machines(flavor="my flavor"))
    assert found.where == ALL
    assert found.code == "flavor.missing"
    wording(found.what)
    assert found.code == "flavor.missing"
    wording(found.why)
    assert found.fix.startswith("openstack flavor create --ram 16384 --vcpus 4 --disk 100 'my flavor'  # as an admin")
    assert "openstack flavor set --project admin-project 'my flavor'" in found.fix


def test_one_with_a_spelling_mistake_is_asked_for_first(project: Project) -> None:
    (found,) = project.findings(flavors_of_machines, compute=MachinePool(flavor="wroker"))
    assert found.fix.startswith("did you mean worker? ")
    assert "openstack flavor set --project admin-project wroker" in found.fix  # it may be private


def test_one_for_both_pools_is_created_as_large_as_the_larger_one_needs(project: Project) -> None:
    found = project.findings(
        flavors_of_machines, control_plane=MachinePool(flavor="x"), compute=MachinePool(flavor="x")
    )
    assert len(found) == 2
    assert all(each.fix.startswith("openstack flavor create --ram 16384 --vcpus 4 ") for each in found)


def test_the_smallest_that_is_large_enough_is_named(project: Project) -> None:
    project.flavors += [flavor("x", 1024), flavor("metal", baremetal="true"), flavor("huge", 65536)]
    (found,) = project.findings(flavors_of_machines, control_plane=MachinePool(flavor="x"))
    assert found.fix == "write master, of 16384 MiB, 4 vCPUs and 100 GiB"
    project.flavors = [each for each in project.flavors if each["name"] in ("x", "worker", "metal")]
    given = {"machines": Machines(), "compute": MachinePool(flavor="worker")}
    (found,) = project.findings(flavors_of_machines, control_plane=MachinePool(flavor="x"), **given)
    created = "openstack flavor create --ram 16384 --vcpus 4 --disk 100 dev-control-plane"
    assert found.code == "flavor.too-small"
    assert contains(found.fix, created, "dev-control-plane")


def test_the_default_counts_though_no_pool_has_it(project: Project) -> None:
    pools = {"control_plane": MachinePool(flavor="master"), "compute": MachinePool(flavor="nobodys")}
    found = project.findings(flavors_of_machines, machines=Machines(flavor="gone"), **pools)
    assert [each.where for each in found] == ["compute.platform.openstack.type", ALL]
    assert "--ram 8192 --vcpus 2" in found[0].fix


def test_a_pool_without_any_is_told_by_the_rules_and_not_here(project: Project) -> None:
    assert project.found(flavors_of_machines, machines=Machines()) == []


@pytest.mark.parametrize(
    ("sizes", "found"),
    [
        ({"ram": 16383}, ["error {}: flavor 'x' has 16383 MiB, 16384 are needed"]),
        ({"vcpus": 3}, ["error {}: flavor 'x' has 3 vCPUs, 4 are needed"]),
        ({"disk": 24}, ["error {}: flavor 'x' has a disk of 24 GiB"]),
        ({"disk": 25}, ["warning {}: flavor 'x' has a disk of 25 GiB"]),
        ({"disk": 99}, ["warning {}: flavor 'x' has a disk of 99 GiB"]),
        ({"ram": 1, "vcpus": 1, "disk": 1, "baremetal": "true"}, []),
    ],
)
def test_minima_of_the_control_plane(project: Project, sizes: dict[str, Any], found: list[str]) -> None:
    project.flavors.append(flavor("x", **sizes))
    where = "controlPlane.platform.openstack.type"
    assert project.found(flavors_of_machines, control_plane=MachinePool(flavor="x")) == [
        each.format(where) for each in found
    ]


def test_minima_of_workers_are_lower(project: Project, wording: Wording) -> None:
    project.flavors.append(flavor("x", 8191, 1))
    wording(project.found(flavors_of_machines, compute=MachinePool(flavor="x")))


def test_a_root_volume_stands_for_the_disk(project: Project, wording: Wording) -> None:
    project.flavors.append(flavor("x", disk=0))
    pool = MachinePool(flavor="x", root_volume=VOLUME)
    assert project.found(flavors_of_machines, control_plane=pool) == []
    small = MachinePool(flavor="x", root_volume=RootVolume(size=99, types=("fast",)))
    (said,) = project.found(flavors_of_machines, control_plane=small)
    wording(said)
