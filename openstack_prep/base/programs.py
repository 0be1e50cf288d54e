"""Runs a program of the user's own and reads what it prints, as long as the program itself runs and no longer.

A program that it leaves behind may hold its standard output open, so the end of the output is not waited for.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from openstack_prep.base import shell
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.secret_forms import without_login

SWITCH = "OPENSTACK_PREP_PROGRAMS"
"""The environment variable whose value ``off`` keeps commands from running programs that specs or folders name."""
INSTEAD = "docs/agents.md says what to do instead"
CHUNK = 2**16
ROUND = 0.05
"""Seconds after which an end of the program is noticed although something else holds its output open."""


def is_off() -> bool:
    """Whether the environment allows no programs, as for an assistant that may have written the spec."""
    return os.environ.get(SWITCH) == "off"


@contextlib.contextmanager
def switched_off() -> Iterator[None]:
    """Run no programs within this context."""
    before = os.environ.get(SWITCH)
    os.environ[SWITCH] = "off"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SWITCH]
        else:
            os.environ[SWITCH] = before


def hide_arguments(command: str, folder: Path) -> str:
    """Return the part of a command that an error shows: somebody may have written a command line with a password.

    The path of a program in ``folder`` or on PATH may contain blanks.
    """
    if not command.strip() or (folder / command).is_file() or shutil.which(command):
        return command
    return without_login(command.split(maxsplit=1)[0])


def output_of(
    words: Sequence[str],
    shown: str,
    *,
    most: int,
    seconds: float,
    if_late: str = "",
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    stderr: int | None = None,
) -> bytes:
    """Return what a program prints, whose standard input is empty; its standard error goes to the terminal.

    ``stderr`` replaces that. The program is killed when it prints more than ``most`` bytes, or has not
    ended after ``seconds``; what it has started goes on. Raises InvalidValue, in which the program is called ``shown``,
    and also for an exit code other than 0. ``if_late`` is the fix for one that takes too long.
    """
    if is_off():
        raise InvalidValue(f"{shown} is not run, because {SWITCH} is off", INSTEAD)
    try:
        code, printed, is_late = _run(words, most, seconds, folder, environment, stderr)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "its words or variables contain a NUL character"
        raise InvalidValue(f"{shown} cannot be run: {why}", "install it, or correct its name") from None
    again = "run it yourself" + (f" in {shell.quote(str(folder))}" if folder else "") + " to see why"
    if is_late:
        raise InvalidValue(f"{shown} has not ended after {seconds:.0f} seconds", if_late or again)
    if len(printed) > most:
        raise InvalidValue(f"{shown} printed more than {most // 2**20} MiB", again)
    if code:
        raise InvalidValue(f"{shown} ended with exit code {code}", again)
    return printed


def _run(
    words: Sequence[str],
    most: int,
    seconds: float,
    folder: Path | None,
    environment: Mapping[str, str] | None,
    stderr: int | None,
) -> tuple[int, bytes, bool]:
    """Return the exit code, the output up to one byte more than ``most``, and whether the program took too long."""
    until = time.monotonic() + seconds
    with subprocess.Popen(
        words,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        bufsize=0,
    ) as process:
        try:
            content = _printed(process, most, until)
            late = False
            if len(content) <= most:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(until - time.monotonic(), 0))
                late = process.returncode is None
        finally:
            process.kill()  # does nothing if it has ended
        return process.wait(), content, late


def _printed(process: subprocess.Popen[bytes], most: int, until: float) -> bytes:
    """Return what a program prints until it ends, closes its output, or has printed too much, or the time is over."""
    assert process.stdout is not None
    descriptor = process.stdout.fileno()
    os.set_blocking(descriptor, False)
    ready = select.poll()
    ready.register(descriptor, select.POLLIN)
    content = bytearray()
    ended = False
    while len(content) <= most and (ended or time.monotonic() < until):
        if not ready.poll(0 if ended else ROUND * 1000):
            if ended:
                break
            ended = process.poll() is not None
            continue
        chunk = os.read(descriptor, min(CHUNK, most + 1 - len(content)))
        if not chunk:
            break
        content += chunk
    return bytes(content)
