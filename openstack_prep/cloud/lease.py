"""One run at a time per spec: a lease in the description of the project's default security group.

Neutron changes the description only if ``If-Match: revision_number=N`` still matches, and answers 412 otherwise: a
compare-and-swap that every member of a project may do, on a group that every project has. Source: Neutron 29.0.0,
services/revisions/revision_plugin.py, db/securitygroups_db.py (``_ensure_default_security_group``: listing a project's
groups creates the default one), conf/policies/security_group.py.

The text is a block such as ``[openstack-prep 3 ENTRY ENTRY]``; the rest of the description is kept. The number counts
the leases of specs that declare the project. An entry is spec, run and beat (4, 4 and 1 characters, without spaces),
then ``.SINCE.PLACE.PID.START`` and ``.WHO`` if there is room.

Source: proc(5) and pid_namespaces(7): containers share the host's boot id, but not its process ids.
"""

from __future__ import annotations

import base64
import contextlib
import getpass
import hashlib
import logging
import os
import random
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from openstack_prep.base import shell
from openstack_prep.base.errors import CloudError, LeaseHeld, LeaseLost, NotAllowed, NotFound, PrepError, is_transient
from openstack_prep.base.raw import Values
from openstack_prep.cloud.cloud_run import CloudRun, in_project
from openstack_prep.core import interrupts
from openstack_prep.core.model import Resource

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud

# --- leases as text: who is at work on which spec, within the description of a security group. Pure functions ---

LIMIT = 255  # characters; Neutron 29.0.0, extensions/standardattrdescription.py (DESCRIPTION_FIELD_SIZE)
WHO = 40  # characters
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_BLOCK = re.compile(r" ?\[openstack-prep (\d{1,9})((?: [^\s\[\]]+)*)\]")
_ENTRY = re.compile(
    r"(?P<spec>[\w-]{4})(?P<run>[\w-]{4})(?P<beat>[\w-])"
    r"(?:\.(?P<since>\d{1,12})\.(?P<place>[\w-]*)\.(?P<pid>\d{1,9})\.(?P<start>[\w-]*)(?:\.(?P<who>[\w@.-]+))?)?",
    re.ASCII,
)
BARE, PROCESS, WHOLE = range(3)
"""How much of the entries is written: only what excludes others; also the process; also its user and host."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One run at work on one spec of the project.

    ``beat`` counts its renewals. ``since`` is in seconds since 1970 by the holder's clock, for people only.
    """

    spec: str
    run: str
    beat: int = 0
    since: int = 0
    place: str = ""
    """Digest of the holder's host and process namespace; empty if unknown."""
    pid: int = 0
    start: str = ""
    """Digest of the start time of that process."""
    who: str = ""
    """User and host, without characters that would end the entry."""

    def text(self, level: int) -> str:
        words = [f"{self.spec}{self.run}{_ALPHABET[self.beat]}"]
        if level >= PROCESS and self.since:
            words += [str(self.since), self.place, str(self.pid), self.start]
            words += [self.who] if level >= WHOLE and self.who else []
        return ".".join(words)

    def renewed(self) -> Entry:
        return replace(self, beat=(self.beat + 1) % len(_ALPHABET))

    def __str__(self) -> str:
        """Return a text for people that identifies the run, as far as there was room for it."""
        if not self.since:
            return "another run"
        written = time.localtime(self.since)
        day = "" if abs(time.time() - self.since) < 12 * 3600 else "%Y-%m-%d "
        return f"{self.who or 'another run'} (pid {self.pid}) since {time.strftime(f'{day}%H:%M', written)}"


