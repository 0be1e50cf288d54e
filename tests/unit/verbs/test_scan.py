from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests_mock
import yaml

from openstack_prep.base.errors import CloudError, PlanRefused
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.model import Observed, OwnershipTag, Resource
from openstack_prep.exposures.exposed_cluster import ExposedCluster
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.resources.addresses.address_pool import AddressPool
from openstack_prep.resources.addresses.floating_ip import FloatingIP
from openstack_prep.resources.addresses.floating_ip_attachment import FloatingIPAttachment
from openstack_prep.resources.compute.flavor import Flavor
from openstack_prep.resources.credentials.application_credential import ApplicationCredential
from openstack_prep.resources.files.clouds_entry import CloudsEntry
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.identity.role_assignment import RoleAssignment
from openstack_prep.resources.identity.user import User
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.port import OWNER
from openstack_prep.resources.network.security_group import SecurityGroup, SecurityGroupRules
from openstack_prep.resources.network.security_group_rule import SecurityGroupRule
from openstack_prep.resources.orchestration.stack import Stack
from openstack_prep.spec import Spec
from openstack_prep.verbs import api, scan
from tests.unit.conftest import ADMIN_PROJECT, IDENTITY, connection, failure, token
from tests.unit.texts import Wording

NEUTRON = "http://neutron/v2.0"
LAB = Project(name="lab")
DOMAIN = {"id": "default", "name": "Default"}
OURS = "[openstack-prep:lab/{}]"
LAB_NAMED = OwnershipTag("lab").name_tag("project", "default", "lab")


def project(project_id: str, name: str, *tags: str) -> dict[str, Any]:
    return {"id": project_id, "name": name, "domain_id": "default", "enabled": True, "tags": list(tags)}


@pytest.fixture(autouse=True)
def cloud(empty_cloud: requests_mock.Mocker) -> requests_mock.Mocker:
    """Project lab is that of the connection, too; nothing else stands there."""
    empty_cloud.get(
        f"{IDENTITY}/projects?name=lab",
        json={"projects": [project(ADMIN_PROJECT, "lab", "openstack-prep:lab", LAB_NAMED)]},
    )
    return empty_cloud


def left(*resources: Resource) -> dict[str, bool]:
    """Return what the resources leave undeclared, each with whether it is the spec's for sure."""
    run = CloudRun(Cloud(connection()), OwnershipTag("lab"), homes=scan.homes_of(resources))
    observed = observation.observe(run, resources)
    run.known.update(observed)
    return {
        str(each.key): found.ours
        for each, found in scan.undeclared(run, scan.look(run, resources, jobs=1), resources, observed, jobs=1)
    }


def prune(*resources: Resource) -> list[str]:
    """Delete what the resources leave undeclared; return what forbids it."""
    run = CloudRun(Cloud(connection()), OwnershipTag("lab"), homes=scan.homes_of(resources))
    observed = observation.observe(run, resources)
    found = scan.undeclared(run, scan.look(run, resources, jobs=1), resources, observed, jobs=1)
    plan = planner.plan_removals(planner.plan_apply("lab", [], {}), found, prune=True)
    refusals = [str(each) for each in observation.examine_deletes(run, plan)]
    if not refusals:
        executor.execute(plan, run).raise_for_failures()
    return refusals


# --- one thing under two names --------------------------------------------------------------


def test_the_connections_own_project_may_be_named_too(cloud: requests_mock.Mocker) -> None:
    rule = {
        "id": "r",
        "security_group_id": "g",
        "direction": "ingress",
        "ethertype": "IPv4",
        "protocol": "tcp",
        "description": OURS.format("web"),
    }
    rule |= {"port_range_min": 22, "port_range_max": 22, "remote_ip_prefix": None, "remote_group_id": None}
    group = {"id": "g", "name": "web", "description": "", "stateful": True, "security_group_rules": [rule]}
    cloud.get(f"{NEUTRON}/security-groups", json={"security_groups": [group | {"project_id": ADMIN_PROJECT}]})
    rules = (SecurityGroupRule(protocol="tcp", ports="22"),)
    declared: Sequence[Resource] = (SecurityGroup(name="web"), SecurityGroupRules(name="web", rules=rules))
    assert left(*declared, Network(name="net", project="lab")) == {}
    assert left(Network(name="net", project="lab"), Network(name="other")) == {"security_group_rules/web": True}


