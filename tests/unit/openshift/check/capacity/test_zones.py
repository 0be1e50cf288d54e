from __future__ import annotations

from openstack_prep.openshift.check.capacity.machines import zones
from openstack_prep.openshift.install_config import MachinePool, Machines, RootVolume
from tests.unit.openshift.check.project import CINDER, NOVA, Project
from tests.unit.texts import Wording


def info(**zones: bool) -> dict[str, object]:
    return {"availabilityZoneInfo": [{"zoneName": name, "zoneState": {"available": up}} for name, up in zones.items()]}


def test_nothing_is_asked_where_nothing_is_named(project: Project) -> None:
    assert project.found(zones) == []  # any request would fail here


def test_what_is_there_and_what_is_not(project: Project, wording: Wording) -> None:
    project.services.get(f"{NOVA}/os-availability-zone", json=info(az1=True, az2=False))
    project.services.get(f"{CINDER}/os-availability-zone", json=info(nova=True))
    project.services.get(f"{CINDER}/types", json={"volume_types": [{"name": "fast"}]})
    right = Machines(zones=("az1",), root_volume=RootVolume(size=100, types=("fast",), zones=("nova",)))
    assert project.found(zones, machines=right) == []
    wrong = Machines(zones=("az1", "az2"), root_volume=RootVolume(size=100, types=("slow",), zones=("az1",)))
    wording(project.found(zones, machines=wrong))
    (said,) = project.found(zones, machines=right, compute=MachinePool(zones=("az3",)))
    assert said.startswith("error compute.platform.openstack.zones: ")
