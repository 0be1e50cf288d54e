"""The commands of a fleet: validate, plan, apply, destroy, audit, export."""

from __future__ import annotations

import argparse
import secrets
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from openstack_prep.base.errors import ConfigError
from openstack_prep.base.given_file import name_of
from openstack_prep.base.raw import Values
from openstack_prep.base.style import PLAIN, Style, visible
from openstack_prep.cli.output import judge_reports, print_result, say, style_of, write_html
from openstack_prep.cli.output_folder import output_folder, write_marked
from openstack_prep.cli.project.validate import check
from openstack_prep.cli.running import confirm, exit_on_second_signal
from openstack_prep.core.text import counted
from openstack_prep.fleet import plan_file, runs
from openstack_prep.fleet.commands import tables
from openstack_prep.fleet.commands.session import (
    choose,
    display,
    end,
    executors,
    open_fleet,
    print_texts,
    print_warnings,
    refuse_unknown,
    sizes,
    warn_of_targets,
)
from openstack_prep.fleet.commands.tables import sign_of
from openstack_prep.fleet.order import BAD, Options, TargetOutcome, TargetStatus
from openstack_prep.reports.html import Item, Page, PageSection
from openstack_prep.verbs.export import refuse_unknown_kinds
from openstack_prep.verbs.plan_file import refuse_other_file

if TYPE_CHECKING:
    from openstack_prep.fleet.engine import Executors
    from openstack_prep.fleet.runs import Changing, Chosen, FleetResult


# --- validate --------------------------------------------------------------------------------


def run_validate(options: argparse.Namespace) -> int:
    chosen = runs.choose(open_fleet(options), options.only, examine=check)
    warn_of_targets(chosen.checked.warnings)
    checked, targets = chosen.checked, {each.name: each for wave in chosen.waves for each in wave.targets}
    width = max(map(len, targets))
    lines = []
    for wave in chosen.waves:
        lines += [f"{wave.title}:"] if len(chosen.waves) > 1 else []
        for target in wave.targets:
            place = ", ".join(filter(None, (checked.clouds[target.name], target.region)))
            where = f" in {place}" if place else ""
            spec, number = checked.specs[target.name], checked.resources[target.name]
            lines.append(f"  {target.name:<{width}}  spec {spec}, {number} resources{where}")
    lines.append(f"{name_of(options.fleet)}: valid, {counted(len(targets), 'target')}")
    data = {
        "fleet": chosen.fleet.name,
        "waves": [{"title": wave.title, "targets": [target.name for target in wave.targets]} for wave in chosen.waves],
        "specs": checked.specs,
        "warnings": list(checked.warnings),
    }
    print_result(options, "\n".join(lines), data)
    return 0


# --- plan, apply, destroy --------------------------------------------------------------------


def run_plan(options: argparse.Namespace) -> int:
    for name in ("out", "allow_replace", "adopt", "prune"):
        if options.destroy and getattr(options, name):
            raise ConfigError(f"fleet plan: --{name.replace('_', '-')} does not apply to --destroy; leave it out")
    page = judge_page(options)
    if options.out:
        refuse_other_file(options.out)
    chosen = choose(options)
    refuse_unknown(options.show, chosen)

    wanted = _options(
        options,
        destroy=options.destroy,
        style=style_of(options, sys.stdout) if options.show or options.all else page,
        save_to=str(options.out) if options.out else None,
        salt=secrets.token_bytes(16).hex() if options.out else "",
    )
    quiet = options.format != "json"
    with (
        executors(options, chosen) as made,
        exit_on_second_signal(options),
        display(options, style_of(options, sys.stderr), *sizes(chosen), quiet=quiet) as shown,
    ):
        result = runs.run(chosen, "plan", wanted, jobs=options.jobs, executor=made, tell=shown.tell)
    print_warnings(result)
    if options.out and result.interrupt is None:
        number = plan_file.save(options.out, chosen.fleet, result.outcomes)
        say(f"saved the plans of {counted(number, 'target')} in {options.out}")
    what = f"{'destroy' if options.destroy else 'apply'} {chosen.fleet.name}"
    style = style_of(options, sys.stdout)
    print_texts(options, tables.table(chosen, result, style, options.show), tables.total(result, what))
    code = end(options, chosen, result, "destroy" if options.destroy else "apply")
    return write_page(options, chosen, result, "plan", code)


