"""Copies that services and people make of what a spec manages, on the real services: they are never the spec's.

What each service copies, and why it misleads nobody: docs/decisions.md, "What services copy".
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from openstack.connection import Connection

from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.conftest import Prep
from tests.functional.test_prune import KEY

SPEC: dict[str, Any] = {
    "name": "copies",
    "project": {"name": "copies"},
    "users": [{"name": "copies", "password": {"env": "PREP_PASSWORD"}}],
    "role_assignments": [{"user": "copies", "role": "member"}],
    "images": [{"name": "disk", "source": "disk.qcow2", "disk_format": "qcow2"}],
    "networks": [{"name": "net"}],
    "subnets": [{"name": "sub", "network": "net", "cidr": "10.1.0.0/24"}],
}
DESCRIBED: dict[str, Any] = {
    "flavors": [{"name": "copies-node", "ram": 512, "vcpus": 1}],
    "keypairs": [{"name": "key", "public_key": KEY}],
    "routers": [{"name": "out", "external_network": "external", "interfaces": ["sub"]}],
    "security_groups": [{"name": "web", "rules": [{"protocol": "tcp", "ports": 443}]}],
    "application_credentials": [{"name": "ci", "clouds_yaml": "clouds.yaml", "cloud": "ci"}],
}
"""Kinds whose description, or comment, holds the ownership tag."""
SERVICE = "openstack_prep"


def as_user(prep: Prep, devcloud: Devcloud) -> Connection:
    """Return a connection of the user of the spec, in its project."""
    auth = {"auth_url": devcloud.auth_url, "username": "copies", "password": prep.environment["PREP_PASSWORD"]}
    domains = {"user_domain_id": "default", "project_domain_id": "default"}
    return Connection(auth=auth | domains | {"project_name": "copies"}, region_name=devcloud.admin.config.region_name)


def wait_for(what: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 120
    while not (found := what()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return found


@pytest.fixture
def user(prep: Prep, devcloud: Devcloud) -> Connection:
    prep.write(SPEC)
    prep.apply()
    return as_user(prep, devcloud)


def test_images_that_nova_and_cinder_copy(prep: Prep, user: Connection) -> None:
    """Snapshots, backups and uploaded volumes have the properties of the image, and also its name if the user says."""
    (image,) = user.image.images()
    volume = user.block_storage.create_volume(size=1, image_id=image.id, name="root")
    user.block_storage.wait_for_status(volume, "available", interval=0.1)
    (network,) = user.network.networks(name="net")
    flavor = next(user.compute.flavors())
    place = {"flavor_id": flavor.id, "networks": [{"uuid": network.id}]}
    servers = [user.compute.create_server(name="server", image_id=image.id, **place)]
    disk = {"uuid": volume.id, "source_type": "volume", "destination_type": "volume", "boot_index": 0}
    servers = [*servers, user.compute.create_server(name="of-volume", block_device_mapping=[disk], **place)]
    booted = [user.compute.wait_for_server(each, interval=0.1) for each in servers]

    def wait_for_idle() -> None:
        wait_for(lambda: {user.compute.get_server(each).task_state for each in servers} == {None})

    for name in ("disk", "disk-new", "snapshot"):
        for server in booted:
            user.compute.create_server_image(server, name)
        wait_for_idle()
    user.compute.backup_server(booted[0], "backup", "daily", 1)
    wait_for_idle()
    for server in servers:
        user.compute.delete_server(server)
    for server in servers:
        user.compute.wait_for_delete(server)
    for name in ("disk", "upload"):
        wait_for(lambda: user.block_storage.get_volume(volume.id).status == "available")
        user.block_storage.upload_volume_to_image(volume, name)
    wait_for(lambda: {each.status for each in user.image.images(disk_format="raw")} == {"active"})
    copies = {each.id: each for each in user.image.images() if each.id != image.id}
    assert len(copies) == 9
    assert {each.properties[SERVICE] for each in copies.values()} == {"copies"}, "services have copied the tag"

    assert prep.plan()["image/disk"] == "keep"
    assert not prep.changes()
    audit = json.loads(prep.run("audit", "--format", "json", prep.spec.name, code=1).stdout)
    codes = {each["code"] for each in audit["drift"] if each["resource"].startswith("image/")}
    assert codes == {"unmanaged"}
    refused = prep.destroy(code=2).stderr
    assert [each for each in (*copies, image.id) if each in refused] == [*copies]
    prep.write({key: value for key, value in SPEC.items() if key != "images"})
    pruned = prep.apply("--prune")
    assert [name for name, step in pruned.items() if step["action"] == "delete"] == ["image/disk"]
    assert {each.id for each in user.image.images()} == copies.keys()

    prep.write(SPEC)
    refused = prep.run("plan", prep.spec.name, code=2)
    assert "disk" in refused.stdout + refused.stderr, "several images have this name, and none is the spec's"
    for copy in copies:
        user.image.delete_image(copy)
    for snapshot in user.block_storage.snapshots():
        user.block_storage.delete_snapshot(snapshot)
    wait_for(lambda: not list(user.block_storage.snapshots()))
    user.block_storage.delete_volume(volume)
    wait_for(lambda: not list(user.block_storage.volumes()))


def test_descriptions_that_people_copy(prep: Prep, user: Connection, devcloud: Devcloud) -> None:
    """A description names the resource that it belongs to; a copy of the description has another name."""
    prep.write(SPEC | DESCRIBED)
    prep.apply()
    net, admin = user.network, devcloud.admin
    group = net.find_security_group("web", ignore_missing=False)
    rule = next(each for each in group.security_group_rules if each["description"])
    key = user.compute.get_keypair("key")
    (credential,) = user.identity.application_credentials(user.current_user_id)
    flavor = admin.compute.find_flavor("copies-node", ignore_missing=False)
    described = {
        "net": net.find_network("net").description,
        "sub": net.find_subnet("sub").description,
        "out": net.find_router("out").description,
    }

    network = net.create_network(name="mine", description=described["net"])
    subnet = {"network_id": network.id, "ip_version": 4, "cidr": "10.9.0.0/24"}
    copied = net.create_security_group(name="mine", description=group.description)
    made = {
        "subnet": net.create_subnet(name="mine", description=described["sub"], **subnet),
        "network": network,
        "router": net.create_router(name="mine", description=described["out"]),
        "security group rule": net.create_security_group_rule(
            security_group_id=copied.id, direction="ingress", protocol="tcp", description=rule["description"]
        ),
        "security group": copied,
        "key pair": user.compute.create_keypair(name="mine", public_key=key.public_key),
        "application credential": user.identity.create_application_credential(
            user.current_user_id, "mine", description=credential.description
        ),
        "flavor": admin.compute.create_flavor(
            name="copies-mine", ram=256, vcpus=1, disk=0, description=flavor.description
        ),
    }
    assert all("openstack-prep:copies" in (each.get("description") or each.public_key) for each in made.values())

    prep.write(SPEC)
    pruned = {name for name, step in prep.apply("--prune").items() if step["action"] == "delete"}
    assert pruned == {
        *("flavor/copies-node", "keypair/key", "router/out", "security_group/web", "application_credential/ci")
    }
    assert not prep.changes()
    for what, each in made.items():
        assert each.fetch(admin.compute if what == "flavor" else _service(user, what)), what
        each.delete(admin.compute if what == "flavor" else _service(user, what))


def _service(user: Connection, what: str) -> Any:
    services = {"key pair": user.compute, "application credential": user.identity}
    return services.get(what, user.network)


def test_tags_and_descriptions_that_people_copy_to_namesakes(prep: Prep, user: Connection, devcloud: Devcloud) -> None:
    """Tags of stacks and projects name these; the description of a user of another domain names the domain."""
    identity = devcloud.admin.identity
    (prep.folder / "stack.yaml").write_text("heat_template_version: wallaby\nresources: {}\n")
    corp, other = identity.create_domain(name="copies-corp"), identity.create_domain(name="copies-other")
    ops = [{"name": "copies-ops"}, {"name": "copies-ops", "domain": "copies-corp"}]
    roles = [{"user": "copies-ops", "user_domain": each, "role": "reader"} for each in ("Default", "copies-corp")]
    spec = SPEC | {
        "users": [*SPEC["users"], *ops],
        "role_assignments": [*SPEC["role_assignments"], *roles],
        "stacks": [{"name": "stack", "template": "stack.yaml"}],
    }
    prep.write(spec)
    prep.apply()
    assert not prep.changes()

    (stack,) = user.orchestration.stacks()
    home = identity.find_project("copies", ignore_missing=False)
    ops = {each.domain_id: each for each in identity.users(name="copies-ops")}
    body = {"template": "heat_template_version: wallaby", "tags": ",".join(stack.tags)}
    assert user.orchestration.post("/stacks", json={"stack_name": "theirs"} | body).ok
    tags = [*home.tags, f"openstack-prep:copies~{home.id}"]
    copies = [identity.create_project(name="copies-theirs", tags=tags)]
    copies += [identity.create_project(name="copies-theirs", tags=tags, domain_id=corp.id)]
    copies += [identity.create_project(name="copies-early", tags=[tags[-1], "openstack-prep:copies"])]
    reader = identity.find_role("reader")
    for description in (ops["default"].description, ops[corp.id].description):
        name = "copies-ops" if description == ops[corp.id].description else "copies-ops-2"
        copies.append(identity.create_user(name=name, domain_id=other.id, description=description))
    copies.append(identity.create_user(name="copies-ops-2", domain_id=corp.id, description=ops["default"].description))
    for each in copies[3:]:
        identity.assign_project_role_to_user(home, each, reader)
    try:
        assert not prep.changes()
        prep.write(SPEC)
        pruned = {name for name, step in prep.apply("--prune").items() if step["action"] == "delete"}
        assert pruned == {"stack/stack", "user/copies-ops", "user/copies-ops@copies-corp"}
        stacks = user.orchestration.stacks()  # Heat lists those that it has deleted for a while
        assert [each.name for each in stacks if each.status != "DELETE_COMPLETE"] == ["theirs"]
        for each in copies:
            assert each.fetch(identity)
    finally:
        for each in user.orchestration.stacks():
            user.orchestration.delete_stack(each)
        wait_for(lambda: not list(user.orchestration.stacks()))
        for each in copies:
            each.delete(identity)
        for domain in (corp, other):
            identity.update_domain(domain, is_enabled=False)
            identity.delete_domain(domain)
