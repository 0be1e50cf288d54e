"""Carry out a plan: threads, order, retries until the desired state is reached, and a report."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import Literal

import tenacity

from openstack_prep import tracing
from openstack_prep.base.errors import (
    CloudError,
    LeaseLost,
    Overtaken,
    PlanRefused,
    PrepError,
    is_transient,
)
from openstack_prep.core import interrupts, permission, planner
from openstack_prep.core.deletion_loss import TakesAlong, TakesInUpdate
from openstack_prep.core.model import (
    INTERRUPT,
    LOST_LEASE,
    MANAGED,
    Action,
    Adoptable,
    Key,
    Observed,
    Result,
    Status,
    Step,
)
from openstack_prep.core.observation import (
    DELETING,
    UPDATING,
    ThisThread,
    companions,
    going_ids,
    losses_of,
    managed_ids,
    observe,
    with_findings,
)
from openstack_prep.core.observation import JOBS as JOBS
from openstack_prep.core.plan import Order, Plan, Report, order_of
from openstack_prep.core.resource import (
    LeavesContent,
    Recreates,
    Settles,
    Unguarded,
    Untagged,
    can_have_twins,
    deleted_ids,
    supports,
)
from openstack_prep.core.run import Run
from openstack_prep.core.twin import check_delete, late_twins, with_twins

ATTEMPTS = 5
REFUSED = (400, 404, 410)
"""Answers to a request that a concurrent run may have overtaken: an overlap, an existing interface, a deleted resource.
"""
PAUSE = 0.25  # seconds before the second attempt, doubled before each further one, and a random part
FRESH = 2.0  # seconds for which deletions that may begin at the same time share what they have read

_log = logging.getLogger(__name__)


Phase = Literal["started", "again", "note", "awaited", "ended"]


@dataclass(frozen=True)
class Event:
    """A progress event of a ``step``: its ``phase``, and a ``result`` when it has ended.

    A step has ``started``, is retried (``again``), or has ``ended``.
    A ``note`` is a message of OpenStack about its work on a step; with ``again`` it says why and which attempt is next.
    If the user interrupts the run, each running step is ``awaited``.
    """

    step: Step
    phase: Phase
    result: Result | None = None
    note: str = ""


def silent(event: Event) -> None:
    """Ignore events."""


def execute(plan: Plan, run: Run, *, jobs: int = JOBS, tell: Callable[[Event], None] = silent) -> Report:
    """Carry out a plan, with independent steps in parallel.

    If a step fails, its dependents are skipped and only those. An interrupt (SIGINT, SIGTERM or SIGHUP) lets the
    running steps finish and skips the rest; a second one raises KeyboardInterrupt at once. Never raises for a step: the
    report contains the result of each.
    """
    return _Execution(plan, run, tell).execute(jobs)


def _retrying(state: tenacity.RetryCallState) -> str:
    """Return why a step is retried, and which attempt is next."""
    error = state.outcome.exception() if state.outcome else None
    conflict = isinstance(error, Overtaken) or getattr(error, "status", None) in (409, 412)
    return f"{'conflict' if conflict else 'transient error'}, retrying ({state.attempt_number + 1}/{ATTEMPTS})"


class _Execution:
    def __init__(self, plan: Plan, run: Run, tell: Callable[[Event], None]) -> None:
        self.plan, self.run, self.tell = plan, run, tell
        self.results: dict[Key, Result] = {}
        self.broken: dict[frozenset[Key], list[Key]] = {}  # by group: the steps that were not done
        self.stop = threading.Event()
        self.interrupt: int | None = None
        self.cause = INTERRUPT  # of the stop
        self.under_way: dict[Key, Step] = {}
        self.steps = {step.key: step for step in plan}
        self.going, self.managed = going_ids(plan), managed_ids(plan)
        self.has_rival = threading.Event()  # a concurrent run was detected: read before each creation
        self.ready: dict[Key, float] = {}  # when all that a step waits for had ended
        self.view, self.viewed, self.lock = run.fresh(), float("-inf"), threading.Lock()
        run.note = self._pass_on
        run.pending = frozenset(step.key for step in plan if step.action in (Action.CREATE, Action.UPDATE))

    def execute(self, jobs: int) -> Report:
        started = time.monotonic()
        steps = self.steps
        order = order_of(steps)
        ended: SimpleQueue[Future[Result]] = SimpleQueue()  # wait() would register with all others each time
        # the handler outlives the pool, which waits for running steps when it is left: a second signal ends that
        pool = ThreadPoolExecutor(jobs, thread_name_prefix="step") if jobs > 1 else ThisThread()
        with interrupts.caught(self._interrupted), interrupts.drained(pool):
            while order.is_active():
                ready = order.get_ready()
                now = time.monotonic()
                for node in ready:
                    if not isinstance(node, Key):
                        self.broken[node] = self._broken(node)
                        order.done(node)
                    elif (result := self._settled(steps[node])) is not None:
                        self._note(result, order)
                    else:
                        self.ready[node] = now
                        pool.submit(self._carry_out, steps[node]).add_done_callback(ended.put)
                    while not ended.empty():  # a pool for one step at a time has carried it out by now
                        self._note(ended.get().result(), order)
                if not ready:
                    self._note(ended.get().result(), order)
            late = [self._carry_out(step) for step in self._late_twins()]
        # in the order of the plan, whatever order the steps ended in
        done = (*(self.results[key] for key in steps), *late)
        return Report(done, time.monotonic() - started, self.interrupt)

    def _late_twins(self) -> list[Step]:
        """Return the deletions of unused twins that have appeared since the list that followed a creation."""
        done = [each.step for each in self.results.values() if each.status is Status.DONE]
        made = [step.resource for step in done if step.action is Action.CREATE and can_have_twins(step.resource)]
        if self.stop.is_set():
            return []
        try:
            late = late_twins(self.run, made)
        except CloudError as error:  # all steps are done; the next plan reads the cloud again
            _log.debug("cannot list duplicates again at the end of the run", exc_info=error)
            return []
        return [planner.delete_twin(*each) for each in reversed(late)]

    def _interrupted(self, number: int) -> None:
        self.interrupt = number
        self.stop.set()
        # a copy: steps end in other threads while this one prints
        for step in list(self.under_way.values()):
            self.tell(Event(step, "awaited"))

    def _pass_on(self, key: Key, note: str) -> None:
        step = self.under_way.get(key)
        if step is not None:
            self.tell(Event(step, "note", note=note))

    def _note(self, result: Result, order: Order) -> None:
        self.results[result.step.key] = result
        order.done(result.step.key)
        self.tell(Event(result.step, "ended", result))

    def _broken(self, group: frozenset[Key]) -> list[Key]:
        """Return the steps of a group, all of which have ended, that were not done."""
        return [key for key in group if key in self.results and self.results[key].status is not Status.DONE]

    def _settled(self, step: Step) -> Result | None:
        """Return the result of a step that needs no work or may not run."""
        if step.action is Action.KEEP:
            return Result(step=step, status=Status.DONE, observed=step.observed)
        broken = set[Key]().union(*(self.broken[group] for group in step.after))
        if not broken:
            return None
        stopped = self.stop.is_set() and all(self.results[key].cause == self.cause for key in broken)
        cause = self.cause if stopped else ", ".join(sorted(map(str, broken)))
        return Result(step=step, status=Status.SKIPPED, cause=cause)

    def _carry_out(self, step: Step) -> Result:
        if self.stop.is_set():
            return Result(step=step, status=Status.SKIPPED, cause=self.cause)
        started = time.monotonic()
        self.under_way[step.key] = step
        self.tell(Event(step, "started"))
        try:
            with tracing.step(step.action, step.resource.kind, str(step)):
                step, observed = self._converge(step)
        # without the lease another run may be writing, so that no further step may begin
        except LeaseLost as error:
            if not self.stop.is_set():
                self.cause = LOST_LEASE
                self.stop.set()
            return Result(step=step, status=Status.FAILED, error=error, seconds=time.monotonic() - started)
        except Exception as error:  # noqa: BLE001 - whatever it is, it stands in the report
            _log.debug("%s failed", step.key, exc_info=error)
            return Result(step=step, status=Status.FAILED, error=error, seconds=time.monotonic() - started)
        finally:
            del self.under_way[step.key]
        return Result(step=step, status=Status.DONE, observed=observed, seconds=time.monotonic() - started)

    def _converge(self, step: Step) -> tuple[Step, Observed | None]:
        """Carry out a step; after a transient error read the resource again, and do what is left.

        A request whose answer was lost may have succeeded, so nothing is sent a second time before reading. The work
        that results from preceding steps is known only now, and so is what an update may delete; if nothing is left to
        do, the resource was kept. What is deleted is read again in any case: it may have a new owner or user since. So
        is what a service would overwrite although somebody has changed it since.
        """
        retry = tenacity.Retrying(
            retry=tenacity.retry_if_exception(is_transient),
            stop=tenacity.stop_after_attempt(ATTEMPTS) | tenacity.stop_when_event_set(self.stop),
            # at random: two runs that collided would otherwise collide again
            wait=tenacity.wait_exponential(PAUSE) + tenacity.wait_random(0, PAUSE),
            # an interrupt also ends the pause before the next attempt
            sleep=tenacity.sleep_using_event(self.stop),
            before_sleep=lambda state: self.tell(Event(step, "again", note=_retrying(state))),
            reraise=True,
        )
        decided: Step | None = None  # the changes that the first attempt found; the report shows them as done
        for attempt in retry:
            with attempt:
                now, run = step, self.run
                run.check_lease()
                again = attempt.retry_state.attempt_number > 1
                unguarded = step.action in UPDATING and isinstance(step.resource, Unguarded)
                if (step.action in DELETING or unguarded) and not (again or step.decided_later):
                    run = self._recent(self.ready.get(step.key, time.monotonic()))
                    now = self._decide_again(step, run)
                elif again or step.decided_later or (step.action is Action.CREATE and self.has_rival.is_set()):
                    run = self.run.fresh()
                    now = self._decide_again(step, run)
                now = self._refuse_losses(now, run)
                decided = decided or now
                try:
                    observed = self._act(now, run)
                except Overtaken:
                    self.has_rival.set()
                    raise
                except CloudError as error:
                    # the error itself does not say whether somebody else was faster, so only reading again does
                    if error.status in REFUSED and self._was_overtaken(now):
                        raise Overtaken(str(error), retryable=True) from error
                    raise
                return self._settled_by_another(decided, now), observed
        raise AssertionError("unreachable")  # pragma: no cover

    def _settled_by_another(self, decided: Step, now: Step) -> Step:
        """Return the step for the report: of a creation that found the resource of somebody else, what is left of it.

        Two specs may declare one name at once; the second one gets a conflict, and keeps what the first one created.
        """
        found = now.observed
        if decided.action is not Action.CREATE or found is None or found.ours or isinstance(now.resource, Untagged):
            return decided
        self.tell(Event(now, "note", note=f"was created by somebody else meanwhile, and is {found.owner}"))
        return now

    def _recent(self, since: float) -> Run:
        """Return a view of the run that has read nothing before ``since``, nor longer than a moment ago.

        Its lists are read for all deletions that are left, of which several begin in that moment.
        """
        with self.lock:
            now = time.monotonic()
            if self.viewed < max(since, now - FRESH):
                left = (step for step in self.plan if step.key not in self.results)
                self.view, self.viewed = self.run.fresh().for_deletions(companions(left)), now
            return self.view

    def _was_overtaken(self, step: Step) -> bool:
        """Whether a request was refused because a concurrent run has done some of the work.

        Then the step's dependencies are read again, and its remaining work is decided again.
        """
        if step.action not in (Action.CREATE, Action.UPDATE, Action.ADOPT):
            return False
        run = self.run.fresh()
        needed = [self.steps[key].resource for key in step.needs if key in self.steps]
        needed = [each for each in needed if can_have_twins(each)]
        try:
            found = observe(run, needed)
            moved = any(each.key not in found or run.known[each.key].id != found[each.key].id for each in needed)
            # if another twin was kept, it has another id, which this step needs now
            run.known.update(found)
            left = self._decide_again(step, run)
        except PrepError:
            return False
        return moved or (left.action, left.changes) != (step.action, step.changes)

    def _decide_again(self, step: Step, run: Run) -> Step:
        """Decide again from the current state; raises PlanRefused for changes that the plan did not show."""
        observed = observe(run, [step.resource]).get(step.key)
        if step.action is Action.DELETE:
            # of several with the name the one that the plan has shown, whichever would be kept by now
            shown = (twin for twin in with_twins(observed) if step.observed and twin.id == step.observed.id)
            observed = next(shown, observed)
            if observed is None or not observed.ours:
                return replace(step, observed=observed, action=Action.KEEP)
            again, refusals = replace(step, observed=observed), []
        else:
            if observed is not None and supports(step.resource, Settles) and step.resource.settle(run, observed):
                observed = observe(run.fresh(), [step.resource]).get(step.key)
            decided = planner.decide(step.resource, observed, step.after)
            again = replace(decided, label=step.label, deletion_losses=step.deletion_losses)
            refusals = permission.beyond(step, again, allow_replace=self.plan.allow_replace)
        if again.action in DELETING and observed is not None:
            refusals += check_delete(step.resource, run, observed, self.going - self._left())
        if refusals:
            raise PlanRefused(refusals)
        return again

    def _refuse_losses(self, step: Step, run: Run) -> Step:
        """Judge again, right before a deletion or an update, what it takes from others; raises PlanRefused.

        An update is returned with what it takes, which the plan could not show of one that is previewed later.
        """
        updates = step.action in UPDATING and supports(step.resource, TakesInUpdate)
        if not updates and not (step.action in DELETING and supports(step.resource, TakesAlong)):
            return step
        found = losses_of(run, [step], self.going - self._left())
        judged = with_findings(step, found[step.key], self.managed)
        if refusals := permission.refuse_losses([judged], self.plan.allow_loss):
            raise PlanRefused(refusals)
        return judged if updates else step

    def _left(self) -> frozenset[str]:
        """Return the ids of what nothing deletes any more.

        It is the content of what was deleted and may leave it, such as a volume of a stack, and what was kept because
        somebody else owns it since the plan was made.
        """
        # a copy: other threads add results meanwhile
        done = [each.step for each in list(self.results.values()) if each.status is Status.DONE]
        seen = [(each, each.observed) for each in done if each.observed is not None]
        content = (found.contained_ids for each, found in seen if _has_left_content(each))
        kept = (deleted_ids(each.resource, found) for each, found in seen if self._was_kept(each))
        return frozenset[str]().union(*content, *kept)

    def _was_kept(self, step: Step) -> bool:
        """Whether the plan was to delete it, and it was kept in the end."""
        return step.action is Action.KEEP and self.steps[step.key].action in DELETING

    @staticmethod
    def _act(step: Step, run: Run) -> Observed | None:
        resource, observed = step.resource, step.observed
        if step.action is Action.DELETE and observed is not None:
            resource.delete(run, observed)
            # steps that look for the key after that must not get the id of what was deleted
            run.known.pop(resource.key, None)
            return observed
        if step.action is Action.REPLACE and observed is not None:
            if supports(resource, Recreates):
                observed = resource.recreate(run, observed)
            else:
                resource.delete(run, observed)
                observed = resource.create(run)
        elif step.action is Action.UPDATE and observed is not None:
            observed = resource.update(run, observed, step.changes)
        elif step.action is Action.ADOPT and observed is not None and isinstance(resource, Adoptable):
            # the tag is no field of the kind: take_over adds it, after all other changes have succeeded
            changes = tuple(change for change in step.changes if change.field != MANAGED)
            observed = resource.update(run, observed, changes) if changes else observed
            observed = resource.take_over(run, observed) if resource.takes_over else observed
        elif step.action is Action.CREATE:
            observed = resource.create(run)
        if observed is not None:
            run.known[resource.key] = observed
        return observed


def _has_left_content(step: Step) -> bool:
    return step.action in DELETING and isinstance(step.resource, LeavesContent)