def test_a_role_is_known_by_what_it_is_not_by_what_it_is_called(cloud: requests_mock.Mocker) -> None:
    user = {"id": "u1", "name": "ops", "description": OURS.format("ops"), "enabled": True, "domain": DOMAIN}
    role = {"role": {"id": "r1", "name": "member"}, "user": user, "scope": {"project": {"id": ADMIN_PROJECT}}}
    cloud.get(f"{IDENTITY}/users", json={"users": [user]})  # Keystone on MySQL compares names without case
    cloud.get(f"{IDENTITY}/roles", json={"roles": [role["role"]]})
    cloud.get(f"{IDENTITY}/role_assignments", json={"role_assignments": [role]})
    ops = User(name="Ops")
    assert left(LAB, ops, RoleAssignment(role="member", user="Ops", project="lab")) == {}
    assert left(LAB, ops, RoleAssignment(role="member", user="Ops"), Network(name="net", project="lab")) == {}
    name = "role_assignment/user:ops@project:lab/member"
    assert left(LAB, ops) == {name: False}, "somebody may have given it by hand"
    tags = ["openstack-prep:lab", LAB_NAMED, OwnershipTag("lab").record("role", "u1", ADMIN_PROJECT, "r1", False)]
    cloud.get(f"{IDENTITY}/projects?name=lab", json={"projects": [project(ADMIN_PROJECT, "lab", *tags)]})
    assert left(LAB, ops) == {name: True}


# --- two specs of one name ------------------------------------------------------------------


def flavor(home: str) -> dict[str, Any]:
    text = OwnershipTag("lab", home=home).describe("small")
    return {"id": "f1", "name": "small", "ram": 512, "vcpus": 1, "disk": 0, "description": text}


@pytest.mark.parametrize(
    ("home", "expected"),
    [
        (ADMIN_PROJECT, {"flavor/small": True}),
        ("", {"flavor/small": False}),
        ("gone", {"flavor/small": False}),
        ("of-another", {}),
    ],
)
def test_a_flavor_is_the_specs_by_its_home_project(
    cloud: requests_mock.Mocker, home: str, expected: dict[str, bool]
) -> None:
    cloud.get("http://nova/v2.1/flavors/detail", json={"flavors": [flavor(home)]})
    cloud.get(f"{IDENTITY}/projects/gone", **failure(404))
    cloud.get(f"{IDENTITY}/projects/of-another", json={"project": project("of-another", "their")})
    assert left(LAB) == expected


@pytest.mark.parametrize("project_of_spec", [LAB, None])
@pytest.mark.parametrize(("home", "ours"), [(ADMIN_PROJECT, True), ("", True), ("gone", True), ("of-another", False)])
def test_a_declared_flavor_of_another_specs_home_is_not_managed(
    cloud: requests_mock.Mocker, home: str, ours: bool, project_of_spec: Project | None
) -> None:
    cloud.get("http://nova/v2.1/flavors/detail", json={"flavors": [flavor(home)]})
    cloud.get(f"{IDENTITY}/projects/gone", **failure(404))
    cloud.get(f"{IDENTITY}/projects/of-another", json={"project": project("of-another", "their")})
    run = CloudRun(Cloud(connection()), OwnershipTag("lab"), homes=[project_of_spec])
    (found,) = observation.observe(run, [Flavor(name="small")]).values()
    assert (found.ours, found.managed_by) == (ours, "" if ours else "lab of project their")


@pytest.mark.parametrize(("home", "ours"), [(ADMIN_PROJECT, True), ("", True), ("gone", True), ("of-another", False)])
def test_files_of_another_specs_home_are_not_managed(
    cloud: requests_mock.Mocker, tmp_path: Path, home: str, ours: bool
) -> None:
    cloud.get(f"{IDENTITY}/projects/gone", **failure(404))
    cloud.get(f"{IDENTITY}/projects/of-another", json={"project": project("of-another", "their")})
    hosts, run = tmp_path / "hosts", CloudRun(Cloud(connection()), OwnershipTag("lab"), homes=[LAB])
    hosts.write_text(f"# {OwnershipTag('lab', home=home).describe('exposed_cluster/okd')}\n192.0.2.1 a\n")
    files = ExposedCluster(name="okd", directory=str(tmp_path)).files(run)
    assert files.of_others(["hosts"]) == ([] if ours else [hosts])
    files.remove()
    assert hosts.exists() is not ours


