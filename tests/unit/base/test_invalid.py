"""What an invalid value says of itself, and how values are shown."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import Field, TypeAdapter, ValidationError

from openstack_prep.base.errors import Mistake
from openstack_prep.base.fields import Mac
from openstack_prep.base.invalid import InvalidValue, no_end_spaces, one_line, shown
from tests.unit.texts import Wording, contains


def of(kind: object, value: object) -> InvalidValue:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(kind).validate_python(value)
    (finding,) = caught.value.errors()
    return InvalidValue.of(finding)


def test_what_a_field_raises_comes_back_from_pydantic_with_its_remedy(wording: Wording) -> None:
    found = of(Mac, "fa:16")
    wording(found.what)
    wording(found.fix)
    assert found.code == "spec.invalid-value"
    assert contains(str(found), "MAC", "fa:16:3e:00:00:01")
    assert found.at("mac", "fa:16") == Mistake(
        "mac", "'fa:16' is not a MAC address", found.fix, code="spec.invalid-value"
    )


def test_what_pydantic_finds_itself_is_said_without_the_name_of_its_type(wording: Wording) -> None:
    wording(of(Annotated[int, Field(ge=2)], 1).what)
    wording(of(Annotated[str, Field(min_length=1)], "").what)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"file": "key.pub"}, "the file key.pub"),
        ({"env": "PASSWORD"}, "a mapping"),
        (["secret"], "a list"),
        ("x" * 100, '"' + "x" * 36 + "..."),
        (7, "7"),
        ("me:it's-secret@example.com/a", '"...example.com/a"'),
        ("https://me:secret@example.com/a", '"https://...example.com/a"'),
        ("https://me:secr", '"https://..."'),
        ("https://me:sec/ret@example.com", '"https://..."'),
        ("https://example.com:99/a", '"https://example.com:99/a"'),
        ("https://user:12/34@example.com", '"https://..."'),
        ("http://[2001:db8::1]:5000/v3", '"http://[2001:db8::1]:5000/v3"'),
        ("http://user:secret@[2001:db8::1]/", '"http://...[2001:db8::1]/"'),
        ("user:secret@example.com/a", '"...example.com/a"'),
        ("https:/user:secret@example.com/a", '"...example.com/a"'),
        (f"user:{'secret' * 9}@example.com", '"...example.com"'),
        ("example.com/a:1.2@sha256:0123", '"example.com/a:1.2@sha256:0123"'),
    ],
)
def test_a_value_is_shown_unless_it_may_hold_a_secret(value: object, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize("name", ["ann\n", "a\rb", "a\x00", "a\x1b[31m", "a\x85", "a\u2028"])
def test_a_name_is_one_line(name: str) -> None:
    with pytest.raises(InvalidValue, match="line end"):
        one_line(name)


@pytest.mark.parametrize("name", ["lab ", " lab", "lab\u00a0", " ", "\u3000lab"])
def test_a_name_has_no_spaces_at_its_ends(name: str) -> None:
    """Keystone would store another name, which no later run looks for."""
    with pytest.raises(InvalidValue, match="with a space"):
        no_end_spaces(name)
    assert one_line(name) == name


def test_no_request_can_name_dots() -> None:
    for name in (".", ".."):
        with pytest.raises(InvalidValue):
            one_line(name)
    assert one_line("...") == "..."


def test_a_tab_is_named(wording: Wording) -> None:
    with pytest.raises(InvalidValue) as caught:
        one_line("a\tb")
    wording(caught.value)


@pytest.mark.parametrize("name", ["ann", "a b", "ä", "\u200f\u05d0", 3])
def test_other_names_stay(name: object) -> None:
    assert one_line(name) == name
