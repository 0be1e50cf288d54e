"""The benchmark's tables: ratios of medians, goals met or not, the place in the document."""

from __future__ import annotations

import pytest

from tests.bench.table import BEGIN, END, Goal, Row, Run, insert, render
from tests.unit.texts import Wording

RUNS = {
    Row.SHELL: [Run(26.0, 84), Run(20.0, 84), Run(60.0, 84)],
    Row.OURS: [Run(2.0, 31), Run(2.0, 31), Run(4.0, 31)],
    Row.OURS_AGAIN: [Run(1.0, 20), Run(1.0, 26), Run(1.0, 20)],
    Row.FLOOR: [Run(1.25, 18), Run(1.25, 18), Run(2.0, 18)],
}


def line(text: str, start: str) -> list[str]:
    (found,) = (line for line in text.splitlines() if line.startswith(f"| {start}"))
    return [cell.strip() for cell in found.strip("|").split("|")]


def test_medians_and_ratios() -> None:
    text = render(RUNS, "On two cores.")
    assert text.startswith("On two cores.\n")
    assert line(text, "shell script") == [Row.SHELL.value, "26.00", "20.00 - 60.00", "84", "13.0"]
    assert line(text, "floor")[-1] == "0.6"


def test_our_own_row_has_no_ratio() -> None:
    assert line(render(RUNS, ""), Row.OURS.value)[1:] == ["2.00", "2.00 - 4.00", "31", ""]


def test_what_was_not_run_is_left_out(wording: Wording) -> None:
    text = render({Row.FLOOR: RUNS[Row.FLOOR]}, "")
    assert Row.SHELL.value not in text
    wording(text)
    assert line(text, "floor")[-1] == ""


def test_goals() -> None:
    text = render(RUNS, "")
    assert line(text, "the shell script takes")[1:] == ["at least 12", "13.00", "yes"]
    assert line(text, "we take times")[1:] == ["at most 2", "1.60", "yes"]


def test_second_apply_counts_by_its_worst_run() -> None:
    assert line(render(RUNS, ""), "requests of a second apply")[1:] == ["at most 25", "26", "no"]


@pytest.mark.parametrize(("most", "verdict"), [(13.0, "yes"), (12.9, "no")])
def test_goal_at_its_edge(most: float, verdict: str) -> None:
    assert Goal("x", Row.SHELL, Row.OURS, most=most).line(RUNS).endswith(f"| {verdict} |")


def test_insert_replaces_what_stood_between_the_marks() -> None:
    document = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert insert(document, "new") == f"before\n{BEGIN}\nnew\n{END}\nafter\n"
    assert insert(insert(document, "new"), "new") == insert(document, "new")


@pytest.mark.parametrize("document", ["", BEGIN, END, f"{END} {BEGIN}"])
def test_insert_wants_both_marks(document: str) -> None:
    with pytest.raises(ValueError, match="lacks"):
        insert(document, "new")
