from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import ResourceFailed, WaitTimeout
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.resources.heat import operation
from openstack_prep.resources.heat.operation import ResourceTypes, Signals, Waiting
from tests.unit.conftest import failure
from tests.unit.texts import Wording, contains, expect_error

HEAT = "http://heat/v1/admin-project"
STACK = f"{HEAT}/stacks/s/root"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation, "PAUSE", 0.001)
    monkeypatch.setattr(operation, "LONGEST", 0.001)


def event(time: int, stack: str, name: str, physical: str, status: str, reason: str = "") -> dict[str, Any]:
    return {
        "id": f"{stack} {name} {status} {time}",
        "event_time": f"2026-11-21T00:00:{time:02}Z",
        "resource_name": name,
        "physical_resource_id": physical,
        "resource_status": status,
        "resource_status_reason": reason,
        "links": [{"rel": "stack", "href": f"http://heat/v1/p/stacks/{stack}"}],
    }


EVENTS = [
    event(1, "s/root", "s", "root", "CREATE_IN_PROGRESS"),
    event(2, "s/root", "old", "x0", "CREATE_FAILED", "of another time"),
    event(3, "s/root", "s", "root", "UPDATE_IN_PROGRESS"),
    event(3, "s/root", "nodes", "s-nodes-x", "UPDATE_IN_PROGRESS"),
    event(4, "s-nodes-x/nested", "0", "x1", "CREATE_FAILED", "No valid host"),
    event(4, "s-nodes-x/nested", "1", "x2", "CREATE_COMPLETE"),
    event(5, "s/root", "nodes", "nested", "UPDATE_FAILED", "No valid host, and so on"),
    event(5, "s/root", "s", "root", "UPDATE_FAILED", "No valid host, and so on, and so on"),
]


def stack(status: str) -> dict[str, Any]:
    return {"json": {"stack": {"stack_name": "s", "id": "root", "stack_status": status, "stack_status_reason": "why"}}}


def test_a_heat_that_fails_is_waited_for_and_the_one_at_fault_named(
    services: requests_mock.Mocker, run: CloudRun
) -> None:
    services.get(STACK, [failure(500), stack("UPDATE_IN_PROGRESS"), failure(500), stack("UPDATE_FAILED")])
    services.get(f"{STACK}/events", json={"events": EVENTS[::-1]})
    told: list[str] = []
    operation = Waiting(run.admin.orchestration, "/stacks/s/root", told.append)
    found = operation.end()
    with expect_error(ResourceFailed, "root", "UPDATE_FAILED", "nodes.0", "No valid host"):
        operation.raise_for_failure(found)
    assert told == [
        "nodes UPDATE_IN_PROGRESS",
        "nodes.0 CREATE_FAILED",
        "nodes.1 CREATE_COMPLETE",
        "nodes UPDATE_FAILED",
    ]


def test_a_rollback_does_not_hide_why(services: requests_mock.Mocker, run: CloudRun) -> None:
    """What Heat stopped, cleaned up and did again is not at fault."""
    before = [
        event(1, "s/root", "s", "root", "UPDATE_IN_PROGRESS"),
        event(2, "s/root", "port", "p1", "UPDATE_FAILED", "no address left"),
        event(2, "s/root", "disk", "d1", "CREATE_FAILED", "CREATE aborted (user triggered cancel)"),
        event(2, "s/root", "nodes", "gone", "CREATE_FAILED", "resources[0]: no host"),
        event(2, "s/root", "nodes.0", "gone-0", "CREATE_FAILED", "no host"),
    ]
    after = [
        event(3, "s/root", "s", "root", "ROLLBACK_IN_PROGRESS"),
        event(4, "s/root", "port", "p1", "UPDATE_COMPLETE"),
        event(4, "s/root", "disk", "d1", "DELETE_COMPLETE"),
    ]
    services.get(STACK, [stack("UPDATE_IN_PROGRESS"), stack("ROLLBACK_COMPLETE")])
    answers = ({"json": {"events": each[::-1]}} for each in (before, before + after))
    services.get(f"{STACK}/events", list(answers))
    operation = Waiting(run.admin.orchestration, "/stacks/s/root", print)
    with expect_error(ResourceFailed, "ROLLBACK_COMPLETE", "nodes.0: no host", "port: no address left"):
        operation.raise_for_failure(operation.end())


