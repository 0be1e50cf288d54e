from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from openstack_prep.base import raw
from openstack_prep.base.secret import Secret, masked, revealed_in, secrets_in


@dataclass(frozen=True)
class Part:
    name: str
    parts: tuple[Any, ...] = ()


DATA = {"a": [1, {"b": "two"}], "c": Part("three", ({4: "four"},))}
PLACES = {
    "": DATA,
    "a": DATA["a"],
    "a[0]": 1,
    "a[1]": {"b": "two"},
    "a[1].b": "two",
    "c": DATA["c"],
    "c.name": "three",
    "c.parts": ({4: "four"},),
    "c.parts[0]": {4: "four"},
    "c.parts[0][4]": "four",
}


def test_a_walk_yields_each_part_before_its_own_with_the_steps_to_it() -> None:
    assert [(raw.dotted(steps), part) for steps, part in raw.walk_steps(DATA)] == [*PLACES.items()]
    assert [*raw.walk(DATA)] == [*PLACES.values()]
    assert [steps for steps, _ in raw.walk_steps([0], ("x", 2))] == [("x", 2), ("x", 2, 0)]
    assert [*raw.walk_steps({None: 1})][1:] == [(("None",), 1)]


def test_a_rewrite_changes_parts_before_what_they_are_in_and_nothing_given() -> None:
    given = {"a": (1, [2]), "b": {}}
    seen: list[Any] = []

    def change(part: Any) -> Any:
        seen.append(part)
        return part + 1 if isinstance(part, int) else part

    assert raw.rewrite(given, change) == {"a": [2, [3]], "b": {}}
    assert seen == [1, 2, [3], [2, [3]], {}, {"a": [2, [3]], "b": {}}]
    assert given == {"a": (1, [2]), "b": {}}


def test_texts_are_changed_in_keys_too() -> None:
    assert raw.map_texts({"a": ["b", 1], 2: "c"}, str.upper) == {"A": ["B", 1], 2: "C"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a.b", 1),
        (("a", "c", 1), "y"),
        (("a", "c", 2), None),
        (("a", "b", "d"), None),
        (("a", "c", "x"), None),
        ("a.none", None),
        ("", None),
        ((), {"a": {"b": 1, "c": ["x", "y"], "none": None}}),
    ],
)
def test_the_value_at_a_path(path: str | raw.Steps, value: object) -> None:
    assert raw.value_at({"a": {"b": 1, "c": ["x", "y"], "none": None}}, path) == value


def test_null_is_a_value() -> None:
    assert raw.has_value({"a": {"b": None}}, ("a", "b"))
    assert not raw.has_value({"a": {"b": None}}, ("a", "c"))
    assert raw.value_at({"a": None}, ("a", "b"), 3) == 3


@dataclass(frozen=True, kw_only=True)
class Record:
    id: str
    other: str
    status: str = "new"
    tags: tuple[str, ...] = ()
    metadata: dict[str, str] = field(default_factory=dict)
    may_be_null: str | None


def test_a_record_has_its_defaults_for_null_and_for_what_is_left_out() -> None:
    answer = {"id": "i", "status": None, "tags": ["a"], "may_be_null": None, "more": 1, "other": "theirs"}
    found = raw.record_of(Record, answer, other="ours")
    assert found == Record(id="i", other="ours", tags=("a",), may_be_null=None)
    with pytest.raises(KeyError, match="may_be_null"):
        raw.record_of(Record, {"id": "i", "other": "x"})


def test_secrets_are_found_masked_and_revealed_at_any_depth() -> None:
    given = {"a": [Secret("word"), "plain"], "b": {"c": Secret("other")}}
    assert [each.reveal() for each in secrets_in(given)] == ["word", "other"]
    assert [each.reveal() for each in secrets_in(Part("x", (frozenset([Secret("in a set")]),)))] == ["in a set"]
    assert revealed_in(given) == {"a": ["word", "plain"], "b": {"c": "other"}}
    assert "word" not in str(masked(given))
    assert "plain" in str(masked(given))
