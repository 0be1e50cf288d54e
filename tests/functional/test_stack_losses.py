"""What an update of a stack would take away is refused at the moment of writing, on a real Heat."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import PlanRefused
from openstack_prep.core.model import Status
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.resources.compute.flavor import Flavor
from openstack_prep.resources.heat import operation
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.router import Router
from openstack_prep.resources.network.subnet import Subnet
from openstack_prep.resources.orchestration.stack import Stack
from openstack_prep.spec import Spec
from openstack_prep.verbs import api
from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.client import carry_out
from tests.functional.conftest import Prep
from tests.functional.lab import Lab

GROUP = """
heat_template_version: wallaby
parameters:
  count: {type: number, default: 1}
  flavor: {type: string, default: m1.small, constraints: [{custom_constraint: nova.flavor}]}
  image: {type: string, constraints: [{custom_constraint: glance.image}]}
resources:
  nodes:
    type: OS::Heat::ResourceGroup
    properties:
      count: {get_param: count}
      resource_def: {type: node.yaml, properties: {flavor: {get_param: flavor}, image: {get_param: image}}}
"""
NODE = """
heat_template_version: wallaby
parameters: {flavor: {type: string}, image: {type: string}}
resources:
  server:
    type: OS::Nova::Server
    properties:
      flavor: {get_param: flavor}
      image: {get_param: image}
      networks: [{network: nodes}]
      POLICY
"""
PLAIN = """
heat_template_version: wallaby
parameters: {network: {type: string}}
resources:
  port: {type: OS::Neutron::Port, properties: {network: {get_param: network}}}
"""
SLOW = """
heat_template_version: wallaby
parameters: {image: {type: string}, text: {type: string, default: x}}
resources:
  delay:
    type: OS::Heat::TestResource
    properties: {value: {get_param: text}, action_wait_secs: {update: 15}}
  server:
    type: OS::Nova::Server
    properties:
      flavor: m1.small
      image: {get_param: image}
      image_update_policy: REPLACE
      networks: [{network: nodes}]
"""
FAILS = """
heat_template_version: wallaby
parameters: {network: {type: string}, fail: {type: boolean}}
resources:
  first: {type: OS::Heat::TestResource, properties: {fail: {get_param: fail}}}
  port: {type: OS::Neutron::Port, depends_on: first, properties: {network: {get_param: network}}}
"""
PORT = """
heat_template_version: wallaby
parameters: {network: {type: string, constraints: [{custom_constraint: neutron.network}]}}
resources:
  port: {type: OS::Neutron::Port, properties: {network: {get_param: network}}}
"""
GROWS = """
heat_template_version: wallaby
parameters: {network: {type: string}}
resources:
  nodes:
    type: OS::Heat::ResourceGroup
    properties: {count: COUNT, resource_def: {type: port.yaml, properties: {network: {get_param: network}}}}
"""
SCALES = """
heat_template_version: wallaby
parameters: {network: {type: string}, number: {type: number, default: 1}}
resources:
  ports:
    type: OS::Heat::AutoScalingGroup
    properties:
      {min_size: 1, max_size: 2, desired_capacity: {get_param: number},
       resource: {type: OS::Neutron::Port, properties: {network: {get_param: network}}}}
"""
SHRINKS = """
heat_template_version: wallaby
parameters:
  image: {type: string}
  count: {type: number, default: 3}
  volumes: {type: number, default: 1}
  remove: {type: comma_delimited_list, default: ""}
resources:
  nodes:
    type: OS::Heat::ResourceGroup
    properties:
      count: {get_param: count}
      removal_policies: [{resource_list: {get_param: remove}}]
      resource_def:
        type: OS::Nova::Server
        properties:
          {name: node-%index%, flavor: m1.small, image: {get_param: image}, networks: [{network: nodes}]}
  others:
    type: OS::Heat::ResourceGroup
    properties:
      count: {get_param: volumes}
      resource_def: {type: OS::Cinder::Volume, properties: {size: 1}}
"""
VOLUME = """
  data: {type: OS::Cinder::Volume, properties: {size: 1}}
