"""The end of a command: its result or what ended it, printed as text or data, and written to the files it names."""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from openstack_prep.base.errors import ConfigError, InternalError, Mistaken, PrepError, RunInterrupted, text_of
from openstack_prep.base.raw import Values
from openstack_prep.base.secret_forms import without_logins
from openstack_prep.base.style import Style, printable, visible
from openstack_prep.cli.of_spec import FORMS
from openstack_prep.cli.parser import DATA, exit_code
from openstack_prep.core import interrupts

if TYPE_CHECKING:
    from openstack_prep.base.diagnostic import Diagnostic
    from openstack_prep.reports.html import Page


FORMAT = 1
"""Version of the data that ``--format json`` and ``yaml`` print: it grows when a key changes its meaning or goes."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a disk that takes no more."""


def print_result(options: argparse.Namespace, for_people: object, data: Mapping[str, object]) -> None:
    """Print a result once: as text if there is any, or as one document of data that says its version.

    A program that brings its own formats, as the command ``openstack`` does, gets both by ``options.deliver``.
    """
    if isinstance(warnings := data.get("warnings"), list):  # as warn prints them
        data = {**data, "warnings": [without_logins(each) if isinstance(each, str) else each for each in warnings]}
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


def print_event(options: argparse.Namespace, text: str, data: Mapping[str, object]) -> None:
    """Print one line of a command that stays, with the time: text, or JSON with --format json."""
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    options.printed = True
    if options.format == "json":
        print(json.dumps({"version": FORMAT, "time": now, **data}), flush=True)
    else:
        print(f"{now} {printable(text)}", flush=True)


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
    print("openstack-prep:", "\n".join(diagnostic.line for diagnostic in error.diagnostics), file=sys.stderr)


def error_data(error: PrepError) -> list[Values]:
    """Return an error as data: the diagnostics that it consists of."""
    return [diagnostic.data() for diagnostic in error.diagnostics]


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
    return InternalError(f"internal error: {text_of(error)}; --debug shows where; please report it")


