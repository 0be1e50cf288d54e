"""Plans of many specs that share what they read: the same as single plans, in few requests."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.base.errors import PrepError
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.shared_cloud import SharedCloud
from openstack_prep.core.model import Action
from openstack_prep.core.plan import Plan
from openstack_prep.spec import Spec
from openstack_prep.spec.spec import load_spec
from openstack_prep.verbs import api
from openstack_prep.verbs.opening import LivePlan
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.tenant import Tenant
from tests.faults import shipped

SPEC = """
name: ${name}
variables:
  name: {description: of spec and project}
  domain: {default: Default}
  cores: {default: 20}
project: {name: "${name}", domain: "${domain}", description: of the fleet}
users:
  - {name: "${name}-user", domain: "${domain}", password: {generate: "${domain}-${name}.password"}}
role_assignments:
  - {user: "${name}-user", user_domain: "${domain}", role: member}
  - {user: admin, role: admin}
quota: {cores: "${cores}", networks: 7, security_group_rules: 300, volumes: 12}
flavors:
  - {name: "${name}-${domain}", ram: 512, vcpus: 1, is_public: false, access: ["${name}"], access_domain: "${domain}"}
networks:
  - {name: nodes}
subnets:
  - {name: nodes, network: nodes, cidr: 10.0.0.0/24}
routers:
  - {name: out, external_network: external, interfaces: [nodes]}
security_groups:
  - {name: ssh, rules: [{protocol: tcp, ports: 22}, {remote_group: self}]}
floating_ips:
  - {name: any, external_network: external}
keypairs:
  - {name: me, public_key: KEY}
server_groups:
  - {name: masters, policy: anti-affinity}
application_credentials:
  - {name: app, clouds_yaml: entries.yaml, cloud: "${domain}-${name}-app"}
clouds_yaml:
  - {path: entries.yaml, cloud: "${domain}-${name}", user: "${name}-user", user_domain: "${domain}"}
