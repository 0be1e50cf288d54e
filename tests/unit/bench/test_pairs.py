"""The tables of address pairs: a part of the loop is said to be one."""

from __future__ import annotations

from tests.bench.pairs import Row, render
from tests.bench.table import Run
from tests.unit.texts import Wording

RUNS = {Row.SHELL: [Run(900.0, 3000), Run(800.0, 3000)], Row.OURS: [Run(2.0, 5), Run(2.0, 13)]}


def test_what_was_measured_and_of_how_much(wording: Wording) -> None:
    text = render(RUNS, "On two cores.", whole=False)
    wording(text)
    assert f"| {Row.SHELL.value} | 850.0 | 800.0 - 900.0 | 3000 |" in text
    assert "| our requests | at most 12 | 13 | no |" in text
    wording(text)
    assert "times 40" not in render(RUNS, "", whole=True)
    assert "goal" not in render({Row.SHELL: RUNS[Row.SHELL]}, "", whole=True)
