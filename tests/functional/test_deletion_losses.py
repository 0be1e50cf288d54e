"""What a deletion takes from others: every row of the tables of cascades, on the real services.

One spec, and beside it something of others for each row; what this cloud cannot have is in
tests/unit/resources/test_cascades.py.
"""

from __future__ import annotations

import json
import secrets
from typing import Any, NamedTuple

import openstack
import pytest
import yaml
from openstack.connection import Connection

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import PlanRefused
from openstack_prep.cloud.connection import Cloud
from openstack_prep.resources.cascades import compute, identity, network, project
from openstack_prep.spec import load_spec
from openstack_prep.verbs import api
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.qcow2 import qcow2
from tests.functional.conftest import Prep

TABLES = {
    "network": network.NETWORK,
    "security_group": network.SECURITY_GROUP,
    "router": network.ROUTER,
    "port": network.PORT,
    "floating_ip": network.FLOATING_IP,
    "flavor": compute.FLAVOR,
    "image": compute.IMAGE,
    "server_group": compute.SERVER_GROUP,
    "role_assignment": identity.ROLE_ASSIGNMENT,
    "user": identity.USER,
    "project": project.PROJECT,
}
ELSEWHERE = {
    ("role_assignment", "credential"),  # as below: Keystone deletes it with the project
    ("router", "conntrack_helper"),
    ("router", "port"),  # only if the router goes alone
    ("security_group", "log"),  # this Neutron has no driver that logs packets
    ("port", "log"),
    ("project", "backup"),
    ("project", "volume_group"),  # needs a type of groups
    ("project", "zone"),
    ("project", "recordset"),  # by tests/designate
    ("project", "load_balancer"),
    ("project", "resource"),
}
"""Rows that the plan to destroy cannot show here."""
ROWS = [(kind, row.effect.value, row.takes) for kind, table in TABLES.items() for row in table]
STACK = {
    "heat_template_version": "2021-04-16",
    "resources": {"v": {"type": "OS::Heat::Value", "properties": {"value": 1}}},
}


NETS = """
heat_template_version: wallaby
resources:
  net: {type: OS::Neutron::Net}
  sub: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.3.0.0/24}}
  router: {type: OS::Neutron::Router, properties: {external_gateway_info: {network: external}}}
  join:
    type: OS::Neutron::RouterInterface
    properties: {router: {get_resource: router}, subnet: {get_resource: sub}}
  route:
    type: OS::Neutron::ExtraRouteSet
    depends_on: join
    properties: {router: {get_resource: router}, routes: [{destination: 10.7.0.0/16, nexthop: 10.3.0.9}]}
  kept: {type: OS::Neutron::Net, deletion_policy: retain}
"""
WALL = """
heat_template_version: wallaby
resources:
  group:
    type: OS::Neutron::SecurityGroup
    properties:
      rules:
        - {protocol: tcp, port_range_min: 22, port_range_max: 22}
        - {protocol: icmp, remote_ip_prefix: 10.1.2.3/24}
        - {remote_mode: remote_group_id}
  rule: {type: OS::Neutron::SecurityGroupRule, properties: {security_group: {get_resource: group}, protocol: udp}}
"""


class Estate(NamedTuple):
    prep: Prep
    admin: Connection
    name: str
    losses: list[dict[str, Any]]
    """As the plan to destroy shows them, each with the ``resource`` whose deletion causes it."""


def spec(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "project": {"name": name},
        "users": [{"name": f"{name}-user", "password": {"env": "PREP_PASSWORD"}}],
        "role_assignments": [
            {"user": f"{name}-user", "role": "member"},
            {"user": f"{name}-user", "role": "swiftoperator"},
            {"user": f"{name}-guest", "role": "reader"},
        ],
        "flavors": [{"name": f"{name}-tiny", "ram": 512, "vcpus": 1, "disk": 1, "is_public": False, "access": [name]}],
        "images": [{"name": f"{name}-disk", "source": "disk.qcow2", "disk_format": "qcow2"}],
        "networks": [{"name": "net"}],
        "subnets": [{"name": "sub", "network": "net", "cidr": "10.1.0.0/24"}],
        "routers": [{"name": "router", "external_network": "external", "interfaces": ["sub"]}],
        "security_groups": [{"name": "web", "rules": [{"protocol": "tcp", "ports": 443}]}],
        "ports": [{"name": "vip", "network": "net", "fixed_ips": [{"subnet": "sub"}]}],
        "floating_ips": [{"name": "api", "external_network": "external"}],
        "server_groups": [{"name": "apart", "policy": "soft-anti-affinity"}],
    }


