"""Stacks on a real Heat: made, changed, mended and taken back."""

from __future__ import annotations

import json
import secrets
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.errors import PlanRefused
from openstack_prep.resources import Flavor, Network, Stack, Subnet
from openstack_prep.secret import Secret
from tests.devcloud.faults import Fault
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.qcow2 import qcow2
from tests.functional.conftest import Prep
from tests.functional.lab import Lab

GROUP = """
heat_template_version: wallaby
parameters:
  count: {type: number, default: 1, constraints: [{range: {min: 1, max: 3}}]}
  flavor: {type: string, default: m1.small, constraints: [{custom_constraint: nova.flavor}]}
  image: {type: string, constraints: [{custom_constraint: glance.image}]}
  network: {type: string, constraints: [{custom_constraint: neutron.network}]}
  password: {type: string, hidden: true, default: ""}
resources:
  nodes:
    type: OS::Heat::ResourceGroup
    properties:
      count: {get_param: count}
      resource_def:
        type: node.yaml
        properties:
          flavor: {get_param: flavor}
          image: {get_param: image}
          network: {get_param: network}
outputs:
  nodes: {value: {get_attr: [nodes, address]}}
  said: {value: {str_replace: {template: "the password is P", params: {P: {get_param: password}}}}}
"""
NODE = """
heat_template_version: wallaby
parameters: {flavor: {type: string}, image: {type: string}, network: {type: string}}
resources:
  port: {type: OS::Neutron::Port, properties: {network: {get_param: network}}}
  server:
    type: OS::Nova::Server
    properties:
      flavor: {get_param: flavor}
      image: {get_param: image}
      flavor_update_policy: REPLACE
      networks: [{port: {get_resource: port}}]
outputs:
  address: {value: {get_attr: [port, fixed_ips, 0, ip_address]}}
"""
PORT = """
heat_template_version: wallaby
parameters: {network: {type: string, constraints: [{custom_constraint: neutron.network}]}}
resources:
  port: {type: OS::Neutron::Port, properties: {network: {get_param: network}}}
"""
HANGS = """
heat_template_version: wallaby
parameters: {seconds: {type: number}}
resources:
  delay: {type: OS::Heat::TestResource, properties: {value: x, action_wait_secs: {create: {get_param: seconds}}}}
"""


@pytest.fixture
def image(devcloud: Devcloud) -> Iterator[str]:
    """An image that all projects see."""
    name = f"stack-{secrets.token_hex(3)}"
    formats = {"disk_format": "qcow2", "container_format": "bare"}
    made = devcloud.admin.image.create_image(name, data=qcow2(1), visibility="public", **formats)
    yield name
    devcloud.admin.image.delete_image(made)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "group.yaml").write_text(GROUP)
    (tmp_path / "node.yaml").write_text(NODE)
    (tmp_path / "port.yaml").write_text(PORT)
    (tmp_path / "hangs.yaml").write_text(HANGS)
    return tmp_path


def group(folder: Path, image: str, **fields: Any) -> tuple[Network, Subnet, Stack]:
    parameters = {"image": image, "network": "nodes"} | fields.pop("parameters", {})
    return (
        Network(name="nodes"),
        Subnet(name="nodes", network="nodes", cidr="10.0.0.0/24"),
        Stack(name="group", template=str(folder / "group.yaml"), parameters=parameters, **fields),
    )


def servers(lab: Lab) -> list[Any]:
    return list(lab.admin.compute.servers(all_projects=True, project_id=lab.project_id))


def test_from_create_by_scaling_and_mending_to_destroy(lab: Lab, folder: Path, image: str, caplog: Any) -> None:
    """Made with a network of the same spec; scaled out; a server deleted by hand comes back; taken back."""
    password = Secret(secrets.token_hex(8))
    one = group(folder, image, secret_parameters={"password": password}, tags=("blue",))
    with caplog.at_level("DEBUG"):
        report = lab.run(*one)
    report.raise_for_failures()
    assert not lab.plan(*one)
    (outputs,) = [each.observed.outputs for each in report.results if each.step.key.kind == "stack" and each.observed]
    (address,) = json.loads(outputs["nodes"])
    assert address.startswith("10.0.0.")
    assert outputs["said"] == "the password is ********"
    assert password.reveal() not in caplog.text + str(report) + json.dumps(report.data())

    two = group(folder, image, parameters={"count": 2}, tags=("blue",))
    assert "update nodes" in str(lab.plan(*two))
    assert lab.apply(*two) == {"stack/group": "update"}
    standing = servers(lab)
    assert len(standing) == 2

    lab.admin.compute.delete_server(standing[0])
    lab.admin.compute.wait_for_delete(standing[0])
    plan = lab.plan(*two)
    assert standing[0].id in str(plan)
    assert lab.apply(*two) == {"stack/group": "update"}
    assert standing[1].id in {each.id for each in servers(lab)}
    assert len(servers(lab)) == 2

    project_id = lab.project_id
    assert {"stack/group", "subnet/nodes", "project/" + lab.name} <= lab.destroy()
    assert list(lab.admin.compute.servers(all_projects=True, project_id=project_id)) == []


