from __future__ import annotations

import re
from typing import Any

import pytest
import requests_mock
import yaml

from openstack_prep.base.errors import ConfigError
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import OwnershipTag
from openstack_prep.resources.identity.project import Project
from openstack_prep.verbs import export
from tests.unit.conftest import ADMIN_PROJECT, ENDPOINTS, IDENTITY, connection, failure, port_row, subnet_row, without
from tests.unit.texts import contains

NEUTRON = "http://neutron/v2.0"
GROUPS = f"{NEUTRON}/security-groups"
HOME = Project(name="lab")


@pytest.fixture
def lab(empty_cloud: requests_mock.Mocker) -> requests_mock.Mocker:
    project = {"id": ADMIN_PROJECT, "name": "lab", "enabled": True, "tags": ["openstack-prep:lab"]}
    empty_cloud.get(f"{IDENTITY}/projects?name=lab", json={"projects": [project]})
    return empty_cloud


def group(**fields: Any) -> dict[str, Any]:
    ours = "[openstack-prep:lab/db]"
    return {"id": "g1", "name": "db", "description": ours, "stateful": True, "security_group_rules": []} | fields


def test_by_tag_a_group_without_rules_of_the_spec_is_exported(lab: requests_mock.Mocker) -> None:
    lab.get(GROUPS, json={"security_groups": [group()]})
    said = export.export(Cloud(connection()), HOME, tag="lab").sections
    assert said["security_groups"] == [{"name": "db"}]


@pytest.mark.parametrize("service", ["block-storage", "object-store", "orchestration"])
def test_a_cloud_may_lack_a_service(lab: requests_mock.Mocker, service: str) -> None:
    lab.post(f"{IDENTITY}/auth/tokens", json=without(service), headers={"X-Subject-Token": "4f2a9c"}, status_code=201)
    assert export.export(Cloud(connection()), HOME).sections == {"name": "lab", "project": {"name": "lab"}}


def test_what_only_a_file_holds_is_a_comment(lab: requests_mock.Mocker) -> None:
    raw = {"id": "c1", "name": "ci", "description": "", "project_id": ADMIN_PROJECT, "user_id": "admin-user"}
    raw |= {"roles": [{"name": "member"}], "expires_at": None, "unrestricted": False}
    path = f"{IDENTITY}/users/admin-user/application_credentials"
    lab.get(path, json={"application_credentials": [raw]})
    said = export.export(Cloud(connection()), HOME)
    assert "application_credentials" not in said.sections
    assert [each.partition(":")[0] for each in said.unsaid] == ["application_credential/ci"]


def test_a_member_exports_the_project_of_the_connection(lab: requests_mock.Mocker) -> None:
    project = {"id": ADMIN_PROJECT, "name": "admin", "enabled": True, "description": "of the member"}
    lab.get(f"{IDENTITY}/projects/{ADMIN_PROJECT}", json={"project": project})
    for forbidden in ("projects", "role_assignments", "users"):
        lab.get(f"{IDENTITY}/{forbidden}", **failure(403))
    lab.get(f"{ENDPOINTS['compute']}/servers?all_tenants=True", **failure(403))
    lab.get(GROUPS, json={"security_groups": [group()]})
    said = export.export(Cloud(connection()))
    assert "project" not in said.sections
    assert [each["name"] for each in said.sections["security_groups"]] == ["db"]
    assert "every role_assignment" in {each.partition(":")[0] for each in said.unsaid}
    assert contains(str(said), "# not exported: every role_assignment", "admin-user")
    assert contains(str(said), "# not exported: the project admin-project", "admin-user")


def test_what_shares_a_name_is_left_out_with_what_belongs_to_it(lab: requests_mock.Mocker) -> None:
    networks = [{"id": each, "name": name} for each, name in (("n1", "net"), ("n2", "net"), ("n3", "b"), ("n4", "c"))]
    lab.get(f"{NEUTRON}/networks", json={"networks": networks})
    subnet = {"gateway_ip": None, "allocation_pools": [], "dns_nameservers": [], "host_routes": []}
    subnets = [
        {"id": f"s{each}", "name": name, "network_id": f"n{each}", "cidr": f"10.{each}.0.0/24"} | subnet
        for each, name in ((1, "one"), (2, "twin"), (3, "twin"), (4, "four"))
    ]
    lab.get(f"{NEUTRON}/subnets", json={"subnets": subnets})
    interface = {
        "device_owner": "network:router_interface",
        "fixed_ips": [{"subnet_id": "s3", "ip_address": "10.3.0.1"}],
    }
    ports = [port_row(id="p1", device_id="r1", **interface)]
    lab.get(f"{NEUTRON}/ports", json={"ports": ports})
    router = {"id": "r1", "name": "router", "external_gateway_info": None, "routes": []}
    lab.get(f"{NEUTRON}/routers", json={"routers": [router]})
    said = export.export(Cloud(connection()), HOME)
    assert [each["name"] for each in said.sections["networks"]] == ["b", "c"]
    assert [each["name"] for each in said.sections["subnets"]] == ["four"]
    left = ["network/net n1", "network/net n2", "subnet/one", "subnet/twin s2", "subnet/twin s3", "router/router"]
    assert [each.partition(":")[0] for each in said.unsaid] == left


