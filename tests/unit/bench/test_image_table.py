"""The tables of the image's flow: ratios of rounds, goals met or not."""

from __future__ import annotations

from tests.bench.image_table import MIB, Row, Run, render

RUNS = {
    Row.CAREFUL: [Run(30.0, 80 * MIB, 1024 * MIB), Run(20.0, 90 * MIB, 1024 * MIB)],
    Row.CARELESS: [Run(18.0, 80 * MIB, 1024 * MIB), Run(15.0, 80 * MIB, 1024 * MIB)],
    Row.OURS: [Run(10.0, 70 * MIB, 4096), Run(8.0, 101 * MIB, 4096)],
    Row.FLOOR: [Run(5.0, 9 * MIB, 0), Run(6.0, 9 * MIB, 0)],
}
TEXT = render(RUNS, 1024 * MIB, "On two cores.")


def line(start: str) -> list[str]:
    (found,) = (line for line in TEXT.splitlines() if line.startswith(f"| {start}"))
    return [cell.strip() for cell in found.strip("|").split("|")[-6:]]


def test_what_was_measured() -> None:
    assert TEXT.startswith("On two cores.\n")
    assert line("`curl")[-6:] == ["25.0", "20.0 - 30.0", "41", "2.8", "85", "1024"]
    assert line("`openstack-prep")[-6:] == ["9.0", "8.0 - 10.0", "114", "", "86", "0"]


def test_goals() -> None:
    assert line("the shell takes")[-3:] == ["at least 2", "2.75", "yes"]
    assert line("even without")[-3:] == ["at least 2", "1.84", "no"]
    assert line("our peak memory")[-3:] == ["at most 100", "101", "no"]
    assert line("what we write")[-3:] == ["0", "0.0", "yes"]


def test_what_was_not_run_is_left_out() -> None:
    text = render({Row.FLOOR: RUNS[Row.FLOOR]}, 1024 * MIB, "")
    assert Row.CAREFUL.value not in text
    assert "goal" not in text