"""
REFUSED = "would replace nodes.0.server (OS::Nova::Server"


@pytest.fixture
def lab(project: Lab) -> Iterator[Lab]:
    """That project; a test leaves no stack in it."""
    yield project
    project.destroy_stacks()


@pytest.fixture
def flavor() -> Flavor:
    return Flavor(name=f"losses-{secrets.token_hex(3)}", vcpus=1, ram=1024, disk=1)


def group(folder: Path, policy: str, **parameters: Any) -> Stack:
    """A group of one server in a nested template, which Heat updates by a policy."""
    (folder / "group.yaml").write_text(GROUP)
    (folder / "node.yaml").write_text(NODE.replace("POLICY", policy))
    return Stack(name="group", template=str(folder / "group.yaml"), parameters=parameters)


def servers(lab: Lab) -> dict[str, Any]:
    return {each.id: each for each in lab.admin.compute.servers(all_projects=True, project_id=lab.project_id)}


def running(lab: Lab) -> dict[str, str]:
    """Return the flavors of the servers in service."""
    return {each.id: each.flavor.name for each in servers(lab).values() if each.status == "ACTIVE"}


def refusal(lab: Lab, *wanted: Any) -> str:
    """Apply without consent, insist that only the stack is refused, and return why."""
    report = lab.run(*wanted)
    (failed,) = [each for each in report.results if each.status is Status.FAILED]
    assert isinstance(failed.error, PlanRefused)
    assert failed.step.key.kind == "stack"
    assert not report.skipped
    return str(failed.error)


def test_what_the_run_itself_makes_is_previewed_before_the_update(
    lab: Lab, tmp_path: Path, images: tuple[str, str], flavor: Flavor
) -> None:
    """Made and used in one edit: the plan cannot foresee it, the run refuses it, the next one does it by consent."""
    by_policy = "flavor_update_policy: REPLACE"
    lab.apply(group(tmp_path, by_policy, image=images[0]))
    before = servers(lab)
    edited = group(tmp_path, by_policy, image=images[0], flavor=flavor.name)
    plan = lab.plan(flavor, edited)
    assert not plan.refusals
    (step,) = [each for each in plan if each.key.kind == "stack"]
    assert f"previewed again once flavor/{flavor.name}" in step.reason
    assert "--allow-replace" in str(plan)

    assert REFUSED in refusal(lab, flavor, edited)
    assert servers(lab).keys() == before.keys()
    assert REFUSED in str(lab.plan(flavor, edited))
    lab.run(flavor, edited, allow_replace=True).raise_for_failures()
    assert not servers(lab).keys() & before.keys()
    assert not lab.plan(flavor, edited)


def test_another_image_that_rebuilds_servers_in_place_needs_consent(
    lab: Lab, tmp_path: Path, images: tuple[str, str], flavor: Flavor
) -> None:
    """Another flavor keeps the disks: it needs none."""
    old = group(tmp_path, "", image=images[0])
    lab.apply(old)
    before = servers(lab)
    resized = group(tmp_path, "", image=images[0], flavor="m1.medium")
    assert lab.apply(resized) == {"stack/group": "update"}
    replacing = group(tmp_path, "image_update_policy: REPLACE", image=images[0], flavor="m1.medium")
    assert lab.apply(replacing) == {"stack/group": "update"}
    assert servers(lab).keys() == before.keys()
    assert "would replace nodes.0.server" in str(
        lab.plan(group(tmp_path, "image_update_policy: REPLACE", image=images[1], flavor="m1.medium")).refusals
    )
    rebuilt = group(tmp_path, "", image=images[1], flavor="m1.medium")
    plan = lab.plan(rebuilt)
    (said,) = map(str, plan.refusals)
    assert "wipe the disks of nodes.0.server (OS::Nova::Server" in said
    assert "rebuilds nodes.0.server" in plan.table
    with pytest.raises(PlanRefused):
        lab.run(rebuilt)
    lab.run(rebuilt, allow_replace=True).raise_for_failures()
    assert servers(lab).keys() == before.keys()
    assert not lab.plan(rebuilt)


@pytest.mark.more
def test_a_resize_that_no_host_can_hold_ends_with_the_reason_of_nova(
    lab: Lab, tmp_path: Path, images: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heat would wait until the stack's timeout; the server runs on, and the next update resizes it."""
    monkeypatch.setattr(operation, "PATIENCE", 3.0)
    monkeypatch.setattr(operation, "EVERY", 3.0)
    lab.apply(group(tmp_path, "", image=images[0]))
    ((before, server),) = servers(lab).items()
    huge = Flavor(name=f"losses-{secrets.token_hex(3)}", vcpus=1, ram=1024, disk=4_000_000)
    resized = group(tmp_path, "", image=images[0], flavor=huge.name)
    notes: list[str] = []
    report = lab.run(huge, resized, tell=lambda event: notes.append(event.note))
    (said,) = [str(each.error) for each in report.results if each.status is Status.FAILED]
    reason = f"Nova: resize of server {server.name} ({before}) failed: No valid host was found."
    assert f"Stack UPDATE cancelled; nodes.0.server: {reason}" in said
    assert [each for each in notes if reason in each]
    assert running(lab) == {before: "m1.small"}

    for action, status in (("pause", "PAUSED"), ("unpause", "ACTIVE")):  # ends Heat's own wait
        lab.admin.compute.post(f"/servers/{before}/action", json={action: None}).raise_for_status()
        time.sleep(4)
        assert servers(lab)[before].status == status
    assert lab.apply(group(tmp_path, "", image=images[0], flavor="m1.medium")) == {"stack/group": "update"}
    assert running(lab) == {before: "m1.medium"}


