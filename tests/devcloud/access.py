"""Reads the access logs: which requests reached the cloud between two moments.

A service writes its line before its answer leaves, so a client that has its answer finds the line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.devcloud.faults import SIGNATURE
from tests.devcloud.layout import HOSTED, Layout

LOGGED = (*HOSTED, "swift-proxy")

LogPosition = Mapping[str, int]  # how long each service's log was


@dataclass(frozen=True)
class Request:
    """One request that a service has answered; ``time`` is when, in seconds since the epoch."""

    service: str
    time: float
    method: str
    path: str
    query: str
    status: int
    user_agent: str
    request_id: str
    milliseconds: float
    fault: bool

    @property
    def internal(self) -> bool:
        """Whether the cloud made the request itself: a service, or the devcloud's own commands."""
        return SIGNATURE in self.user_agent


def mark(layout: Layout) -> LogPosition:
    """Return where each log ends now, to read from there later."""
    logs = (log for service in LOGGED for log in (layout.access_log(service), layout.begun_log(service)))
    return {log.name: _size(log) for log in logs}


def _size(log: Path) -> int:
    try:
        return os.stat(log).st_size
    except FileNotFoundError:
        return 0


def _lines(log: Path, since: LogPosition | None) -> list[Any]:
    """The lines of a log since a mark; one that is being written has no end yet."""
    if not log.exists():
        return []
    with open(log, "rb") as file:
        file.seek((since or {}).get(log.name, 0))
        return [json.loads(line) for line in file.read().rpartition(b"\n")[0].splitlines()]


def unanswered(layout: Layout, since: LogPosition) -> list[tuple[str, str, str]]:
    """Service, method and path of the requests that clients began since a mark, and that no service has ended yet."""
    found: list[tuple[str, str, str]] = []
    for service in LOGGED:
        begun: dict[str, Any] = {}
        for line in _lines(layout.begun_log(service), since):
            if "method" in line:
                begun[line["number"]] = line
            else:
                begun.pop(line["number"], None)
        found += ((service, each["method"], each["path"]) for each in begun.values() if not each["internal"])
    return found


def read(
    layout: Layout,
    since: LogPosition | None = None,
    *,
    services: Collection[str] = LOGGED,
    internal: bool = False,
) -> list[Request]:
    """Requests since a mark (or all), in the order of their answers.

    Those that the cloud makes itself are left out unless ``internal``.
    """
    found: list[Request] = []
    for service in services:
        found += (Request(service=service, **line) for line in _lines(layout.access_log(service), since))
    return sorted((each for each in found if internal or not each.internal), key=lambda each: each.time)
