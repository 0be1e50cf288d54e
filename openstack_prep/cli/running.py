"""What commands share that work on a cloud: opening a spec, confirmation, execution."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TextIO

from openstack_prep.base.errors import ConfigError, RunInterrupted
from openstack_prep.base.invalid import shown
from openstack_prep.base.style import PLAIN, Style, visible
from openstack_prep.cli.output import (
    QUIET,
    interrupted_by,
    print_error,
    print_lines,
    print_result,
    say,
    style_of,
    warn,
    write_html,
)
from openstack_prep.cli.spec import no_garbage, read_spec
from openstack_prep.cloud.connection import Cloud, connect
from openstack_prep.cloud.no_cloud import NoCloud
from openstack_prep.core import interrupts
from openstack_prep.core.plan import Plan, Report
from openstack_prep.spec import Spec
from openstack_prep.verbs import api
from openstack_prep.verbs.opening import LivePlan

if TYPE_CHECKING:
    from openstack_prep.cli.progress import Lines
    from openstack_prep.reports.html import Page


def _names_cloud(options: argparse.Namespace) -> bool:
    """Whether a person or a program names a cloud: it is then asked, also for a spec that needs none."""
    given = (options.os_cloud, getattr(options, "connection", None))
    return any((*given, *map(os.environ.get, ("OS_CLOUD", "OS_AUTH_URL"))))


def connect_chosen(options: argparse.Namespace, entry: str | None) -> Cloud:
    """Return the cloud of --os-cloud, else of the entry that a file names, else of OS_CLOUD.  Raises ConfigError.

    A program with a choice of its own, as the command ``openstack``, makes it by ``options.connection``.
    """
    own = getattr(options, "connection", None)
    return connect(options.os_cloud or entry, connection=own(entry) if own else None)


def open_spec(options: argparse.Namespace, path: Path, saved: Mapping[str, object] | None = None) -> tuple[Cloud, Spec]:
    """Return a spec and its connection; ``saved`` are values of variables in a saved plan.  Raises SpecError."""
    spec = read_spec(options, path, saved)
    if not (spec.needs_cloud or _names_cloud(options)):
        return NoCloud.as_cloud(), spec
    with no_garbage():
        return connect_chosen(options, spec.clouds.admin), spec


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
    from openstack_prep.cli import progress  # a plan alone shows none

    report = execute(options, cloud, plan)
    data = report.data()
    if plan.purpose == "apply":
        data["undeclared"] = plan.undeclared_data()
    if plan.left_out:
        data["left_out"] = plan.left_out
    lines = ["; ".join(filter(None, [report.summary, plan.left_over]))]
    if spec is not None:
        lines.append(progress.summary(report, spec, style_of(options, sys.stdout)))
    print_result(options, "\n".join(filter(None, lines)), data)

    def page() -> Page:
        from openstack_prep.reports.html_content import page_of_run  # with pictures and their networks, only for --html

        return page_of_run(cloud, plan, report, data, spec, options.jobs)

    return write_html(options, page, code_of(report))


def display(plan: Plan, out: TextIO, style: Style = PLAIN) -> Lines:
    """Return the display that suits where the output goes: it needs rich on a terminal, and nothing for a plan."""
    if out.isatty() and not QUIET.get():
        from openstack_prep.cli.live import Live  # rich takes as long to load as pydantic

        return Live(plan, out, style)
    from openstack_prep.cli.progress import Failures, Lines  # not needed for a plan

    return (Failures if QUIET.get() else Lines)(plan, out, style)


def execute(options: argparse.Namespace, cloud: Cloud, plan: LivePlan) -> Report:
    """Return the report of a plan that was carried out before a person's eyes."""
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
        print_lines(error)
        return error.exit_code
    return 1 if report.failed or report.skipped else 0


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
