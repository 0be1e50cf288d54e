"""What deletions take from others is judged again right before each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import CloudError, Loss, Mistake, PlanRefused, PrepError
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import executor, observation, permission, planner, text
from openstack_prep.core.deletion_loss import Deletion, DeletionLoss, Finding, LossEffect, Unchecked
from openstack_prep.core.model import Action, Key, Observed, Result, Status, Step
from openstack_prep.core.plan import Plan
from openstack_prep.core.resource import LeavesContent
from tests.unit.box import LOST, Box, Shelf
from tests.unit.texts import Wording

VOLUME = "kept-volume"


@dataclass(frozen=True, kw_only=True)
class Room(Box):
    """What is left on the shelf loses its room, as a volume its project."""

    kind: ClassVar[str] = "room"

    @classmethod
    def find_losses(cls, run: CloudRun, deletions: Sequence[Deletion], going: frozenset[str]) -> Iterator[Finding]:
        for each in deletions:
            if VOLUME in cls._shelf(run).boxes and VOLUME not in going:
                yield each.key, DeletionLoss(effect=LossEffect.ORPHANED, kind="volume", id=VOLUME)


@dataclass(frozen=True, kw_only=True)
class Crate(Box, LeavesContent):
    """It contains the volume, as a stack does."""

    kind: ClassVar[str] = "crate"

    @staticmethod
    def _observed(name: str, box: dict[str, Any]) -> Observed:
        return replace(Box._observed(name, box), contained_ids=frozenset({VOLUME}))


class Keeping(Shelf):
    """A cloud whose crates keep their content, or not."""

    keeps = False

    def work(self, what: str, do: Any) -> Any:
        done = super().work(what, do)
        if what == "delete crate" and not self.keeps:
            del self.boxes[VOLUME]
        return done


def resources() -> Iterable[Box]:
    room = Room(name="room")
    return [room, Crate(name="crate", wants=(room.key,))]


@dataclass(frozen=True, kw_only=True)
class Shared(Box):
    """It cannot be deleted while a guest is on the shelf."""

    kind: ClassVar[str] = "shared"

    def check_delete(self, run: CloudRun, observed: Observed, going: frozenset[str]) -> Iterator[Mistake]:
        if "guest" in self._shelf(run).boxes:
            yield Mistake.about(self.key, "a guest is in it", "let the guest leave")


def test_what_is_no_longer_managed_is_kept() -> None:
    shelf = Shelf({"a": {}})
    plan = planner.plan_destroy("lab", [Box(name="a")], observation.observe(shelf.run(), [Box(name="a")]))
    shelf.boxes["a"]["ours"] = False
    (result,) = executor.execute(plan, shelf.run()).results
    assert (result.status, result.step.action) == (Status.DONE, Action.KEEP)
    assert "a" in shelf.boxes


@pytest.mark.parametrize("replaces", [False, True])
def test_what_others_use_since_the_plan_is_kept(replaces: bool) -> None:
    shelf = Shelf({"a": {"material": "oak"}})
    box = Shared(name="a", material="tin" if replaces else "oak")
    observed = observation.observe(shelf.run(), [box])
    if replaces:
        plan = planner.plan_apply("lab", [box], observed, allow_replace=True)
    else:
        plan = planner.plan_destroy("lab", [box], observed)
    assert observation.examine_deletes(shelf.run(), plan) == []
    shelf.boxes["guest"] = {}
    assert [each.keys for each in observation.examine_deletes(shelf.run(), plan)] == [(box.key,)]
    (failed,) = executor.execute(plan, shelf.run()).failed
    assert isinstance(failed.error, PlanRefused)
    assert shelf.boxes["a"] == {"material": "oak"}


def test_what_others_use_can_be_updated_in_a_second_attempt() -> None:
    shelf = Shelf({"a": {"size": 1}, "guest": {}}, before={"update a": [LOST]})
    box = Shared(name="a", size=2)
    plan = planner.plan_apply("lab", [box], observation.observe(shelf.run(), [box]))
    executor.execute(plan, shelf.run()).raise_for_failures()
    assert shelf.boxes["a"] == {"size": 2}


@dataclass(frozen=True, kw_only=True)
class Judged(Box):
    """It tells what is judged by the same list right before its deletion."""

    kind: ClassVar[str] = "judged"

    def check_delete(self, run: CloudRun, observed: Observed, going: frozenset[str]) -> Iterator[Mistake]:
        self._shelf(run).asked.append(f"judge {' '.join(sorted(run.companions_of(self.kind, observed.id)))}")
        yield from ()


def test_deletions_are_judged_together_with_those_that_are_left() -> None:
    shelf = Shelf({name: {} for name in "abc"})
    boxes = [Judged(name="a"), *(Judged(name=name, wants=(Key("judged", "a"),)) for name in "bc")]
    executor.execute(planner.plan_destroy("lab", boxes, observation.observe(shelf.run(), boxes)), shelf.run(), jobs=1)
    judged = [each for each in shelf.asked if each.startswith("judge")]
    assert judged == ["judge id-a id-b id-c"] * 2 + ["judge id-a"]


def test_deletions_that_begin_together_share_what_they_read() -> None:
    shelf = Shelf({name: {} for name in "abc"})
    boxes = [Box(name="a"), *(Box(name=name, on=("a",)) for name in "bc")]
    executor.execute(planner.plan_destroy("lab", boxes, observation.observe(shelf.run(), boxes)), shelf.run(), jobs=1)
    assert shelf.asked == ["find", "find", "delete c", "delete b", "find", "delete a"]


def test_what_a_service_fails_to_answer_is_refused_by_name() -> None:
    loss = DeletionLoss(effect=LossEffect.UNREAD, kind="unread", id="zone", detail="zones: 503")
    own = DeletionLoss(effect=LossEffect.DELETED, kind="role", id="mine", is_own=True)
    losses = (loss, replace(loss, detail="zones of region two: 503"), own)
    step = Step(resource=Box(name="a"), action=Action.DELETE, deletion_losses=losses)
    (refusal,) = permission.refuse_losses([step], frozenset())
    assert refusal.code == Code.PLAN_LOSES
    assert refusal.fix.count("--allow-loss unread/zone") == 1
    assert permission.refuse_losses([step], frozenset({"unread/zone"})) == []
    assert [each.data(frozenset())["allowed"] for each in step.deletion_losses] == [False, False, True]


@pytest.mark.parametrize(
    ("action", "status", "told"),
    [
        (Action.DELETE, Status.DONE, True),
        (Action.REPLACE, Status.DONE, True),
        (Action.UPDATE, Status.DONE, True),
        (Action.ADOPT, Status.DONE, True),
        (Action.UPDATE, Status.FAILED, False),
        (Action.DELETE, Status.FAILED, False),
        (Action.KEEP, Status.DONE, False),
    ],
)
def test_a_report_names_what_a_deletion_has_taken_along(action: Action, status: Status, told: bool) -> None:
    loss = DeletionLoss(effect=LossEffect.ORPHANED, kind="volume", id="v1", name="data")
    result = Result(step=Step(resource=Box(name="a"), action=action, deletion_losses=(loss,)), status=status)
    assert (text.result_data(result).get("losses") == [loss.data({"volume/v1"})]) == told
    assert ("orphaned: volume/v1 (data)" in text.result_line(result, 1)) == told


@dataclass(frozen=True, kw_only=True)
class Tenement(Box):
    """Its update takes the guests along, as that of a stack the rules of others."""

    kind: ClassVar[str] = "tenement"

    @staticmethod
    def _observed(name: str, box: dict[str, Any]) -> Observed:
        return replace(Box._observed(name, box), record=tuple(box.get("guests", ())))

    def list_taken(self, observed: Observed) -> Iterable[DeletionLoss | Unchecked]:
        yield Unchecked("cellars", "403")
        for guest in observed.record_as(tuple):
            yield DeletionLoss(effect=LossEffect.DELETED, kind="guest", id=guest)

    def is_foreseen(self, observed: Observed) -> bool:
        return True


def planned(shelf: Shelf, *allowed: str) -> Plan:
    run, spec = shelf.run(), [Tenement(name="a", size=2)]
    plan = planner.plan_apply("lab", spec, observation.observe(run, spec), allow_replace=True)
    return replace(observation.find_losses(run, plan), allow_loss=frozenset(allowed))


def test_what_an_update_takes_from_others_is_named_and_allowed_by_its_name_alone() -> None:
    shelf = Shelf({"a": {"size": 1, "guests": ["x"]}})
    plan = planned(shelf, "guest/x")
    (step,) = plan
    assert (step.action, step.losses, step.unchecked) == (Action.UPDATE, (), (Unchecked("cellars", "403"),))
    assert "deleted: guest/x" in text.step_line(step, 1)
    assert [each["address"] for each in plan.data()[0]["losses"]] == ["guest/x"]
    (refusal,) = permission.refuse_losses(plan, frozenset())
    assert (refusal.code, isinstance(refusal, Loss) and refusal.lost) == (Code.PLAN_LOSES, ("guest/x",))
    assert "--allow-loss guest/x" in refusal.fix
    assert permission.refuse_losses(plan, plan.allow_loss) == []


@pytest.mark.parametrize("allowed", [(), ("guest/x",), ("guest/x", "guest/late")])
def test_what_an_update_takes_is_judged_again_right_before_it(allowed: tuple[str, ...]) -> None:
    shelf = Shelf({"a": {"size": 1, "guests": ["x"]}})
    plan = planned(shelf, *allowed)
    shelf.boxes["a"]["guests"] = ["x", "late"]
    (result,) = executor.execute(plan, shelf.run()).results
    if "guest/late" in allowed:
        assert shelf.boxes["a"]["size"] == 2
        assert [each["address"] for each in text.result_data(result)["losses"]] == ["guest/x", "guest/late"]
        return
    assert isinstance(result.error, PlanRefused)
    assert shelf.boxes["a"]["size"] == 1
    assert {thing for each in result.error.mistakes for thing in getattr(each, "lost", ())} == {
        "guest/late",
        *(() if allowed else ("guest/x",)),
    }


@pytest.mark.parametrize("keeps", [False, True])
def test_what_a_stack_leaves_is_seen_before_its_project_goes(keeps: bool) -> None:
    shelf = Keeping({name: {} for name in ("room", "crate", VOLUME)})
    shelf.keeps = keeps
    run, spec = shelf.run(), [*resources()]
    plan = observation.find_losses(run, planner.plan_destroy("lab", spec, observation.observe(run, spec)))
    assert permission.refuse_losses(plan, frozenset()) == []  # nobody knows yet
    report = executor.execute(plan, run)
    if not keeps:
        report.raise_for_failures()
        assert not shelf.boxes
        return
    (failed,) = [each for each in report.results if each.status is Status.FAILED]
    assert isinstance(failed.error, PlanRefused)
    assert [each.lost for each in failed.error.mistakes if isinstance(each, Loss)] == [(f"volume/{VOLUME}",)]
    assert "room" in shelf.boxes


@dataclass(frozen=True, kw_only=True)
class House(Box):
    """Whatever nobody deletes loses its house, as a network its project."""

    kind: ClassVar[str] = "house"

    @classmethod
    def find_losses(cls, run: CloudRun, deletions: Sequence[Deletion], going: frozenset[str]) -> Iterator[Finding]:
        for each in deletions:
            for name, box in cls._shelf(run).boxes.items():
                left = Box._observed(name, box).id
                if name != each.key.name and left not in going:
                    yield each.key, DeletionLoss(effect=LossEffect.ORPHANED, kind="box", id=left)


def test_what_somebody_took_over_meanwhile_is_nothing_that_goes() -> None:
    shelf = Shelf({"house": {}, "net": {}})
    house = House(name="house")
    spec = [house, Box(name="net", wants=(house.key,))]
    run = shelf.run()
    plan = observation.find_losses(run, planner.plan_destroy("lab", spec, observation.observe(run, spec)))
    assert not permission.refuse_losses(plan, frozenset())
    shelf.boxes["net"]["ours"] = False
    report = executor.execute(plan, run)
    assert {(str(each.step), each.step.action, each.status) for each in report.results} == {
        ("box/net", Action.KEEP, Status.DONE),
        ("house/house", Action.DELETE, Status.FAILED),
    }
    assert shelf.boxes.keys() == {"house", "net"}


def test_an_allowed_loss_that_no_deletion_has_is_reported_with_the_one_that_is_meant(wording: Wording) -> None:
    shelf = Shelf({"house": {}, "net": {}})
    spec = [House(name="house")]
    run = shelf.run()
    plan = observation.find_losses(run, planner.plan_destroy("lab", spec, observation.observe(run, spec)))
    (loss,) = plan.steps[0].deletion_losses
    assert permission.unknown_losses(plan, {loss.address}) == []
    (warning,) = permission.unknown_losses(plan, {loss.id})
    wording(warning)


@pytest.mark.parametrize(
    ("name", "detail", "text"),
    [
        ("", "", "port/1"),
        ("web", "", "port/1 (web)"),
        ("", "of a", "port/1 (of a)"),
        ("web", "of a", "port/1 (web, of a)"),
    ],
)
def test_a_loss_is_shown_with_what_is_known_of_it(name: str, detail: str, text: str) -> None:
    assert str(DeletionLoss(effect=LossEffect.DELETED, kind="port", id="1", name=name, detail=detail)) == text


@pytest.mark.parametrize("error", [CloudError("503 no", request_id="req-1"), PrepError("503 no")])
def test_a_loss_that_nobody_knows_tells_the_reason(error: PrepError) -> None:
    loss = DeletionLoss.unread("zone", "zones", error, fix="ask")
    assert (loss.effect, loss.address, loss.fix) == (LossEffect.UNREAD, "unread/zone", "ask")
    assert loss.detail == "zones: 503 no", "without the number of the request, which differs each time"
    assert DeletionLoss.unread("zone", "zones", error).fix == ""
