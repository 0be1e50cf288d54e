from __future__ import annotations

import re
import time
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import PlanRefused
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.lease import Description, Entry, digest
from openstack_prep.core import planner
from openstack_prep.core.model import Observed, OwnershipTag
from openstack_prep.core.plan import Plan
from openstack_prep.core.planner import UNDECLARED
from openstack_prep.resources.compute.flavor import Flavor
from openstack_prep.resources.compute.quota import Quota
from openstack_prep.resources.compute.server_group import ServerGroup
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.identity.role_assignment import UNRECORDED, RoleAssignment
from openstack_prep.resources.image.image import Image
from openstack_prep.resources.network.declared_port import Port
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.security_group import SecurityGroup
from openstack_prep.resources.network.security_group_rule import SecurityGroupRule
from openstack_prep.spec import Spec
from openstack_prep.verbs.audit import Drift, DriftCode, _of_plan, audit, hidden_stacks
from tests.unit.conftest import ADMIN_PROJECT, IDENTITY, connection, default_group, port_row, without
from tests.unit.texts import expect_error

NEUTRON, NOVA = "http://neutron/v2.0", "http://nova/v2.1"
OURS = "[openstack-prep:lab/{}]"


@pytest.fixture(autouse=True)
def cloud(empty_cloud: requests_mock.Mocker) -> requests_mock.Mocker:
    """Project lab is that of the connection, too; nothing else stands there."""
    lab = {"id": ADMIN_PROJECT, "name": "lab", "domain_id": "default", "enabled": True, "tags": ["openstack-prep:lab"]}
    empty_cloud.get(f"{IDENTITY}/projects?name=lab", json={"projects": [lab]})
    return empty_cloud


def told(*resources: Any) -> list[str]:
    return [str(each) for each in audit(Cloud(connection()), Spec("lab", resources), jobs=1)]


def drift(*resources: Any) -> set[tuple[str, str]]:
    return {(each.resource, each.code.value) for each in audit(Cloud(connection()), Spec("lab", resources), jobs=1)}


def test_a_rule_is_declared_under_whatever_name_its_project_has(cloud: requests_mock.Mocker) -> None:
    rule = {"id": "r", "security_group_id": "g", "direction": "ingress", "ethertype": "IPv4", "protocol": "tcp"}
    rule |= {"port_range_min": 22, "port_range_max": 22, "remote_ip_prefix": None, "remote_group_id": None}
    group = {"id": "g", "name": "web", "description": OURS.format("web"), "stateful": True, "project_id": ADMIN_PROJECT}
    group |= {"security_group_rules": [rule | {"description": OURS.format("web")}]}
    network = {"id": "n", "name": "net", "description": OURS.format("net"), "project_id": ADMIN_PROJECT, "subnets": []}
    cloud.get(f"{NEUTRON}/security-groups?project_id={ADMIN_PROJECT}", json={"security_groups": [group]})
    cloud.get(f"{NEUTRON}/networks?project_id={ADMIN_PROJECT}", json={"networks": [network]})
    net = Network(name="net", project="lab")
    rules = (SecurityGroupRule(protocol="tcp", ports="22"),)
    assert drift(net, SecurityGroup(name="web", rules=rules)) == set()
    assert drift(net, SecurityGroup(name="web", rules=())) >= {("security_group/web", "open")}


@pytest.mark.parametrize("remote", ["self", "web"])
def test_a_rule_may_name_its_own_group(remote: str, cloud: requests_mock.Mocker) -> None:
    rule = {"id": "r", "security_group_id": "g", "direction": "ingress", "ethertype": "IPv4", "protocol": "udp"}
    rule |= {"port_range_min": 4789, "port_range_max": 4789, "remote_ip_prefix": None, "remote_group_id": "g"}
    group = {"id": "g", "name": "web", "description": OURS.format("web"), "stateful": True, "project_id": ADMIN_PROJECT}
    group |= {"security_group_rules": [rule | {"description": OURS.format("web")}]}
    network = {"id": "n", "name": "net", "description": OURS.format("net"), "project_id": ADMIN_PROJECT, "subnets": []}
    cloud.get(f"{NEUTRON}/security-groups?project_id={ADMIN_PROJECT}", json={"security_groups": [group]})
    cloud.get(f"{NEUTRON}/networks?project_id={ADMIN_PROJECT}", json={"networks": [network]})
    rules = (SecurityGroupRule(protocol="udp", ports="4789", remote_group=remote),)
    assert drift(Network(name="net", project="lab"), SecurityGroup(name="web", rules=rules)) == set()


