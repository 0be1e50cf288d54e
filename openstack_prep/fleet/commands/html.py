"""``--html FILE``: all targets of a fleet on one page, each with its own plan or findings."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from openstack_prep.base.style import PLAIN, Style
from openstack_prep.cli.output import judge_reports, write_html
from openstack_prep.fleet.commands import tables
from openstack_prep.fleet.commands.tables import SIGNS
from openstack_prep.fleet.order import BAD, TargetOutcome, TargetStatus
from openstack_prep.reports.html import Item, Page, PageSection

if TYPE_CHECKING:
    from openstack_prep.fleet.runs import Chosen, FleetResult


def judge(options: argparse.Namespace) -> Style | None:
    """Refuse a file that cannot be written; return the style of plans if there will be a page."""
    judge_reports(options)
    return PLAIN if options.html else None


def write(options: argparse.Namespace, chosen: Chosen, result: FleetResult, verb: str, code: int) -> int:
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
        sections=[each for each in sections if each.items],
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
    errors = [(each.get("where") or "error", each["what"]) for each in outcome.errors]
    return Item(
        kind="failed" if outcome.status in BAD else kinds.get(outcome.status, "skipped"),
        sign=SIGNS[outcome.status],
        name=outcome.target,
        summary="; ".join(filter(None, (outcome.cloud, outcome.first_error or outcome.summary))),
        rows=[*errors, *(("warning", each) for each in outcome.warnings), ("seconds", f"{outcome.seconds:.1f}")],
        code=outcome.table,
    )
