"""What a run has read, and what its views share."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from openstack_prep.base.errors import NotFound
from openstack_prep.core.model import Key, Observed, OwnershipTag
from openstack_prep.core.run import AnswerCache, Run, Wave, fact, query
from tests.unit.box import Box, Shelf


@pytest.fixture
def run() -> Run:
    return Run(OwnershipTag("lab"), homes=[Box(name="home"), None])


class Answers:
    """A function that counts how often it is asked, and fails as often as wanted."""

    def __init__(self, failures: int = 0) -> None:
        self.asked, self.failures = 0, failures

    def __call__(self) -> int:
        self.asked += 1
        if self.asked <= self.failures:
            raise ValueError(self.asked)
        return self.asked


def test_an_answer_is_read_once_and_so_is_an_error(run: Run) -> None:
    works, fails = Answers(), Answers(failures=1)
    assert [run.read_once("a", works), run.read_once("a", works), run.read_once("b", works)] == [1, 1, 2]
    for _ in range(2):
        with pytest.raises(ValueError, match="1"):
            run.read_once("c", fails)
    assert fails.asked == 1


def test_a_fact_is_read_again_after_an_error(run: Run) -> None:
    fails = Answers(failures=1)
    with pytest.raises(ValueError, match="1"):
        run.read_for_all("a", fails)
    assert [run.read_for_all("a", fails), run.fresh().read_for_all("a", fails)] == [2, 2]


def test_whoever_has_waited_for_an_error_reads_again_where_errors_are_not_kept() -> None:
    cache, begun, go_on = AnswerCache(keeps_errors=False), threading.Event(), threading.Event()
    fails, found = Answers(failures=1), list[object]()

    def slow() -> int:
        begun.set()
        go_on.wait(30)
        return fails()

    def first() -> None:
        with pytest.raises(ValueError, match="1"):
            cache.once("a", slow)

    threads = [threading.Thread(target=first)]
    threads[0].start()
    begun.wait(30)
    threads += [threading.Thread(target=lambda: found.append(cache.once("a", fails)))]
    threads[1].start()
    time.sleep(0.05)  # the second thread waits by now; if it does not yet, it reads all the same
    go_on.set()
    for each in threads:
        each.join(30)
    assert found == [2]
    assert [cache.once("a", fails), cache.names()] == [3, ["a"]]
    cache.forget("a", "b")
    assert cache.names() == []


def test_a_fresh_view_reads_again_and_knows_what_was_created(run: Run) -> None:
    works = Answers()
    run.known[Box(name="a").key] = Observed(id="1")
    run.pending = frozenset({Key("box", "b")})
    run.progress, run.note, run.check_lease = lambda *_: None, lambda *_: None, lambda: None
    run.read_once("a", works)
    run.read_for_all("fact", works)
    view = run.fresh()
    assert (view.read_once("a", works), view.read_for_all("fact", works)) == (3, 2)
    assert (view.ownership, view.homes, view.pending) == (run.ownership, run.homes, run.pending)
    for name in ("known", "wave", "progress", "note", "check_lease"):
        assert getattr(view, name) is getattr(run, name), name
    assert view.known is run.known
    assert (run.carried_out, run.is_patient) == (False, True)


def test_a_new_run_reports_to_nobody_and_needs_no_lease(run: Run) -> None:
    run.progress(Key("box", "a"), 1, 2, None)
    run.note(Key("box", "a"), "text")
    run.check_lease()


def test_threads_wait_for_the_one_that_reads(run: Run) -> None:
    begun, go_on = threading.Event(), threading.Event()
    works, found = Answers(), list[int]()

    def slow() -> int:
        begun.set()
        go_on.wait(30)
        return works()

    threads = [threading.Thread(target=lambda: found.append(run.read_once("a", slow))) for _ in range(4)]
    for each in threads:
        each.start()
    begun.wait(30)
    go_on.set()
    for each in threads:
        each.join()
    assert (found, works.asked) == ([1] * 4, 1)


@pytest.mark.parametrize(("decorator", "again"), [(query, True), (fact, False)])
def test_queries_differ_by_function_and_arguments_and_facts_are_for_all_views(
    run: Run, decorator: Any, again: bool
) -> None:
    asked: list[tuple[object, ...]] = []

    @decorator
    def one(run: Run, *args: str, **options: str) -> int:
        """Docs."""
        asked.append((*args, *options.items()))
        return len(asked)

    @decorator
    def other(run: Run, *args: str) -> str:
        return "other"

    assert [one(run, "a"), one(run, "a"), one(run, "b"), one(run, "b", x="y"), other(run, "a")] == [1, 1, 2, 3, "other"]
    assert (one(run, "b", x="y", z="1"), one(run, "b", z="1", x="y")) == (4, 4), "the order of options says nothing"
    assert one(run.fresh(), "a") == (5 if again else 1)
    assert asked[:3] == [("a",), ("b",), ("b", ("x", "y"))]
    assert (one.__name__, one.__doc__) == ("one", "Docs.")


def test_what_is_known_is_not_looked_for() -> None:
    shelf = Shelf({"a": {}})
    run = shelf.run()
    assert [run.id(Box(name="a")), run.find_id(Box(name="a"))] == ["id-a"] * 2
    assert shelf.asked == ["find"]
    assert (run.look(Box(name="b")), run.find_id(Box(name="b"))) == (None, None)
    with pytest.raises(NotFound, match="box/b "):
        run.id(Box(name="b"))
    run.known[Box(name="b").key] = Observed(id="2")
    assert run.id(Box(name="b")) == "2"
    view = run.fresh()
    assert (view.id(Box(name="b")), view.id(Box(name="a"))) == ("2", "id-a")
    assert shelf.asked == ["find", "find"]


def test_companions_are_judged_by_one_list(run: Run) -> None:
    assert run.companions_of("box", "1") == ("1",)
    view = run.for_deletions({("box", "1"): ("1", "2"), ("box", "2"): ("1", "2"), ("crate", "9"): ("9",)})
    assert [view.companions_of("box", "2"), view.companions_of("crate", "1")] == [("1", "2"), ("1",)]
    assert [view.deletes_many("box", number) for number in (1, 2, 3)] == [True, True, False]
    assert [view.deletes_many("crate", 2), view.deletes_many("room", 1)] == [False, False]
    assert run.companions_of("box", "1") == ("1",)


def test_a_view_for_deletions_shares_what_was_read(run: Run) -> None:
    answers = Answers()
    assert run.read_once("a", answers) == 1
    view = run.for_deletions({}, is_patient=False)
    assert [view.read_once("a", answers), view.read_once("b", answers), run.read_once("b", answers)] == [1, 2, 2]
    assert [run.is_patient, view.is_patient, view.for_deletions({}).is_patient] == [True, False, True]
    view.known[Box(name="new").key] = Observed(id="new")
    assert run.known == view.known


def test_steps_that_write_at_once_share_one_look() -> None:
    wave, barrier, looks = Wave(), threading.Barrier(4), list[set[int]]()
    written: set[int] = set()

    def write(number: int) -> None:
        barrier.wait()  # all are within their write
        written.add(number)

    def look() -> set[int]:
        looks.append(set(written))
        return looks[-1]

    seen: list[set[int]] = []

    def step(number: int) -> None:
        seen.append(wave.write("boxes", lambda: write(number), look)[1])

    threads = [threading.Thread(target=step, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert looks == [{0, 1, 2, 3}]
    assert len(seen) == 4


def test_one_after_the_other_looks_each_time() -> None:
    wave, looks = Wave(), []
    for number in range(2):
        assert wave.write("boxes", lambda n=number: n, lambda: looks.append(1)) == (number, None)  # type: ignore[misc]
    assert len(looks) == 2


def test_a_failed_write_looks_for_the_others_only() -> None:
    wave, begun, ended = Wave(), threading.Event(), threading.Event()
    looks: list[int] = []

    def fail() -> None:
        begun.set()
        ended.wait(30)
        raise ValueError("no room")

    def failing() -> None:
        with pytest.raises(ValueError, match="no room"):
            wave.write("boxes", fail, lambda: looks.append(1))

    thread = threading.Thread(target=failing)
    thread.start()
    begun.wait(30)
    good = threading.Thread(target=wave.write, args=("boxes", lambda: None, lambda: looks.append(2)))
    good.start()
    ended.set()
    thread.join()
    good.join()
    assert len(looks) == 1
    failing()
    assert len(looks) == 1


def test_an_error_of_the_look_is_raised() -> None:
    def look() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        Wave().write("boxes", lambda: None, look)
