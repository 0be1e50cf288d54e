"""Stacks on a real Heat: made, changed, mended and taken back."""

from __future__ import annotations

import json
import re
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import PlanRefused, SpecError
from openstack_prep.base.secret import Secret
from openstack_prep.core.model import Action
from openstack_prep.core.plan import ApplyFailed
from openstack_prep.resources.compute.flavor import Flavor
from openstack_prep.resources.compute.quota import Quota
from openstack_prep.resources.orchestration.stack import Stack
from openstack_prep.verbs import api
from tests.devcloud.faults import Fault
from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.conftest import Prep
from tests.functional.lab import Lab

GROUP = """
heat_template_version: wallaby
parameters:
  count: {type: number, default: 1, constraints: [{range: {min: 1, max: 3}}]}
  flavor: {type: string, default: m1.small, constraints: [{custom_constraint: nova.flavor}]}
  image: {type: string, constraints: [{custom_constraint: glance.image}]}
  network: {type: string, constraints: [{custom_constraint: neutron.network}]}
  zone: {type: string, default: nova}
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
          zone: {get_param: zone}
outputs:
  nodes: {value: {get_attr: [nodes, address]}}
  said: {value: {str_replace: {template: "the password is P", params: {P: {get_param: password}}}}}
"""
NODE = """
heat_template_version: wallaby
parameters: {flavor: {type: string}, image: {type: string}, network: {type: string}, zone: {type: string}}
resources:
  port: {type: OS::Neutron::Port, properties: {network: {get_param: network}}}
  server:
    type: OS::Nova::Server
    properties:
      flavor: {get_param: flavor}
      image: {get_param: image}
      flavor_update_policy: REPLACE
      availability_zone: {get_param: zone}
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
parameters: {seconds: {type: number}, text: {type: string, default: x}}
resources:
  delay:
    type: OS::Heat::TestResource
    properties:
      value: {get_param: text}
      action_wait_secs: {create: {get_param: seconds}, update: {get_param: seconds}, delete: {get_param: seconds}}
"""
PLAIN = """
heat_template_version: wallaby
parameters:
  image: {type: string}
  groups: {type: comma_delimited_list, default: [default]}
resources:
  server:
    type: OS::Nova::Server
    properties:
      flavor: m1.small
      image: {get_param: image}
      networks: [{network: nodes}]
      security_groups: {get_param: groups}
"""
VOLUME = """
heat_template_version: wallaby
resources:
  data: {type: OS::Cinder::Volume, properties: {size: 1}}
"""
WAITS = """
heat_template_version: wallaby
resources:
  handle: {type: OS::Heat::WaitConditionHandle}
  ready: {type: OS::Heat::WaitCondition, properties: {handle: {get_resource: handle}, timeout: 2}}
"""
SIGNALLED = WAITS.replace("timeout: 2", "timeout: 600")
MUCH = """
heat_template_version: wallaby
parameters:
  count: {type: number, default: 2}
  flavor: {type: string, default: m1.small, constraints: [{custom_constraint: nova.flavor}]}
  image: {type: string, constraints: [{custom_constraint: glance.image}]}
  network: {type: string, constraints: [{custom_constraint: neutron.network}]}
resources:
  spread: {type: OS::Nova::ServerGroup, properties: {policies: [soft-anti-affinity]}}
  nodes:
    type: OS::Heat::ResourceGroup
    properties:
      count: {get_param: count}
      resource_def:
        type: OS::Nova::Server
        properties:
          flavor: {get_param: flavor}
          block_device_mapping_v2:
            - {image: {get_param: image}, volume_size: 3, boot_index: 0, delete_on_termination: true}
          networks: [{network: {get_param: network}}]
          scheduler_hints: {group: {get_resource: spread}}
  data: {type: OS::Cinder::Volume, properties: {size: 5}}
  inside: {type: OS::Neutron::Net}
  subnet: {type: OS::Neutron::Subnet, properties: {network: {get_resource: inside}, cidr: 10.9.0.0/24}}
  router: {type: OS::Neutron::Router}
  port: {type: OS::Neutron::Port, properties: {network: {get_param: network}}}
  address: {type: OS::Neutron::FloatingIP, properties: {floating_network: external}}
  group:
    type: OS::Neutron::SecurityGroup
    properties: {rules: [{protocol: icmp}, {protocol: tcp, port_range_min: 22, port_range_max: 22}]}
"""
TAKES: dict[str, Any] = {
    **{"instances": 2, "cores": 2, "ram": 4096, "server_groups": 1, "server_group_members": 2},
    **{"ports": 3, "floating_ips": 1, "networks": 1, "subnets": 1, "routers": 1},
    **{"security_groups": 1, "security_group_rules": 4},
    **{"volumes": 3, "gigabytes": 11, "per_volume_gigabytes": 5},
}
"""What MUCH takes: m1.small has 1 core and 2 GiB, and a new group has two rules for what goes out."""
STANDING = {"networks": 1, "subnets": 1, "security_groups": 1, "security_group_rules": 4}
"""What the lab has: nodes, and the group default."""
LIMITS_OF_ONE = ("server_group_members", "per_volume_gigabytes")