def test_a_plain_parameter_may_name_what_is_not_there_yet(lab: Lab, tmp_path: Path) -> None:
    """Heat refuses the preview until then; the template does not tell why."""
    (tmp_path / "plain.yaml").write_text(PLAIN)
    stack = Stack(name="plain", template=str(tmp_path / "plain.yaml"), parameters={"network": "later"})
    assert "stack/plain: Heat refuses it" in str(lab.plan(stack))
    later = (Network(name="later"), Subnet(name="later", network="later", cidr="10.1.0.0/24"))
    lab.apply(*later, stack)


def test_an_update_under_way_is_waited_for_and_then_previewed(
    lab: Lab, tmp_path: Path, images: tuple[str, str]
) -> None:
    """As a run that was killed leaves it, with another edit since."""
    (tmp_path / "slow.yaml").write_text(SLOW)
    old = Stack(name="slow", template=str(tmp_path / "slow.yaml"), parameters={"image": images[0]})
    lab.apply(old)
    before = servers(lab)
    heat: Any = lab.as_user().orchestration
    (raw,) = [each for each in heat.list("/stacks", "stacks") if each["stack_name"] == "slow"]
    heat.request("PATCH", f"/stacks/slow/{raw['id']}", json={"parameters": {"text": "y"}})
    deadline = time.monotonic() + 120
    while not heat.get(f"/stacks/slow/{raw['id']}")["stack"]["stack_status"].endswith("PROGRESS"):
        assert time.monotonic() < deadline
    edited = replace(old, parameters={"image": images[1]})
    assert not lab.plan(edited).refusals
    assert "would replace server (OS::Nova::Server" in refusal(lab, edited)
    assert servers(lab).keys() == before.keys()


def ports(lab: Lab) -> set[str]:
    listed = lab.admin.network.ports(project_id=lab.project_id)
    return {each.id for each in listed if not each.device_owner.startswith("network:")}


def written(folder: Path, name: str, text: str, **parameters: Any) -> Stack:
    (folder / f"{name}.yaml").write_text(text)
    return Stack(name=name, template=str(folder / f"{name}.yaml"), parameters=parameters)


def test_an_update_that_failed_goes_on_by_consent_only(lab: Lab, tmp_path: Path) -> None:
    """Heat has the new inputs already, so that nothing but the status differs; and the other edit is taken back."""
    other = (Network(name="other"), Subnet(name="other", network="other", cidr="10.2.0.0/24"))
    lab.apply(*other, written(tmp_path, "fails", FAILS, network="nodes", fail=False))
    before = ports(lab)
    half = written(tmp_path, "fails", FAILS, network="other", fail=True)
    assert lab.run(*other, half, allow_replace=True).failed
    assert ports(lab) == before
    assert "port (OS::Neutron::Port)" in str(lab.plan(*other, half).refusals)
    back = written(tmp_path, "fails", FAILS, network="nodes", fail=False)
    assert "port (OS::Neutron::Port)" not in str(lab.plan(*other, back).refusals)
    lab.run(*other, back, allow_replace=True).raise_for_failures()
    assert ports(lab) == before