def test_a_name_of_others_cannot_leave_its_comment() -> None:
    said = export.Export(sections={"name": "lab"}, unsaid=("network/x\nrole_assignments: [{user: m}]\n#",))
    assert yaml.safe_load(str(said)) == {"name": "lab"}


def test_the_leases_of_runs_are_not_exported(lab: requests_mock.Mocker) -> None:
    rule = {"id": "r1", "direction": "ingress", "ethertype": "IPv4", "protocol": "tcp", "description": ""}
    rule |= {"port_range_min": 22, "port_range_max": 22, "remote_ip_prefix": "10.0.0.0/8", "remote_group_id": None}
    ours = "Default security group [openstack-prep:lab/default] [openstack-prep 3]"
    default = group(name="default", description=ours, security_group_rules=[rule])
    lab.get(GROUPS, json={"security_groups": [default]})
    said = export.export(Cloud(connection()), HOME).sections["security_groups"]
    assert [each["description"] for each in said] == ["Default security group"]


def test_what_only_users_of_a_project_can_list_is_a_comment(lab: requests_mock.Mocker) -> None:
    project = {"id": "p2", "name": "lab", "enabled": True, "tags": []}
    lab.get(f"{IDENTITY}/projects?name=lab", json={"projects": [project]})
    said = export.export(Cloud(connection()), HOME).unsaid
    kinds = ("application_credential", "object_store", "stack")
    assert [each.partition(":")[0] for each in said] == [f"every {kind}" for kind in kinds]
    said = export.export(Cloud(connection()), HOME, kinds=["object_store"]).unsaid
    assert "every object_store" in {each.partition(":")[0] for each in said}
    assert not any("application_credential" in each for each in said)


def test_a_project_is_exported_without_those_of_others(lab: requests_mock.Mocker) -> None:
    lab.get(f"{IDENTITY}/projects?name=far", json={"projects": [{"id": "p2", "name": "far", "enabled": True}]})
    for project in ("p2", ADMIN_PROJECT):
        networks = [{"id": "n1", "name": f"of-{project}", "project_id": project}]
        lab.get(f"{NEUTRON}/networks?project_id={project}", json={"networks": networks})
    said = export.export(Cloud(connection()), Project(name="far")).sections
    assert [each["name"] for each in said["networks"]] == ["of-p2"]


def test_a_part_is_selected_by_name_and_kind(lab: requests_mock.Mocker) -> None:
    lab.get(GROUPS, json={"security_groups": [group(), group(id="g2", name="web")]})
    lab.get(f"{NEUTRON}/networks", json={"networks": [{"id": "n1", "name": "web-net"}]})

    def found(**part: Any) -> dict[str, list[str]]:
        sections = export.export(Cloud(connection()), HOME, **part).sections
        return {name: [each["name"] for each in said] for name, said in sections.items() if isinstance(said, list)}

    assert found(name="web*") == {"networks": ["web-net"], "security_groups": ["web"]}
    assert found(kinds=["security_group"]) == {"security_groups": ["db", "web"]}
    assert found(kinds=["network"], name="db") == {}


def test_flavors_of_nobody_are_exported_if_asked_for_alone(lab: requests_mock.Mocker) -> None:
    texts = {"small": "", "large": OwnershipTag("lab", home=ADMIN_PROJECT).describe("large")}
    fields = {"ram": 512, "vcpus": 1, "disk": 0}
    flavors = [{"id": name, "name": name, "description": text} | fields for name, text in texts.items()]
    lab.get("http://nova/v2.1/flavors/detail", json={"flavors": flavors})

    def found(**part: Any) -> list[str]:
        sections = export.export(Cloud(connection()), HOME, **part).sections
        return [each["name"] for each in sections.get("flavors", [])]

    assert (found(), found(kinds=["flavor"])) == (["large"], ["small", "large"])
    assert found(kinds=["flavor"], tag="lab") == ["large"]


