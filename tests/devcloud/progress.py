"""What the devcloud tells its user while it works."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


def say(text: str) -> None:
    """One line, visible at once, on stderr: stdout belongs to the answers."""
    print(f"devcloud: {text}", file=sys.stderr, flush=True)


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Say how long the enclosed work took, once it is done."""
    started = time.monotonic()
    yield
    say(f"{what} ({time.monotonic() - started:.1f} s)")
