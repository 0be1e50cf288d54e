"""An existing project as a spec: planning it changes nothing, on the real services."""

from __future__ import annotations

import json
import secrets
from dataclasses import replace
from typing import Any

import yaml

from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.conftest import Prep

SPEC: dict[str, Any] = {
    "name": "exported",
    "project": {"name": "exported", "description": "a project"},
    "users": [{"name": "exported", "password": {"env": "PREP_PASSWORD"}, "description": "of the test"}],
    "role_assignments": [{"user": "exported", "role": "member"}, {"user": "admin", "role": "reader"}],
    "quota": {"cores": 12, "networks": 7, "volumes": 3},
    "flavors": [{"name": "exported-small", "ram": 512, "vcpus": 1, "extra_specs": {"hw:cpu_policy": "shared"}}],
    "images": [{"name": "disk", "source": "disk.qcow2", "disk_format": "qcow2", "min_ram": 64}],
    "keypairs": [
        {
            "name": "key",
            "public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB",
        }
    ],
    "networks": [{"name": "net", "mtu": 1400}],
    "subnets": [
        {
            "name": "sub",
            "network": "net",
            "cidr": "10.1.0.0/24",
            "gateway_ip": "10.1.0.254",
            "dns_nameservers": ["10.1.0.5"],
            "host_routes": [{"destination": "10.9.0.0/24", "nexthop": "10.1.0.9"}],
        },
        {"name": "alone", "network": "net", "cidr": "fd00::/64", "gateway_ip": "none"},
    ],
    "routers": [{"name": "router", "external_network": "external", "interfaces": ["sub"]}],
    "security_groups": [
        {
            "name": "web",
            "rules": [
                {"protocol": "tcp", "ports": "8000-8100", "remote_ip_prefix": "10.0.0.0/8"},
                {"protocol": "icmp", "icmp_type": 8},
                {"remote_group": "self", "ethertype": "IPv6"},
                {"protocol": "udp", "ports": 53, "remote_group": "db", "description": "names"},
            ],
        },
        {"name": "db"},
    ],
    "server_groups": [{"name": "masters", "policy": "soft-anti-affinity"}],
    "floating_ips": [{"name": "api", "external_network": "external"}],
}


def exported(prep: Prep, *words: str) -> dict[str, Any]:
    text = prep.run("export", "--project", "exported", *words).stdout
    (prep.folder / "exported.yaml").write_text(text)
    found = yaml.safe_load(text)
    assert isinstance(found, dict)
    return found


def test_planning_what_was_exported_changes_nothing(prep: Prep, devcloud: Devcloud) -> None:
    prep.write(SPEC)
    prep.apply()
    project = devcloud.admin.identity.find_project("exported", ignore_missing=False)
    by_hand = devcloud.admin.network.create_network(name="by hand: yes", project_id=project.id)
    twin = devcloud.admin.network.create_network(name="by hand: yes", project_id=project.id)
    found = exported(prep)
    assert found.keys() >= SPEC.keys()
    assert [each["name"] for each in found["networks"]] == ["net"]
    text = (prep.folder / "exported.yaml").read_text()
    assert "a-password-of-the-test" not in text
    for each in (by_hand, twin):
        assert f"# not exported: network/by hand: yes {each.id}: its name is not unique in the project" in text
    said = prep.run("plan", "--detailed-exitcode", "exported.yaml").stdout
    assert "no longer in the spec" not in said
    for each in (by_hand, twin):
        devcloud.admin.network.delete_network(each)


def test_what_a_member_exports_is_a_spec_for_a_member(prep: Prep) -> None:
    """It declares neither the project nor its users: an administrator who applied it would have deleted those."""
    prep.write(SPEC | {"clouds_yaml": [{"path": "clouds.yaml", "cloud": "exported", "user": "exported"}]})
    prep.apply()
    mine = {"OS_CLIENT_CONFIG_FILE": str(prep.folder / "clouds.yaml"), "OS_CLOUD": "exported"}
    member = replace(prep, environment=prep.environment | mine)
    text = member.run("export").stdout
    (prep.folder / "exported.yaml").write_text(text)
    assert yaml.safe_load(text).keys() == SPEC.keys() - {"project", "users", "role_assignments"}
    said = member.run("plan", "--detailed-exitcode", "exported.yaml").stdout
    assert "no longer in the spec" not in said


