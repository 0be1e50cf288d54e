"""What a plan reads before it decides: in parallel, in bulk, and what is missing, refused or lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest

from openstack_prep.base.errors import CloudError, Mistake, NotAllowed, NotUnique, PlanRefused
from openstack_prep.base.secret import Secret, from_spec
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import observation, planner
from openstack_prep.core.deletion_loss import Deletion, DeletionLoss, Finding, LossEffect, Unchecked
from openstack_prep.core.model import Action, Key, Observed, Step
from openstack_prep.core.observation import beside, in_parallel
from openstack_prep.core.plan import Plan
from tests.unit.box import Box, Shelf
from tests.unit.texts import Wording


def here(number: int = 0) -> str:
    return threading.current_thread().name


@pytest.mark.parametrize(("jobs", "number", "apart"), [(1, 3, False), (8, 1, False), (8, 3, True)])
def test_threads_are_started_for_several_things_at_a_time(jobs: int, number: int, apart: bool) -> None:
    assert [each == here() for each in in_parallel(here, range(number), jobs=jobs)] == [not apart] * number


@pytest.mark.parametrize("jobs", [1, 8])
def test_the_first_error_ends_what_is_done_in_parallel(jobs: int) -> None:
    with pytest.raises(ZeroDivisionError):
        in_parallel(lambda number: 1 // number, [1, 0, 2], jobs=jobs)


@pytest.mark.parametrize("jobs", [1, 8])
def test_work_beside_a_block_is_done_once_and_before_what_follows(jobs: int) -> None:
    done: list[str] = []

    def work() -> str:
        done.append("work")
        return here()

    with beside(work, jobs=jobs) as result:
        pass
    done.append("after")
    assert (result() == here()) is (jobs == 1)
    assert result() == result()
    assert done == ["work", "after"]


@pytest.mark.parametrize("jobs", [1, 8])
def test_an_error_beside_a_block_is_that_of_who_asks(jobs: int) -> None:
    with beside(lambda: 1 // 0, jobs=jobs) as result:
        pass
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            result()
    with pytest.raises(LookupError), beside(lambda: 1, jobs=jobs):
        raise LookupError


def test_there_may_be_no_work_beside_a_block() -> None:
    with beside(None, jobs=8) as result:
        assert result() is None


# --- what a plan deletes ------------------------------------------------------------------


def step(name: str, action: Action, *parts: str, ours: bool = True, there: bool = True) -> Step:
    observed = Observed(id=name, ours=ours, contained_ids=frozenset(parts)) if there else None
    return Step(resource=Box(name=name), action=action, observed=observed)


STEPS = (
    step("a", Action.DELETE, "a1"),
    step("b", Action.REPLACE, ours=False),
    step("c", Action.UPDATE, "c1"),
    step("d", Action.KEEP, ours=False),
    step("e", Action.DELETE, there=False),
    step("f", Action.CREATE, there=False),
)
PLAN = Plan(spec="lab", purpose="apply", steps=STEPS)


def test_what_goes_is_deleted_or_replaced_and_what_is_managed_has_our_tag() -> None:
    assert observation.going_ids(PLAN) == {"a", "a1", "b"}
    assert observation.managed_ids(PLAN) == {"a", "a1", "c", "c1"}


def test_companions_are_what_one_list_is_read_for() -> None:
    assert observation.companions(STEPS) == {("box", "a"): ("a", "b"), ("box", "b"): ("a", "b")}


@pytest.mark.parametrize(("number", "sizes"), [(50, {50}), (51, {26, 25}), (100, {50}), (101, {34, 33})])
def test_lists_are_of_about_the_same_length(number: int, sizes: set[int]) -> None:
    found = observation.companions(step(str(each), Action.DELETE) for each in range(number))
    assert {len(each) for each in found.values()} == sizes
    assert len(found) == number
    assert all(name in together for (_, name), together in found.items())


def test_to_cut_off_what_the_spec_manages_takes_nothing_from_others() -> None:
    losses = [
        DeletionLoss(effect=effect, kind="port", id=each)
        for effect in (LossEffect.CUT_OFF, LossEffect.DELETED)
        for each in ("mine", "theirs")
    ]
    unchecked = Unchecked("trunks", "403")
    found = observation.with_findings(STEPS[0], [unchecked, *losses], frozenset({"mine"}))
    assert [(each.effect, each.id) for each in found.deletion_losses] == [
        (LossEffect.CUT_OFF, "theirs"),
        (LossEffect.DELETED, "mine"),
        (LossEffect.DELETED, "theirs"),
    ]
    assert found.unchecked == (unchecked,)


@dataclass(frozen=True, kw_only=True)
class Shelved(Box):
    """Its deletion takes a label along, and cannot take place beside that of d."""

    kind: ClassVar[str] = "shelved"

    @classmethod
    def find_losses(cls, run: CloudRun, deletions: Sequence[Deletion], going: frozenset[str]) -> Iterator[Finding]:
        together = " ".join(run.companions_of(cls.kind, deletions[0].id))
        cls._shelf(run).asked.append(f"losses {' '.join(each.id for each in deletions)} {run.is_patient} {together}")
        for each in deletions:
            yield each.key, DeletionLoss(effect=LossEffect.DELETED, kind="label", id=f"{each.id} of {len(going)}")

    def check_delete(self, run: CloudRun, observed: Observed, going: frozenset[str]) -> Iterator[Mistake]:
        if "d" in going:
            together = " ".join(run.companions_of(self.kind, observed.id))
            yield Mistake.about(self.key, f"{observed.id} of {len(going)}, beside {together}", "wait")


def shelved(*names: str) -> Plan:
    steps = [replace(step(each, Action.DELETE), resource=Shelved(name=each)) for each in names]
    return replace(PLAN, steps=(*STEPS, *steps))


@pytest.mark.parametrize("jobs", [1, 8])
def test_losses_are_read_by_kind_without_much_patience(jobs: int) -> None:
    shelf = Shelf()
    run = shelf.run()
    plan = observation.find_losses(run, shelved("x", "y"), jobs=jobs)
    assert shelf.asked == ["losses x y False x y"]
    assert run.is_patient
    assert run.companions_of("shelved", "x") == ("x",)
    losses = {step.resource.name: [each.id for each in step.deletion_losses] for step in plan if step.deletion_losses}
    assert losses == {"x": ["x of 5"], "y": ["y of 5"]}
    assert [each.key for each in plan] == [each.key for each in shelved("x", "y")]


def test_what_is_only_cut_off_from_the_spec_itself_is_no_loss() -> None:
    class CutOff(Shelved):
        @classmethod
        def find_losses(cls, run: CloudRun, deletions: Sequence[Deletion], going: frozenset[str]) -> Iterator[Finding]:
            for each in deletions:
                for name in ("c1", "d"):  # the spec manages the first one, which is part of c
                    yield each.key, DeletionLoss(effect=LossEffect.CUT_OFF, kind="port", id=name)

    plan = replace(PLAN, steps=(*STEPS, replace(step("x", Action.DELETE), resource=CutOff(name="x"))))
    found = observation.find_losses(Shelf().run(), plan, jobs=1)
    assert [each.id for each in found.steps[-1].deletion_losses] == ["d"]


@pytest.mark.parametrize("jobs", [1, 8])
def test_what_a_service_would_refuse_is_told_for_each_deletion(jobs: int, wording: Wording) -> None:
    run = Shelf().run()
    assert observation.examine_deletes(run, shelved("x"), jobs=jobs) == []
    found = observation.examine_deletes(run, shelved("x", "d"), jobs=jobs)
    texts = [(str(each.keys[0]), each.what) for each in found]
    wording(texts)


# --- what is there, and what is missing ---------------------------------------------------


@pytest.mark.parametrize(
    ("error", "is_left_out"), [(CloudError("503"), True), (NotAllowed("403"), False), (NotUnique("two"), False)]
)
def test_a_kind_whose_service_fails_may_be_left_out(error: CloudError, is_left_out: bool) -> None:
    shelf = Shelf({"a": {}}, before={"find": [error] * 3})
    with pytest.raises(type(error)):
        observation.observe(shelf.run(), [Box(name="a")])
    failed: list[object] = []

    def observe() -> object:
        return observation.observe(shelf.run(), [Box(name="a")], failed=lambda *each: failed.extend(each))

    if is_left_out:
        assert observe() == {}
        assert failed == [Box, error]
    else:
        with pytest.raises(type(error)):
            observe()


def test_a_name_that_several_have_is_a_refusal() -> None:
    shelf = Shelf(before={"find": [NotUnique("two boxes a")]})
    with pytest.raises(PlanRefused) as caught:
        observation.examine(shelf.run(), [Box(name="a")])
    (found,) = caught.value.mistakes
    assert (found.where, found.what, found.code) == ("cloud", "two boxes a", NotUnique.code)


@dataclass(frozen=True, kw_only=True)
class Locked(Box):
    kind: ClassVar[str] = "locked"

    codes: Mapping[str, Secret]


@pytest.mark.parametrize("is_empty", [True, False])
def test_a_secret_without_a_value_is_refused_by_apply_alone(tmp_path: Path, is_empty: bool) -> None:
    """An empty file of a generated one, as opposed to one that the apply is to write."""
    if is_empty:
        (tmp_path / "word").touch(0o600)
    secret = from_spec({"generate": "word"}, base=tmp_path)
    shelf = Shelf({"a": {}})
    wanted = [Locked(name="a", codes={"front": secret, "back": secret})]
    observed, mistakes = observation.examine(shelf.run(), wanted)
    assert [(each.keys, each.code) for each in mistakes] == [((wanted[0].key,), "secret.missing")] * is_empty
    assert all("word is empty" in each.what for each in mistakes)
    assert not planner.plan_destroy("lab", wanted, observed).refusals


@pytest.mark.parametrize(("others", "fix"), [((), "declare it"), (("gone",), "apply the whole spec")])
def test_what_is_missing_is_told_with_its_users_and_what_is_there_is_not(others: tuple[str, ...], fix: str) -> None:
    shelf = Shelf({"there": {}})
    run = shelf.run()
    run.known[Key("box", "known")] = Observed(id="k")
    boxes = [Box(name="a", on=("gone", "there", "known")), Box(name="b", on=("gone", "a"))]
    keys = frozenset(Key("box", each) for each in others)
    found, mistakes = observation.examine(run, boxes, others=keys)
    assert [(each.code, each.keys) for each in mistakes] == [
        ("spec.unresolved-reference", (Key("box", "a"), Key("box", "b")))
    ]
    assert mistakes[0].fix.startswith(fix)
    assert found.keys() == {Key("box", "there")}


@dataclass(frozen=True, kw_only=True)
class Wrong(Box):
    """A box that says what it was observed as."""

    kind: ClassVar[str] = "wrong"

    def check(self, run: CloudRun, observed: Observed | None) -> Iterator[Mistake]:
        yield Mistake.about(self.key, observed.id if observed else "nothing", "correct it")


def test_each_kind_checks_with_what_was_observed() -> None:
    _, mistakes = observation.examine(Shelf({"a": {}}).run(), [Wrong(name="a"), Wrong(name="b")], jobs=1)
    assert [(str(each.keys[0]), each.what) for each in mistakes] == [("wrong/a", "id-a"), ("wrong/b", "nothing")]