def drop_output() -> None:
    """Drop what is left for a standard output that takes no more, which would be flushed at the exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# --- files: findings for a pipeline, and a page for a browser -------------------------------


def judge_reports(options: argparse.Namespace) -> None:
    """Refuse files for reports, also those of --html, before the work is done; raises ConfigError."""
    paths = _paths(options)
    if not paths:
        return
    from openstack_prep.reports import files  # only with --junit, --sarif or --html

    problems: dict[str, str] = {}
    taken = dict.fromkeys(map(_real, _subjects(options)), "an input of this command")
    for form, path in paths.items():
        real = _real(path)
        try:
            if real in taken:
                what = f"--{form}: {path} is {taken[real]}, which would be replaced; choose another file"
                raise ConfigError(what)
            files.judge(form, path)
        except ConfigError as error:
            problems[form] = str(error)
        taken.setdefault(real, f"the file of --{form}")
    if problems:
        options.reported = frozenset(problems)
        raise ConfigError("\n".join(problems.values()))


def _real(path: str | Path) -> str:
    try:
        return os.path.realpath(path)
    except FileNotFoundError:  # the working directory was deleted; the judge of each file says so
        return str(path)


def report(
    options: argparse.Namespace,
    diagnostics: Iterable[Diagnostic],
    code: int,
    subjects: Sequence[object] | None = None,
    invalid: Iterable[object] = (),
) -> int:
    """Write the files for a pipeline that the options name, and return the exit code: not 0 if one is not written.

    ``invalid`` are the subjects with errors, wherever these are.
    """
    if not _left(options, FORMS):
        return code
    names = _subjects(options) if subjects is None else tuple(map(str, subjects))
    return _write_findings(options, diagnostics, code, names, tuple(map(str, invalid)))


def write_html(options: argparse.Namespace, page: Callable[[], Page], code: int) -> int:
    """Write the page if one is asked for, and return the exit code: not 0 if it is not written."""
    if not _left(options, ["html"]):
        return code
    if not _write(options, "html", lambda: page().html()):
        return code or 1
    say(f"wrote the report {options.html}")
    return code


def report_error(options: argparse.Namespace, error: PrepError, code: int) -> None:
    """Write the files for a run that an error has ended before they were written: older ones would tell another end."""
    if not _left(options, [*FORMS, "html"]):
        return
    names = _subjects(options)
    if _left(options, FORMS):
        _write_findings(options, error.diagnostics, code, names, ended_the_run=not isinstance(error, Mistaken))
    if _left(options, ["html"]):
        from openstack_prep.reports.html_content import page_of_error  # with pictures, only for --html

        write_html(options, lambda: page_of_error(options.called, error, names), code)


def _paths(options: argparse.Namespace) -> dict[str, Path]:
    """Return the files that the options name, by the form of the report."""
    return {form: path for form in (*FORMS, "html") if (path := getattr(options, form, None))}


def _subjects(options: argparse.Namespace) -> tuple[str, ...]:
    given = getattr(options, getattr(options, "subjects", "spec"))
    return tuple(map(str, given if isinstance(given, list) else filter(None, [given])))


def _left(options: argparse.Namespace, forms: Iterable[str]) -> list[str]:
    """Return which of the forms are asked for and were not tried yet."""
    tried = getattr(options, "reported", ())
    return [form for form in forms if form in _paths(options) and form not in tried]


def _write_findings(
    options: argparse.Namespace,
    diagnostics: Iterable[Diagnostic],
    code: int,
    subjects: tuple[str, ...],
    invalid: tuple[str, ...] = (),
    *,
    ended_the_run: bool = False,
) -> int:
    """Write the findings in the forms that are asked for; what writes them is only loaded then."""
    from openstack_prep.reports.findings import Findings, junit, placed, sarif  # only with --junit or --sarif

    findings = Findings(
        command=options.called,
        subjects=subjects,
        found=placed(diagnostics, subjects[0] if len(subjects) == 1 else "", ended_the_run),
        exit_code=code,
        started=options.started,
        ended=datetime.now(UTC),
        invalid=invalid,
    )
    writers = {"junit": junit, "sarif": sarif}
    written = [_write(options, form, partial(writers[form], findings)) for form in _left(options, FORMS)]
    return code if all(written) else code or 1


def _write(options: argparse.Namespace, form: str, content: Callable[[], str]) -> bool:
    """Write a report, or print why it cannot be: the work is done by then, and its result and exit code count."""
    from openstack_prep.reports import files  # only with --junit, --sarif or --html

    options.reported = frozenset({*getattr(options, "reported", ()), form})
    path = _paths(options)[form]
    try:
        files.write(form, path, content())
    except Exception as error:  # whatever it is must not hide what the command has done
        if options.debug:
            logging.getLogger("openstack_prep").debug("", exc_info=error)
        warn(str(error) if isinstance(error, PrepError) else f"--{form} {path}: it cannot be written: {text_of(error)}")
        return False
    return True


# --- how to print for where the output goes: colour and width on a terminal, plain text elsewhere ---


QUIET: ContextVar[bool] = ContextVar("QUIET", default=False)
"""Whether --quiet was given."""


def say(text: str) -> None:
    """Print a note on standard error, on one line whatever names it contains; not with --quiet."""
    if not QUIET.get():
        print(f"openstack-prep: {printable(text)}", file=sys.stderr)


def warn(text: str) -> None:
    """Print a warning on standard error."""
    print(f"openstack-prep: warning: {printable(without_logins(text))}", file=sys.stderr)


def style_of(options: argparse.Namespace, out: TextIO) -> Style:
    """Return the style for a stream.  --color overrides NO_COLOR, which overrides CLICOLOR_FORCE.

    Sources: no-color.org, bixense.com/clicolors.
    """
    terminal = out.isatty()
    return Style(
        color=_has_color(getattr(options, "color", "auto"), terminal),
        width=shutil.get_terminal_size().columns if terminal else None,
        ids=getattr(options, "ids", False),
        unchanged=getattr(options, "all", False),
    )


def _has_color(wanted: str, terminal: bool) -> bool:
    if wanted != "auto":
        return wanted == "always"
    if os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("CLICOLOR_FORCE", "") not in ("", "0")
    return forced or (terminal and os.environ.get("TERM") != "dumb")


# --- a line on the terminal while the cloud is read, erased afterwards ---------------------

ERASE = "\r\x1b[K"


@contextlib.contextmanager
def reading(options: argparse.Namespace) -> Iterator[None]:
    """Show a line on a terminal's stderr until the end of the block, or until something is logged."""
    if options.debug or QUIET.get() or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    handlers = logging.getLogger("openstack_prep").handlers

    def erase(record: logging.LogRecord | None = None) -> bool:
        sys.stderr.write(ERASE)
        sys.stderr.flush()
        return True

    for handler in handlers:
        handler.addFilter(erase)
    sys.stderr.write("reading the cloud ...")
    sys.stderr.flush()
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(erase)
        erase()