def test_rules_are_exported_with_their_fields(lab: requests_mock.Mocker) -> None:
    rule = {"id": "r1", "direction": "ingress", "ethertype": "IPv4", "protocol": "tcp", "description": ""}
    rule |= {"port_range_min": 22, "port_range_max": 22, "remote_ip_prefix": "10.0.0.0/8", "remote_group_id": None}
    made = rule | {"id": "r2", "direction": "egress", "protocol": None, "remote_ip_prefix": None}
    made |= {"port_range_min": None, "port_range_max": None}
    lab.get(GROUPS, json={"security_groups": [group(security_group_rules=[rule | {"security_group_id": "g1"}, made])]})
    for part in ({}, {"kinds": ["security_group"]}):
        (said,) = export.export(Cloud(connection()), HOME, **part).sections["security_groups"]
        assert said["rules"] == [
            {"ethertype": "IPv4", "protocol": "tcp", "ports": "22", "remote_ip_prefix": "10.0.0.0/8"}
        ]


def test_a_group_whose_rule_admits_a_twin_is_left_out(lab: requests_mock.Mocker) -> None:
    rule = {"id": "r1", "direction": "ingress", "ethertype": "IPv4", "protocol": None, "description": ""}
    rule |= {"port_range_min": None, "port_range_max": None, "remote_ip_prefix": None, "remote_group_id": "g2"}
    twins = [group(id=each, name="twin") for each in ("g2", "g3")]
    lab.get(GROUPS, json={"security_groups": [group(security_group_rules=[rule]), *twins]})
    lab.get(f"{NEUTRON}/networks", json={"networks": [{"id": "n1", "name": "net"}]})
    lab.get(f"{NEUTRON}/ports", json={"ports": [port_row(id="p1", name="vip", security_groups=["g3"])]})
    said = export.export(Cloud(connection()), HOME)
    assert said.sections.keys() == {"name", "project", "networks"}
    left = ["security_group/db", "security_group/twin g2", "security_group/twin g3", "port/vip"]
    assert [each.partition(":")[0] for each in said.unsaid] == left


def test_external_networks_may_share_a_name(lab: requests_mock.Mocker) -> None:
    """Which spec declares a router or floating IP on one of them has to rename it; all others need not care."""
    external = [{"id": each, "name": "external", "router:external": True} for each in ("e1", "e2")]
    lab.get(f"{NEUTRON}/networks?router:external=True", json={"networks": external})
    gateway = {"network_id": "e1", "enable_snat": True, "external_fixed_ips": []}
    router = {"id": "r1", "name": "router", "external_gateway_info": gateway, "routes": [], "project_id": ADMIN_PROJECT}
    lab.get(f"{NEUTRON}/routers", json={"routers": [router]})
    floating = {"id": "f1", "floating_ip_address": "192.0.2.9", "floating_network_id": "e2", "port_id": None}
    lab.get(f"{NEUTRON}/floatingips", json={"floatingips": [floating]})
    said = export.export(Cloud(connection()), HOME).sections
    assert [each["external_network"] for each in (*said["routers"], *said["floating_ips"])] == ["external"] * 2


def test_lists_are_exported_as_lists(lab: requests_mock.Mocker) -> None:
    route = {"destination": "10.9.0.0/16", "nexthop": "10.0.0.9"}
    pool = {"start": "10.0.0.10", "end": "10.0.0.99"}
    row = subnet_row(id="s1", name="sub", dns_nameservers=["10.0.0.2"], host_routes=[route], allocation_pools=[pool])
    lab.get(f"{NEUTRON}/networks", json={"networks": [{"id": "n1", "name": "net"}]})
    lab.get(f"{NEUTRON}/subnets", json={"subnets": [row]})
    (said,) = export.export(Cloud(connection()), HOME).sections["subnets"]
    assert said == {
        "name": "sub",
        "network": "net",
        "cidr": "10.0.0.0/24",
        "gateway_ip": False,
        "dns_nameservers": ["10.0.0.2"],
        "host_routes": [route],
        "allocation_pools": ["10.0.0.10-10.0.0.99"],
    }


def test_the_spec_has_the_name_of_the_only_one_that_manages_the_project(lab: requests_mock.Mocker) -> None:
    project = {"id": ADMIN_PROJECT, "name": "lab", "enabled": True}
    for tags, name in ((["openstack-prep:one"], "one"), (["openstack-prep:one", "openstack-prep:two"], "lab")):
        lab.get(f"{IDENTITY}/projects?name=lab", json={"projects": [project | {"tags": tags}]})
        assert export.export(Cloud(connection()), HOME).sections["name"] == name


