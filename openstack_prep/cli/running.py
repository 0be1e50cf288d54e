"""What commands share: opening a spec and its cloud, confirmation, execution, output."""

from __future__ import annotations

import argparse
import contextlib
import errno
import gc
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from openstack_prep.base.errors import ConfigError, InternalError, PrepError, RunInterrupted
from openstack_prep.base.invalid import shown
from openstack_prep.base.raw import Values
from openstack_prep.base.style import visible
from openstack_prep.cli.of_spec import connect_chosen, read_of
from openstack_prep.cli.parser import DATA, exit_code, seconds
from openstack_prep.cli.reports import report_error, write_html
from openstack_prep.cli.style import say, style_of, warn
from openstack_prep.core import interrupts

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud
    from openstack_prep.core.plan import Plan, Report
    from openstack_prep.reports.html import Page
    from openstack_prep.spec import Spec
    from openstack_prep.verbs.live_plan import LivePlan

FORMAT = 1
"""Version of the data that ``--format json`` and ``yaml`` print: it grows when a key changes its meaning or goes."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a disk that takes no more."""
LOCK_TIMEOUT = 60.0  # seconds, as in openstack_prep.cloud.lease, which is not loaded for a --help


def open_spec(options: argparse.Namespace, path: Path, saved: Mapping[str, object] | None = None) -> tuple[Cloud, Spec]:
    """Return a spec and its connection; ``saved`` are values of variables in a saved plan.  Raises SpecError."""
    spec = read_spec(options, path, saved)
    with no_garbage():
        return connect_chosen(options, spec.clouds.admin), spec


def read_spec(
    options: argparse.Namespace,
    path: Path,
    saved: Mapping[str, object] | None = None,
    *,
    needs_secrets: bool = True,
) -> Spec:
    """Return a spec with the values of its variables, its warnings printed; raises SpecError.

    ``needs_secrets``: a secret without a value is a mistake.
    """
    with no_garbage(), _no_plugins():
        spec = read_of(options, path, saved=saved, needs_secrets=needs_secrets)
    for warning in spec.warnings:
        warn(f"{path}: {warning}")
    return spec


@contextlib.contextmanager
def no_garbage() -> Iterator[None]:
    """Spare what is made meanwhile from the collector: the libraries stay, and searching them costs a tenth."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextlib.contextmanager
def _no_plugins() -> Iterator[None]:
    """Have pydantic use no plugins: to find some it reads the metadata of all installed packages, and they see secrets.

    Source: pydantic's documentation, "Plugins".
    """
    if (name := "PYDANTIC_DISABLE_PLUGINS") in os.environ:
        yield
        return
    os.environ[name] = "true"
    try:
        yield
    finally:
        del os.environ[name]


def add_lock_timeout(parser: argparse.ArgumentParser) -> None:
    """Add the option of all commands that write: how long to wait for another run."""
    parser.add_argument(
        "--lock-timeout",
        type=seconds,
        default=LOCK_TIMEOUT,
        metavar="SECONDS",
        help=f"how long to wait for another run on the same spec; 0 fails immediately ({LOCK_TIMEOUT:.0f})",
    )


def add_allow_loss(parser: argparse.ArgumentParser) -> None:
    """Add the option of all commands that delete: what may be taken from others."""
    parser.add_argument(
        "--allow-loss",
        action="append",
        default=[],
        metavar="KIND/ID",
        help="allow deletions to take this from others, as the refusal names it; repeatable",
    )


def carry_out(options: argparse.Namespace, cloud: Cloud, plan: LivePlan, spec: Path | None = None) -> int:
    """Apply a plan after confirmation."""
    confirm_plan(options, plan)
    return run_plan(options, cloud, plan, spec)


def confirm_plan(
    options: argparse.Namespace, plan: LivePlan, question: str = "Apply this plan? Type yes: ", wanted: str = "yes"
) -> None:
    """Have a plan agreed to.  One with refusals is refused, with --yes by the run: another one may be at work."""
    if options.yes:
        return
    name_holder(plan)
    plan.raise_for_refusals()
    if plan:
        print(visible(plan.render(style_of(options, sys.stderr))), file=sys.stderr)
        confirm(question, wanted)


def print_warnings(plan: Plan, spec: Spec) -> None:
    """Print the warnings of a plan, except those that were printed when the spec was read."""
    for warning in plan.warnings:
        if warning not in spec.warnings:
            warn(warning)


def name_holder(plan: LivePlan) -> None:
    """Print who was at work on the spec when a plan was made."""
    if plan.lease.worker:
        say(f"spec {plan.spec} is being applied by {plan.lease.worker}")


def run_plan(options: argparse.Namespace, cloud: Cloud, plan: LivePlan, spec: Path | None = None) -> int:
    """Carry a plan out and print how it went; of an apply of a spec also what exists now."""
    from openstack_prep.cli.progress import summary

    report = execute(options, cloud, plan)
    data = report.data()
    if plan.purpose == "apply":
        data["undeclared"] = plan.undeclared_data()
    if plan.left_out:
        data["left_out"] = plan.left_out
    lines = ["; ".join(filter(None, [report.summary, plan.left_over]))]
    if spec is not None:
        lines.append(summary(report, spec, style_of(options, sys.stdout)))
    print_result(options, "\n".join(filter(None, lines)), data)

    def page() -> Page:
        from openstack_prep.reports.html_content import page_of_run  # with pictures and their networks, only for --html

        return page_of_run(cloud, plan, report, data, spec, options.jobs)

    return write_html(options, page, code_of(report))


def execute(options: argparse.Namespace, cloud: Cloud, plan: LivePlan) -> Report:
    """Return the report of a plan that was carried out before a person's eyes."""
    from openstack_prep.cli.progress import display
    from openstack_prep.verbs import api

    out = sys.stdout if options.format == "text" else sys.stderr
    try:
        with display(plan, out, style_of(options, out)) as shown:
            report = api.apply(
                cloud,
                plan,
                allow_replace=getattr(options, "allow_replace", False),
                prune=getattr(options, "prune", False),
                jobs=options.jobs,
                tell=shown.tell,
                progress=shown.progress,
                lock_timeout=options.lock_timeout,
                agreed=not getattr(options, "yes", True) or bool(getattr(options, "plan", None)),
            )
    except KeyboardInterrupt as error:  # the second
        exit_immediately(options, error)
    return report