@dataclass(frozen=True, kw_only=True)
class Description:
    """A parsed description: foreign text, and the leases within it."""

    before: str = ""
    after: str = ""
    count: int = 0
    entries: tuple[Entry, ...] = ()
    unknown: tuple[str, ...] = ()
    """Entries that this version cannot read; they are kept."""

    @classmethod
    def read(cls, text: str | None) -> Description:
        found = _BLOCK.search(text or "")
        if found is None or text is None:
            return cls(before=text or "")
        words = [(word, _entry(word)) for word in found[2].split()]
        return cls(
            before=text[: found.start()],
            after=text[found.end() :],
            count=int(found[1]),
            entries=tuple(entry for _, entry in words if entry),
            unknown=tuple(word for word, entry in words if not entry),
        )

    def write(self) -> str | None:
        """Return the text, with as much of the entries as fits; None if even the shortest form does not fit."""
        if not (self.count or self.entries or self.unknown):
            return self.before + self.after
        for level in (WHOLE, PROCESS, BARE):
            words = [str(self.count), *(each.text(level) for each in self.entries), *self.unknown]
            text = f"{self.before}{' ' if self.before else ''}[openstack-prep {' '.join(words)}]{self.after}"
            if len(text) <= LIMIT:
                return text
        return None

    def of_spec(self, spec: str) -> Entry | None:
        """Return the lease on a spec, given by its digest."""
        return next((each for each in self.entries if each.spec == spec), None)

    def of_run(self, entry: Entry) -> Entry | None:
        """Return the lease of a run in this description."""
        return next((each for each in self.entries if (each.spec, each.run) == (entry.spec, entry.run)), None)

    def holding(self, entry: Entry, *, counted: bool = False) -> Description:
        """Return the same description with a lease, replacing any other on that spec."""
        others = tuple(each for each in self.entries if each.spec != entry.spec)
        return replace(self, entries=(*others, entry), count=self.count + counted)

    def without(self, entry: Entry) -> Description:
        """Return the same description without the lease of a run; another run's lease on the same spec is kept."""
        left = tuple(each for each in self.entries if (each.spec, each.run) != (entry.spec, entry.run))
        return replace(self, entries=left)


def strip(text: str | None) -> str:
    """Return a description without leases."""
    return _BLOCK.sub("", text or "", count=1)


def keep(old: str | None, new: str) -> str:
    """Return a new description with the leases of the old one, as far as there is room."""
    return replace(Description.read(old), before=new, after="").write() or new


def digest(text: str, characters: int = 4) -> str:
    """Return a short digest of a text, of letters, digits, hyphen and underscore."""
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode()[:characters]


def plain(who: str) -> str:
    """Return a name without characters that would end an entry."""
    return re.sub(r"[^\w@.-]", "_", who, flags=re.ASCII)[:WHO]


def _entry(word: str) -> Entry | None:
    found = _ENTRY.fullmatch(word)
    if found is None:
        return None
    return Entry(
        spec=found["spec"],
        run=found["run"],
        beat=_ALPHABET.index(found["beat"]),
        since=int(found["since"] or 0),
        place=found["place"] or "",
        pid=int(found["pid"] or 0),
        start=found["start"] or "",
        who=found["who"] or "",
    )


# --- identify this process for others on the same host, and detect whether another process still runs ---

PROC = Path("/proc")


def place() -> str:
    """Return an id of the host since it booted, and of our process namespace; empty if unknown."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink(PROC / 'self/ns/pid')}" if boot else ""
    except OSError:
        return ""


def started(pid: int) -> str:
    """Return when a process started, in ticks since the host booted; empty if unknown.

    For a process that has ended and whose parent has not noticed yet, return "ended".
    """
    try:
        # the name in parentheses may contain anything; the start is field 22, and field 3 follows the name
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return "ended" if fields[0] in "ZX" else fields[19]
    except (OSError, IndexError):
        return ""


def exists(pid: int) -> bool:
    """Whether a process with this id exists in our namespace, including other users', which /proc may hide."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def here() -> str:
    """Return the digest of this host and process namespace, as entries have it; empty if unknown."""
    found = place()
    return found and digest(found)


def has_ended(holder: Entry) -> bool:
    """Whether the process of a lease's holder has ended; False for one that runs elsewhere, which is not known."""
    if not holder.place or holder.place != here():
        return False
    start = started(holder.pid)
    return not exists(holder.pid) or (bool(start) and digest(start, 3) != holder.start)


def owner() -> str:
    """Return user@host, for people."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # the user of a container may have no name
        user = f"uid{os.getuid()}"
    return f"{user}@{socket.gethostname().partition('.')[0]}"


# --- the storage of the lease: the description of a project's default security group, read and swapped ---

CHANGED = (409, 412)
"""Neutron's answer if somebody else has changed the group first."""