def test_groups_whose_members_heat_does_not_preview(lab: Lab, tmp_path: Path) -> None:
    """One that its template makes grow is previewed at its present size; one that scales, not at all."""
    other = (Network(name="other"), Subnet(name="other", network="other", cidr="10.2.0.0/24"))
    (tmp_path / "port.yaml").write_text(PORT)
    scales = written(tmp_path, "scales", SCALES, network="nodes")
    lab.apply(*other, written(tmp_path, "grows", GROWS.replace("COUNT", "1"), network="nodes"), scales)
    both = written(tmp_path, "grows", GROWS.replace("COUNT", "2"), network="other")
    moved = replace(scales, parameters={"network": "other"})
    grown, rolled = map(str, lab.plan(*other, both, moved).refusals)
    assert "would replace nodes.0.port (OS::Neutron::Port)" in grown
    assert "may delete, replace or wipe the members of ports (OS::Heat::AutoScalingGroup)" in rolled
    both = written(tmp_path, "grows", GROWS.replace("COUNT", "2"), network="nodes")
    two = replace(scales, parameters={"network": "nodes", "number": 2})
    before = ports(lab)
    assert lab.apply(*other, both, two).keys() == {"stack/grows", "stack/scales"}
    assert before < ports(lab)


def test_what_an_update_deletes_needs_consent(lab: Lab, tmp_path: Path, images: tuple[str, str]) -> None:
    """A group that shrinks, members chosen to go, a resource taken out of the template; each is named."""

    def shrinks(text: str, **parameters: Any) -> Stack:
        return written(tmp_path, "shrinks", text, image=images[0], **parameters)

    def lost(**parameters: Any) -> str:
        said = [str(each) for each in lab.plan(shrinks(SHRINKS + VOLUME, **parameters)).refusals]
        return "".join(re.findall(r"the update would delete (.*?);", "".join(said)))

    lab.apply(shrinks(SHRINKS + VOLUME))
    before = servers(lab)
    assert lost(count=2) == "nodes.2 (OS::Nova::Server node-2)"
    assert lost(count=2, volumes=2) == "nodes.2 (OS::Nova::Server node-2)", "hidden by a group that grows"
    assert lost(count=2, remove="0") == "nodes.0 (OS::Nova::Server node-0)"
    assert lost(remove="1") == "nodes.1 (OS::Nova::Server node-1)"
    assert lost(count=1, remove="1") == "nodes.1 (OS::Nova::Server node-1), nodes.2 (OS::Nova::Server node-2)"
    assert "would delete data (OS::Cinder::Volume)" in str(lab.plan(shrinks(SHRINKS)).refusals)
    with pytest.raises(PlanRefused):
        lab.run(shrinks(SHRINKS, count=2))
    assert servers(lab).keys() == before.keys()
    fewer = shrinks(SHRINKS + VOLUME, count=2, remove="0", volumes=2)
    assert lab.apply(fewer, allow_replace=True) == {"stack/shrinks": "update"}
    assert {before[each].name for each in servers(lab)} == {"node-1", "node-2"}
    assert lab.apply(shrinks(SHRINKS + VOLUME, count=3, remove="0", volumes=2)) == {"stack/shrinks": "update"}