def test_a_flavor_is_not_managed_by_way_of_a_project_that_another_spec_manages(cloud: requests_mock.Mocker) -> None:
    theirs = project("p3", "side", "openstack-prep:lab~of-another", "openstack-prep:lab")
    cloud.get(f"{IDENTITY}/projects?name=side", json={"projects": [theirs]})
    cloud.get(f"{IDENTITY}/projects/of-another", json={"project": project("of-another", "their")})
    cloud.get("http://nova/v2.1/flavors/detail", json={"flavors": [flavor("of-another")]})
    run = CloudRun(Cloud(connection()), OwnershipTag("lab"), homes=[LAB, Project(name="side")])
    (found,) = observation.observe(run, [Flavor(name="small")]).values()
    assert not found.ours


def test_an_undeclared_project_is_the_specs_when_it_names_the_home_project(cloud: requests_mock.Mocker) -> None:
    tag = "openstack-prep:lab"
    named = OwnershipTag("lab").name_tag("project", "default", "second")
    second, other = project("p2", "second", f"{tag}~{ADMIN_PROJECT}", tag, named), project("p3", "other", tag)
    tagged = [project(ADMIN_PROJECT, "lab", tag, LAB_NAMED), second, other]
    cloud.get(f"{IDENTITY}/projects?tags=openstack-prep%3Alab", json={"projects": tagged})
    cloud.get(f"{IDENTITY}/projects?name=second", json={"projects": [second]})
    network = {"id": "n", "name": "net", "description": OURS.format("net"), "project_id": "p2"}
    cloud.get(f"{NEUTRON}/networks?project_id=p2", json={"networks": [network]})
    assert left(LAB) == {"project/second": True, "project/other": False, "network/net": True}
    declared = Network(name="net", project="second")
    assert left(Project(name="second"), declared) == {"project/lab": True, "project/other": False}
    copy = project("p4", "copy", *second["tags"])
    early = project("p5", "early", *second["tags"][:2])
    cloud.get(f"{IDENTITY}/projects?tags=openstack-prep%3Alab", json={"projects": [*tagged, copy, early]})
    assert left(LAB, Project(name="second"), declared) == {"project/other": False, "project/early": False}


def test_a_project_that_is_only_named_may_be_the_home_of_a_namesake(cloud: requests_mock.Mocker) -> None:
    shared = project("p2", "shared", "openstack-prep:lab")
    cloud.get(f"{IDENTITY}/projects?name=shared", json={"projects": [shared]})
    network = {"id": "n", "name": "net", "description": OURS.format("net"), "project_id": "p2"}
    cloud.get(f"{NEUTRON}/networks?project_id=p2", json={"networks": [network]})
    cloud.get("http://nova/v2.1/flavors/detail", json={"flavors": [flavor("p2")]})
    cloud.get(f"{IDENTITY}/roles", json={"roles": [{"id": "r1", "name": "reader"}]})
    assert left(LAB, RoleAssignment(role="reader", user="ops", project="shared")) == {"network/net": False}


@pytest.fixture
def shared(cloud: requests_mock.Mocker) -> RoleAssignment:
    """A role in the home project of another spec named lab, whose network lies there."""
    cloud.get(f"{IDENTITY}/projects?name=shared", json={"projects": [project("p2", "shared", "openstack-prep:lab")]})
    cloud.get(f"{IDENTITY}/roles", json={"roles": [{"id": "r1", "name": "reader"}]})
    network = {"id": "n", "name": "net", "description": OURS.format("net"), "project_id": "p2"}
    cloud.get(f"{NEUTRON}/networks?project_id=p2", json={"networks": [network]})
    return RoleAssignment(role="reader", user="ops", project="shared")


def test_a_project_named_for_a_role_does_not_stand_in_for_an_absent_home_project(
    cloud: requests_mock.Mocker, shared: RoleAssignment
) -> None:
    cloud.get(f"{IDENTITY}/projects?name=lab", json={"projects": []})
    assert left(LAB, shared) == {"network/net": False}


def test_the_connections_project_is_the_home_project_before_one_named_for_a_role(
    cloud: requests_mock.Mocker, shared: RoleAssignment
) -> None:
    dropped = {"id": "m", "name": "dropped", "description": OURS.format("dropped"), "project_id": ADMIN_PROJECT}
    cloud.get(f"{NEUTRON}/networks?project_id={ADMIN_PROJECT}", json={"networks": [dropped]})
    assert left(Network(name="mine"), shared) == {"network/dropped": True, "network/net": False}
    assert left(shared) == {"network/net": False}
    assert scan.homes_of([shared]) == (None,)


