"""Synchronise allowed address pairs with the Services of a running cluster: once, or after each change.

Each turn reads all Services and compares everything again; an event of the watch only says that it is time. So it does
not matter which events were lost, how often the API server was restarted, or whether another program does the same.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from openstack_prep.base import ranges
from openstack_prep.base.errors import PrepError
from openstack_prep.base.ranges import Range
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.lease import LOCK_TIMEOUT
from openstack_prep.core.executor import JOBS
from openstack_prep.core.interrupts import Interrupted
from openstack_prep.hooks.address_pairs import Sync, to_sync
from openstack_prep.kubernetes import services as kubernetes
from openstack_prep.kubernetes.api import ApiServer, ClusterError, RunningCluster
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.spec import Spec
from openstack_prep.verbs import api
from openstack_prep.verbs.opening import LivePlan

RESYNC = 300
"""Seconds after which ports are compared without a change of Services: others change ports, and nodes come."""
SETTLE = 1.0
"""Seconds to wait after a change for those that follow it."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds between two attempts: doubled each time."""


class ClusterSync:
    """The address pairs that the Services of a cluster need."""

    def __init__(
        self,
        cloud: Cloud,
        wanted: Spec | str | Path | Callable[[], Spec] | Sync,
        cluster: RunningCluster,
        *,
        only: str | None = None,
        jobs: int = JOBS,
        lock_timeout: float = LOCK_TIMEOUT,
        tell: Callable[[str], None],
    ) -> None:
        """``wanted`` and ``only`` as for ``sync_address_pairs``; ``tell`` is called with notes, and by follow()."""
        self.cloud, self.wanted, self.cluster, self.only = cloud, wanted, cluster, only
        self.jobs, self.lock_timeout, self.tell = jobs, lock_timeout, tell
        self._identity = ""
        """Which cluster the first list came from."""
        self._found = kubernetes.Services()
        self._allowed: list[Range] = []
        self._version = ""
        self._notes: frozenset[str] = frozenset()
        self._shown: dict[str, str] = {}
        """The addresses, and their Services, that lines were printed for."""
        self._synced: kubernetes.Services | None = None
        """The Services of the last sync that succeeded; None: the ports may be in any state."""
        self._synced_at = 0.0
        self._trouble = ""
        self._failures = 0

    def plan(self) -> LivePlan:
        """Return what is to be done for the Services as they are now; raises ClusterError and what plan() raises.

        If another run was at work meanwhile, the Services are read again as well.
        """
        with self.cluster.open() as server:
            self._read(server)
        return self._plan()

    def follow(self) -> None:
        """Synchronise after each change, until a signal raises KeyboardInterrupt.

        Errors are raised before the first sync has succeeded; after that they are reported, and retried.
        """
        self.tell(f"following the Services of {self.cluster}")
        while True:
            try:
                self._turn()
            except PrepError as error:
                if not self._synced_at:
                    raise
                self._wait_after(error)

    def _read(self, server: ApiServer) -> None:
        """Read the Services; raises ClusterError if another cluster answers than the first time.

        Somebody may choose another context in the kubeconfig meanwhile, or build the cluster again at its address: then
        the ports would lose the addresses of Services that exist.
        """
        listing = server.services()
        if self._identity and self._identity != listing.cluster:
            what = f"{server.name}: Service {kubernetes.EVERYWHERE} is not the same as at the beginning"
            fix = "it is a different cluster, or has lost its data; nothing was changed. If this is right, start again"
            raise ClusterError(f"{what}: {fix}")
        self.cluster, self._identity = replace(self.cluster, context=server.context), listing.cluster
        self._found, self._version = kubernetes.read(listing.text), listing.version

    def _plan(self) -> LivePlan:
        notes: list[str] = []
        spec = to_sync(self.cloud, self.wanted, services=self._found, only=self.only, tell=notes.append)
        for note in notes:
            if note not in self._notes:
                self.tell(note)
        self._notes = frozenset(notes)
        pairs = [resource for resource in spec.resources if isinstance(resource, AddressPairs)]
        self._allowed = ranges.read(block for pair in pairs for block in pair.allowed)
        return replace(api.plan(self.cloud, spec, jobs=self.jobs), remake=self.plan)

    def _turn(self) -> None:
        with self.cluster.open() as server:
            self._read(server)
            left = self._synced_at + RESYNC - time.monotonic()
            if self._synced != self._found or left <= 0:
                self._sync()
                left = RESYNC
            if self._trouble:
                self.tell("recovered")
            self._trouble, self._failures = "", 0
            server.wait_for_change(self._version, max(1, int(left)))
        time.sleep(SETTLE)

    def _sync(self) -> None:
        self._synced = None
        plan = self._plan()
        report = api.apply(self.cloud, plan, jobs=self.jobs, lock_timeout=self.lock_timeout, agreed=False)
        changed = [f"~ {result.step}  {result.observed.id if result.observed else ''}" for result in report.changed]
        for line in (*(() if report.failed else self._news()), *changed):
            self.tell(line)
        if report.interrupt is not None:
            raise Interrupted(report.interrupt)
        report.raise_for_failures()
        self._synced, self._synced_at = self._found, time.monotonic()

    def _news(self) -> Iterator[str]:
        """Yield which addresses came and went, without those that no pair may have."""
        before, self._shown = self._shown, {}
        for address, service in self._found.addresses.items():
            (one,) = Range.read(address)
            if any(one in each for each in self._allowed):
                self._shown[address] = service
        yield from (f"- {each} of Service {before[each]}" for each in before if each not in self._shown)
        yield from (f"+ {each} of Service {name}" for each, name in self._shown.items() if each not in before)

    def _wait_after(self, error: PrepError) -> None:
        """Report an error unless it is still the same one, and wait: the longer, the more often it failed."""
        pause = min(FIRST_PAUSE * 2**self._failures, LONGEST_PAUSE)
        self._failures = min(self._failures + 1, 10)
        if str(error) != self._trouble:
            self._trouble = str(error)
            for line in str(error).splitlines():
                self.tell(f"! {line}")
            self.tell(f"! retrying in {pause:.0f} s, later less often")
        time.sleep(pause * random.uniform(0.75, 1.25))
