"""Wait for Heat, report its events, and collect the reasons of failures, including those in nested stacks.

Source: Orchestration API v1, "Events" (nested_depth since Newton).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

import tenacity

from openstack_prep.base import secret_forms, shell
from openstack_prep.base.errors import CloudError, NotAllowed, NotFound, ResourceFailed, WaitTimeout, is_transient
from openstack_prep.base.raw import Raw, Values
from openstack_prep.base.style import first_of, printable
from openstack_prep.resources.heat.stacks import DEPTH, SERVER

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud
    from openstack_prep.cloud.service import Service


# The places of events in the tree of stacks, such as nodes.0.server; pure functions.
#
# Source: Orchestration API v1, "Events" (nested_depth since Newton).

ResourceName = tuple[str, str]
"""Path of the stack, and name of the resource in it."""


def stack_path(record: Raw) -> str:
    """Return name and id of the stack of a resource or an event, as in a URL."""
    return next(str(link["href"]) for link in record["links"] if link["rel"] == "stack").partition("/stacks/")[2]


def resource_name(record: Raw) -> ResourceName:
    """Return what identifies the resource of a record of it, or of an event."""
    return stack_path(record), str(record["resource_name"])


def stack_words(event: Raw) -> tuple[str, str]:
    """Return id and name of the event's stack; a resource that is a stack has either of them as its id."""
    href = next(str(link["href"]) for link in event["links"] if link["rel"] == "stack")
    return href.rpartition("/")[2], href.rpartition("/")[0].rpartition("/")[2]


def is_of_a_stack(event: Raw) -> bool:
    """Whether the event describes a stack as a whole instead of a resource in it."""
    return str(event["physical_resource_id"]) == stack_words(event)[0]


def containers(events: Sequence[Raw]) -> Mapping[str, Raw]:
    """Return the events of resources, by what they have created."""
    return {event["physical_resource_id"]: event for event in events if not is_of_a_stack(event)}


def place(event: Raw, above: Mapping[str, Raw]) -> str:
    """Return the place of the event in the tree; ``above`` has its containers."""
    parent = next((above[word] for word in stack_words(event) if word in above), None)
    prefix = f"{place(parent, above)}." if parent is not None else ""
    return prefix + str(event["resource_name"])


# --- The types of a stack's resources, which events do not name ------------------------------------------
# Source: Orchestration API v1, "List resources" (nested_depth).


class ResourceTypes:
    """The types of a stack's resources, those of nested stacks included; each reading sends one request."""

    def __init__(self, heat: Service, path: str) -> None:
        self.heat, self.path = heat, path
        self._stacks: frozenset[str] = frozenset()
        self._types: dict[ResourceName, str] = {}

    def cover(self, events: Sequence[Raw]) -> bool:
        """Whether the types of all stacks of these events were read; Heat creates nested stacks as it works."""
        return self._stacks.issuperset(map(stack_path, events))

    def read(self, events: Sequence[Raw]) -> None:
        """Read the types again; ``events`` are those known before."""
        answer = self.heat.ask("GET", f"{self.path}/resources", params={"nested_depth": DEPTH})
        listed = answer["resources"]
        self._types = {resource_name(each): str(each["resource_type"]) for each in listed}
        self._stacks = frozenset(map(stack_path, events))

    def of(self, types: Collection[str]) -> list[ResourceName]:
        """Return the resources of some types, sorted."""
        return sorted(name for name, kind in self._types.items() if kind in types)


# Instance actions that Nova failed to carry out on the servers that Heat changes: Heat does not report them.
#
# When no host can hold a server's new flavor, Nova leaves the server ACTIVE, and Heat waits for VERIFY_RESIZE until the
# stack's timeout.
#
# Source: Compute API, "Servers actions" (changes-since since microversion 2.58; details of events since 2.84, by
# default for administrators only: Nova 34.0.0, nova/policies/instance_actions.py); Heat 27.0.1,
# heat/engine/clients/os/nova.py, check_resize: only a status other than RESIZE, ACTIVE and VERIFY_RESIZE is an error.

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
        begun = {resource_name(event): event for event in events if str(event["resource_status"]).endswith(IN_PROGRESS)}
        last = {resource_name(event): event for event in events}
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
    failed = [event for event in events if str(event["result"]).lower() == "error"]
    details = next((each["details"] for each in failed if each.get("details")), None)
    fault = (server.get("fault") or {}).get("message")
    where = f" in {failed[0]['event']}" if failed else ""
    return _line(str(details or fault or f"{action['message']}{where}"))


