"""Engines that could carry out the targets of a fleet: what each costs to install, to import, to start, and per task.

Each is installed into a fresh environment, so that its size counts; nothing is compiled before, nor left afterwards.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

from tests.bench import environments
from tests.bench.memory import Memory
from tests.bench.scenario import BenchError
from tests.devcloud.layout import REPOSITORY
from tests.devcloud.progress import say

BEGIN, END = "<!-- bench engines: begin -->", "<!-- bench engines: end -->"
DOCUMENT = REPOSITORY / "docs" / "design.md"
TRIAL = Path(__file__).with_name("engine_trial.py")
PINS = {
    "processes": (),
    "dask": ("distributed==2026.8.0", "cryptography==50.0.2"),
    "parsl": ("parsl==2026.10.26",),
    "ray": ("ray==2.60.0",),
}
NAMES = {"processes": "`ProcessPoolExecutor`", "dask": "Dask distributed", "parsl": "Parsl", "ray": "Ray"}


@dataclass(frozen=True)
class Found:
    """The size of an engine's installation in bytes, its packages, and what each trial took."""

    size: int
    packages: int
    trials: Sequence[Mapping[str, float]]

    def median(self, what: str) -> float:
        return median(each[what] for each in self.trials)


def measure(rounds: int, only: Sequence[str]) -> dict[str, Found]:
    """Return what was found of each engine; its first trial, which compiles, does not count."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        environments.make(Path(scratch, "empty"))
        empty = installed(Path(scratch, "empty"))
        for name, pins in PINS.items():
            if not any(text in name for text in only):
                continue
            home = Path(scratch, name)
            environments.make(home, *(("--no-compile", *pins) if pins else ()))
            size, packages = (one - other for one, other in zip(installed(home), empty, strict=True))
            trials = [trial(name, home) for _ in range(rounds + 1)][1:]
            found[name] = Found(size, packages, trials)
            say(f"{name}: {size / 2**20:.0f} MiB, {trials}")
    return found


def installed(home: Path) -> tuple[int, int]:
    """Return how many bytes the packages of an environment have, without compiled ones, and how many there are."""
    (place,) = home.glob("lib/python*/site-packages")
    files = [each for each in place.rglob("*") if each.is_file() and each.suffix != ".pyc"]
    return sum(each.stat().st_size for each in files), len(list(place.glob("*.dist-info")))


def trial(name: str, home: Path) -> Mapping[str, float]:
    """Return what one process takes, with those that it starts; raises BenchError."""
    with tempfile.TemporaryDirectory(prefix="b-") as folder:  # a short path: of sockets
        environment = {"PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}", "HOME": folder}
        words = [str(home / "bin" / "python"), str(TRIAL), name]
        with open(Path(folder, "log"), "w+") as log:
            process = psutil.Popen(words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=log)
            memory = Memory(process, interval=0.1)
            out, _ = process.communicate()
            memory.end()
            if process.returncode:
                log.seek(0)
                raise BenchError(f"{name}: exit code {process.returncode}\n{log.read()[-3000:]}")
    return json.loads(out.splitlines()[-1]) | {"memory": memory.most / 2**20}


def render(found: Mapping[str, Found], caption: str) -> str:
    """Return the table, with medians."""
    lines = [
        caption,
        "",
        "| | packages | installed, MiB | import, s | start of two workers, s | 1,000 tasks, s | peak memory, MiB |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, each in found.items():
        pins = " ".join(PINS[name][:1]).partition("==")[2]
        lines.append(
            f"| {NAMES[name]} {pins} | {each.packages} | {each.size / 2**20:.0f} | {each.median('import'):.2f} "
            f"| {each.median('start'):.1f} | {each.median('tasks'):.2f} | {each.median('memory'):.0f} |"
        )
    return "\n".join(lines).replace(" |  |", " | |")
