"""The work of a command: its log, the record of its requests, its exit code. --version and --help need none of it."""

from __future__ import annotations

import argparse
import contextlib
import gc
import logging
import sys
from collections.abc import Callable

from openstack_prep import extensions, tracing
from openstack_prep.base.style import indented
from openstack_prep.cli import Run
from openstack_prep.cli.output import explained
from openstack_prep.cli.parser import WORK, exit_code
from openstack_prep.reports.last_run import recorded


def do_work(options: argparse.Namespace) -> int:
    """Do the work of a command, and return its exit code."""
    _log(options)
    with _recorded(options) as ended:
        code = tracing.of_command(options.called, lambda: int(work_of(options.run)(options)))
        ended(code)
    sys.stdout.flush()
    return code


def work_of(run: Run) -> Callable[[argparse.Namespace], int]:
    """Return the function that does the work of a command; raises ExtensionError."""
    if callable(run):
        return run
    gc.disable()  # what is imported stays, and searching it for garbage costs a tenth
    try:
        work: Callable[[argparse.Namespace], int] = extensions.load(run)
        return work
    finally:
        gc.freeze()
        gc.enable()


def _recorded(options: argparse.Namespace) -> contextlib.AbstractContextManager[Callable[[int], None]]:
    """Keep the requests of a command that has a cloud, except of the one that shows those of the last command."""
    if options.takes != WORK or options.called == "support-bundle":
        return contextlib.nullcontext(lambda code: None)
    return recorded(options.called, lambda error: exit_code(options, explained(error)))


def log_notes(*, debug: bool) -> None:
    """Print the notes of a run, such as which other run it waits for, in a program that has a log of its own."""
    notes = logging.getLogger("openstack_prep")
    notes.handlers[:] = []
    if not debug:
        _log(argparse.Namespace(debug=False))
    notes.propagate = debug
    notes.setLevel(logging.NOTSET if debug else logging.WARNING)


def _log(options: argparse.Namespace) -> None:
    """Log requests with --debug, otherwise only notes."""
    if options.debug:
        # requests that hold a secret are never logged; keystoneauth hides tokens itself
        requests = logging.StreamHandler(sys.stderr)
        requests.setFormatter(_Visible("%(asctime)s %(name)s %(message)s"))
        logging.basicConfig(level=logging.DEBUG, handlers=[requests])
    else:
        notes = logging.StreamHandler()  # such as which run is waited for
        notes.setFormatter(_Visible("openstack-prep: %(message)s"))
        logging.getLogger("openstack_prep").handlers[:] = [notes]
    logging.getLogger("keystoneauth").addHandler(logging.NullHandler())  # our errors report what it warns of


class _Visible(logging.Formatter):
    """Formats messages for a terminal: answers and names contain what others wrote."""

    def format(self, record: logging.LogRecord) -> str:
        return indented(super().format(record))