def test_a_copy_of_a_description_manages_nothing(cloud: requests_mock.Mocker) -> None:
    """It names the resource that it was copied from: a group with its rules, a network."""
    rows = [{"id": name, "name": name, "description": OURS.format("net")} for name in ("net", "mine")]
    networks = [row | {"project_id": ADMIN_PROJECT, "subnets": []} for row in rows]
    cloud.get(f"{NEUTRON}/networks?project_id={ADMIN_PROJECT}", json={"networks": networks})
    rule = {"direction": "egress", "ethertype": "IPv4", "protocol": None, "description": OURS.format("web")}
    rule |= dict.fromkeys(("port_range_min", "port_range_max", "remote_ip_prefix", "remote_group_id"))
    groups = [
        {"id": name, "name": name, "description": OURS.format("web"), "stateful": True, "project_id": ADMIN_PROJECT}
        | {"security_group_rules": [rule | {"id": f"{name}-rule", "security_group_id": name}]}
        for name in ("web", "mine")
    ]
    cloud.get(f"{NEUTRON}/security-groups?project_id={ADMIN_PROJECT}", json={"security_groups": groups})
    assert left(LAB) == {"network/net": True, "security_group/web": True}


@pytest.mark.parametrize(("created", "deleted"), [("10:00:05", {"old", "new"}), ("12:00:00", set())])
def test_a_copy_of_another_time_is_not_pruned_and_keeps_its_original(
    cloud: requests_mock.Mocker, created: str, deleted: set[str]
) -> None:
    """Two runs create twins at once; a copy is younger, and alone it would be taken for the spec's."""
    row = {"name": "net", "description": OURS.format("net"), "project_id": ADMIN_PROJECT, "subnets": []}
    networks = [row | {"id": "new", "created_at": f"2026-01-01T{created}Z"}]
    networks += [row | {"id": "old", "created_at": "2026-01-01T10:00:00Z"}]
    cloud.get(f"{NEUTRON}/networks?project_id={ADMIN_PROJECT}", json={"networks": networks})
    for path in ("ports", "subnets", "rbac-policies"):
        cloud.get(f"{NEUTRON}/{path}", json={path.replace("-", "_"): []})
    gone = [cloud.delete(f"{NEUTRON}/networks/{each['id']}", status_code=204) for each in networks]
    assert bool(prune(LAB)) is not bool(deleted)
    assert {each["id"] for each, sent in zip(networks, gone, strict=True) if sent.called} == deleted


def test_a_flavor_is_managed_by_way_of_a_project_that_the_spec_works_in(
    cloud: requests_mock.Mocker, shared: RoleAssignment
) -> None:
    """Not by way of one that it names for a role: that may be the home project of a namesake, whose flavor it is."""
    cloud.get("http://nova/v2.1/flavors/detail", json={"flavors": [flavor("p2")]})
    cloud.get(f"{IDENTITY}/projects/p2", json={"project": project("p2", "shared")})
    small = Flavor(name="small")

    def is_ours(*resources: Resource) -> bool:
        run = CloudRun(Cloud(connection()), OwnershipTag("lab"), homes=scan.homes_of([LAB, small, *resources]))
        (found,) = observation.observe(run, [small]).values()
        return found.ours

    assert not is_ours(shared)
    assert is_ours(Network(name="net", project="shared"))


def test_an_entry_for_a_project_that_is_named_for_a_role_is_named(
    cloud: requests_mock.Mocker, shared: RoleAssignment, tmp_path: Path
) -> None:
    auth = {"auth_url": IDENTITY, "username": "ops", "project_name": "shared"}
    auth |= {"user_domain_name": "Default", "project_domain_name": "Default"}
    path = tmp_path / "clouds.yaml"
    path.write_text(yaml.safe_dump({"clouds": {"old": {"auth": auth, "openstack_prep": "[openstack-prep:lab/old]"}}}))
    entry = CloudsEntry(path=str(path), cloud="new", user="ops", project="lab", auth_url=IDENTITY)
    assert left(LAB, entry, shared)["clouds_entry/clouds.yaml#old"] is False


# --- kinds that a spec may drop altogether --------------------------------------------------


def port(**fields: Any) -> dict[str, Any]:
    known = {"id": "p1", "name": "web", "project_id": ADMIN_PROJECT, "network_id": "n1", "device_id": "", "tags": []}
    known |= {"mac_address": "fa:16:3e:00:00:01", "device_owner": "", "description": "", "security_groups": []}
    known |= {"fixed_ips": [{"subnet_id": "s1", "ip_address": "10.0.0.9"}], "allowed_address_pairs": []}
    return known | {"port_security_enabled": True, "revision_number": 1} | fields


