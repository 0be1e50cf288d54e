"""Take a lease: at once, after another run has ended, or from a run that is dead."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass

from openstack_prep.base.errors import CloudError, LeaseHeld, NotAllowed, NotFound
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.lease import process
from openstack_prep.cloud.lease.carrier import CHANGED, Group, Sight, Vanished, project_id, read
from openstack_prep.cloud.lease.lease import DURATION, SWAPS, Lease, now, pause
from openstack_prep.cloud.lease.text import Description, Entry, digest, plain
from openstack_prep.core import interrupts

POLL = 1.0  # seconds between two polls while another run holds it
FAILURES = 4  # transient errors that taking a lease tolerates
PAUSE = 0.5  # seconds after the first of them; doubled after each further one
LOCK_TIMEOUT = 60.0  # seconds to wait for another run; longer than the lease of a killed run lasts

_log = logging.getLogger(__name__)


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
def held(run: CloudRun, sight: Sight, timeout: float = LOCK_TIMEOUT) -> Iterator[Held]:
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


def is_outdated(run: CloudRun, sight: Sight) -> bool:
    """Return whether another run has worked on the spec, or may have, since this sight of its lease.

    The answers that were read meanwhile may show that run's incomplete work. One request.
    """
    if sight.worker is not None:
        return (sight.worker.pid, sight.worker.place) != (os.getpid(), process.here())
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
        place=process.here(),
        pid=pid,
        start=digest(process.started(pid), 3),
        who=plain(process.owner()),
    )


class _Wait:
    """One attempt to take the lease: what was seen of its holder so far."""

    def __init__(self, run: CloudRun, sight: Sight, timeout: float) -> None:
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
        return shlex.join(["openstack-prep", "unlock", "--os-cloud", self.run.admin.name, "--name", self.sight.spec])

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
        time.sleep(PAUSE * 2 ** (self.failures - 1))

    def _first(self) -> Group:
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

    def _confirm_project(self, group: Group, lease: Lease) -> None:
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

    def _try(self, group: Group) -> Lease | None:
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
            if not [each for each in text.entries if each.spec != self.entry.spec]:
                raise NotAllowed("no room for it in the description of the default security group")
            return f"{len(text.entries)} other specs are being applied in the project of spec {self.sight.spec}"
        return ""

    def _is_dead(self, other: Entry) -> bool:
        """Whether a holder's process has ended on this host, or its lease was not renewed for long enough.

        Clocks of two machines are never compared, and time during which this machine slept does not count.
        """
        looked = time.monotonic()
        same = self.seen == (other.run, other.beat)
        self.idle = self.idle + min(looked - self.looked, 3 * POLL) if same else 0.0
        self.seen, self.looked = (other.run, other.beat), looked
        if self.idle >= DURATION:
            return True
        return process.has_ended(other)
