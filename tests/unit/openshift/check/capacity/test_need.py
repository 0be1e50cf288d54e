from __future__ import annotations

from typing import Any

import pytest

from openstack_prep.openshift.check.capacity.quota import needs
from openstack_prep.openshift.install_config import MachinePool, Machines, ResourceReference, RootVolume
from tests.unit.openshift.check.project import MACHINES, Project

OWN = (ResourceReference(id="0f2c8a4e-6b1d-4c3e-9a57-2d1b8e6f4a90"),)
VOLUME = RootVolume(size=100, types=("fast",))


def numbers(project: Project, **fields: Any) -> dict[str, int]:
    return {name: need.number for name, need in needs(project.context(**fields)).items()}


def test_a_cluster_of_three_and_two_at_its_peak(project: Project) -> None:
    assert numbers(project, compute=MachinePool(replicas=2, flavor="worker")) == {
        "instances": 6,
        "cores": 20,
        "ram": 81920,
        "ports": 10,
        "networks": 1,
        "subnets": 1,
        "routers": 1,
        "security_groups": 2,
        "security_group_rules": 56,
        "floating_ips": 1,
        "server_groups": 2,
        "server_group_members": 3,
    }


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"compute": MachinePool(replicas=10)},
            {"instances": 14, "cores": 56, "ports": 18, "server_group_members": 10},
        ),
        ({"compute": MachinePool(replicas=0)}, {"instances": 4, "security_group_rules": 56, "server_group_members": 3}),
        ({"compute": MachinePool(replicas=0), "release": "4.6"}, {"security_group_rules": 45, "ports": 8}),
        ({"release": "4.6"}, {"security_group_rules": 42}),
        ({"release": "4.4"}, {"server_groups": None, "server_group_members": None}),
        ({"release": "4.9"}, {"server_groups": 1, "server_group_members": 3}),
        ({"release": "4.19"}, {"server_groups": 2, "server_group_members": 4}),
        ({"release": "4.19", "machines": Machines(flavor="master", zones=("a", "b"))}, {"server_group_members": 5}),
        ({"release": "5.0", "compute": MachinePool(replicas=10)}, {"server_group_members": 10}),
        ({"machines": Machines(flavor="master", zones=("a", "b", "c"))}, {"server_groups": 4}),
        ({"compute": MachinePool(replicas=7, zones=("a", "b"))}, {"server_groups": 3, "server_group_members": 4}),
        ({"machines_subnets": OWN}, {"networks": None, "routers": None, "ports": 10}),
        ({"machines_subnets": OWN, "release": "4.6"}, {"ports": 9}),
        ({"load_balancer": "UserManaged", "release": "4.13"}, {"ports": 10}),
        ({"machine_networks": ("10.0.0.0/16", "fd00::/64"), "machines_subnets": OWN}, {"ports": 10}),
        ({"machine_networks": ("10.0.0.0/16", "10.1.0.0/16"), "compute": MachinePool(replicas=0)}, {"ports": 8}),
        ({"machines": Machines(flavor="master", additional_networks=("n",))}, {"ports": 18}),
        ({"compute": MachinePool(additional_networks=("n", "m"))}, {"ports": 17}),
        ({"external_network": None}, {"floating_ips": None, "routers": 1}),
        ({"api_floating_ip": "192.0.2.1", "ingress_floating_ip": "192.0.2.2"}, {"floating_ips": 2}),
        ({"machines": Machines(flavor="nobodys")}, {"instances": 7, "cores": None, "ram": None}),
    ],
)
def test_what_changes_the_need(project: Project, fields: dict[str, Any], expected: dict[str, int | None]) -> None:
    address = {"floating_ip_address": "192.0.2.1", "floating_network_id": "x1", "port_id": None}
    project.floating_ips.append({"id": "f", **address})
    found = numbers(project, **fields)
    assert {name: found.get(name) for name in expected} == expected


def test_root_volumes_of_all_machines_and_of_each_type(project: Project) -> None:
    types = RootVolume(size=100, types=("a", "b"), zones=("x", "y"))
    found = numbers(
        project,
        machines=Machines(flavor="master", root_volume=VOLUME),
        control_plane=MachinePool(root_volume=types),
        compute=MachinePool(replicas=2, root_volume=RootVolume(size=50, types=("fast",))),
    )
    assert {name: value for name, value in found.items() if "volume" in name or "gigabytes" in name} == {
        "volumes": 6,
        "gigabytes": 500,
        "per_volume_gigabytes": 100,
        "volumes_a": 3,  # two masters, and the bootstrap machine
        "gigabytes_a": 300,
        "volumes_b": 1,
        "gigabytes_b": 100,
        "volumes_fast": 2,
        "gigabytes_fast": 100,
    }


def test_the_registry_has_a_volume_where_the_object_store_is_of_no_use(project: Project) -> None:
    project.login(roles=("member",))
    found = numbers(project, machines=MACHINES)
    assert (found["volumes"], found["gigabytes"], found["per_volume_gigabytes"]) == (1, 100, 100)
    assert not [name for name in found if name.startswith("volumes_")]