def test_a_failed_resource_that_is_made_again_is_no_fault(services: requests_mock.Mocker, run: CloudRun) -> None:
    events = [
        event(1, "s/root", "s", "root", "CREATE_IN_PROGRESS"),
        event(2, "s/root", "server", "x1", "CREATE_FAILED", "busy"),
        event(3, "s/root", "server", "x1", "DELETE_COMPLETE"),
        event(4, "s/root", "server", "x2", "CREATE_COMPLETE"),
    ]
    services.get(STACK, [stack("CREATE_FAILED")])
    services.get(f"{STACK}/events", json={"events": events[::-1]})
    operation = Waiting(run.admin.orchestration, "/stacks/s/root", print)
    with pytest.raises(ResourceFailed, match="is CREATE_FAILED: why"):
        operation.raise_for_failure(operation.end())


def test_without_events_the_stack_says_why(services: requests_mock.Mocker, run: CloudRun) -> None:
    services.get(STACK, [stack("ROLLBACK_COMPLETE")])
    services.get(f"{STACK}/events", json={"events": []})
    operation = Waiting(run.admin.orchestration, "/stacks/s/root", print)
    with pytest.raises(ResourceFailed, match="is ROLLBACK_COMPLETE: why"):
        operation.raise_for_failure(operation.end())


@pytest.mark.parametrize("answer", [failure(404), stack("DELETE_COMPLETE")])
def test_what_is_gone(services: requests_mock.Mocker, run: CloudRun, answer: dict[str, Any]) -> None:
    services.get(STACK, [answer])
    operation = Waiting(run.admin.orchestration, "/stacks/s/root", print)
    assert operation.end() is None
    operation.raise_for_failure(None)


def test_the_wait_ends(
    services: requests_mock.Mocker, run: CloudRun, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    monkeypatch.setattr(operation, "GRACE", -59.99)
    services.get(STACK, [stack("CREATE_IN_PROGRESS")])
    services.get(f"{STACK}/events", json={"events": []})
    with pytest.raises(WaitTimeout) as caught:
        Waiting(run.admin.orchestration, "/stacks/s/root", print).end(1)
    wording(caught.value)


@pytest.mark.parametrize(
    ("status", "give_up"),
    [
        ("CREATE_IN_PROGRESS", "; to abort: openstack stack delete root"),
        ("UPDATE_IN_PROGRESS", "; to abort: openstack stack cancel --no-rollback root"),
        ("DELETE_IN_PROGRESS", ""),
    ],
)
def test_how_long_it_is_waited_for_is_told_once(
    services: requests_mock.Mocker, run: CloudRun, status: str, give_up: str
) -> None:
    services.get(STACK, [stack(status), stack(status), stack("CREATE_COMPLETE")])
    services.get(f"{STACK}/events", json={"events": []})
    told: list[str] = []
    Waiting(run.admin.orchestration, "/stacks/s/root", told.append, patience=0).end()
    (said,) = told
    assert re.fullmatch(rf"is {status} \(timeout \d\d:\d\d\){give_up}", said)


def test_nobody_is_told_how_to_abort_the_work_of_others(services: requests_mock.Mocker, run: CloudRun) -> None:
    services.get(STACK, [stack("CREATE_IN_PROGRESS"), stack("CREATE_COMPLETE")])
    services.get(f"{STACK}/events", json={"events": []})
    told: list[str] = []
    Waiting(run.admin.orchestration, "/stacks/s/root", told.append, patience=0, is_own=False).end()
    assert len(told) == 1
    assert "abort" not in told[0]


STACKS = f"{HEAT}/stacks"


def resource(name: str, kind: str, path: str = "s/root") -> dict[str, Any]:
    return {
        "resource_name": name,
        "resource_type": kind,
        "links": [{"rel": "stack", "href": f"http://heat/v1/p/stacks/{path}"}],
    }


def shown_event(**properties: object) -> dict[str, Any]:
    return {"json": {"event": {"resource_properties": properties}}}


def data(*signals: int) -> dict[str, Any]:
    return {"json": {"resource": {"attributes": {"data": json.dumps({str(each): None for each in signals})}}}}


def wait_for_signals(run: CloudRun) -> list[str]:
    """Wait for the stack; return what was told of the waiting, without the place and the status."""
    told: list[str] = []
    heat = run.admin.orchestration
    Waiting(heat, "/stacks/s/root", told.append, 0, Signals(ResourceTypes(heat, "/stacks/s/root"))).end()
    return [each.partition("_IN_PROGRESS")[2].partition("; to abort")[0] for each in told if each.startswith("is ")]


BEGUN = [
    event(1, "s/root", "s", "root", "CREATE_IN_PROGRESS"),
    event(2, "s/root", "handle", "h", "CREATE_COMPLETE"),
    event(3, "s/root", "ready", "w", "CREATE_IN_PROGRESS"),
]
DONE = [*BEGUN, event(9, "s/root", "ready", "w", "CREATE_COMPLETE")]
TIMEOUT = 30.0 * 60
SINCE = datetime.fromisoformat("2026-11-21T00:00:03Z").astimezone().strftime("since %H:%M")
ENDS = datetime.fromisoformat("2026-11-21T00:30:03Z").astimezone().strftime(r" (timeout %H:%M)")


def given(services: requests_mock.Mocker, events: list[list[dict[str, Any]]]) -> None:
    """Let Heat have a wait condition, and answer one list of events after the other."""
    answers = [{"json": {"events": each[::-1]}} for each in events]
    services.get(f"{STACK}/events", answers)
    services.get(STACK, [stack("CREATE_IN_PROGRESS")] * (len(events) - 1) + [stack("CREATE_COMPLETE")])
    listed = [resource("handle", "OS::Heat::WaitConditionHandle"), resource("ready", "OS::Heat::WaitCondition")]
    services.get(f"{STACK}/resources", json={"resources": listed})


@pytest.fixture
def all_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation, "EVENTS", 0.0)
    monkeypatch.setattr(operation, "GRACE", 10 * 365 * 24 * 3600.0)  # the stack's timeout is the later one