def test_a_kept_plan_brings_the_consent_that_it_was_made_with(prep: Prep, tmp_path: Path) -> None:
    name = f"losses-{secrets.token_hex(3)}"
    (tmp_path / "port.yaml").write_text(PORT)

    def spec(*networks: str) -> dict[str, Any]:
        stack = {"name": name, "template": "port.yaml", "parameters": {"network": networks[-1]}}
        return {"name": name, "networks": [{"name": each} for each in networks], "stacks": [stack]}

    old, new = f"{name}-old", f"{name}-new"
    prep.write(spec(old))
    prep.apply()
    prep.write(spec(old, new))
    said = prep.run("plan", "-o", "kept", "spec.yaml").stdout
    assert f"the update is previewed again once network/{new} exists" in said
    assert "would replace port" in prep.run("apply", "--plan", "kept", code=1).stdout
    assert "would replace port" in prep.run("plan", "-o", "kept", "spec.yaml", code=2).stderr
    prep.run("plan", "--allow-replace", "-o", "kept", "spec.yaml")
    prep.run("apply", "--plan", "kept")
    assert prep.changes() == set()


def wait_for(lab: Lab, status: str) -> None:
    deadline = time.monotonic() + 120
    heat = lab.as_user().orchestration
    while (found := [each["stack_status"] for each in heat.list("/stacks", "stacks")]) != [status]:
        assert time.monotonic() < deadline, found
        time.sleep(0.5)


def test_what_a_colleague_has_put_into_a_stack_is_named_before_it_is_destroyed(lab: Lab, tmp_path: Path) -> None:
    """By ``openstack stack update``; the members by which a group shrinks in the spec are the spec's own."""
    (tmp_path / "port.yaml").write_text(PORT)
    declared = written(tmp_path, "grows", GROWS.replace("COUNT", "2"), network="nodes")
    lab.apply(declared)
    heat, cinder = lab.as_user().orchestration, lab.as_user().volume
    (raw,) = heat.list("/stacks", "stacks")
    path = f"/stacks/grows/{raw['id']}"
    template = yaml.safe_load(GROWS.replace("COUNT", "2") + VOLUME)
    heat.request("PATCH", path, json={"template": template, "files": heat.get(f"{path}/files")})
    wait_for(lab, "UPDATE_COMPLETE")
    (volume,) = cinder.list("/volumes", "volumes")

    fewer = written(tmp_path, "grows", GROWS.replace("COUNT", "1"), network="nodes")
    for stack in (declared, fewer):
        plan = api.plan_destroy(lab.cloud, lab.spec(stack))
        losses = [loss.address for step in plan for loss in step.deletion_losses if step.key.kind == "stack"]
        assert losses == [f"stack_resource/{volume['id']}"]
    with pytest.raises(PlanRefused):
        lab.destroy_stacks(declared)
    assert cinder.list("/volumes", "volumes") == [volume]
    alone = Spec(lab.name, (replace(declared, project=None),))
    api.destroy(lab.as_user(), alone, allow_loss=losses).raise_for_failures()
    assert cinder.list("/volumes", "volumes") == []


def test_a_suspended_stack_is_refused_before_heat_refuses_it(lab: Lab, tmp_path: Path) -> None:
    declared = written(tmp_path, "port", PORT, network="nodes")
    lab.apply(declared)
    heat = lab.as_user().orchestration
    (raw,) = heat.list("/stacks", "stacks")
    heat.post(f"/stacks/port/{raw['id']}/actions", {"suspend": None})
    wait_for(lab, "SUSPEND_COMPLETE")
    assert [each.code for each in lab.plan(declared).refusals] == [Code.STACK_REFUSED]


ADDRESSED = """
heat_template_version: wallaby
parameters: {image: {type: string}, address: {type: string}, network: {type: string}, label: {type: string}}
resources:
  port:
    type: OS::Neutron::Port
    properties: {network: nodes, fixed_ips: [{ip_address: {get_param: address}}]}
    deletion_policy: Delete
  server:
    type: OS::Nova::Server
    properties:
      flavor: m1.small
      image: {get_param: image}
      networks: [{network: {get_param: network}}]
      metadata: {label: {get_param: label}}
"""


