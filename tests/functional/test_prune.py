"""What is managed and no longer in the spec: named in every plan, deleted by --prune, on the real services."""

from __future__ import annotations

import json
from typing import Any

import openstack_prep
from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.conftest import Prep

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB"
SPEC: dict[str, Any] = {
    "name": "prune",
    "project": {"name": "prune"},
    "users": [{"name": "prune1", "password": {"env": "PREP_PASSWORD"}}, {"name": "prune3"}],
    "role_assignments": [{"user": "prune1", "role": "member"}, {"user": "prune3", "role": "reader"}],
    "flavors": [{"name": "prune-small", "ram": 512, "vcpus": 1}],
    "images": [{"name": "disk", "source": "disk.qcow2", "disk_format": "qcow2"}],
    "keypairs": [{"name": "key", "public_key": KEY}],
    "networks": [{"name": "net"}],
    "subnets": [{"name": "sub", "network": "net", "cidr": "10.1.0.0/24"}],
    "routers": [{"name": "router", "external_network": "external", "interfaces": ["sub"]}],
    "security_groups": [{"name": "web", "rules": [{"protocol": "tcp", "ports": 443}]}],
    "floating_ips": [{"name": "api", "external_network": "external"}],
}
REMAINING = {
    **{name: SPEC[name] for name in ("name", "project")},
    "users": SPEC["users"][:1],
    "role_assignments": SPEC["role_assignments"][:1],
}
GONE = {
    "user/prune3",  # its role goes with it
    "flavor/prune-small",
    "image/disk",
    "keypair/key",
    "network/net",
    "subnet/sub",
    "router/router",
    "security_group/web",
    "floating_ip/api",
}


def undeclared(prep: Prep) -> set[str]:
    return set(json.loads(prep.run("plan", "--format", "json", prep.spec.name).stdout)["undeclared"])


def test_what_is_no_longer_in_the_spec_is_named_kept_and_pruned(prep: Prep, devcloud: Devcloud) -> None:
    prep.write(SPEC)
    prep.apply()
    assert undeclared(prep) == set()
    project = devcloud.admin.identity.find_project("prune", ignore_missing=False)
    foreign = devcloud.admin.network.create_security_group(name="by-hand", project_id=project.id)

    prep.write(REMAINING)
    assert undeclared(prep) == GONE
    prep.run("plan", "--detailed-exitcode", prep.spec.name)  # 0: nothing pending
    assert prep.apply().keys() >= {"project/prune"}
    assert undeclared(prep) == GONE  # apply alone deletes nothing
    prep.run("plan", "--detailed-exitcode", "--prune", prep.spec.name, code=2)

    done = prep.apply("--prune")
    assert {name for name, step in done.items() if step["action"] == "delete"} == GONE
    assert undeclared(prep) == set()
    assert devcloud.admin.identity.find_user("prune3") is None
    assert devcloud.admin.network.find_security_group(foreign.id) is not None
    devcloud.admin.network.delete_security_group(foreign)


def test_a_network_that_somebody_elses_port_is_on_is_not_pruned(prep: Prep, devcloud: Devcloud) -> None:
    prep.write(SPEC)
    prep.apply()
    project = devcloud.admin.identity.find_project("prune", ignore_missing=False)
    (network,) = devcloud.admin.network.networks(project_id=project.id)
    port = devcloud.admin.network.create_port(network_id=network.id, project_id=project.id, name="by-hand")
    prep.write(REMAINING)
    said = prep.run("apply", "--yes", "--prune", prep.spec.name, code=2).stderr
    assert port.id in said
    assert "network/net" in undeclared(prep)
    devcloud.admin.network.delete_port(port)
    prep.apply("--prune")


def test_a_project_that_a_spec_of_the_same_name_may_have_is_named_and_stays(prep: Prep, devcloud: Devcloud) -> None:
    prep.write(SPEC)
    prep.apply()
    elsewhere = {**REMAINING, "project": {"name": "prune-other"}}
    elsewhere |= {"users": [{"name": "prune5", "password": {"env": "PREP_PASSWORD"}}]}
    elsewhere |= {"role_assignments": [{"user": "prune5", "role": "member"}]}
    prep.write(elsewhere)
    prep.apply()
    assert undeclared(prep) == {"project/prune"}
    assert "run destroy with a spec that declares it" in prep.run("plan", prep.spec.name).stdout
    prep.apply("--prune")
    prep.destroy()
    project = devcloud.admin.identity.find_project("prune", ignore_missing=False)
    assert devcloud.admin.identity.find_user("prune3") is not None
    assert devcloud.admin.compute.find_flavor("prune-small") is not None
    assert list(devcloud.admin.network.networks(project_id=project.id))
    prep.write(SPEC)
    assert prep.changes() == set()


def test_the_second_project_of_a_list_is_pruned_with_what_is_in_it(devcloud: Devcloud) -> None:
    cloud = openstack_prep.connect(connection=devcloud.admin)
    home, second = openstack_prep.Project(name="prune-home"), openstack_prep.Project(name="prune-second")
    network = openstack_prep.Network(name="net", project="prune-second")
    openstack_prep.apply(cloud, [home, second, network], name="prune-list").raise_for_failures()
    try:
        plan = openstack_prep.plan(cloud, [home], name="prune-list", prune=True)
        assert {str(step) for step in plan.pending} == {"project/prune-second", "network/net"}
        openstack_prep.apply(cloud, plan).raise_for_failures()
        assert devcloud.admin.identity.find_project("prune-second") is None
        assert devcloud.admin.network.find_network("net") is None
    finally:
        openstack_prep.destroy(cloud, [home, second, network], name="prune-list").raise_for_failures()


def test_what_came_into_a_project_after_the_plan_keeps_it(devcloud: Devcloud) -> None:
    cloud = openstack_prep.connect(connection=devcloud.admin)
    home, second = openstack_prep.Project(name="prune-home"), openstack_prep.Project(name="prune-second")
    openstack_prep.apply(cloud, [home, second], name="prune-list").raise_for_failures()
    try:
        plan = openstack_prep.plan(cloud, [home], name="prune-list", prune=True)
        project = devcloud.admin.identity.find_project("prune-second", ignore_missing=False)
        foreign = devcloud.admin.network.create_network(name="by-hand", project_id=project.id)
        (failed,) = openstack_prep.apply(cloud, plan).failed
        assert foreign.id in str(failed.error)
        assert devcloud.admin.identity.find_project("prune-second") is not None
        devcloud.admin.network.delete_network(foreign)
    finally:
        openstack_prep.destroy(cloud, [home, second], name="prune-list").raise_for_failures()


def test_destroy_deletes_what_is_no_longer_in_the_spec_too(prep: Prep, devcloud: Devcloud) -> None:
    prep.write(SPEC)
    prep.apply()
    prep.write(REMAINING)
    prep.destroy()
    assert devcloud.admin.identity.find_project("prune") is None
    assert devcloud.admin.compute.find_flavor("prune-small") is None