def losses_of(prep: Prep, *words: str, code: int = 2) -> list[dict[str, Any]]:
    out = prep.run("plan", "--destroy", "--format", "json", *words, prep.spec.name, code=code).stdout
    return [
        loss | {"resource": step["resource"]} for step in json.loads(out)["steps"] for loss in step.get("losses", ())
    ]


@pytest.fixture(scope="module")
def estate(devcloud: Devcloud, tmp_path_factory: pytest.TempPathFactory) -> Estate:
    """A spec that is applied, and something of others for each row of the tables."""
    folder, name = tmp_path_factory.mktemp("losses"), f"loss{secrets.token_hex(3)}"
    variables = {
        "OS_CLIENT_CONFIG_FILE": str(devcloud.clouds_file),
        "OS_CLOUD": "devcloud-admin",
        "PREP_PASSWORD": "a-password-of-the-test",
    }
    prep, admin = Prep(folder, variables), devcloud.admin
    (folder / "disk.qcow2").write_bytes(qcow2(1))
    prep.write(spec(name))
    other = admin.identity.create_project(name=f"{name}-other")
    admin.identity.create_user(name=f"{name}-guest", password="guest")
    prep.apply()
    assert losses_of(prep, code=0) == []  # what the services make themselves is no loss
    _others(admin, name, other.id)
    return Estate(prep, admin, name, losses_of(prep))


def _user(admin: Connection, name: str, password: str, project_name: str) -> Connection:
    """Return the connection of a user, by nothing but these words."""
    auth = {"auth_url": admin.config.config["auth"]["auth_url"], "username": name, "password": password}
    auth |= {"project_name": project_name, "user_domain_name": "Default", "project_domain_name": "Default"}
    region = admin.config.get_region_name("identity")
    return openstack.connect(load_yaml_config=False, load_envvars=False, region_name=region, auth=auth)


def _others(admin: Connection, name: str, other: str) -> None:
    """Create what others may have."""
    ours, user = admin.identity.find_project(name), admin.identity.find_user(f"{name}-user")
    me = _user(admin, f"{name}-user", "a-password-of-the-test", name)
    _networks(admin, ours.id, other)
    _servers(admin, me, name, other)
    # Keystone
    member = admin.identity.find_role("member")
    me.identity.create_application_credential(user.id, name="ci")
    guest = _user(admin, f"{name}-guest", "guest", name)
    guest.identity.create_application_credential(guest.current_user_id, name="guests")
    _delegate(guest, guest.current_user_id, ours.id, admin.current_user_id, "reader")
    made = me.identity.post(f"/users/{user.id}/credentials/OS-EC2", json={"tenant_id": ours.id})
    assert made.status_code == 201, made.text
    _delegate(me, user.id, ours.id, admin.current_user_id, "member")
    admin.identity.assign_project_role_to_user(other, user, member)
    admin.identity.add_user_to_group(user, admin.identity.create_group(name=f"{name}-group"))
    admin.identity.assign_project_role_to_user(ours, admin.identity.find_user(f"{name}-guest"), member)
    admin.identity.assign_project_role_to_user(ours, admin.identity.get_user(admin.current_user_id), member)
    # what the project would leave
    me.compute.create_keypair(name="theirs")
    volume = me.block_storage.create_volume(name="theirs", size=1)
    me.block_storage.wait_for_status(volume, "available", ["error"], 1, 60)
    me.block_storage.create_snapshot(volume_id=volume.id, name="theirs")
    for image in ({"visibility": "community"}, {"is_hidden": True}):  # neither is in Glance's usual list
        made = me.image.create_image("theirs", data=qcow2(1), disk_format="qcow2", container_format="bare")
        me.image.update_image(made, **image)
    admin.image.create_metadef_namespace(namespace=f"OS::{name}", owner=ours.id)
    me.object_store.create_container("theirs")
    me.orchestration.create_stack(name="theirs", template=STACK)
    made = me.orchestration.post("/software_configs", json={"name": "theirs", "group": "script", "config": "true"})
    assert made.status_code == 200, made.text