def run_apply(options: argparse.Namespace) -> int:
    plans: Mapping[str, Values] = {}
    if options.plan:
        for name in ("allow_replace", "adopt", "prune", "allow_loss"):
            if getattr(options, name):
                given = f"--{name.replace('_', '-')}"
                raise ConfigError(
                    f"fleet apply: {given} cannot be added to --plan; plan with it, and save that with --out"
                )
    chosen = choose(options)
    if options.plan:
        plans = plan_file.read(options.plan, chosen.fleet)
    return _change(options, chosen, "apply", plans)


def run_destroy(options: argparse.Namespace) -> int:
    return _change(options, choose(options), "destroy", {})


def _change(options: argparse.Namespace, chosen: Chosen, verb: Any, plans: Mapping[str, Values]) -> int:
    """Apply or destroy: plan, ask once, and carry out."""
    judge_page(options)
    place = str(options.plan) if verb == "apply" and options.plan else ""
    wanted = _options(options)
    with ExitStack() as stack:
        made = stack.enter_context(
            runs.changing(chosen, verb, wanted, restart=options.restart, saved=plans, saved_in=place)
        )
        if made.journal.done:
            number = counted(len(made.journal.done), "target")
            say(f"continuing the run of {made.journal.began}, which has done {number}; --restart does all again")
        planned, workers = None, stack.enter_context(executors(options, chosen))
        if not options.yes and not place:
            planned = _planned(options, made, workers)
            if planned.interrupt is not None:
                return end(options, chosen, planned, verb)
            _agree(options, made, planned)
        result = _carried_out(options, made, planned, workers)
    print_warnings(result)
    print_texts(options, tables.total(result, f"{verb} {chosen.fleet.name}") + f" in {result.seconds:.1f} s")
    return write_page(options, chosen, result, verb, end(options, chosen, result, verb))


def _planned(options: argparse.Namespace, made: Changing, workers: Executors) -> FleetResult:
    style = style_of(options, sys.stderr)
    with exit_on_second_signal(options), display(options, style, *sizes(made.chosen), quiet=True) as shown:
        return made.plan(jobs=options.jobs, executor=workers, tell=shown.tell)


def _agree(options: argparse.Namespace, made: Changing, planned: FleetResult) -> None:
    """Ask once for all targets, unless none would change: then the run only notes how they are."""
    style, name = style_of(options, sys.stderr), made.chosen.fleet.name
    changing = planned.of(TargetStatus.CHANGES)
    print(visible(tables.table(made.chosen, planned, style)), file=sys.stderr)
    print(visible(tables.total(planned, f"{made.verb} {name}")), file=sys.stderr)
    if not changing:
        return
    if made.verb == "destroy":
        confirm(f"Destroy {counted(len(changing), 'target')} for good? Type the name {name}: ", name)
    else:
        confirm(f"Apply {counted(len(changing), 'plan')}? Type yes: ", "yes")


def _carried_out(
    options: argparse.Namespace, made: Changing, planned: FleetResult | None, workers: Executors
) -> FleetResult:
    widths, total = sizes(made.chosen)[:2]
    total -= len(made.journal.done)
    style = style_of(options, sys.stdout)
    with exit_on_second_signal(options), display(options, style, widths, total, made.verb) as shown:
        return made.carry_out(planned, jobs=options.jobs, executor=workers, tell=shown.tell)


def _options(options: argparse.Namespace, **more: Any) -> Options:
    names = ("allow_replace", "adopt", "prune", "lock_timeout")
    given = {name: getattr(options, name) for name in names if hasattr(options, name)}
    given["allow_loss"] = tuple(options.allow_loss)
    return Options(**given, **more, data=options.format == "json")


# --- audit, export ---------------------------------------------------------------------------