@pytest.fixture
def net(cloud: requests_mock.Mocker) -> Network:
    """A network of the spec, on which ports may be."""
    raw = {"id": "n1", "name": "net", "description": OURS.format("net"), "project_id": ADMIN_PROJECT, "subnets": ["s1"]}
    subnet = {"id": "s1", "name": "sub", "network_id": "n1", "cidr": "10.0.0.0/24", "gateway_ip": None}
    subnet |= {
        "ipv6_address_mode": None,
        "description": "",
        "project_id": ADMIN_PROJECT,
        "ip_version": 4,
        "enable_dhcp": True,
        "allocation_pools": [],
        "host_routes": [],
    }
    cloud.get(f"{NEUTRON}/extensions", json={"extensions": []})
    cloud.get(f"{NEUTRON}/networks", json={"networks": [raw]})
    cloud.get(f"{NEUTRON}/subnets", json={"subnets": [subnet | {"dns_nameservers": []}]})
    return Network(name="net", project="lab")


def test_a_pool_is_known_by_its_ports(cloud: requests_mock.Mocker, net: Network) -> None:
    kept = [
        port(id=f"k{last}", device_owner="openstack-prep:reserved", description="[openstack-prep:lab/lb]")
        for last in "12"
    ]
    for last, each in enumerate(kept, 1):
        each["fixed_ips"] = [{"subnet_id": "s1", "ip_address": f"10.0.0.{last}"}]
        each["name"] = f"lb-10.0.0.{last}"
    theirs = port(id="o", device_owner="openstack-prep:reserved", description="[openstack-prep:other/lb]")
    cloud.get(f"{NEUTRON}/ports", json={"ports": [*kept, theirs]})
    deleted = [cloud.delete(f"{NEUTRON}/ports/{each['id']}", status_code=204) for each in kept]
    assert left(LAB, net) == {"address_pool/lb": True}
    pool = AddressPool(name="lb", subnet="sub", addresses=("10.0.0.1-10.0.0.2",), project="lab")
    assert left(LAB, net, pool) == {}
    assert left(LAB, net, replace(pool, project=None)) == {}
    assert prune(LAB, net) == []
    assert all(each.called_once for each in deleted)


def test_pairs_are_known_by_the_tags_of_their_ports(cloud: requests_mock.Mocker, net: Network) -> None:
    pairs = [{"ip_address": address, "mac_address": "fa:16:3e:00:00:01"} for address in ("10.0.0.5", "10.0.0.6")]
    raw = port(tags=["openstack-prep:lab~10.0.0.5"], allowed_address_pairs=pairs)
    cloud.get(f"{NEUTRON}/ports", json={"ports": [raw]})
    changed = cloud.put(f"{NEUTRON}/ports/p1", json={"port": raw | {"allowed_address_pairs": pairs[1:]}})
    cloud.get(f"{NEUTRON}/ports/p1", json={"port": raw | {"allowed_address_pairs": pairs[1:]}})
    untagged = cloud.delete(re.compile(f"^{NEUTRON}/ports/p1/tags/.*10.0.0.5$"), status_code=204)
    assert left(LAB, net) == {"address_pairs/web p1": True}
    assert left(LAB, net, AddressPairs(name="vip", ports=("web",), addresses=("10.0.0.5",), project="lab")) == {}
    assert prune(LAB, net) == []
    assert changed.last_request.json()["port"]["allowed_address_pairs"] == pairs[1:]
    assert untagged.called_once


def test_a_floating_ip_with_an_edited_description_is_known_by_its_tag(cloud: requests_mock.Mocker) -> None:
    raw = {"id": "f1", "floating_ip_address": "192.0.2.9", "port_id": None, "revision_number": 1}
    raw |= {"description": "edited", "floating_network_id": "x", "project_id": ADMIN_PROJECT}
    foreign = raw | {"id": "f2", "floating_ip_address": "192.0.2.10", "tags": ["openstack-prep:other~api"]}
    raw |= {"tags": ["openstack-prep:lab~a%2Fb"]}
    cloud.get(f"{NEUTRON}/floatingips", json={"floatingips": [raw, foreign]})
    cloud.get(f"{NEUTRON}/networks", json={"networks": [{"id": "x", "name": "external"}]})
    assert left(LAB) == {"floating_ip/a/b": True}
    assert left(LAB, FloatingIP(name="a/b", external_network="external", project="lab")) == {}