def _delegate(trustor: Connection, trustor_id: str, project_id: str, trustee_id: str, role: str) -> None:
    trust: dict[str, Any] = {"trustor_user_id": trustor_id, "trustee_user_id": trustee_id, "project_id": project_id}
    trust |= {"impersonation": False, "roles": [{"name": role}]}
    made = trustor.identity.post("/OS-TRUST/trusts", json={"trust": trust})
    assert made.status_code == 201, made.text


def _networks(admin: Connection, ours: str, other: str) -> None:
    neutron = admin.network
    (net,) = neutron.networks(project_id=ours, name="net")
    (group,) = neutron.security_groups(project_id=ours, name="web")
    (router,) = neutron.routers(project_id=ours)
    (vip,) = neutron.ports(project_id=ours, name="vip")
    (address,) = neutron.ips(project_id=ours)
    neutron.create_subnet(network_id=net.id, cidr="10.9.0.0/24", ip_version=4, name="theirs", project_id=other)
    for kind, thing in (("network", net), ("security_group", group)):
        neutron.create_rbac_policy(
            object_type=kind, object_id=thing.id, action="access_as_shared", target_project_id=other
        )
    theirs = neutron.create_security_group(name="theirs", project_id=other)
    rule = {"direction": "ingress", "ethertype": "IPv4"}
    neutron.create_security_group_rule(security_group_id=theirs.id, remote_group_id=group.id, project_id=other, **rule)
    neutron.create_security_group_rule(security_group_id=group.id, protocol="icmp", project_id=ours, **rule)
    neutron.put(
        f"/routers/{router.id}", json={"router": {"routes": [{"destination": "10.7.0.0/16", "nexthop": "10.1.0.77"}]}}
    )
    external = neutron.find_network("external")
    second = neutron.create_ip(floating_network_id=external.id, project_id=ours)
    for number, fip in enumerate((address, second)):
        forwarding = {"internal_port_id": vip.id, "internal_ip_address": vip.fixed_ips[0]["ip_address"]}
        forwarding |= {"internal_port": 80 + number, "external_port": 80, "protocol": "tcp"}
        neutron.create_port_forwarding(floatingip_id=fip.id, **forwarding)
    # of the project, in nobody's spec
    neutron.create_network(name="theirs", project_id=ours)
    neutron.create_router(name="theirs", project_id=ours)
    neutron.create_security_group(name="theirs", project_id=ours)
    elsewhere = neutron.create_network(name="elsewhere", project_id=other)
    subnet = neutron.create_subnet(
        network_id=elsewhere.id, cidr="10.8.0.0/24", ip_version=4, name="theirs", project_id=ours
    )
    where = {"network_id": elsewhere.id, "security_groups": [], "project_id": ours}
    port = neutron.create_port(**where, fixed_ips=[{"subnet_id": subnet.id}], name="theirs")
    neutron.create_trunk(name="theirs", port_id=port.id, project_id=ours)
    neutron.create_subnet_pool(name="theirs", prefixes=["10.99.0.0/16"], project_id=ours)
    neutron.create_address_group(name="theirs", addresses=["10.99.0.0/16"], project_id=ours)
    neutron.create_address_scope(name="theirs", ip_version=4, project_id=ours)
    neutron.create_qos_policy(name="theirs", project_id=ours)


def _servers(admin: Connection, me: Connection, name: str, other: str) -> None:
    flavor, image = admin.compute.find_flavor(f"{name}-tiny"), admin.image.find_image(f"{name}-disk")
    admin.compute.flavor_add_tenant_access(flavor.id, other)
    admin.image.update_image(image.id, visibility="shared")
    admin.image.add_member(image.id, member_id=other)
    (group,) = me.compute.server_groups()
    server = me.compute.create_server(
        name="theirs",
        flavor_id=flavor.id,
        image_id=image.id,
        networks="none",
        scheduler_hints={"group": group.id},
    )
    me.compute.wait_for_server(server, interval=1, wait=120)
    me.compute.create_server_group(name="theirs", policy="soft-affinity")


