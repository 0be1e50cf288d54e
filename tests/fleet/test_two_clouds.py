"""Twenty tenants in two clouds: from nothing to nothing, with drift, and with a worker and a scheduler killed."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import yaml

from tests.devcloud import cloud, clouds_file, ports
from tests.devcloud.pytest_devcloud import Devcloud
from tests.faults.inventory import Cloud
from tests.fleet.test_workers import PLAIN, started
from tests.functional.conftest import Prep
from tests.functional.test_fleet import fleet_run, lines

FIRST_BASE = 22500
SITES = ("site-a", "site-b")
TENANTS = [f"{site[-1]}{number:02}" for number in range(10) for site in SITES]
SPEC = """\
name: ${name}-${tenant}
variables:
  name: {description: a name that nobody else has}
  tenant: {description: the tenant}
project: {name: "${name}-${tenant}"}
users: [{name: "${name}-${tenant}", password: {env: PREP_PASSWORD}}]
role_assignments: [{user: "${name}-${tenant}", role: member}]
quota: {cores: 12, networks: 3}
flavors: [{name: "${name}-${tenant}", ram: 512, vcpus: 1, disk: 1, is_public: false, access: ["${name}-${tenant}"]}]
networks: [{name: nodes}]
subnets: [{name: nodes, network: nodes, cidr: 10.0.0.0/24}]
security_groups: [{name: web, rules: [{protocol: tcp, ports: 443}]}]
server_groups: [{name: masters, policy: anti-affinity}]
application_credentials: [{name: deploy, clouds_yaml: "${tenant}.clouds.yaml", cloud: deploy, roles: [member]}]
"""


@pytest.fixture(scope="module")
def second(devcloud: Devcloud) -> Iterator[Devcloud]:
    """Another cloud, with a Keystone of its own."""
    given = os.environ.get("OPENSTACK_PREP_TEST_PORT_BASE")
    with ports.choose(int(given) + 2 * ports.STEP if given else None, FIRST_BASE, "a second cloud") as layout:
        cloud.reset(layout)
        yield Devcloud(layout)
        if os.environ.get("OPENSTACK_PREP_KEEP_DEVCLOUD") != "1":
            cloud.down(layout)


@dataclass(frozen=True)
class Sites:
    """Both clouds, and the name of the tenants in them."""

    clouds: tuple[Devcloud, Devcloud]
    name: str

    def project(self, tenant: str) -> tuple[Any, Any]:
        """Return the administrator of a tenant's cloud, and its project."""
        admin: Any = self.clouds["ab".index(tenant[0])].admin
        return admin, admin.identity.find_project(f"{self.name}-{tenant}", ignore_missing=False)

    def assert_no_twins(self) -> None:
        """Each tenant is in its own cloud alone, once, with one network."""
        for site, each in zip(SITES, self.clouds, strict=True):
            admin: Any = each.admin
            ours = {each.id: each.name for each in admin.identity.projects() if each.name.startswith(f"{self.name}-")}
            networks = Counter(each.project_id for each in admin.network.networks() if each.project_id in ours)
            assert sorted(ours.values()) == sorted(f"{self.name}-{each}" for each in TENANTS if each[0] == site[-1])
            assert networks == dict.fromkeys(ours, 1)