def exit_immediately(options: argparse.Namespace, error: KeyboardInterrupt) -> NoReturn:
    """End the process without waiting for the running steps, nor for their threads."""
    what = "exited immediately; operations in flight may have completed; run the command again to continue"
    code = interrupts.exit_code(interrupts.number_of(error))
    with contextlib.suppress(OSError):
        print_error(options, RunInterrupted(what, code), code)
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


@contextlib.contextmanager
def exit_on_second_signal(options: argparse.Namespace) -> Iterator[None]:
    """End the process for a signal that the run itself does not wait for: pools would wait for their threads."""
    try:
        yield
    except KeyboardInterrupt as error:
        exit_immediately(options, error)


def code_of(report: Report) -> int:
    """Return the exit code for a report, saying so when it was interrupted."""
    if report.interrupt is not None:
        error = interrupted_by(report.interrupt)
        _print_lines(error)
        return error.exit_code
    return 1 if report.failed or report.skipped else 0


def interrupted_by(number: int) -> RunInterrupted:
    """Return the error for a signal."""
    what = f"interrupted by {interrupts.name(number)}; run the command again to continue"
    return RunInterrupted(what, interrupts.exit_code(number))


def confirm(question: str, wanted: str) -> None:
    """Ask a person; raises ConfigError without the wanted answer."""
    if not sys.stdin.isatty():
        raise ConfigError("not a terminal; pass --yes to confirm")
    if (typed := answer(question)) != wanted:
        raise ConfigError(f"not confirmed: {shown(typed)} is not {shown(wanted)}; nothing was changed")


def answer(question: str) -> str:
    """Return what a person types on the terminal."""
    print(visible(question), end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()


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
    import json

    if form == "json":
        return json.dumps(data, indent=None if lines else 2)
    import yaml

    plain = json.loads(json.dumps(data))  # the same data; JSON alone takes an enum of texts for its text
    return str(yaml.safe_dump(plain, sort_keys=False)).rstrip("\n")


def print_error(options: argparse.Namespace, error: PrepError, code: int) -> None:
    """Print an error on standard error, and as data, too, if data was asked for and none has been printed."""
    _print_lines(error)
    if options.format in DATA and "printed" not in options:
        print_result(options, "", {"errors": error_data(error), "exit_code": code})


def _print_lines(error: PrepError) -> None:
    """Print an error with its codes, which ``explain`` describes; names come from others, too."""
    print("openstack-prep:", "\n".join(each.line for each in error.diagnostics), file=sys.stderr)


def error_data(error: PrepError) -> list[Values]:
    """Return an error as data: the diagnostics that it consists of."""
    return [each.data() for each in error.diagnostics]


def fail(options: argparse.Namespace, error: Exception | KeyboardInterrupt) -> int:
    """Print what ended a command, and return the exit code."""
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