@pytest.mark.parametrize(("kind", "effect", "takes"), [row for row in ROWS if row[::2] not in ELSEWHERE])
def test_the_plan_to_destroy_names_it(estate: Estate, kind: str, effect: str, takes: str) -> None:
    found = [loss for loss in estate.losses if loss["resource"].startswith(f"{kind}/")]
    assert (effect, takes) in {(loss["effect"], loss["kind"]) for loss in found}
    own = {loss["id"] for loss in found if loss["allowed"]}  # of the user who destroys: shown, and not refused
    assert own == ({f"user:admin@project:{estate.name}/member"} if kind == "project" else set())


def test_it_names_nothing_else(estate: Estate) -> None:
    rows = {row for row in ROWS if row[::2] not in ELSEWHERE}
    found = {(loss["resource"].partition("/")[0], loss["effect"], loss["kind"]) for loss in estate.losses}
    assert found == rows
    names = {
        loss["name"] for loss in estate.losses if loss["kind"] in ("server", "stack", "volume", "image", "network")
    }
    assert names - {""} == {"theirs"}


def test_nothing_is_changed_without_permission(estate: Estate, devcloud: Devcloud) -> None:
    mark = devcloud.mark()
    some = [word for loss in estate.losses[:5] for word in ("--allow-loss", loss["address"])]
    refused = estate.prep.run("destroy", "--yes", "--format", "json", *some, estate.prep.spec.name, code=2)
    errors = json.loads(refused.stdout)["errors"]
    assert {each["code"] for each in errors} == {Code.PLAN_LOSES, Code.STILL_USED}
    writes = [each for each in devcloud.requests_since(mark) if each.method in ("POST", "PUT", "PATCH", "DELETE")]
    assert [each.path for each in writes if not each.path.endswith("/auth/tokens")] == []