@pytest.mark.parametrize("name", ["", "web"])
def test_pruning_pairs_goes_on_after_a_passing_fault(cloud: requests_mock.Mocker, net: Network, name: str) -> None:
    pairs = [{"ip_address": "10.0.0.5", "mac_address": "fa:16:3e:00:00:01"}]
    tags = ["openstack-prep:lab~10.0.0.5"]
    ports = {each: port(id=each, name=name, tags=tags, allowed_address_pairs=pairs) for each in ("p1", "p2")}
    cloud.get(f"{NEUTRON}/ports", json={"ports": list(ports.values())})
    busy = {"status_code": 409, "json": {}}
    for each, raw in ports.items():
        without = {"port": raw | {"allowed_address_pairs": []}}
        cloud.get(f"{NEUTRON}/ports/{each}", json=without)
        cloud.put(f"{NEUTRON}/ports/{each}", [busy, {"json": without}])
    untagged = cloud.delete(re.compile(f"^{NEUTRON}/ports/p[12]/tags/"), status_code=204)
    assert prune(LAB, net) == []
    assert sorted(each.path.split("/")[3] for each in untagged.request_history) == ["p1", "p2"]


def test_an_attachment_is_known_by_its_note(cloud: requests_mock.Mocker) -> None:
    raw = {"id": "f1", "floating_ip_address": "192.0.2.9", "port_id": "p1", "revision_number": 1, "tags": []}
    raw |= {"description": "[openstack-prep:lab~attached/web]", "floating_network_id": "x", "project_id": ADMIN_PROJECT}
    cloud.get(f"{NEUTRON}/floatingips", json={"floatingips": [raw]})
    cloud.get(f"{NEUTRON}/ports", json={"ports": [port()]})
    assert left(LAB) == {"floating_ip_attachment/web": True}
    assert left(LAB, FloatingIPAttachment(port="web", address="192.0.2.9", project="lab")) == {}


def exposed_port() -> dict[str, Any]:
    """Return a port that reserves an address, which an exposure has claimed."""
    at = [{"subnet_id": "s1", "ip_address": "10.0.0.5"}]
    text = f"exposure shop {OURS.format('lb')}"
    return port(name="lb-10.0.0.5", description=text, device_owner=OWNER, fixed_ips=at)


@pytest.mark.parametrize("left_too", [True, False], ids=["the floating IP goes too", "the floating IP stays"])
def test_an_exposure_goes_with_its_pool_and_its_attachment(
    cloud: requests_mock.Mocker, net: Network, *, left_too: bool
) -> None:
    """The floating IP is detached before the claim is released, and the claim before its port is deleted."""
    ip = {"id": "f1", "floating_ip_address": "192.0.2.9", "port_id": "p1", "revision_number": 1, "tags": []}
    ip |= {"description": OURS.format("web"), "floating_network_id": "x", "project_id": ADMIN_PROJECT}
    ports = [exposed_port()]
    done: list[str] = []

    def change_ip(request: Any, _: Any) -> dict[str, Any]:
        done.append(f"floating IP on port {request.json()['floatingip']['port_id']}")
        ip.update(request.json()["floatingip"])
        return {"floatingip": ip}

    def change_port(request: Any, _: Any) -> dict[str, Any]:
        done.append("claim released")
        ports[0].update(request.json()["port"])
        return {"port": ports[0]}

    def delete_port(*_: Any) -> None:
        done.append("port deleted")
        ports.clear()

    cloud.get(f"{NEUTRON}/floatingips", json={"floatingips": [ip]})
    cloud.get(f"{NEUTRON}/ports", json={"ports": ports})
    cloud.get(f"{NEUTRON}/floatingips/f1", json={"floatingip": ip})
    cloud.put(f"{NEUTRON}/floatingips/f1", json=change_ip)
    cloud.put(f"{NEUTRON}/ports/p1", json=change_port)
    cloud.delete(f"{NEUTRON}/ports/p1", json=delete_port, status_code=204)
    deleted = cloud.delete(f"{NEUTRON}/floatingips/f1", status_code=204)
    floating = FloatingIP(name="web", external_network="x", address="192.0.2.9", project="lab")
    assert prune(LAB, net, *(() if left_too else (floating,))) == []
    assert done == ["floating IP on port None", "claim released", "port deleted"]
    assert deleted.called == left_too


def test_a_floating_ip_that_no_exposure_has_attached_keeps_its_pool(cloud: requests_mock.Mocker, net: Network) -> None:
    ip = {"id": "f1", "floating_ip_address": "192.0.2.9", "port_id": "p1", "revision_number": 1, "tags": []}
    ip |= {"description": "", "floating_network_id": "x", "project_id": ADMIN_PROJECT}
    cloud.get(f"{NEUTRON}/floatingips", json={"floatingips": [ip]})
    cloud.get(f"{NEUTRON}/ports", json={"ports": [exposed_port()]})
    (refused,) = prune(LAB, net)
    assert "192.0.2.9" in refused


