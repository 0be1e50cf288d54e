from __future__ import annotations

from typing import Any

import pytest
import requests_mock

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.resources.heat.stacks import HeatStack

PATH = "http://heat/v1/admin-project/stacks/s/root"


def resource(name: str, kind: str, physical: str) -> dict[str, Any]:
    links = [{"rel": "stack", "href": PATH}]
    made = {"physical_resource_id": physical, "resource_status": "CREATE_COMPLETE"}
    return {"resource_name": name, "resource_type": kind, **made, "links": links}


@pytest.mark.parametrize(
    ("server", "beside", "template", "found"),
    [
        ({"status": "ACTIVE", "addresses": {}}, [], "{}", {"node"}),
        ({"status": "BUILD", "addresses": {}}, [], "{}", set()),
        ({"status": "ACTIVE", "addresses": {"net": [{}]}}, [], "{}", set()),
        ({"status": "ACTIVE", "addresses": {}}, [resource("port", "OS::Neutron::Port", "p1")], "{}", set()),
        ({"status": "ACTIVE", "addresses": {}}, [], '{"networks": [{"allocate_network": "none"}]}', set()),
    ],
)
def test_a_server_is_cut_off_when_its_only_port_is_gone(
    services: requests_mock.Mocker,
    run: CloudRun,
    server: dict[str, Any],
    beside: list[Any],
    template: str,
    found: set[str],
) -> None:
    """Not while it is built, nor when a port of the stack's is to be made again, nor when it wants none."""
    resources = [resource("node", "OS::Nova::Server", "s1"), *beside]
    services.get(f"{PATH}/resources", json={"resources": resources})
    services.get(f"{PATH}/template", text=template, headers={"Content-Type": "application/json"})
    services.get(f"{PATH}/files", json={})
    services.get(f"{PATH}/environment", json={})
    stack = HeatStack(run.admin, "s", "root")
    stack.__dict__["servers"] = [{"id": "s1", **server}]  # as it keeps what Nova listed
    assert stack.cut_off().keys() == found


def test_names_in_a_stack_are_those_of_its_user_and_project(services: requests_mock.Mocker, run: CloudRun) -> None:
    """Others may have a key pair or container with the same name."""
    listed = [resource("key", "OS::Nova::KeyPair", "ops"), resource("net", "OS::Neutron::Net", "n1")]
    listed.append(resource("box", "OS::Swift::Container", "box"))
    services.get(f"{PATH}/resources", json={"resources": listed})
    services.get(PATH, json={"stack": {"stack_owner": "shop"}})
    assert HeatStack(run.admin, "s", "root").contained_ids == {"shop ops", "admin-project/box", "n1"}
