"""One read for all threads that write at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeVar, cast

W = TypeVar("W")
R = TypeVar("R")


@dataclass
class _Group:
    writers: int = 0
    waiting: int = 0
    answer: Future[object] = field(default_factory=Future)


class Wave:
    """Lets steps that create resources of one kind at the same time share the list request that follows.

    The last thread to end its write reads, so the answer is newer than each of the writes, and many concurrent writes
    cost one list request.
    """

    def __init__(self) -> None:
        self._groups: dict[Hashable, _Group] = {}
        self._lock = threading.Lock()

    def write(self, name: Hashable, write: Callable[[], W], read: Callable[[], R]) -> tuple[W, R]:
        """Return the results of ``write`` and ``read``; an error of ``read`` is raised in all threads of the wave."""
        with self._lock:
            group = self._groups.setdefault(name, _Group())
            group.writers += 1
        try:
            written = write()
        except BaseException:
            self._leave(name, group, read)
            raise
        with self._lock:
            group.waiting += 1
        self._leave(name, group, read)
        return written, cast(R, group.answer.result())

    def _leave(self, name: Hashable, group: _Group, read: Callable[[], object]) -> None:
        with self._lock:
            group.writers -= 1
            if group.writers:
                return
            del self._groups[name]
        if not group.waiting:
            return
        try:
            group.answer.set_result(read())
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it
            group.answer.set_exception(error)