def test_a_part_is_exported_by_kind_name_and_tag(prep: Prep) -> None:
    prep.write(SPEC)
    prep.apply()
    assert exported(prep, "--kind", "network", "--kind", "subnet", "--name", "[ns]*").keys() == {
        "name",
        "project",
        "networks",
        "subnets",
    }
    assert "flavors" not in exported(prep, "--tag", "another-spec")
    said = prep.run("export", "--kind", "netwrok", code=2).stderr
    assert "netwrok" in said


def test_the_plugin_of_the_client_does_the_same(prep: Prep) -> None:
    prep.write({"name": "plugged", "project": {"name": "plugged"}, "networks": [{"name": "net", "mtu": 1400}]})
    made = prep.openstack("prep", "apply", "--yes", "spec.yaml")
    assert {each["Resource"]: each["Status"] for each in made} == {"project/plugged": "done", "network/net": "done"}
    assert prep.openstack("prep", "plan", "spec.yaml") == []
    assert prep.changes() == set()
    assert [each["Exists"] for each in prep.openstack("prep", "show", "spec.yaml")] == [True, True]
    sections = prep.openstack("prep", "export", "--project", "plugged", "--kind", "network")
    assert [(each["name"], each["mtu"]) for each in sections["networks"]] == [("net", 1400)]
    destroyed = prep.openstack("prep", "destroy", "--yes", "spec.yaml")
    assert {each["Status"] for each in destroyed} == {"done"}


NAMES = ("${HOME}", "$$${a}", "$${", "${", "022", "22:30", "1.30", "0x1F", "1_000", "on", "null", "~", "=", "- a: b #c")
"""What YAML or a spec would read as something else."""


def test_names_that_a_spec_would_read_as_something_else(prep: Prep, devcloud: Devcloud) -> None:
    admin, name = devcloud.admin, "${HOME}"
    project = admin.identity.create_project(name=name, description="${of} $${the} project", tags=["${t}"])
    mine = {"project_id": project.id}
    for each in NAMES:
        network = admin.network.create_network(name=each, description=each, **mine)
        admin.network.set_tags(network, [each.replace(",", "")])
    admin.network.create_subnet(
        name=name, network_id=network.id, ip_version=4, cidr="10.1.0.0/24", description=name, **mine
    )
    group = admin.network.create_security_group(name=name, description=name, **mine)
    admin.network.create_security_group_rule(
        security_group_id=group.id, direction="ingress", protocol="tcp", description=name, **mine
    )
    admin.network.create_router(name=name, description=name, **mine)
    admin.network.create_port(network_id=network.id, name=name, description=name, **mine)
    image = {"disk_format": "raw", "container_format": "bare", "owner": project.id}
    admin.image.create_image(name, data=b"x" * 512, os_note=name, os_version="1.30", **image)
    text = prep.run("export", "--project", name).stdout
    (prep.folder / "exported.yaml").write_text(text)
    found = yaml.safe_load(text)
    assert found["name"] == found["project"]["name"] == "$${HOME}"
    assert len(found["networks"]) == len(NAMES)
    plan = prep.run("plan", "--detailed-exitcode", "--format", "json", "exported.yaml").stdout
    assert [each["action"] for each in json.loads(plan)["steps"] if each["action"] != "keep"] == []