def test_what_would_be_replaced_needs_consent(lab: Lab, folder: Path, image: str) -> None:
    lab.apply(*group(folder, image))
    (before,) = servers(lab)
    other = group(folder, image, parameters={"flavor": "m1.medium", "count": 2})
    with pytest.raises(PlanRefused, match=r"delete and make again nodes\.0\.server \(OS::Nova::Server\)"):
        lab.run(*other)
    lab.run(*other, allow_replace=True).raise_for_failures()
    assert not lab.plan(*other)
    assert before.id not in {each.id for each in servers(lab)}


def test_a_nested_failure_is_told_and_mended_in_the_same_stack(lab: Lab, folder: Path, image: str) -> None:
    flavor = Flavor(name=f"vast-{secrets.token_hex(3)}", vcpus=512, ram=1024, disk=1)
    said = lab.failure(flavor, *group(folder, image, parameters={"flavor": flavor.name}))
    assert "is CREATE_FAILED: nodes.0.server: " in said
    assert "Quota exceeded for cores" in said
    (failed,) = stacks(lab)
    assert lab.apply(flavor, *group(folder, image)) == {"stack/group": "update"}
    assert [(each.id, each.status) for each in stacks(lab)] == [(failed.id, "UPDATE_COMPLETE")]


def test_all_that_is_wrong_is_told_before_a_stack_is_made(lab: Lab, folder: Path) -> None:
    lab.apply()
    wrong = {"image": "no-image", "network": "no-network", "flavor": "no-flavor", "count": 4, "cuont": 1}
    stack = Stack(name="group", template=str(folder / "group.yaml"), parameters=wrong)
    refusals = "\n".join(map(str, lab.plan(stack).refusals))
    for each in ("image/no-image does not exist", "network/no-network does not exist", "flavor/no-flavor does not"):
        assert each in refusals
    assert "count: 4 is against {range: {min: 1, max: 3}}" in refusals
    assert "the template has no cuont" in refusals
    assert len(refusals.splitlines()) == 5
    lab.declared.pop(stack.key)
    assert stacks(lab) == []


def test_a_stack_of_another_is_changed_by_consent_only(lab: Lab, folder: Path, image: str) -> None:
    network, subnet, _ = group(folder, image)
    lab.apply(network, subnet)
    made = Stack(name="port", template=str(folder / "port.yaml"), parameters={"network": "nodes"})
    lab.apply(network, subnet, made)
    project = lab.as_user()
    (raw,) = project.orchestration.list("/stacks", "stacks")
    body = {"tags": "of-another"}
    project.orchestration.request("PATCH", f"/stacks/port/{raw['id']}", json=body)
    wait_for(lab, "UPDATE_COMPLETE")
    assert not lab.plan(network, subnet, made)  # as it should be: it may stand
    (folder / "port.yaml").write_text(PORT.replace("port: {type", "gate: {type"))
    changed = Stack(name="port", template=str(folder / "port.yaml"), parameters={"network": "nodes"})
    with pytest.raises(PlanRefused, match="was not made by this spec"):
        lab.run(network, subnet, changed)
    adopted = Stack(name="port", template=str(folder / "port.yaml"), parameters={"network": "nodes"}, adopt=True)
    assert lab.apply(network, subnet, adopted) == {"stack/port": "update"}


def test_a_heat_that_fails_for_a_while(lab: Lab, folder: Path, devcloud: Devcloud) -> None:
    lab.apply()
    stack = Stack(name="hangs", template=str(folder / "hangs.yaml"), parameters={"seconds": 3})
    lost = Fault("heat", method="POST", path_regex="/stacks$", drop_answer=True)
    with devcloud.faults(lost):
        assert lab.apply(stack) == {"stack/hangs": "create"}
    assert len(stacks(lab)) == 1
    other = Stack(name="other", template=str(folder / "hangs.yaml"), parameters={"seconds": 3})
    ill = Fault("heat", method="GET", path_regex="/stacks/other/", status=500, skip=2, times=4)
    with devcloud.faults(ill):
        assert lab.apply(stack, other) == {"stack/other": "create"}


def test_a_killed_run_goes_on_with_the_same_stack(prep: Prep, folder: Path, devcloud: Devcloud) -> None:
    name, heat = f"k{secrets.token_hex(3)}", devcloud.admin.orchestration
    template, parameters = str(folder / "hangs.yaml"), {"seconds": 12}
    prep.write({"name": name, "stacks": [{"name": name, "template": template, "parameters": parameters}]})
    process = prep.start("apply", "--yes", prep.spec.name)
    deadline = time.monotonic() + 30
    while (found := heat.find_stack(name)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert prep.plan() == {f"stack/{name}": "update"}
    assert "delay CREATE_COMPLETE" in prep.run("apply", "--yes", prep.spec.name).stdout
    after = heat.find_stack(name)
    assert (after.id, after.status) == (found.id, "CREATE_COMPLETE")
    assert prep.changes() == set()


def stacks(lab: Lab) -> list[Any]:
    return list(lab.as_user().connection.orchestration.stacks())


def wait_for(lab: Lab, status: str) -> None:
    deadline = time.monotonic() + 30
    while [each.status for each in stacks(lab)] != [status]:
        assert time.monotonic() < deadline
        time.sleep(0.2)
