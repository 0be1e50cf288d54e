"""What all tests need of the machine."""

from __future__ import annotations

import os
import signal
import tempfile

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Keep what runs write about themselves out of the home of whoever tests, and hear signals."""
    state = tempfile.TemporaryDirectory(prefix="openstack-prep-state-")
    config.add_cleanup(state.cleanup)
    os.environ["XDG_STATE_HOME"] = state.name
    _hear_signals()


def _hear_signals() -> None:
    """Take back signals that are ignored: programs that tests start would inherit that.

    nohup ignores SIGHUP; a shell without job control ignores SIGINT and SIGQUIT for what it starts by "&" (POSIX,
    Shell Command Language, 2.9.3.1).
    """
    for number, handler in ((signal.SIGHUP, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