def test_what_stacks_hold_is_not_exported_and_what_is_hidden_is_named(prep: Prep, devcloud: Devcloud) -> None:
    """An administrator without a login to the project sees its stacks, and only their names."""
    name = f"held{secrets.token_hex(3)}"
    template = {"heat_template_version": "2018-08-31"}
    net = {"type": "OS::Neutron::Net", "properties": {"name": "of-the-stack"}}
    (prep.folder / "t.yaml").write_text(yaml.safe_dump({**template, "resources": {"n": net}}))
    spec: dict[str, Any] = {
        "name": name,
        "project": {"name": name},
        "users": [{"name": name, "password": {"env": "PREP_PASSWORD"}}],
        "role_assignments": [{"user": name, "role": "member"}],
        "networks": [{"name": "own"}],
        "clouds_yaml": [{"path": "x/clouds.yaml", "cloud": name, "user": name}],
        "stacks": [{"name": "nodes", "template": "t.yaml"}],
    }
    prep.write(spec)
    prep.apply()

    def left_out(*words: str) -> list[str]:
        return list(json.loads(prep.run("export", "--format", "json", *words).stdout)["left_out"])

    hidden = left_out("--project", name)
    assert any(each.startswith("stack/nodes: ") for each in hidden)
    assert any(each.startswith("which resources belong to nodes: ") for each in hidden)
    alone = prep.folder / "alone.yaml"
    alone.write_text(yaml.safe_dump({"name": name, "project": {"name": name}}))
    audited = json.loads(prep.run("audit", "--format", "json", alone.name, code=1).stdout)
    assert "stack/nodes" in {each["resource"] for each in audited["drift"]}
    assert {each.partition(":")[0] for each in audited["left_out"]} == {
        "every application_credential",
        "every object_store",
    }
    before = dict(prep.environment)
    prep.environment |= {"OS_CLIENT_CONFIG_FILE": str(prep.folder / "x" / "clouds.yaml"), "OS_CLOUD": name}
    try:
        found = json.loads(prep.run("export", "--format", "json").stdout)
    finally:
        prep.environment = before
    assert [each["name"] for each in found["spec"]["networks"]] == ["own"]
    assert any(each.endswith("it belongs to stack nodes") for each in found["left_out"])


def test_what_was_made_by_hand_is_taken_over(prep: Prep, devcloud: Devcloud) -> None:
    """The spec that export writes takes over everything without another change, and destroy deletes all of it."""
    admin = devcloud.admin
    project = admin.identity.create_project(name="by-hand", description="made by hand")
    mine = {"project_id": project.id}
    network = admin.network.create_network(name="nodes", **mine)
    cidr = {"ip_version": 4, "cidr": "10.7.0.0/24"}
    subnet = admin.network.create_subnet(name="nodes", network_id=network.id, **cidr, **mine)
    external = admin.network.find_network("external", ignore_missing=False)
    gateway = {"external_gateway_info": {"network_id": external.id}}
    router = admin.network.create_router(name="nodes", **gateway, **mine)
    admin.network.add_interface_to_router(router, subnet_id=subnet.id)
    group = admin.network.create_security_group(name="web", **mine)
    web = {"direction": "ingress", "protocol": "tcp", "port_range_min": 443, "port_range_max": 443}
    admin.network.create_security_group_rule(security_group_id=group.id, **web, **mine)
    port = admin.network.create_port(network_id=network.id, name="vip", **mine)
    attached = admin.network.create_ip(floating_network_id=external.id, port_id=port.id, **mine)
    unnamed = admin.network.create_port(network_id=network.id, device_owner="compute:nova", device_id="x", **mine)
    other = admin.network.create_ip(floating_network_id=external.id, port_id=unnamed.id, **mine)

    text = prep.run("export", "--project", "by-hand", "--adopt", "permanently").stdout
    prep.spec.write_text(text)
    found = yaml.safe_load(text)
    assert found["floating_ip_attachments"] == [{"port": "vip", "address": attached.floating_ip_address}]
    assert f"# not exported: the attachment of {other.floating_ip_address} to port {unnamed.id}: " in text
    assert found["routers"][0].keys() == {"name", "adopt", "external_network", "interfaces"}
    assert [rule["ports"] for rule in found["security_groups"][0]["rules"] if "ports" in rule] == ["443"]
    admin.network.delete_ip(other)
    admin.network.delete_port(unnamed)
    prep.spec.write_text(prep.run("export", "--project", "by-hand", "--adopt", "permanently").stdout)

    plan = prep.plan()
    assert set(plan.values()) <= {"adopt", "keep"}
    taken = {resource for resource, action in plan.items() if action == "adopt"}
    assert {"project/by-hand", "network/nodes", "subnet/nodes", "router/nodes", "security_group/web"} <= taken
    prep.apply()
    assert prep.changes() == set()
    prep.destroy()
    assert admin.identity.find_project("by-hand") is None
    assert list(admin.network.ips(project_id=project.id)) == []
    prep.spec.unlink()