@pytest.fixture
def sites(prep: Prep, devcloud: Devcloud, second: Devcloud) -> Iterator[Sites]:
    """A fleet of two clouds; destroyed at the end, and the inventory of both is as before."""
    clouds = (devcloud, second)
    before = [set(Cloud(each.layout).inventory()) for each in clouds]
    entries = [replace(clouds_file.admin(each.layout), cloud=site) for site, each in zip(SITES, clouds, strict=True)]
    clouds_file.write(prep.folder / "admins.yaml", *entries)
    name = f"sites-{secrets.token_hex(3)}"
    prep.environment |= {
        "XDG_STATE_HOME": str(prep.folder / "state"),
        "OPENSTACK_PREP_VAR_NAME": name,
        "OS_CLIENT_CONFIG_FILE": str(prep.folder / "admins.yaml"),
    }
    del prep.environment["OS_CLOUD"]
    (prep.folder / "tenant.yaml").write_text(SPEC)
    targets = [
        {
            "for_each": {"tenant": [each for each in TENANTS if each[0] == site[-1]]},
            "name": "${tenant}",
            "spec": "tenant.yaml",
            "cloud": site,
            "groups": [site],
            "variables": {"tenant": "${tenant}"},
        }
        for site in SITES
    ]
    fleet = {"name": "sites", "targets": targets, "limits": dict.fromkeys(SITES, 4)}
    (prep.folder / "fleet.yaml").write_text(yaml.safe_dump(fleet, sort_keys=False))
    yield Sites(clouds, name)
    prep.run("fleet", "destroy", "--yes", "--restart", "fleet.yaml")
    assert [set(Cloud(each.layout).inventory()) for each in clouds] == before


def all_of(status: str) -> dict[str, str]:
    return dict.fromkeys(TENANTS, status)


def test_from_nothing_to_nothing(prep: Prep, sites: Sites) -> None:
    assert fleet_run(prep, "plan", "--detailed-exitcode", code=2)[0] == all_of("changes")
    assert fleet_run(prep, "apply", "--yes")[0] == all_of("done")
    sites.assert_no_twins()
    assert fleet_run(prep, "apply", "--yes")[0] == all_of("unchanged")
    assert fleet_run(prep, "audit")[0] == all_of("unchanged")

    admin, project = sites.project("a03")
    admin.compute.update_quota_set(project, cores=5)
    admin, project = sites.project("b07")
    (group,) = admin.network.security_groups(project_id=project.id, name="web")
    for rule in admin.network.security_group_rules(security_group_id=group.id, port_range_min=443):
        admin.network.delete_security_group_rule(rule)
    admin, project = sites.project("b01")
    foreign = admin.network.create_security_group(name="foreign", project_id=project.id)
    drift = dict.fromkeys(("a03", "b07"), "changes")
    assert fleet_run(prep, "plan")[0] == all_of("unchanged") | drift
    statuses, _ = fleet_run(prep, "audit", code=1)
    assert statuses == all_of("unchanged") | dict.fromkeys(("a03", "b07", "b01"), "drift")
    assert fleet_run(prep, "apply", "--yes")[0] == all_of("unchanged") | dict.fromkeys(("a03", "b07"), "done")
    admin.network.delete_security_group(foreign)
    assert fleet_run(prep, "audit")[0] == all_of("unchanged")

    assert fleet_run(prep, "destroy", "--yes")[0] == all_of("done")
    assert fleet_run(prep, "plan", "--destroy")[0] == all_of("unchanged")


def test_a_killed_worker_and_then_a_killed_scheduler(prep: Prep, sites: Sites) -> None:
    with started(prep, "first", (PLAIN, PLAIN, PLAIN)) as made:
        words = ("apply", "--yes", "--jobs", "4", "--scheduler", made.address, "--format", "json", "fleet.yaml")
        process = prep.start("fleet", *words)
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(2)]
        made.workers[0].kill()
        told += [process.stdout.readline() for _ in range(5)]
        made.scheduler.kill()
        out, said = process.communicate(timeout=180)
    assert process.returncode == 1, said
    statuses, _ = lines(subprocess.CompletedProcess([], 1, "".join(told) + out, said))
    assert statuses.keys() == set(TENANTS)
    # a target is unchanged that the killed worker had done, without a chance to say so
    assert {"done", "failed", "not begun"} == set(statuses.values()) - {"unchanged"}
    assert "Traceback" not in said
    with started(prep, "second") as others:
        statuses, last = fleet_run(prep, "apply", "--yes", "--scheduler", others.address)
    assert len(last["done_before"]) + len(statuses) == len(TENANTS)
    assert set(statuses.values()) <= {"done", "unchanged"}
    sites.assert_no_twins()
    assert fleet_run(prep, "apply", "--yes")[0] == all_of("unchanged")
