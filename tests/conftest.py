"""What all tests need of the machine."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Take back signals that are ignored: programs that tests start would inherit that, and hear none.

    nohup ignores SIGHUP; a shell without job control ignores SIGINT and SIGQUIT for what it starts by "&" (POSIX,
    Shell Command Language, 2.9.3.1).
    """
    for number, handler in ((signal.SIGHUP, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
