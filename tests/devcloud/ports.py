"""Which ports a cloud takes when nobody says: a base that is free, and that nobody else is about to take.

Whoever uses a base holds a claim on it: an abstract Unix socket (unix(7)).  Like ports, its name belongs to
the whole machine, so that it is seen from other checkouts, and it goes with its process.
"""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tests.devcloud import processes, state
from tests.devcloud.layout import HIGHEST_BASE, SERVICES, DevcloudError, Layout, default_root
from tests.devcloud.progress import say

STEP = 500  # no two of a cloud's ports are a multiple of it apart
LOWEST_BASE = 10000


@contextlib.contextmanager
def claimed(first: Layout, purpose: str) -> Iterator[Layout]:
    """Claim a base until the end: the first one, or else one that is free; raises DevcloudError.

    A base other than the first must be of the same purpose, or never used in this directory.  One with
    a built state comes before one without, for building takes a minute.
    """
    bases = range(HIGHEST_BASE // STEP * STEP, LOWEST_BASE - 1, -STEP)
    others = [replace(first, base=base) for base in bases if base != first.base]
    mine = [each for each in others if not each.home.exists() or _purpose(each) == purpose]
    for layout in (first, *sorted(mine, key=lambda each: not state.has_pristine(each))):
        with _claim(layout) as free:
            if free and not taken_by_others(layout):
                if layout != first:
                    say(f"port base {first.base} is in use; using {layout.base}")
                layout.root.mkdir(parents=True, exist_ok=True)
                _purpose_file(layout).write_text(purpose)
                yield layout
                return
    raise DevcloudError(
        f"no port base from {LOWEST_BASE} to {HIGHEST_BASE} has all its ports free: stop a devcloud that runs, "
        "or free some ports"
    )


@contextlib.contextmanager
def claimed_exactly(layout: Layout) -> Iterator[Layout]:
    """Claim this base until the end; raises DevcloudError when somebody else has, or uses a port of it."""
    with _claim(layout) as free:
        if not free:
            raise DevcloudError(f"another run uses port base {layout.base}: wait for its end, or choose another base")
        processes.check_ports(layout, taken_by_others(layout))
        yield layout


@contextlib.contextmanager
def _claim(layout: Layout) -> Iterator[bool]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as claim:
        try:
            claim.bind(f"\0openstack-prep-devcloud-{layout.base}")
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            yield False
        else:
            yield True


def choose(base: int | None, first: int, purpose: str) -> contextlib.AbstractContextManager[Layout]:
    """Claim the base that the user gives, or else the first one or another."""
    if base is not None:
        return claimed_exactly(Layout(base, default_root()))
    return claimed(Layout(first, default_root()), purpose)


def taken_by_others(layout: Layout) -> list[str]:
    """Return the services whose ports are in use by anything but this cloud."""
    busy = [service for service in SERVICES if not processes.is_free(layout.port(service))]
    return [service for service in busy if service not in processes.running(layout)] if busy else []


def _purpose_file(layout: Layout) -> Path:
    return layout.root / f"{layout.base}.purpose"


def _purpose(layout: Layout) -> str | None:
    try:
        return _purpose_file(layout).read_text()
    except OSError:
        return None
