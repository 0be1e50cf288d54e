"""``openstack-prep`` in a fork of a process that has imported it: its imports cost more than most of its runs."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.races.stopped import Stop, watch

SERVER = multiprocessing.get_context("forkserver")
FIXED = ("HOME", "PATH", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "PYTHONPATH")
"""Variables that modules read when they are imported, or that say what is imported."""


def suits(environment: Mapping[str, str]) -> bool:
    """Whether such a run would import the same, and find the same places."""
    return all(environment.get(name) == os.environ.get(name) for name in FIXED)


def run(
    words: Sequence[str], environment: Mapping[str, str], folder: Path, timeout: float, stop: Stop | None = None
) -> tuple[int, str, str]:
    """Run the command with these variables and no others; return its exit code, and what it printed.

    A stop kills it, which is exit code -9. Raises TimeoutExpired.
    """
    SERVER.set_forkserver_preload(["tests.functional.imported"])
    with tempfile.TemporaryDirectory() as place:
        printed = Path(place) / "out", Path(place) / "err"
        process = SERVER.Process(target=_become, args=(list(words), dict(environment), folder, printed, stop))
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(["openstack-prep", *words], timeout)
        out, err = (each.read_text() for each in printed)
        return process.exitcode, out, err


def _become(
    words: list[str], environment: dict[str, str], folder: Path, printed: tuple[Path, Path], stop: Stop | None
) -> None:
    """Be the command."""
    for number, path in enumerate(printed, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    sys.stdout, sys.stderr = open(1, "w"), open(2, "w")  # noqa: SIM115
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["openstack-prep", *words]
    if stop is not None:
        watch(stop, None)
    from openstack_prep.cli.main import main

    sys.exit(main())
