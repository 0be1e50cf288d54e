"""Rights that the default policies reserve for administrators: a plan names them before anything is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests_mock

import openstack_prep as prep
from openstack_prep.base.codes import Code
from openstack_prep.base.secret import Secret
from openstack_prep.cli.main import main
from openstack_prep.cloud.cloud_run import Actor, CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core import planner
from openstack_prep.core.model import Action, Change, Observed, OwnershipTag, Resource, Step
from openstack_prep.core.plan import Plan
from openstack_prep.resources.addresses.floating_ip import FloatingIP
from openstack_prep.resources.compute.flavor import Flavor
from openstack_prep.resources.compute.keypair import Keypair
from openstack_prep.resources.compute.quota import Quota
from openstack_prep.resources.compute.server_group import ServerGroup
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.identity.role_assignment import RoleAssignment
from openstack_prep.resources.identity.user import User
from openstack_prep.resources.image.image import Image
from openstack_prep.resources.network.declared_port import Port
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.port_addresses import PortPair
from openstack_prep.resources.network.router import Router
from openstack_prep.resources.orchestration.stack import Stack
from openstack_prep.resources.storage.object_store import ObjectStore
from openstack_prep.spec import Clouds, Spec
from openstack_prep.verbs import rights
from tests.unit.conftest import ADMIN_PROJECT, ENDPOINTS, IDENTITY, connection, token
from tests.unit.texts import contains

Login = Callable[..., Cloud]
FLAVOR = Flavor(name="master", vcpus=4, ram=16384, disk=25)


@pytest.fixture
def login(services: requests_mock.Mocker) -> Login:
    def with_roles(*roles: str) -> Cloud:
        body = token()
        body["token"]["roles"] = [{"id": each, "name": each} for each in roles]
        services.post(f"{IDENTITY}/auth/tokens", status_code=201, json=body, headers={"X-Subject-Token": "4f2a9c"})
        return Cloud(connection())

    return with_roles


def missing(cloud: Cloud, *resources: Resource[Any]) -> list[str]:
    """Return the rights that the creation of resources lacks: refusals, and in parentheses those of warnings."""
    plan = planner.plan_apply("lab", resources, {})
    found = list(rights.missing(cloud, plan, Clouds()))
    assert all(each.code == "access.missing-right" and "--os-cloud" in each.fix for each in found)
    warned = [
        each.partition(" needs the right ")[2].partition(",")[0] for each in rights.doubtful(cloud, plan, Clouds())
    ]
    return [each.what.split()[3].rstrip(",") for each in found] + [f"({each})" for each in warned]


NEEDED: list[tuple[Resource[Any], str]] = [
    (FLAVOR, "os_compute_api:os-flavor-manage"),
    (Project(name="p"), "identity:create_project"),
    (User(name="u"), "identity:create_user"),
    (RoleAssignment(role="member", user="u", project="p"), "identity:create_grant"),
    (Quota(cores=1), "os_compute_api:os-quota-sets:update"),
    (Network(name="n", shared=True), "(create_network:shared)"),
    (Network(name="n", external=True), "(create_network:router:external)"),
    (
        Network(name="n", provider_network_type="vlan", provider_physical_network="x"),
        "(create_network:provider:network_type)",
    ),
    (Router(name="r", external_network="x", enable_snat=False), "(create_router:external_gateway_info:enable_snat)"),
    (Router(name="r", ha=True), "(create_router:ha)"),
    (FloatingIP(name="f", external_network="x", address="192.0.2.1"), "(create_floatingip:floating_ip_address)"),
    (Image(name="i", source="/x", visibility="public"), "(publicize_image)"),
]


@pytest.mark.parametrize(("resource", "right"), NEEDED, ids=lambda each: getattr(each, "kind", each))
def test_a_member_lacks_the_right(login: Login, resource: Resource[Any], right: str) -> None:
    assert missing(login("member", "reader"), resource) == [right]
    assert missing(login("Member"), resource) == [right]
    assert missing(login("admin", "member"), resource) == []
    assert missing(login("member", "cloud_admin"), resource) == []  # a policy of the cloud may allow it
    of_manager = right.strip("()") in rights.OF_MANAGER
    assert missing(login("member", "manager"), resource) == ([] if of_manager else [right])


@pytest.mark.parametrize(
    "resource",
    [
        Network(name="n", shared=False, external=False, port_security_enabled=False),
        Router(name="r", external_network="x"),
        FloatingIP(name="f", external_network="x"),
        Image(name="i", source="/x", visibility="shared"),
    ],
    ids=lambda each: str(each.kind),
)
def test_a_member_may_do_the_rest(login: Login, resource: Resource[Any]) -> None:
    assert missing(login("member"), resource) == []


def test_only_what_changes_needs_a_right(login: Login) -> None:
    network = Network(name="n", shared=True, mtu=1400)
    plan = planner.plan_apply("lab", [network], {})
    seen = Observed(id="n1")

    def update(field: str) -> list[str]:
        step = Step(resource=network, action=Action.UPDATE, observed=seen, changes=(Change(field, None, 1),))
        return list(rights.doubtful(login("member"), replace(plan, steps=(step,)), Clouds()))

    assert update("mtu") == []
    assert len(update("shared")) == 1
    both = planner.plan_apply("lab", [replace(network, external=True), replace(network, name="m")], {})
    warned = list(rights.doubtful(login("member"), both, Clouds()))  # one for each network
    assert [each.partition(":")[0] for each in warned] == ["network/n", "network/m"]
    kept = Step(resource=FLAVOR, action=Action.KEEP, observed=seen)
    deleted = Step(resource=network, action=Action.DELETE, observed=seen)
    rest = replace(plan, steps=(kept, deleted))
    assert [*rights.missing(login("member"), rest, Clouds()), *rights.doubtful(login("member"), rest, Clouds())] == []


def test_the_plan_is_refused_and_names_who_can_help(
    services: requests_mock.Mocker, login: Login, flavors: list[dict[str, Any]]
) -> None:
    plan = prep.plan(login("member"), Spec("lab", (FLAVOR,)))
    (refusal,) = plan.refusals
    assert refusal.where == "flavor/master"
    assert "user admin-user" in refusal.what
    assert "member" in refusal.what
    assert "administrator" in refusal.fix
    assert prep.plan(login("admin"), Spec("lab", (FLAVOR,))).refusals == ()


@pytest.mark.usefixtures("clouds_yaml", "flavors")
def test_a_cloud_with_policies_of_its_own_decides_itself(
    services: requests_mock.Mocker, login: Login, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The refusal names the setting that turns it into a warning."""
    spec = tmp_path / "spec.yaml"
    flavor = "flavors: [{name: a, vcpus: 1, ram: 1, disk: 1}]\n"
    spec.write_text(f"name: lab\nclouds: {{admin: lab}}\n{flavor}")
    login("member")
    assert main(["apply", "--yes", str(spec)]) == 2
    assert "set clouds: custom_policies: true" in capsys.readouterr().err
    spec.write_text(f"name: lab\nclouds: {{admin: lab, custom_policies: true}}\n{flavor}")
    assert main(["apply", "--yes", str(spec)]) == 0
    said = capsys.readouterr().err
    assert contains(said, "flavor/a", "os_compute_api:os-flavor-manage")
    assert "custom_policies" not in said
    assert main(["destroy", "--yes", str(spec)]) == 0
    assert contains(capsys.readouterr().err, "flavor/a", "os_compute_api:os-flavor-manage")
    assert [each for each in services.request_history if each.method == "POST" and each.path.endswith("/flavors")]


