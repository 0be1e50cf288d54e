"""Twins: two resources with the same name and our ownership tag, where OpenStack allows a name twice.

How concurrent runs agree on the twin that is kept, and why no interleaving loses it: docs/decisions.md, "Duplicates".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Self, cast

from openstack_prep.base.errors import Mistake, NotUnique, Overtaken, ResourceFailed
from openstack_prep.core.deletion_loss import Deletion, Finding, TakesAlong
from openstack_prep.core.model import Key, Observed, Resource
from openstack_prep.core.resource import ChecksDeletion, Undeclarable, deleted_ids, supports
from openstack_prep.core.run import Run

WAIT = 15.0  # seconds in which a run that has seen our twin deletes its own
PAUSE = 0.25  # seconds between two polls meanwhile
AT_ONCE = timedelta(minutes=10)
"""Most time between the creations of twins, by two runs that did not see each other's."""
YOUNG = timedelta(minutes=5)  # seconds for which the run that created a twin may still be in progress


def choose(candidates: Iterable[Observed]) -> Observed | None:
    """Return the resource that is kept, carrying the others as its twins: by use, then by age, then by id.

    A resource that others use comes before one that only this spec uses, and that before an unused one. The last are
    those that nobody has created at once with the oldest one: a copy is younger.
    """
    by_age = sorted(candidates, key=lambda candidate: (candidate.created_at, candidate.id))
    ordered = sorted(by_age, key=lambda candidate: (not created_at_once(by_age[0], candidate), -_use(candidate)))
    return replace(ordered[0], twins=tuple(ordered[1:])) if ordered else None


def _use(observed: Observed) -> int:
    return 2 if observed.used_by else 1 if observed.contained_ids else 0


def with_twins(observed: Observed | None) -> tuple[Observed, ...]:
    return (observed, *observed.twins) if observed else ()


def settle(key: Key, own_id: str, look: Callable[[], Observed | None], remove: Callable[[Observed], None]) -> None:
    """Return once the created resource, ``own_id``, is the one that is kept; else delete it and raise Overtaken.

    A run that sees only its own resource continues and never yields. So if nothing disappears for a while, the twin
    belongs to such a run, or to a dead one: then ``own_id`` is deleted, even if it is the older one.
    """
    until, before = 0.0, set[str]()
    while True:
        kept = look()
        present = with_twins(kept)
        ids = {twin.id for twin in present}
        if ids != before:  # another run is in progress
            until, before = time.monotonic() + WAIT, ids
        own = next((twin for twin in present if twin.id == own_id), None)
        # no run has changed anything for a while: the other twin belongs to a run that saw no twin, or is dead
        late = time.monotonic() >= until
        if own is None:
            if late or len(present) < 2:
                raise Overtaken(f"{key}: a concurrent run created it first", retryable=True)
        # what is in use cannot be deleted any more, even if the other twin is the one that is kept
        elif len(present) == 1 or (late and own.in_use):
            return
        elif (own is not kept or late) and not own.in_use:
            remove(own)
            continue
        time.sleep(PAUSE)


def late_twins(run: Run, created: Sequence[Resource]) -> list[tuple[Resource, Observed, Observed]]:
    """Return the resources that this run created and kept and that have an unused twin since.

    An interrupted run may have requested the twin, or a run that will find the kept one and yield.
    """
    now, existing = run.fresh(), dict[Key, Observed]()
    kinds: dict[type[Resource], None] = dict.fromkeys(map(type, created))
    for kind in kinds:
        existing |= kind.find(now, [resource for resource in created if type(resource) is kind])
    late = []
    for resource in created:
        known, present = run.known[resource.key], with_twins(existing.get(resource.key))
        own = next((twin for twin in present if twin.id == known.id), known)
        others = (twin for twin in present if twin.id != known.id and created_at_once(own, twin))
        late += [(resource, known, twin) for twin in others if twin.ours and not twin.in_use]
    return late


