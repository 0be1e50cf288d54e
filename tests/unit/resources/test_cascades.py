"""Rows of the tables of cascades that the devcloud cannot show, and what credentials may not read."""

from __future__ import annotations

import re
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import NotAllowed
from openstack_prep.base.secret import Secret
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.deletion_loss import Deletion, DeletionLoss, Unchecked
from openstack_prep.core.model import Observed
from openstack_prep.resources.cascades import identity, network, project
from openstack_prep.resources.cascades.row import CascadeRow, CascadeTable, Deletions
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.identity.user import User
from openstack_prep.resources.lists.neutron_records import GroupRecord
from openstack_prep.resources.lists.route import Route
from openstack_prep.resources.network.router import Router
from openstack_prep.resources.network.security_group import SecurityGroup
from tests.unit.conftest import ENDPOINTS, IDENTITY, connection, token

NEUTRON = "http://neutron/v2.0"
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
    answer = token()
    for name, url in (("dns", "http://dns/v2"), ("load-balancer", "http://octavia/v2"), ("share", "http://manila")):
        endpoint = {"id": name, "interface": "public", "region": "one", "region_id": "one", "url": url}
        answer["token"]["catalog"].append({"id": name, "type": name, "name": name, "endpoints": [endpoint]})
        version = {"id": "v2", "status": "CURRENT", "links": [{"rel": "self", "href": url}]}
        services.get(re.compile(f"^{url.rpartition('/')[0]}/?$"), json={"versions": [version]})
        services.get(url, json={"version": version})
    services.post(f"{IDENTITY}/auth/tokens", json=answer, headers={"X-Subject-Token": "t"}, status_code=201)
    return services


def test_backups_are_left(run: CloudRun, services: requests_mock.Mocker) -> None:
    listed: dict[str, Any] = {"backups": [{"id": "b1", "name": "nightly"}]}
    services.get(f"{ENDPOINTS['block-storage']}/backups?all_tenants=True&project_id=p1", json=listed)
    assert found(run, row_of(project.PROJECT, "backup")) == ["backup/b1"]


def test_zones_and_load_balancers_are_left(run: CloudRun, catalogue: requests_mock.Mocker) -> None:
    zones = catalogue.get(re.compile("^http://dns/v2/zones"), json={"zones": [{"id": "z1", "name": "lab.example."}]})
    assert found(run, row_of(project.PROJECT, "zone")) == ["zone/z1"]
    assert zones.last_request.headers["X-Auth-Sudo-Project-ID"] == "p1"
    balancers = {"loadbalancers": [{"id": "l1", "name": "lb"}, {"id": "l2", "name": "ours"}]}
    catalogue.get(re.compile("^http://octavia/v2/.*lbaas/loadbalancers"), json=balancers)
    assert found(run, row_of(project.PROJECT, "load_balancer"), LAB, "l2") == ["load_balancer/l1"]


def test_other_services_are_not_claimed_to_be_empty(run: CloudRun, catalogue: requests_mock.Mocker) -> None:
    (unread,) = found(run, row_of(project.PROJECT, "resource"))
    assert unread == "not checked: what other services hold for a project: these services are not read: share"


def test_routes_are_those_of_now(run: CloudRun, services: requests_mock.Mocker) -> None:
    own, since = ({"destination": f"10.{n}.0.0/16", "nexthop": "10.0.0.5"} for n in (1, 2))
    router = Deletion(Router(name="r", routes=(Route(**own),)), Observed(id="r1", ours=True))
    services.get(f"{NEUTRON}/routers?id=r1", json={"routers": [{"id": "r1", "routes": [own, since]}]})
    assert found(run, row_of(network.ROUTER, "route"), router) == ["route/r1/10.2.0.0/16"]


def test_helpers_of_a_router_go_with_it(run: CloudRun, services: requests_mock.Mocker) -> None:
    router = Deletion(Router(name="r"), Observed(id="r1", ours=True))
    row = row_of(network.ROUTER, "conntrack_helper")
    assert found(run, row, router) == []  # without the extension nothing is asked
    services.get(f"{NEUTRON}/extensions", json={"extensions": [{"alias": "l3-conntrack-helper"}]})
    helper = {"id": "h1", "helper": "tftp", "protocol": "udp", "port": 69}
    services.get(f"{NEUTRON}/routers/r1/conntrack_helpers", json={"conntrack_helpers": [helper]})
    assert found(run.fresh(), row, router) == ["conntrack_helper/h1"]


def test_what_may_not_be_read_is_said(run: CloudRun, services: requests_mock.Mocker) -> None:
    services.get(f"{ENDPOINTS['block-storage']}/snapshots", status_code=403, json={"forbidden": {"message": "no"}})
    row = row_of(project.PROJECT, "snapshot")
    ((key, unread),) = row.find(Deletions(run, [LAB], frozenset()))
    assert key == LAB.key
    assert isinstance(unread, Unchecked)
    assert unread.what == "snapshots in a project"


def test_a_member_does_not_claim_to_see_rules_of_other_projects(run: CloudRun, services: requests_mock.Mocker) -> None:
    group = GroupRecord(id="g1", name="web")
    deletion = Deletion(SecurityGroup(name="web"), Observed(id="g1", ours=True, record=group))
    (row,) = [each for each in network.SECURITY_GROUP if each.hidden]
    assert found(run, row, deletion) == [f"not checked: {row.what}: only an administrator sees those of other projects"]
    answer = token()
    answer["token"]["roles"] = [{"id": "r", "name": "Admin"}]  # policies do not distinguish case
    services.post(f"{IDENTITY}/auth/tokens", json=answer, headers={"X-Subject-Token": "t"}, status_code=201)
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


def test_key_pairs_of_stacks_that_go_are_no_loss(run: CloudRun, services: requests_mock.Mocker) -> None:
    listed = [{"keypair": {"name": name}} for name in ("of-the-spec", "of-a-stack", "theirs")]
    services.get(f"{ENDPOINTS['compute']}/os-keypairs?user_id=u1", json={"keypairs": listed})
    user = Deletion(User(name="u", password=Secret("s")), Observed(id="u1", ours=True))
    row = row_of(identity.USER, "keypair")
    assert found(run, row, user, "u1 of-the-spec", "of-a-stack") == ["keypair/theirs"]


def test_stacks_and_containers_need_a_user_of_the_project(run: CloudRun, services: requests_mock.Mocker) -> None:
    services.get(f"{IDENTITY}/projects?name=lab", json={"projects": []})
    for takes in ("stack", "container"):
        (unread,) = found(run, row_of(project.PROJECT, takes))
        assert unread.startswith(f"not checked: {takes}s in a project"), NotAllowed


def test_a_user_without_operator_role_reads_why_containers_are_unknown(
    run: CloudRun, services: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project, "_user_of", lambda *_: run.admin)
    services.get(f"{ENDPOINTS['object-store']}/", status_code=403)
    (unread,) = found(run, row_of(project.PROJECT, "container"))
    assert "403 Forbidden" in unread
    assert unread.endswith(f"; {project.NO_OPERATOR}")