@pytest.mark.usefixtures("all_events")
def test_the_outstanding_signals_are_reported(services: requests_mock.Mocker, run: CloudRun, wording: Wording) -> None:
    """The number of signals needs one request per poll at most, and none while no signal arrives."""
    one = [*BEGUN, event(4, "s/root", "handle", "h", "SIGNAL_COMPLETE")]
    given(services, [BEGUN[:2], *[BEGUN] * 5, *[one] * 3, DONE])
    services.get(f"{STACK}/resources/ready/events/{BEGUN[2]['id']}", [shown_event(count="8", timeout=TIMEOUT)])
    services.get(f"{STACK}/resources/ready", [data(), data(1)])
    wording(wait_for_signals(run)[1:])
    paths = [each.path for each in services.request_history if "/stacks/" in each.path]
    polls = "".join("p" if each.endswith("/s/root") else "e" if each.endswith("root/events") else "r" for each in paths)
    assert polls == "per" + "per" * 2 + "pe" * 3 + "per" + "pe" * 2 + "pe"


@pytest.mark.usefixtures("all_events")
def test_wait_conditions_of_nested_stacks_are_counted_together(services: requests_mock.Mocker, run: CloudRun) -> None:
    events = [*BEGUN, event(3, "s-0/n0", "Ready", "w0", "CREATE_IN_PROGRESS")]
    given(services, [*[events] * 7, DONE])
    listed = [
        resource("ready", "OS::Heat::WaitCondition"),
        resource("Ready", "AWS::CloudFormation::WaitCondition", "s-0/n0"),
    ]
    services.get(f"{STACK}/resources", json={"resources": listed})
    services.get(f"{STACK}/resources/ready/events/{BEGUN[2]['id']}", [shown_event(count=2, timeout=2 * TIMEOUT)])
    services.get(f"{STACKS}/s-0/n0/resources/Ready/events/{events[-1]['id']}", [shown_event(Timeout=str(TIMEOUT))])
    services.get(f"{STACK}/resources/ready", [data(1, 2, 3)])
    services.get(f"{STACKS}/s-0/n0/resources/Ready", json={"resource": {"attributes": {"Data": "{}"}}})
    assert wait_for_signals(run) == [f", waiting for 1 of 3 cloud-init signals for Ready {SINCE}{ENDS}"]


@pytest.mark.usefixtures("all_events")
def test_the_signals_of_cloudformation_are_counted_as_well(services: requests_mock.Mocker, run: CloudRun) -> None:
    given(services, [*[BEGUN] * 5, DONE])
    listed = [resource("ready", "AWS::CloudFormation::WaitCondition")]
    services.get(f"{STACK}/resources", json={"resources": listed})
    services.get(f"{STACK}/resources/ready/events/{BEGUN[2]['id']}", [shown_event(Count="2", Timeout=str(TIMEOUT))])
    services.get(f"{STACK}/resources/ready", json={"resource": {"attributes": {"Data": '{"1": "up"}'}}})
    assert wait_for_signals(run) == [f", waiting for 1 of 2 cloud-init signals for ready {SINCE}{ENDS}"]


