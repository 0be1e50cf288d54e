"""The options of the commands of this extension; the work of each is in a module that only its call loads."""

from __future__ import annotations

import argparse
from pathlib import Path

from openstack_prep.cli import AddCommand
from openstack_prep.cli.of_spec import REWRITTEN, add_allow_loss, add_html, add_lock_timeout, spec_path
from openstack_prep.cli.parser import new_path, positive

_HERE = "openstack_prep.fleet.commands"
FORMS = ("text", "json")
"""Values of --format: JSON has one line per target, as soon as it has ended."""


def add_verbs(command: AddCommand) -> None:
    """Add the three to the parser."""
    plan, apply, destroy = (
        add_fleet(command, name, run)
        for name, run in (
            ("plan", f"{_HERE}.verbs:run_plan"),
            ("apply", f"{_HERE}.verbs:run_apply"),
            ("destroy", f"{_HERE}.verbs:run_destroy"),
        )
    )
    plan.add_argument("--destroy", action="store_true", help="show what destroy would do instead")
    plan.add_argument("-o", "--out", type=new_path, metavar="FILE", help="save the plans for fleet apply --plan")
    plan.add_argument("--detailed-exitcode", action="store_true", help="0 nothing to do, 1 error, 2 changes pending")
    plan.add_argument(
        "--show", action="append", default=[], metavar="TARGET", help="also print the plan of this target; repeatable"
    )
    apply.add_argument("--plan", type=Path, metavar="FILE", help="apply saved plans; stale ones are refused")
    for parser in (plan, apply):
        parser.add_argument("--allow-replace", action="store_true", help="allow resources to be deleted and re-created")
        parser.add_argument(
            "--adopt", action="store_true", help="also change resources that exist and are not managed by the specs"
        )
        parser.add_argument("--prune", action="store_true", help="also delete managed resources no longer in the specs")
    for parser in (apply, destroy):
        parser.add_argument("--yes", "-y", action="store_true", help="do not ask for confirmation")
        parser.add_argument("--restart", action="store_true", help="do not continue a run that was interrupted")
        add_lock_timeout(parser)
    for parser in (plan, apply, destroy):
        add_allow_loss(parser)
        add_page(parser)
        parser.add_argument("--all", action="store_true", help="show unchanged targets, and all plans, too")


def add_reading(command: AddCommand) -> None:
    audit = add_fleet(command, "audit", f"{_HERE}.verbs:run_audit")
    audit.add_argument("--all", action="store_true", help="show targets without drift, and all findings, too")
    audit.add_argument(
        "--show", action="append", default=[], metavar="TARGET", help="also print the findings of this target"
    )
    add_page(audit)
    export = add_fleet(command, "export", f"{_HERE}.verbs:run_export")
    export.add_argument("--output", type=new_path, metavar="DIR", help=f"the folder for a spec per target{REWRITTEN}")
    export.add_argument("--kind", action="append", default=[], metavar="KIND", help="only this kind, such as network")


def add_validate(command: AddCommand) -> None:
    add_fleet(command, "validate", f"{_HERE}.verbs:run_validate", lines=False)


def add_fleet(command: AddCommand, name: str, run: str, *, lines: bool = True) -> argparse.ArgumentParser:
    """Add a command of a fleet with the options that all of them have; ``lines``: it has a cloud, and prints lines."""
    forms = FORMS if lines else ()
    parser = command(f"fleet {name}", run, cloud=lines, data=True, forms=forms)
    parser.add_argument("fleet", type=spec_path, metavar="FLEET", help="the fleet, a YAML file; - is standard input")
    parser.add_argument(
        "--only", action="append", default=[], metavar="GROUP", help="only this group or target; repeatable"
    )
    if lines:
        parser.add_argument(
            "--scheduler",
            metavar="ADDRESS",
            help="work in the workers of a Dask scheduler, such as tls://10.0.0.5:8786; local starts some here",
        )
        parser.add_argument("--workers", type=positive, metavar="N", help="with --scheduler local: processes (cores)")
    parser.set_defaults(lines=lines)
    return parser


def add_page(parser: argparse.ArgumentParser) -> None:
    """Add the options of a page."""
    add_html(parser)
    parser.set_defaults(subjects="fleet")