class Vanished(PrepError):
    """The project was deleted while its lease was read."""


@dataclass(frozen=True)
class LeaseGroup:
    """A project's default security group as it was read."""

    cloud: Cloud
    id: str
    revision: int
    text: Description

    def again(self) -> LeaseGroup:
        """Read it again, by its id: a list would create the group of a deleted project again."""
        return _group(self.cloud, self.cloud.network.get(f"/security-groups/{self.id}")["security_group"])

    def swap(self, text: Description) -> LeaseGroup:
        """Write the description unless it was changed since it was read; raises CloudError with status 412 then."""
        answer = self.cloud.network.put(
            f"/security-groups/{self.id}",
            {"security_group": {"description": text.write()}},
            headers={"If-Match": f"revision_number={self.revision}"},
        )
        return _group(self.cloud, answer["security_group"])


def _group(cloud: Cloud, raw: dict[str, object]) -> LeaseGroup:
    if "revision_number" not in raw:
        raise NotFound("this Neutron does not support revisions (extension standard-attr-revisions)")
    return LeaseGroup(
        cloud, str(raw["id"]), int(str(raw["revision_number"])), Description.read(str(raw.get("description") or ""))
    )


@dataclass(frozen=True)
class LeaseReading:
    """The lease of a spec as it was before anything else was read.

    ``project`` is where the lease is stored, None for the connection's own. ``group`` is None if it was not readable.
    """

    spec: str
    project: Resource | None
    declared: bool = False
    """Whether the spec declares the project."""
    existed: bool = True
    """Whether the project existed."""
    group: LeaseGroup | None = None
    ended: bool = False
    """Whether the holder's process had ended by then, such as after a kill: nobody was at work."""

    @property
    def holder(self) -> Entry | None:
        """Who has the lease."""
        return self.group.text.of_spec(digest(self.spec)) if self.group else None

    @property
    def worker(self) -> Entry | None:
        """Who was at work on the spec."""
        return None if self.ended else self.holder


def look(run: CloudRun, spec: str, project: Resource | None, *, declared: bool = False) -> LeaseReading:
    """Return the present lease; problems are reported when the lease is taken. One request."""
    group, existed = None, True
    with contextlib.suppress(CloudError):
        existed = project is None or project_id(run, project) is not None
        group = read(run, project) if existed else None
    seen = LeaseReading(spec, project, declared, existed, group)
    return replace(seen, ended=seen.holder is not None and has_ended(seen.holder))


def project_id(run: CloudRun, project: Resource | None) -> str | None:
    found = run.find_project_id(project)
    return None if found == "None" else found  # the id for an unscoped token


def read(run: CloudRun, project: Resource | None) -> LeaseGroup:
    """Return the default group of a project, read by whoever may see it; raises NotFound, NotAllowed."""
    owner = project_id(run, project)
    if owner is None:
        raise NotFound("the connection is not scoped to a project")

    try:
        # the whole list, because the scan needs it, too
        found, cloud = _default_of(in_project(run, "security-groups", "security_group", owner)), run.admin
    except NotAllowed:
        found = []
    if not found and (tenant := run.find_tenant(project)) not in (None, run.admin):
        assert tenant is not None
        listed = tenant.network.list("/security-groups", "security_groups", name="default", project_id=owner)
        found, cloud = _default_of(listed), tenant
    if not found:
        raise NotFound("the credentials in use cannot see the project's default security group")
    return _group(cloud, found[0])


def _default_of(groups: Sequence[Values]) -> list[Values]:
    return [group for group in groups if group.get("name") == "default"]


def unlock(sight: LeaseReading) -> None:
    """Remove the lease of the run that was seen to hold it; raises LeaseHeld if another run holds it by then."""
    group, holder = sight.group, sight.holder
    while group is not None and holder is not None:
        try:
            group.swap(group.text.without(holder))
            return
        except CloudError as error:
            if error.status not in CHANGED:
                raise
        group = group.again()
        now = group.text.of_spec(holder.spec)
        if now is not None and now.run != holder.run:
            raise LeaseHeld(f"spec {sight.spec} is now being applied by {now}; nothing was changed")
        holder = now


# --- a lease that this run holds: renewed by a thread, checked before each write, released at the end ---

