"""Drift that no spec declares, reported on the real services."""

from __future__ import annotations

import json

from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.conftest import Prep


def found(prep: Prep, code: int) -> set[tuple[str, str]]:
    said = json.loads(prep.run("audit", "--format", "json", prep.spec.name, code=code).stdout)
    return {(each["resource"], each["code"]) for each in said["drift"]}


def test_what_nobody_declared_is_reported(prep: Prep, devcloud: Devcloud) -> None:
    prep.write(
        {
            "name": "audited",
            "project": {"name": "audited"},
            "users": [{"name": "audited", "password": {"env": "PREP_PASSWORD"}}],
            "role_assignments": [{"user": "audited", "role": "member"}],
            "flavors": [{"name": "audited", "ram": 512, "vcpus": 1, "is_public": False, "access": ["audited"]}],
            "images": [{"name": "disk", "source": "disk.qcow2", "visibility": "shared"}],
            "networks": [{"name": "net"}],
            "subnets": [{"name": "sub", "network": "net", "cidr": "10.1.0.0/24"}],
            "security_groups": [{"name": "web", "rules": [{"protocol": "tcp", "ports": 443}]}],
        }
    )
    prep.apply()
    assert found(prep, code=0) == set()

    admin = devcloud.admin
    project = admin.identity.find_project("audited", ignore_missing=False)
    group = admin.network.find_security_group("web", project_id=project.id, ignore_missing=False)
    rule = admin.network.create_security_group_rule(security_group_id=group.id, direction="ingress", protocol="tcp")
    network = admin.network.create_network(name="by-hand", project_id=project.id)
    net = admin.network.find_network("net", project_id=project.id, ignore_missing=False)
    pairs = [{"ip_address": "10.1.0.200"}]
    port = admin.network.create_port(
        network_id=net.id, project_id=project.id, name="by-hand", allowed_address_pairs=pairs
    )
    role = admin.identity.find_role("reader", ignore_missing=False)
    person = admin.identity.find_user("admin", ignore_missing=False)
    admin.identity.assign_project_role_to_user(project, person, role)
    user = admin.identity.find_user("audited", ignore_missing=False)
    admin.identity.update_user(user, enabled=False)
    flavor = admin.compute.find_flavor("audited", ignore_missing=False)
    admin.compute.flavor_add_tenant_access(flavor, admin.current_project_id)
    image = admin.image.find_image("disk", ignore_missing=False)
    admin.image.add_member(image, member_id=admin.current_project_id)
    assert found(prep, code=1) >= {
        ("flavor/audited", "access"),
        ("image/disk", "access"),
        ("security_group/web", "open"),
        ("network/by-hand", "unmanaged"),
        ("port/by-hand", "pairs"),
        ("role_assignment/user:admin@project:audited/reader", "unmanaged"),
        ("user/audited", "disabled"),
    }
    admin.identity.update_user(user, enabled=True)
    # What is of others goes first: a destroy refuses to take it along.
    admin.image.remove_member(admin.current_project_id, image)
    admin.compute.flavor_remove_tenant_access(flavor, admin.current_project_id)
    admin.identity.unassign_project_role_from_user(project, person, role)
    admin.network.delete_security_group_rule(rule)
    admin.network.delete_port(port)
    admin.network.delete_network(network)


def test_the_resources_of_a_stack_are_not_reported(prep: Prep, devcloud: Devcloud) -> None:
    resources = {
        "group": {
            "type": "OS::Neutron::SecurityGroup",
            "properties": {
                "name": "of-stack",
                "rules": [{"protocol": "tcp", "port_range_min": 6443, "port_range_max": 6443}],
            },
        },
        "rule": {
            "type": "OS::Neutron::SecurityGroupRule",
            "properties": {"security_group": {"get_resource": "group"}, "protocol": "icmp", "direction": "ingress"},
        },
        "net": {"type": "OS::Neutron::Net", "properties": {"name": "of-stack"}},
        "sub": {
            "type": "OS::Neutron::Subnet",
            "properties": {"network": {"get_resource": "net"}, "cidr": "10.1.0.0/24"},
        },
        "port": {
            "type": "OS::Neutron::Port",
            "depends_on": "sub",
            "properties": {"network": {"get_resource": "net"}, "allowed_address_pairs": [{"ip_address": "10.1.0.200"}]},
        },
    }
    template = {"heat_template_version": "2021-04-16", "resources": resources}
    (prep.folder / "stack.json").write_text(json.dumps(template))
    prep.write(
        {
            "name": "audited",
            "project": {"name": "audited"},
            "users": [{"name": "audited", "password": {"env": "PREP_PASSWORD"}}],
            "role_assignments": [{"user": "audited", "role": "member"}],
            "stacks": [{"name": "cluster", "template": "stack.json"}],
        }
    )
    prep.apply()
    assert found(prep, code=0) == set()
    admin = devcloud.admin
    project = admin.identity.find_project("audited", ignore_missing=False)
    group = admin.network.create_security_group(name="by-hand", project_id=project.id)
    of_stack = admin.network.find_security_group("of-stack", project_id=project.id, ignore_missing=False)
    opened = admin.network.create_security_group_rule(
        security_group_id=of_stack.id, direction="ingress", protocol="tcp", port_range_min=22, port_range_max=22
    )
    assert found(prep, code=1) == {("security_group/by-hand", "unmanaged"), ("security_group/of-stack", "open")}
    admin.network.delete_security_group_rule(opened)
    admin.network.delete_security_group(group)