@dataclass(frozen=True, kw_only=True)
class Twin(Resource, Undeclarable):
    """A twin to delete: ``of`` names the resource, ``kept`` the id that is kept; empty if none is."""

    kind: ClassVar[str] = "twin"

    of: Resource
    id: str
    kept: str = ""

    @property
    def name(self) -> str:
        return f"{self.of.name} (duplicate {self.id})"

    @property
    def key(self) -> Key:
        return replace(self.of.key, name=self.name)

    @classmethod
    def find(cls, run: Run, wanted: Sequence[Self]) -> Mapping[Key, Observed]:
        found: dict[Key, Observed] = {}
        for twin in wanted:
            for one in with_twins(twin._look(run)):
                if one.id == twin.id:
                    found[twin.key] = one
        return found

    def _look(self, run: Run) -> Observed | None:
        return type(self.of).find(run, [self.of]).get(self.of.key)

    def deleted_ids(self, observed: Observed) -> frozenset[str]:
        return deleted_ids(self.of, observed)

    def check_delete(self, run: Run, observed: Observed, going: frozenset[str]) -> Iterable[Mistake]:
        return check_delete(self.of, run, observed, going)

    @classmethod
    def find_losses(cls, run: Run, deletions: Sequence[Deletion], going: frozenset[str]) -> Iterable[Finding]:
        """Yield what its own kind reports."""
        for deletion in deletions:
            of = cast(Twin, deletion.resource).of
            if supports(of, TakesAlong):
                found = type(of).find_losses(run, [Deletion(of, deletion.observed)], going)
                yield from ((deletion.key, finding) for _, finding in found)

    def delete(self, run: Run, observed: Observed) -> None:
        """Delete it unless it is in use or is the last one by then.

        The run that created it may still be in progress: for a while a young twin is left to that run.
        """
        if not self.kept:
            self.of.delete(run, observed)
            return
        # the run that created it deletes it itself, as soon as it has seen the other twin
        until = time.monotonic() + (WAIT if _young(observed) else 0)
        while True:
            chosen = self._look(run.fresh())
            twins = {twin.id: twin for twin in with_twins(chosen)}
            settled = self.id not in twins or self.kept not in twins
            if settled or time.monotonic() >= until:
                break
            time.sleep(PAUSE)
        if chosen is not None and not settled:
            twin = twins[self.id]
            if twin.used_by:
                raise ResourceFailed(f"{self.key} is now used by {', '.join(twin.used_by)}; it is kept")
            if chosen.id == self.kept or not twin.in_use:
                self.of.delete(run, twin)
                chosen = twins[self.kept]
        if chosen is not None:
            run.known[self.of.key] = replace(chosen, twins=())


def _young(observed: Observed) -> bool:
    """Whether it is so new that its creator may be in progress; clocks may differ, which does no harm."""
    made = _time_of(observed)
    return made is not None and abs(datetime.now(UTC) - made) < YOUNG


def created_at_once(one: Observed, other: Observed) -> bool:
    """Whether two runs may have created two twins because neither saw the other's.

    Otherwise somebody has created one of them with the description of the other, ownership tag included.
    """
    first, second = _time_of(one), _time_of(other)
    return first is None or second is None or abs(first - second) <= AT_ONCE


def check_delete(resource: Resource, run: Run, observed: Observed, going: frozenset[str]) -> Iterable[Mistake]:
    """Yield what forbids a deletion: what its kind reports, and copies that would pass for the resource afterwards."""
    for twin in observed.twins:
        if twin.ours and not created_at_once(observed, twin):
            what = f"{twin.id} has its name and ownership tag, but not its age, so somebody may have copied these"
            why = f"without {observed.id}, the copy would be taken for it"
            fix = "remove the ownership tag from the description of the copy, or delete the copy"
            yield Mistake.about(resource.key, f"{what}; {why}", fix, code=NotUnique.code)
    if supports(resource, ChecksDeletion):
        yield from resource.check_delete(run, observed, going)


def _time_of(observed: Observed) -> datetime | None:
    try:
        made = datetime.fromisoformat(observed.created_at)
    except ValueError:
        return None
    return made if made.tzinfo else made.replace(tzinfo=UTC)