def test_what_leads_to_addresses_of_a_stack_is_named_before_these_change(
    lab: Lab, tmp_path: Path, images: tuple[str, str]
) -> None:
    """Neutron deletes port forwardings to an address that a port loses; Heat deletes the ports of changed networks."""
    router = Router(name="out", external_network="external", interfaces=("nodes", "other"))
    base = (Network(name="other"), Subnet(name="other", network="other", cidr="10.2.0.0/24"), router)
    given = {"image": images[0], "network": "nodes", "label": "a"}
    lab.apply(*base, written(tmp_path, "addressed", ADDRESSED, address="10.0.0.50", **given))
    neutron = lab.admin.network
    external = neutron.find_network("external", ignore_missing=False).id
    ours = [each for each in neutron.ports(project_id=lab.project_id) if each.fixed_ips]
    (port,) = [each for each in ours if each.fixed_ips[0]["ip_address"] == "10.0.0.50"]
    (of_server,) = [each for each in ours if each.device_owner.startswith("compute:")]
    to_port, to_server = (neutron.create_ip(floating_network_id=external) for _ in range(2))
    inside = {"internal_port_id": port.id, "internal_ip_address": "10.0.0.50", "internal_port": 80}
    forwarding = neutron.create_port_forwarding(floatingip_id=to_port.id, external_port=80, protocol="tcp", **inside)
    neutron.update_ip(to_server, port_id=of_server.id)
    try:
        renamed = written(tmp_path, "addressed", ADDRESSED, address="10.0.0.50", **given | {"label": "b"})
        assert lab.apply(*base, renamed) == {"stack/addressed": "update"}
        for edit, loss, policy in (
            ({"address": "10.0.0.51"}, f"port_forwarding/{forwarding.id}", "Retain"),
            ({"address": "10.0.0.51"}, f"port_forwarding/{forwarding.id}", "Delete"),
            ({"network": "other"}, f"floating_ip/{to_server.id}", "Delete"),
        ):
            values: Any = {"address": "10.0.0.50", **given, "label": "b", **edit}
            moved = written(tmp_path, "addressed", ADDRESSED.replace("Delete", policy), **values)
            (said,) = map(str, lab.plan(*base, moved).refusals)
            assert f"--allow-loss {loss}" in said
            assert said.count("--allow-loss") == 1
    finally:
        neutron.delete_port_forwarding(forwarding, to_port)
        for each in (to_server, to_port):
            neutron.delete_ip(each)
    assert lab.apply(*base, moved) == {"stack/addressed": "update"}


WRITTEN = """
heat_template_version: wallaby
parameters:
  pairs: {type: json}
  tag: {type: string}
  image: {type: string}
resources:
  group: {type: OS::Neutron::SecurityGroup}
  port:
    type: OS::Neutron::Port
    properties:
      network: nodes
      allowed_address_pairs: {get_param: pairs}
      security_groups: [{get_resource: group}, DEFAULT]
      tags: [{get_param: tag}]
  server:
    type: OS::Nova::Server
    properties:
      flavor: m1.small
      image: {get_param: image}
      networks: [{port: {get_resource: port}}]
      metadata: {label: {get_param: tag}}
  volume: {type: OS::Cinder::Volume, properties: {size: 1, metadata: {label: {get_param: tag}}}}
"""