def test_what_no_spec_can_declare_is_a_comment(lab: requests_mock.Mocker) -> None:
    server = {"id": "s1", "name": "web", "tenant_id": ADMIN_PROJECT, "status": "ACTIVE"}
    lab.get("http://nova/v2.1/servers", json={"servers": [server]})
    said = export.export(Cloud(connection()), HOME).unsaid
    assert [each for each in said if each.startswith("server ")] == ["server web s1"]
    volume = {"id": "v1", "name": "data", "status": "available"}
    lab.get(re.compile("^http://cinder/v3/volumes"), json={"volumes": [volume]})
    said = export.export(Cloud(connection()), HOME).unsaid
    assert [each for each in said if each.startswith(("server ", "volume "))] == ["server web s1", "volume data v1"]


def test_a_project_is_exported_with_what_differs_from_a_new_one(lab: requests_mock.Mocker) -> None:
    project = {"id": ADMIN_PROJECT, "name": "lab", "enabled": False, "description": "d", "tags": ["openstack-prep:lab"]}
    lab.get(f"{IDENTITY}/projects?name=lab", json={"projects": [project | {"tags": [*project["tags"], "blue"]}]})
    said = export.export(Cloud(connection()), HOME).sections["project"]
    assert said == {"name": "lab", "description": "d", "tags": ["blue"], "enabled": False}


@pytest.mark.parametrize("part", [{"kinds": ["network"]}, {"name": "web-*"}])
def test_an_exported_part_warns_of_prune(lab: requests_mock.Mocker, part: dict[str, Any]) -> None:
    assert "--prune" in export.export(Cloud(connection()), HOME, **part).unsaid[0]
    assert not any("--prune" in each for each in export.export(Cloud(connection()), HOME).unsaid)


def test_what_a_stack_may_hold_is_not_taken_over_unseen(lab: requests_mock.Mocker) -> None:
    project = {"id": "p2", "name": "lab", "enabled": True, "tags": []}
    lab.get(f"{IDENTITY}/projects?name=lab", json={"projects": [project]})
    with pytest.raises(ConfigError):
        export.export(Cloud(connection()), HOME, adopt="permanently")


def test_what_a_cluster_manages_is_not_taken_over(lab: requests_mock.Mocker) -> None:
    rows = {"net": [], "ocp": ["openshiftClusterID=ocp-x7k2p"], "other": ["openstack-prep:other"]}
    networks = [
        {
            "id": name,
            "name": name,
            "tags": tags,
            "description": "[openstack-prep:other/other]" if name == "other" else "",
        }
        for name, tags in rows.items()
    ]
    lab.get(f"{NEUTRON}/networks", json={"networks": networks})
    lab.get(
        GROUPS,
        json={
            "security_groups": [
                group(name="lb-sg-1", description="Security Group for default/web Service LoadBalancer in cluster prod")
            ]
        },
    )
    said = export.export(Cloud(connection()), HOME, adopt="permanently")
    adopted = {each["name"]: each.get("adopt") for each in said.sections["networks"]}
    assert adopted == {"net": "permanently", "ocp": None, "other": None}
    assert [each.get("adopt") for each in said.sections["security_groups"]] == [None]
    named = [each.partition(":")[0] for each in said.unsaid]
    assert named == ["adopt of network/ocp", "adopt of network/other", "adopt of security_group/lb-sg-1"]


def test_an_address_on_two_external_networks_is_exported_by_id(lab: requests_mock.Mocker) -> None:
    external = [{"id": each, "name": each, "router:external": True} for each in ("e1", "e2")]
    lab.get(f"{NEUTRON}/networks?router:external=True", json={"networks": external})
    floating = [
        {"id": f"f{each}", "floating_network_id": f"e{each}", "floating_ip_address": "192.0.2.9", "port_id": f"p{each}"}
        for each in (1, 2)
    ]
    lab.get(f"{NEUTRON}/floatingips", json={"floatingips": floating})
    lab.get(f"{NEUTRON}/ports", json={"ports": [port_row(id=f"p{each}", name=f"vip{each}") for each in (1, 2)]})
    said = export.export(Cloud(connection()), HOME)
    assert said.sections["floating_ip_attachments"] == [
        {"port": f"vip{each}", "floating_ip_id": f"f{each}"} for each in (1, 2)
    ]