def test_an_application_credential_is_known_by_its_description(cloud: requests_mock.Mocker, tmp_path: Path) -> None:
    raw = {"id": "c1", "name": "ci", "description": "[openstack-prep:lab/ci]", "project_id": ADMIN_PROJECT}
    raw |= {"user_id": "admin-user", "roles": [], "expires_at": None, "unrestricted": False}
    second, foreign = raw | {"id": "c2", "name": "ci-new"}, raw | {"id": "c3", "name": "mine", "description": None}
    path = f"{IDENTITY}/users/admin-user/application_credentials"
    cloud.get(path, json={"application_credentials": [raw, second, foreign, raw | {"id": "c4", "project_id": "p9"}]})
    cloud.get(f"{IDENTITY}/role_inferences", json={"role_inferences": []})
    deleted = [cloud.delete(f"{path}/{each}", status_code=204) for each in ("c1", "c2")]
    assert left(LAB) == {"application_credential/ci": True}
    kept = str(tmp_path / "clouds.yaml")
    assert left(LAB, ApplicationCredential(name="ci", cloud="lab", clouds_yaml=kept)) == {}
    assert prune(LAB) == []
    assert all(each.called_once for each in deleted)


def test_pruning_a_credential_goes_on_after_a_passing_fault(cloud: requests_mock.Mocker) -> None:
    raw = {"id": "c1", "name": "ci", "description": "[openstack-prep:lab/ci]", "project_id": ADMIN_PROJECT}
    raw |= {"user_id": "admin-user", "roles": [], "expires_at": None, "unrestricted": False}
    path = f"{IDENTITY}/users/admin-user/application_credentials"
    cloud.get(path, json={"application_credentials": [raw, raw | {"id": "c2", "description": None, "name": "mine"}]})
    busy = {"status_code": 409, "json": {"error": {"message": "busy", "code": 409}}}
    deleted = cloud.delete(f"{path}/c1", [busy, {"status_code": 204}])
    assert prune(LAB) == []
    assert deleted.call_count == 2


def test_the_credential_in_use_is_not_pruned(cloud: requests_mock.Mocker, wording: Wording) -> None:
    login = token()
    login["token"]["application_credential"] = {"id": "c1", "name": "ci", "restricted": True}
    cloud.post(f"{IDENTITY}/auth/tokens", json=login, headers={"X-Subject-Token": "4f2a9c"}, status_code=201)
    raw = {"id": "c1", "name": "ci", "description": "[openstack-prep:lab/ci]", "project_id": ADMIN_PROJECT}
    raw |= {"user_id": "admin-user", "roles": [], "expires_at": None, "unrestricted": False}
    listed = {"application_credentials": [raw]}
    cloud.get(f"{IDENTITY}/users/admin-user/application_credentials", json=listed)
    (refusal,) = prune(LAB)
    wording(refusal)


def test_an_entry_is_known_by_its_owner_and_project(cloud: requests_mock.Mocker, tmp_path: Path) -> None:
    path = tmp_path / "clouds.yaml"

    def entry(owner: str, project: str, name: str = "old") -> dict[str, Any]:
        auth = {"auth_url": IDENTITY, "username": "ops", "password": "x", "project_name": project}
        domains = {"project_domain_name": "Default", "user_domain_name": "Default"}
        return {"openstack_prep": f"[openstack-prep:{owner}/{name}]", "auth": auth | domains}

    others = {"other": entry("other", "lab", "other"), "namesake": entry("lab", "their", "namesake")}
    copies = {"copy": entry("lab", "lab"), "early": {**entry("lab", "lab"), "openstack_prep": "lab"}}
    entries = {"old": entry("lab", "lab"), **others, **copies}
    path.write_text(yaml.safe_dump({"clouds": {"ci": entry("lab", "lab", "ci"), **entries}}))
    kept = CloudsEntry(path=str(path), cloud="ci", user="ops", project="lab", auth_url=IDENTITY)
    assert left(LAB, kept) == {"clouds_entry/clouds.yaml#old": True}
    assert prune(LAB, kept) == []
    assert set(yaml.safe_load(path.read_text())["clouds"]) == {"ci", *others, *copies}


def test_ids_are_those_of_all_resources_of_a_kind_and_of_their_twins() -> None:
    small, large = Flavor(name="small", vcpus=1, ram=512), Flavor(name="large", vcpus=2, ram=1024)
    ids = scan.ids_of([(small, Observed(id="f1", twins=(Observed(id="f3"),))), (large, Observed(id="f2"))])
    assert ids == {"flavor": {"f1", "f2", "f3"}}
    assert [scan.is_new(small, Observed(id=each), ids) for each in ("f1", "f2", "f3", "f4")] == [*[False] * 3, True]
    assert scan.is_new(Network(name="net"), Observed(id="f1"), ids)


