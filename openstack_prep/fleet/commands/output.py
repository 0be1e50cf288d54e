"""The end of a run of a fleet, for people and for programs."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from openstack_prep.base.style import visible
from openstack_prep.cli.running import FORMAT, interrupted_by, print_error
from openstack_prep.cli.style import say, warn
from openstack_prep.core.text import counted
from openstack_prep.fleet.commands import tables
from openstack_prep.fleet.commands.opening import of_targets
from openstack_prep.fleet.order import TargetStatus

if TYPE_CHECKING:
    from openstack_prep.fleet.running import Chosen, FleetResult


def sizes(chosen: Chosen, verb: str = "reading") -> tuple[tuple[int, int], int, str]:
    """Return the widths of columns, the number of targets and what happens to them."""
    return tables.widths_of(chosen), len(chosen.orders), verb


def print_texts(options: argparse.Namespace, *texts: str) -> None:
    """Print texts for people, unless data is asked for."""
    if options.format == "text":
        print(visible("\n".join(filter(None, texts))))


def print_warnings(result: FleetResult) -> None:
    """Print each warning of a plan once, with the targets that it is about."""
    found: dict[str, list[str]] = {}
    for each in result.outcomes:
        for warning in each.warnings:
            found.setdefault(warning, []).append(each.target)
    for warning, names in found.items():
        warn(f"{of_targets(names)}: {warning}")


def end(options: argparse.Namespace, chosen: Chosen, result: FleetResult, verb: str) -> int:
    """Print the failures of a run, or its last line of data, and return its exit code."""
    code = result.exit_code
    if getattr(options, "detailed_exitcode", False) and result.interrupt is None:
        code = 1 if code else 2 if result.of(TargetStatus.CHANGES) else 0
    if options.format == "json":
        counts = {status.value: len(result.of(status)) for status in TargetStatus if result.of(status)}
        data = {"fleet": chosen.fleet.name, "targets": counts, "done_before": list(result.left_out)}
        print(json.dumps({"version": FORMAT, **data, "seconds": round(result.seconds, 3), "exit_code": code}))
        options.printed = True
    for line in tables.failures(result, str(options.fleet), verb):
        say(line)
    if not_begun := result.of(TargetStatus.NOT_BEGUN):
        say(f"not begun: {counted(len(not_begun), 'target')}: {tables.names(not_begun)}")
    if result.interrupt is not None:
        print_error(options, interrupted_by(result.interrupt), code)
    return code