@pytest.fixture
def lab(project: Lab) -> Iterator[Lab]:
    """That project; a test leaves no stack in it."""
    yield project
    project.destroy_stacks()


@pytest.fixture
def image(images: tuple[str, str]) -> str:
    return images[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    templates = {"group": GROUP, "node": NODE, "port": PORT, "hangs": HANGS, "plain": PLAIN}
    templates |= {"volume": VOLUME, "waits": WAITS, "signalled": SIGNALLED, "much": MUCH}
    for name, text in templates.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


def group(folder: Path, image: str, name: str = "group", **fields: Any) -> Stack:
    parameters = {"image": image, "network": "nodes"} | fields.pop("parameters", {})
    return Stack(name=name, template=str(folder / "group.yaml"), parameters=parameters, **fields)


def servers(lab: Lab) -> list[Any]:
    return list(lab.admin.compute.servers(all_projects=True, project_id=lab.project_id))


def test_from_create_by_scaling_and_mending_to_destroy(lab: Lab, folder: Path, image: str, caplog: Any) -> None:
    """Made; scaled out; nothing replaced unasked; a server deleted by hand comes back; replaced; taken back."""
    password = Secret(secrets.token_hex(8))
    one = group(folder, image, secret_parameters={"password": password}, tags=("blue",))
    with caplog.at_level("DEBUG"):
        report = lab.run(one)
    report.raise_for_failures()
    assert not lab.plan(one)
    (outputs,) = [each.observed.outputs for each in report.results if each.step.key.kind == "stack" and each.observed]
    (address,) = json.loads(outputs["nodes"])
    assert address.startswith("10.0.0.")
    assert outputs["said"] == "********"
    assert password.reveal() not in caplog.text + str(report) + json.dumps(report.data())
    (folder / "other.yaml").write_text("heat_template_version: wallaby\nresources: {}\n")
    seen = api.show(lab.cloud, lab.spec(Stack(name="group", template=str(folder / "other.yaml"))))
    assert {each.outputs.get("said") for each in seen.values() if each} == {None, "********"}

    other = group(folder, image, parameters={"flavor": "m1.medium", "count": 2})
    with pytest.raises(PlanRefused, match=r"would replace nodes\.0\.server \(OS::Nova::Server"):
        lab.run(other)
    two = group(folder, image, parameters={"count": 2}, tags=("blue",))
    assert "nodes 1 to 2: Heat adds nodes.1" in str(lab.plan(two))
    assert lab.apply(two) == {"stack/group": "update"}
    standing = servers(lab)
    assert len(standing) == 2

    lab.admin.compute.delete_server(standing[0])
    lab.admin.compute.wait_for_delete(standing[0])
    assert standing[0].id in str(lab.plan(two))
    assert lab.apply(two) == {"stack/group": "update"}
    assert standing[1].id in {each.id for each in servers(lab)}
    assert len(servers(lab)) == 2

    lab.run(group(folder, image, parameters={"flavor": "m1.medium"}), allow_replace=True).raise_for_failures()
    (left,) = servers(lab)
    assert left.flavor["original_name"] == "m1.medium"
    assert lab.destroy_stacks(one) == {"stack/group"}
    assert servers(lab) == []


def test_a_server_without_its_port_and_groups_that_are_not_there(lab: Lab, folder: Path, image: str) -> None:
    """Nova made the port, so that Heat does not miss it; the server is made again by consent, and then all is well."""
    plain = Stack(name="plain", template=str(folder / "plain.yaml"), parameters={"image": image})
    wrong = replace(plain, parameters={"image": image, "groups": ["default", "k8z"]})
    expected = "stack/plain: security_group/k8z does not exist; declare it in the spec, or correct the name"
    assert expected in map(str, lab.plan(wrong).refusals)
    lab.run(plain).raise_for_failures()
    assert expected in map(str, lab.plan(wrong).refusals)

    (server,) = servers(lab)
    (port,) = lab.admin.network.ports(device_id=server.id)
    lab.admin.network.delete_port(port)
    deadline = time.monotonic() + 120
    while servers(lab)[0].addresses and time.monotonic() < deadline:  # Neutron tells Nova a moment later
        time.sleep(0.3)
    assert f"server {server.id} without a port" in str(lab.plan(plain))
    with pytest.raises(PlanRefused, match=r"server have lost their last port and would be replaced"):
        lab.run(plain)
    lab.run(plain, allow_replace=True).raise_for_failures()
    (made,) = servers(lab)
    assert made.id != server.id
    assert made.addresses
    assert not lab.plan(plain)


def test_a_nested_failure_is_told_and_mended_in_the_same_stack(lab: Lab, folder: Path, image: str) -> None:
    """Left as it is and rolled back: both say why, though Heat has cleaned up, and go on with the same stack."""
    nowhere = {"parameters": {"zone": "nowhere"}}  # Nova refuses it; Heat does not look
    report = lab.run(group(folder, image, "left", **nowhere), group(folder, image, "back", **nowhere, rollback=True))
    said = {each.step.key.name: str(each.error) for each in report.results if each.error}
    assert "is CREATE_FAILED: nodes.0.server: " in said["left"]
    assert re.search(r"is ROLLBACK_COMPLETE: nodes\.0(\.server)?: ", said["back"])
    for each in said.values():
        assert each.count("The requested availability zone is not available") == 1
    failed = {each.name: each.id for each in stacks(lab)}
    mended = group(folder, image, "left"), group(folder, image, "back", rollback=True)
    assert lab.apply(*mended) == {"stack/left": "update", "stack/back": "update"}
    assert {(each.name, each.id, each.status) for each in stacks(lab)} == {
        (name, stack_id, "UPDATE_COMPLETE") for name, stack_id in failed.items()
    }


def test_all_that_is_wrong_is_told_before_a_stack_is_made(lab: Lab, folder: Path) -> None:
    wrong = {"image": "no-image", "network": "no-network", "flavor": "no-flavor", "count": 4, "cuont": 1}
    stack = Stack(name="wrong", template=str(folder / "group.yaml"), parameters=wrong)
    with pytest.raises(SpecError) as caught:  # what needs no cloud comes first
        lab.plan(stack)
    mistakes = str(caught.value)
    assert "count: 4 violates the constraint {range: {min: 1, max: 3}}" in mistakes
    assert "the template has no parameter cuont" in mistakes
    assert len(mistakes.splitlines()) == 2
    del wrong["cuont"]
    refusals = "\n".join(map(str, lab.plan(replace(stack, parameters=wrong | {"count": 3})).refusals))
    for each in ("image/no-image does not exist", "network/no-network does not exist", "flavor/no-flavor does not"):
        assert each in refusals
    assert len(refusals.splitlines()) == 3
    assert stacks(lab) == []


def much(folder: Path, image: str, name: str, **parameters: Any) -> Stack:
    given = {"image": image, "network": "nodes", **parameters}
    return Stack(name=name, template=str(folder / "much.yaml"), parameters=given)


def refusals(lab: Lab, *wanted: Any) -> dict[str, str]:
    """Return by quota what a plan is refused for."""
    said = [str(each) for each in lab.plan(*wanted).refusals]
    return {re.findall(r"raise quota\.(\w+)", each)[0]: each for each in said}


def used(lab: Lab) -> dict[str, int]:
    """Return what the project has of what MUCH takes."""
    nova = lab.admin.compute.get(f"/os-quota-sets/{lab.project_id}/detail").json()["quota_set"]
    neutron = lab.admin.network.get(f"/quotas/{lab.project_id}/details.json").json()["quota"]
    cinder = lab.admin.block_storage.get(f"/os-quota-sets/{lab.project_id}?usage=True").json()["quota_set"]
    every = nova | cinder | {f"{name}s".replace("floatingip", "floating_ip"): each for name, each in neutron.items()}
    return {name: every[name].get("in_use", every[name].get("used")) for name in TAKES if name not in LIMITS_OF_ONE}


def test_what_stacks_take_is_held_against_the_quotas_first(lab: Lab, folder: Path, image: str) -> None:
    """Exactly enough passes; one less of each is refused, all at once; two are counted together; growth by itself."""
    stack, other = much(folder, image, "much"), much(folder, image, "more", count=1)
    standing = used(lab)
    exact = {name: number + standing.get(name, 0) for name, number in TAKES.items()}
    assert lab.plan(Quota(**exact), stack).refusals == ()
    short = refusals(lab, Quota(**{name: number - 1 for name, number in exact.items()}), stack)
    assert short.keys() == TAKES.keys()
    assert (
        short["instances"] == "stack/much: needs 2 instances, 1 are left of 1; raise quota.instances in the spec to 2"
    )
    assert short["ram"].startswith("stack/much: needs 4096 MiB of memory, 4095 are left of 4095; ")
    both = refusals(lab, Quota(**exact), stack, other)
    assert both.keys() == TAKES.keys() - set(LIMITS_OF_ONE)
    assert both["cores"].startswith("stack/much, stack/more: need together 3 cores, 2 are left of 2; ")

    roomy = Quota(**exact | {"ports": exact["ports"] + 2})  # Neutron's own count wavers while several are made at once
    lab.apply(roomy, stack)
    assert used(lab) == {name: number for name, number in exact.items() if name not in LIMITS_OF_ONE}
    grown = refusals(lab, roomy, much(folder, image, "much", count=3))
    assert grown.keys() == {"instances", "cores", "ram", "volumes", "gigabytes", "server_group_members"}
    assert grown["gigabytes"].startswith("stack/much: needs 3 GiB of volumes, 0 are left of 11; ")
    assert refusals(lab, roomy, much(folder, image, "much", flavor="m1.medium")).keys() == {"cores", "ram"}
    lab.destroy_stacks(stack)
    lab.destroy(roomy)


def test_servers_that_no_host_can_hold_are_named_first(lab: Lab, folder: Path, image: str) -> None:
    """By Placement, which says what Nova's scheduler says later; members may not ask it."""
    vast = Flavor(name=f"vast-{secrets.token_hex(3)}", vcpus=1, ram=900_000_000, disk=1)
    roomy = Quota(ram=-1, instances=-1, cores=-1)
    lab.apply(vast, roomy)

    def refused(stack: Stack) -> list[str]:
        return [each.code for each in lab.plan(vast, roomy, stack).refusals]

    stack = group(folder, image, parameters={"flavor": vast.name, "count": 2})
    assert refused(stack) == [Code.CAPACITY_SHORT]
    user: Any = lab.as_user().connection
    (network,) = user.network.networks(project_id=lab.project_id)
    flavor = user.compute.find_flavor(vast.name, ignore_missing=False)
    body = {"image_id": user.image.find_image(image).id, "flavor_id": flavor.id, "networks": [{"uuid": network.id}]}
    server = user.compute.create_server(name="vast", **body)
    server = user.compute.wait_for_server(server, status="ERROR", failures=[], interval=0.2, wait=60)
    assert "No valid host" in server.fault["message"]
    user.compute.delete_server(server)
    user.compute.wait_for_delete(server, interval=0.2, wait=60)

    (folder / "apart.yaml").write_text(MUCH.replace("soft-anti-affinity", "anti-affinity"))
    apart = replace(much(folder, image, "apart"), template=str(folder / "apart.yaml"))
    assert refused(apart) == [Code.CAPACITY_SHORT]
    assert refused(much(folder, image, "apart", count=1)) == []
    fits = lab.plan(vast, roomy, much(folder, image, "much"))
    assert (fits.refusals, [each for each in fits.not_checked if "capacity" in str(each)]) == ((), [])
    lab.destroy(vast, roomy)


def test_what_cannot_be_counted_for_the_plan_is_counted_before_a_stack_is_made(
    lab: Lab, folder: Path, image: str
) -> None:
    flavor = Flavor(name=f"vast-{secrets.token_hex(3)}", vcpus=512, ram=1024, disk=1)
    stack = group(folder, image, parameters={"flavor": flavor.name, "count": 2})
    assert lab.plan(flavor, stack).refusals == ()
    said = lab.failure(flavor, stack)
    command = f"openstack quota set --cores 1024 {lab.name}"
    assert said == f"nothing was created: needs 1024 cores, 20 are left of 20; raise the quota: {command}"
    assert stacks(lab) == []
    lab.destroy(flavor)


def test_a_stack_of_another_is_changed_by_consent_only(lab: Lab, folder: Path) -> None:
    made = Stack(name="port", template=str(folder / "port.yaml"), parameters={"network": "nodes"})
    lab.apply(made)
    project = lab.as_user()
    (raw,) = project.orchestration.list("/stacks", "stacks")
    body = {"tags": "of-another"}
    project.orchestration.request("PATCH", f"/stacks/port/{raw['id']}", json=body)
    wait_for(lab, "UPDATE_COMPLETE")
    assert not lab.plan(made)  # as it should be: it may stand
    (folder / "port.yaml").write_text(PORT.replace("port: {type", "gate: {type"))
    changed = Stack(name="port", template=str(folder / "port.yaml"), parameters={"network": "nodes"})
    with pytest.raises(PlanRefused, match="is not managed by this spec"):
        lab.run(changed)
    assert lab.apply(replace(changed, adopt=True), allow_replace=True) == {"stack/port": "adopt"}  # another port
    assert "stack/port" not in goes_with_destroy(lab, changed)
    assert lab.apply(replace(changed, adopt="permanently")) == {"stack/port": "adopt"}
    assert "stack/port" in goes_with_destroy(lab, changed)


def goes_with_destroy(lab: Lab, stack: Stack) -> set[str]:
    steps = api.plan_destroy(lab.cloud, lab.spec(stack)).steps
    return {str(step.key) for step in steps if step.action is Action.DELETE}


def hangs(folder: Path, name: str, **parameters: Any) -> Stack:
    return Stack(name=name, template=str(folder / "hangs.yaml"), parameters={"seconds": 1, **parameters})


def test_a_namesake_in_another_project_is_left_alone(lab: Lab, folder: Path) -> None:
    """Heat shows an administrator the stacks of all projects."""
    twin = hangs(folder, "twin")
    lab.apply(twin)
    api.apply(lab.cloud, [twin], name="twin").raise_for_failures()
    assert not api.plan(lab.cloud, [twin], name="twin")
    assert [str(each.step.key) for each in api.destroy(lab.cloud, [twin], name="twin").changed] == ["stack/twin"]
    assert [each.status for each in stacks(lab)] == ["CREATE_COMPLETE"]
    assert not lab.plan(twin)


def test_lost_answers_and_a_heat_that_fails_for_a_while(lab: Lab, folder: Path, devcloud: Devcloud) -> None:
    """Created, changed and deleted once, whatever is heard of it."""
    stack = hangs(folder, "hangs")
    with devcloud.faults(Fault("heat", method="POST", path_regex="/stacks$", drop_answer=True)):
        assert lab.apply(stack) == {"stack/hangs": "create"}
    (made,) = stacks(lab)
    changed = hangs(folder, "hangs", text="y")
    ill = Fault("heat", method="GET", path_regex="/stacks/hangs/", status=500, skip=8, times=3)
    with devcloud.faults(Fault("heat", method="PUT", path_regex="/stacks/hangs/[^/]*$", drop_answer=True), ill):
        assert lab.apply(changed) == {"stack/hangs": "update"}
    assert [(each.id, each.status) for each in stacks(lab)] == [(made.id, "UPDATE_COMPLETE")]
    with devcloud.faults(Fault("heat", method="DELETE", drop_answer=True)):
        assert lab.destroy_stacks(changed) == {"stack/hangs"}
    assert stacks(lab) == []


def test_a_delete_under_way_is_waited_for_and_one_that_failed_is_done_again(lab: Lab, folder: Path) -> None:
    """As an interrupted destroy leaves it; a volume in maintenance stays, and says why."""
    stack = hangs(folder, "hangs", seconds=8)
    lab.apply(stack)
    (raw,) = stacks(lab)
    user = lab.as_user()  # kept: its services know it by a weak reference
    user.orchestration.delete(f"/stacks/hangs/{raw.id}")
    assert lab.apply(stack) == {"stack/hangs": "create"}  # an update in the plan; gone by the look right before it
    (again,) = stacks(lab)
    assert (again.id != raw.id, again.status) == (True, "CREATE_COMPLETE")
    user.orchestration.delete(f"/stacks/hangs/{again.id}")

    volume = Stack(name="volume", template=str(folder / "volume.yaml"))
    lab.apply(volume)
    cinder: Any = lab.admin.block_storage
    (data,) = cinder.volumes(all_projects=True, project_id=lab.project_id)
    cinder.reset_volume_status(data, "maintenance", None, None)
    with pytest.raises(ApplyFailed) as failed:
        lab.destroy_stacks(volume)
    assert "is DELETE_FAILED: data: " in str(failed.value)
    assert "Volume status must be available" in str(failed.value)
    cinder.reset_volume_status(data, "available", None, None)
    with pytest.raises(PlanRefused, match=r"would first delete the remaining resources: data \(OS::Cinder::Volume\)"):
        lab.run(volume)
    assert cinder.get_volume(data.id).status == "available"
    assert lab.apply(volume, allow_replace=True) == {"stack/volume": "update"}
    wait_for(lab, "CREATE_COMPLETE")  # the other stack's deletion takes 8 seconds
    assert lab.destroy_stacks(volume, stack) == {"stack/volume"}


def test_what_never_comes_is_told(lab: Lab, folder: Path) -> None:
    stack = Stack(name="waits", template=str(folder / "waits.yaml"))
    assert "is CREATE_FAILED: ready: WaitConditionTimeout: resources.ready: 0 of 1 received" in lab.failure(stack)


def test_a_killed_run_goes_on_with_the_same_stack(prep: Prep, folder: Path, devcloud: Devcloud) -> None:
    """The stack is ready when the test says so, and not after a time that a busy machine may outrun."""
    name, heat = f"k{secrets.token_hex(3)}", devcloud.admin.orchestration
    prep.write({"name": name, "stacks": [{"name": name, "template": str(folder / "signalled.yaml")}]})
    process = prep.start("apply", "--yes", prep.spec.name)
    deadline = time.monotonic() + 120
    while (found := heat.find_stack(name)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert prep.plan() == {f"stack/{name}": "update"}
    process = prep.start("apply", "--yes", prep.spec.name, stderr=subprocess.STDOUT)
    said = ""
    while f"openstack stack delete {found.id}" not in " ".join(said.split()):
        line = process.stdout.readline()
        assert line, said
        said += line
    heat.post(f"/stacks/{name}/{found.id}/resources/handle/signal", json={"status": "SUCCESS"}).raise_for_status()
    said += process.communicate()[0]
    assert "ready CREATE_COMPLETE" in said
    after = heat.find_stack(name)
    assert (after.id, after.status) == (found.id, "CREATE_COMPLETE")
    assert prep.changes() == set()


def stacks(lab: Lab) -> list[Any]:
    listed = lab.as_user().connection.orchestration.stacks()
    return [each for each in listed if each.status != "DELETE_COMPLETE"]  # Heat lists it still for a moment


def wait_for(lab: Lab, status: str) -> None:
    deadline = time.monotonic() + 120
    while [each.status for each in stacks(lab)] != [status]:
        assert time.monotonic() < deadline
        time.sleep(0.2)
