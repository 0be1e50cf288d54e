"""Answers that many threads need: the first one reads, the others wait for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Kept:
    """Answers by name. An error is kept for nobody: whoever has waited for it reads for itself."""

    def __init__(self) -> None:
        self._answers: dict[Hashable, Future[Any]] = {}
        self._lock = threading.Lock()

    def once(self, name: Hashable, read: Callable[[], T]) -> T:
        """Return the answer with a name, which is read if nobody has read it yet."""
        with self._lock:
            answer = self._answers.get(name)
            first = answer is None
            if answer is None:
                answer = self._answers[name] = Future()
        if not first:
            found: T = read() if answer.exception() else answer.result()
            return found
        try:
            found = read()
        except BaseException as error:
            with self._lock:
                del self._answers[name]
            answer.set_exception(error)
            raise
        answer.set_result(found)
        return found
