from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import pytest

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import CloudError, Loss, Mistake, NotAllowed, NotUnique, Overtaken, PlanRefused
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.executor import Event
from openstack_prep.core.interrupts import SIGNALS, Interrupted
from openstack_prep.core.model import INTERRUPT, Action, Adoptable, Key, Observed, Resource, Result, Status
from openstack_prep.core.plan import ApplyFailed, Plan, Report
from openstack_prep.core.planner import plan_apply, plan_destroy
from openstack_prep.core.resource import OnePerSpec, Unguarded
from tests.unit.box import BROKEN, LOST, Box, Shelf
from tests.unit.texts import Wording


@dataclass(frozen=True, kw_only=True)
class Loose(Box, Unguarded):
    """A box whose shelf has no condition for a write."""

    kind: ClassVar[str] = "loose"


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def plan(shelf: Shelf, *boxes: Box, consent: bool = False) -> Plan:
    observed, mistakes = observation.examine(shelf.run(), boxes)
    return plan_apply("lab", boxes, observed, mistakes=mistakes, allow_replace=consent)


def destruction(shelf: Shelf, *boxes: Box) -> Plan:
    return plan_destroy("lab", boxes, observation.observe(shelf.run(), boxes))


def run(shelf: Shelf, made: Plan, jobs: int = 8, tell: Callable[[Event], None] = executor.silent) -> Report:
    shelf.asked.clear()
    return executor.execute(made, shelf.run(), jobs=jobs, tell=tell)


def apply(shelf: Shelf, *boxes: Box, jobs: int = 8) -> Report:
    return run(shelf, plan(shelf, *boxes), jobs)


def result(report: Report, name: str) -> Result:
    return next(each for each in report.results if each.step.resource.name == name)


# --- the plain way ------------------------------------------------------------------------


def test_a_second_apply_asks_for_nothing(shelf: Shelf) -> None:
    boxes = (Box(name="a", size=1), Box(name="b", on=("a",)))
    apply(shelf, *boxes).raise_for_failures()
    again = apply(shelf, *boxes)
    assert shelf.asked == []
    assert [each.status for each in again.results] == [Status.DONE, Status.DONE]
    assert again.changed == ()


def test_an_update_changes_what_differs(shelf: Shelf) -> None:
    shelf.boxes["a"] = {"size": 1, "colour": "blue"}
    apply(shelf, Box(name="a", size=2)).raise_for_failures()
    assert shelf.boxes == {"a": {"size": 2, "colour": "blue"}}


def test_a_replacement_deletes_and_makes_anew(shelf: Shelf) -> None:
    shelf.boxes["a"] = {"material": "tin", "colour": "blue"}
    run(shelf, plan(shelf, Box(name="a", material="oak"), consent=True)).raise_for_failures()
    assert shelf.asked == ["find", "delete a", "create a"]
    assert shelf.boxes == {"a": {"material": "oak"}}


def test_later_steps_know_what_earlier_ones_made(shelf: Shelf) -> None:
    run, a = shelf.run(), Box(name="a")
    executor.execute(plan(shelf, a), run)
    shelf.asked.clear()
    assert run.id(a) == "id-a"
    assert shelf.asked == []


def test_results_stand_in_the_order_of_the_plan(shelf: Shelf) -> None:
    shelf.before["create a"] = [lambda: time.sleep(0.05)]
    report = apply(shelf, Box(name="a"), Box(name="b"))
    assert [each.step.resource.name for each in report.results] == ["a", "b"]


def test_outputs_are_addresses_or_ids(shelf: Shelf) -> None:
    report = apply(shelf, Box(name="a"), Box(name="b", on=("a",)))
    assert report.outputs == {"box/a": "id-a", "box/b": "id-b"}


def test_what_a_service_would_overwrite_is_read_again_before(shelf: Shelf) -> None:
    shelf.boxes |= {"a": {"size": 1}, "b": {"size": 1}, "c": {"size": 1}}
    wanted = (Loose(name="a", size=2), Loose(name="b", size=2), Box(name="c", size=2))
    made = plan(shelf, *wanted)
    shelf.boxes |= {"a": {"size": 7}, "b": {"size": 2}, "c": {"size": 7}}
    report = run(shelf, made)
    assert [(each.status, getattr(each.error, "mistakes", [])) for each in report.results][1:] == [
        (Status.DONE, [])
    ] * 2
    (refused,) = result(report, "a").error.mistakes  # type: ignore[union-attr]
    assert refused.code == Code.PLAN_CHANGED
    assert shelf.boxes == {"a": {"size": 7}, "b": {"size": 2}, "c": {"size": 2}}
    assert "update b" not in shelf.asked


