"""A kind whose cloud is a shelf in memory: for what the planner and the executor do with any kind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, cast

from openstack_prep.base.errors import CloudError
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import Change, Key, Observed, OwnershipTag, Resource

LOST = CloudError("the answer was lost", retryable=True)
BROKEN = CloudError("400 no such colour", status=400)


@dataclass
class Shelf:
    """What there is and what was asked for; ``before`` and ``after`` the work of "create a" things can happen."""

    boxes: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    before: dict[str, list[Any]] = field(default_factory=dict)
    after: dict[str, list[Any]] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def happens(self, when: dict[str, list[Any]], what: str) -> None:
        event = when[what].pop(0) if when.get(what) else None
        if isinstance(event, BaseException):
            raise event
        if event is not None:
            event()

    def work(self, what: str, do: Callable[[], Any]) -> Any:
        with self.lock:
            self.asked.append(what)
        self.happens(self.before, what)
        with self.lock:
            done = do()
        self.happens(self.after, what)
        return done

    def run(self) -> CloudRun:
        return CloudRun(cast(Cloud, self), OwnershipTag("lab"))


@dataclass(frozen=True, kw_only=True)
class Box(Resource):
    """A box that stands on others; its material cannot be changed."""

    kind: ClassVar[str] = "box"
    identity: ClassVar[frozenset[str]] = frozenset({"name", "on", "wants", "gives", "behind"})
    immutable: ClassVar[frozenset[str]] = frozenset({"material"})

    name: str
    size: int | None = None
    colour: str | None = None
    material: str | None = None
    on: tuple[str, ...] = ()
    wants: tuple[Key, ...] = ()
    gives: tuple[Key, ...] = ()
    behind: tuple[Key, ...] = ()

    def references(self) -> Iterable[Resource]:
        return [Box(name=name) for name in self.on]

    def needs(self) -> Iterable[Key]:
        return self.wants

    def follows(self) -> Iterable[Key]:
        return self.behind

    def provides(self) -> Iterable[Key]:
        return (self.key, *self.gives)

    @staticmethod
    def _shelf(run: CloudRun) -> Shelf:
        return cast(Shelf, run.admin)

    @classmethod
    def find(cls, run: CloudRun, wanted: Sequence[Self]) -> Mapping[Key, Observed]:
        shelf = cls._shelf(run)
        listed = run.read_once(
            "boxes", lambda: shelf.work("find", lambda: {name: dict(box) for name, box in shelf.boxes.items()})
        )
        return {each.key: cls._observed(each.name, listed[each.name]) for each in wanted if each.name in listed}

    @staticmethod
    def _observed(name: str, box: dict[str, Any]) -> Observed:
        values = {key: value for key, value in box.items() if key != "ours"}
        return Observed(id=f"id-{name}", values=values, ours=box.get("ours", True))

    def create(self, run: CloudRun) -> Observed:
        def make() -> Observed:
            assert self.name not in shelf.boxes, f"{self.name} was made twice"
            shelf.boxes[self.name] = self.desired()
            return self._observed(self.name, shelf.boxes[self.name])

        shelf = self._shelf(run)
        return cast(Observed, shelf.work(f"create {self.name}", make))

    def update(self, run: CloudRun, observed: Observed, changes: Sequence[Change]) -> Observed:
        def change() -> Observed:
            shelf.boxes[self.name] |= {each.field: each.after for each in changes}
            return self._observed(self.name, shelf.boxes[self.name])

        shelf = self._shelf(run)
        return cast(Observed, shelf.work(f"update {self.name}", change))

    def delete(self, run: CloudRun, observed: Observed) -> None:
        shelf = self._shelf(run)
        shelf.work(f"delete {self.name}", lambda: shelf.boxes.pop(self.name, None))