""".replace("KEY", shipped.KEY)

WHOLE = Counter(
    {
        "keystone /v3/projects": 1,
        "keystone /v3/users": 2,  # one per domain
        "keystone /v3/role_assignments": 1,
        "keystone /v3/roles": 1,
        "keystone /v3/domains": 1,
        "keystone /v3/domains/ID": 1,  # of the project of the same name in the other domain
        "nova /v2.1/flavors/detail": 1,
        "nova /v2.1/os-server-groups": 2,  # the second page is empty
        "neutron /v2.0/networks": 2,  # all, and the external ones
        "neutron /v2.0/subnets": 1,
        "neutron /v2.0/ports": 1,
        "neutron /v2.0/routers": 1,
        "neutron /v2.0/security-groups": 1,
        "neutron /v2.0/floatingips": 1,
        "neutron /v2.0/quotas": 1,
        "glance /v2/images": 1,
        "heat /v1/ID/stacks": 2,  # the first list is empty, the second one has the deleted stack
    }
)
"""What all targets together ask, however many they are."""
EACH = (
    "keystone /v3/auth/tokens",
    "keystone /v3/users/ID/application_credentials",
    "nova /v2.1/flavors/ID/os-flavor-access",
    "nova /v2.1/os-keypairs",
    "nova /v2.1/os-quota-sets/ID/detail",
    "cinder /v3/os-quota-sets/ID",
)
"""What each target asks for itself."""


@dataclass
class Fleet:
    """Specs with the same names, half of them in projects of the same names in another domain."""

    devcloud: Devcloud
    folder: Path
    names: list[tuple[str, str]]

    def spec(self, number: int, **variables: object) -> Spec:
        name, domain = self.names[number]
        return load_spec(self.folder / "spec.yaml", variables={"name": name, "domain": domain, **variables})

    @property
    def cloud(self) -> Cloud:
        return Cloud(self.devcloud.admin)

    def plans(self, cloud: Cloud, *, at_once: int = 8, jobs: int = 1, **variables: object) -> list[LivePlan]:
        def plan(number: int) -> LivePlan:
            return api.plan(cloud, self.spec(number, **variables), jobs=jobs)

        with ThreadPoolExecutor(at_once) as pool:
            return list(pool.map(plan, range(len(self.names))))

    def project_id(self, number: int) -> str:
        name, domain = self.names[number]
        domain_id = self.devcloud.admin.identity.find_domain(domain, ignore_missing=False).id
        return str(self.devcloud.admin.identity.find_project(name, domain_id=domain_id, ignore_missing=False).id)


def said(plan: Plan) -> tuple[Any, ...]:
    """Return all that a plan says."""
    return (str(plan), plan.data(), plan.undeclared_data(), plan.refusals_data(), plan.warnings)


def asked(devcloud: Devcloud, mark: Any) -> Counter[str]:
    """Return how often which service was asked for which path, without documents of versions."""
    paths = (f"{each.service} {re.sub('[0-9a-f-]{32,36}', 'ID', each.path)}" for each in devcloud.requests_since(mark))
    return Counter(path.rstrip("/") for path in paths if path.count("/") > 1)


@pytest.fixture(scope="module")
def fleet(devcloud: Devcloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder, prefix = tmp_path_factory.mktemp("fleet"), secrets.token_hex(3)
    (folder / "spec.yaml").write_text(SPEC)
    identity = devcloud.admin.identity
    domain = identity.create_domain(name=f"corp-{prefix}")
    names = [(f"{prefix}-{number}", each) for number in range(4) for each in ("Default", str(domain.name))]
    made = Fleet(devcloud, folder, names)
    cloud = Cloud(devcloud.admin)
    orchestration: Any = devcloud.admin.orchestration
    stack = orchestration.create_stack(name=f"gone-{prefix}", template={"heat_template_version": "2021-04-16"})
    orchestration.wait_for_status(orchestration.get_stack(stack.id), "CREATE_COMPLETE", wait=60)
    orchestration.delete_stack(stack)
    orchestration.wait_for_delete(stack, wait=60)
    with ThreadPoolExecutor(4) as pool:
        for report in pool.map(lambda number: api.apply(cloud, made.spec(number)), range(len(names))):
            report.raise_for_failures()
        yield made
        for report in pool.map(lambda number: api.destroy(cloud, made.spec(number)), range(len(names))):
            report.raise_for_failures()
    identity.update_domain(domain, enabled=False)
    identity.delete_domain(domain)


@pytest.fixture(scope="module")
def others(devcloud: Devcloud, fleet: Fleet) -> Iterator[str]:
    """Somebody else's project with things of the same names, some of which all projects see."""
    admin: Any = devcloud.admin
    project = admin.identity.create_project(name=f"{fleet.names[0][0]}-other", domain_id="default")
    mine = {"project_id": project.id}
    network = admin.network.create_network(name="nodes", shared=True, **mine)
    subnet = admin.network.create_subnet(name="nodes", network_id=network.id, cidr="10.9.0.0/24", ip_version=4, **mine)
    group = admin.network.create_security_group(name="ssh", **mine)
    router = admin.network.create_router(name="out", **mine)
    yield str(project.id)
    for each in (router, group, subnet, network):
        getattr(admin.network, f"delete_{type(each).__name__.lower().replace('securityg', 'security_g')}")(each)
    admin.identity.delete_project(project)


def test_shared_plans_say_what_single_plans_say(fleet: Fleet, others: str) -> None:
    single = fleet.plans(fleet.cloud, at_once=1, jobs=8)
    assert {step.action for plan in single for step in plan} == {Action.KEEP}
    assert list(map(said, fleet.plans(SharedCloud(fleet.cloud, 8)))) == list(map(said, single))


def test_the_requests_are_those_of_the_kinds_and_few_of_each_target(fleet: Fleet, devcloud: Devcloud) -> None:
    shared = SharedCloud(fleet.cloud.authenticate(), 8)
    mark = devcloud.mark()
    assert not any(fleet.plans(shared))
    number = len(fleet.names)
    assert asked(devcloud, mark) == WHOLE + Counter(dict.fromkeys(EACH, number))
    mark = devcloud.mark()
    fleet.plans(shared)  # logins, and who may use a flavor, are known by now
    again = Counter(dict.fromkeys(EACH, number))
    del again["keystone /v3/auth/tokens"], again["nova /v2.1/flavors/ID/os-flavor-access"]
    assert asked(devcloud, mark) == again


