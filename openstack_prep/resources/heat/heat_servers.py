"""Instance actions that Nova failed to carry out on the servers that Heat changes: Heat does not report them.

When no host can hold a server's new flavor, Nova leaves the server ACTIVE, and Heat waits for VERIFY_RESIZE until the
stack's timeout.

Source: Compute API, "Servers actions" (changes-since since microversion 2.58; details of events since 2.84, by default
for administrators only: Nova 34.0.0, nova/policies/instance_actions.py); Heat 27.0.1, heat/engine/clients/os/nova.py,
check_resize: only a status other than RESIZE, ACTIVE and VERIFY_RESIZE is an error.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote

from openstack_prep.base.errors import CloudError, NotAllowed, NotFound
from openstack_prep.base.raw import Raw, Values
from openstack_prep.base.style import printable
from openstack_prep.resources.heat.heat import SERVER
from openstack_prep.resources.heat.heat_places import ResourceTypes, containers, place, resource_name

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud
    from openstack_prep.cloud.service import Service

DETAILS = (2, 84)
EVERY = 15.0  # minimum seconds between two readings of one server
SLACK = timedelta(seconds=10)  # difference between the clocks of Heat and Nova
MOST = 5  # servers that are read after a failure
IN_PROGRESS, UPDATE = "_IN_PROGRESS", "UPDATE_IN_PROGRESS"
PENDING = ("CREATE_IN_PROGRESS", UPDATE, "CREATE_FAILED", "UPDATE_FAILED")


@dataclass(frozen=True)
class FailedAction:
    """The last instance action of a server, if it failed after Heat began to change the server."""

    id: str
    """Id of the request that started the action."""
    place: str
    server: str
    action: str
    reason: str
    unchanged: int
    """How many readings in a row found the server in service, as before the resize that failed."""

    @property
    def text(self) -> str:
        return f"Nova: {self.action} of server {self.server} failed: {self.reason}"

    @property
    def final(self) -> bool:
        """Whether Heat waits for nothing; a single reading could be one between two requests of Heat."""
        return self.unchanged > 1


@dataclass(frozen=True)
class _Changed:
    """A server that Heat changes or failed to change."""

    id: str
    place: str
    since: datetime
    last: str
    """Status of the last event."""


class ServerActions:
    """The failed actions of a stack's servers; ``clouds`` are asked in turn until one may read a server.

    What Nova does not show is not reported: waiting does not depend on it.
    """

    def __init__(self, types: ResourceTypes, clouds: Sequence[Cloud]) -> None:
        self.types, self.clouds = types, list(dict.fromkeys(clouds))
        self._read_at: dict[str, float] = {}  # by id of the server
        self._found: dict[str, FailedAction] = {}  # by id of the server
        self._reasons: dict[str, str] = {}  # by id of the request

    def read(self, events: Sequence[Raw]) -> list[FailedAction]:
        """Read the actions of one server that Heat updates, and return the failed ones of all such servers.

        ``events`` are the stack's, oldest first. A reading sends three requests at most.
        """
        updated = [each for each in self._changed(events) if each.last == UPDATE]
        now = time.monotonic()
        due = [each for each in updated if now - self._read_at.get(each.id, -EVERY) >= EVERY]
        for each in sorted(due, key=lambda server: self._read_at.get(server.id, 0.0))[:1]:
            self._read(each)
        return [self._found[each.id] for each in updated if each.id in self._found]

    def read_all(self, events: Sequence[Raw]) -> list[FailedAction]:
        """Return the failed actions of the servers whose change Heat has not completed."""
        changed = self._changed(events)[:MOST]
        for each in changed:
            self._read(each)
        return [self._found[each.id] for each in changed if each.id in self._found]

    def _changed(self, events: Sequence[Raw]) -> list[_Changed]:
        """Return the servers that Heat changes or failed to change."""
        if not self.types.cover(events):
            try:
                self.types.read(events)
            except CloudError:
                return []
        above = containers(events)
        begun = {resource_name(each): each for each in events if str(each["resource_status"]).endswith(IN_PROGRESS)}
        last = {resource_name(each): each for each in events}
        found = []
        for name in self.types.of((SERVER,)):
            if name in begun and last[name]["resource_status"] in PENDING and last[name]["physical_resource_id"]:
                since = datetime.fromisoformat(begun[name]["event_time"])
                status, id_ = last[name]["resource_status"], last[name]["physical_resource_id"]
                found.append(_Changed(id_, place(last[name], above), since, status))
        return found

    def _read(self, server: _Changed) -> None:
        self._read_at[server.id] = time.monotonic()
        before = self._found.pop(server.id, None)
        for cloud in [*self.clouds]:
            try:
                found = self._failed_action(cloud.compute, server, before)
            except (NotFound, NotAllowed):
                continue
            except CloudError:
                return
            self.clouds = [cloud]
            if found:
                self._found[server.id] = found
            return

    def _failed_action(self, nova: Service, server: _Changed, before: FailedAction | None) -> FailedAction | None:
        """Return the last failed action; None if there is none, or Nova still works on the server."""
        path = f"/servers/{quote(server.id, safe='')}"
        since = (server.since - SLACK).strftime("%Y-%m-%dT%H:%M:%SZ")
        listed = nova.get(f"{path}/os-instance-actions", **{"changes-since": since})["instanceActions"]
        action = next((each for each in listed if each["message"]), None)  # the newest comes first
        if action is None:
            return None
        shown = nova.ask("GET", path)["server"]
        if shown["OS-EXT-STS:task_state"] or shown["status"] == "VERIFY_RESIZE":
            return None  # on the next host
        id_ = action["request_id"]
        reason = self._reasons.get(id_) or _reason(nova, f"{path}/os-instance-actions/{quote(id_, safe='')}", shown)
        if not reason:
            return None
        self._reasons[id_] = reason
        waits = action["action"] == "resize" and action is listed[0] and shown["status"] == "ACTIVE"
        seen = before.unchanged if before is not None and before.id == id_ else 0
        name = _line(f"{shown['name']} ({server.id})")
        return FailedAction(id_, server.place, name, _line(action["action"]), reason, seen + 1 if waits else 0)


def _reason(nova: Service, path: str, server: Raw) -> str:
    """Return why an action failed; empty if its last event did not fail, as when another host took the server."""
    newest = nova.newest_microversion
    options: Values = {"microversion": ".".join(map(str, DETAILS))} if newest and newest >= DETAILS else {}
    action = nova.ask("GET", path, **options)["instanceAction"]
    events = action.get("events") or ()
    if events and str(events[0]["result"]).lower() != "error":
        return ""
    failed = [each for each in events if str(each["result"]).lower() == "error"]
    details = next((each["details"] for each in failed if each.get("details")), None)
    fault = (server.get("fault") or {}).get("message")
    where = f" in {failed[0]['event']}" if failed else ""
    return _line(str(details or fault or f"{action['message']}{where}"))


def _line(text: str) -> str:
    """Return a text of Nova on one line: with line ends it could look like other lines of the output."""
    return printable(" ".join(text.split()))
