from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.core import interrupts
from openstack_prep.fleet import engine as engines
from openstack_prep.fleet import runs
from openstack_prep.fleet.engine import Engine, FleetEvent, Limits, threads
from openstack_prep.fleet.order import Options, Order, TargetOutcome, TargetStatus
from tests.unit.fleet import fleets

Work = Callable[[Order], TargetOutcome]


def run(monkeypatch: pytest.MonkeyPatch, work: Work, *waves: str, **options: Any) -> tuple[Engine, list[FleetEvent]]:
    """Run waves of targets with names of one letter; a capital one is in the cloud B."""
    monkeypatch.setattr(engines, "work", work)
    events: list[FleetEvent] = []
    names = "".join(waves)
    clouds = {name: "B" if name.isupper() else "a" for name in names}
    given = {"jobs": 4, "stop_after": None, "limits": Limits({})} | options
    engine = Engine(threads, clouds=clouds, tell=events.append, **given)
    engine.run([(wave, [Order(target=name, verb="apply", spec="x") for name in wave]) for wave in waves])
    return engine, events


def ended(order: Order, status: TargetStatus = TargetStatus.DONE) -> TargetOutcome:
    return TargetOutcome(target=order.target, status=status)


def statuses(engine: Engine) -> dict[str, str]:
    return {name: each.status.value for name, each in engine.outcomes.items()}


def test_waves_come_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, events = run(monkeypatch, ended, "ab", "c")
    order = [(each.phase, each.name) for each in events]
    assert order.index(("wave", "c")) > max(order.index(("ended", name)) for name in "ab")
    assert statuses(engine) == dict.fromkeys("abc", "done")


def test_limits_of_clouds_and_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    lock, at_once, most = threading.Lock(), {"a": 0, "B": 0}, {"a": 0, "B": 0, "all": 0}
    enough = threading.Event()

    def work(order: Order) -> TargetOutcome:
        cloud = "B" if order.target.isupper() else "a"
        with lock:
            at_once[cloud] += 1
            most[cloud] = max(most[cloud], at_once[cloud])
            most["all"] = max(most["all"], sum(at_once.values()))
            if most["B"] > 2:
                enough.set()
        enough.wait(30 if cloud == "B" else 0.02)
        with lock:
            at_once[cloud] -= 1
        return ended(order)

    run(monkeypatch, work, "abcdefABCDEF", limits=Limits({"a": 2}), jobs=5)
    assert most["a"] == 2
    assert most["B"] > 2
    assert most["all"] <= 5


def test_jobs_are_shared_among_the_targets_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: dict[str, int] = {}

    def work(order: Order) -> TargetOutcome:
        jobs[order.target] = order.jobs
        return ended(order)

    run(monkeypatch, work, "a", "bcdefgh", jobs=4)
    assert jobs["a"] == 4
    assert jobs["b"] == 1


@pytest.mark.parametrize(
    ("stop_after", "waves", "expected"),
    [
        (None, ("aF", "b"), {"a": "done", "F": "failed", "b": "not begun"}),
        (1, ("Fa", "b"), {"F": "failed", "a": "not begun", "b": "not begun"}),
        (2, ("Fa", "Gb"), {"F": "failed", "a": "done", "G": "failed", "b": "not begun"}),
        (3, ("Fa", "Gb"), {"F": "failed", "a": "done", "G": "failed", "b": "done"}),
    ],
)
def test_failures_stop_the_rest(
    monkeypatch: pytest.MonkeyPatch, stop_after: int | None, waves: tuple[str, ...], expected: dict[str, str]
) -> None:
    def work(order: Order) -> TargetOutcome:
        return ended(order, TargetStatus.FAILED if order.target in "FG" else TargetStatus.DONE)

    engine, _ = run(monkeypatch, work, *waves, stop_after=stop_after, jobs=1)
    assert statuses(engine) == expected


def test_settled_outcomes_count_in_their_wave(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = {"b": TargetOutcome(target="b", status=TargetStatus.REFUSED)}
    engine, _ = run(monkeypatch, ended, "ab", "c", settled=refused)
    assert statuses(engine) == {"a": "done", "b": "refused", "c": "not begun"}


def test_a_signal_reaches_the_targets_that_run_and_no_other_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(order: Order) -> TargetOutcome:
        heard = threading.Event()
        with interrupts.caught(lambda number: heard.set()):
            os.kill(os.getpid(), signal.SIGTERM)
            assert heard.wait(30)
        with pytest.raises(interrupts.Interrupted):
            interrupts.raise_passed_on()
        return ended(order, TargetStatus.INTERRUPTED)

    engine, events = run(monkeypatch, work, "ab", "c", jobs=1)
    assert statuses(engine) == {"a": "interrupted", "b": "not begun", "c": "not begun"}
    assert engine.interrupt == signal.SIGTERM
    assert "stopping" in [each.phase for each in events]
    interrupts.raise_passed_on()


def test_settled_outcomes_are_not_lost_when_a_wave_does_not_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"b": TargetStatus.REFUSED, "c": TargetStatus.UNCHANGED}
    settled = {name: TargetOutcome(target=name, status=status) for name, status in known.items()}
    engine, _ = run(monkeypatch, ended, "b", "cd", settled=settled)
    assert statuses(engine) == {"b": "refused", "c": "unchanged", "d": "not begun"}


def test_the_orders_of_a_wave_know_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers: dict[str, int] = {}

    def work(order: Order) -> TargetOutcome:
        numbers[order.target] = order.wave
        return ended(order)

    run(monkeypatch, work, "ab", "c")
    assert numbers == {"a": 0, "b": 0, "c": 1}


def test_a_signal_stops_the_fleets_of_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, other = threading.Event(), list[Engine]()

    def work(order: Order) -> TargetOutcome:
        if order.target in "yz":
            begun.set()
        heard = threading.Event()
        with interrupts.caught(lambda number: heard.set()):
            if order.target == "a":
                assert begun.wait(30)
                os.kill(os.getpid(), signal.SIGINT)
            assert heard.wait(30)
        return ended(order, TargetStatus.INTERRUPTED)

    monkeypatch.setattr(engines, "work", work)
    thread = threading.Thread(target=lambda: other.append(run(monkeypatch, work, "y", "z", jobs=1)[0]))
    thread.start()
    engine, _ = run(monkeypatch, work, "a", "b", jobs=1)
    thread.join()
    assert statuses(engine) == {"a": "interrupted", "b": "not begun"}
    assert statuses(other[0]) == {"y": "interrupted", "z": "not begun"}
    assert (engine.interrupt, other[0].interrupt) == (signal.SIGINT, signal.SIGINT)
    interrupts.raise_passed_on()


def test_an_order_and_an_outcome_can_go_to_another_process(tmp_path: Path) -> None:
    chosen = runs.choose(fleets.of(tmp_path, "a", "b"))
    for order in chosen.orders.values():
        assert pickle.loads(pickle.dumps(order)) == order
    outcome = TargetOutcome(target="a", status=TargetStatus.DONE, counts={"create": 1}, data={"spec": "x"})
    assert pickle.loads(pickle.dumps(outcome)) == outcome
    assert pickle.loads(pickle.dumps(Options(data=True))) == Options(data=True)
