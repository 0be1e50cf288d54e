"""What is managed and no longer in the spec: named in every plan, deleted by --prune, on the real services."""

from __future__ import annotations

import json
import time
from typing import Any

import yaml

import openstack_prep
from tests.devcloud.faults import Fault
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
    listed = json.loads(prep.run("plan", "--format", "json", prep.spec.name).stdout)["undeclared"]
    return {each["resource"] for each in listed}


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


def test_a_flavor_of_a_namesake_stays_although_a_role_in_its_project_is_declared(
    prep: Prep, devcloud: Devcloud
) -> None:
    shared = {"flavors": [{"name": "prune-shared", "ram": 512, "vcpus": 1}]}
    prep.write(REMAINING | shared)
    prep.apply()
    roles = [{"user": "prune6", "role": "member"}, {"user": "prune6", "role": "reader", "project": "prune"}]
    users = [{"name": "prune6", "password": {"env": "PREP_PASSWORD"}}]
    prep.write({"name": "prune", "project": {"name": "prune-6"}, "users": users, "role_assignments": roles} | shared)
    prep.apply()
    assert "managed by spec prune of project prune" in prep.run("show", prep.spec.name).stdout
    prep.destroy()
    assert devcloud.admin.compute.find_flavor("prune-shared") is not None
    prep.write(REMAINING | shared)
    prep.destroy()
    assert devcloud.admin.compute.find_flavor("prune-shared") is None


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


def test_kinds_that_carry_their_tag_elsewhere_are_pruned(prep: Prep, devcloud: Devcloud) -> None:
    entry = {"path": "clouds.yaml", "user": "prune1", "project": "prune"}
    whole = {
        **REMAINING,
        "networks": SPEC["networks"],
        "subnets": SPEC["subnets"],
        "address_pools": [{"name": "lb", "subnet": "sub", "addresses": ["10.1.0.200-10.1.0.203"]}],
        "address_pairs": [{"name": "vip", "ports": ["by-hand"], "addresses": ["10.1.0.9"]}],
        "application_credentials": [{"name": "app", "clouds_yaml": "app.yaml", "cloud": "app"}],
        "clouds_yaml": [{**entry, "cloud": "first"}, {**entry, "cloud": "second"}],
    }
    bare = {name: whole[name] for name in (*REMAINING, "networks", "subnets")}
    prep.write(bare)
    prep.apply()
    network = devcloud.admin.network
    (net,) = network.networks(project_id=devcloud.admin.identity.find_project("prune", ignore_missing=False).id)
    pairs = [{"ip_address": "10.1.0.8"}]
    place = {"network_id": net.id, "project_id": net.project_id, "fixed_ips": [{"ip_address": "10.1.0.7"}]}
    port = network.create_port(name="by-hand", allowed_address_pairs=pairs, **place)
    prep.write(whole)
    prep.apply()
    assert undeclared(prep) == set()
    assert prep.changes() == set()

    prep.write({**bare, "clouds_yaml": whole["clouds_yaml"][:1]})
    gone = {"address_pool/lb", f"address_pairs/by-hand {port.id}", "application_credential/app"}
    gone |= {"clouds_entry/clouds.yaml#second"}
    assert undeclared(prep) == gone
    assert {name for name, step in prep.apply("--prune").items() if step["action"] == "delete"} == gone
    assert undeclared(prep) == set()
    user = devcloud.admin.identity.find_user("prune1", ignore_missing=False)
    assert list(devcloud.admin.identity.application_credentials(user)) == []
    (left,) = (each for each in network.ports(network_id=net.id) if not each.device_owner.startswith("network:"))
    assert [pair["ip_address"] for pair in left.allowed_address_pairs] == ["10.1.0.8"]
    assert left.tags == []
    assert set(yaml.safe_load((prep.folder / "clouds.yaml").read_text())["clouds"]) == {"first"}
    network.delete_port(port)


