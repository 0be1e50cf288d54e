"""Run another program as a shell does: it uses our terminal, and we return its exit code.

Source: POSIX, "Exit Status for Commands": 126 not executable, 127 not found, above 128 a signal.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from openstack_prep.base import shell
from openstack_prep.base.errors import ConfigError
from openstack_prep.core.interrupts import SIGNALS, exit_code

LOOK_UP = 1.0  # seconds
NOT_EXECUTABLE, NOT_FOUND = 126, 127


class NoSuchProgram(ConfigError):
    """A program that cannot be started; the exit code is that of a shell."""

    def __init__(self, message: str, exit_code: int) -> None:
        self.exit_code = exit_code
        super().__init__(message)


def find_program(name: str) -> Path:
    """Return the path of a program; raises NoSuchProgram."""
    found = shutil.which(name)
    if found is not None:
        return Path(found)
    if os.sep in name and Path(name).exists():
        fix = shell.join(["chmod", "+x", name]) if Path(name).is_file() else "choose the program in this directory"
        raise NoSuchProgram(f"{name}: is not executable; {fix}", NOT_EXECUTABLE)
    where = "the file does not exist" if os.sep in name else "is not on PATH"
    raise NoSuchProgram(f"{name}: {where}; use its path, such as ./openshift-install", NOT_FOUND)


def run(command: Sequence[str], environment: Mapping[str, str], lock: int | None = None) -> int:
    """Run a program with our own standard streams; return its exit code, or 128 plus the number of its signal.

    ``lock``: a descriptor that the program inherits, so that it holds the lock as long as it runs.
    Ctrl-C on the terminal reaches both processes: we wait until the program ends, however often it is pressed. SIGTERM
    and SIGHUP, which are sent to one process, are passed on. Raises NoSuchProgram.
    """
    heard: list[int] = []
    process: subprocess.Popen[bytes] | None = None

    def hear(number: int) -> None:
        heard.append(number)
        if process is not None and number != signal.SIGINT:
            process.send_signal(number)

    with _signals_to(hear):
        process = _started(command, environment, lock)
        for number in [each for each in heard if each != signal.SIGINT]:  # while it was being started
            process.send_signal(number)
        code = _wait(process)
    return code if code >= 0 else exit_code(-code)


def _started(command: Sequence[str], environment: Mapping[str, str], lock: int | None) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(command, env=dict(environment), pass_fds=() if lock is None else (lock,))
    except FileNotFoundError as error:
        raise NoSuchProgram(
            f"{command[0]}: its interpreter does not exist; correct its first line", NOT_FOUND
        ) from error
    except OSError as error:
        fix = "check that it is built for this machine"
        raise NoSuchProgram(f"{command[0]}: cannot be run: {error.strerror}; {fix}", NOT_EXECUTABLE) from error


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Wait until it ends, and poll, because a signal may have reached another thread of this process."""
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(LOOK_UP)


@contextlib.contextmanager
def _signals_to(hear: Callable[[int], None]) -> Iterator[None]:
    """Handle signals with a function; ignored signals, as with nohup, stay ignored for the program, too.

    Only the main thread can do this.
    """
    old = {}
    if threading.current_thread() is threading.main_thread():
        old = {each: signal.getsignal(each) for each in SIGNALS}
        old = {each: handler for each, handler in old.items() if handler is not signal.SIG_IGN}
    try:
        for each in old:
            signal.signal(each, lambda number, frame: hear(number))
        yield
    finally:
        for each, handler in old.items():
            signal.signal(each, handler)