def test_access_to_a_flavor_that_nobody_declared(cloud: requests_mock.Mocker) -> None:
    flavor = {"id": "f", "name": "small", "ram": 512, "vcpus": 1, "disk": 0, "description": OURS.format("small")}
    cloud.get(f"{NOVA}/flavors/detail", json={"flavors": [flavor | {"os-flavor-access:is_public": False}]})
    access = [{"flavor_id": "f", "tenant_id": tenant} for tenant in (ADMIN_PROJECT, "p9")]
    cloud.get(f"{NOVA}/flavors/f/os-flavor-access", json={"flavor_access": access})
    cloud.get(f"{IDENTITY}/projects/p9", json={"project": {"id": "p9", "name": "their"}})
    (found,) = audit(Cloud(connection()), Spec("lab", (Flavor(name="small", is_public=False, access=("lab",)),)))
    assert (found.resource, found.code) == ("flavor/small", "access")
    assert "their (p9)" in found.what


def test_access_to_an_image_that_nobody_declared(cloud: requests_mock.Mocker) -> None:
    image = {"id": "i1", "name": "rhcos", "owner": ADMIN_PROJECT, "visibility": "shared", "status": "active"}
    image |= {"checksum": None, "tags": [], "properties": {}, "created_at": "2026-01-01"}
    image |= {"openstack_prep": "lab", "openstack_prep_name": "rhcos", "openstack_prep_id": "i1"}
    image |= {"disk_format": "qcow2", "container_format": "bare", "size": 1, "os_hidden": False, "protected": False}
    image |= {"min_disk": 0, "min_ram": 0, "updated_at": "2026-01-01", "file": "/v2/images/i1/file"}
    members = [{"image_id": "i1", "member_id": each, "status": "accepted"} for each in (ADMIN_PROJECT, "p9")]
    cloud.get(re.compile(r"^http://glance/v2/images(\?|$)"), json={"images": [image]})
    cloud.get("http://glance/v2/images/i1/members", json={"members": members})
    cloud.get(f"{IDENTITY}/projects/p9", json={"project": {"id": "p9", "name": "their"}})
    declared = Image(name="rhcos", shared_with=("lab",))
    found = [each for each in audit(Cloud(connection()), Spec("lab", (declared,))) if each.code == "access"]
    assert [each.resource for each in found] == ["image/rhcos"]
    assert "their (p9)" in found[0].what


def test_a_port_that_allows_what_no_spec_has_added(cloud: requests_mock.Mocker) -> None:
    pairs = [{"ip_address": each, "mac_address": "fa:16:3e:00:00:01"} for each in ("10.0.0.7", "10.0.0.8")]
    tags = ["openstack-prep:other~10.0.0.7"]
    port = port_row(id="p1", name="web", allowed_address_pairs=pairs, tags=tags, project_id=ADMIN_PROJECT)
    cloud.get(f"{NEUTRON}/ports?project_id={ADMIN_PROJECT}", json={"ports": [port, port_row(id="p2")]})
    cloud.get(f"{NEUTRON}/extensions", json={"extensions": []})
    found = [each for each in audit(Cloud(connection()), Spec("lab", (Network(name="net"),))) if each.code == "pairs"]
    assert [each.resource for each in found] == ["port/web"]
    assert "10.0.0.8" in found[0].what
    declared = Port(name="web", network="net", allowed_address_pairs=())
    assert ("port/web", "pairs") not in drift(Network(name="net"), declared)


def test_a_server_group_that_the_spec_has_dropped_is_named(cloud: requests_mock.Mocker) -> None:
    """A plan cannot: a server group has no room for an ownership tag."""
    group = {
        "id": "g1",
        "name": "spread",
        "policy": "affinity",
        "rules": {},
        "members": [],
        "project_id": ADMIN_PROJECT,
    }
    cloud.get(f"{NOVA}/os-server-groups", json={"server_groups": [group]})
    left = Quota(project="lab", cores=4)
    assert ("server_group/spread", "unmanaged") in drift(left)
    assert ("server_group/spread", "unmanaged") not in drift(
        left, ServerGroup(name="spread", policy="affinity", project="lab")
    )


def test_what_another_run_kept_from_being_planned_is_no_clean_audit(cloud: requests_mock.Mocker) -> None:
    at_work = Entry(spec=digest("lab"), run="thei", since=int(time.time()), place="else", pid=1, start="abc", who="ann")
    default_group(cloud, Description(before="d", count=1, entries=(at_work,)).write())
    networks = [{"id": each, "name": "net", "description": "", "project_id": ADMIN_PROJECT} for each in ("n1", "n2")]
    cloud.get(f"{NEUTRON}/networks?project_id={ADMIN_PROJECT}", json={"networks": networks})
    with expect_error(PlanRefused, "lab", code="lease.held"):
        drift(Network(name="net", project="lab"))


