"""``fleet plan``, ``fleet apply`` and ``fleet destroy``."""

from __future__ import annotations

import argparse
import json
import secrets
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openstack_prep.base.errors import ConfigError
from openstack_prep.base.raw import Values
from openstack_prep.base.style import visible
from openstack_prep.cli import AddCommand
from openstack_prep.cli.fleet.opening import add_fleet, choose
from openstack_prep.cli.running import (
    FORMAT,
    add_lock_timeout,
    confirm,
    exit_immediately,
    interrupted_by,
    no_garbage,
    print_error,
)
from openstack_prep.cli.style import say, style_of, warn

if TYPE_CHECKING:
    from openstack_prep.fleet.api import Changing, Chosen, Result
    from openstack_prep.fleet.order import Options


def add(command: AddCommand) -> None:
    """Add the three to the parser."""
    plan, apply, destroy = (
        add_fleet(command, name, run) for name, run in (("plan", _plan), ("apply", _apply), ("destroy", _destroy))
    )
    plan.add_argument("--destroy", action="store_true", help="show what destroy would do instead")
    plan.add_argument("-o", "--out", type=Path, metavar="FILE", help="save the plans for fleet apply --plan")
    plan.add_argument("--detailed-exitcode", action="store_true", help="0 nothing to do, 1 error, 2 changes pending")
    plan.add_argument(
        "--show", action="append", default=[], metavar="TARGET", help="also print the plan of this target; repeatable"
    )
    apply.add_argument("--plan", type=Path, metavar="FILE", help="apply saved plans; stale ones are refused")
    for each in (plan, apply):
        each.add_argument("--allow-replace", action="store_true", help="allow resources to be deleted and re-created")
        each.add_argument(
            "--adopt", action="store_true", help="also change resources that exist and are not managed by the specs"
        )
        each.add_argument("--prune", action="store_true", help="also delete managed resources no longer in the specs")
    for each in (apply, destroy):
        each.add_argument("--yes", "-y", action="store_true", help="do not ask for confirmation")
        each.add_argument("--restart", action="store_true", help="do not continue a run that was interrupted")
        add_lock_timeout(each)
    for each in (plan, apply, destroy):
        each.add_argument("--all", action="store_true", help="show unchanged targets, and all plans, too")


def _plan(options: argparse.Namespace) -> int:
    for name in ("out", "allow_replace", "adopt", "prune"):
        if options.destroy and getattr(options, name):
            raise ConfigError(f"fleet plan: --{name.replace('_', '-')} does not apply to --destroy; leave it out")
    chosen = choose(options)
    for name in options.show:
        if name not in chosen.orders:
            raise ConfigError(f"--show {name}: no such target is chosen; choose one of {', '.join(chosen.orders)}")
    from openstack_prep.cli.fleet import tables
    from openstack_prep.cli.fleet.progress import display
    from openstack_prep.fleet import api, saved

    wanted = _options(
        options,
        destroy=options.destroy,
        style=style_of(options, sys.stdout) if options.show or options.all else None,
        save_to=str(options.out) if options.out else None,
        salt=secrets.token_bytes(16).hex() if options.out else "",
    )
    with display(options, style_of(options, sys.stderr), *_sizes(chosen), quiet=options.format != "json") as shown:
        result = api.run(chosen, "plan", wanted, jobs=options.jobs, tell=shown.tell)
    _print_warnings(result)
    if options.out and result.interrupt is None:
        number = saved.save(options.out, chosen.fleet, result.outcomes)
        say(f"saved the plans of {number} targets in {options.out}")
    what = f"{'destroy' if options.destroy else 'apply'} {chosen.fleet.name}"
    style = style_of(options, sys.stdout)
    _print(options, tables.table(chosen, result, style, options.show), tables.total(result, what))
    return _end(options, chosen, result, "destroy" if options.destroy else "apply")


def _apply(options: argparse.Namespace) -> int:
    from openstack_prep.fleet import saved

    plans: Mapping[str, Values] = {}
    if options.plan:
        for name in ("allow_replace", "adopt", "prune"):
            if getattr(options, name):
                given = f"--{name.replace('_', '-')}"
                raise ConfigError(f"fleet apply: {given} cannot be added to --plan; give it to `fleet plan -o`")
    chosen = choose(options)
    if options.plan:
        plans = saved.read(options.plan, chosen.fleet)
    return _change(options, chosen, "apply", plans)


def _destroy(options: argparse.Namespace) -> int:
    return _change(options, choose(options), "destroy", {})