def _line(text: str) -> str:
    """Return a text of Nova on one line: with line ends it could look like other lines of the output."""
    return printable(" ".join(text.split()))


# --- How many signals the wait conditions of a stack still need ------------------------------------------
# A template may compute a condition's count, so it is read from the event with which Heat began to wait: one event
# alone has the resolved properties. The attribute ``data`` has one entry per signal; a second signal with the same id
# replaces the first one.
#
# Source: Orchestration API v1, "Show event details", "Show resource data"; Heat 26.0.0,
# heat/engine/resources/wait_condition.py, heat/engine/resources/openstack/heat/wait_condition.py and
# heat/engine/resources/aws/cfn/wait_condition.py (names of properties and attributes).

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
        begun = time.strftime("%H:%M", time.localtime(self.since))
        return f"{number} for {first_of(self.places, SHOWN)} since {begun}"


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
        """Return a resource or its event; with its signed URLs and the data of its signals."""
        path = f"/stacks/{stack_path(event)}/resources/{quote(event['resource_name'], safe='')}{what}"
        return self.heat.ask("GET", path)


PAUSE, LONGEST = 0.3, 5.0  # seconds between two polls
SHARE = 0.03  # share of the time waited so far by which a poll may be late
EVENTS = 0.75  # minimum seconds between two reads of events: nested events cost Heat more than a poll
GRACE = 120.0  # seconds beyond the stack's own timeout, at which Heat itself gives up
TIMEOUT_MINS = 60  # Heat's default
PATIENCE = 60.0  # seconds after which the end of the waiting, what it is for and how to abort it are reported
GIVE_UP = {"CREATE": "openstack stack delete", "UPDATE": "openstack stack cancel --no-rollback"}
CANCELLED = "(user triggered cancel)"
"""The end of Heat's text about resources that it stopped because another one failed."""


