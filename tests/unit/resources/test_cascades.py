"""Rows of the tables of cascades that the devcloud cannot show, and what credentials may not read."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
import requests
import requests_mock
import tenacity

from openstack_prep import extensions
from openstack_prep.base.secret import Secret
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.deletion_loss import Deletion, DeletionLoss, LossEffect, Unchecked
from openstack_prep.core.model import Observed
from openstack_prep.resources.cascades import compute, identity, network, project
from openstack_prep.resources.cascades.row import (
    CascadeRow,
    CascadeTable,
    Deletions,
    find_losses,
    find_losses_elsewhere,
)
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.identity.role_assignment import AssignmentPath, RoleAssignment
from openstack_prep.resources.identity.user import User
from openstack_prep.resources.image.image import Image
from openstack_prep.resources.lists.neutron_records import GroupRecord, Route, RouterRecord
from openstack_prep.resources.lists.nova_records import ServerRecord
from openstack_prep.resources.network.router import Router
from openstack_prep.resources.network.security_group import SecurityGroup
from openstack_prep.resources.orchestration.losses import StackPart
from tests.unit.conftest import ADMIN_PROJECT, ADMIN_USER, ENDPOINTS, IDENTITY, connection, failure, token
from tests.unit.texts import Wording

NEUTRON = "http://neutron/v2.0"
THEIR_ACCOUNT = f"{ENDPOINTS['object-store'].removesuffix(ADMIN_PROJECT)}p1/"
LAB = Deletion(Project(name="lab"), Observed(id="p1", ours=True))


def row_of(table: CascadeTable, takes: str) -> CascadeRow:
    (found,) = [row for row in table if row.takes == takes]
    return found


def found(run: CloudRun, row: CascadeRow, deletion: Deletion = LAB, *going: str) -> list[str]:
    """Return what a row finds, as text."""
    findings = row.find(Deletions(run, [deletion], frozenset(going)))
    return [each.address if isinstance(each, DeletionLoss) else str(each) for _, each in findings]


@pytest.fixture
def catalogue(services: requests_mock.Mocker) -> requests_mock.Mocker:
    """A cloud that also has Designate, Octavia and a service that nobody here knows."""
    answer = token(roles=["admin"])
    for name, url in (("dns", "http://dns/v2"), ("load-balancer", "http://octavia/v2"), ("share", "http://manila")):
        endpoint = {"id": name, "interface": "public", "region": "one", "region_id": "one", "url": url}
        answer["token"]["catalog"].append({"id": name, "type": name, "name": name, "endpoints": [endpoint]})
        version = {"id": "v2", "status": "CURRENT", "links": [{"rel": "self", "href": url}]}
        services.get(re.compile(f"^{url.rpartition('/')[0]}/?$"), json={"versions": [version]})
        services.get(url, json={"version": version})
    services.post(f"{IDENTITY}/auth/tokens", json=answer, headers={"X-Subject-Token": "4f2a9c"}, status_code=201)
    return services


@pytest.mark.usefixtures("administrator")
def test_backups_are_left(run: CloudRun, services: requests_mock.Mocker) -> None:
    listed: dict[str, Any] = {
        "backups": [{"id": "b1", "name": "nightly", "status": "available"}, {"id": "b2", "status": "deleting"}]
    }
    services.get(f"{ENDPOINTS['block-storage']}/backups/detail?all_tenants=True&project_id=p1", json=listed)
    assert found(run, row_of(project.PROJECT, "backup")) == ["backup/b1"]


def test_zones_are_left(run: CloudRun, catalogue: requests_mock.Mocker) -> None:
    stays = {"id": "z1", "name": "lab.example.", "action": "NONE", "status": "ACTIVE"}
    shared = {"id": "z3", "name": "theirs.example.", "project_id": "p2"}
    goes = {"id": "z2", "name": "gone.example.", "action": "DELETE", "status": "PENDING"}
    zones = catalogue.get(re.compile("^http://dns/v2/zones"), json={"zones": [stays, goes, shared]})
    assert found(run, row_of(project.PROJECT, "zone")) == ["zone/z1"]
    assert zones.last_request.headers["X-Auth-Sudo-Project-ID"] == "p1"


def test_other_services_are_not_claimed_to_be_empty(
    run: CloudRun, catalogue: requests_mock.Mocker, wording: Wording
) -> None:
    (unread,) = found(run, row_of(project.PROJECT, "resource"))
    wording(unread)


def _shares(run: CloudRun, scope: project.ProjectScope) -> list[Any]:
    return list(run.admin.open("share").list("/shares", "shares", project_id=scope.id))


SHARES: CascadeTable = (project.orphans("share", "share", _shares),)


def test_an_extension_brings_what_its_service_leaves_behind(
    run: CloudRun, catalogue: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    extension = extensions.Extension("shares", cascades={"project": f"{__name__}:SHARES"})
    monkeypatch.setattr(extensions, "_with_packages", lambda: ((extension, "shares"),))
    assert extensions.cascades("project") == SHARES
    assert extensions.cascades("user") == ()
    assert found(run, row_of(project.PROJECT, "resource")) == []
    catalogue.get(re.compile("^http://manila/.*shares"), json={"shares": [{"id": "s1", "name": "data"}]})
    (row,) = SHARES
    losses = find_losses(run, [LAB], frozenset())
    assert [(key, loss.address) for key, loss in losses if isinstance(loss, DeletionLoss)] == [(LAB.key, "share/s1")]
    assert row.service == "share"


def test_routes_are_those_of_now(run: CloudRun, services: requests_mock.Mocker) -> None:
    own, since = ({"destination": f"10.{n}.0.0/16", "nexthop": "10.0.0.5"} for n in (1, 2))
    router = Deletion(Router(name="r", routes=(Route(**own),)), Observed(id="r1", ours=True))
    services.get(f"{NEUTRON}/routers?id=r1", json={"routers": [{"id": "r1", "routes": [own, since]}]})
    assert found(run, row_of(network.ROUTER, "route"), router) == ["route/r1/10.2.0.0/16"]


def test_helpers_of_a_router_go_with_it(run: CloudRun, services: requests_mock.Mocker) -> None:
    router = Deletion(Router(name="r"), Observed(id="r1", ours=True))
    row = row_of(network.ROUTER, "conntrack_helper")
    assert found(CloudRun(run.admin, run.ownership), row, router) == []  # without the extension nothing is asked
    services.get(f"{NEUTRON}/extensions", json={"extensions": [{"alias": "l3-conntrack-helper"}]})
    helper = {"id": "h1", "helper": "tftp", "protocol": "udp", "port": 69}
    services.get(f"{NEUTRON}/routers/r1/conntrack_helpers", json={"conntrack_helpers": [helper]})
    assert found(run, row, router) == ["conntrack_helper/h1"]


@pytest.mark.usefixtures("administrator")
def test_ports_of_any_kind_lose_their_router(run: CloudRun, services: requests_mock.Mocker) -> None:
    owners = {
        "compute:nova": "s1",
        "trunk:subport": "t1",
        "Octavia": "lb-1",
        "baremetal:none": "n1",
        "network:router_interface": "r2",
        "": "",
        "network:dhcp": "dhcp-1",
        "network:distributed": "ovnmeta-1",
        "network:router_centralized_snat": "r1",
        "compute:az1": "s2",
    }
    one = {"project_id": "p2", "name": "theirs", "description": ""}
    ports = [
        {"id": f"of {owner}", "device_owner": owner, "device_id": device} | one for owner, device in owners.items()
    ]
    ports.append({"id": "gone", "device_owner": "", "device_id": ""} | one)
    services.get(f"{NEUTRON}/ports?fixed_ips=subnet_id%3Dsub1", json={"ports": ports})
    services.get(f"{IDENTITY}/projects/p2", json={"project": {"id": "p2", "name": "theirs"}})
    raw = {"id": "r1", "name": "r", "external_gateway_info": None, "routes": [], "description": "", "project_id": "p1"}
    record = replace(RouterRecord.read(raw), joined=frozenset({"sub1", "sub2"}))
    router = Deletion(Router(name="r"), Observed(id="r1", ours=True, record=record))
    counted = ["compute:nova", "trunk:subport", "Octavia", "baremetal:none", "network:router_interface", ""]
    addresses = found(run, row_of(network.ROUTER, "port"), router, "r1", "sub2", "s2", "gone")
    assert addresses == [f"port/of {owner}" for owner in counted]


@pytest.mark.usefixtures("administrator")
def test_keystone_deletes_credentials_and_trusts_of_others_with_a_project(
    run: CloudRun, services: requests_mock.Mocker
) -> None:
    one = {"type": "ec2", "user_id": "u1", "blob": "secret"}
    rows = [one | {"id": "c1", "project_id": "p1"}, one | {"id": "c2", "project_id": "p2"}, one | {"id": "c3"}]
    services.get(f"{IDENTITY}/credentials", json={"credentials": rows})
    trust = {"trustor_user_id": "u1", "trustee_user_id": "u2", "impersonation": False, "project_id": "p1"}
    listed = [trust | {"id": "t1"}, trust | {"id": "t2", "project_id": "p2"}, trust | {"id": "t3"}]
    services.get(f"{IDENTITY}/OS-TRUST/trusts", json={"trusts": listed})
    for user in ("u1", "u2"):
        services.get(f"{IDENTITY}/users/{user}", json={"user": {"name": user}})
    services.get(f"{IDENTITY}/projects/p1", json={"project": {"name": "lab"}})
    assert found(run, row_of(project.PROJECT, "credential")) == ["credential/c1"]
    assert found(run, row_of(project.PROJECT, "trust"), LAB, "t3") == ["trust/t1"]


def test_who_does_not_see_credentials_of_others_may_not_delete_a_project(
    run: CloudRun, services: requests_mock.Mocker
) -> None:
    services.get(f"{IDENTITY}/credentials", json={"credentials": []})
    assert found(run, row_of(project.PROJECT, "credential")) == ["unread/credential"]


BY_USER, BY_GROUP = (f"/projects/p1/{holder}/roles/" for holder in ("users/u1", "groups/g1"))
MEMBER = [(f"{BY_USER}member", "member"), (f"{BY_USER}member", "reader")]
"""A role and the one that it implies, each with the assignment that gives it."""


@pytest.mark.parametrize(
    ("path", "effective", "lost"),
    [
        (
            f"{BY_USER}member",
            MEMBER,
            ["application_credential/c1", "application_credential/c2", "trust/t1", "credential/e1"],
        ),
        (f"{BY_USER}member", [*MEMBER, (f"{BY_GROUP}reader", "reader")], ["application_credential/c2"]),
        (f"{BY_USER}member", [*MEMBER, (f"{BY_GROUP}member", "member")], []),
        (
            f"{BY_GROUP}reader",
            [(f"{BY_GROUP}reader", "reader")],
            ["application_credential/c1", "trust/t1", "credential/e1"],
        ),
        (f"{BY_GROUP}reader", [*MEMBER, (f"{BY_GROUP}reader", "reader")], []),
        (f"/OS-INHERIT{BY_USER}member/inherited_to_projects".replace("p1", "p0"), MEMBER, []),
    ],
)
def test_what_works_by_a_role_loses_it(
    run: CloudRun, services: requests_mock.Mocker, path: str, effective: list[tuple[str, str]], lost: list[str]
) -> None:
    """Also a role that another one implies, or that comes by a group, unless a further assignment gives it."""
    scope = {"project": {"id": "p1"}}
    roles = [{"scope": scope, "role": {"id": role}, "links": {"assignment": IDENTITY + by}} for by, role in effective]
    services.get(f"{IDENTITY}/role_assignments?user.id=u1&effective=True", json={"role_assignments": roles})
    services.get(f"{IDENTITY}/groups/g1/users", json={"users": [{"id": "u1"}, {"id": "goes"}]})
    one = {"name": "ci", "project_id": "p1"}
    credentials = [
        one | {"id": f"c{number}", "roles": [{"id": role}]} for number, role in enumerate(("reader", "member"), 1)
    ]
    credentials.append(one | {"id": "c3", "roles": [{"id": "reader"}], "project_id": "p2"})
    services.get(f"{IDENTITY}/users/u1/application_credentials", json={"application_credentials": credentials})
    trust = {"trustor_user_id": "u1", "trustee_user_id": "u2", "impersonation": False, "project_id": "p1"}
    listed = [trust | {"id": "t1"}, trust | {"id": "t2", "project_id": "p2"}]
    services.get(f"{IDENTITY}/OS-TRUST/trusts?trustor_user_id=u1", json={"trusts": listed})
    services.get(f"{IDENTITY}/OS-TRUST/trusts/t1", json={"trust": {"roles": [{"id": "reader"}]}})
    ec2 = {"type": "ec2", "user_id": "u1", "blob": "secret"}
    rows = [ec2 | {"id": "e1", "project_id": "p1"}, ec2 | {"id": "e2", "project_id": "p2"}]
    services.get(f"{IDENTITY}/credentials?user_id=u1", json={"credentials": rows})
    for user in ("u1", "u2"):
        services.get(f"{IDENTITY}/users/{user}", json={"user": {"name": user}})
    services.get(f"{IDENTITY}/projects/p1", json={"project": {"name": "lab"}})
    assignment = RoleAssignment(role="member", user="u", project="lab")
    deletion = Deletion(assignment, Observed(id=path, ours=True, record=AssignmentPath(path)))
    judged = [each for row in identity.ROLE_ASSIGNMENT for each in found(run, row, deletion, path, "goes")]
    assert judged == lost
    assert [each for row in identity.ROLE_ASSIGNMENT for each in found(run, row, deletion, path, "u1", "goes")] == []


@pytest.mark.parametrize(
    ("name", "created_at", "lost"),
    [
        ("theirs", "2026-11-27T08:00:05.000000", True),
        ("", "2026-11-27T08:00:05.000000", False),  # Nova's own, of an image
        ("s1-blank-vol", "2026-11-27T08:00:05.000000", False),
        ("", "2026-11-27T08:30:00.000000", True),
        ("", "2026-11-26T08:00:00.000000", True),
    ],
)
def test_a_volume_that_somebody_has_attached_goes_with_its_server(
    run: CloudRun, services: requests_mock.Mocker, name: str, created_at: str, lost: bool
) -> None:
    attached = [{"id": "v1", "delete_on_termination": True}, {"id": "v2", "delete_on_termination": False}]
    raw = {"id": "s1", "name": "node", "created": "2026-11-27T08:00:00Z"}
    raw |= {"OS-SRV-USG:launched_at": "2026-11-27T08:00:09.000000", "os-extended-volumes:volumes_attached": attached}
    server = Deletion(StackPart(name="node", table="server"), Observed(id="s1", record=ServerRecord.read(raw)))
    volume = {"volume": {"id": "v1", "name": name, "created_at": created_at}}
    services.get(f"{ENDPOINTS['block-storage']}/volumes/v1", json=volume)
    (row,) = compute.SERVER
    assert found(run, row, server) == (["volume/v1"] if lost else [])
    assert found(run, row, server, "v1") == []  # a volume of the same stack


@pytest.mark.usefixtures("administrator")
def test_groups_of_volumes_and_definitions_of_metadata_are_left(run: CloudRun, services: requests_mock.Mocker) -> None:
    groups = {"groups": [{"id": "g1", "name": "theirs", "status": "available"}]}
    listed = services.get(f"{ENDPOINTS['block-storage']}/groups/detail?all_tenants=True&project_id=p1", json=groups)
    assert found(run, row_of(project.PROJECT, "volume_group")) == ["volume_group/g1"]
    assert listed.last_request.headers["OpenStack-API-Version"] == "volume 3.13"
    glance = ENDPOINTS["image"] + "/v2"
    version = {"id": "v2.16", "status": "CURRENT", "links": [{"rel": "self", "href": glance}]}
    services.get(ENDPOINTS["image"], json={"versions": [version]})
    owned = [{"namespace": "OS::Theirs", "owner": "p1"}, {"namespace": "OS::Other", "owner": "p2"}]
    services.get(f"{glance}/metadefs/namespaces", json={"namespaces": owned})
    assert found(run, row_of(project.PROJECT, "metadef_namespace")) == ["metadef_namespace/OS::Theirs"]


@pytest.mark.usefixtures("administrator")
def test_an_administrator_sees_the_software_configs_of_all_projects(
    run: CloudRun, services: requests_mock.Mocker
) -> None:
    services.get(f"{IDENTITY}/projects?name=lab", json={"projects": []})
    listed = [{"id": "s1", "name": "theirs", "project": "p1"}, {"id": "s2", "name": "of a stack", "project": "p1"}]
    listed += [{"id": "s3", "project": "p2"}, {"id": "s4", "name": "without a project: the connection's own"}]
    services.get(f"{ENDPOINTS['orchestration']}/software_configs", json={"software_configs": listed})
    addresses = found(run, row_of(project.PROJECT, "software_config"), LAB, "s2")
    assert addresses == ["software_config/s1"]


@pytest.mark.usefixtures("administrator")
def test_what_may_not_be_read_is_said(run: CloudRun, services: requests_mock.Mocker, wording: Wording) -> None:
    services.get(
        f"{ENDPOINTS['block-storage']}/snapshots/detail", status_code=403, json={"forbidden": {"message": "no"}}
    )
    row = row_of(project.PROJECT, "snapshot")
    ((key, unread),) = row.find(Deletions(run, [LAB], frozenset()))
    assert key == LAB.key
    assert isinstance(unread, DeletionLoss)
    assert (unread.effect, unread.address, bool(unread.fix)) == (LossEffect.UNREAD, "unread/snapshot", True)
    assert unread.code == "plan.loses"
    wording(unread.detail)


@pytest.mark.parametrize(("roles", "is_allowed"), [(["manager"], False), (["admin"], True)])
def test_who_does_not_see_everything_may_not_delete_a_project(
    run: CloudRun, services: requests_mock.Mocker, roles: list[str], is_allowed: bool
) -> None:
    """Neutron 29.0.0 and Glance 33.0.0 filter their lists by the project of the token, so these seem empty."""
    answer = token(roles=roles)
    services.post(f"{IDENTITY}/auth/tokens", json=answer, headers={"X-Subject-Token": "4f2a9c"}, status_code=201)
    services.get(re.compile(NEUTRON), json={"networks": [], "extensions": []})
    services.get(f"{IDENTITY}/projects?name=lab", json={"projects": []})
    services.get(THEIR_ACCOUNT, **({"json": []} if is_allowed else {"status_code": 403}))
    for takes in ("network", "qos_policy", "container"):
        ((_, unread),) = list(row_of(project.PROJECT, takes).find(Deletions(run, [LAB], frozenset()))) or [(0, None)]
        if is_allowed:
            assert not isinstance(unread, DeletionLoss)
        else:
            assert isinstance(unread, DeletionLoss)
            assert (unread.effect, unread.address, bool(unread.fix)) == (LossEffect.UNREAD, f"unread/{takes}", True)


@pytest.mark.parametrize(
    ("services_of_cloud", "losses"),
    [
        ({"json": {"services": [{"type": "identity"}, {"type": "block-storage"}]}}, ["unread/volume"]),
        ({"json": {"services": [{"type": "volumev3"}]}}, ["unread/volume"]),
        ({"json": {"services": [{"type": "identity"}]}}, []),
        ({"status_code": 403}, ["unread/volume"]),
    ],
)
@pytest.mark.parametrize("roles", [["admin"], ["manager"]])
def test_a_token_of_a_domain_does_not_show_whether_a_service_is_missing(
    run: CloudRun,
    services: requests_mock.Mocker,
    roles: list[str],
    services_of_cloud: dict[str, Any],
    losses: list[str],
) -> None:
    answer = token(roles=roles, project_id=None)
    endpoint = {"id": "i", "interface": "public", "region": "one", "region_id": "one", "url": IDENTITY}
    catalog = [{"id": "i", "type": "identity", "name": "keystone", "endpoints": [endpoint]}]
    answer["token"] |= {"domain": {"id": "default", "name": "Default"}, "catalog": catalog}
    services.post(f"{IDENTITY}/auth/tokens", json=answer, headers={"X-Subject-Token": "4f2a9c"}, status_code=201)
    services.get(f"{IDENTITY}/services", **services_of_cloud)
    assert found(run, row_of(project.PROJECT, "volume")) == losses


@pytest.mark.parametrize("answer", [{"status_code": 503}, {"status_code": 400}, {"status_code": 404}, {"text": "no"}])
def test_a_service_that_fails_has_to_be_allowed_by_name(
    run: CloudRun, catalogue: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any]
) -> None:
    monkeypatch.setattr(tenacity.nap.time, "sleep", lambda seconds: None)
    monkeypatch.setattr("keystoneauth1.session.time.sleep", lambda seconds: None)
    catalogue.get(re.compile("^http://dns/v2/zones"), headers={"X-Openstack-Request-Id": "req-1"}, **answer)
    ((key, unread),) = row_of(project.PROJECT, "zone").find(Deletions(run, [LAB], frozenset()))
    assert key == LAB.key
    assert isinstance(unread, DeletionLoss)
    assert (unread.effect, unread.address) == (LossEffect.UNREAD, "unread/zone")
    assert "req-1" not in unread.detail  # plans are compared


def test_a_service_that_nobody_reaches_has_to_be_allowed_by_name(
    run: CloudRun, catalogue: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keystoneauth1.session.time.sleep", lambda seconds: None)
    catalogue.get(re.compile("^http://octavia"), exc=requests.exceptions.ConnectionError("refused"))
    assert found(run, row_of(project.PROJECT, "load_balancer"))[0].startswith("unread/")


def test_a_user_that_is_gone_by_now_hides_nothing_of_others(run: CloudRun, services: requests_mock.Mocker) -> None:
    users = [Deletion(User(name=name, password=Secret("s")), Observed(id=name, ours=True)) for name in ("gone", "left")]
    services.get(f"{IDENTITY}/users/gone/application_credentials", **failure(404))
    listed = [{"id": "c1", "name": "ci", "project_id": ""}]
    services.get(f"{IDENTITY}/users/left/application_credentials", json={"application_credentials": listed})
    findings = row_of(identity.USER, "application_credential").find(Deletions(run, users, frozenset()))
    assert [(key.name, str(loss)) for key, loss in findings] == [("left", "application_credential/c1 (ci)")]


def test_who_may_not_see_servers_of_all_projects_sees_its_own(run: CloudRun, services: requests_mock.Mocker) -> None:
    servers = f"{ENDPOINTS['compute']}/servers/detail"
    services.get(servers, json={"servers": [{"id": "s1", "name": "mine", "tenant_id": ""}]})
    services.get(f"{servers}?all_tenants=True", status_code=403)
    image = Deletion(Image(name="disk", source="disk.qcow2", disk_format="raw"), Observed(id="i1", ours=True))
    own, unread = found(run, row_of(compute.IMAGE, "server"), image)
    assert own == "server/s1"
    assert unread.startswith("not checked: servers")


def test_a_role_of_the_user_who_deletes_is_shown_and_allowed(run: CloudRun, services: requests_mock.Mocker) -> None:
    holder = {"id": ADMIN_USER, "name": "admin"}
    scope = {"project": {"id": "p1", "name": "lab"}}
    raws = [{"role": {"id": name, "name": name}, "user": holder | {"id": name}, "scope": scope} for name in ("x", "y")]
    raws[0]["user"] = holder
    services.get(f"{IDENTITY}/role_assignments", json={"role_assignments": raws})
    losses = [loss for _, loss in row_of(project.PROJECT, "role_assignment").find(Deletions(run, [LAB], frozenset()))]
    assert [isinstance(loss, DeletionLoss) and loss.is_own for loss in losses] == [True, False]


def test_a_member_does_not_claim_to_see_rules_of_other_projects(
    run: CloudRun, services: requests_mock.Mocker, wording: Wording
) -> None:
    group = GroupRecord(id="g1", name="web")
    deletion = Deletion(SecurityGroup(name="web"), Observed(id="g1", ours=True, record=group))
    (row,) = [each for each in network.SECURITY_GROUP if each.hidden]
    wording(found(run, row, deletion))
    answer = token(roles=["Admin"])  # policies do not distinguish case
    services.post(f"{IDENTITY}/auth/tokens", json=answer, headers={"X-Subject-Token": "4f2a9c"}, status_code=201)
    assert found(CloudRun(Cloud(connection()), run.ownership), row, deletion) == []


RULE = {
    "id": "x1",
    "security_group_id": "g1",
    "direction": "egress",
    "ethertype": "IPv4",
    "protocol": None,
    "port_range_min": None,
    "port_range_max": None,
    "remote_ip_prefix": None,
    "remote_group_id": None,
}
DNS = {"direction": "ingress", "protocol": "udp", "port_range_min": 53, "port_range_max": 53}


@pytest.mark.parametrize(
    ("fields", "templates", "lost"),
    [
        ({}, [], False),
        ({"description": "by hand"}, [], True),
        ({"remote_address_group_id": "a1"}, [], True),
        (DNS, [], True),
        (DNS, [RULE | DNS | {"used_in_non_default_sg": True}], False),
        (DNS, [RULE | DNS | {"used_in_non_default_sg": False}], True),
        ({**DNS, "description": "[openstack-prep:lab/web]"}, [], False),
        ({**DNS, "description": "[openstack-prep:theirs/web]"}, [], True),
    ],
)
def test_rules_that_neutron_creates_are_no_loss(
    run: CloudRun, services: requests_mock.Mocker, fields: dict[str, Any], templates: list[Any], lost: bool
) -> None:
    services.get(f"{NEUTRON}/extensions", json={"extensions": [{"alias": "security-groups-default-rules"}]})
    name = "default_security_group_rules"
    services.get(f"{NEUTRON}/{name.replace('_', '-')}", json={name: templates})
    services.get(f"{NEUTRON}/security-group-rules", json={"security_group_rules": [RULE | fields]})
    deletion = Deletion(SecurityGroup(name="web"), Observed(id="g1", record=GroupRecord(id="g1", name="web")))
    row = next(each for each in network.SECURITY_GROUP if not each.hidden)
    assert found(run, row, deletion) == (["security_group_rule/x1"] if lost else [])


@pytest.mark.parametrize("aliases", [[], ["logging"]])
@pytest.mark.usefixtures("administrator")
def test_logs_of_a_security_group_where_neutron_has_any(
    run: CloudRun, services: requests_mock.Mocker, aliases: list[str]
) -> None:
    services.get(f"{NEUTRON}/extensions", json={"extensions": [{"alias": each} for each in aliases]})
    services.get(f"{NEUTRON}/log/logs?resource_id=g1", json={"logs": [{"id": "l1", "name": "x", "resource_id": "g1"}]})
    deletion = Deletion(SecurityGroup(name="web"), Observed(id="g1", record=GroupRecord(id="g1", name="web")))
    assert found(run, row_of(network.SECURITY_GROUP, "log"), deletion) == ["log/l1"] * len(aliases)


def test_key_pairs_of_stacks_that_go_are_no_loss(run: CloudRun, services: requests_mock.Mocker) -> None:
    listed = [{"keypair": {"name": name}} for name in ("of-the-spec", "of-a-stack", "theirs")]
    services.get(f"{ENDPOINTS['compute']}/os-keypairs?user_id=u1", json={"keypairs": listed})
    user = Deletion(User(name="u", password=Secret("s")), Observed(id="u1", ours=True))
    row = row_of(identity.USER, "keypair")
    assert found(run, row, user, "u1 of-the-spec", "u of-a-stack", "two theirs") == ["keypair/u1/theirs"]


def test_stacks_and_containers_need_a_user_of_the_project(run: CloudRun, services: requests_mock.Mocker) -> None:
    services.get(f"{IDENTITY}/projects?name=lab", json={"projects": []})
    services.get(THEIR_ACCOUNT, status_code=403)
    for takes in ("stack", "software_config", "container"):
        assert found(run, row_of(project.PROJECT, takes)) == [f"unread/{takes}"]


@pytest.mark.usefixtures("administrator")
def test_containers_are_listed_or_named_as_unread(
    run: CloudRun, services: requests_mock.Mocker, wording: Wording
) -> None:
    """Swift may let an administrator read all accounts; by its default settings none, so nobody knows."""
    services.get(f"{IDENTITY}/projects?name=lab", json={"projects": []})
    row = row_of(project.PROJECT, "container")
    services.get(THEIR_ACCOUNT, status_code=403)
    ((_, unread),) = row.find(Deletions(run, [LAB], frozenset()))
    assert isinstance(unread, Unchecked)
    wording(unread.what)
    assert "403 Forbidden" in unread.why
    assert unread.why.endswith(f"; {project.NO_OPERATOR}")
    services.get(THEIR_ACCOUNT, json=[{"name": "backups"}])
    assert found(run, row) == ["container/p1/backups"]
    services.get(THEIR_ACCOUNT, **failure(404))
    assert found(run, row) == []


def test_what_was_read_before_the_run_deleted_the_user_who_may_is_no_loss_afterwards(
    run: CloudRun, services: requests_mock.Mocker
) -> None:
    services.get(f"{IDENTITY}/projects?name=lab", json={"projects": []})
    services.get(THEIR_ACCOUNT, json=[])
    row = row_of(project.PROJECT, "container")
    assert found(run, row) == []
    services.get(THEIR_ACCOUNT, status_code=403)
    other = Deletion(LAB.resource, Observed(id="p2", ours=True))
    services.get(THEIR_ACCOUNT.replace("p1/", "p2/"), status_code=403)
    found_later = [list(row.find(Deletions(run.fresh(), [each], frozenset()))) for each in (LAB, other)]
    assert [type(unread) for ((_, unread),) in found_later] == [Unchecked, DeletionLoss]


def _in_services(table: CascadeTable) -> list[CascadeRow]:
    return [row for row in table if row.service]


def test_a_project_is_looked_for_in_all_regions(run: CloudRun, services: requests_mock.Mocker) -> None:
    """Regions share Keystone alone; a service with one endpoint for both of them is read once."""
    answer = token(roles=["admin"])
    for service, url in (("compute", "http://nova.two/v2.1"), ("image", ENDPOINTS["image"])):
        (each,) = [each for each in answer["token"]["catalog"] if each["type"] == service]
        each["endpoints"].append({"id": "2", "interface": "public", "region": "two", "region_id": "two", "url": url})
    services.post(f"{IDENTITY}/auth/tokens", json=answer, headers={"X-Subject-Token": "4f2a9c"}, status_code=201)
    version = {"id": "v2.1", "status": "CURRENT", "min_version": "2.1", "version": "2.90"}
    version |= {"links": [{"rel": "self", "href": "http://nova.two/v2.1"}]}  # type: ignore[dict-item]
    services.get(re.compile("^http://nova.two/(v2.1/?)?$"), json={"versions": [version], "version": version})
    listed = services.get("http://nova.two/v2.1/servers", json={"servers": [{"id": "s2", "name": "far"}]})
    services.get(f"{IDENTITY}/projects?name=lab", json={"projects": []})
    services.get("http://nova.two/v2.1/os-server-groups", json={"server_groups": []})
    ((key, loss),) = find_losses_elsewhere(run, [LAB], frozenset(), _in_services(project.PROJECT))
    assert isinstance(loss, DeletionLoss)
    assert (key, loss.address, loss.effect) == (LAB.key, "server/s2", LossEffect.ORPHANED)
    assert loss.detail.endswith("in region two")
    assert listed.last_request.qs == {"all_tenants": ["true"], "project_id": ["p1"]}
    assert list(find_losses_elsewhere(run, [LAB], frozenset({"s2"}), _in_services(project.PROJECT))) == []
    services.get("http://nova.two/v2.1/os-keypairs?user_id=u1", json={"keypairs": [{"keypair": {"name": "k"}}]})
    user = Deletion(User(name="u", password=Secret("s")), Observed(id="u1", ours=True))
    going = frozenset({"u1 k"})  # the name is that of one region
    ((key, loss),) = find_losses_elsewhere(run, [user], going, _in_services(identity.USER))
    assert (key, loss.address) == (user.key, "keypair/u1/k")  # type: ignore[union-attr]


@pytest.mark.usefixtures("administrator")
def test_a_list_that_keystone_has_cut_off_is_not_read(run: CloudRun, services: requests_mock.Mocker) -> None:
    """By its list_limit; releases before 2025.2 link to no next page."""
    theirs = {"id": "c1", "type": "ec2", "project_id": "p2", "user_id": "u2", "blob": "{}"}
    services.get(f"{IDENTITY}/credentials", json={"credentials": [theirs], "truncated": True, "links": {"next": None}})
    assert found(run, row_of(project.PROJECT, "credential")) == ["unread/credential"]
    services.get(f"{IDENTITY}/credentials", json={"credentials": [theirs], "links": {"next": None}})
    assert found(run.fresh(), row_of(project.PROJECT, "credential")) == []


def test_no_two_assignments_have_one_name() -> None:
    """A name may contain what separates a user from its domain."""
    scope = {"project": {"name": "lab", "domain": {"name": "Default"}}}
    users = [("x@corp", "Default"), ("x", "corp"), ("x", "Default")]
    raws = [{"user": {"name": n, "domain": {"name": d}}, "scope": scope, "role": {"name": "member"}} for n, d in users]
    assert list(map(identity.name_of, raws)) == [
        "user:x@corp@Default@project:lab/member",
        "user:x@corp@project:lab/member",
        "user:x@project:lab/member",
    ]
