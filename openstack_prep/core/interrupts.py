"""Signals that ask a run to stop: Ctrl-C, the SIGTERM of a supervisor, the SIGHUP of a closed terminal.

Only the default handlers are replaced, only in the main thread, and only temporarily: an ignored signal (nohup) stays
ignored, and a caller's own handler is kept. With an explicit handler the signals also work for process 1 of a
container, for which the kernel does not carry out the default action (signal(7)).
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from concurrent.futures import Executor

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SIGNALLED = 128
"""Base of the exit codes for signals: as in a shell, the number of the signal is added."""


class Interrupted(KeyboardInterrupt):
    """A signal asks the run to stop."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(name(number))


def name(number: int) -> str:
    """Return the name of a signal, such as SIGTERM."""
    return signal.Signals(number).name


def number_of(error: KeyboardInterrupt) -> int:
    """Return the signal that an exception stands for; Python's KeyboardInterrupt stands for Ctrl-C."""
    return error.number if isinstance(error, Interrupted) else signal.SIGINT


def exit_code(number: int) -> int:
    """Return the exit code for a signal: 130 for SIGINT, 143 for SIGTERM, 129 for SIGHUP."""
    return SIGNALLED + number


@contextlib.contextmanager
def drained(pool: Executor) -> Iterator[Executor]:
    """Wait at the end for what runs in a pool, unless the user interrupts a second time."""
    waiting = True
    try:
        yield pool
    except KeyboardInterrupt:
        waiting = False
        raise
    finally:
        pool.shutdown(wait=waiting, cancel_futures=not waiting)


@contextlib.contextmanager
def caught(on_signal: Callable[[int], None]) -> Iterator[None]:
    """Call a function for the first signal; raise Interrupted for a second one.

    Only the main thread hears signals; in another thread the function is called for one that is passed on.
    """
    if threading.current_thread() is threading.main_thread():
        with _installed(_Handler(on_signal, _raise)):
            yield
        return
    with _threads.listening(on_signal):
        yield


class _Threads:
    """The runs in other threads than the main one, which a signal stops only if it is passed on to them."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.listeners: list[Callable[[int], None]] = []
        self.passing = 0
        """How many runs would pass a signal on."""
        self.lock = threading.Lock()

    @contextlib.contextmanager
    def listening(self, on_signal: Callable[[int], None]) -> Iterator[None]:
        self.listeners.append(on_signal)
        if self.number is not None:
            on_signal(self.number)
        try:
            yield
        finally:
            self.listeners.remove(on_signal)


_threads = _Threads()


@contextlib.contextmanager
def passed_on() -> Iterator[Callable[[int], None]]:
    """Yield a function that passes a signal on to the runs in other threads, also to those that begin later.

    Several runs of one program may do so, one of them in the main thread: each thread gets the signal once.
    """

    def pass_on(number: int) -> None:
        if _threads.number is None:
            _threads.number = number
            for listener in list(_threads.listeners):
                listener(number)

    with _threads.lock:
        _threads.passing += 1
    try:
        yield pass_on
    finally:
        with _threads.lock:
            _threads.passing -= 1
            if not _threads.passing:
                _threads.number = None


def raise_passed_on() -> None:
    """Raise Interrupted in another thread than the main one if a signal was passed on to it."""
    if _threads.number is not None and threading.current_thread() is not threading.main_thread():
        raise Interrupted(_threads.number)


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Raise Interrupted in the main thread for the first signal; exit immediately for a second one."""
    with _installed(_Handler(_raise, _exit)):
        yield


class _Handler:
    def __init__(self, first: Callable[[int], None], second: Callable[[int], None]) -> None:
        self.first, self.second, self.heard = first, second, False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            _leave_closed_terminal()
        act = self.second if self.heard else self.first
        self.heard = True
        act(number)


@contextlib.contextmanager
def _installed(handler: _Handler) -> Iterator[None]:
    """Install a handler in place of the default handlers and of our own."""
    old = {}
    if threading.current_thread() is threading.main_thread():
        found = {each: signal.getsignal(each) for each in SIGNALS}
        defaults = (signal.SIG_DFL, signal.default_int_handler)
        old = {each: was for each, was in found.items() if was in defaults or isinstance(was, _Handler)}
    try:
        for each in old:
            signal.signal(each, handler)
        yield
    finally:
        for each, was in old.items():
            signal.signal(each, was)


def _raise(number: int) -> NoReturn:
    raise Interrupted(number)


def _exit(number: int) -> NoReturn:
    with contextlib.suppress(OSError):
        os.write(2, b"openstack-prep: exited immediately\n")
    os._exit(exit_code(number))


def _leave_closed_terminal() -> None:
    """Redirect the output to nowhere if the terminal is closed: each line would be an error (EIO)."""
    for stream in (sys.__stdout__, sys.__stderr__):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # there may be no terminal
            leave_if_closed(stream.fileno())  # type: ignore[union-attr]


def leave_if_closed(descriptor: int) -> None:
    """Redirect a file descriptor to /dev/null if its terminal is closed."""
    try:
        termios.tcgetattr(descriptor)
    except termios.error as error:
        if error.args[0] == errno.EIO:
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
