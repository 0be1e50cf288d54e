"""openstack-prep, killed at its n-th request: ``python -m tests.races.stopped SETTINGS.json WORDS``.

The settings hold the keywords of ``Stop``, and the directory that stands for /proc when this run is to pass for one
of another host.  Without a stop the run's requests are counted, and the count is written at the end.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from requests.adapters import HTTPAdapter


@dataclass(frozen=True)
class Stop:
    """A kill at a run's request number ``request``: before it is sent, ``delay`` seconds later, or once answered.

    With ``writes`` only requests that change something are counted.
    """

    request: int
    phase: str
    delay: float = 0.0
    writes: bool = False

    def __str__(self) -> str:
        return f"{'write' if self.writes else 'request'} {self.request} ({self.phase})"


PHASES = ("before", "during", "after")


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def changes(method: str, url: str) -> bool:
    """Whether a request changes something; a login does not."""
    return method not in ("GET", "HEAD") and not url.endswith("/auth/tokens")


def watch(stop: Stop | None, counted: Path | None) -> None:
    """Count the requests of this process, and kill it at one of them."""
    numbers, writes = itertools.count(1), itertools.count(1)
    send = HTTPAdapter.send

    def watched(adapter: Any, request: requests.PreparedRequest, *arguments: Any, **options: Any) -> Any:
        number = next(numbers)
        write = next(writes) if changes(request.method or "", request.url or "") else None
        hit = stop if stop is not None and stop.request == (write if stop.writes else number) else None
        if hit and hit.phase == "before":
            kill()
        if hit and hit.phase == "during":
            threading.Timer(hit.delay, kill).start()
        if counted is not None:
            counted.write_text(str(number))
        answer = send(adapter, request, *arguments, **options)
        if hit:
            kill()
        return answer

    HTTPAdapter.send = watched  # type: ignore[assignment,method-assign]


def main() -> int:
    settings = json.loads(Path(sys.argv[1]).read_text())
    stop, counted = settings.get("stop"), settings.get("counted")
    if settings.get("proc"):
        from openstack_prep.cloud import lease

        lease.PROC = Path(settings["proc"])
    watch(stop and Stop(**stop), counted and Path(counted))
    from openstack_prep.cli.main import main as run

    return run(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