@pytest.mark.usefixtures("all_events")
@pytest.mark.parametrize("answer", [failure(403), failure(404)])
def test_a_wait_condition_that_heat_does_not_show_stops_nothing(
    services: requests_mock.Mocker, run: CloudRun, answer: dict[str, Any]
) -> None:
    given(services, [*[BEGUN] * 4, DONE])
    asked = services.get(f"{STACK}/resources/ready/events/{BEGUN[2]['id']}", [answer])
    (told,) = wait_for_signals(run)
    assert re.fullmatch(r" \(timeout \d\d:\d\d\)", told)
    assert asked.call_count == 1


@pytest.mark.usefixtures("all_events")
def test_signals_are_read_again_after_a_transient_error(
    services: requests_mock.Mocker, run: CloudRun, wording: Wording
) -> None:
    given(services, [*[BEGUN] * 9, DONE])
    services.get(
        f"{STACK}/resources/ready/events/{BEGUN[2]['id']}",
        [failure(503), failure(503), failure(503), shown_event(count=1, timeout=TIMEOUT)],
    )
    services.get(f"{STACK}/resources/ready", [data()])
    wording(wait_for_signals(run))


@pytest.mark.usefixtures("all_events")
def test_nothing_is_awaited_when_all_signals_are_there(services: requests_mock.Mocker, run: CloudRun) -> None:
    given(services, [*[BEGUN] * 5, DONE])
    services.get(f"{STACK}/resources/ready/events/{BEGUN[2]['id']}", [shown_event(count=1, timeout=TIMEOUT)])
    services.get(f"{STACK}/resources/ready", [data(1)])
    assert [each.partition(" (timeout")[0] for each in wait_for_signals(run)] == [""]


@pytest.mark.parametrize("form", ['pa/ss "word"', "pa%2Fss%20%22word%22", 'pa/ss \\"word\\"', "x" * 12])
def test_no_text_and_no_log_repeats_a_secret_in_a_reason(
    services: requests_mock.Mocker, run: CloudRun, caplog: pytest.LogCaptureFixture, form: str
) -> None:
    caplog.set_level("DEBUG")
    secret = 'pa/ss "word"' if "word" in form else form
    reason = f"Value '{form}' is not an integer"
    events = [
        event(1, "s/root", "s", "root", "CREATE_IN_PROGRESS"),
        event(2, "s/root", "port", "p1", "CREATE_FAILED", reason),
    ]
    failed = {"stack_name": "s", "id": "root", "stack_status": "CREATE_FAILED", "stack_status_reason": reason}
    services.get(STACK, json={"stack": failed})
    services.get(f"{STACK}/events", json={"events": events[::-1]})
    told: list[str] = []
    operation = Waiting(run.admin.orchestration, "/stacks/s/root", told.append, hidden=lambda: [secret])
    with pytest.raises(ResourceFailed) as refusal:
        operation.raise_for_failure(operation.end())
    assert refusal.value.code == "cloud.resource-failed"
    assert contains(str(refusal.value), "port", "Value '********'", "integer")
    assert told == ["port CREATE_FAILED"]
    assert form not in caplog.text


@pytest.mark.parametrize("in_event", [True, False])
def test_a_reason_that_may_repeat_an_unknown_value_is_not_shown(
    services: requests_mock.Mocker, run: CloudRun, in_event: bool
) -> None:
    """Of a stack that the spec no longer declares, nobody knows the values of hidden parameters."""
    events = [
        event(1, "s/root", "s", "root", "DELETE_IN_PROGRESS"),
        event(2, "s/root", "vpn", "v1", "DELETE_FAILED", "invalid: qwertz"),
        event(3, "s/root", "router", "r1", "DELETE_FAILED", "Router is in use"),
    ]
    failed = {"stack_name": "s", "id": "root", "stack_status": "DELETE_FAILED", "stack_status_reason": "qwertz"}
    services.get(STACK, json={"stack": failed})
    services.get(f"{STACK}/events", json={"events": events[::-1] if in_event else []})
    operation = Waiting(run.admin.orchestration, "/stacks/s/root", print, is_private=lambda place: place != "router")
    with pytest.raises(ResourceFailed) as refusal:
        operation.raise_for_failure(operation.end())
    assert "qwertz" not in str(refusal.value)
    assert "openstack stack event list --nested-depth 5 root" in str(refusal.value)
    assert ("router: Router is in use" in str(refusal.value)) is in_event
