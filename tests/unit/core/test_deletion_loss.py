"""What deletions take from others is judged again right before each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest

from openstack_prep.base.errors import Loss, PlanRefused
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core import consent, executor, observing, planner
from openstack_prep.core.deletion_loss import Deletion, DeletionLoss, Finding, LossEffect
from openstack_prep.core.model import Observed, Status
from tests.unit.box import Box, Shelf

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
class Crate(Box):
    """It contains the volume, as a stack does."""

    kind: ClassVar[str] = "crate"
    leaves_content: ClassVar[bool] = True

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


@pytest.mark.parametrize("keeps", [False, True])
def test_what_a_stack_leaves_is_seen_before_its_project_goes(keeps: bool) -> None:
    shelf = Keeping({name: {} for name in ("room", "crate", VOLUME)})
    shelf.keeps = keeps
    run, spec = shelf.run(), [*resources()]
    plan = observing.find_losses(run, planner.plan_destroy("lab", spec, observing.observe(run, spec)))
    assert consent.refuse_losses(plan, frozenset()) == []  # nobody knows yet
    report = executor.execute(plan, run)
    if not keeps:
        report.raise_for_failures()
        assert not shelf.boxes
        return
    (failed,) = [each for each in report.results if each.status is Status.FAILED]
    assert isinstance(failed.error, PlanRefused)
    assert [each.lost for each in failed.error.mistakes if isinstance(each, Loss)] == [(f"volume/{VOLUME}",)]
    assert "room" in shelf.boxes
