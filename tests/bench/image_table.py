"""From runs of the image's flow to Markdown tables: pure, no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from tests.bench.table import met, ratio

BEGIN, END = "<!-- bench image: begin -->", "<!-- bench image: end -->"
MIB = 2**20
TIMES, MEMORY = 2, 100 * MIB  # what we aim at


class Row(StrEnum):
    """What is measured, in the table's order."""

    CAREFUL = "`curl \\| gunzip`, both sums, `openstack image create`"
    CARELESS = "the same without sums"
    OURS = "`openstack-prep apply`, both sums"
    FLOOR = "floor: `curl` sends Glance the unpacked file"


@dataclass(frozen=True)
class Run:
    """One run: seconds; the memory of its largest process, and what all of them wrote to disks, in bytes."""

    seconds: float
    memory: int
    written: int


Runs = Mapping[Row, Sequence[Run]]


def render(runs: Runs, size: int, caption: str) -> str:
    """Return both tables, with medians, for an image of ``size`` bytes; rows without a run are left out."""
    return "\n".join([caption, "", *_measured(runs, size), "", *_goals(runs)])


def _measured(runs: Runs, size: int) -> Iterator[str]:
    yield "| | seconds | least - most | MiB/s | ratio | peak memory, MiB | written to disk, MiB |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for row, done in runs.items():
        times = [run.seconds for run in done]
        ratio_to_ours = f"{ratio(done, runs[Row.OURS]):.1f}" if Row.OURS in runs and row is not Row.OURS else ""
        memory, written = (
            round(median(values) / MIB) for values in zip(*((r.memory, r.written) for r in done), strict=True)
        )
        yield (
            f"| {row.value} | {median(times):.1f} | {min(times):.1f} - {max(times):.1f} "
            f"| {size / MIB / median(times):.0f} | {ratio_to_ours} | {memory:.0f} | {written:.0f} |"
        )


def _goals(runs: Runs) -> Iterator[str]:
    if not (ours := runs.get(Row.OURS)):
        return
    yield "| goal | wanted | measured | met |"
    yield "|---|---:|---:|---|"
    for row, who in ((Row.CAREFUL, "the shell takes times as long as we"), (Row.CARELESS, "even without sums")):
        if row in runs:
            times = ratio(runs[row], ours)
            yield f"| {who} | at least {TIMES} | {times:.2f} | {met(times >= TIMES)} |"
    memory, written = max(run.memory for run in ours), median(run.written for run in ours)
    yield f"| our peak memory, MiB | at most {MEMORY // MIB} | {memory / MIB:.0f} | {met(memory <= MEMORY)} |"
    yield f"| what we write to disk, MiB | 0 | {written / MIB:.1f} | {met(written < MIB)} |"
