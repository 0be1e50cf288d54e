"""Outcomes of a fleet as text for people: one line per target, and what to do about those that failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from openstack_prep.base import shell
from openstack_prep.base.style import first_of
from openstack_prep.core.model import Action
from openstack_prep.core.text import counted
from openstack_prep.fleet.order import TargetOutcome, TargetStatus, words_of

if TYPE_CHECKING:
    from openstack_prep.base.style import Style
    from openstack_prep.fleet.runs import Chosen, FleetResult

SIGNS = {
    TargetStatus.UNCHANGED: "=",
    TargetStatus.DRIFT: "!",
    TargetStatus.REFUSED: "!",
    TargetStatus.FAILED: "!",
    TargetStatus.INTERRUPTED: "?",
    TargetStatus.NOT_BEGUN: "?",
}
"""Of targets without changes."""
COUNTED = (TargetStatus.CHANGES, TargetStatus.DONE, TargetStatus.FAILED, TargetStatus.INTERRUPTED)
MOST_FAILED = 20
"""Failed targets that are explained at the end; the lines before have all."""


def sign_of(outcome: TargetOutcome) -> str:
    """Return the symbol that a single run has for the changes of a target, or that of an update for several sorts."""
    if outcome.status in SIGNS:
        return SIGNS[outcome.status]  # an audit counts what it found, not actions
    actions = [Action(name) for name, number in outcome.counts.items() if number and name != Action.KEEP]
    if not actions:
        return Action.CREATE.symbol  # exported
    return (actions[0] if len(actions) == 1 else Action.UPDATE).symbol


def line(outcome: TargetOutcome, widths: tuple[int, int], style: Style, seconds: bool = False) -> str:
    """Return one target: its name, its cloud, and what changes or why not."""
    name, cloud = widths
    what = outcome.summary
    if outcome.first_error:
        more = f" (and {len(outcome.errors) - 1} more)" if len(outcome.errors) > 1 else ""
        what = f"{outcome.status}: {outcome.first_error}{more}"
    took = f" ({outcome.seconds:.1f} s)" if seconds and outcome.status is not TargetStatus.NOT_BEGUN else ""
    named = f"{outcome.target:<{name}}  {outcome.cloud:<{cloud}}"
    return style.line(sign_of(outcome), named, what.partition("\n")[0] + took)


def widths_of(chosen: Chosen) -> tuple[int, int]:
    """Return how wide names of targets and of clouds are."""
    clouds = chosen.checked.clouds
    return max(map(len, clouds), default=0), max(map(len, clouds.values()), default=0)


def table(chosen: Chosen, result: FleetResult, style: Style, shown: Sequence[str] = ()) -> str:
    """Return a line per target that is not unchanged, or per target, with the own plans of those that are ``shown``."""
    widths = widths_of(chosen)
    lines = []
    for outcome in result.outcomes:
        if style.unchanged or outcome.status is not TargetStatus.UNCHANGED or outcome.target in shown:
            lines.append(line(outcome, widths, style))
        if outcome.table and (style.unchanged or outcome.target in shown):
            lines += [f"    {text}" for text in outcome.table.splitlines()]
    return "\n".join(lines)


def total(result: FleetResult, what: str, unchanged: str = TargetStatus.UNCHANGED.value) -> str:
    """Return how many targets ended how, and what happens to resources."""
    statuses = Counter(outcome.status for outcome in result.outcomes)
    words = {TargetStatus.CHANGES: "with changes", TargetStatus.DRIFT: "with drift", TargetStatus.UNCHANGED: unchanged}
    ends = [f"{statuses[status]} {words.get(status, status.value)}" for status in TargetStatus if statuses[status]]
    done, planned = Counter[str](), Counter[str]()
    for outcome in result.outcomes:
        (planned if outcome.status is TargetStatus.CHANGES else done).update(
            outcome.counts if outcome.status in COUNTED else {}
        )
    counts = ", ".join(filter(None, (words_of(done, done=True), words_of(planned, done=False))))
    ends += [f"{len(result.left_out)} done before"] if result.left_out else []
    how = ", ".join(ends) or "nothing"
    return f"{what}: {counted(len(result.outcomes), 'target')}: {how}" + (f" ({counts})" if counts else "")


def failures(result: FleetResult, fleet: str, verb: str) -> Iterator[str]:
    """Yield the targets that were refused or failed, the first error of each, and a command to look at one."""
    bad = result.of(TargetStatus.REFUSED, TargetStatus.FAILED)
    for outcome in bad[:MOST_FAILED]:
        yield f"{outcome.target}: {outcome.status}: {outcome.first_error or outcome.summary}"
    if len(bad) > MOST_FAILED:
        yield f"... and {len(bad) - MOST_FAILED} more"
    if bad:
        name = bad[0].target
        words = ["openstack-prep", "fleet", "plan", fleet, "--only", name, "--show", name]
        yield f"look at one of them: {shell.join(words + (['--destroy'] if verb == 'destroy' else []))}"


def names(outcomes: Iterable[TargetOutcome]) -> str:
    """Return the names of targets, the first ones of many."""
    return first_of((outcome.target for outcome in outcomes), 10)