# --- order and parallelism ----------------------------------------------------------------


def test_independent_steps_run_at_once_and_never_more_than_jobs(shelf: Shelf) -> None:
    running, most, lock, together = 0, 0, threading.Lock(), threading.Barrier(3)

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        together.wait(30)
        with lock:
            running -= 1

    boxes = [Box(name=str(n)) for n in range(12)]
    shelf.before.update({f"create {n}": [work] for n in range(12)})
    apply(shelf, *boxes, jobs=3).raise_for_failures()
    assert most == 3


def test_dependents_come_after_what_they_need(shelf: Shelf) -> None:
    shelf.before["create a"] = [lambda: time.sleep(0.02)]
    apply(shelf, Box(name="c", on=("b",)), Box(name="b", on=("a",)), Box(name="a"))
    assert shelf.asked == ["create a", "create b", "create c"]


def test_what_needs_only_things_that_are_kept_does_not_wait_for_others(shelf: Shelf) -> None:
    shelf.boxes["kept"] = {}
    quick_began, in_time = threading.Event(), []
    shelf.before["create slow"] = [lambda: in_time.append(quick_began.wait(30))]
    shelf.before["create quick"] = [quick_began.set]
    apply(shelf, Box(name="kept"), Box(name="slow"), Box(name="quick", on=("kept",)))
    assert in_time == [True]


def test_destroy_takes_dependents_first(shelf: Shelf) -> None:
    boxes = (Box(name="a"), Box(name="b", on=("a",)), Box(name="c", on=("b",)))
    apply(shelf, *boxes)
    run(shelf, destruction(shelf, *boxes)).raise_for_failures()
    assert shelf.asked == ["find", "delete c", "find", "delete b", "find", "delete a"]
    assert shelf.boxes == {}


# --- growth -------------------------------------------------------------------------------


