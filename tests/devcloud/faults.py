"""Faults on demand: answers that a test wants the cloud to give, or not to give.

``inject`` writes the rules where the services' middleware looks for them before every request.
(A proxy before every service would need a second catalogue and could not tell the services' own requests.)
Requests that the services make of each other are never hit.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.devcloud.layout import SERVICES, Layout

HELD_POLL = 0.05  # seconds
SIGNATURE = "devcloud/"  # in the user agent of requests that the cloud makes itself

EFFECTS = {
    "refuse": "close the connection before the work, and accept none for ``delay`` seconds (Swift: reset)",
    "reset": "reset the connection before the work is done",
    "late": "do the work, then answer ``status``, as a proxy does that has waited for too long",
    "cut": "do the work, and close the connection in the middle of the answer",
    "drip": "do the work, and send the answer in pieces, for ``delay`` seconds",
    "html": "do the work, and answer an HTML page with the same status",
    "empty": "do the work, and answer nothing with the same status",
    "half": "do the work, and answer half of the text as if it were all",
    "list": "do the work, and answer a list where an object belongs",
    "stale": "answer as the same token was answered before, if it was",
}
SHAPES = ("html", "empty", "half", "list")


@dataclass(frozen=True)
class Fault:
    """A rule: which requests to hit, and what to do to them.

    ``method``, ``path_regex`` and ``user_agent_regex`` all have to match (the expressions anywhere
    in the text; empty matches all).  The first ``skip`` requests that match are spared, the next
    ``times`` are hit, the rest are spared again.  A request is hit by one rule at most, the first.

    What happens: wait ``delay`` seconds, or with ``held`` until the rules change, but no longer;
    then answer ``status`` without doing the work, or do the work and, with ``drop_answer``, close
    the connection instead of answering.  ``effect`` is one of EFFECTS instead.
    """

    service: str
    method: str = ""
    path_regex: str = ""
    user_agent_regex: str = ""
    skip: int = 0
    times: int = 1
    delay: float = 0.0
    held: bool = False
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    drop_answer: bool = False
    effect: str = ""

    def __post_init__(self) -> None:
        if self.service not in SERVICES:
            raise ValueError(f"no such service: {self.service!r}; there are {', '.join(SERVICES)}")
        if not (self.delay or self.status or self.drop_answer or self.effect):
            raise ValueError("a fault needs a delay, a status, drop_answer or an effect")
        if self.effect and self.effect not in EFFECTS:
            raise ValueError(f"no such effect: {self.effect!r}; there are {', '.join(EFFECTS)}")
        if self.effect == "late" and not self.status:
            raise ValueError("late needs a status")
        if self.held and (self.effect or not self.delay):
            raise ValueError("held needs a delay, and no effect")

    def matches(self, method: str, path: str, user_agent: str) -> bool:
        return (
            SIGNATURE not in user_agent
            and self.method in ("", method)
            and re.search(self.path_regex, path) is not None
            and re.search(self.user_agent_regex, user_agent) is not None
        )


class Faults:
    """The rules for one service, as its middleware sees them; counts what they hit."""

    def __init__(self, path: str, service: str) -> None:
        self._path = path
        self._service = service
        self._version: tuple[int, int] | None = None
        self._rules: list[Fault] = []
        self._seen: list[int] = []
        self._lock = threading.Lock()
        self.remembered: dict[tuple[str, ...], Any] = {}
        """The first answer to each GET since the rules were set; only kept while a rule is stale."""

    def hit(self, method: str, path: str, user_agent: str) -> Fault | None:
        """The rule that hits this request, which is counted."""
        version = _version_of(self._path)
        if version is None:
            return None
        with self._lock:
            if self._version != version:
                self._read()
                self._version = version
                self.remembered.clear()
            for number, rule in enumerate(self._rules):
                if rule.matches(method, path, user_agent):
                    self._seen[number] += 1
                    if rule.skip < self._seen[number] <= rule.skip + rule.times:
                        return rule
        return None

    def wait(self, rule: Fault) -> None:
        """Delay a request that a rule has hit."""
        if not rule.held:
            time.sleep(rule.delay)
            return
        deadline = time.monotonic() + rule.delay
        while self._is_in_force(rule) and time.monotonic() < deadline:
            time.sleep(HELD_POLL)

    def _is_in_force(self, rule: Fault) -> bool:
        """Whether the rules are still those that a rule is one of; equal ones that replace them are others."""
        return _version_of(self._path) == self._version and any(each is rule for each in self._rules)

    @property
    def remembers(self) -> bool:
        """Whether a rule gives answers of the past."""
        return any(rule.effect == "stale" for rule in self._rules)

    def _read(self) -> None:
        rules = [Fault(**rule) for rule in json.loads(Path(self._path).read_text())]
        self._rules = [rule for rule in rules if rule.service == self._service]
        self._seen = [0] * len(self._rules)


def _version_of(path: str) -> tuple[int, int] | None:
    """What tells the rules in a file from others; None if there are no rules."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


@contextlib.contextmanager
def inject(layout: Layout, *rules: Fault) -> Iterator[None]:
    """Let the cloud misbehave inside the block.  Rules replace those of an outer block."""
    new = layout.faults_file.with_suffix(".new")
    new.write_text(json.dumps([asdict(rule) for rule in rules]))
    new.replace(layout.faults_file)  # the services never see half a file
    try:
        yield
    finally:
        clear(layout)


def clear(layout: Layout) -> None:
    """No faults from now on."""
    layout.faults_file.unlink(missing_ok=True)