DURATION = 30.0  # seconds without a renewal after which other runs may take the lease; the same in every version
MARGIN = 5.0  # seconds before that time at which this run itself considers it lost
RENEWAL = 8.0  # seconds between two renewals
RELEASES = 3  # attempts to release it
RELEASE_PAUSE = 1.0  # seconds before the second one; twice as much before the third
PAUSE = 0.05  # seconds; see ``pause``
SWAPS = 20  # attempts while other writers change the same description

_log = logging.getLogger(__name__)


def now() -> float:
    """Return seconds of a clock that continues while the machine is suspended."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def pause(swaps: int) -> float:
    """Return seconds to wait after so many attempts that other writers were faster than.

    At random and longer each time: of many runs that start together, each would otherwise be in the way of all others.
    """
    return random.uniform(0, PAUSE * 2 ** min(swaps, 5))


class Lease:
    """A lease that this run holds, renewed by its own thread until it is released."""

    def __init__(self, group: LeaseGroup, entry: Entry, spec: str, sent: float) -> None:
        self._group, self._entry, self._spec, self._renewed = group, entry, spec, sent
        self._lost = ""
        self._lock = threading.Lock()
        self._end = threading.Event()
        # a daemon: a run that exits at once must not wait for a renewal
        threading.Thread(target=self._keep, name="lease", daemon=True).start()

    def check(self) -> None:
        """Return if the run still holds it, else raise LeaseLost; sends a request only after a long absence."""
        if now() - self._renewed > DURATION - MARGIN:
            try:
                self._renew()
            except LeaseLost:
                raise
            except PrepError as error:
                raise LeaseLost(f"{self._words} could not be renewed: {error}") from error
        if self._lost:
            raise LeaseLost(self._lost)

    def release(self) -> None:
        """Release it; never raises, because an unreleased lease expires."""
        self.abandon()
        with self._lock:
            if self._lost:
                return
            # an unreleased lease lets the next run wait for its whole duration, which a retry mostly saves
            for attempt in range(RELEASES):
                time.sleep(attempt * RELEASE_PAUSE)
                try:
                    self._swap(lambda text: text.without(self._entry))
                except (NotFound, LeaseLost) as error:
                    # it was deleted with its project, or released by a request whose answer was lost
                    _log.debug("%s", error)
                except PrepError as error:
                    if is_transient(error) and attempt < RELEASES - 1:
                        continue
                    _log.warning("%s could not be released and expires in %.0f s: %s", self._words, DURATION, error)
                return

    def abandon(self) -> None:
        """Stop renewing it: it expires later than the requests in flight end."""
        self._end.set()

    @property
    def _words(self) -> str:
        return f"the lease on spec {self._spec}"

    def _keep(self) -> None:
        while not self._end.wait(RENEWAL):
            try:
                self._renew()
            except LeaseLost:
                return
            except PrepError as error:
                _log.debug("%s is not renewed yet, retrying: %s", self._words, error)

    def _renew(self) -> None:
        with self._lock:
            if self._end.is_set() or self._lost:
                return
            # before the request: other runs count from when they see it, which is later
            sent = now()
            self._entry = self._entry.renewed()
            try:
                self._swap(lambda text: text.holding(self._entry))
            except NotFound:
                self._lost = f"{self._words} was deleted together with the default security group of its project"
                raise LeaseLost(self._lost) from None
            except LeaseLost as error:
                self._lost = str(error)
                raise
            self._renewed = sent

    def _swap(self, change: Callable[[Description], Description]) -> None:
        for swaps in range(1, SWAPS + 1):
            try:
                self._group = self._group.swap(change(self._group.text))
                return
            except CloudError as error:
                if error.status not in CHANGED:
                    raise
            time.sleep(pause(swaps))
            self._group = self._group.again()
            if self._group.text.of_run(self._entry) is None:
                other = self._group.text.of_spec(self._entry.spec)
                who = (
                    f"it is now held by {other}"
                    if other
                    else "it was removed (by openstack-prep unlock or another tool)"
                )
                raise LeaseLost(f"{self._words} was lost: {who}; run the command again")
        raise LeaseLost(f"{self._words} could not be renewed: the description of the security group keeps changing")


# --- take a lease: at once, after another run has ended, or from a run that is dead -----

POLL = 1.0  # seconds between two polls while another run holds it
FAILURES = 4  # transient errors that taking a lease tolerates
FIRST_PAUSE = 0.5  # seconds after the first of them; doubled after each further one
LOCK_TIMEOUT = 60.0  # seconds to wait for another run; longer than the lease of a killed run lasts


@dataclass(frozen=True)
class Held:
    """The effect of a lease on a plan: whether it may be ``untouched``, and the check before each write."""

    untouched: bool
    """Whether nobody else can have worked on the spec since its lease was seen."""
    lease: Lease | None = None

    def check(self) -> None:
        """Raise LeaseLost if the run no longer holds it; without a lease nothing can be lost."""
        if self.lease is not None:
            self.lease.check()


@contextlib.contextmanager
def held(run: CloudRun, sight: LeaseReading, timeout: float = LOCK_TIMEOUT) -> Iterator[Held]:
    """Hold the lease of a spec during a block; if it cannot be stored, warn and continue without it.

    Raises LeaseHeld if somebody else holds it for longer than ``timeout`` seconds, Vanished if the project is deleted.
    After a KeyboardInterrupt it is left to expire, because requests may still be in flight.
    """
    try:
        found = _Wait(run, sight, timeout).take()
    except CloudError as error:
        if error.retryable:
            raise
        _log.warning("no lease on spec %s, so concurrent runs are not prevented: %s", sight.spec, error)
        yield Held(untouched=True)
        return
    assert found.lease is not None
    try:
        yield found
    except Exception:
        found.lease.release()
        raise
    except BaseException:
        found.lease.abandon()
        raise
    found.lease.release()


def is_outdated(run: CloudRun, sight: LeaseReading) -> bool:
    """Return whether another run has worked on the spec, or may have, since this sight of its lease.

    The answers that were read meanwhile may show that run's incomplete work. One request.
    """
    if sight.worker is not None:
        return (sight.worker.pid, sight.worker.place) != (os.getpid(), here())
    try:
        if sight.group is not None:
            return sight.group.again().revision != sight.group.revision
        return not sight.existed and project_id(run.fresh(), sight.project) is not None
    except NotFound:  # it was deleted with its project
        return True
    except CloudError:
        return False


def _entry_of(spec: str) -> Entry:
    """Return the entry of a new run of this process."""
    pid = os.getpid()
    return Entry(
        spec=digest(spec),
        run=secrets.token_urlsafe(3),
        since=int(time.time()),
        place=here(),
        pid=pid,
        start=digest(started(pid), 3),
        who=plain(owner()),
    )


class _Wait:
    """One attempt to take the lease: what was seen of its holder so far."""

    def __init__(self, run: CloudRun, sight: LeaseReading, timeout: float) -> None:
        self.run, self.sight, self.timeout = run, sight, timeout
        self.untouched = sight.holder is None and (sight.group is not None or not sight.existed)
        self.seen: tuple[str, int] | None = None
        self.looked = time.monotonic()
        self.failures = 0
        self.idle = 0.0  # seconds during which this run has seen no renewal
        self.entry = _entry_of(sight.spec)

    @property
    def _unlock(self) -> str:
        """The command that ends the lease; a project other than the connection's is named by the spec alone."""
        if self.sight.project is not None:
            return "openstack-prep unlock SPEC"
        return shell.join(["openstack-prep", "unlock", "--os-cloud", self.run.admin.name, "--name", self.sight.spec])

    def take(self) -> Held:
        """Return the lease; raises LeaseHeld, Vanished, CloudError."""
        group = self.sight.group or self._first()
        ends, swaps, reported = time.monotonic() + self.timeout, 0, False
        while True:
            interrupts.raise_passed_on()
            why, fix = self._blocking_reason(group.text), f"wait until it ends, or, if that run is dead: {self._unlock}"
            if not why:
                lease = self._try(group)
                if lease is not None:
                    self._confirm_project(group, lease)
                    return Held(self.untouched, lease)
                swaps += 1
                if swaps > SWAPS:
                    why = f"the default security group of the project of spec {self.sight.spec} keeps changing"
                    fix = (
                        "other specs of the project take their leases there: run again, or wait longer (--lock-timeout)"
                    )
            # whoever held it may have changed anything: the plan is created again under the lease
            self.untouched = False
            if why and time.monotonic() >= ends:
                raise LeaseHeld(f"{why}; {fix}")
            if why and not reported:
                _log.warning("%s; waiting", why)
                reported = True
            time.sleep(POLL if why else pause(swaps))
            try:
                group = group.again()
            except NotFound:
                raise Vanished(f"the project of spec {self.sight.spec} was deleted by another run") from None
            except CloudError as error:
                self._tolerate(error)

    def _tolerate(self, error: CloudError) -> None:
        """Return after a pause if the error may pass, but not too often; else raise it.

        After a 500 nobody knows whether the work was done, so the group is read before it is written again.
        """
        self.failures += 1
        if not error.retryable or self.failures > FAILURES:
            raise error
        _log.debug("taking the lease on spec %s, retrying: %s", self.sight.spec, error)
        time.sleep(FIRST_PAUSE * 2 ** (self.failures - 1))

    def _first(self) -> LeaseGroup:
        """Return the group of a project that this run has created, or could not read before."""
        group = None
        while group is None:
            try:
                group = read(self.run.fresh(), self.sight.project)
            except CloudError as error:
                self._tolerate(error)
        if group.text.count or group.text.of_spec(self.entry.spec):
            self.untouched = False
        return group

    def _confirm_project(self, group: LeaseGroup, lease: Lease) -> None:
        """Raise Vanished if the group outlives its project, which another run has just deleted.

        Project.delete deletes the group after the project: listing groups in between creates the group again, so a
        lease that is the first in an old project is suspect; and a run that was killed in between leaves the group,
        with its own lease.
        """
        sight = self.sight
        if not sight.declared or not sight.existed or (group.text.count and self.untouched):
            return
        owner = self.run.find_project_id(sight.project)
        if owner == self.run.admin.project_id:
            return
        try:
            self.run.admin.identity.get(f"/projects/{owner}")
        except NotFound:
            lease.abandon()
            group.cloud.network.delete(f"/security-groups/{group.id}")
            raise Vanished(f"the project of spec {sight.spec} was deleted by another run") from None
        except CloudError as error:
            _log.debug("cannot check whether project %s exists: %s", owner, error)

    def _try(self, group: LeaseGroup) -> Lease | None:
        """Write our entry; None if the group must be read again: somebody else has changed it, or a transient error."""
        sent = now()
        ours = group.text.of_run(self.entry)  # from a request whose answer was lost
        text = group.text.holding(self.entry, counted=self.sight.declared and ours is None)
        try:
            return Lease(group.swap(text), self.entry, self.sight.spec, sent)
        except NotFound:
            raise Vanished(f"the project of spec {self.sight.spec} was deleted by another run") from None
        except CloudError as error:
            if error.status not in CHANGED:
                self._tolerate(error)
        return None

    def _blocking_reason(self, text: Description) -> str:
        """Return who holds the lease, or why there is no room for a new one; empty if it is free."""
        other = text.of_spec(self.entry.spec)
        if other is not None and other.run != self.entry.run and not self._is_dead(other):
            return f"spec {self.sight.spec} is being applied by {other}"
        if text.holding(self.entry, counted=self.sight.declared).write() is None:
            if not [entry for entry in text.entries if entry.spec != self.entry.spec]:
                raise NotAllowed("no room for it in the description of the default security group")
            return f"{len(text.entries)} other specs are being applied in the project of spec {self.sight.spec}"
        return ""

    def _is_dead(self, other: Entry) -> bool:
        """Whether a holder's process has ended on this host, or its lease was not renewed for long enough.

        Clocks of two machines are never compared, and time during which this machine slept does not count.
        """
        looked = time.monotonic()
        # a renewal changes the beat, so an entry that stays the same is one that nobody renews
        same = self.seen == (other.run, other.beat)
        self.idle = self.idle + min(looked - self.looked, 3 * POLL) if same else 0.0
        self.seen, self.looked = (other.run, other.beat), looked
        if self.idle >= DURATION:
            return True
        return has_ended(other)
