"""The tables of stacks: against Heat's own time."""

from __future__ import annotations

from tests.bench.stacks import Row, render
from tests.bench.table import Run

RUNS = {Row.SHELL: [Run(16.0, 20)], Row.OURS: [Run(11.0, 50)], Row.FLOOR: [Run(10.0, 0)]}


def test_what_was_measured_and_how_far_from_heat_itself() -> None:
    text = render(RUNS, "On two cores.")
    assert f"| {Row.SHELL.value} | 16.0 | 16.0 - 16.0 | 1.60 | 20 |" in text
    assert f"| {Row.FLOOR.value} | 10.0 | 10.0 - 10.0 |  |  |" in text
    assert "| times Heat's own | at most 1.1 | 1.10 | yes |" in text
    assert "goal" not in render({Row.OURS: RUNS[Row.OURS]}, "")
