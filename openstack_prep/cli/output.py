"""What a command prints at its end: its result, as text or data, or what ended it."""

from __future__ import annotations

import argparse
import errno
import json
import logging
import os
import sys
from collections.abc import Mapping

from openstack_prep.base.errors import InternalError, PrepError, RunInterrupted
from openstack_prep.base.raw import Values
from openstack_prep.base.style import visible
from openstack_prep.cli.parser import DATA, exit_code
from openstack_prep.cli.reports import report_error
from openstack_prep.core import interrupts

FORMAT = 1
"""Version of the data that ``--format json`` and ``yaml`` print: it grows when a key changes its meaning or goes."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a disk that takes no more."""


def print_result(options: argparse.Namespace, for_people: object, data: Mapping[str, object]) -> None:
    """Print a result once: as text if there is any, or as one document of data that says its version.

    A program that brings its own formats, as the command ``openstack`` does, gets both by ``options.deliver``.
    """
    if deliver := getattr(options, "deliver", None):
        options.printed = True
        deliver(str(for_people), data)
        return
    text = (
        visible(str(for_people))
        if options.format == "text"
        else _document(options.format, {"version": FORMAT, **data}, lines=getattr(options, "lines", False))
    )
    options.printed = True
    if text:
        print(text, flush=True)  # before any error, which goes to standard error: a log has both


def _document(form: str, data: Mapping[str, object], *, lines: bool = False) -> str:
    if form == "json":
        return json.dumps(data, indent=None if lines else 2)
    import yaml  # not needed for JSON, nor for the error of a command line

    plain = json.loads(json.dumps(data))  # the same data; JSON alone takes an enum of texts for its text
    return str(yaml.safe_dump(plain, sort_keys=False)).rstrip("\n")


def print_error(options: argparse.Namespace, error: PrepError, code: int) -> None:
    """Print an error on standard error, and as data, too, if data was asked for and none has been printed."""
    print_lines(error)
    if options.format in DATA and "printed" not in options:
        print_result(options, "", {"errors": error_data(error), "exit_code": code})


def print_lines(error: PrepError) -> None:
    """Print an error with its codes, which ``explain`` describes; names come from others, too."""
    print("openstack-prep:", "\n".join(each.line for each in error.diagnostics), file=sys.stderr)


def error_data(error: PrepError) -> list[Values]:
    """Return an error as data: the diagnostics that it consists of."""
    return [each.data() for each in error.diagnostics]


def interrupted_by(number: int) -> RunInterrupted:
    """Return the error for a signal."""
    what = f"interrupted by {interrupts.name(number)}; run the command again to continue"
    return RunInterrupted(what, interrupts.exit_code(number))


def fail(options: argparse.Namespace, error: Exception | KeyboardInterrupt) -> int:
    """Print what ended a command, and return the exit code."""
    if isinstance(error, BrokenPipeError):
        drop_output()
        return 1
    if options.debug and isinstance(error, Exception):
        logging.getLogger("openstack_prep").debug("", exc_info=error)
    found = explained(error)
    code = exit_code(options, found)
    try:
        print_error(options, found, code)
        report_error(options, found, code)
        sys.stdout.flush()
    except OSError:  # a closed pipe or a full disk: flushing fails again for what is still buffered
        drop_output()
    return code


def explained(error: Exception | KeyboardInterrupt) -> PrepError:
    """Return what ended a command as an error of this package."""
    if isinstance(error, PrepError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return interrupted_by(interrupts.number_of(error))
    if isinstance(error, OSError) and error.filename is None and error.errno in FULL:  # of a print
        return PrepError(f"the output cannot be written: {error.strerror}; make room, or write it elsewhere")
    return InternalError(f"internal error: {type(error).__name__}: {error}; --debug shows where; please report it")


def drop_output() -> None:
    """Drop what is left for a standard output that takes no more, which would be flushed at the exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
