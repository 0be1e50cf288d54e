from __future__ import annotations

from dataclasses import fields

import pytest

from openstack_prep.core.model import COPIED, UNNAMED, Adoptable, Condition, Observed, OwnershipTag
from openstack_prep.core.text import plain, show
from tests.kinds import KINDS
from tests.unit.texts import Wording


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


@pytest.mark.parametrize("text", [" d", "d ", "\n d \n", "\t", " ", ""])
def test_a_text_comes_back_as_it_was_written(text: str) -> None:
    """Otherwise each plan finds that it differs, and an application credential is refused or replaced for ever."""
    assert OwnershipTag.strip(OwnershipTag("lab").describe("web", text)) == text


def test_a_record_is_of_the_kind_that_asks_for_it(wording: Wording) -> None:
    assert Observed(id="1", record=OwnershipTag("lab")).record_as(OwnershipTag) == OwnershipTag("lab")
    with pytest.raises(TypeError) as caught:
        Observed(id="1").record_as(OwnershipTag)
    wording(caught.value)


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


# --- tags that stand beside others --------------------------------------------------------


def test_the_form_of_tags_and_descriptions() -> None:
    """Releases of the past and of the future read each other's, so that none of this may change."""
    tag = OwnershipTag("my lab", home="p1", place="d1")
    assert tag.tags == ("openstack-prep:my%20lab~p1", "openstack-prep:my%20lab")
    assert OwnershipTag("lab").tags == ("openstack-prep:lab",)
    assert tag.describe("a/b", "text") == "text [openstack-prep:my%20lab/a%2Fb@p1@d1]"
    assert OwnershipTag("lab", home="p1").describe("a") == "[openstack-prep:lab/a@p1]"
    assert OwnershipTag("lab", place="d1").describe("a") == "[openstack-prep:lab/a@@d1]"
    assert OwnershipTag("lab").describe("a") == "[openstack-prep:lab/a]"
    assert OwnershipTag("lab").name_tag("a", ["b"]) == "openstack-prep:~79bdb332~name~b52de25b84176068"


@pytest.mark.parametrize(
    ("description", "spec", "name", "home", "place"),
    [
        (None, None, None, "", ""),
        ("text", None, None, "", ""),
        ("[openstack-prep:lab] text", None, None, "", ""),
        ("[openstack-prep:lab]", "lab", None, "", ""),
        ("[openstack-prep:lab/a]", "lab", "a", "", ""),
        ("text [openstack-prep:my%20lab/a%2Fb@p1@d1]", "my lab", "a/b", "p1", "d1"),
        ("[openstack-prep:lab/a@@d1]", "lab", "a", "", "d1"),
    ],
)
def test_what_a_description_names(
    description: str | None, spec: str | None, name: str | None, home: str, place: str
) -> None:
    assert OwnershipTag.spec_in(description or "") == spec
    assert OwnershipTag.name_in(description) == name
    assert OwnershipTag.home_in(description) == home
    assert OwnershipTag.place_in(description) == place
    lab, other = OwnershipTag("lab"), OwnershipTag("other")
    assert (lab.owns(description), other.owns(description)) == (spec == "lab", False)
    assert lab.owns(description, "a") is (spec == "lab" and name == "a")
    assert [lab.manages(each, description) for each in ("a", "b")] == [spec == "lab", spec == "lab" and name is None]
    assert other.another_in(description) == (spec or "")
    assert lab.another_in(description) == (spec if spec and spec != "lab" else "")


def test_specs_are_told_from_records_and_other_tags() -> None:
    lab, tags = OwnershipTag("lab", home="p1"), ["blue", *OwnershipTag("my lab").tags]
    tags += [*lab.tags, lab.name_tag("a")]
    assert OwnershipTag.specs_in(tags) == ["lab", "my lab"]
    assert [OwnershipTag.is_tag(each) for each in tags] == [False, True, True, True, True]
    assert [lab.is_record(each) for each in tags] == [False, False, False, False, True]
    assert not OwnershipTag("other").is_record(lab.name_tag("a"))


def test_a_tag_beside_it_proves_what_an_ownership_tag_belongs_to() -> None:
    lab = OwnershipTag("lab")
    own, another = lab.name_tag("a", 1), lab.name_tag("b", 1)
    assert lab.doubt([lab.tag, own, another], "a", 1) == ""
    assert lab.doubt([lab.tag, another], "a", 1) == COPIED
    assert lab.doubt([lab.tag], "a", 1) == UNNAMED
    assert lab.doubt([lab.tag, OwnershipTag("other").name_tag("b")], "a", 1) == UNNAMED
    assert lab.doubt([lab.tag, lab.record("note", "a", 1)], "a", 1) == UNNAMED
