"""Which of several twins stays, and how runs agree on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from openstack_prep.base.errors import Overtaken
from openstack_prep.core import planner, twin
from openstack_prep.core.model import Action, Key, Observed
from openstack_prep.core.twin import choose, everyone, settle
from tests.unit.box import Box

KEY = Key("box", "a")
OLD, NEW = "2026-11-21T00:00:00Z", "2026-11-21T00:00:01Z"


def seen(
    name: str, created_at: str = OLD, *, used_by: Iterable[str] = (), contained_ids: Iterable[str] = ()
) -> Observed:
    return Observed(
        id=name, ours=True, created_at=created_at, used_by=tuple(used_by), contained_ids=frozenset(contained_ids)
    )


class Clock:
    """Time passes only while somebody sleeps, so that a busy machine decides nothing."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(twin, "time", Clock())


@pytest.mark.parametrize(
    ("found", "stays"),
    [
        ([seen("b"), seen("a", NEW)], "b"),
        ([seen("b"), seen("a")], "a"),
        ([seen("b"), seen("a", NEW, contained_ids=["subnet"])], "a"),
        ([seen("b", contained_ids=["subnet"]), seen("a", NEW, used_by=["port"])], "a"),
        ([seen("b", NEW, used_by=["port"]), seen("a", used_by=["port"])], "a"),
    ],
)
def test_use_comes_first_then_age_then_id(found: list[Observed], stays: str) -> None:
    for order in (found, found[::-1]):
        chosen = choose(order)
        assert chosen is not None
        assert chosen.id == stays
        assert len(everyone(chosen)) == 2


class Cloud:
    """What each look sees, the last one for good; what was removed is seen no more."""

    def __init__(self, *looks: list[Observed]) -> None:
        self.looks, self.removed = list(looks), list[str]()

    def look(self) -> Observed | None:
        now = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        return choose(each for each in now if each.id not in self.removed)

    def settle(self, mine: str) -> None:
        settle(KEY, mine, self.look, lambda own: self.removed.append(own.id))


def test_the_younger_is_removed_by_its_own_run() -> None:
    cloud = Cloud([seen("a"), seen("mine", NEW)])
    with pytest.raises(Overtaken) as caught:
        cloud.settle("mine")
    assert cloud.removed == ["mine"]
    assert caught.value.retryable


def test_the_older_waits_until_the_younger_is_gone() -> None:
    cloud = Cloud([seen("mine"), seen("b", NEW)], [seen("mine"), seen("b", NEW)], [seen("mine")])
    cloud.settle("mine")
    assert cloud.removed == []


def test_the_older_yields_to_one_that_is_being_built_on() -> None:
    """Its run saw nothing but its own and went on."""
    cloud = Cloud([seen("mine"), seen("b", NEW)], [seen("mine"), seen("b", NEW, contained_ids=["subnet"])])
    with pytest.raises(Overtaken):
        cloud.settle("mine")
    assert cloud.removed == ["mine"]


def test_the_older_yields_to_one_that_does_not_go() -> None:
    cloud = Cloud([seen("mine"), seen("b", NEW)])
    with pytest.raises(Overtaken):
        cloud.settle("mine")
    assert cloud.removed == ["mine"]


def test_one_that_others_build_on_by_now_is_not_removed() -> None:
    cloud = Cloud([seen("a", contained_ids=["subnet"]), seen("mine", NEW, contained_ids=["subnet"])])
    cloud.settle("mine")
    assert cloud.removed == []


def test_when_all_are_gone_it_is_made_again() -> None:
    with pytest.raises(Overtaken):
        Cloud([]).settle("mine")


# --- in plans -----------------------------------------------------------------------------


def observed(name: str, *twins: Observed) -> Observed:
    return Observed(id=f"id-{name}", ours=True, twins=twins)


def test_a_plan_deletes_twins_after_those_of_dependents() -> None:
    boxes = [Box(name="a"), Box(name="b", on=("a",))]
    found = {boxes[0].key: observed("a", seen("a2")), boxes[1].key: observed("b", seen("b2"))}
    plan = planner.plan_apply("lab", boxes, found)
    steps = {str(step.key): step for step in plan}
    assert [(str(step.key), step.action) for step in plan.pending] == [
        ("box/b (duplicate b2)", Action.DELETE),
        ("box/a (duplicate a2)", Action.DELETE),
    ]
    assert steps["box/a (duplicate a2)"].needs == {steps["box/b (duplicate b2)"].key}
    assert [each.get("duplicate_of") for each in plan.data()[:2]] == ["id-b", "id-a"]


def test_a_twin_in_use_stays_and_its_users_are_named() -> None:
    plan = planner.plan_apply("lab", [Box(name="a")], {KEY: observed("a", seen("a2", used_by=["server web"]))})
    assert not plan
    assert "used by server web" in str(plan)


def test_destroy_keeps_a_twin_that_others_use() -> None:
    """Nor does it delete one without our tag."""
    found = observed("a", seen("a2", used_by=["server web"]), seen("a3"), replace(seen("a4"), ours=False))
    plan = planner.plan_destroy("lab", [Box(name="a")], {KEY: found})
    actions = {step.observed.id: step.action for step in plan if step.observed}
    assert actions == {"a2": Action.KEEP, "a3": Action.DELETE, "a4": Action.KEEP, "id-a": Action.DELETE}
    (used,) = (step for step in plan if step.observed and step.observed.used_by)
    assert "server web" in used.reason


def test_destroy_deletes_all_of_them() -> None:
    boxes = [Box(name="a"), Box(name="b", on=("a",))]
    found = {boxes[0].key: observed("a", seen("a2")), boxes[1].key: observed("b")}
    plan = planner.plan_destroy("lab", boxes, found)
    assert len(plan.pending) == 3
    twin_step = next(step for step in plan if step.duplicate_of)
    assert boxes[1].key in twin_step.needs