def _change(options: argparse.Namespace, chosen: Chosen, verb: Any, plans: Mapping[str, Values]) -> int:
    """Apply or destroy: plan, ask once, and carry out."""
    from openstack_prep.fleet import api

    place = str(options.plan) if verb == "apply" and options.plan else ""
    wanted = _options(options)
    with ExitStack() as stack:
        made = stack.enter_context(
            api.changing(chosen, verb, wanted, restart=options.restart, saved=plans, saved_in=place)
        )
        if made.journal.done:
            number, began = len(made.journal.done), made.journal.began
            say(f"continuing the run of {began}, which has done {number} targets; --restart does them again")
        planned = None
        if not options.yes and not place:
            planned = _planned(options, made)
            if planned.interrupt is not None or not _agreed(options, made, planned):
                return _end(options, chosen, planned, verb)
        result = _carried_out(options, made, planned)
    from openstack_prep.cli.fleet import tables

    _print_warnings(result)
    if options.format == "text":
        print(visible(tables.total(result, f"{verb} {chosen.fleet.name}") + f" in {result.seconds:.1f} s"))
    return _end(options, chosen, result, verb)


def _planned(options: argparse.Namespace, made: Changing) -> Result:
    from openstack_prep.cli.fleet.progress import display

    with display(options, style_of(options, sys.stderr), *_sizes(made.chosen), quiet=True) as shown:
        return made.plan(jobs=options.jobs, tell=shown.tell)


def _agreed(options: argparse.Namespace, made: Changing, planned: Result) -> bool:
    """Ask once for all targets; False if there is nothing to agree to."""
    from openstack_prep.cli.fleet import tables
    from openstack_prep.fleet.order import Status

    style, name = style_of(options, sys.stderr), made.chosen.fleet.name
    changing = planned.of(Status.CHANGES)
    print(visible(tables.table(made.chosen, planned, style)), file=sys.stderr)
    print(visible(tables.total(planned, f"{made.verb} {name}")), file=sys.stderr)
    if not changing:
        return False
    if made.verb == "destroy":
        confirm(f"Destroy these {len(changing)} targets for good? Type the name {name}: ", name)
    else:
        confirm(f"Apply these {len(changing)} plans? Type yes: ", "yes")
    return True


def _carried_out(options: argparse.Namespace, made: Changing, planned: Result | None) -> Result:
    from openstack_prep.cli.fleet.progress import display

    widths, total = _sizes(made.chosen)[:2]
    total -= len(made.journal.done)
    try:
        with display(options, style_of(options, sys.stdout), widths, total, made.verb) as shown:
            return made.carry_out(planned, jobs=options.jobs, tell=shown.tell)
    except KeyboardInterrupt as error:  # the second
        exit_immediately(options, error)


def _options(options: argparse.Namespace, **more: Any) -> Options:
    with no_garbage():
        from openstack_prep.fleet.order import Options

    names = ("allow_replace", "adopt", "prune", "lock_timeout")
    given = {name: getattr(options, name) for name in names if hasattr(options, name)}
    return Options(**given, **more, data=options.format == "json")


def _sizes(chosen: Chosen) -> tuple[tuple[int, int], int, str]:
    """Return the widths of columns, the number of targets and what happens to them."""
    from openstack_prep.cli.fleet import tables

    return tables.widths_of(chosen), len(chosen.orders), "reading"


def _print_warnings(result: Result) -> None:
    """Print each warning of a plan once, with the targets that it is about."""
    from openstack_prep.cli.fleet.opening import of_targets

    found: dict[str, list[str]] = {}
    for each in result.outcomes:
        for warning in each.warnings:
            found.setdefault(warning, []).append(each.target)
    for warning, names in found.items():
        warn(f"{of_targets(names)}: {warning}")


def _print(options: argparse.Namespace, *texts: str) -> None:
    if options.format == "text":
        print(visible("\n".join(filter(None, texts))))


def _end(options: argparse.Namespace, chosen: Chosen, result: Result, verb: str) -> int:
    """Print the end of a run, and return its exit code."""
    from openstack_prep.cli.fleet import tables
    from openstack_prep.fleet.order import Status

    code = result.exit_code
    if getattr(options, "detailed_exitcode", False) and result.interrupt is None:
        code = 1 if code else 2 if result.of(Status.CHANGES) else 0
    if options.format == "json":
        counts = {status.value: len(result.of(status)) for status in Status if result.of(status)}
        data = {"fleet": chosen.fleet.name, "targets": counts, "left_out": list(result.left_out)}
        print(json.dumps({"version": FORMAT, **data, "seconds": round(result.seconds, 3), "exit_code": code}))
        options.printed = True
    for line in tables.failures(result, str(options.fleet), verb):
        say(line)
    if not_begun := result.of(Status.NOT_BEGUN):
        say(f"{len(not_begun)} targets were not begun: {tables.names(not_begun)}")
    if result.interrupt is not None:
        print_error(options, interrupted_by(result.interrupt), code)
    return code