def test_a_cloud_may_lack_block_storage(cloud: requests_mock.Mocker) -> None:
    answer = without("block-storage")
    cloud.post(f"{IDENTITY}/auth/tokens", json=answer, headers={"X-Subject-Token": "4f2a9c"}, status_code=201)
    assert drift(Flavor(name="small", ram=512, vcpus=1)) == {("flavor/small", "changed")}


@pytest.mark.parametrize(
    ("description", "adopt", "codes"),
    [
        ("edited by hand", False, {"untagged"}),
        ("edited by hand", True, set()),
        ("edited by hand", "permanently", {"changed"}),
        ("[openstack-prep:theirs/net]", False, set()),
        (OURS.format("net"), False, set()),
    ],
)
def test_what_is_declared_and_has_lost_its_tag(
    cloud: requests_mock.Mocker, description: str, adopt: Any, codes: set[str]
) -> None:
    """A plan shows no difference: the spec declares no description."""
    network = {"id": "n", "name": "net", "description": description, "project_id": ADMIN_PROJECT, "subnets": []}
    cloud.get(f"{NEUTRON}/networks?project_id={ADMIN_PROJECT}", json={"networks": [network]})
    assert drift(Network(name="net", project="lab", adopt=adopt)) == {("network/net", code) for code in codes}


def test_what_a_plan_would_change_is_named(cloud: requests_mock.Mocker) -> None:
    network = {"id": "n", "name": "net", "description": "old [openstack-prep:lab/net]", "project_id": ADMIN_PROJECT}
    cloud.get(f"{NEUTRON}/networks?project_id={ADMIN_PROJECT}", json={"networks": [network | {"subnets": []}]})
    new = (Network(name="net", project="lab", description="new"), Network(name="more", project="lab", mtu=1400))
    assert told(*new) == ["network/net: plan: update: description old -> new", "network/more: plan: create: mtu 1400"]


@pytest.mark.parametrize(
    ("description", "prefix", "codes"),
    [
        ("", None, {"unmanaged", "open"}),
        ("", "10.0.0.0/8", {"unmanaged"}),
        ("[openstack-prep:theirs/web]", None, {"unmanaged"}),
    ],
)
def test_a_group_that_nobody_manages_opens_a_port_to_the_world(
    cloud: requests_mock.Mocker, description: str, prefix: str | None, codes: set[str]
) -> None:
    rule = {"id": "r", "security_group_id": "g", "direction": "ingress", "ethertype": "IPv4", "protocol": "tcp"}
    rule |= {"port_range_min": 22, "port_range_max": 22, "remote_ip_prefix": prefix, "remote_group_id": None}
    group = {"id": "g", "name": "web", "description": description, "stateful": True, "project_id": ADMIN_PROJECT}
    group |= {"security_group_rules": [rule | {"description": ""}]}
    cloud.get(f"{NEUTRON}/security-groups?project_id={ADMIN_PROJECT}", json={"security_groups": [group]})
    assert drift(Quota(project="lab")) == {("security_group/web", code) for code in codes}


def test_a_role_that_was_given_by_hand_is_not_said_to_have_left_the_spec() -> None:
    """A record tells it from one that the spec declared before."""
    role = RoleAssignment(user="ops", role="reader", project="lab")
    left = [
        (role, Observed(id="r1", doubt=UNRECORDED)),
        (Network(name="net", project="lab"), Observed(id="n", ours=True)),
    ]
    plan = planner.plan_removals(Plan(spec="lab", purpose="apply", steps=()), left, prune=False)
    drifts = {each.resource: each.what for each in _of_plan(plan)}
    assert drifts["network/net"] == UNDECLARED
    assert UNRECORDED in drifts[str(role.key)]
    assert UNDECLARED not in drifts[str(role.key)]


def test_the_default_group_needs_no_tag(cloud: requests_mock.Mocker) -> None:
    group = {"id": "g", "name": "default", "description": "Default security group", "stateful": True}
    group |= {"project_id": ADMIN_PROJECT, "security_group_rules": []}
    cloud.get(f"{NEUTRON}/security-groups?project_id={ADMIN_PROJECT}", json={"security_groups": [group]})
    assert drift(SecurityGroup(name="default", project="lab")) == set()


def test_a_name_cannot_look_like_a_line_of_its_own() -> None:
    told = str(
        Drift(resource="security_group/x\naudit lab: no drift\x1b[2m", code=DriftCode.UNMANAGED, what="is foreign")
    )
    assert [each for each in told.splitlines() if not each.startswith(" ")] == ["security_group/x"]
    assert "\x1b" not in told


