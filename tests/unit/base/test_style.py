from __future__ import annotations

import re

import pytest

from openstack_prep.base.errors import Mistake
from openstack_prep.base.style import PLAIN, Style
from openstack_prep.core import text
from openstack_prep.core.model import Key, Observed, Result, Status
from openstack_prep.core.plan import Report
from openstack_prep.core.planner import plan_apply
from tests.unit.box import Box

ADDRESSES = [f"2001:db8:0:{n}::{n}/64" for n in range(12)]


def test_long_details_are_wrapped_below_themselves_and_no_address_is_broken() -> None:
    first, *others = Style(width=70).line("+", "box/a", ", ".join(ADDRESSES)).splitlines()
    assert first.startswith("  + box/a  2001:db8:0:0::0/64, ")
    assert others
    assert all(each.startswith(" " * 11 + "2001:") and len(each) <= 70 for each in others)
    assert re.findall(r"[^\s,]+/64", "\n".join([first, *others])) == ADDRESSES


def test_a_terminal_shows_long_values_whole() -> None:
    plan = plan_apply("lab", [Box(name="a", colour=", ".join(ADDRESSES))], {})
    assert ADDRESSES[-1] not in plan.render()
    assert ADDRESSES[-1] in plan.render(Style(width=70))


def test_beside_a_long_name_details_stand_below_it() -> None:
    name = f"box/{'n' * 50}"
    first, *others = Style(width=70).line("~", name, ", ".join(ADDRESSES)).splitlines()
    assert first == f"  ~ {name}"
    assert {each[:11] for each in others} == {"      2001:"}


def test_one_long_name_moves_the_details_of_no_other() -> None:
    boxes = [Box(name=name, colour="blue " * 8, size=1) for name in ("a", "n" * 60, "crate")]
    lines = plan_apply("lab", boxes, {}).render(Style(width=80)).splitlines()
    assert [line.index("size") for line in lines if "size" in line and "box" in line] == [15, 15]
    assert max(map(len, lines)) <= 80


def test_what_is_longer_than_the_terminal_stays_whole() -> None:
    assert "x" * 100 in Style(width=40).line("+", "box/a", "x" * 100)


def test_without_a_terminal_nothing_is_wrapped() -> None:
    assert PLAIN.line("+", "box/a", ", ".join(ADDRESSES)).count("\n") == 0


@pytest.mark.parametrize(("symbol", "code"), [("+", "32"), ("~", "33"), ("-", "31"), ("-/+", "31"), ("@", "36")])
def test_a_symbol_and_a_name_have_the_colour_of_the_action(symbol: str, code: str) -> None:
    assert Style(color=True).line(symbol, "box/a", "size 1") == f"\x1b[{code}m{symbol:>3} box/a\x1b[0m  size 1"


def test_only_what_stays_for_no_reason_is_hidden() -> None:
    a, b = Box(name="a", size=1), Box(name="b", size=1)
    twin = Observed(id="id-2", values={"size": 1})
    there = {
        a.key: Observed(id="id-a", values={"size": 1}, ours=True),
        b.key: Observed(id="id-b", values={"size": 1}, ours=True, twins=(twin,)),
    }
    plan = plan_apply("lab", [a, b], there)
    kept, summary = plan.table.splitlines()
    assert "duplicate of id-b" in kept
    assert summary == "apply lab: 3 unchanged"
    assert [line[:3].strip() for line in plan.render(Style(unchanged=True)).splitlines()[:-1]] == ["=", "=", "="]


@pytest.mark.parametrize(
    ("id", "ids", "shown"),
    [
        ("id-a", False, "  + box/a  address 192.0.2.1"),
        ("id-a", True, "  + box/a  id-a  address 192.0.2.1"),
        ("5 ports", False, "  + box/a  5 ports  address 192.0.2.1"),
        ("192.0.2.0-192.0.2.9", False, "  + box/a  192.0.2.0-192.0.2.9  address 192.0.2.1"),
        ("/lab/ocp4.env", False, "  + box/a  /lab/ocp4.env  address 192.0.2.1"),
    ],
)
def test_ids_are_shown_when_asked_for(id: str, ids: bool, shown: str) -> None:
    (step,) = plan_apply("lab", [Box(name="a")], {})
    observed = Observed(id=id, ours=True, outputs={"address": "192.0.2.1"})
    result = Result(step=step, status=Status.DONE, observed=observed)
    assert text.result_line(result, 5, Style(ids=ids)) == shown
    assert Report((result,)).data()["steps"][0]["id"] == id


def test_what_exists_has_the_colour_of_its_state() -> None:
    found = {
        Key("box", "a"): Observed(id="id-a", ours=True),
        Key("box", "b"): Observed(id="id-b"),
        Key("box", "c"): None,
    }
    lines = text.observed_table(found, Style(color=True)).splitlines()
    assert [line.partition("m")[0] for line in lines] == ["\x1b[32", "\x1b[33", "\x1b[2"]
    assert text.observed_table(found, Style(width=30)).splitlines()[1:3] == [
        "box/b",
        "      id-b  (not managed by",
    ]


@pytest.mark.parametrize("name", ["evil\x1b[2K\x1b[1A", "old\n  + network/harmless"])
def test_names_of_others_reach_no_terminal_as_they_are(name: str) -> None:
    plan = plan_apply("lab", [Box(name=name)], {})
    assert name not in plan.render()
    assert len(plan.render().splitlines()) == 2
    assert "\x1b" not in str(Mistake.about(Key("box", name), f"managed by spec {name}", "x"))
