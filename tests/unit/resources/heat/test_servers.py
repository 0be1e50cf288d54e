from __future__ import annotations

from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import ResourceFailed
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.resources.heat import operation
from openstack_prep.resources.heat.operation import ResourceTypes, ServerActions, Waiting
from tests.unit.conftest import failure
from tests.unit.resources.heat.test_operation import STACK, event, resource, stack
from tests.unit.texts import Wording, contains

NOVA = "http://nova/v2.1"
ACTIONS = f"{NOVA}/servers/x0/os-instance-actions"
BEGUN = [
    event(1, "s/root", "s", "root", "UPDATE_IN_PROGRESS"),
    event(1, "s/root", "nodes", "n0", "UPDATE_IN_PROGRESS"),
    event(2, "s-nodes/n0", "server", "x0", "UPDATE_IN_PROGRESS"),
]
OTHER = event(2, "s/root", "disk", "d0", "CREATE_IN_PROGRESS")
CANCELLED = event(9, "s/root", "nodes", "n0", "UPDATE_FAILED", "resources.nodes: Stack UPDATE cancelled")
RESIZE = {"request_id": "req-1", "action": "resize", "message": "Error"}
REASON = "No valid host"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PAUSE", "LONGEST", "EVENTS"):
        monkeypatch.setattr(operation, name, 0.0)
    monkeypatch.setattr(operation, "EVERY", 0.0)


@pytest.fixture
def cancel(services: requests_mock.Mocker) -> Any:
    """A nested stack with a server, which Heat resizes; Nova has refused that."""
    listed = [resource("nodes", "OS::Heat::ResourceGroup"), resource("server", "OS::Nova::Server", "s-nodes/n0")]
    services.get(f"{STACK}/resources", json={"resources": listed})
    acts(services, RESIZE)
    ended(services, {"event": "cold_migrate", "result": "Error", "details": REASON})
    shows(services)
    return services.post(f"{STACK}/actions", json=None)


def acts(services: requests_mock.Mocker, *actions: dict[str, Any]) -> None:
    services.get(ACTIONS, json={"instanceActions": list(actions)})


def ended(services: requests_mock.Mocker, *events: dict[str, Any]) -> None:
    """Let the events of the action be these, the newest first."""
    services.get(f"{ACTIONS}/req-1", json={"instanceAction": RESIZE | {"events": list(events)}})


def shows(services: requests_mock.Mocker, **fields: Any) -> None:
    shown = {"name": "node-0", "status": "ACTIVE", "OS-EXT-STS:task_state": None} | fields
    services.get(f"{NOVA}/servers/x0", json={"server": shown})


def wait(services: requests_mock.Mocker, run: CloudRun, events: list[Any], polls: int = 4) -> tuple[list[str], str]:
    """Wait until the update has failed; return what was told of the server and the stack, and the error."""
    services.get(STACK, [stack("UPDATE_IN_PROGRESS")] * polls + [stack("UPDATE_FAILED")])
    services.get(f"{STACK}/events", json={"events": events[::-1]})
    told: list[str] = []
    heat = run.admin.orchestration
    servers = ServerActions(ResourceTypes(heat, "/stacks/s/root"), (run.admin,))
    operation = Waiting(heat, "/stacks/s/root", told.append, 0, servers=servers, cancels=True)
    with pytest.raises(ResourceFailed) as error:
        operation.raise_for_failure(operation.end())
    return [each for each in told if "Nova" in each or "cancelled" in each], str(error.value)