def test_a_namesake_in_another_domain_is_not_pruned(prep: Prep, devcloud: Devcloud) -> None:
    identity = devcloud.admin.identity
    corp = identity.create_domain(name="prune-corp")
    ops = [{"name": "prune-ops"}, {"name": "prune-ops", "domain": "prune-corp"}]
    roles = [{"user": "prune-ops", "role": "member"}]
    roles += [{"user": "prune-ops", "user_domain": "prune-corp", "role": "reader"}]
    try:
        prep.write({"name": "prune", "project": {"name": "prune"}, "users": ops, "role_assignments": roles})
        prep.apply()
        prep.write({"name": "prune", "project": {"name": "prune"}, "users": ops[:1], "role_assignments": roles[:1]})
        assert undeclared(prep) == {"user/prune-ops@prune-corp"}
        prep.apply("--prune")
        assert identity.find_user("prune-ops", domain_id=corp.id) is None
        assert identity.find_user("prune-ops", domain_id="default") is not None
        assert prep.changes() == set()
    finally:
        identity.update_domain(corp, is_enabled=False)
        identity.delete_domain(corp)


def test_two_prunes_at_once_and_one_that_was_killed(prep: Prep, devcloud: Devcloud) -> None:
    prep.write(SPEC)
    prep.apply()
    prep.write(REMAINING)
    mark = devcloud.mark()
    with devcloud.faults(Fault("nova", method="DELETE", delay=3)):
        killed = prep.start("apply", "--yes", "--prune", "--jobs", "1", prep.spec.name)
        deadline = time.monotonic() + 120
        while not any(each.method == "DELETE" for each in devcloud.requests_since(mark)):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        killed.kill()
        killed.communicate(timeout=60)
    runs = [prep.start("apply", "--yes", "--prune", "--lock-timeout", "300", prep.spec.name) for _ in "ab"]
    ended = [(*run.communicate(timeout=400), run.returncode) for run in runs]
    assert [code for _, _, code in ended] == [0, 0], ended
    assert undeclared(prep) == set()
    assert devcloud.admin.identity.find_user("prune3") is None
    assert devcloud.admin.compute.find_flavor("prune-small") is None
    assert not [each for each in devcloud.admin.network.networks() if each.name == "net"]


def test_a_role_that_somebody_has_given_by_hand_stays(prep: Prep, devcloud: Devcloud) -> None:
    identity, roles = devcloud.admin.identity, {"user": "prune-roles"}
    spec = {"name": "prune-roles", "project": {"name": "prune-roles"}, "users": [{"name": "prune-roles"}]}
    given = [roles | {"role": each} for each in ("member", "reader", "swiftoperator")]
    prep.write(spec | {"role_assignments": given})
    prep.apply()
    assert prep.changes() == set()
    user, project = identity.find_user("prune-roles"), identity.find_project("prune-roles")
    by_hand = {each: identity.find_role(each) for each in ("manager", "reader")}
    identity.assign_project_role_to_user(project, user, by_hand["manager"])
    prep.write(spec | {"role_assignments": given[:1]})
    each_role = ("reader", "manager", "swiftoperator")
    names = {each: f"role_assignment/user:prune-roles@project:prune-roles/{each}" for each in each_role}
    assert undeclared(prep) == set(names.values())
    pruned = prep.apply("--prune")
    deleted = {name for name, step in pruned.items() if step["action"] == "delete"}
    assert deleted == {names["reader"], names["swiftoperator"]}
    assert undeclared(prep) == {names["manager"]}
    left = identity.role_assignments(user_id=user.id, scope_project_id=project.id, include_names=True)
    assert {each.role["name"] for each in left} == {"member", "manager"}
    identity.assign_project_role_to_user(project, user, by_hand["reader"])
    prep.apply("--prune")
    assert undeclared(prep) == {names["manager"], names["reader"]}, "it was removed, and somebody gave it again"
