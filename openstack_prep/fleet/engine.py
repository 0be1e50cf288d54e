"""Gives the orders of a fleet to an executor: in waves, so many at a time, until too many failed or a signal comes.

The executor is one of ``concurrent.futures``: threads of this process by default. Only as many orders are submitted as
may run, so that limits and stops need nothing from the executor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Literal

from openstack_prep.base.diagnostic import Diagnostic
from openstack_prep.core import interrupts
from openstack_prep.fleet.order import BAD, Order, TargetOutcome, TargetStatus
from openstack_prep.fleet.work import work

Phase = Literal["wave", "begun", "ended", "stopping"]


@dataclass(frozen=True)
class FleetEvent:
    """Progress of a fleet: a ``wave`` or a target has ``begun``, a target has ``ended``, a signal is ``stopping`` all.

    ``name`` is that of the wave or target, ``number`` how many targets a wave has.
    """

    phase: Phase
    name: str = ""
    number: int = 0
    outcome: TargetOutcome | None = None


Tell = Callable[[FleetEvent], None]
Executors = Callable[[int], Executor]
"""Makes an executor for so many orders at a time."""


def silent(event: FleetEvent) -> None:
    """Ignore events."""


def threads(number: int) -> Executor:
    """Return an executor in this process, for so many orders at a time."""
    return ThreadPoolExecutor(number, thread_name_prefix="target")


class Limits:
    """How many targets are worked on at once in each cloud."""

    def __init__(self, most: Mapping[str, int]) -> None:
        self.most = most
        self._taken = Counter[str]()

    def take(self, cloud: str) -> bool:
        """Take a place in a cloud; False if there is none at the moment."""
        if self._taken[cloud] >= self.most.get(cloud, self._taken[cloud] + 1):
            return False
        self._taken[cloud] += 1
        return True

    def give(self, cloud: str) -> None:
        """Give a place back."""
        self._taken[cloud] -= 1


@dataclass
class Engine:
    """Carries out the orders of one phase.

    ``clouds`` are the entries that orders use, by target; ``jobs`` is how many requests are sent at a time.
    """

    executor: Callable[[int], Executor]
    limits: Limits
    clouds: Mapping[str, str]
    jobs: int
    stop_after: int | None
    tell: Tell = silent
    settled: Mapping[str, TargetOutcome] = field(default_factory=dict)
    """Outcomes of orders that need no work; they count in their wave."""
    outcomes: dict[str, TargetOutcome] = field(default_factory=dict)
    interrupt: int | None = None
    failures: int = 0
    is_lost: bool = False
    """Whether the executor takes no more orders."""

    def run(self, waves: Sequence[tuple[str, Sequence[Order]]]) -> None:
        """Carry out waves of orders one after the other; ``outcomes`` has one for each order at the end.

        A signal lets the targets end what they have begun. A second one raises KeyboardInterrupt at once.
        """
        most = min(self.jobs, max((len(orders) for _, orders in waves), default=1))
        with interrupts.passed_on() as pass_on, interrupts.drained(self.executor(most)) as pool:

            def stop(number: int) -> None:
                self.interrupt = number
                pass_on(number)
                self.tell(FleetEvent("stopping"))

            with interrupts.caught(stop):
                for number, (title, orders) in enumerate(waves):
                    if orders and not self._is_stopped(between_waves=True):
                        self.tell(FleetEvent("wave", title, len(orders)))
                        self._run_wave(pool, [replace(each, wave=number) for each in orders])
        for _, orders in waves:
            for order in orders:
                if order.target not in self.outcomes:
                    not_begun = TargetOutcome(target=order.target, status=TargetStatus.NOT_BEGUN, summary="not begun")
                    self._note(self.settled.get(order.target, not_begun))

    def _run_wave(self, pool: Executor, orders: Sequence[Order]) -> None:
        for order in orders:
            if order.target in self.settled:
                self._note(self.settled[order.target])
        waiting = [order for order in orders if order.target not in self.settled]
        running: dict[Future[TargetOutcome], Order] = {}
        while waiting or running:
            if self._is_stopped():
                waiting.clear()
            for order in self._which_may_begin(waiting, len(running)):
                waiting.remove(order)
                order = replace(order, jobs=self._share(len(waiting) + len(running) + 1))
                self.tell(FleetEvent("begun", order.target))
                running[self._submitted(pool, order)] = order
            ended, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                order = running.pop(future)
                self.limits.give(self.clouds[order.target])
                self._note(_outcome_of(future, order))

    def _submitted(self, pool: Executor, order: Order) -> Future[TargetOutcome]:
        try:
            return pool.submit(work, order)
        except Exception as error:  # noqa: BLE001 - of an executor that has lost its scheduler or its processes
            self.is_lost = True
            failed: Future[TargetOutcome] = Future()
            failed.set_exception(error)
            return failed

    def _which_may_begin(self, waiting: Sequence[Order], running: int) -> Iterator[Order]:
        for order in list(waiting):
            if running >= self.jobs:
                return
            if self.limits.take(self.clouds[order.target]):
                running += 1
                yield order

    def _share(self, targets: int) -> int:
        """Return how many requests a target may send at a time."""
        return max(1, self.jobs // min(self.jobs, targets))

    def _note(self, outcome: TargetOutcome) -> None:
        self.outcomes[outcome.target] = outcome
        self.failures += outcome.status in BAD
        self.tell(FleetEvent("ended", outcome.target, outcome=outcome))

    def _is_stopped(self, *, between_waves: bool = False) -> bool:
        most = self.stop_after if self.stop_after is not None else 1 if between_waves else None
        return self.is_lost or self.interrupt is not None or (most is not None and self.failures >= most)


def _outcome_of(future: Future[TargetOutcome], order: Order) -> TargetOutcome:
    """Return the outcome of an order, also if whoever carried it out is gone: ``work`` itself raises nothing."""
    try:
        return future.result()
    except (Exception, CancelledError) as error:  # noqa: BLE001 - of any executor
        what = f"whoever worked on it was lost ({type(error).__name__}), and may have changed something"
        found = Diagnostic(code="fleet.failed", where=order.target, what=what, fix="run the command again")
        return TargetOutcome(target=order.target, status=TargetStatus.FAILED, summary="lost", errors=[found.data()])