def test_what_others_have_put_into_lists_that_an_update_writes_is_named(
    lab: Lab, tmp_path: Path, images: tuple[str, str]
) -> None:
    """Heat writes lists and mappings as a whole. The spec's own pairs are there again after the same run."""
    mine = AddressPairs(name="mine", addresses=("10.0.0.100",), stack="written")
    given: dict[str, Any] = {"pairs": [{"ip_address": "10.0.0.50"}], "tag": "a", "image": images[0]}
    text = WRITTEN.replace("DEFAULT", "default")
    lab.apply(written(tmp_path, "written", text, **given), mine)
    neutron, compute, volumes = lab.admin.network, lab.admin.compute, lab.admin.block_storage
    (port,) = [each for each in neutron.ports(project_id=lab.project_id) if each.allowed_address_pairs]
    pairs = [*port.allowed_address_pairs, {"ip_address": "10.0.0.200"}, {"ip_address": "10.0.0.201"}]
    theirs = neutron.create_security_group(name="monitoring", project_id=lab.project_id)
    neutron.update_port(port, allowed_address_pairs=pairs, security_group_ids=[*port.security_group_ids, theirs.id])
    neutron.set_tags(port, [*neutron.get_port(port.id).tags, "backup", "openstack-prep:other~10.0.0.201"])
    server = compute.get_server(port.device_id)
    compute.set_server_metadata(server, owner="me")
    (volume,) = volumes.volumes(all_projects=True, project_id=lab.project_id)
    volumes.set_volume_metadata(volume, owner="me")
    taken = {
        "pairs": {f"address_pair/{port.id}/10.0.0.200", f"address_pair/{port.id}/10.0.0.201"},
        "tag": {f"tag/{port.id}/backup", f"tag/{port.id}/openstack-prep:other~10.0.0.201"}
        | {f"tag/{port.id}/openstack-prep:{lab.name}~10.0.0.100"}
        | {f"metadata/{each.id}/owner" for each in (server, volume)},
        "groups": {f"group_of_port/{port.id}/{theirs.id}"},
    }
    edits: dict[str, Any] = {"pairs": {"pairs": [{"ip_address": "10.0.0.51"}]}, "tag": {"tag": "b"}, "groups": {}}
    for name, edit in edits.items():
        edited = written(
            tmp_path, "written", WRITTEN.replace(", DEFAULT", "") if name == "groups" else text, **given | edit
        )
        said = "\n".join(map(str, lab.plan(edited, mine).refusals))
        assert set(re.findall(r"--allow-loss '?([^\s']+)", said)) == taken[name]
    edited = written(tmp_path, "written", text, **given | edits["pairs"])
    assert lab.apply(edited, mine, allow_loss=taken["pairs"])["stack/written"] == "update"
    left = {each["ip_address"] for each in neutron.get_port(port.id).allowed_address_pairs}
    assert left == {"10.0.0.51", "10.0.0.100"}
    lab.destroy_stacks()
    neutron.delete_security_group(theirs)


CUTTING = """
heat_template_version: wallaby
parameters: {up: {type: boolean}, read_only: {type: boolean}, label: {type: string}}
resources:
  net: {type: OS::Neutron::Net, properties: {name: of-stack}}
  sub: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.9.0.0/24}}
  router:
    type: OS::Neutron::Router
    properties: {external_gateway_info: {network: external}, admin_state_up: {get_param: up}}
  joined:
    type: OS::Neutron::RouterInterface
    properties: {router: {get_resource: router}, subnet: {get_resource: sub}}
  volume: {type: OS::Cinder::Volume, properties: {size: 1, read_only: {get_param: read_only}}}
  inner:
    type: OS::Heat::Stack
    properties:
      template: {str_replace: {template: {get_file: inner.yaml}, params: {LABEL: {get_param: label}}}}
"""
INNER = """
heat_template_version: wallaby
resources: {value: {type: "OS::Heat::Value", properties: {value: LABEL}}}
"""


def test_changes_in_place_that_cut_others_off_are_named(lab: Lab, tmp_path: Path, images: tuple[str, str]) -> None:
    (tmp_path / "inner.yaml").write_text(INNER)
    given = {"up": True, "read_only": False, "label": "a"}
    lab.apply(written(tmp_path, "cutting", CUTTING, **given))
    neutron, compute = lab.admin.network, lab.admin.compute
    network = neutron.find_network("of-stack", project_id=lab.project_id, ignore_missing=False)
    port = neutron.create_port(
        network_id=network.id, project_id=lab.project_id, device_owner="compute:x", name="theirs"
    )
    (volume,) = lab.admin.block_storage.volumes(all_projects=True, project_id=lab.project_id)
    nodes = neutron.find_network("nodes", project_id=lab.project_id, ignore_missing=False)
    user: Any = lab.as_user()
    flavor = compute.find_flavor("m1.small", ignore_missing=False)
    image = lab.admin.image.find_image(images[0], ignore_missing=False)
    theirs = {"name": "t", "flavorRef": flavor.id, "imageRef": image.id, "networks": [{"uuid": nodes.id}]}
    server_id = user.compute.post("/servers", {"server": theirs})["server"]["id"]
    compute.wait_for_server(compute.get_server(server_id))
    user.compute.post(f"/servers/{server_id}/os-volume_attachments", {"volumeAttachment": {"volumeId": volume.id}})
    for edit, loss in (
        ({"up": False}, f"port/{port.id}"),
        ({"read_only": True}, f"volume_attachment/{volume.id}/{server_id}"),
        ({"label": "b"}, "unread/cutting/inner"),
    ):
        said = "\n".join(map(str, lab.plan(written(tmp_path, "cutting", CUTTING, **given | edit)).refusals))
        assert re.findall(r"--allow-loss (\S+)", said) == [loss]
    compute.delete_server(server_id)
    compute.wait_for_delete(compute.get_server(server_id))
    neutron.delete_port(port)
    assert lab.apply(written(tmp_path, "cutting", CUTTING, **given | {"up": False})) == {"stack/cutting": "update"}
    lab.destroy_stacks(allow_loss=["unread/cutting/inner"])