def run_audit(options: argparse.Namespace) -> int:
    page = judge_page(options)
    chosen = choose(options)
    refuse_unknown(options.show, chosen)
    style = style_of(options, sys.stdout)
    wanted = Options(style=style if options.show or options.all else page, data=options.format == "json")
    quiet = options.format != "json"
    with (
        executors(options, chosen) as made,
        exit_on_second_signal(options),
        display(options, style, *sizes(chosen), quiet=quiet) as shown,
    ):
        result = runs.run(chosen, "audit", wanted, jobs=options.jobs, executor=made, tell=shown.tell)
    text = tables.table(chosen, result, style, options.show)
    print_texts(options, text, tables.total(result, f"audit {chosen.fleet.name}", "without drift"))
    return write_page(options, chosen, result, "audit", end(options, chosen, result, "audit"))


def run_export(options: argparse.Namespace) -> int:
    folder = output_folder(options.output)
    if folder is None and options.format == "text":
        raise ConfigError("fleet export: --output DIR is missing; name a folder for the specs, or use --format json")
    refuse_unknown_kinds(options.kind)
    chosen = choose(options)
    wanted = Options(kinds=tuple(options.kind), data=options.format == "json")
    style = style_of(options, sys.stdout)
    with (
        executors(options, chosen) as made,
        exit_on_second_signal(options),
        display(options, style, *sizes(chosen)) as shown,
    ):
        result = runs.run(chosen, "export", wanted, jobs=options.jobs, executor=made, tell=shown.tell)
    name = chosen.fleet.name
    if folder is not None:
        texts = {f"{outcome.target}.yaml": outcome.table for outcome in result.of(TargetStatus.DONE)}
        # files of earlier exports and of other targets are kept
        write_marked(folder, f"# [openstack-prep:fleet/{name}]", texts, exactly=False)
    print_texts(options, tables.total(result, f"export {name}"))
    return end(options, chosen, result, "export")


# --- ``--html FILE``: all targets of a fleet on one page, each with its own plan or findings ---


def judge_page(options: argparse.Namespace) -> Style | None:
    """Refuse a file that cannot be written; return the style of plans if there will be a page."""
    judge_reports(options)
    return PLAIN if options.html else None


def write_page(options: argparse.Namespace, chosen: Chosen, result: FleetResult, verb: str, code: int) -> int:
    """Write the page if one is asked for; return the exit code: not 0 if it is not written."""
    return write_html(options, lambda: _page(chosen, result, verb), code)


def _page(chosen: Chosen, result: FleetResult, verb: str) -> Page:
    sections = []
    for status in (
        TargetStatus.FAILED,
        TargetStatus.REFUSED,
        TargetStatus.DRIFT,
        TargetStatus.INTERRUPTED,
        TargetStatus.NOT_BEGUN,
    ):
        sections.append(PageSection(title=status.value.capitalize(), items=list(map(_item, result.of(status)))))
    sections.append(
        PageSection(title="Changes", items=list(map(_item, result.of(TargetStatus.CHANGES, TargetStatus.DONE))))
    )
    unchanged = list(map(_item, result.of(TargetStatus.UNCHANGED)))
    sections.append(PageSection(title="Unchanged", items=unchanged, closed=True))
    return Page(
        title=f"{verb.capitalize()} of the fleet {chosen.fleet.name}",
        verdict=tables.total(result, "").removeprefix(": "),
        good=result.exit_code == 0,
        facts=[("Fleet", str(chosen.fleet.path))],
        sections=[section for section in sections if section.items],
        pictures=[],
    )


def _item(outcome: TargetOutcome) -> Item:
    """Return a target; the kind is one that the page has a colour for."""
    kinds = {
        TargetStatus.CHANGES: "update",
        TargetStatus.DONE: "done",
        TargetStatus.DRIFT: "warning",
        TargetStatus.UNCHANGED: "unchanged",
    }
    errors = [(error.get("where") or "error", error["what"]) for error in outcome.errors]
    return Item(
        kind="failed" if outcome.status in BAD else kinds.get(outcome.status, "skipped"),
        sign=sign_of(outcome),
        name=outcome.target,
        summary="; ".join(filter(None, (outcome.cloud, outcome.first_error or outcome.summary))),
        rows=[*errors, *(("warning", warning) for warning in outcome.warnings), ("seconds", f"{outcome.seconds:.1f}")],
        code=outcome.table,
    )
