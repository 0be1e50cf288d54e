from __future__ import annotations

import json

import pytest

from openstack_prep.cli.main import main
from openstack_prep.reports.codes import read_codes


def test_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "pairs.missing"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "pairs.missing"
    assert [line.split()[0] for line in lines if line[2:3] != " " and line != lines[0]] == [
        "means:",
        "why:",
        "fix:",
        "source:",
    ]
    assert max(map(len, lines)) <= 110
    assert main(["explain", "--format", "json", "pairs.missing"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "version": 1,
        "code": "pairs.missing",
        **read_codes()["pairs.missing"],
    }


def test_without_a_code_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(read_codes())


@pytest.mark.parametrize(
    ("code", "near"),
    [("quota.shrt", "quota.short"), ("vip", "vip.in-pool or vip.in-use"), ("nonsense", "openstack-prep explain lists")],
)
def test_a_code_that_does_not_exist(code: str, near: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", code]) == 2
    assert near in capsys.readouterr().err
