"""What starting costs before any work is done: CPU time of commands that need no cloud."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from statistics import median

from tests.bench import environments, scenario
from tests.bench.scenario import BenchError
from tests.bench.table import met
from tests.devcloud.layout import REPOSITORY

BEGIN, END = "<!-- bench start: begin -->", "<!-- bench start: end -->"
MOST = 0.1  # seconds of CPU


class Row(StrEnum):
    """What is measured, in the table's order."""

    OPENSTACK = "`openstack --version`"
    VERSION = "`openstack-prep --version`"
    HELP = "`openstack-prep --help`"
    VALIDATE = "`openstack-prep validate openshift-lab.yaml`"
    IMPORT = "`python -c 'import openstack_prep'`"
    PYTHON = "`python -c pass`"


def measure(rounds: int, only: Sequence[str]) -> dict[Row, list[float]]:
    """Return seconds of CPU, user and system; every command runs once before, so that its bytecode is there."""
    ours = Path(sys.executable).parent
    commands = {
        Row.OPENSTACK: [environments.ensure("shell") / "openstack", "--version"],
        Row.VERSION: [ours / "openstack-prep", "--version"],
        Row.HELP: [ours / "openstack-prep", "--help"],
        Row.VALIDATE: [ours / "openstack-prep", "validate", REPOSITORY / "install_configs" / scenario.SPEC],
        Row.IMPORT: [sys.executable, "-P", "-c", "import openstack_prep"],
        Row.PYTHON: [sys.executable, "-P", "-c", "pass"],
    }
    runs: dict[Row, list[float]] = defaultdict(list)
    for number in range(rounds + 1):
        for row, command in commands.items():
            if any(text in row for text in only):
                seconds = _cpu(command)
                if number:
                    runs[row].append(seconds)
    return runs


def _cpu(command: Sequence[str | Path]) -> float:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"OCP_PASSWORD": scenario.USER_PASSWORD, "TEMP_URL_KEY": scenario.TEMP_URL_KEY}
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise BenchError(f"{' '.join(map(str, command))}: exit code {process.returncode}")
    return used.ru_utime + used.ru_stime


def render(runs: Mapping[Row, Sequence[float]], caption: str) -> str:
    """Return both tables, with medians; rows without a run are left out."""
    lines = [caption, "", "| | seconds of CPU | least - most |", "|---|---:|---:|"]
    for row in Row:
        if row in runs:
            lines.append(f"| {row.value} | {median(runs[row]):.3f} | {min(runs[row]):.3f} - {max(runs[row]):.3f} |")
    lines += ["", "| goal | wanted | measured | met |", "|---|---:|---:|---|"]
    for row in (Row.VERSION, Row.HELP):
        if row in runs:
            seconds = median(runs[row])
            lines.append(f"| CPU of {row.value} | at most {MOST:g} s | {seconds:.3f} s | {met(seconds <= MOST)} |")
    return "\n".join(lines)