@pytest.mark.parametrize(
    ("description", "owner"),
    [("", None), ("[openstack-prep:theirs/web]", "theirs"), ("[openstack-prep:lab/other]", None)],
)
def test_an_undeclared_resource_is_reported_with_the_spec_that_manages_it(
    cloud: requests_mock.Mocker, description: str, owner: str | None
) -> None:
    network = {"id": "n9", "name": "web", "description": description, "project_id": ADMIN_PROJECT, "subnets": []}
    cloud.get(f"{NEUTRON}/networks?project_id={ADMIN_PROJECT}", json={"networks": [network]})
    found = audit(Cloud(connection()), Spec("lab", (Quota(project="lab"),)), jobs=1)
    (drifted,) = (each for each in found if each.resource == "network/web" and each.code == "unmanaged")
    assert drifted.what.partition(" ")[0] == "n9"
    assert drifted.what.endswith("spec theirs") == bool(owner)


def test_a_tag_names_the_spec_that_manages_a_port(cloud: requests_mock.Mocker) -> None:
    port = port_row(id="p9", name="vip", tags=["openstack-prep:theirs"], project_id=ADMIN_PROJECT)
    cloud.get(f"{NEUTRON}/ports?project_id={ADMIN_PROJECT}", json={"ports": [port]})
    (found,) = audit(Cloud(connection()), Spec("lab", (Quota(project="lab"),)), jobs=1)
    assert (found.resource, found.code) == ("port/vip", "unmanaged")
    assert found.what.endswith("spec theirs")


@pytest.mark.parametrize(("tags", "owner"), [([], ""), (["openstack-prep:theirs", "blue"], "theirs")])
def test_stacks_of_a_project_without_a_connection(
    administrator: None, cloud: requests_mock.Mocker, tags: list[str], owner: str
) -> None:
    far = {"id": "p9", "name": "far", "domain_id": "default", "enabled": True, "tags": ["openstack-prep:lab"]}
    cloud.get(f"{IDENTITY}/projects?name=far", json={"projects": [far]})
    stack = {"id": "k1", "stack_name": "web", "stack_status": "CREATE_COMPLETE", "tags": tags}
    stack |= {"project": "p9", "parent": None}
    cloud.get(re.compile("^http://heat/v1/admin-project/stacks"), json={"stacks": [stack, stack | {"project": "p8"}]})
    found = audit(Cloud(connection()), Spec("lab", (Quota(project="far"),)), jobs=1)
    assert [(each.resource, each.code) for each in found] == [("stack/web", "unmanaged")]
    assert found[0].what.partition(" ")[0] == "k1"
    assert found[0].what.endswith(f"spec {owner}") == bool(owner)
    assert [each.partition(":")[0] for each in found.left_out] == ["every application_credential", "every object_store"]


def test_stacks_of_the_connections_own_project_are_no_hidden_ones(cloud: requests_mock.Mocker) -> None:
    """The kind itself lists them."""
    stack = {"id": "k1", "stack_name": "web", "stack_status": "CREATE_COMPLETE", "project": ADMIN_PROJECT}
    listed = cloud.get(re.compile("^http://heat/v1/admin-project/stacks"), json={"stacks": [stack]})
    run = CloudRun(Cloud(connection()), OwnershipTag("lab"))
    assert hidden_stacks(run, None) == ()
    assert not listed.called


def test_a_project_that_is_disabled_is_named(cloud: requests_mock.Mocker) -> None:
    lab = {"id": ADMIN_PROJECT, "name": "lab", "domain_id": "default", "tags": ["openstack-prep:lab"], "enabled": False}
    cloud.get(f"{IDENTITY}/projects?name=lab", json={"projects": [lab]})
    assert ("project/lab", "disabled") in drift(Project(name="lab"))
    assert ("project/lab", "disabled") in drift(Project(name="lab", enabled=False))
    assert drift(Project(name="lab", enabled=True)) == {("project/lab", "changed")}


def test_stacks_that_nobody_may_list_are_left_out(cloud: requests_mock.Mocker) -> None:
    far = {"id": "p9", "name": "far", "domain_id": "default", "enabled": True, "tags": ["openstack-prep:lab"]}
    cloud.get(f"{IDENTITY}/projects?name=far", json={"projects": [far]})
    found = audit(Cloud(connection()), Spec("lab", (Quota(project="far"),)), jobs=1)
    assert [each.partition(":")[0] for each in found.left_out][-1] == "every stack"
