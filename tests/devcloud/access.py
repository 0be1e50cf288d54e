"""Reads the access logs: which requests reached the cloud between two moments.

A service writes its line before its answer leaves, so a client that has its answer finds the line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tests.devcloud.faults import SIGNATURE
from tests.devcloud.layout import HOSTED, Layout

LOGGED = (*HOSTED, "swift-proxy")

OwnershipTag = Mapping[str, int]  # how long each service's log was


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


def mark(layout: Layout) -> OwnershipTag:
    """This moment, to read from later."""
    return {service: _size(layout, service) for service in LOGGED}


def _size(layout: Layout, service: str) -> int:
    try:
        return os.stat(layout.access_log(service)).st_size
    except FileNotFoundError:
        return 0


def read(
    layout: Layout,
    since: OwnershipTag | None = None,
    *,
    services: Collection[str] = LOGGED,
    internal: bool = False,
) -> list[Request]:
    """Requests since a mark (or all), in the order of their answers.

    Those that the cloud makes itself are left out unless ``internal``.
    """
    found: list[Request] = []
    for service in services:
        if not layout.access_log(service).exists():
            continue
        with open(layout.access_log(service), "rb") as log:
            log.seek((since or {}).get(service, 0))
            # a line that is being written has no end yet
            lines = log.read().rpartition(b"\n")[0].splitlines()
        found += (Request(service=service, **json.loads(line)) for line in lines)
    return sorted((each for each in found if internal or not each.internal), key=lambda each: each.time)
