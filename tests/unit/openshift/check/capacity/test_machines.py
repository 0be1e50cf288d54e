from __future__ import annotations

from openstack_prep.openshift.check.capacity.machines import effective, groups, said_in
from openstack_prep.openshift.install_config import MachinePool, Machines, RootVolume
from tests.unit.openshift.check.neutron import cluster
from tests.unit.openshift.check.project import Project

VOLUME = RootVolume(size=100, types=("a",))


def test_what_a_pool_says_wins_a_field_at_a_time() -> None:
    of_all = Machines(flavor="m", zones=("a",), root_volume=VOLUME)
    found = effective(cluster(machines=of_all, compute=MachinePool(zones=("b", "c"))), "compute")
    assert found == Machines(flavor="m", zones=("b", "c"), root_volume=VOLUME)


def test_bootstrap_is_one_more_like_the_control_plane() -> None:
    masters, workers, bootstrap = groups(
        cluster(control_plane=MachinePool(flavor="m"), compute=MachinePool(replicas=7))
    )
    assert [masters.count, workers.count, bootstrap.count] == [3, 7, 1]
    assert bootstrap.like == masters.like


def test_where_it_stands(project: Project) -> None:
    context = project.context(machines=Machines(flavor="m", root_volume=VOLUME), compute=MachinePool(flavor="w"))
    assert said_in(context, "compute", "flavor") == "compute.platform.openstack.type"
    assert said_in(context, "control_plane", "flavor") == "platform.openstack.defaultMachinePlatform.type"
    assert (
        said_in(context, "compute", "root_volume.size") == "platform.openstack.defaultMachinePlatform.rootVolume.size"
    )
