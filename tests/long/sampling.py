"""What a process holds, turn after turn: memory, threads, file descriptors and sockets, from /proc."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

MIB = 2**20
ROOM = {"memory": 4 * MIB, "threads": 0, "descriptors": 2, "sockets": 2}
"""How much more the last quarter may hold than the second one: a connection that is being closed, a page of memory."""


@dataclass(frozen=True)
class Held:
    """What a process holds at one moment; ``memory`` in bytes."""

    memory: int
    threads: int
    descriptors: int
    sockets: int

    def __str__(self) -> str:
        return f"{self.memory / MIB:.1f} MiB, {self.threads} threads, {self.descriptors} files, {self.sockets} sockets"


def held(pid: int) -> Held:
    """Return what a process holds."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    targets = list(_targets(pid))
    sockets = sum(each.startswith("socket:") for each in targets)
    return Held(int(status["VmRSS"].split()[0]) * 1024, int(status["Threads"]), len(targets), sockets)


def _targets(pid: int) -> Iterator[str]:
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            yield os.readlink(each)


def growth(samples: Sequence[Held]) -> list[str]:
    """Return what the last quarter of the turns holds more of than the second one; the first one warms up.

    The least of each quarter counts: connections stay until the garbage collector finds them.
    """
    quarter = len(samples) // 4
    early, late = samples[quarter : 2 * quarter], samples[-quarter:]
    found = []
    for name in (each.name for each in fields(Held)):
        before, after = (min(getattr(each, name) for each in part) for part in (early, late))
        if after > before + ROOM[name]:
            found.append(f"{name}: {before} in the second quarter, {after} in the last one")
    return found
