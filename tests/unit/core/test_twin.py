"""Which of several twins stays, and how runs agree on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import ClassVar, Self, cast

import pytest

from openstack_prep.base.errors import CloudError, Mistake, Overtaken, ResourceFailed
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud as Connected
from openstack_prep.core import executor, planner, twin
from openstack_prep.core.deletion_loss import Deletion, DeletionLoss, Finding, LossEffect
from openstack_prep.core.model import Action, Key, Observed, OwnershipTag, Status
from openstack_prep.core.twin import Twin, choose, settle, with_twins
from tests.unit.box import Box
from tests.unit.texts import contains

KEY = Key("box", "a")
OLD, NEW, LATER = "2026-11-21T00:00:00Z", "2026-11-21T00:00:01Z", "2026-11-21T01:00:00Z"


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
        ([seen("b", NEW), seen("a", LATER, used_by=["port"])], "b"),
    ],
)
def test_use_comes_first_then_age_then_id(found: list[Observed], stays: str) -> None:
    for order in (found, found[::-1]):
        chosen = choose(order)
        assert chosen is not None
        assert chosen.id == stays
        assert len(with_twins(chosen)) == 2


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


def test_while_others_agree_on_one_nothing_is_made_again() -> None:
    cloud = Cloud([seen("a"), seen("b")], [seen("a"), seen("b")], [seen("a")], [])
    with pytest.raises(Overtaken):
        cloud.settle("mine")
    assert cloud.looks == [[]]


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
    assert [step.resource for step in plan.pending] == [
        Twin(of=boxes[1], id="b2", kept="id-b"),
        Twin(of=boxes[0], id="a2", kept="id-a"),
    ]


def test_a_twin_in_use_stays_and_its_users_are_named() -> None:
    plan = planner.plan_apply("lab", [Box(name="a")], {KEY: observed("a", seen("a2", used_by=["server web"]))})
    assert not plan
    assert contains(str(plan), "used", "server web")


def test_destroy_keeps_a_twin_that_others_use() -> None:
    """Nor does it delete one without our tag."""
    found = observed("a", seen("a2", used_by=["server web"]), seen("a3"), replace(seen("a4"), ours=False))
    plan = planner.plan_destroy("lab", [Box(name="a")], {KEY: found})
    actions = {step.observed.id: step.action for step in plan if step.observed}
    assert actions == {"a2": Action.KEEP, "a3": Action.DELETE, "a4": Action.KEEP, "id-a": Action.DELETE}
    (used,) = (step for step in plan if step.observed and step.observed.used_by)
    assert "server web" in used.reason


def test_one_that_was_created_much_later_is_somebodys_copy() -> None:
    found = {KEY: replace(observed("a", seen("a2", LATER), seen("a3", NEW)), created_at=OLD)}
    box = Box(name="a")
    for plan in (planner.plan_apply("lab", [box], found), planner.plan_destroy("lab", [box], found)):
        actions = {step.observed.id: step.action for step in plan if step.duplicate_of and step.observed}
        assert actions == {"a2": Action.KEEP, "a3": Action.DELETE}


def test_destroy_deletes_all_of_them() -> None:
    boxes = [Box(name="a"), Box(name="b", on=("a",))]
    found = {boxes[0].key: observed("a", seen("a2")), boxes[1].key: observed("b")}
    plan = planner.plan_destroy("lab", boxes, found)
    assert len(plan.pending) == 3
    twin_step = next(step for step in plan if step.duplicate_of)
    assert boxes[1].key in twin_step.needs
    assert twin_step.resource == Twin(of=boxes[0], id="a2")


# --- deletion -----------------------------------------------------------------------------


@dataclass
class Racks:
    """The racks of each look, the last one for good; and what was deleted."""

    looks: list[list[Observed]]
    deleted: list[str] = field(default_factory=list)
    asked: int = 0

    def run(self) -> CloudRun:
        return CloudRun(cast(Connected, self), OwnershipTag("lab"))

    def look(self) -> Observed | None:
        self.asked += 1
        now = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        return choose(each for each in now if each.id not in self.deleted)


@dataclass(frozen=True, kw_only=True)
class Rack(Box):
    """A box of which there may be several with one name."""

    kind: ClassVar[str] = "rack"

    @property
    def can_have_twins(self) -> bool:
        return True

    @classmethod
    def find(cls, run: CloudRun, wanted: Sequence[Self]) -> Mapping[Key, Observed]:
        found = run.read_once("racks", cast(Racks, run.admin).look)
        return {each.key: found for each in wanted if found}

    def create(self, run: CloudRun) -> Observed:
        return seen("mine")

    def delete(self, run: CloudRun, observed: Observed) -> None:
        cast(Racks, run.admin).deleted.append(observed.id)

    def deleted_ids(self, observed: Observed) -> frozenset[str]:
        return frozenset({observed.id, f"part of {observed.id}"})

    def check_delete(self, run: CloudRun, observed: Observed, going: frozenset[str]) -> Iterator[Mistake]:
        if "c" in going:
            yield Mistake.about(self.key, f"{observed.id} of {len(going)}", "wait")

    @classmethod
    def find_losses(cls, run: CloudRun, deletions: Sequence[Deletion], going: frozenset[str]) -> Iterator[Finding]:
        for each in deletions if "c" in going else ():
            yield each.key, DeletionLoss(effect=LossEffect.DELETED, kind="shelf", id=f"of {each.id} ({len(going)})")


RACK = Rack(name="a")


def twin_of(name: str = "b", kept: str = "a") -> Twin:
    return Twin(of=RACK, id=name, kept=kept)


def deleted(racks: Racks, observed: Observed, kept: str = "a") -> tuple[list[str], Observed | None]:
    """Delete a twin; return what was deleted, and what the run knows of the one that is kept."""
    run = racks.run()
    twin_of(observed.id, kept).delete(run, observed)
    return racks.deleted, run.known.get(RACK.key)


def test_an_unused_twin_is_deleted_and_the_run_goes_on_with_the_one_that_is_kept() -> None:
    racks = Racks([[seen("a"), seen("b", NEW)]])
    assert deleted(racks, seen("b", NEW)) == (["b"], seen("a"))
    assert racks.asked == 1, "an old twin needs no waiting"


def test_a_twin_that_came_to_be_used_stays() -> None:
    racks = Racks([[seen("a"), seen("b", NEW, used_by=["server web", "server db"])]])
    with pytest.raises(ResourceFailed, match="server web, server db"):
        deleted(racks, seen("b", NEW))
    assert racks.deleted == []


def test_a_twin_with_content_is_deleted_while_the_other_one_is_kept() -> None:
    """The kept one has content, too; were the twin the better one by now, it would stay."""
    content = ["subnet"]
    both = [seen("a", contained_ids=content), seen("b", NEW, contained_ids=content)]
    assert deleted(Racks([both]), both[1]) == (["b"], both[0])
    better = [seen("a"), seen("b", NEW, contained_ids=content)]
    assert deleted(Racks([better]), better[1]) == ([], better[1])


@pytest.mark.parametrize("left", ["a", "b"])
def test_the_last_one_is_not_deleted(left: str) -> None:
    """Its own run has deleted the other one."""
    assert deleted(Racks([[seen(left)]]), seen("b", NEW)) == ([], seen(left))


def test_when_none_is_left_there_is_none_to_delete() -> None:
    assert deleted(Racks([[]]), seen("b", NEW)) == ([], None)


def test_without_one_to_keep_the_twin_is_deleted_at_once() -> None:
    racks = Racks([[seen("b", NEW, used_by=["server"])]])
    assert deleted(racks, seen("b", NEW), kept="") == (["b"], None)
    assert racks.asked == 0


@pytest.mark.parametrize(("zone", "minutes", "waits"), [(True, 1, True), (False, 1, True), (True, 6, False)])
def test_a_young_twin_is_left_to_its_own_run_for_a_while(zone: bool, minutes: int, waits: bool) -> None:
    made = (datetime.now(UTC) - timedelta(minutes=minutes)).astimezone(timezone(timedelta(hours=5)) if zone else UTC)
    made_at = made.isoformat() if zone else made.isoformat().removesuffix("+00:00")
    both = [seen("a"), seen("b", made_at)]
    gone = Racks([both, both, [seen("a")]])
    assert deleted(gone, both[1])[0] == ([] if waits else ["b"])
    stays = Racks([both])
    assert deleted(stays, both[1])[0] == ["b"]
    assert stays.asked == (twin.WAIT / twin.PAUSE + 1 if waits else 1)


def test_a_twin_without_a_time_is_not_young() -> None:
    assert deleted(Racks([[seen("a"), seen("b", "")]]), seen("b", "yesterday"))[0] == ["b"]


def test_a_twin_is_found_by_its_id_and_judged_as_its_kind() -> None:
    run = Racks([[seen("a"), seen("b", NEW)]]).run()
    found = Twin.find(run, [twin_of("b"), twin_of("a"), twin_of("c")])
    assert {key.name: each.id for key, each in found.items()} == {"a (duplicate b)": "b", "a (duplicate a)": "a"}
    assert {key.kind for key in found} == {"rack"}
    assert twin_of().deleted_ids(seen("b")) == {"b", "part of b"}
    going = frozenset({"b", "c"})
    assert [each.what for each in twin_of().check_delete(run, seen("b"), going)] == ["b of 2"]
    both = [Deletion(twin_of(), seen("b")), Deletion(Twin(of=Box(name="a"), id="x"), seen("x"))]
    losses = [(key, each.id) for key, each in Twin.find_losses(run, both, going) if isinstance(each, DeletionLoss)]
    assert losses == [(twin_of().key, "of b (2)")]


def test_a_twin_that_appears_after_a_creation_is_deleted_at_the_end_of_the_run() -> None:
    """Only one of ours that nobody uses, and only beside what this run has created."""
    late = [seen("mine"), seen("b", NEW), seen("c", NEW, used_by=["server"]), replace(seen("d", NEW), ours=False)]
    racks = Racks([late])
    plan = planner.plan_apply("lab", [RACK], {})
    report = executor.execute(plan, racks.run())
    done = [(str(each.step), each.step.action, each.status) for each in report.results]
    assert done == [("rack/a", Action.CREATE, Status.DONE), ("rack/a (duplicate b)", Action.DELETE, Status.DONE)]
    assert racks.deleted == ["b"]
    racks = Racks([[seen("a"), seen("b", NEW)]])
    executor.execute(planner.plan_apply("lab", [RACK], {RACK.key: seen("a")}), racks.run())
    assert racks.deleted == []


def test_a_run_whose_last_list_fails_has_succeeded() -> None:
    class Broken(Racks):
        def look(self) -> Observed | None:
            raise CloudError("503")

    report = executor.execute(planner.plan_apply("lab", [RACK], {}), Broken([]).run())
    report.raise_for_failures()
    assert len(report.results) == 1