def test_python_allows_what_the_command_allows(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREP_PASSWORD", "a-password-of-the-test")
    declared, cloud = load_spec(estate.prep.spec), Cloud(estate.admin)
    allowed = [loss["address"] for loss in estate.losses]
    assert not api.plan_destroy(cloud, declared, allow_loss=allowed).refusals
    left = next(loss["address"] for loss in estate.losses if loss["kind"] == "subnet")
    with pytest.raises(PlanRefused) as caught:
        api.destroy(cloud, declared, allow_loss=[each for each in allowed if each != left])
    assert [left in each.fix for each in caught.value.mistakes] == [True]


def test_each_loss_can_be_allowed_by_its_name(estate: Estate) -> None:
    """The last test of the module: it destroys the spec, and everything that it has allowed goes or stays as said."""
    prep, admin = estate.prep, estate.admin
    allowed = [word for loss in estate.losses for word in ("--allow-loss", loss["address"])]
    ours = admin.identity.find_project(estate.name).id
    assert all(loss["allowed"] for loss in losses_of(prep, *allowed, code=0))
    ended = json.loads(prep.run("destroy", "--yes", "--format", "json", *allowed, prep.spec.name).stdout)
    reported = {(loss["address"], loss["effect"]) for step in ended["steps"] for loss in step.get("losses", ())}
    assert reported == {(loss["address"], loss["effect"]) for loss in estate.losses}
    assert admin.identity.find_project(estate.name) is None
    assert admin.identity.find_user(f"{estate.name}-user") is None
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for loss in estate.losses:
        by_kind.setdefault(loss["kind"], []).append(loss)
    (gone,) = [loss["id"] for loss in by_kind["subnet"] if loss["effect"] == "deleted"]
    assert admin.network.find_subnet(gone) is None
    for rule in by_kind["security_group_rule"]:
        assert admin.network.find_security_group_rule(rule["id"]) is None
    orphans = {loss["id"] for kind in ("network", "router") for loss in by_kind[kind]}
    found = {each.id for each in (*admin.network.networks(project_id=ours), *admin.network.routers(project_id=ours))}
    assert found == orphans
    for server in {loss["id"] for loss in by_kind["server"]}:
        admin.compute.delete_server(server)


def test_a_pruned_router_names_the_servers_behind_it(prep: Prep, devcloud: Devcloud) -> None:
    name, admin = f"behind{secrets.token_hex(3)}", devcloud.admin
    declared: dict[str, Any] = {
        "name": name,
        "project": {"name": name},
        "networks": [{"name": "net"}],
        "subnets": [{"name": "sub", "network": "net", "cidr": "10.1.0.0/24"}],
        "routers": [{"name": "router", "external_network": "external", "interfaces": ["sub"]}],
    }
    prep.write(declared)
    prep.apply()
    ours = admin.identity.find_project(name).id
    (net,) = admin.network.networks(project_id=ours)
    port = admin.network.create_port(
        network_id=net.id, project_id=ours, device_id="server-of-theirs", device_owner="compute:nova", name="theirs"
    )
    prep.write({each: value for each, value in declared.items() if each != "routers"})
    out = prep.run("plan", "--prune", "--format", "json", prep.spec.name, code=2).stdout
    (step,) = [each for each in json.loads(out)["steps"] if each["action"] == "delete"]
    assert [(loss["effect"], loss["address"]) for loss in step["losses"]] == [("cut off", f"port/{port.id}")]
    prep.run("apply", "--yes", "--prune", prep.spec.name, code=2)
    assert list(admin.network.routers(project_id=ours))
    prep.apply("--prune", "--allow-loss", f"port/{port.id}")
    assert not list(admin.network.routers(project_id=ours))
    admin.network.delete_port(port)


def test_a_replaced_flavor_names_the_servers_that_use_it(prep: Prep, devcloud: Devcloud) -> None:
    name, admin = f"replaced{secrets.token_hex(3)}", devcloud.admin
    prep.write({"name": name, "flavors": [{"name": name, "ram": 512, "vcpus": 1, "disk": 1}]})
    prep.apply()
    flavor, image = (
        admin.compute.find_flavor(name),
        admin.image.create_image(name, data=qcow2(1), disk_format="qcow2", container_format="bare"),
    )
    server = admin.compute.create_server(name="theirs", flavor_id=flavor.id, image_id=image.id, networks="none")
    admin.compute.wait_for_server(server, interval=1, wait=120)
    try:
        prep.write({"name": name, "flavors": [{"name": name, "ram": 1024, "vcpus": 1, "disk": 1}]})
        prep.run("apply", "--yes", "--allow-replace", prep.spec.name, code=2)
        assert admin.compute.find_flavor(name).id == flavor.id
        prep.apply("--allow-replace", "--allow-loss", f"server/{server.id}")
        assert admin.compute.find_flavor(name).id != flavor.id
    finally:
        admin.compute.delete_server(server)
        admin.compute.wait_for_delete(server, wait=60)
        admin.image.delete_image(image)


def test_what_came_after_the_plan_is_kept(devcloud: Devcloud, prep: Prep) -> None:
    """Judged again right before the deletion: of the plan that is carried out, nothing was refused."""
    name, admin = f"late{secrets.token_hex(3)}", devcloud.admin
    users = [f"{name}-{number}" for number in range(5)]  # so many that they share lists
    spec = {"name": name, "project": {"name": name}, "networks": [{"name": "net"}]}
    prep.write({**spec, "users": [{"name": each} for each in users]})
    prep.apply()
    (net,) = admin.network.networks(project_id=admin.identity.find_project(name).id)
    plan = api.plan_destroy(Cloud(admin), load_spec(prep.spec))
    late = admin.network.create_subnet(network_id=net.id, cidr="10.9.0.0/24", ip_version=4, name="late")
    ec2, member = (admin.identity.find_user(each) for each in users[1:3])
    body = {"credential": {"user_id": ec2.id, "type": "totp", "blob": "GEZDGNBVGY3TQOJQ"}}
    assert admin.identity.post("/credentials", json=body).status_code == 201
    group = admin.identity.create_group(name=name)
    admin.identity.add_user_to_group(member, group)
    report = api.destroy(Cloud(admin), plan)
    assert {result.step.key.name for result in report.failed} == {"net", ec2.name, member.name}
    assert all(isinstance(result.error, PlanRefused) for result in report.failed)
    assert admin.network.find_subnet(late.id) is not None
    assert {each for each in users if admin.identity.find_user(each)} == {ec2.name, member.name}
    admin.network.delete_subnet(late)
    admin.identity.delete_group(group)
    for user in (ec2, member):
        admin.identity.delete_user(user)


def test_a_container_that_came_after_the_plan_keeps_its_project(devcloud: Devcloud, prep: Prep) -> None:
    """Read before the spec's user loses the role: by Swift's own settings no administrator may list it then."""
    name, admin = f"obj{secrets.token_hex(3)}", devcloud.admin
    (prep.folder / "pw").write_text("a-password-of-the-test")
    prep.write(
        {
            "name": name,
            "project": {"name": name},
            "users": [{"name": name, "password": {"file": "pw"}}],
            "role_assignments": [{"user": name, "role": role} for role in ("member", "swiftoperator")],
        }
    )
    prep.apply()
    plan = api.plan_destroy(Cloud(admin), load_spec(prep.spec))
    project_id = admin.identity.find_project(name).id
    _user(admin, name, "a-password-of-the-test", name).object_store.create_container("late")
    report = api.destroy(Cloud(admin), plan)
    assert isinstance(report.failed[0].error, PlanRefused)
    assert f"--allow-loss container/{project_id}/late" in str(report.failed[0].error)
    assert admin.identity.find_project(project_id) is not None
    me = _user(admin, name, "a-password-of-the-test", name)  # who still may remove it
    me.object_store.delete_container("late")
    prep.destroy()
    assert admin.identity.find_project(project_id) is None


def test_what_a_stack_leaves_keeps_its_project(devcloud: Devcloud, prep: Prep) -> None:
    name, admin = f"left{secrets.token_hex(3)}", devcloud.admin
    volume = {"type": "OS::Cinder::Volume", "deletion_policy": "Retain", "properties": {"size": 1}}
    (prep.folder / "kept.json").write_text(json.dumps({**STACK, "resources": {"kept": volume}}))
    prep.write(
        {
            "name": name,
            "project": {"name": name},
            "users": [{"name": f"{name}-user", "password": {"generate": "pw"}}],
            "role_assignments": [{"user": f"{name}-user", "role": "member"}],
            "stacks": [{"name": "stack", "template": "kept.json"}],
        }
    )
    prep.apply()
    ours = admin.identity.find_project(name).id
    (left,) = admin.block_storage.volumes(all_projects=True, project_id=ours)
    assert f"--allow-loss volume/{left.id}" in prep.destroy(code=1).stdout
    assert admin.identity.find_project(ours) is not None
    admin.block_storage.delete_volume(left)
    admin.block_storage.wait_for_delete(left, wait=60)
    prep.destroy()
    assert admin.identity.find_project(ours) is None


def test_what_goes_with_the_resources_of_a_stack(devcloud: Devcloud, prep: Prep) -> None:
    """Also in a nested stack: destroyed, pruned, and deleted or changed by an update."""
    name, admin, neutron = f"inner{secrets.token_hex(3)}", devcloud.admin, devcloud.admin.network
    nested = "  nested: {type: wall.yaml}\n"
    (prep.folder / "wall.yaml").write_text(WALL)
    (prep.folder / "nets.yaml").write_text(NETS + nested)
    declared: dict[str, Any] = {
        "name": name,
        "project": {"name": name},
        "users": [{"name": f"{name}-user", "password": {"generate": "pw"}}],
        "role_assignments": [{"user": f"{name}-user", "role": "member"}],
        "stacks": [{"name": "nets", "template": "nets.yaml"}],
    }
    prep.write(declared)
    prep.apply()
    assert losses_of(prep, code=0) == []  # what the template has, in whichever way, is no loss
    ours = admin.identity.find_project(name).id
    kept, net = sorted(neutron.networks(project_id=ours), key=lambda each: len(each.subnet_ids))
    (router,) = neutron.routers(project_id=ours)
    (group,) = (each for each in neutron.security_groups(project_id=ours) if each.name != "default")
    where = {"cidr": "10.9.0.0/24", "ip_version": 4, "project_id": ours}
    subnets = [neutron.create_subnet(network_id=each.id, **where) for each in (net, kept)]
    rule = neutron.create_security_group_rule(security_group_id=group.id, direction="ingress", protocol="tcp")
    route = {"destination": "10.8.0.0/16", "nexthop": "10.3.0.8"}
    neutron.put(f"/routers/{router.id}/add_extraroutes", json={"router": {"routes": [route]}})
    foreign = {f"subnet/{subnets[0].id}", f"security_group_rule/{rule.id}", f"route/{router.id}/10.8.0.0/16"}
    assert {loss["address"] for loss in losses_of(prep)} == foreign
    prep.destroy(code=2)
    prep.write({each: value for each, value in declared.items() if each != "stacks"})
    refused = json.loads(prep.run("apply", "--yes", "--prune", "--format", "json", prep.spec.name, code=2).stdout)
    assert {each["code"] for each in refused["errors"]} == {Code.PLAN_LOSES}
    assert all(any(thing in each["what"] for each in refused["errors"]) for thing in foreign)
    prep.write(declared)
    for wall, template in ((WALL.replace("22", "23"), NETS + nested), (WALL, NETS)):
        (prep.folder / "wall.yaml").write_text(wall)
        (prep.folder / "nets.yaml").write_text(template)
        errors = json.loads(prep.run("plan", "--format", "json", prep.spec.name, code=2).stdout)["refusals"]
        assert any(rule.id in each["what"] for each in errors)
        assert not any(subnet.id in each["what"] for each in errors for subnet in subnets)
    prep.run("apply", "--yes", "--allow-replace", prep.spec.name, code=2)  # which says nothing about others
    assert neutron.find_security_group_rule(rule.id) is not None
    prep.apply("--allow-replace", "--allow-loss", f"security_group_rule/{rule.id}")
    assert neutron.find_security_group_rule(rule.id) is None
    neutron.put(f"/routers/{router.id}/remove_extraroutes", json={"router": {"routes": [route]}})
    assert f"network/{kept.id}" in prep.destroy("--allow-loss", f"subnet/{subnets[0].id}", code=1).stdout
    assert [neutron.find_subnet(each.id) is None for each in subnets] == [True, False]
    neutron.delete_network(kept)
    prep.destroy()


def test_what_neutron_would_refuse_is_refused_before(prep: Prep, devcloud: Devcloud) -> None:
    """A destroy that stopped in its middle would leave half of the spec: nothing is touched, and each is named."""
    name, admin, neutron = f"blocked{secrets.token_hex(3)}", devcloud.admin, devcloud.admin.network
    declared: dict[str, Any] = {
        "name": name,
        "project": {"name": name},
        "networks": [{"name": "net"}],
        "subnets": [{"name": "sub", "network": "net", "cidr": "10.1.0.0/24"}],
        "routers": [{"name": "router", "external_network": "external", "interfaces": ["sub"]}],
        "security_groups": [{"name": "web", "rules": []}],
        "ports": [{"name": each, "network": "net", "security_groups": ["web"]} for each in ("parent", "sub", "vip")],
    }
    prep.write(declared)
    prep.apply()
    ours = admin.identity.find_project(name).id
    other = admin.identity.create_project(name=f"{name}-other").id
    ports = {port.name: port for port in neutron.ports(project_id=ours)}
    (group,) = neutron.security_groups(project_id=ours, name="web")
    external, elsewhere = neutron.find_network("external"), neutron.create_network(name=name, project_id=other)
    foreign = neutron.create_port(network_id=elsewhere.id, project_id=other, security_groups=[group.id])
    trunks = [
        neutron.create_trunk(port_id=ports["parent"].id, project_id=other, name="theirs"),
        neutron.create_trunk(
            port_id=foreign.id,
            project_id=other,
            sub_ports=[{"port_id": ports["sub"].id, "segmentation_id": 7, "segmentation_type": "vlan"}],
        ),
    ]
    address = neutron.create_ip(floating_network_id=external.id, port_id=ports["vip"].id, project_id=other)
    where = {("port/parent", trunks[0].id), ("port/sub", trunks[1].id), ("security_group/web", foreign.id)}
    where |= {("port/vip", address.floating_ip_address)}
    ids = {thing for _, thing in where}

    def blockers(*words: str) -> set[tuple[str, str]]:
        errors = json.loads(prep.run(*words, "--format", "json", prep.spec.name, code=2).stdout)["errors"]
        assert {each["code"] for each in errors} == {Code.STILL_USED}
        return {(each["where"].rpartition(" ")[2], thing) for each in errors for thing in ids if thing in each["what"]}

    mark = devcloud.mark()
    assert blockers("destroy", "--yes") == where
    writes = [each for each in devcloud.requests_since(mark) if each.method in ("POST", "PUT", "PATCH", "DELETE")]
    assert [each.path for each in writes if not each.path.endswith("/auth/tokens")] == []
    prep.write({each: value for each, value in declared.items() if each != "routers"})
    assert blockers("apply", "--yes", "--prune") == {("router/router", address.floating_ip_address)}
    prep.write(declared)
    for trunk in trunks:
        neutron.delete_trunk(trunk)
    neutron.delete_ip(address)
    neutron.delete_port(foreign)
    prep.destroy()
    neutron.delete_network(elsewhere)


def test_a_service_that_does_not_answer_is_named_and_can_be_allowed(prep: Prep, devcloud: Devcloud) -> None:
    name, admin = f"dead{secrets.token_hex(3)}", devcloud.admin
    prep.write({"name": name, "project": {"name": name}})
    prep.apply()
    service = admin.identity.create_service(name=name, type="load-balancer")
    region = admin.config.get_region_name("identity")
    endpoint = admin.identity.create_endpoint(
        service_id=service.id, interface="public", url="http://127.0.0.1:9/load-balancer", region_id=region
    )
    try:
        (loss,) = losses_of(prep)
        assert (loss["effect"], loss["address"]) == ("not checked", "unread/load_balancer")
        assert "--allow-loss unread/load_balancer" in prep.destroy(code=2).stderr
        prep.run("destroy", "--yes", "--allow-loss", "unread/load_balancer", prep.spec.name)
        assert admin.identity.find_project(name) is None
    finally:
        admin.identity.delete_endpoint(endpoint)
        admin.identity.delete_service(service)


def test_containers_that_nobody_may_list_are_said(prep: Prep, devcloud: Devcloud) -> None:
    """By Swift's own settings an administrator may not read the accounts of others."""
    name = f"swift{secrets.token_hex(3)}"
    prep.write({"name": name, "project": {"name": name}})
    prep.apply()
    assert losses_of(prep, code=0) == []
    said = prep.run("plan", "--destroy", prep.spec.name)
    assert "not checked: containers in a project" in said.stdout + said.stderr
    prep.destroy()
    assert devcloud.admin.identity.find_project(name) is None


def test_who_deletes_a_project_without_seeing_what_is_in_it_has_to_allow_that(prep: Prep, devcloud: Devcloud) -> None:
    """Keystone lets a domain manager delete projects, whose networks Neutron only shows to the role admin."""
    identity, neutron = devcloud.admin.identity, devcloud.admin.network
    name = f"mgr{secrets.token_hex(3)}"
    domain = identity.create_domain(name=name)
    user = identity.create_user(name=name, password="of-the-manager", domain_id=domain.id)
    identity.assign_domain_role_to_user(domain, user, identity.find_role("manager"))
    auth = {"auth_url": devcloud.admin.config.config["auth"]["auth_url"], "username": name, "domain_name": name}
    auth |= {"password": "of-the-manager", "user_domain_name": name}
    region = devcloud.admin.config.get_region_name("identity")
    clouds = {"clouds": {"manager": {"auth": auth, "region_name": region}}}
    (prep.folder / "clouds.yaml").write_text(yaml.safe_dump(clouds))
    prep.write({"name": name, "project": {"name": name, "domain": name}})
    admins = dict(prep.environment)
    prep.environment |= {"OS_CLIENT_CONFIG_FILE": str(prep.folder / "clouds.yaml"), "OS_CLOUD": "manager"}
    try:
        prep.apply()
        project_id = identity.find_project(name, domain_id=domain.id, ignore_missing=False).id
        foreign = neutron.create_network(name="theirs", project_id=project_id)
        found = {loss["address"]: loss["effect"] for loss in losses_of(prep)}
        assert {"unread/network", "unread/server", "unread/volume", "unread/image"} <= found.keys()
        assert set(found.values()) == {"not checked"}
        assert "--allow-loss unread/network" in prep.destroy(code=2).stderr
        assert identity.find_project(name, domain_id=domain.id) is not None
        prep.environment = admins
        assert [loss["address"] for loss in losses_of(prep)] == [f"network/{foreign.id}"]
        prep.environment = admins | {"OS_CLIENT_CONFIG_FILE": str(prep.folder / "clouds.yaml"), "OS_CLOUD": "manager"}
        prep.destroy(*(word for address in found for word in ("--allow-loss", address)))
        assert identity.find_project(name, domain_id=domain.id) is None
        neutron.delete_network(foreign)
    finally:
        prep.environment = admins
        identity.update_domain(domain, enabled=False)
        identity.delete_domain(domain)