@pytest.mark.usefixtures("clouds_yaml", "flavors")
def test_a_plan_is_saved_for_somebody_who_has_the_right(
    services: requests_mock.Mocker, login: Login, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One engineer plans, the pipeline applies (docs/team.md)."""
    spec, saved = tmp_path / "spec.yaml", tmp_path / "lab.plan"
    spec.write_text("name: lab\nclouds: {admin: lab}\nflavors: [{name: a, vcpus: 1, ram: 1, disk: 1}]\n")
    login("member")
    assert main(["apply", "--yes", str(spec)]) == 2
    capsys.readouterr()
    assert main(["plan", "-o", str(saved), "--detailed-exitcode", str(spec)]) == 2
    said = capsys.readouterr().err.splitlines()
    assert any("warning: " in line and "flavor/a: needs the right os_compute_api:" in line for line in said)
    assert main(["apply", "--plan", str(saved)]) == 2
    assert not [each for each in services.request_history if each.method == "POST" and each.path.endswith("/flavors")]
    login("admin")
    assert main(["apply", "--plan", str(saved)]) == 0


OF_A_TOKEN = [ServerGroup(name="g", project="p", policy="affinity"), ObjectStore(project="p", temp_url_key=Secret("k"))]


@pytest.mark.parametrize("kind", OF_A_TOKEN)
def test_a_login_that_nobody_has_is_foreseen(login: Login, services: requests_mock.Mocker, kind: Resource[Any]) -> None:
    services.get(f"{IDENTITY}/projects", json={"projects": []})
    cloud = login("admin")
    plan = planner.plan_apply("lab", [Project(name="p"), Network(name="n", project="p"), kind], {})
    run = CloudRun(cloud, OwnershipTag("lab"))
    assert [(each.keys, each.code, each.fix) for each in rights.missing_logins(run, plan)] == [
        ((kind.key,), "access.missing-login", rights.DECLARE_USER)
    ]
    actor = Actor(User(name="u"), Secret("w"), "Default", Project(name="p"))
    scoped = CloudRun(cloud, OwnershipTag("lab"), tenant=cloud)
    scoped.known[Project(name="p").key] = Observed(id=cloud.project_id)
    for able in (scoped, CloudRun(cloud, OwnershipTag("lab"), actors={Project(name="p").key: actor})):
        assert not [*rights.missing_logins(able, plan)]
    own = planner.plan_apply("lab", [replace(kind, project=None)], {})
    assert not [*rights.missing_logins(run, own)]


@pytest.mark.parametrize(
    ("credential", "custom", "refused"), [("c1", False, True), ("c1", True, False), (None, False, False)]
)
def test_a_new_stack_by_an_application_credential(
    run: CloudRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, credential: str | None, custom: bool, refused: bool
) -> None:
    """Keystone refuses the trust that Heat needs."""
    monkeypatch.setattr(type(run.admin), "application_credential_id", credential)
    stack = Stack(name="st", template=str(tmp_path / "t.yaml"))
    made = Plan(spec="s", purpose="apply", steps=(Step(resource=stack, action=Action.CREATE),))
    clouds = Clouds(custom_policies=custom)
    found = list(rights.missing_trusts(run, made, clouds))
    assert [each.code for each in found] == [Code.STACK_REFUSED] * refused
    warned = [each for each in rights.doubtful(run.admin, made, clouds, run) if "CVE-2026-43000" in each]
    assert len(warned) == (bool(credential) and custom)


# --- what no plan knows ------------------------------------------------------------------------

NEUTRON = ENDPOINTS["network"] + "/v2.0"
PAIRS = tuple(PortPair(address=f"10.0.0.{number}") for number in range(11))


@pytest.mark.parametrize(
    ("resource", "number"),
    [
        (Network(name="n", mtu=9000), 1),
        (Network(name="n", mtu=1400), 0),  # the project has one of 1450
        (Network(name="n", provider_network_type="flat", provider_physical_network="x"), 2),  # both
        (Port(name="p", network="n", allowed_address_pairs=PAIRS), 1),
        (Port(name="p", network="n", allowed_address_pairs=PAIRS[:10]), 0),
        (Image(name="i", tags=tuple(map(str, range(129)))), 1),
        (Image(name="i", tags=("a",)), 0),
        (FLAVOR, 0),
    ],
)
def test_what_only_a_service_judges(
    login: Login, services: requests_mock.Mocker, resource: Resource[Any], number: int
) -> None:
    services.get(f"{NEUTRON}/networks", json={"networks": [{"id": "1", "name": "other", "mtu": 1450}]})
    services.get(f"{NEUTRON}/ports", json={"ports": []})
    plan = planner.plan_apply("lab", [resource], {})
    for role, policies in (("admin", 0), ("member", 1)):
        cloud = login(role)
        found = list(rights.not_checked(cloud, plan, CloudRun(cloud, OwnershipTag("lab"))))
        assert (len(found), found.count(rights.POLICIES)) == (number + policies, policies)
        assert sum(str(resource.key) in each for each in found) == number


@pytest.mark.parametrize(("resource", "number"), [(Network(name="n"), 1), (Keypair(name="k", public_key="x"), 0)])
def test_a_reader_changes_nothing_in_a_project(login: Login, resource: Resource[Any], number: int) -> None:
    plan = planner.plan_apply("lab", [resource], {})
    for role, expected in (("reader", number), ("member", 0), ("admin", 0)):
        cloud = login(role)
        found = list(rights.doubtful(cloud, plan, Clouds(), CloudRun(cloud, OwnershipTag("lab"))))
        assert sum(str(resource.key) in each for each in found) == expected


@pytest.mark.parametrize(
    ("project_id", "region", "refused"),
    [("other", "one", ["clouds.tenant"]), (ADMIN_PROJECT, "two", ["clouds.tenant"]), (ADMIN_PROJECT, "one", [])],
)
def test_an_entry_that_leads_elsewhere_is_refused(
    login: Login, project_id: str, region: str, refused: list[str]
) -> None:
    """What takes its project from the token was created there, at each apply again."""
    cloud = login("admin")
    plan = planner.plan_apply("lab", [Network(name="n", project="p")], {})
    run = CloudRun(cloud, OwnershipTag("lab"), tenant=cloud.in_region(region))
    run.known[Project(name="p").key] = Observed(id=project_id)
    assert [each.where for each in rights.wrong_entry(run, plan, Clouds(tenant="t"))] == refused
