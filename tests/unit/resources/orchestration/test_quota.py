from __future__ import annotations

from pathlib import Path

import pytest
import requests_mock

from openstack_prep.base.errors import QuotaExceeded
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Observed
from openstack_prep.resources.compute.quota import Quota
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.orchestration.checks import QuotaCheck
from openstack_prep.resources.orchestration.stack import Stack
from tests.unit.conftest import failure, resolved
from tests.unit.texts import Wording, contains, expect_error

PREVIEW = "http://heat/v1/admin-project/stacks/preview"
PORT = {"resource_name": "p", "resource_type": "OS::Neutron::Port", "stack_name": "s", "properties": {}}
QUOTAS = "http://neutron/v2.0/quotas/admin-project/details.json"


@pytest.fixture
def stacks(services: requests_mock.Mocker, tmp_path: Path) -> list[Stack]:
    """Two stacks of a port each."""
    (tmp_path / "t.yaml").write_text("heat_template_version: wallaby\nresources: {}\n")
    services.post(PREVIEW, json={"stack": {"resources": [[PORT]]}})
    services.get("http://nova/v2.1/flavors/detail", json={"flavors": []})
    services.get("http://neutron/", json={"versions": []})
    services.get(QUOTAS, json={"quota": {"port": {"limit": 3, "used": 2, "reserved": 0}}})
    return [Stack(name=name, template=str(tmp_path / "t.yaml")) for name in ("s", "t")]


def ledger(run: CloudRun, *stacks: Stack) -> QuotaCheck:
    made = QuotaCheck.of(run, None)
    made.register((each, None) for each in stacks)
    return made


def test_one_speaks_for_those_counted_together_and_each_is_counted_once(
    services: requests_mock.Mocker, run: CloudRun, stacks: list[Stack], wording: Wording
) -> None:
    made = ledger(run, *stacks)
    (said,) = made.shortages(run, stacks[0])
    assert (said.code, said.where) == ("quota.short", "stack/s, stack/t")
    wording(said.what)
    assert contains(said.fix, "openstack quota set --ports 4 admin-project")
    assert made.shortages(run, stacks[1]) == []
    for each in stacks:
        with expect_error(QuotaExceeded, "created", "2 ports"):
            made.ensure_quota(run, each, None)
    assert len([each for each in services.request_history if each.url == PREVIEW]) == 2


def test_enough_for_one(run: CloudRun, stacks: list[Stack]) -> None:
    made = ledger(run, stacks[0])
    assert made.shortages(run, stacks[0]) == []
    made.ensure_quota(run, stacks[0], None)


def test_what_the_spec_declares_counts_before_it_is_set(run: CloudRun, stacks: list[Stack]) -> None:
    quota = Quota(ports=2)
    stack = resolved(stacks[0], [quota, *stacks], run.admin)
    (said,) = ledger(run, stack).shortages(run, stack)
    assert said.code == "quota.short"
    assert contains(said.fix, "quota.ports", "3")


@pytest.mark.parametrize(
    ("url", "told"),
    [(QUOTAS, "ports: not checked, because"), (PREVIEW, "not checked against the quotas: ")],
)
def test_what_may_not_be_read_is_said_and_stops_nothing(
    services: requests_mock.Mocker, run: CloudRun, stacks: list[Stack], url: str, told: str
) -> None:
    services.register_uri(requests_mock.ANY, url, **failure(403))
    notes: list[str] = []
    run.note = lambda key, text: notes.append(text)
    made = ledger(run)
    made.ensure_quota(run, stacks[0], None)
    (note,) = notes
    assert note.startswith(told)


def test_what_heat_refuses_because_it_is_still_to_come_is_counted_before_the_stack_is_created(
    services: requests_mock.Mocker, run: CloudRun, stacks: list[Stack], wording: Wording
) -> None:
    """A plain parameter may name a network of the spec, and only Heat knows that."""
    answers = [failure(400, "Unable to find network"), {"json": {"stack": {"resources": [PORT, PORT]}}}]
    services.post(PREVIEW, answers)
    services.get("http://neutron/v2.0/networks", json={"networks": []})
    notes: list[str] = []
    run.note = lambda key, text: notes.append(text)
    network = Network(name="later")
    stack = resolved(stacks[0], [network, stacks[0]], run.admin)
    made = ledger(run, stack)
    assert made.shortages(run, stack) == []
    assert list(stack.check(run, None)) == []
    assert notes == []
    run.known[network.key] = Observed(id="n1")
    with pytest.raises(QuotaExceeded) as caught:
        made.ensure_quota(run, stack, None)
    wording(caught.value)


def test_resources_of_nested_stacks_are_found_at_any_depth(
    services: requests_mock.Mocker, run: CloudRun, stacks: list[Stack], wording: Wording
) -> None:
    port = {"resource_name": "p", "resource_type": "OS::Neutron::Port", "stack_name": "s-a-0", "properties": {}}
    services.post(PREVIEW, json={"stack": {"resources": [port, [[port], [[port]]]]}})
    (said,) = ledger(run, stacks[0]).shortages(run, stacks[0])
    assert said.code == "quota.short"
    wording(said.what)