# --- a service that fails -------------------------------------------------------------------

NETWORK = {"id": "n1", "name": "net", "description": OURS.format("net"), "subnets": [], "project_id": ADMIN_PROJECT}
WHOLE = Spec("lab", (Network(name="net"),), complete=True)


@pytest.fixture
def heat_fails(cloud: requests_mock.Mocker) -> requests_mock.Mocker:
    cloud.get(f"{NEUTRON}/networks", json={"networks": [NETWORK]})
    cloud.get(re.compile("^http://heat/v1/admin-project/stacks"), **failure(501, "no database"))
    return cloud


def test_a_plan_goes_on_without_a_service_that_the_spec_does_not_need(
    heat_fails: requests_mock.Mocker, wording: Wording
) -> None:
    for prune in (False, True):
        plan = api.plan(Cloud(connection()), WHOLE, prune=prune)
        assert not plan.pending
        assert not plan.refusals
        (warning,) = plan.warnings
        wording(warning)
        assert "no database" in warning


def test_a_destroy_that_might_leave_something_deletes_nothing(heat_fails: requests_mock.Mocker) -> None:
    deleted = heat_fails.delete(f"{NEUTRON}/networks/n1", status_code=204)
    plan = api.plan_destroy(Cloud(connection()), WHOLE)
    ((loss,),) = [step.deletion_losses for step in plan if step.deletion_losses]
    assert loss.address == "unread/stack"
    assert "no database" in loss.detail
    with pytest.raises(PlanRefused, match="--allow-loss unread/stack"):
        api.destroy(Cloud(connection()), plan)
    assert not api.plan_destroy(Cloud(connection()), WHOLE, allow_loss=["unread/stack"]).refusals
    assert not deleted.called
    heat_fails.get(re.compile("^http://heat/v1/admin-project/stacks"), json={"stacks": []})
    api.destroy(Cloud(connection()), WHOLE).raise_for_failures()
    assert deleted.called


def test_a_destroy_shows_each_kind_that_was_not_looked_for(heat_fails: requests_mock.Mocker) -> None:
    """Flavors among what is declared, and stacks among what no longer is."""
    heat_fails.get("http://nova/v2.1/flavors/detail", **failure(501))
    flavor = Flavor(name="small", vcpus=1, ram=512)
    plan = api.plan_destroy(Cloud(connection()), replace(WHOLE, resources=(*WHOLE.resources, flavor)))
    losses = {loss.address for step in plan for loss in step.deletion_losses}
    assert losses == {"unread/flavor", "unread/stack"}


def test_a_project_is_not_pruned_while_something_in_it_was_not_looked_for(heat_fails: requests_mock.Mocker) -> None:
    named = OwnershipTag("lab").name_tag("project", "default", "second")
    tags = [f"openstack-prep:lab~{ADMIN_PROJECT}", "openstack-prep:lab", named]
    second = {"projects": [project("p2", "second", *tags)]}
    heat_fails.get(f"{IDENTITY}/projects?tags=openstack-prep%3Alab", json=second)
    heat_fails.get(f"{IDENTITY}/projects?name=second", json=second)
    heat_fails.get(f"{NEUTRON}/networks?project_id=p2", json={"networks": []})
    heat_fails.get("http://swift/v1/AUTH_p2/", status_code=403)
    plan = api.plan(Cloud(connection()), WHOLE)
    assert [str(step) for step in plan.undeclared] == ["project/second"]
    heat_fails.get("http://nova/v2.1/flavors/detail", **failure(501))
    pruned = api.plan(Cloud(connection()), WHOLE, prune=True)
    assert {"unread/flavor", "unread/stack"} <= {loss.address for step in pruned for loss in step.deletion_losses}
    assert any("--allow-loss unread/stack" in refusal.fix for refusal in pruned.refusals)


def test_a_service_that_the_spec_needs_ends_the_plan(heat_fails: requests_mock.Mocker, tmp_path: Path) -> None:
    (tmp_path / "template.yaml").write_text("heat_template_version: 2021-04-16")
    stack = Stack(name="nodes", template=str(tmp_path / "template.yaml"))
    with pytest.raises(CloudError, match="no database"):
        api.plan(Cloud(connection()), Spec("lab", (*WHOLE.resources, stack), complete=True))