def calls(work: Callable[[], object]) -> int:
    """Return how many functions this thread calls: a measure of work that is the same on any machine."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def work_of(size: int) -> dict[str, int]:
    """Return what each verb does for so many boxes, half of which need all of the other half."""
    shelf, access = Shelf(), Key("access", "p")
    boxes = [Box(name=f"role{each}", gives=(access,)) for each in range(size // 2)]
    boxes += [Box(name=f"port{each}", wants=(access,)) for each in range(size // 2)]
    gone = [(each, Observed(id=each.name, ours=True)) for each in boxes]
    kept = [Box(name=f"kept{each}") for each in range(size)]
    return {
        "order": calls(lambda: planner.in_order(boxes, planner.dependencies(boxes))),
        "apply": calls(lambda: apply(shelf, *boxes).raise_for_failures()),
        "apply again": calls(lambda: apply(shelf, *boxes)),
        "destroy": calls(lambda: run(shelf, destruction(shelf, *boxes)).raise_for_failures()),
        "prune": calls(lambda: run(shelf, planner.plan_removals(plan(shelf, *kept), gone, prune=True))),
    }


def test_a_further_resource_costs_the_same_however_many_there_are() -> None:
    few, more, many = map(work_of, (100, 200, 400))
    growth = {verb: (many[verb] - more[verb]) / 2 / (more[verb] - few[verb]) for verb in many}
    assert {verb: each for verb, each in growth.items() if each > 1.25} == {}


# --- failures -----------------------------------------------------------------------------


def test_a_failure_skips_its_dependents_and_only_those(shelf: Shelf) -> None:
    shelf.before["create b"] = [BROKEN]
    boxes = (Box(name="a"), Box(name="b", on=("a",)), Box(name="c", on=("b",)), Box(name="d", on=("a",)))
    report = apply(shelf, *boxes)
    assert [each.status for each in report.results] == [Status.DONE, Status.FAILED, Status.SKIPPED, Status.DONE]
    assert result(report, "b").error is BROKEN
    assert sorted(shelf.boxes) == ["a", "d"]


def test_a_skipped_step_names_what_it_was_skipped_for(shelf: Shelf) -> None:
    shelf.before["create a"] = [BROKEN]
    report = apply(shelf, Box(name="a"), Box(name="b", on=("a",)), Box(name="c", on=("b",)))
    assert result(report, "b").cause == "box/a"
    assert result(report, "c").cause == "box/b"


def test_the_failures_are_raised_on_demand_with_the_report(shelf: Shelf, wording: Wording) -> None:
    shelf.before["create a"] = [BROKEN]
    report = apply(shelf, Box(name="a"), Box(name="b", on=("a",)))
    with pytest.raises(ApplyFailed) as caught:
        report.raise_for_failures()
    wording(str(caught.value))
    assert caught.value.report is report


def test_an_error_of_any_kind_stands_in_the_report(shelf: Shelf) -> None:
    shelf.before["create a"] = [ZeroDivisionError("a bug of ours")]
    report = apply(shelf, Box(name="a"), Box(name="b"))
    assert isinstance(result(report, "a").error, ZeroDivisionError)
    assert result(report, "b").status is Status.DONE


# --- doubtful answers ---------------------------------------------------------------------


def test_an_answer_lost_after_the_work_was_done_makes_one_thing_only(shelf: Shelf) -> None:
    shelf.after["create a"] = [LOST]
    report = apply(shelf, Box(name="a", size=1))
    report.raise_for_failures()
    assert shelf.asked == ["create a", "find"]
    assert report.outputs == {"box/a": "id-a"}


def test_a_request_lost_before_the_work_is_sent_again_after_a_look(shelf: Shelf) -> None:
    shelf.before["create a"] = [LOST]
    apply(shelf, Box(name="a", size=1)).raise_for_failures()
    assert shelf.asked == ["create a", "find", "create a"]


def test_work_done_in_part_is_finished_as_an_update(shelf: Shelf) -> None:
    def half_made() -> None:
        shelf.boxes["a"] = {"size": 1}
        raise LOST

    shelf.before["create a"] = [half_made]
    apply(shelf, Box(name="a", size=1, colour="red")).raise_for_failures()
    assert shelf.asked == ["create a", "find", "update a"]


def test_a_fault_while_looking_again_is_passed_too(shelf: Shelf) -> None:
    made = plan(shelf, Box(name="a"))
    shelf.after["create a"] = [LOST]
    shelf.before["find"] = [LOST]
    run(shelf, made).raise_for_failures()
    assert shelf.asked == ["create a", "find", "find"]


def test_it_gives_up_after_five_attempts(shelf: Shelf) -> None:
    shelf.before["create a"] = [LOST] * 9
    report = apply(shelf, Box(name="a"))
    assert result(report, "a").error is LOST
    assert shelf.asked.count("create a") == 5


@pytest.mark.parametrize("error", [BROKEN, NotAllowed("403"), ValueError()])
def test_what_will_not_pass_is_not_tried_again(shelf: Shelf, error: Exception) -> None:
    shelf.before["create a"] = [error]
    apply(shelf, Box(name="a"))
    assert shelf.asked.count("create a") == 1


def test_a_replacement_that_nobody_consented_to_is_refused_in_the_middle_too(shelf: Shelf) -> None:
    """Somebody else makes a box of that name, of tin, while we are at it."""

    def race() -> None:
        shelf.boxes["a"] = {"material": "tin"}
        raise LOST

    shelf.before["create a"] = [race]
    report = apply(shelf, Box(name="a", material="oak"))
    assert isinstance(result(report, "a").error, PlanRefused)
    assert shelf.boxes["a"] == {"material": "tin"}


def test_a_replacement_consented_to_goes_on_after_its_deletion(shelf: Shelf) -> None:
    shelf.boxes["a"] = {"material": "tin"}
    shelf.after["delete a"] = [LOST]
    run(shelf, plan(shelf, Box(name="a", material="oak"), consent=True)).raise_for_failures()
    assert shelf.asked == ["find", "delete a", "find", "create a"]


def test_consent_to_a_replacement_is_for_the_one_that_was_shown(shelf: Shelf) -> None:
    """Somebody else has put another in its place before the second attempt."""
    shelf.boxes["a"] = {"material": "tin"}
    box = Box(name="a", material="oak")
    another = {key: replace(found, id="another") for key, found in observation.observe(shelf.run(), [box]).items()}
    shelf.before["delete a"] = [LOST]
    report = run(shelf, plan_apply("lab", [box], another, allow_replace=True))
    assert isinstance(result(report, "a").error, PlanRefused)
    assert shelf.boxes["a"] == {"material": "tin"}


def test_a_deletion_whose_answer_was_lost_is_done(shelf: Shelf) -> None:
    shelf.boxes["a"] = {}
    shelf.after["delete a"] = [LOST]
    run(shelf, destruction(shelf, Box(name="a"))).raise_for_failures()
    assert shelf.asked == ["find", "delete a", "find"]


def test_a_deletion_never_takes_what_somebody_else_has_put_there_since(shelf: Shelf) -> None:
    def replaced() -> None:
        shelf.boxes["a"] = {"ours": False}
        raise LOST

    shelf.boxes["a"] = {}
    shelf.before["delete a"] = [replaced]
    run(shelf, destruction(shelf, Box(name="a")))
    assert shelf.boxes == {"a": {"ours": False}}


# --- rivals -------------------------------------------------------------------------------

OVERTAKEN = Overtaken("created by a concurrent run", retryable=True)


def test_who_was_overtaken_once_reads_before_each_further_creation(shelf: Shelf) -> None:
    shelf.before["create a"] = [OVERTAKEN]
    apply(shelf, Box(name="a"), Box(name="b", on=("a",)), Box(name="c", on=("b",))).raise_for_failures()
    assert shelf.asked == ["create a", "find", "create a", "find", "create b", "find", "create c"]


def test_what_a_rival_has_created_by_then_is_not_created_again(shelf: Shelf) -> None:
    made = plan(shelf, Box(name="a"), Box(name="b", on=("a",)))
    shelf.before["create a"] = [OVERTAKEN]
    shelf.after["create a"] = [lambda: shelf.boxes.update(b={})]
    run(shelf, made).raise_for_failures()
    assert shelf.asked == ["create a", "find", "create a", "find"]


@dataclass(frozen=True, kw_only=True)
class TwinBox(Box):
    """A box of which there may be two with one name, each with an id."""

    @property
    def can_have_twins(self) -> bool:
        return True

    @classmethod
    def find(cls, run: CloudRun, wanted: Sequence[Self]) -> Mapping[Key, Observed]:
        found = super().find(run, wanted)
        boxes = cls._shelf(run).boxes
        return {key: replace(each, id=boxes[key.name].get("id", each.id)) for key, each in found.items()}


@pytest.mark.parametrize(("status", "done"), [(400, True), (404, True), (410, True), (403, False), (500, False)])
def test_a_creation_is_tried_again_when_what_it_needs_has_moved(shelf: Shelf, status: int, done: bool) -> None:
    """A rival has put another box in the place of the one that this request names."""
    below, above = TwinBox(name="a"), TwinBox(name="b", wants=(Key("box", "a"),))
    ids: list[str] = []

    def create_on_it() -> None:
        ids.append(on.id(below))
        if len(ids) == 1:
            shelf.boxes["a"] = {"id": "another"}
            raise CloudError("no such box", status=status)

    on = shelf.run()
    shelf.before["create b"] = [create_on_it, create_on_it]
    report = executor.execute(plan_apply("lab", [below, above], {}), on)
    assert (not report.failed) is done
    assert ids == (["id-a", "another"] if done else ["id-a"])


def test_a_refused_creation_is_not_tried_again_when_nothing_has_moved(shelf: Shelf) -> None:
    shelf.before["create b"] = [BROKEN]
    report = apply(shelf, TwinBox(name="a"), TwinBox(name="b", wants=(Key("box", "a"),)))
    assert result(report, "b").error is BROKEN
    assert shelf.asked.count("create b") == 1


# --- interrupts ---------------------------------------------------------------------------


def interrupt(number: signal.Signals = signal.SIGINT) -> None:
    """Send the main thread a signal, as a terminal does, and let it take effect."""
    signal.pthread_kill(threading.main_thread().ident or 0, number)
    time.sleep(0.3)


@pytest.mark.parametrize("number", SIGNALS)
def test_an_interrupt_lets_running_steps_end_and_skips_the_rest(shelf: Shelf, number: signal.Signals) -> None:
    before = [signal.getsignal(each) for each in SIGNALS]
    shelf.before["create a"] = [lambda: interrupt(number)]
    report = apply(shelf, Box(name="a"), Box(name="b", on=("a",)))
    assert result(report, "a").status is Status.DONE
    assert result(report, "b").cause == INTERRUPT
    assert report.interrupt == number
    assert sorted(shelf.boxes) == ["a"]
    assert [signal.getsignal(each) for each in SIGNALS] == before


def test_an_interrupt_is_why_dependents_of_skipped_steps_are_skipped(shelf: Shelf) -> None:
    def interrupted_failure() -> None:
        interrupt()
        raise BROKEN

    shelf.before["create a"] = [interrupted_failure]
    report = apply(shelf, *(Box(name=name, on=on) for name, on in (("a", ()), ("b", ()), ("c", ("b",)), ("d", ("a",)))))
    causes = {each.step.resource.name: each.cause for each in report.skipped}
    assert causes == {"b": INTERRUPT, "c": INTERRUPT, "d": "box/a"}


@pytest.mark.parametrize("number", SIGNALS)
def test_a_second_signal_does_not_wait_for_the_running_steps(shelf: Shelf, number: signal.Signals) -> None:
    left, ended = threading.Event(), threading.Event()

    def stopped_twice() -> None:
        interrupt(signal.SIGTERM)
        interrupt(number)
        left.wait(10)
        ended.set()

    shelf.before["create a"] = [stopped_twice]
    with pytest.raises(Interrupted) as caught:
        apply(shelf, Box(name="a"))
    assert not ended.is_set()
    left.set()
    assert caught.value.number == number


def test_a_step_that_an_interrupt_waits_for_is_told(shelf: Shelf) -> None:
    events: list[str] = []
    shelf.before["create a"] = [interrupt]
    run(shelf, plan(shelf, Box(name="a")), tell=lambda event: events.append(event.phase))
    assert events == ["started", "awaited", "ended"]


def test_an_interrupt_of_the_last_step_is_in_the_report(shelf: Shelf) -> None:
    shelf.before["create a"] = [lambda: interrupt(signal.SIGTERM)]
    report = apply(shelf, Box(name="a"))
    assert report.interrupted
    assert result(report, "a").status is Status.DONE


@pytest.mark.parametrize("number", SIGNALS)
def test_a_callers_own_handler_stays(shelf: Shelf, number: signal.Signals) -> None:
    heard: list[int] = []
    before = signal.signal(number, lambda which, _: heard.append(which))
    try:
        shelf.before["create a"] = [lambda: interrupt(number)]
        apply(shelf, Box(name="a"), Box(name="b", on=("a",))).raise_for_failures()
    finally:
        signal.signal(number, before)
    assert heard == [number]


def test_an_interrupt_skips_what_waits_for_a_free_thread(shelf: Shelf) -> None:
    shelf.before["create 0"] = [interrupt]
    report = apply(shelf, *(Box(name=str(n)) for n in range(5)), jobs=1)
    assert sorted(shelf.boxes) == ["0"]
    assert len(report.skipped) == 4
    assert report.interrupted


def test_an_interrupt_while_the_display_is_told_loses_no_result(shelf: Shelf) -> None:
    def tell(event: Event) -> None:
        if event.phase == "ended" and event.step.resource.name == "a":
            interrupt()

    report = run(shelf, plan(shelf, Box(name="a"), Box(name="b", on=("a",))), tell=tell)
    assert result(report, "a").status is Status.DONE
    assert result(report, "b").cause == INTERRUPT


def test_an_interrupt_ends_the_pauses_between_attempts(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "PAUSE", 60)

    def stopped() -> None:
        interrupt()
        raise LOST

    shelf.before["create a"] = [stopped, LOST, LOST]
    report = apply(shelf, Box(name="a"))
    assert shelf.asked == ["create a"]
    assert result(report, "a").error is LOST


def test_an_interrupt_in_such_a_pause_ends_it(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "PAUSE", 2)

    def stopped_a_moment_later() -> None:
        threading.Timer(0.05, interrupt).start()
        raise LOST

    shelf.before["create a"] = [stopped_a_moment_later]
    assert apply(shelf, Box(name="a")).seconds < 1


def test_after_a_run_an_interrupt_is_an_exception_again(shelf: Shelf) -> None:
    apply(shelf, Box(name="a"))
    with pytest.raises(KeyboardInterrupt):
        interrupt()


def test_a_run_in_another_thread_works_too(shelf: Shelf) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(apply, shelf, Box(name="a")).result().raise_for_failures()
    assert sorted(shelf.boxes) == ["a"]


# --- events -------------------------------------------------------------------------------


def test_a_display_is_told_of_each_phase(shelf: Shelf) -> None:
    events: list[str] = []
    shelf.after["create a"] = [LOST]
    run(shelf, plan(shelf, Box(name="a")), tell=lambda event: events.append(event.phase))
    assert events == ["started", "again", "ended"]


def test_one_step_at_a_time_is_told_of_before_the_next_begins(shelf: Shelf) -> None:
    events: list[str] = []
    made = plan(shelf, *(Box(name=each) for each in "abc"))
    run(shelf, made, jobs=1, tell=lambda event: events.append(f"{event.step.resource.name} {event.phase}"))
    assert events == [f"{each} {phase}" for each in "abc" for phase in ("started", "ended")]


def test_a_message_about_a_running_step_is_told_with_it(shelf: Shelf) -> None:
    told: list[tuple[str, str, str]] = []
    a, b = Box(name="a"), Box(name="b", on=("a",))
    on = shelf.run()
    shelf.before["create a"] = [lambda: (on.note(a.key, "half done"), on.note(b.key, "not begun"))]

    def tell(event: Event) -> None:
        told.append((event.step.resource.name, event.phase, event.note))

    executor.execute(plan(shelf, a, b), on, tell=tell).raise_for_failures()
    on.note(a.key, "ended")
    phases = [("a", "started", ""), ("a", "note", "half done"), ("a", "ended", "")]
    assert told == [*phases, ("b", "started", ""), ("b", "ended", "")]


@pytest.mark.parametrize(
    ("error", "conflict"),
    [
        (LOST, False),
        (Overtaken("by another", retryable=True), True),
        (CloudError("busy", status=409, retryable=True), True),
        (CloudError("changed", status=412, retryable=True), True),
        (CloudError("busy", status=503, retryable=True), False),
    ],
)
def test_the_reason_of_another_attempt_and_its_number_are_told(shelf: Shelf, error: CloudError, conflict: bool) -> None:
    shelf.before["create a"] = [error, error]
    events: list[Event] = []
    run(shelf, plan(shelf, Box(name="a")), tell=events.append).raise_for_failures()
    notes = [each.note for each in events if each.phase == "again"]
    assert ["conflict" in each for each in notes] == [conflict] * 2
    assert [each.rpartition("(")[2] for each in notes] == ["2/5)", "3/5)"]


def test_what_somebody_else_has_created_by_then_is_told_and_stays_theirs(shelf: Shelf) -> None:
    made = plan(shelf, Box(name="a"))

    def lost() -> None:
        shelf.boxes["a"] = {"ours": False}
        raise LOST

    shelf.before["create a"] = [lost]
    events: list[Event] = []
    report = run(shelf, made, tell=events.append)
    assert (result(report, "a").step.action, result(report, "a").status) == (Action.KEEP, Status.DONE)
    assert [each.phase for each in events] == ["started", "again", "note", "ended"]
    assert shelf.boxes == {"a": {"ours": False}}


# --- observe and examine ------------------------------------------------------------------


def test_a_kind_is_read_in_one_go(shelf: Shelf) -> None:
    boxes = [Box(name=str(n)) for n in range(100)]
    shelf.boxes = {box.name: {} for box in boxes}
    assert len(observation.observe(shelf.run(), boxes)) == 100
    assert shelf.asked == ["find"]


def test_a_reference_that_exists_nowhere_is_a_mistake_of_its_users(shelf: Shelf) -> None:
    boxes = (Box(name="a", on=("gone",)), Box(name="b", on=("gone",)))
    _, mistakes = observation.examine(shelf.run(), boxes)
    assert [(each.code, each.where) for each in mistakes] == [("spec.unresolved-reference", "box/a, box/b")]
    assert "box/gone" in mistakes[0].what
    assert "declare it" in mistakes[0].fix


@dataclass(frozen=True, kw_only=True)
class Lone(Box, OnePerSpec):
    """A box of which a spec declares one."""

    def references(self) -> Iterable[Resource]:
        return [Lone(name=name) for name in self.on]


def test_a_second_one_of_what_a_spec_declares_once_is_not_to_be_declared(shelf: Shelf, wording: Wording) -> None:
    _, (mistake,) = observation.examine(shelf.run(), [Lone(name="a", on=("gone",))])
    assert mistake.code == "spec.unresolved-reference"
    wording(mistake.fix)


def test_a_reference_may_be_in_the_cloud_already(shelf: Shelf) -> None:
    shelf.boxes["there"] = {"ours": False}
    observed, mistakes = observation.examine(shelf.run(), [Box(name="a", on=("there",))])
    assert mistakes == []
    assert observed[Key("box", "there")].id == "id-there"


def test_two_matches_of_a_name_refuse_the_plan(shelf: Shelf) -> None:
    shelf.before["find"] = [NotUnique("box/a: 2 resources have this name (x, y)")]
    with pytest.raises(PlanRefused, match=r"\(x, y\)") as caught:
        observation.examine(shelf.run(), [Box(name="a")])
    assert [each.code for each in caught.value.diagnostics] == ["cloud.not-unique"]


def test_a_cloud_that_cannot_be_read_is_an_error(shelf: Shelf) -> None:
    shelf.before["find"] = [BROKEN]
    with pytest.raises(CloudError, match="no such colour"):
        observation.examine(shelf.run(), [Box(name="a")])


class Inhabited(Box):
    """Boxes that all go by one id, and mind being deleted."""

    def check_delete(self, run: object, observed: Observed, going: frozenset[str]) -> Iterator[Mistake]:
        yield Mistake(str(self.key), f"is lived in; going are {sorted(going)}")


def test_all_deletions_are_examined_even_those_that_share_an_id(shelf: Shelf) -> None:
    boxes: list[Resource] = [Inhabited(name="a"), Inhabited(name="b")]
    made = plan_destroy("lab", boxes, {box.key: Observed(id="same", ours=True) for box in boxes})
    assert [each.where for each in observation.examine_deletes(shelf.run(), made)] == ["box/b", "box/a"]
    assert made.steps[0].action is Action.DELETE


# --- what follows others ------------------------------------------------------------------


def test_what_follows_a_change_does_what_is_to_do_by_then(shelf: Shelf) -> None:
    a, b = Box(name="a", size=1), Box(name="b", size=1, behind=(Key("box", "a"),))
    apply(shelf, b).raise_for_failures()
    shelf.after["create a"] = [lambda: shelf.boxes.update(b={"size": 7})]  # its change is another's, too
    report = apply(shelf, b, a)
    report.raise_for_failures()
    assert shelf.boxes["b"] == {"size": 1}
    assert len(report.changed) == 2
    assert apply(shelf, b, a).changed == ()


def test_what_follows_a_change_and_has_nothing_to_do_was_kept(shelf: Shelf) -> None:
    a, b = Box(name="a", size=1), Box(name="b", size=1, behind=(Key("box", "a"),))
    apply(shelf, b).raise_for_failures()
    report = apply(shelf, b, a)
    assert [each.step.key.name for each in report.changed] == ["a"]
    assert result(report, "b").status is Status.DONE
    assert shelf.asked == ["create a", "find"]


def test_what_follows_a_failure_is_skipped(shelf: Shelf) -> None:
    a, b = Box(name="a", size=1), Box(name="b", size=1, behind=(Key("box", "a"),))
    apply(shelf, b).raise_for_failures()
    shelf.before["create a"] = [BROKEN]
    assert result(apply(shelf, b, a), "b").status is Status.SKIPPED


# --- consent, judged when it is written --------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Crate(Box):
    """A box whose contents go when it is painted; only a look right before can tell."""

    kind: ClassVar[str] = "crate"

    def is_foreseen(self, observed: Observed) -> bool:
        return True

    def list_losses(self, observed: Observed) -> Iterable[Loss]:
        if observed.values.get("material") in ("full", "fuller"):
            contents = ("nails", "screws") if observed.values["material"] == "fuller" else ("nails",)
            yield Loss(str(self.key), "the contents would go", "--allow-replace", lost=contents)


@pytest.mark.parametrize("refusals", [[], [CloudError("409", retryable=True)]])
def test_the_report_says_what_the_first_attempt_found_to_do(shelf: Shelf, refusals: list[CloudError]) -> None:
    """Gone by the time it is to be updated: it is created, however often that is tried."""
    shelf.boxes["c"] = {"colour": "red"}
    made = plan(shelf, Crate(name="c", colour="blue"))
    assert [step.action for step in made] == [Action.UPDATE]
    del shelf.boxes["c"]
    shelf.before["create c"] = list(refusals)
    assert result(run(shelf, made), "c").step.action is Action.CREATE


@pytest.mark.parametrize(
    ("consent", "shown", "after"),
    [
        (False, "", "full"),
        (True, "", "full"),
        (True, "full", "fuller"),
        (True, "full", "full"),
        (True, "fuller", "full"),
    ],
)
def test_consent_to_a_loss_covers_what_the_plan_has_shown(shelf: Shelf, consent: bool, shown: str, after: str) -> None:
    """Only that step fails; the rest of the run is done."""
    shelf.boxes["c"] = {"colour": "red", "material": shown}
    made = plan(shelf, Crate(name="c", colour="blue"), Box(name="other"), consent=consent)
    assert not made.refusals
    shelf.boxes["c"]["material"] = after
    report = run(shelf, made)
    covered = len(after) <= len(shown)
    assert shelf.boxes["c"]["colour"] == ("blue" if covered else "red")
    assert result(report, "other").status is Status.DONE
    error = result(report, "c").error
    assert isinstance(error, PlanRefused) is not covered
    assert ("plan again" in str(error)) is (consent and not covered)


@pytest.mark.parametrize("consent", [False, True])
def test_a_plan_that_says_what_it_cannot_tell_covers_that_too(shelf: Shelf, consent: bool) -> None:
    """Its update can only be previewed once the same run has created something."""
    shelf.boxes["c"] = {"colour": "red"}
    crate = Crate(name="c", colour="blue", on=("new",))
    made = plan(shelf, crate, Box(name="new"), consent=consent)
    step = next(each for each in made if each.resource == crate)
    assert step.previewed_later
    assert ("may replace anything in it" in step.reason) is consent
    shelf.boxes["c"]["material"] = "full"
    report = run(shelf, made)
    assert shelf.boxes["c"]["colour"] == ("blue" if consent else "red")
    assert isinstance(result(report, "c").error, PlanRefused) is not consent


@dataclass(frozen=True, kw_only=True)
class Chest(Crate, Adoptable):
    """A box that somebody else may have made."""

    kind: ClassVar[str] = "chest"


@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("shown", [None, {"colour": "red"}, {"colour": "red", "ours": False}])
def test_consent_to_adopt_covers_what_the_plan_has_shown(
    shelf: Shelf, shown: dict[str, object] | None, declared: bool
) -> None:
    """Foreign by the time it is written; ``adopt: true`` covers whatever turns up."""
    if shown is not None:
        shelf.boxes["c"] = dict(shown)
    chest = Chest(name="c", colour="blue", adopt=declared)
    observed, _ = observation.examine(shelf.run(), [chest])
    made = plan_apply("lab", [chest], observed, adopt=True)
    assert not made.refusals
    if shown is None:
        shelf.before["create c"] = [CloudError("409", retryable=True)]
    shelf.before["find"] = [lambda: shelf.boxes.update(c={"colour": "red", "ours": False})]
    report = run(shelf, made)
    covered = declared or bool(shown and "ours" in shown)
    assert shelf.boxes["c"]["colour"] == ("blue" if covered else "red")
    assert isinstance(result(report, "c").error, PlanRefused) is not covered


def test_consent_to_adopt_is_for_the_one_that_was_shown(shelf: Shelf) -> None:
    shelf.boxes["c"] = {"colour": "red", "ours": False}
    chest = Chest(name="c", colour="blue")
    observed, _ = observation.examine(shelf.run(), [chest])
    another = {chest.key: replace(observed[chest.key], id="another")}
    report = run(shelf, plan_apply("lab", [chest], another, adopt=True))
    assert isinstance(result(report, "c").error, PlanRefused)
    assert shelf.boxes["c"]["colour"] == "red"


def test_a_loss_that_a_second_attempt_finds_needs_consent(shelf: Shelf) -> None:
    """Made by somebody else meanwhile."""
    made = plan(shelf, Crate(name="c", colour="blue"))
    shelf.before["create c"] = [CloudError("409", retryable=True)]

    def meanwhile() -> None:
        shelf.boxes["c"] = {"colour": "red", "material": "full"}

    shelf.before["find"] = [meanwhile]
    report = run(shelf, made)
    assert isinstance(result(report, "c").error, PlanRefused)
    assert shelf.boxes["c"]["colour"] == "red"


@dataclass(frozen=True, kw_only=True)
class Busy(Crate):
    """A crate that somebody is at work on."""

    kind: ClassVar[str] = "busy"

    def is_settled(self, observed: Observed) -> bool:
        return False

    def settle(self, run: CloudRun, observed: Observed) -> bool:
        self._shelf(run).boxes[self.name]["material"] = "full"
        return True


def test_what_is_in_progress_is_waited_for_before_it_is_judged(shelf: Shelf) -> None:
    shelf.boxes["c"] = {"colour": "red"}
    report = run(shelf, plan(shelf, Busy(name="c", colour="blue")))
    assert isinstance(result(report, "c").error, PlanRefused)
    assert shelf.boxes["c"]["colour"] == "red"
