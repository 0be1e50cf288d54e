"""A lease that this run holds: renewed by a thread, checked before each write, released at the end."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable

from openstack_prep.base.errors import CloudError, LeaseLost, NotFound, PrepError, is_transient
from openstack_prep.cloud.lease.carrier import CHANGED, Group
from openstack_prep.cloud.lease.text import Description, Entry

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

    def __init__(self, group: Group, entry: Entry, spec: str, sent: float) -> None:
        self._group, self._entry, self._spec, self._renewed = group, entry, spec, sent
        self._lost = ""
        self._lock = threading.Lock()
        self._end = threading.Event()
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
