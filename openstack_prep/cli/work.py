"""The work of a command: its log, the record of its requests, its exit code. --version and --help need none of it."""

from __future__ import annotations

import argparse
import contextlib
import gc
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from openstack_prep import extensions, tracing
from openstack_prep.base.errors import ConfigError
from openstack_prep.base.secret_forms import without_logins
from openstack_prep.base.style import indented
from openstack_prep.cli import Run
from openstack_prep.cli.output import QUIET, explained, say
from openstack_prep.cli.parser import WORK, exit_code
from openstack_prep.cloud import request_log
from openstack_prep.reports.last_run import recorded


def enter(folder: Path, stack: contextlib.ExitStack) -> None:
    """Work in a folder until the end of a stack; raises ConfigError if that is impossible."""
    try:
        stack.enter_context(contextlib.chdir(folder))
    except OSError as error:
        raise ConfigError(f"-C {folder}: {error.strerror}; name a folder that you may enter") from None


LOGGED = ("openstack_prep", "keystoneauth", "openstack", "heatclient", "distributed")
"""Loggers of which --debug shows everything; others, such as stevedore and urllib3, repeat it or list plugins."""


def do_work(options: argparse.Namespace) -> int:
    """Do the work of a command, and return its exit code."""
    _log(options)
    QUIET.set(options.quiet)
    if options.directory:
        say(f"working in {Path.cwd()}; printed commands are for that folder")
    give_default_spec(options)
    with _recorded(options) as ended:
        code = tracing.of_command(options.called, lambda: int(work_of(options.run)(options)))
        ended(code)
    sys.stdout.flush()
    return code


def give_default_spec(options: argparse.Namespace) -> None:
    """Choose the spec of a command that has a default and was given none; raises ConfigError."""
    if not getattr(options, "default_spec", False) or options.spec is not None:
        return
    if all(getattr(options, each) in (None, False) for each in options.no_default_spec):
        from openstack_prep.cli.default_spec import choose_spec  # reads all YAML files of the folder

        options.spec = choose_spec(options)


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


def log_warnings(*, debug: bool) -> None:
    """Print the warnings of a run, such as which other run it waits for, in a program that has a log of its own."""
    warnings = logging.getLogger("openstack_prep")
    warnings.handlers[:] = []
    if not debug:
        _log(argparse.Namespace(debug=False))
    warnings.propagate = debug
    warnings.setLevel(logging.NOTSET if debug else logging.WARNING)


def _log(options: argparse.Namespace) -> None:
    """Log requests with --debug, a line of each with --verbose, otherwise only warnings, also with --quiet."""
    if options.debug:
        # requests that hold a secret are never logged; keystoneauth hides tokens itself
        requests = logging.StreamHandler(sys.stderr)
        requests.setFormatter(_Visible("%(asctime)s %(name)s %(message)s"))
        requests.addFilter(_is_of_requests)
        logging.basicConfig(level=logging.DEBUG, handlers=[requests])
    else:
        warnings = logging.StreamHandler()  # such as which run is waited for
        warnings.setFormatter(_Visible("openstack-prep: %(message)s"))
        logging.getLogger("openstack_prep").handlers[:] = [warnings]
    asked = logging.getLogger(request_log.NAME)
    asked.handlers[:] = [handler for handler in asked.handlers if not isinstance(handler, _Lines)]
    if options.debug or getattr(options, "verbose", 0):
        asked.addHandler(_Lines(sys.stderr))
        asked.setLevel(logging.INFO)
    logging.getLogger("keystoneauth").addHandler(logging.NullHandler())  # our errors report what it warns of


def _is_of_requests(record: logging.LogRecord) -> bool:
    """Whether --debug shows a record: of this package, of the SDK's requests, or a warning of another library."""
    return record.levelno >= logging.WARNING or record.name.partition(".")[0] in LOGGED


class _Lines(logging.StreamHandler[TextIO]):
    """Prints one line per request: method, service, path, status and seconds."""

    def format(self, record: logging.LogRecord) -> str:
        asked: request_log.Asked = record.asked  # type: ignore[attr-defined]
        end = asked.status or asked.error
        return indented(f"{asked.method:<6} {asked.service} {asked.path}  {end}  {asked.seconds:.2f} s")


class _Visible(logging.Formatter):
    """Formats messages for a terminal: answers and names contain what others wrote, and may repeat a token."""

    def format(self, record: logging.LogRecord) -> str:
        return indented(without_logins(super().format(record)))
