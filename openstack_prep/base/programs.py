"""Runs a program of the user's own and reads what it prints, as long as the program itself runs and no longer.

A program that it leaves behind may hold its standard output open, so the end of the output is not waited for.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

CHUNK = 2**16
ROUND = 0.05
"""Seconds after which an end of the program is noticed although something else holds its output open."""


@dataclass(frozen=True)
class Ran:
    """How a program ended: its exit code, and what it printed, at most one byte more than was allowed."""

    code: int
    printed: bytes
    late: bool
    """Whether it took too long, and was killed."""


def run(
    words: Sequence[str],
    *,
    most: int,
    seconds: float,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    stderr: int | None = None,
) -> Ran:
    """Run a program with an empty standard input; its standard error goes to the terminal, or to ``stderr``.

    It is killed when it prints more than ``most`` bytes, or has not ended after ``seconds``; what it has started goes
    on. Raises OSError, and ValueError for a NUL character.
    """
    until = time.monotonic() + seconds
    with subprocess.Popen(
        words,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        bufsize=0,
    ) as process:
        try:
            content = _printed(process, most, until)
            late = False
            if len(content) <= most:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(until - time.monotonic(), 0))
                late = process.returncode is None
        finally:
            process.kill()  # does nothing if it has ended
        return Ran(process.wait(), content, late)


def _printed(process: subprocess.Popen[bytes], most: int, until: float) -> bytes:
    """Return what a program prints until it ends, closes its output, or has printed too much, or the time is over."""
    assert process.stdout is not None
    descriptor = process.stdout.fileno()
    os.set_blocking(descriptor, False)
    ready = select.poll()
    ready.register(descriptor, select.POLLIN)
    content = bytearray()
    ended = False
    while len(content) <= most and (ended or time.monotonic() < until):
        if not ready.poll(0 if ended else ROUND * 1000):
            if ended:
                break
            ended = process.poll() is not None
            continue
        chunk = os.read(descriptor, min(CHUNK, most + 1 - len(content)))
        if not chunk:
            break
        content += chunk
    return bytes(content)
