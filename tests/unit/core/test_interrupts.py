"""Signals to a process of its own: with what exit code it ends, and what it says."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.core import interrupts
from openstack_prep.core.interrupts import SIGNALS
from tests.unit.texts import Wording

WAITING = """
import sys, time
from openstack_prep.cli import main as cli; from openstack_prep.core import interrupts

def sleep(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:  # a signal that comes right before a call does not interrupt it
        time.sleep(0.05)

def waiting(options):
    try:
        print("ready", flush=True)
        sleep(float(sys.argv[1]))
    finally:
        if len(sys.argv) > 2:  # what cannot be ended at once, as a request under way
            print("ending", flush=True)
            sleep(60)
    print("done", flush=True)
    return 0

def parsed(arguments):
    import argparse
    return argparse.Namespace(**cli.DEFAULTS | {"run": waiting, "called": "plan", "takes": (), "forms": ()})

cli._parsed = parsed
sys.exit(cli.main())
"""


def started(seconds: float, *words: str, before: Sequence[str] = (), **options: Any) -> subprocess.Popen[str]:
    """Start a command that waits, and return it when it does."""
    command = [*before, sys.executable, "-c", WAITING, str(seconds), *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, **pipes | options)
    if process.stdout is not None:
        assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("number", SIGNALS)
def test_the_exit_code_is_a_shells(number: signal.Signals, wording: Wording) -> None:
    process = started(60)
    process.send_signal(number)
    _, said = process.communicate(timeout=50)
    assert process.returncode == 128 + number
    wording(said)


def test_a_second_signal_exits_immediately() -> None:
    process = started(60, "slowly")
    assert process.stdout is not None
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "ending\n"
    process.send_signal(signal.SIGHUP)
    _, said = process.communicate(timeout=50)
    assert (process.returncode, said) == (129, "openstack-prep: exited immediately\n")


def test_an_ignored_signal_stays_ignored() -> None:
    """As nohup has it."""
    process = started(0.5, before=["/bin/sh", "-c", 'trap "" HUP; exec "$0" "$@"'])
    process.send_signal(signal.SIGHUP)
    out, said = process.communicate(timeout=50)
    assert (process.returncode, out, said) == (0, "done\n", "")


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare(1)")
def test_process_one_of_a_container() -> None:
    """The kernel does nothing for a signal to process 1 without a handler (signal(7), pid_namespaces(7))."""
    unshare = ["unshare", "--user", "--map-root-user", "--pid", "--fork"]
    if subprocess.run([*unshare, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no new namespaces allowed here")
    process = started(60, before=unshare)
    (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(child), signal.SIGTERM)
    _, said = process.communicate(timeout=50)
    assert process.returncode == 143
    assert "interrupted by SIGTERM" in said


def test_a_closed_terminal() -> None:
    """Whatever is still printed goes nowhere, and the exit code is that of SIGHUP."""
    ours, its = pty.openpty()
    become = "import os, sys, fcntl, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0)"
    before = [sys.executable, "-c", f"{become}; os.execv(sys.argv[1], sys.argv[1:])"]
    process = started(60, before=before, stdin=its, stdout=its, stderr=its)
    os.close(its)
    said = b""
    while not said.endswith(b"\n"):  # a terminal may give it in parts
        said += os.read(ours, 100)
    assert said == b"ready\r\n"
    os.close(ours)
    assert process.wait(50) == 128 + signal.SIGHUP


def test_in_another_thread_nothing_is_installed() -> None:
    before = [signal.getsignal(each) for each in SIGNALS]
    seen: list[Any] = []

    def look() -> None:
        with interrupts.raised(), interrupts.caught(lambda number: None):
            seen.extend(signal.getsignal(each) for each in SIGNALS)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == before


def test_exceptions_and_exit_codes_of_signals() -> None:
    assert [interrupts.exit_code(each) for each in SIGNALS] == [130, 143, 129]
    assert [interrupts.name(each) for each in SIGNALS] == ["SIGINT", "SIGTERM", "SIGHUP"]
    assert interrupts.number_of(KeyboardInterrupt()) == signal.SIGINT
    raised = interrupts.Interrupted(signal.SIGTERM)
    assert (interrupts.number_of(raised), str(raised)) == (signal.SIGTERM, "SIGTERM")


def in_a_thread(work: Callable[[], None]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


def test_a_signal_that_is_passed_on_reaches_the_runs_of_other_threads_once() -> None:
    heard: list[str] = []

    def listening(name: str, work: Callable[[], object]) -> None:
        with interrupts.caught(lambda number: heard.append(f"{name} {interrupts.name(number)}")):
            work()

    with interrupts.passed_on() as outer, interrupts.passed_on() as inner:
        in_a_thread(interrupts.raise_passed_on)
        in_a_thread(lambda: listening("first", lambda: [outer(signal.SIGTERM), inner(signal.SIGHUP)]))
        in_a_thread(lambda: listening("late", lambda: None))
        assert heard == ["first SIGTERM", "late SIGTERM"]
        with pytest.raises(interrupts.Interrupted, match="SIGTERM"):
            in_a_thread(interrupts.raise_passed_on)
        interrupts.raise_passed_on()  # the main thread hears signals itself
    in_a_thread(lambda: listening("after", interrupts.raise_passed_on))
    assert heard == ["first SIGTERM", "late SIGTERM"]


def test_the_runs_that_pass_a_signal_on_end_one_after_the_other() -> None:
    with interrupts.passed_on():
        with interrupts.passed_on() as pass_on:
            pass_on(signal.SIGINT)
        with pytest.raises(interrupts.Interrupted, match="SIGINT"):
            in_a_thread(interrupts.raise_passed_on)
    in_a_thread(interrupts.raise_passed_on)
