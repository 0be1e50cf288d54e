"""A lease while it is held: renewed by a thread, checked before each write, released at the end."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from openstack_prep.base.errors import CloudError, LeaseLost, NotFound, PrepError
from openstack_prep.cloud.lease.carrier import CHANGED, Group
from openstack_prep.cloud.lease.text import Description, Entry

DURATION = 30.0  # seconds without a renewal after which others may take the lease; the same in every version
MARGIN = 5.0  # seconds before that at which we take it for lost ourselves
RENEWAL = 8.0  # seconds between two renewals
SWAPS = 20  # attempts while others change the same description

_log = logging.getLogger(__name__)


def now() -> float:
    """Return seconds that go on while the machine is suspended."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Lease:
    """A lease that we hold, renewed by a thread of its own until it is released."""

    def __init__(self, group: Group, entry: Entry, spec: str, sent: float) -> None:
        self._group, self._entry, self._spec, self._renewed = group, entry, spec, sent
        self._lost = ""
        self._lock = threading.Lock()
        self._end = threading.Event()
        threading.Thread(target=self._keep, name="lease", daemon=True).start()

    def check(self) -> None:
        """Return when it is still ours, else raise LeaseLost; asks the cloud only after a long absence."""
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
        """Give it up; never raises, for it ends by itself."""
        self.abandon()
        with self._lock:
            if self._lost:
                return
            try:
                self._swap(lambda text: text.without(self._entry))
            except NotFound:
                pass  # it went with its project
            except LeaseLost as error:
                _log.debug("%s", error)
            except PrepError as error:
                _log.warning("%s stays for %.0f s more: %s", self._words, DURATION, error)

    def abandon(self) -> None:
        """Renew it no more: it ends by itself, later than what is still under way."""
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
                _log.debug("%s is not renewed yet: %s", self._words, error)

    def _renew(self) -> None:
        with self._lock:
            if self._end.is_set() or self._lost:
                return
            sent = now()
            self._entry = self._entry.renewed()
            try:
                self._swap(lambda text: text.holding(self._entry))
            except NotFound:
                self._lost = f"{self._words} went with the default security group of its project"
                raise LeaseLost(self._lost) from None
            except LeaseLost as error:
                self._lost = str(error)
                raise
            self._renewed = sent

    def _swap(self, change: Callable[[Description], Description]) -> None:
        for _ in range(SWAPS):
            try:
                self._group = self._group.swap(change(self._group.text))
                return
            except CloudError as error:
                if error.status not in CHANGED:
                    raise
            self._group = self._group.again()
            if self._group.text.of_run(self._entry) is None:
                other = self._group.text.of_spec(self._entry.spec)
                who = f"{other} has it" if other else "somebody took it away (openstack-prep unlock, or another tool)"
                raise LeaseLost(f"{self._words} is lost: {who}; run it again")
        raise LeaseLost(f"{self._words} could not be renewed: others change the description all the time")