class Waiting:
    """Wait for a stack; ``tell`` is called with each resource that changes.

    After ``patience`` seconds it is also called with the time at which waiting ends; with ``signals``, with the number
    of signals that are outstanding, again whenever it changes; and with ``servers``, with what Nova failed to do.
    ``is_own``: the spec manages the stack, so that it also says how to abort the operation.
    ``cancels``: an update that waits for nothing but resizes that failed is cancelled; Heat stops nothing for this.
    Reasons of failures repeat values of hidden parameters (Heat 27.0.0, engine/resource.py, properties.py), so
    ``hidden`` returns the values that no text may contain. ``is_private`` tells of a
    place whether its reasons may repeat values that nobody here knows, so that they are not reported at all.
    """

    def __init__(
        self,
        heat: Service,
        path: str,
        tell: Callable[[str], None],
        patience: float | None = None,
        signals: Signals | None = None,
        servers: ServerActions | None = None,
        *,
        cancels: bool = False,
        is_own: bool = True,
        hidden: Callable[[], Iterable[str]] = tuple,
        is_private: Callable[[str], bool] = lambda place: False,
    ) -> None:
        self.heat, self.path, self.tell, self.signals, self.servers = heat, path, tell, signals, servers
        self.cancels, self.is_own, self.hidden, self.is_private = cancels, is_own, hidden, is_private
        self.until = 0.0  # since the epoch
        self.silent_until = time.monotonic() + (PATIENCE if patience is None else patience)
        self.reported_wait = False
        self.awaited: Awaited | None = None  # as reported
        self.events: list[Raw] = []  # oldest first
        self.begun = ""  # when the work began: time of an event
        self.reported: set[str] = set()
        self.failed: dict[str, FailedAction] = {}  # reported ones, by place
        self.faults: dict[str, tuple[str, str]] = {}  # action and reason, by place
        self.rolling_back = False
        self.read = -EVENTS  # when

    def end(self, timeout_mins: int | None = None) -> Raw | None:
        """Return the stack when nothing is in progress any more; None if it no longer exists.

        Temporary failures of Heat are tolerated. Raises WaitTimeout.
        """
        seconds = (timeout_mins or TIMEOUT_MINS) * 60 + GRACE
        self.until = time.time() + seconds
        try:
            return tenacity.Retrying(
                retry=tenacity.retry_if_result(in_progress) | tenacity.retry_if_exception(is_transient),
                stop=tenacity.stop_after_delay(seconds),
                wait=lambda state: min(LONGEST, max(PAUSE, SHARE * (state.seconds_since_start or 0.0))),
            )(self._look)
        except tenacity.RetryError as error:
            last = error.last_attempt.exception() or "it is still in progress"
            raise WaitTimeout(f"{self.path} after {seconds:.0f} s: {last}; see the stack's events") from error

    def _look(self) -> Raw | None:
        try:
            stack = self.heat.ask("GET", self.path, params={"resolve_outputs": False})["stack"]
            if stack["stack_status"] == "DELETE_COMPLETE":  # Heat still lists its name for a while
                return None
            if not in_progress(stack) or time.monotonic() - self.read >= EVENTS:
                self._read_events()
        except NotFound:
            return None
        if in_progress(stack) and time.monotonic() >= self.silent_until:
            self._tell_what_for(stack)
            self._tell_failed_actions()
        return dict(stack)

    def _tell_what_for(self, stack: Raw) -> None:
        """Report until when the stack is waited for, and for what; again only when the number of signals changes."""
        abort = GIVE_UP.get(str(stack["stack_status"]).partition("_")[0])
        awaited = None
        if self.signals is not None and abort:
            self.signals.read(self.events)
            if not self.signals.complete:
                return
            awaited = self.signals.awaited
        if self.reported_wait and awaited in (None, self.awaited):
            return
        self.reported_wait, self.awaited = True, awaited
        what_for = f", waiting for {awaited.text}" if awaited else ""
        until = time.strftime("%H:%M", time.localtime(min(self.until, awaited.until) if awaited else self.until))
        give_up = f"; to abort: {abort} {stack['id']}" if abort and self.is_own else ""
        self.tell(f"is {stack['stack_status']}{what_for} (timeout {until}){give_up}")

    def _tell_failed_actions(self) -> None:
        """Report what Nova failed to do; cancel the update if Heat waits for nothing else."""
        if self.servers is None:
            return
        failed = self.servers.read(self.events)
        for each in failed:
            if each.id != getattr(self.failed.get(each.place), "id", None):
                self.tell(f"{each.place} {self._shown(each.place, each.text)}")
            self.failed[each.place] = each
        hopeless = {each.place for each in failed if each.final}
        if self.cancels and not self.rolling_back and hopeless and hopeless.issuperset(self._in_progress()):
            self.cancels = False
            self.tell(f"is cancelled, because Heat would wait until {self._ends} for what Nova has given up")
            try:
                self.heat.post(f"{self.path}/actions", {"cancel_without_rollback": None})
            except CloudError as error:
                self.tell(f"cannot be cancelled: {error}")

    def _in_progress(self) -> Iterator[str]:
        """Yield the places of resources that are in progress; stacks that contain such resources are left out.

        What an earlier update left in progress has an empty place: it counts as something else.
        """
        above, stacks = containers(self.events), {word for each in self.events for word in stack_words(each)}
        last = {resource_name(each): each for each in self.events if not is_of_a_stack(each)}
        for each in last.values():
            busy = str(each["resource_status"]).endswith("_IN_PROGRESS")
            if busy and each["physical_resource_id"] not in stacks:
                yield place(each, above) if each["event_time"] >= self.begun else ""

    def raise_for_failure(self, stack: Raw | None) -> None:
        """Raise ResourceFailed if the work failed, with the reason of each resource that caused it."""
        if stack is None or stack["stack_status"] in ("CREATE_COMPLETE", "UPDATE_COMPLETE", "CHECK_COMPLETE"):
            return
        reason = "; ".join(self._reasons(stack))
        name, status = stack["stack_name"], stack["stack_status"]
        raise ResourceFailed(
            f"stack {name} ({stack['id']}) is {status}: {reason}; fix the cause and run this command again"
        )

    def _reasons(self, stack: Raw) -> list[str]:
        """Return what Heat and Nova report about the resources that caused a failure."""
        of_nova = {at: each for at, each in self.failed.items() if at in self.faults}
        of_nova |= {each.place: each for each in self.servers.read_all(self.events)} if self.servers else {}
        inner = {at for at in self.faults if not any(fault.startswith(f"{at}.") for fault in self.faults)}
        reasons = [] if inner else [("", [str(stack["stack_status_reason"])])]
        for at in sorted(inner | of_nova.keys()):
            _, of_heat = self.faults.get(at, ("", ""))
            texts = [of_heat] if of_heat else []
            if at in of_nova and of_nova[at].reason not in of_heat:
                texts.append(of_nova[at].text)
            if not of_heat and of_nova[at].unchanged:
                texts.append(f"Heat stops waiting for this at {self._ends}, and updates the server again only then")
            reasons.append((at, texts))
        causes = [(at, texts) for at, texts in reasons if not texts[-1].endswith(CANCELLED)] or reasons
        return [f"{at}: {self._shown(at, *texts)}" if at else self._shown(at, *texts) for at, texts in causes]

    def _shown(self, at: str, *texts: str) -> str:
        """Return a reason without secrets, of texts that are cut (Heat 27.0.1, db/models.py, Event: 255 characters)."""
        if self.is_private(at):
            stack_id = self.path.rpartition("/")[2]
            command = shell.join(["openstack", "stack", "event", "list", "--nested-depth", str(DEPTH), stack_id])
            return f"its reason is not shown, because it may repeat a hidden parameter; {command} has what Heat knows"
        hidden = [*self.hidden()]
        return "; ".join(secret_forms.hide(text, hidden) for text in texts)

    @property
    def _ends(self) -> str:
        """When Heat gives up."""
        return time.strftime("%H:%M", time.localtime(self.until - GRACE))

    def _read_events(self) -> None:
        answer = self.heat.ask("GET", f"{self.path}/events", params={"nested_depth": DEPTH})
        listed = answer["events"]
        self.read = time.monotonic()
        listed.reverse()  # the newest events came first, and times are whole seconds
        self.events = listed
        root = self.path.rpartition("/")[2]
        self.begun = max((each["event_time"] for each in listed if _begins(each, root)), default="")
        events = [each for each in listed if each["event_time"] >= self.begun]
        above = containers(listed)
        stacks = {word for each in listed for word in stack_words(each)}
        for each in sorted(events, key=lambda event: str(event["event_time"])):
            if each["id"] in self.reported:
                continue
            self.reported.add(each["id"])
            if not is_of_a_stack(each):
                self._note(each, place(each, above), container=each["physical_resource_id"] in stacks)
            elif each["resource_status"] == "ROLLBACK_IN_PROGRESS":
                self.rolling_back = True

    def _note(self, event: Raw, place: str, *, container: bool) -> None:
        """Report an event, and store why a resource failed until it succeeds; during a rollback the reason is kept."""
        self.tell(f"{place} {event['resource_status']}")
        action, _, status = str(event["resource_status"]).rpartition("_")
        failed, _ = self.faults.get(place, ("", ""))
        if status == "FAILED" and not container and not (failed and self.rolling_back):
            self.faults[place] = action, event["resource_status_reason"]
        elif status == "COMPLETE" and not self.rolling_back and (action != "DELETE" or failed == "DELETE"):
            self.faults.pop(place, None)


def in_progress(stack: Raw | None) -> bool:
    return stack is not None and str(stack["stack_status"]).endswith("_IN_PROGRESS")


def _begins(event: Raw, root: str) -> bool:
    """Whether the work on the whole stack began; a rollback is the end of it."""
    status = str(event["resource_status"])
    return str(event["physical_resource_id"]) == root and status.endswith("_IN_PROGRESS") and "ROLLBACK" not in status