TAKING = """
heat_template_version: wallaby
parameters: {fip: {type: string}, more: {type: boolean}}
conditions: {more: {get_param: more}}
resources:
  port: {type: OS::Neutron::Port, properties: {network: nodes}}
  attached:
    type: OS::Neutron::FloatingIPAssociation
    condition: more
    properties: {floatingip_id: {get_param: fip}, port_id: {get_resource: port}}
  box: {type: OS::Swift::Container, condition: more, properties: {name: shared-box}}
"""


def test_a_new_resource_takes_nothing_that_serves_others(lab: Lab, tmp_path: Path, devcloud: Devcloud) -> None:
    """In a new stack, and in one that an update adds to; the printed command detaches the floating IP."""
    neutron, user = lab.admin.network, lab.as_user()
    router = Router(name="out", external_network="external", interfaces=("nodes",))
    lab.apply(router)
    role = lab.admin.identity.find_role("swiftoperator", ignore_missing=False)
    lab.admin.identity.assign_project_role_to_user(lab.project_id, user.user_id, role)
    user = lab.as_user()
    nodes = neutron.find_network("nodes", project_id=lab.project_id, ignore_missing=False)
    theirs = neutron.create_port(network_id=nodes.id, project_id=lab.project_id)
    external = neutron.find_network("external", ignore_missing=False).id
    fip = neutron.create_ip(floating_network_id=external, project_id=lab.project_id, port_id=theirs.id)
    user.object_store.request("PUT", "/shared-box")
    first = written(tmp_path, "taking", TAKING, fip=fip.id, more=False)
    second = written(tmp_path, "taking", TAKING, fip=fip.id, more=True)
    for _ in range(2):
        said = str(lab.plan(router, second).refusals)
        assert f"serves port {theirs.id}" in said
        assert "shared-box exists" in said
        lab.apply(router, first)
    (command,) = set(re.findall(r"openstack floating ip unset --port [\d.]+", said))
    carry_out(command, {"OS_CLIENT_CONFIG_FILE": str(devcloud.clouds_file), "OS_CLOUD": "devcloud-admin"})
    assert neutron.get_ip(fip).port_id is None
    user.object_store.request("DELETE", "/shared-box")
    assert lab.apply(router, second) == {"stack/taking": "update"}
    lab.destroy_stacks()
    neutron.delete_ip(fip)
    neutron.delete_port(theirs)


def test_members_of_a_group_that_may_go_are_judged(lab: Lab, tmp_path: Path) -> None:
    """Heat cannot preview which members of a scaling group go."""
    router = Router(name="out", external_network="external", interfaces=("nodes",))
    lab.apply(router, written(tmp_path, "scaled", SCALES, network="nodes", number=2))
    neutron = lab.admin.network
    (port, _) = ports(lab)
    external = neutron.find_network("external", ignore_missing=False).id
    fip = neutron.create_ip(floating_network_id=external, port_id=port)
    shrunk = written(tmp_path, "scaled", SCALES, network="nodes", number=1)
    refused = api.plan(lab.cloud, lab.spec(router, shrunk), allow_replace=True).refusals
    assert [f"--allow-loss floating_ip/{fip.id}" in str(each) for each in refused] == [True]
    neutron.delete_ip(fip)
    lab.run(router, shrunk, allow_replace=True).raise_for_failures()
    assert len(ports(lab)) == 1
