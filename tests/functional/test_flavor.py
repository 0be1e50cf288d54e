"""Flavors on a real Nova."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openstack_prep.base.errors import PlanRefused
from openstack_prep.resources.compute.flavor import Flavor
from tests.devcloud.faults import Fault
from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.lab import Lab


@pytest.fixture
def master(lab: Lab) -> Flavor:
    return Flavor(
        name=f"{lab.name}-master",
        vcpus=4,
        ram=16384,
        disk=25,
        swap=512,
        is_public=False,
        description="control plane",
        extra_specs={"hw:cpu_policy": "dedicated"},
        access=(lab.name,),
    )


def test_from_create_to_destroy(lab: Lab, master: Flavor) -> None:
    assert lab.apply(master)[str(master.key)] == "create"
    made = lab.admin.compute.find_flavor(master.name, get_extra_specs=True)
    assert (made.vcpus, made.ram, made.disk, made.swap) == (4, 16384, 25, 512)
    assert made.extra_specs == {"hw:cpu_policy": "dedicated"}
    assert made.description.startswith("control plane [openstack-prep:")
    assert [each["tenant_id"] for each in lab.admin.compute.get_flavor_access(made)] == [lab.project_id]
    assert str(master.key) in lab.destroy()
    assert lab.admin.compute.find_flavor(master.name) is None


def test_drift_is_mended_and_what_others_set_stays(lab: Lab, master: Flavor) -> None:
    lab.apply(master)
    made = lab.admin.compute.find_flavor(master.name)
    lab.admin.compute.create_flavor_extra_specs(made, {"hw:cpu_policy": "shared", "hw:numa_nodes": "1"})
    lab.admin.compute.flavor_remove_tenant_access(made, lab.project_id)
    (step,) = lab.plan(master).pending
    assert {change.field for change in step.changes} == {"extra_specs", "access"}
    assert lab.apply(master) == {str(master.key): "update"}
    specs = lab.admin.compute.find_flavor(master.name, get_extra_specs=True).extra_specs
    assert specs == {"hw:cpu_policy": "dedicated", "hw:numa_nodes": "1"}


def test_another_size_needs_consent(lab: Lab, master: Flavor) -> None:
    lab.apply(master)
    larger = replace(master, vcpus=8)
    made = lab.admin.compute.find_flavor(master.name)
    lab.admin.compute.create_flavor_extra_specs(made, {"hw:numa_nodes": "1"})
    with pytest.raises(PlanRefused, match="vcpus 4 -> 8"):
        lab.run(larger)
    lab.run(larger, allow_replace=True).raise_for_failures()
    made = lab.admin.compute.find_flavor(master.name, get_extra_specs=True)
    assert (made.vcpus, made.extra_specs) == (8, {"hw:cpu_policy": "dedicated", "hw:numa_nodes": "1"})


@pytest.mark.parametrize("request_of", ["os-extra_specs$", pytest.param("action$", marks=pytest.mark.more)])
def test_stopped_after_its_creation(lab: Lab, devcloud: Devcloud, master: Flavor, request_of: str) -> None:
    with devcloud.faults(Fault("nova", method="POST", path_regex=request_of, status=403)):
        assert "403" in lab.failure(master)
    assert lab.apply(master) == {str(master.key): "update"}


def test_a_lost_answer_makes_no_second_one(lab: Lab, devcloud: Devcloud, master: Flavor) -> None:
    with devcloud.faults(Fault("nova", method="POST", path_regex="/flavors$", drop_answer=True)):
        lab.apply(master)
    assert [each.name for each in lab.admin.compute.flavors(is_public=None) if each.name == master.name]
    assert str(master.key) in lab.destroy()
