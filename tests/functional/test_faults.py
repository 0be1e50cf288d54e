"""The cloud fails, or we are killed: the next apply converges, with exactly one of everything."""

from __future__ import annotations

import itertools
import secrets
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from openstack_prep.cloud.connection import connect
from tests.devcloud.faults import Fault
from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.conftest import Prep
from tests.functional.test_scenario import scenario

PLACES = [1, 10, 19, *(pytest.param(each, marks=pytest.mark.more) for each in (4, 7, 13, 16))]
"""Writes that an apply is killed after; ``tox -e races -- --kill`` kills at any request."""


def everything(name: str) -> dict[str, Any]:
    """Return a spec that has every kind in it."""
    return scenario(name) | {
        "networks": [{"name": "nodes"}],
        "subnets": [{"name": "nodes", "network": "nodes", "cidr": "10.0.0.0/24"}],
        "routers": [{"name": "out", "external_network": "external", "interfaces": ["nodes"]}],
        "security_groups": [{"name": "ssh", "rules": [{"protocol": "tcp", "ports": 22}, {"protocol": "icmp"}]}],
        "server_groups": [{"name": "masters", "policy": "anti-affinity"}],
        "keypairs": [{"name": "key", "public_key": PUBLIC_KEY}],
        "floating_ips": [
            {"name": "api", "external_network": "external", "address": "192.168.122.164"},
            {"name": "any", "external_network": "external"},
        ],
        "application_credentials": [{"name": "cluster", "clouds_yaml": "clouds.yaml", "cloud": f"{name}-app"}],
    }


PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB engineer@example"


@pytest.fixture
def name() -> str:
    return f"f{secrets.token_hex(3)}"


def names_in(devcloud: Devcloud, prefix: str) -> Counter[tuple[str, str]]:
    """Count what the cloud holds of a spec, by kind and name: each should be there once."""
    admin = devcloud.admin
    project = admin.identity.find_project(f"{prefix}-project")
    of_project = {"project_id": project.id} if project else {"project_id": "none"}
    found: Counter[tuple[str, str]] = Counter()
    found.update(("project", each.name) for each in admin.identity.projects() if prefix in each.name)
    found.update(("user", each.name) for each in admin.identity.users() if prefix in each.name)
    found.update(("flavor", each.name) for each in admin.compute.flavors() if prefix in each.name)
    found.update(("image", each.name) for each in admin.image.images() if prefix in each.name)
    for kind, listing in (
        ("network", admin.network.networks),
        ("subnet", admin.network.subnets),
        ("router", admin.network.routers),
        ("group", admin.network.security_groups),
    ):
        found.update((kind, each.name) for each in listing(**of_project))
    found.update(("floating ip", each.description) for each in admin.network.ips(**of_project))
    return found


@pytest.mark.parametrize("place", PLACES)
def test_a_kill_at_any_write_converges(prep: Prep, name: str, devcloud: Devcloud, place: int) -> None:
    prep.write(everything(name))
    mark = devcloud.mark()
    prep.run_killed(place, "apply", "--yes", prep.spec.name)
    devcloud.wait_until_idle(mark)
    prep.apply()
    assert {what: count for what, count in names_in(devcloud, name).items() if count > 1} == {}
    assert prep.changes() == set()


