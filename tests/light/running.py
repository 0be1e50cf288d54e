"""A server in a process of its own, for tests and measurements."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.devcloud.layout import REPOSITORY, Layout
from tests.devcloud.ports import STEP

SPEC = Path(__file__).with_name("tenant.yaml")
START = 30
"""Seconds in which it begins to answer, and in which it ends."""


@dataclass(frozen=True)
class Light:
    """A running server; ``layouts`` are those of its clouds."""

    directory: Path
    layouts: Sequence[Layout]
    regions: Sequence[str]

    @property
    def clouds_file(self) -> Path:
        return self.directory / "clouds.yaml"

    @property
    def entries(self) -> list[str]:
        """The administrators' entries."""
        return [f"light-{region}" for region in self.regions]

    def counts(self, number: int = 0) -> Any:
        """Return what a cloud has counted since the last reset."""
        return self._ask(number, "/_count")

    def reset(self, number: int = 0) -> Any:
        """Count from zero; return what was counted until now."""
        return self._ask(number, "/_count", b"")

    def set_latency(self, milliseconds: float, number: int = 0) -> None:
        self._ask(number, "/_latency", str(milliseconds).encode())

    def _ask(self, number: int, path: str, body: bytes | None = None) -> Any:
        url = f"{self.layouts[number].url('keystone')}{path}"
        with urllib.request.urlopen(url, body, timeout=START) as answer:
            return json.load(answer)


@contextlib.contextmanager
def running(
    directory: Path,
    *,
    base: int,
    regions: Sequence[str] = ("RegionOne",),
    latency_ms: float = 0.0,
    projects: int = 0,
) -> Iterator[Light]:
    """Run a server until the end, with so many projects of other people; raises RuntimeError if it does not start."""
    options = ["--port-base", str(base), "--latency-ms", str(latency_ms), "--directory", str(directory)]
    options += ["--projects", str(projects)]
    options += ["--clouds", str(len(regions)), *(word for region in regions for word in ("--region", region))]
    command = [sys.executable, "-m", "tests.light", *options]
    with open(directory / "light.log", "wb") as log:
        process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=log)
    try:
        assert process.stdout
        if not process.stdout.readline():  # it prints one when its ports listen
            why = (directory / "light.log").read_text()
            raise RuntimeError(f"the light server did not start: {why}")
        layouts = [Layout(base + STEP * number, directory) for number in range(len(regions))]
        yield Light(directory, layouts, regions)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=START)
