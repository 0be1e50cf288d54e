"""The memory of a process and its children, as it changes."""

from __future__ import annotations

import threading

import psutil


class Memory:
    """The most memory that a process and its children have had, in bytes; pages that they share count once."""

    def __init__(self, process: psutil.Process, interval: float = 1.0) -> None:
        self._process, self._ended, self._interval, self.most = process, threading.Event(), interval, 0
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(self._interval):
            total = 0
            try:
                for each in (self._process, *self._process.children(recursive=True)):
                    total += each.memory_full_info().pss
            except psutil.NoSuchProcess:  # it has just ended
                continue
            self.most = max(self.most, total)
