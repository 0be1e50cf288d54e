"""Runs commands of openstack-prep for tools, each in a process of its own, and returns the JSON that they print.

So a tool does what the command does, and an answer contains what the command shows: no secret.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from openstack_prep.base.errors import ConfigError
from openstack_prep.base.programs import SWITCH
from openstack_prep.base.raw import Values

RUN = """
import json, runpy, sys
sys.argv[1:] = json.load(sys.stdin)
runpy.run_module("openstack_prep.cli.main", run_name="__main__", alter_sys=True)
"""
"""Runs a command whose words come from standard input: others see the arguments of a process."""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    document: Values
    """What it printed on its standard output."""
    notes: tuple[str, ...]
    """The lines of its standard error: warnings, errors, and where it saved a plan."""

    @property
    def has_result(self) -> bool:
        """Whether it printed more than the error that ended it."""
        return bool(self.document) and self.document.keys() != {"version", "errors", "exit_code"}

    def data(self) -> Values:
        return {"exit_code": self.code, "result": self.document, "notes": [*self.notes]}


class Commands:
    """Runs commands in one folder; files outside of it are refused."""

    def __init__(self, folder: Path, *, allow_programs: bool = False) -> None:
        """``folder`` is a real path, without links."""
        self.folder = folder
        self.allow_programs = allow_programs

    def path(self, given: str) -> str:
        """Return the path of a file or folder for a command line; raises ConfigError if it is outside of the folder."""
        if "\0" in given:
            raise ConfigError("a path contains a NUL character")
        found = Path(os.path.realpath(self.folder / given))
        if not found.is_relative_to(self.folder):
            raise ConfigError(f"{given} is outside of the folder of this server; name a file below it")
        return os.path.join(".", found.relative_to(self.folder))  # so that no file is taken for an option

    def start(self, words: Sequence[str]) -> subprocess.Popen[str]:
        """Start a command without a terminal, so that it asks nobody."""
        environment = dict(os.environ)
        if not self.allow_programs:
            environment[SWITCH] = "off"
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", RUN],  # -P: no module of the folder is imported
            cwd=self.folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError), process.stdin:  # it has ended, which ``finish`` reports
            json.dump(["--color", "never", *words], process.stdin)
        process.stdin = None  # ``communicate`` would write to it
        return process

    def finish(self, process: subprocess.Popen[str]) -> Ended:
        """Wait until a command ends."""
        out, err = process.communicate()
        return Ended(process.returncode, json.loads(out or "{}"), tuple(err.splitlines()))


def interrupt(process: subprocess.Popen[str]) -> None:
    """Have a command finish what is under way, and begin nothing more, as Ctrl-C does."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