def test_drift_and_new_targets_are_seen_as_by_single_plans(fleet: Fleet, devcloud: Devcloud, others: str) -> None:
    admin: Any = devcloud.admin
    ids = [fleet.project_id(number) for number in range(4)]
    admin.identity.update_project(ids[0], description="changed by hand")
    (network,) = admin.network.networks(project_id=ids[0])
    admin.network.put(f"/networks/{network.id}", json={"network": {"description": "without the ownership tag"}})
    (group,) = admin.network.security_groups(project_id=ids[1], name="ssh")
    admin.network.delete_security_group(group)
    admin.network.update_quota(ids[2], networks=9)
    left = admin.network.create_network(
        name="left", project_id=ids[2], description=f"[openstack-prep:{fleet.names[2][0]}/left]"
    )
    user = admin.identity.find_user(
        f"{fleet.names[3][0]}-user", domain_id=admin.identity.find_domain(fleet.names[3][1]).id
    )
    admin.identity.update_user(user, password="changed-by-hand")
    new = Fleet(devcloud, fleet.folder, [*fleet.names, (f"{fleet.names[0][0]}-new", "Default")])

    single = new.plans(new.cloud, at_once=1, jobs=8, cores=21)
    shared = SharedCloud(new.cloud, 8)
    plans = new.plans(shared, cores=21)
    assert list(map(said, plans)) == list(map(said, single))
    assert [len(plan.pending) for plan in plans] == [2, 3, 1, 2, 1, 1, 1, 1, 16]
    assert [str(step.resource.key) for step in plans[2].undeclared if step.action is Action.DELETE] == ["network/left"]

    admin.network.delete_network(left)
    admin.network.put(f"/networks/{network.id}", json={"network": {"description": network.description}})
    mended = new.plans(SharedCloud(new.cloud, 8))
    for number in range(4):  # a plan of answers for many is made again before anything is written
        api.apply(shared, mended[number]).raise_for_failures()
    mark = devcloud.mark()
    assert not any(new.plans(new.cloud)[:8])
    report = api.apply(SharedCloud(new.cloud, 8), fleet.spec(0))
    assert (report.changed, report.failed) == ((), ())
    assert not [each for each in devcloud.requests_since(mark) if each.method not in ("GET", "HEAD", "POST")]


def test_a_member_of_a_project_plans_the_same(tenant: Tenant, tmp_path: Path) -> None:
    """All lists of all projects are refused, or contain what the member sees."""
    (tmp_path / "spec.yaml").write_text(
        f"""
name: {tenant.name}
networks: [{{name: nodes}}]
subnets: [{{name: nodes, network: nodes, cidr: 10.0.0.0/24}}]
security_groups: [{{name: ssh, rules: [{{protocol: tcp, ports: 22}}]}}]
server_groups: [{{name: masters, policy: anti-affinity}}]
keypairs: [{{name: me, public_key: {shipped.KEY}}}]
"""
    )
    spec, cloud = load_spec(tmp_path / "spec.yaml"), Cloud(tenant.connect())
    for _ in range(2):
        single, shared = api.plan(cloud, spec), api.plan(SharedCloud(cloud, 8), spec, jobs=1)
        assert said(shared) == said(single)
        api.apply(cloud, spec).raise_for_failures()
    assert not shared


@pytest.mark.parametrize("name", shipped.SPECS)
def test_shipped_specs_are_planned_the_same(
    devcloud: Devcloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    made = shipped.make(tmp_path / name, name, {})
    monkeypatch.setenv("HOME", str(made.path))
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(devcloud.clouds_file))
    cloud = Cloud(devcloud.admin)

    def planned(cloud: Cloud, jobs: int) -> object:
        try:
            return said(api.plan(cloud, load_spec(made.path / "spec.yaml"), jobs=jobs))
        except PrepError as error:
            return type(error), str(error)

    assert planned(SharedCloud(cloud, 8), 1) == planned(cloud, 8)
