"""Address pairs of two stacks in one spec: each pair is removed by the address pairs that declare it."""

from __future__ import annotations

import json
from typing import Any

import yaml

from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.conftest import Prep

NODE = {
    "heat_template_version": "2018-08-31",
    "parameters": {name: {"type": "string"} for name in ("image", "network", "subnet")},
    "resources": {
        "port": {
            "type": "OS::Neutron::Port",
            "properties": {
                "name": {"get_param": "OS::stack_name"},
                "network": {"get_param": "network"},
                "fixed_ips": [{"subnet": {"get_param": "subnet"}}],
            },
        },
        "server": {
            "type": "OS::Nova::Server",
            "properties": {
                "image": {"get_param": "image"},
                "flavor": "m1.small",
                "networks": [{"port": {"get_resource": "port"}}],
            },
        },
    },
}
FIRST, SECOND, BOTH = "10.1.0.208/29", "10.2.0.208/29", "10.8.0.1"


def two_stacks() -> dict[str, Any]:
    numbers = (1, 2)
    node = {"image": "two-stacks"}
    return {
        "name": "two-stacks",
        "project": {"name": "two-stacks"},
        "users": [{"name": "two-stacks", "password": {"env": "PREP_PASSWORD"}}],
        "role_assignments": [{"user": "two-stacks", "role": "member"}],
        "clouds_yaml": [{"path": "clouds.yaml", "cloud": "two-stacks", "user": "two-stacks"}],
        "images": [{"name": "two-stacks", "source": "disk.qcow2", "disk_format": "qcow2"}],
        "networks": [{"name": f"nodes{each}"} for each in numbers],
        "subnets": [
            {
                "name": f"nodes{each}",
                "network": f"nodes{each}",
                "cidr": f"10.{each}.0.0/24",
                "allocation_pools": [f"10.{each}.0.10-10.{each}.0.199"],
            }
            for each in numbers
        ],
        "stacks": [
            {
                "name": f"cluster{each}",
                "template": "node.yaml",
                "parameters": node | {"network": f"nodes{each}", "subnet": f"nodes{each}"},
            }
            for each in numbers
        ],
        "address_pools": [
            {"name": f"cluster{each}", "subnet": f"nodes{each}", "addresses": [f"10.{each}.0.208/29"]}
            for each in numbers
        ],
        "address_pairs": [
            {"name": f"cluster{each}", "stack": f"cluster{each}", "pools": [f"cluster{each}"], "addresses": [BOTH]}
            for each in numbers
        ],
    }


def test_a_port_between_two_servers_keeps_the_pairs_of_its_own_stack(prep: Prep, devcloud: Devcloud) -> None:
    """While a port has no server, as when Heat replaces the server, it belongs to its stack still."""
    (prep.folder / "node.yaml").write_text(yaml.safe_dump(NODE, sort_keys=False))
    spec = two_stacks()
    prep.write(spec)
    prep.apply()
    assert pairs(devcloud) == {"cluster1": {FIRST, BOTH}, "cluster2": {SECOND, BOTH}}
    admin = devcloud.admin
    port = ports(devcloud)["cluster2"]
    used = {"device_id": port.device_id, "device_owner": port.device_owner}
    admin.network.update_port(port.id, device_id="", device_owner="")

    user = Prep(prep.folder, prep.environment | {"OS_CLIENT_CONFIG_FILE": "clouds.yaml", "OS_CLOUD": "two-stacks"})
    (prep.folder / "services.json").write_text(json.dumps({"kind": "List", "items": []}))
    by_services = ("--services", "services.json")
    assert prep.changes() == set()
    user.run("address-pairs", "sync", "--pairs", "cluster1", *by_services, prep.spec.name)
    assert pairs(devcloud) == {"cluster1": {BOTH}, "cluster2": {SECOND, BOTH}}
    user.run("address-pairs", "sync", "--pairs", "cluster2", *by_services, prep.spec.name)
    assert pairs(devcloud) == {"cluster1": {BOTH}, "cluster2": {SECOND, BOTH}}
    assert prep.changes() == {"address_pairs/cluster1"}
    user.run("address-pairs", "sync", prep.spec.name)
    assert pairs(devcloud) == {"cluster1": {FIRST, BOTH}, "cluster2": {SECOND, BOTH}}
    assert prep.changes() == set()

    spec["address_pairs"][1]["addresses"] = []
    prep.write(spec)
    assert prep.changes() == {"address_pairs/cluster1"}  # which declares it, and does not select that port
    prep.apply()
    assert pairs(devcloud) == {"cluster1": {FIRST, BOTH}, "cluster2": {SECOND}}
    admin.network.update_port(port.id, **used)
    assert prep.changes() == set()


def ports(devcloud: Devcloud) -> dict[str, Any]:
    project = devcloud.admin.identity.find_project("two-stacks", ignore_missing=False)
    found = devcloud.admin.network.ports(project_id=project.id)
    return {port.name: port for port in found if port.name in ("cluster1", "cluster2")}


def pairs(devcloud: Devcloud) -> dict[str, set[str]]:
    return {name: {each["ip_address"] for each in port.allowed_address_pairs} for name, port in ports(devcloud).items()}
