from __future__ import annotations

from dataclasses import fields

import pytest

from openstack_prep.core.model import Adoptable, Condition, Mark, Observed
from openstack_prep.core.text import plain, show
from openstack_prep.kinds import KINDS


@pytest.mark.parametrize("spec", ["lab", "lab/one", "o,c]p [x]", "käse"])
@pytest.mark.parametrize("name", ["api", "api]", "a/b", "a b"])
def test_a_mark_is_found_again_whatever_the_names(spec: str, name: str) -> None:
    description = Mark(spec).describe(name, "text [of] the user")
    assert Mark(spec).owns(description, name)
    assert Mark(spec).owns(description)
    assert not Mark(spec).owns(description, name + "x")
    assert not Mark(spec + "x").owns(description)
    assert Mark.strip(description) == "text [of] the user"


def test_a_tag_holds_nothing_that_keystone_refuses() -> None:
    assert not set(Mark("o,c/p x").tag) & set(",/ ")


def test_the_note_of_an_attachment_names_no_spec() -> None:
    note = Mark("lab~attached").describe("web", "text")
    assert Mark.spec_in(note) is None
    assert (Mark("lab").another_in(note), Mark("other").another_in(note)) == ("", "")
    assert Mark("lab~attached").owns(note, "web")
    assert Mark.name_in(note) == "web"
    assert Mark("lab").another_in(Mark("other").describe("web")) == "other"


def test_a_record_is_of_the_kind_that_asks_for_it() -> None:
    assert Observed(id="1", record=Mark("lab")).recorded(Mark) == Mark("lab")
    with pytest.raises(TypeError, match="1 has the record None, not a Mark"):
        Observed(id="1").recorded(Mark)


def test_a_condition_is_equal_to_no_text() -> None:
    condition = Condition("(lost)")
    assert condition != "(lost)"
    assert condition != Condition("(lost)")
    assert (str(condition), show(condition), plain(condition)) == ("(lost)", "(lost)", "(lost)")


def test_a_mark_may_name_the_home_project() -> None:
    mark = Mark("lab", home="p1")
    text = mark.describe("a@b", "text")
    assert Mark.home_in(text) == "p1"
    assert Mark.name_in(text) == "a@b"
    assert Mark("lab").owns(text, "a@b")
    assert Mark.strip(text) == "text"
    assert Mark("lab").home_among(mark.tags) == "p1"
    assert Mark("lab").home_among(Mark("lab").tags) == ""
    assert Mark.home_in(Mark("lab").describe("a@b")) == ""


@pytest.mark.parametrize("kind", [each for each in KINDS.values() if issubclass(each, Adoptable)])
def test_what_can_be_adopted_can_be_taken_over(kind: type[Adoptable]) -> None:
    """By its description, or in a way of its own."""
    described = "description" in {each.name for each in fields(kind)}
    assert described or kind.take_over is not Adoptable.take_over
