from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
import requests_mock

from openstack_prep.base.errors import CloudError, LoginBlocked, NotAllowed, NotFound, Overtaken, QuotaExceeded
from openstack_prep.base.secret import Secret
from openstack_prep.base.state_folder import SWITCH
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core import planner
from openstack_prep.core.model import Action, Resource, Result, Status
from openstack_prep.core.plan import Plan
from openstack_prep.resources.compute.keypair import Keypair
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.identity.user import User
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.subnet import Subnet
from openstack_prep.verbs.refused_steps import MOST_AGE, RefusedSteps
from tests.unit.conftest import connection

LAB = Project(name="lab")
NET = Network(name="n", project="lab", mtu=9000)
SUBNET = Subnet(name="s", project="lab", network="n", cidr="10.0.0.0/24")
REFUSED = NotAllowed("create network: 403 no", status=403, request_id="req-1")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv(SWITCH)
    return tmp_path / "openstack-prep"


@pytest.fixture
def cloud(services: requests_mock.Mocker) -> Cloud:
    return Cloud(connection()).authenticate()


def planned(*resources: Resource) -> Plan:
    return planner.plan_apply("lab", resources, {})


def ended(plan: Plan, name: str, error: Exception | None = None, action: Action | None = None) -> Result:
    (step,) = (each for each in plan if each.key.name == name)
    step = replace(step, action=action or step.action)
    return Result(step=step, status=Status.FAILED if error else Status.DONE, error=error)


def named(cloud: Cloud, *resources: Resource) -> bool:
    return bool([*RefusedSteps(cloud).standing(planned(*resources))])


def test_a_record_stands_for_what_was_sent_alone(cloud: Cloud) -> None:
    plan = planned(LAB, NET, SUBNET)
    RefusedSteps(cloud).note(ended(plan, "s", REFUSED), plan)
    assert named(cloud, LAB, NET, SUBNET)
    assert not named(cloud, LAB, NET, replace(SUBNET, cidr="10.1.0.0/24"))
    assert not named(cloud, LAB, replace(NET, mtu=1500), SUBNET)
    RefusedSteps(cloud).note(ended(plan, "s"), plan)
    assert not named(cloud, LAB, NET, SUBNET)


def test_another_login_in_a_url_is_another_declaration(cloud: Cloud, state: Path) -> None:
    network = replace(NET, description="see https://ops:of-the-first@wiki.example")
    plan = planned(network)
    RefusedSteps(cloud).note(ended(plan, "n", REFUSED), plan)
    assert named(cloud, network)
    assert not named(cloud, replace(network, description="see https://ops:of-the-second@wiki.example"))
    assert "of-the-first" not in next(state.iterdir()).read_text()


@pytest.mark.parametrize(
    ("error", "is_recorded"),
    [
        (REFUSED, True),
        (CloudError("a conflict to the end", status=409, retryable=True), True),
        (NotFound("no such request", status=404), False),
        (QuotaExceeded("networks", status=409), False),
        (LoginBlocked("locked", status=401), False),
        (Overtaken("by another run", retryable=True), False),
        (CloudError("slower", status=429, retryable=True), False),
        (CloudError("too many requests", status=413, retryable=True), False),
        (CloudError("too large", status=413), True),
        (CloudError("no service, but a proxy", status=404, retryable=True), False),
        (CloudError("broken", status=500, retryable=True), False),
        (CloudError("no answer"), False),
        (ValueError("ours"), False),
    ],
)
def test_refusals_are_recorded_that_no_plan_foretells(
    cloud: Cloud, state: Path, error: Exception, is_recorded: bool
) -> None:
    plan = planned(LAB, NET)
    RefusedSteps(cloud).note(ended(plan, "n", error), plan)
    assert named(cloud, LAB, NET) is is_recorded
    assert state.exists() is is_recorded


def test_quotas_that_no_plan_reads_and_deletions(cloud: Cloud) -> None:
    pair = Keypair(name="k", public_key="ssh-ed25519 AAAA")
    plan = planned(pair, LAB, NET)
    RefusedSteps(cloud).note(ended(plan, "k", QuotaExceeded("key pairs", status=403)), plan)
    RefusedSteps(cloud).note(ended(plan, "n", REFUSED, Action.DELETE), plan)
    assert named(cloud, pair)
    assert not named(cloud, LAB, NET)


def test_a_record_has_no_secret(cloud: Cloud, state: Path) -> None:
    user = User(name="ops", password=Secret("a-secret"))
    plan = planned(user)
    RefusedSteps(cloud).note(ended(plan, "ops", REFUSED), plan)
    (record,) = state.iterdir()
    assert "a-secret" not in record.read_text()
    assert json.loads(record.read_text())["reason"] == str(REFUSED)


def test_old_records_are_deleted(cloud: Cloud, state: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Those of others stay, however many targets of a fleet are refused, and whoever else deletes records."""
    networks = [replace(NET, name=f"n{number}") for number in range(120)]
    plan = planned(LAB, *networks)
    for each in networks:
        RefusedSteps(cloud).note(ended(plan, each.name, REFUSED), plan)
    assert named(cloud, LAB, networks[0])
    (old,) = (path for path in state.iterdir() if json.loads(path.read_text())["resource"] == networks[0].key.qualified)
    long_ago = old.stat().st_mtime - MOST_AGE.total_seconds()
    os.utime(old, (long_ago, long_ago))
    (state / "refused-gone.json").symlink_to("gone")  # as if another run deleted it between list and look
    RefusedSteps(cloud).note(ended(plan, "n1", REFUSED), plan)
    assert caplog.records == []
    assert not named(cloud, LAB, networks[0])
    assert all(named(cloud, LAB, each) for each in networks[1:])


def test_a_conflict_is_named_with_a_doubt(cloud: Cloud) -> None:
    plan = planned(LAB, NET)
    sentences: list[str] = []
    for status in (400, 403, 409):
        RefusedSteps(cloud).note(ended(plan, "n", CloudError("no", status=status)), plan)
        sentences += RefusedSteps(cloud).standing(plan)
    assert len(sentences[0]) == len(sentences[1]) < len(sentences[2])


def test_nothing_is_recorded_when_it_is_off(cloud: Cloud, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "off")
    plan = planned(LAB, NET)
    RefusedSteps(cloud).note(ended(plan, "n", REFUSED), plan)
    assert not state.exists()
