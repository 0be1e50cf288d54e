"""How many signals the wait conditions of a stack still need.

A template may compute a condition's count, so it is read from the event with which Heat began to wait: one event alone
has the resolved properties. The attribute ``data`` has one entry per signal; a second signal with the same id replaces
the first one.

Source: Orchestration API v1, "Show event details", "Show resource data"; Heat 26.0.0,
heat/engine/resources/wait_condition.py, heat/engine/resources/openstack/heat/wait_condition.py and
heat/engine/resources/aws/cfn/wait_condition.py (names of properties and attributes).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from urllib.parse import quote

from openstack_prep.base.errors import CloudError, is_transient
from openstack_prep.base.raw import Raw, Values
from openstack_prep.resources.heat.heat_places import containers, place, resource_name, stack_path
from openstack_prep.resources.heat.heat_types import ResourceTypes

WAIT_CONDITIONS = ("OS::Heat::WaitCondition", "AWS::CloudFormation::WaitCondition")
NEVER = -1
PRESET = re.compile(r"failure$|before ")
"""Signals that the handle of a shipped template (rke2-node.yaml) has from the start."""
SHOWN = 5
BEGINS = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS")


@dataclass(frozen=True)
class Awaited:
    """The signals that one or more wait conditions need."""

    count: int
    received: int
    until: float
    """When Heat gives up, in seconds since the epoch."""
    since: float
    """When Heat began to wait."""
    places: tuple[str, ...]
    """The conditions that wait, such as servers.1.ready for the signal of one server."""

    @property
    def text(self) -> str:
        number = f"{self.count - self.received} of {self.count} cloud-init signal{'s' if self.count > 1 else ''}"
        names = ", ".join(self.places[:SHOWN])
        more = len(self.places) - SHOWN
        begun = time.strftime("%H:%M", time.localtime(self.since))
        return f"{number} for {names}{f' and {more} more' if more > 0 else ''} since {begun}"


class Signals:
    """The signals that a stack waits for; each reading sends one request at most."""

    def __init__(self, types: ResourceTypes) -> None:
        self.heat, self.types = types.heat, types
        self._refused = False
        self._read: dict[str, tuple[int, Awaited]] = {}  # how many signals there were when, by event
        self.complete = False
        """Whether everything was read that decides what is awaited."""
        self.awaited: Awaited | None = None

    def read(self, events: Sequence[Raw]) -> None:
        """Read more of what is awaited; ``events`` are the stack's, oldest first.

        What Heat does not show is not reported: waiting does not depend on it.
        """
        try:
            if request := self._next(events):
                request()
            self.complete = self._next(events) is None
        except CloudError as error:
            if not is_transient(error):
                self._refused = self.complete = True
        waiting = [self._read[each["id"]][1] for each in self._begun(events) if each["id"] in self._read]
        self.awaited = None
        if waiting and self.complete:
            counts, received = sum(each.count for each in waiting), sum(each.received for each in waiting)
            until, since = min(each.until for each in waiting), min(each.since for each in waiting)
            places = sorted(each.places[0] for each in waiting if each.received < each.count)
            self.awaited = Awaited(counts, received, until, since, tuple(places)) if places else None

    def _next(self, events: Sequence[Raw]) -> Callable[[], None] | None:
        """Return what reads the next missing piece; None if nothing is missing."""
        if self._refused:
            return None
        if not self.types.cover(events):
            return partial(self.types.read, events)
        signals = sum(str(each["resource_status"]).startswith("SIGNAL_") for each in events)
        for event in self._begun(events):
            if event["id"] not in self._read:
                return partial(self._read_needed, event, place(event, containers(events)))
            if self._read[event["id"]][0] != signals:
                return partial(self._read_received, event, signals)
        return None

    def _begun(self, events: Sequence[Raw]) -> Iterator[Raw]:
        """Yield, per condition that waits, the event with which its waiting began."""
        last = {resource_name(each): each for each in events}
        for key in [] if self._refused else self.types.of(WAIT_CONDITIONS):
            if key in last and last[key]["resource_status"] in BEGINS:
                yield last[key]

    def _read_needed(self, event: Raw, condition: str) -> None:
        properties = self._show(event, f"/events/{event['id']}")["event"].get("resource_properties") or {}
        values = {name.lower(): value for name, value in properties.items()}
        begun = datetime.fromisoformat(event["event_time"]).timestamp()
        count, until = int(values.get("count") or 1), begun + float(values["timeout"])
        awaited = Awaited(count, 0, until, begun, (condition,))
        self._read[event["id"]] = NEVER, awaited

    def _read_received(self, event: Raw, signals: int) -> None:
        attributes = self._show(event, "")["resource"].get("attributes") or {}
        found = json.loads(attributes.get("data") or attributes.get("Data") or "{}")
        preset = sum(bool(PRESET.match(each)) for each in found)
        before, awaited = self._read[event["id"]]
        count = awaited.count - preset if before == NEVER else awaited.count
        self._read[event["id"]] = signals, replace(awaited, count=count, received=min(count, len(found) - preset))

    def _show(self, event: Raw, what: str) -> Values:
        """Return a resource or its event; signed URLs and data of signals are not logged."""
        path = f"/stacks/{stack_path(event)}/resources/{quote(event['resource_name'], safe='')}{what}"
        return self.heat.ask("GET", path, log=False)
