"""From runs to a Markdown table: pure, no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Protocol

BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


class Row(StrEnum):
    """What is measured, in the table's order."""

    SHELL = "shell script of `openstack` commands"
    ORCA = "shell script of `orca` commands"
    ANSIBLE = "Ansible playbook, first run"
    OURS = "`openstack-prep apply`, first run"
    INSIDE = "the same inside the process"
    FLOOR = "floor: the necessary requests alone"
    ANSIBLE_AGAIN = "Ansible playbook, second run"
    OURS_AGAIN = "`openstack-prep apply`, second run"
    INSIDE_AGAIN = "the same inside the process, second run"


# what the last column divides by: like is compared with like
OURS_OF = {
    Row.SHELL: Row.OURS,
    Row.ORCA: Row.OURS,
    Row.ANSIBLE: Row.OURS,
    Row.FLOOR: Row.OURS,
    Row.INSIDE: Row.OURS,
    Row.ANSIBLE_AGAIN: Row.OURS_AGAIN,
    Row.INSIDE_AGAIN: Row.OURS_AGAIN,
}


@dataclass(frozen=True)
class Run:
    """One run: how long it took, and how many requests reached the cloud."""

    seconds: float
    requests: int


@dataclass(frozen=True)
class Goal:
    """A ratio of two rows' times that we aim at, and the side of it that is good."""

    what: str
    over: Row
    under: Row
    least: float | None = None
    most: float | None = None

    def line(self, runs: Mapping[Row, Sequence[Run]]) -> str:
        measured = ratio(runs[self.over], runs[self.under])
        reached = (self.least is None or measured >= self.least) and (self.most is None or measured <= self.most)
        wanted = f"at least {self.least:g}" if self.least is not None else f"at most {self.most:g}"
        return f"| {self.what} | {wanted} | {measured:.2f} | {met(reached)} |"


GOALS = (
    Goal("the shell script takes times as long as we", Row.SHELL, Row.OURS, least=12),
    Goal("Ansible takes times as long as we", Row.ANSIBLE, Row.OURS, least=6),
    Goal("we take times as long as the floor, whole process", Row.OURS, Row.FLOOR, most=2),
    Goal("the same inside the process", Row.INSIDE, Row.FLOOR, most=1.3),
)
REQUESTS_AGAIN = 25
START_AND_END = 0.35  # seconds: interpreter, imports and exit


def render(runs: Mapping[Row, Sequence[Run]], caption: str) -> str:
    """Return both tables, with medians; rows without a run are left out."""
    return "\n".join([caption, "", *_measured(runs), "", *_goals(runs)])


def _measured(runs: Mapping[Row, Sequence[Run]]) -> Iterator[str]:
    yield "| | seconds | least - most | requests | ratio |"
    yield "|---|---:|---:|---:|---:|"
    for row in Row:
        if row not in runs:
            continue
        times = [run.seconds for run in runs[row]]
        ours = runs.get(OURS_OF[row]) if row in OURS_OF else None
        ratio_to_ours = f"{ratio(runs[row], ours):.1f}" if ours else ""
        requests = round(median(run.requests for run in runs[row]))
        span = f"{min(times):.2f} - {max(times):.2f}"
        yield f"| {row.value} | {median(times):.2f} | {span} | {requests} | {ratio_to_ours} |"


def _goals(runs: Mapping[Row, Sequence[Run]]) -> Iterator[str]:
    yield "| goal | wanted | measured | met |"
    yield "|---|---:|---:|---|"
    for goal in GOALS:
        if goal.over in runs and goal.under in runs:
            yield goal.line(runs)
    if again := runs.get(Row.OURS_AGAIN):
        most = max(run.requests for run in again)
        yield f"| requests of a second apply | at most {REQUESTS_AGAIN} | {most} | {met(most <= REQUESTS_AGAIN)} |"
        if inside := runs.get(Row.INSIDE_AGAIN):
            rest = median(one.seconds - other.seconds for one, other in zip(again, inside, strict=True))
            what = "process of a second apply, beyond the time inside it"
            yield f"| {what} | at most {START_AND_END:g} s | {rest:.2f} s | {met(rest <= START_AND_END)} |"


def met(reached: bool) -> str:
    return "yes" if reached else "no"


class Timed(Protocol):
    @property
    def seconds(self) -> float: ...


def ratio(over: Sequence[Timed], under: Sequence[Timed]) -> float:
    """Return the median of the rounds' ratios: a machine that slows down does so in both runs of a round."""
    return median(one.seconds / other.seconds for one, other in zip(over, under, strict=True))


def insert(document: str, tables: str, marks: tuple[str, str] = (BEGIN, END)) -> str:
    """Return the document with the tables between the marks, in place of what stood there."""
    before, begin, rest = document.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not (begin and end):
        raise ValueError(f"the document lacks {' or '.join(marks)}")
    return f"{before}{begin}\n{tables}\n{end}{after}"
