from __future__ import annotations

from dataclasses import fields

import pytest

from openstack_prep.core.model import Adoptable, Condition, Observed, OwnershipTag
from openstack_prep.core.text import plain, show
from tests.kinds import KINDS


@pytest.mark.parametrize("spec", ["lab", "lab/one", "o,c]p [x]", "käse"])
@pytest.mark.parametrize("name", ["api", "api]", "a/b", "a b"])
def test_a_mark_is_found_again_whatever_the_names(spec: str, name: str) -> None:
    description = OwnershipTag(spec).describe(name, "text [of] the user")
    assert OwnershipTag(spec).owns(description, name)
    assert OwnershipTag(spec).owns(description)
    assert not OwnershipTag(spec).owns(description, name + "x")
    assert not OwnershipTag(spec + "x").owns(description)
    assert OwnershipTag.strip(description) == "text [of] the user"


def test_a_tag_holds_nothing_that_keystone_refuses() -> None:
    assert not set(OwnershipTag("o,c/p x").tag) & set(",/ ")


def test_the_note_of_an_attachment_names_no_spec() -> None:
    note = OwnershipTag("lab~attached").describe("web", "text")
    assert OwnershipTag.spec_in(note) is None
    assert (OwnershipTag("lab").another_in(note), OwnershipTag("other").another_in(note)) == ("", "")
    assert OwnershipTag("lab~attached").owns(note, "web")
    assert OwnershipTag.name_in(note) == "web"
    assert OwnershipTag("lab").another_in(OwnershipTag("other").describe("web")) == "other"


def test_a_record_is_of_the_kind_that_asks_for_it() -> None:
    assert Observed(id="1", record=OwnershipTag("lab")).record_as(OwnershipTag) == OwnershipTag("lab")
    with pytest.raises(TypeError, match="1 has the record None, not a OwnershipTag"):
        Observed(id="1").record_as(OwnershipTag)


def test_a_condition_is_equal_to_no_text() -> None:
    condition = Condition("(lost)")
    assert condition != "(lost)"
    assert condition != Condition("(lost)")
    assert (str(condition), show(condition), plain(condition)) == ("(lost)", "(lost)", "(lost)")


def test_a_mark_may_name_the_home_project() -> None:
    ownership = OwnershipTag("lab", home="p1")
    text = ownership.describe("a@b", "text")
    assert OwnershipTag.home_in(text) == "p1"
    assert OwnershipTag.name_in(text) == "a@b"
    assert OwnershipTag("lab").owns(text, "a@b")
    assert OwnershipTag.strip(text) == "text"
    assert OwnershipTag("lab").home_among(ownership.tags) == "p1"
    assert OwnershipTag("lab").home_among(OwnershipTag("lab").tags) == ""
    assert OwnershipTag.home_in(OwnershipTag("lab").describe("a@b")) == ""


@pytest.mark.parametrize("kind", [each for each in KINDS.values() if issubclass(each, Adoptable)])
def test_what_can_be_adopted_can_be_taken_over(kind: type[Adoptable]) -> None:
    """By its description, or in a way of its own."""
    described = "description" in {each.name for each in fields(kind)}
    assert described or kind.take_over is not Adoptable.take_over