def test_an_update_that_waits_in_vain_is_cancelled(services: requests_mock.Mocker, run: CloudRun, cancel: Any) -> None:
    said = f"Nova: resize of server node-0 (x0) failed: {REASON}"
    (first, then), error = wait(services, run, [*BEGUN, CANCELLED])
    assert first == f"nodes.server {said}"
    assert then.startswith("is cancelled")
    assert cancel.call_count == 1
    assert cancel.last_request.json() == {"cancel_without_rollback": None}
    assert f"why; nodes.server: {said}; Heat " in error
    (asked,) = {each.qs["changes-since"][0] for each in services.request_history if each.url.startswith(f"{ACTIONS}?")}
    assert asked == "2026-11-20t23:59:52z"


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([*BEGUN, OTHER], id="Heat works on something else, too"),
        pytest.param([*BEGUN[1:], event(3, *["s/root", "s", "root", "UPDATE_IN_PROGRESS"])], id="of an earlier update"),
    ],
)
def test_an_update_that_does_more_goes_on(
    services: requests_mock.Mocker, run: CloudRun, cancel: Any, events: list[Any]
) -> None:
    (told,), _ = wait(services, run, events)
    assert REASON in told
    assert not cancel.called


@pytest.mark.parametrize(
    ("actions", "events", "fields"),
    [
        pytest.param([RESIZE], [{"result": "Success"}, {"result": "Error"}], {}, id="another host took it"),
        pytest.param([RESIZE], [{"result": "Error"}], {"OS-EXT-STS:task_state": "resize_prep"}, id="next host"),
        pytest.param([RESIZE], [{"result": "Error"}], {"status": "VERIFY_RESIZE"}, id="resized"),
        pytest.param([RESIZE | {"message": None}], [], {}, id="no error"),
    ],
)
def test_what_nova_works_on_has_not_failed(
    services: requests_mock.Mocker, run: CloudRun, cancel: Any, actions: Any, events: Any, fields: Any, wording: Wording
) -> None:
    acts(services, *actions)
    ended(services, *events)
    shows(services, **fields)
    wording(wait(services, run, BEGUN))
    assert not cancel.called


def test_a_resize_by_hand_since_then_is_not_cancelled(
    services: requests_mock.Mocker, run: CloudRun, cancel: Any
) -> None:
    acts(services, {"request_id": "req-2", "action": "resize", "message": None}, RESIZE)
    (told,), _ = wait(services, run, BEGUN)
    assert REASON in told
    assert not cancel.called


@pytest.mark.parametrize(
    ("event_of_nova", "fields", "reason"),
    [
        ({"details": "no\nhost\x1b[2J"}, {}, "no host\\x1b[2J"),
        ({}, {"status": "ERROR", "fault": {"message": "no disk"}}, "no disk"),
        ({}, {}, "Error in cold_migrate"),
    ],
)
@pytest.mark.usefixtures("cancel")
def test_the_reason_as_far_as_nova_shows_it(
    services: requests_mock.Mocker, run: CloudRun, event_of_nova: Any, fields: Any, reason: str
) -> None:
    """Details are for administrators; all texts are printed on one line."""
    ended(services, {"event": "cold_migrate", "result": "Error"} | event_of_nova)
    shows(services, **fields)
    (told, *_), _ = wait(services, run, BEGUN)
    assert told.endswith(f"failed: {reason}")
    failed = event(9, "s-nodes/n0", "server", "x0", "UPDATE_FAILED", "Timed out")
    _, error = wait(services, run, [*BEGUN, failed], polls=0)
    assert contains(error, "nodes.server", "Timed", "resize", "server node-0 (x0) failed", reason)


@pytest.mark.parametrize("answer", [failure(403), failure(404), failure(501)])
@pytest.mark.usefixtures("cancel")
def test_a_nova_that_does_not_show_it_stops_nothing(
    services: requests_mock.Mocker, run: CloudRun, answer: dict[str, Any]
) -> None:
    services.get(ACTIONS, [answer])
    assert wait(services, run, BEGUN)[0] == []


@pytest.mark.usefixtures("cancel")
def test_a_cancel_that_heat_refuses_is_reported(services: requests_mock.Mocker, run: CloudRun) -> None:
    cancel = services.post(f"{STACK}/actions", [failure(403)])
    (*_, told), _ = wait(services, run, BEGUN, polls=8)
    assert told.startswith("cannot be cancelled")
    assert cancel.call_count == 1