LOST = [
    Fault("keystone", method="POST", path_regex="/projects$", drop_answer=True),
    Fault("keystone", method="POST", path_regex="/users$", drop_answer=True),
    Fault("keystone", method="POST", path_regex="/application_credentials$", drop_answer=True),
    Fault("keystone", method="PUT", path_regex="/roles/", drop_answer=True),
    Fault("nova", method="POST", path_regex="/flavors$", drop_answer=True),
    Fault("nova", method="POST", path_regex="/os-keypairs$", drop_answer=True),
    Fault("nova", method="POST", path_regex="/os-server-groups$", drop_answer=True),
    Fault("nova", method="PUT", path_regex="/os-quota-sets/", drop_answer=True),
    Fault("neutron", method="POST", path_regex="/networks", drop_answer=True),
    Fault("neutron", method="POST", path_regex="/subnets", drop_answer=True),
    Fault("neutron", method="POST", path_regex="/routers", drop_answer=True),
    Fault("neutron", method="PUT", path_regex="/add_router_interface", drop_answer=True),
    Fault("neutron", method="POST", path_regex="/security-groups", drop_answer=True),
    Fault("neutron", method="POST", path_regex="/security-group-rules", drop_answer=True),
    Fault("neutron", method="POST", path_regex="/floatingips", drop_answer=True, times=2),
    Fault("glance", method="POST", path_regex="/images$", drop_answer=True),
    Fault("glance", method="PUT", path_regex="/file$", drop_answer=True),
    Fault("swift-proxy", method="POST", drop_answer=True),
]


def test_answers_lost_after_the_work_was_done(prep: Prep, name: str, devcloud: Devcloud) -> None:
    prep.write(everything(name))
    with devcloud.faults(*LOST):
        prep.apply()
        hit = [each for each in devcloud.requests_since(None) if each.fault]
    assert len(hit) >= len(LOST)
    assert set(names_in(devcloud, name).values()) == {1}
    assert prep.changes() == set()


@pytest.mark.parametrize("status", [pytest.param(429, marks=pytest.mark.more), 500, 503])
def test_services_that_refuse_for_a_while(prep: Prep, name: str, devcloud: Devcloud, status: int) -> None:
    prep.write(everything(name))
    services = ("keystone", "nova", "neutron", "glance", "swift-proxy")
    methods = ("GET", "POST", "PUT")
    rules = [
        Fault(service, method=method, path_regex="^(?!.*auth/tokens)", status=status, times=1, skip=2)
        for service, method in itertools.product(services, methods)
        if status != 500 or method != "GET"
    ]
    with devcloud.faults(*rules):
        prep.apply()
    assert set(names_in(devcloud, name).values()) == {1}
    assert prep.changes() == set()


def test_interrupts(prep: Prep, name: str, devcloud: Devcloud) -> None:
    """The first waits for what is under way and says so, the second leaves at once; then it goes on."""
    prep.write({"name": name, "networks": [{"name": f"{name}-nodes"}]})
    slow = Fault("neutron", method="POST", path_regex="/networks", delay=300, held=True)
    with devcloud.faults(slow):
        begun = devcloud.mark()
        process = prep.start("apply", "--yes", prep.spec.name)
        assert process.stdout is not None
        devcloud.wait_for_request(begun, "POST", "/networks")
        mark = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert "finishing; press Ctrl-C again to exit immediately" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "run the command again" in said
        assert time.monotonic() - mark < 30
        made = prep.apply()[f"network/{name}-nodes"]["id"]
        assert prep.changes() == set()
    take_back_what_comes_late(devcloud, f"{name}-nodes", made)


def take_back_what_comes_late(devcloud: Devcloud, name: str, made: str) -> None:
    """Wait for what the run that was left at once had asked for, lest it turn up in another test."""
    deadline = time.monotonic() + 120
    while not (late := [each for each in devcloud.admin.network.networks(name=name) if each.id != made]):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    devcloud.admin.network.delete_network(late[0])


def test_a_revoked_token_costs_one_login(devcloud: Devcloud) -> None:
    """As when somebody revokes tokens, or the cloud ends them early: all threads but one got 401."""
    cloud = connect("devcloud-admin", clouds_file=devcloud.clouds_file).authenticate()
    revoked = cloud.session.get_token()
    cloud.identity.delete("/auth/tokens", headers={"X-Subject-Token": revoked})
    mark = devcloud.mark()
    with ThreadPoolExecutor(8) as pool:
        listed = list(pool.map(lambda _: cloud.identity.list("/projects", "projects"), range(8)))
    assert all(listed)
    requests = devcloud.requests_since(mark)
    assert 401 in {each.status for each in requests}
    assert sum(each.path.endswith("/auth/tokens") for each in requests) == 1
