"""What a watch prints of two looks at the same paths."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openstack_prep.base.diagnostic import Diagnostic
from openstack_prep.openshift.verify.chain import Chain, Verification, ok
from openstack_prep.openshift.verify.changes import changes
from openstack_prep.openshift.verify.links import evaluate
from openstack_prep.openshift.verify.target import wanted
from tests.unit.openshift.verify.view import ID, Answers, changed, right


def look(view: Answers) -> Verification:
    return evaluate(wanted(infra_id=ID), view.view, {})


def test_the_first_look_is_all_new_and_a_second_one_changes_nothing() -> None:
    seen = look(right())
    first = list(changes(None, seen))
    assert [each.link for each in first] == seen.links
    assert not any(each.ended for each in first)
    assert list(changes(seen, look(right()))) == []


def test_a_link_that_breaks_and_is_mended() -> None:
    good, bad = look(right()), look(changed("worker-0-fghij-0", allowed_address_pairs=[]))
    (broken,) = changes(good, bad)
    assert (broken.chain, broken.link.code, broken.ended) == ("ingress", "pairs.missing", False)
    (mended,) = changes(bad, good)
    assert (mended.chain, mended.link.where, mended.link.status, mended.ended) == (
        "ingress",
        "address pairs",
        "ok",
        False,
    )


def test_a_place_without_a_link_has_ended() -> None:
    good = look(right())
    chains = tuple(replace(chain, links=chain.links[:-1]) for chain in good.chains)
    ended = list(changes(good, replace(good, chains=chains)))
    assert [(each.chain, each.ended) for each in ended] == [("api", True), ("ingress", True)]
    assert ended[0].data()["ended"] is True


A, B, C = (ok("address pairs", text) for text in "abc")


@pytest.mark.parametrize(
    ("before", "after", "ended", "new"),
    [
        ([A, B], [A], [B], []),
        ([A, B], [C], [A, B], [C]),
        ([A, B], [A, C], [], [C]),
        ([A], [B, C], [], [B, C]),
        ([A], [], [A], []),
    ],
)
def test_what_ends_at_a_place_with_several_links(
    before: list[Diagnostic], after: list[Diagnostic], ended: list[Diagnostic], new: list[Diagnostic]
) -> None:
    """Security groups have a link per TCP port, pairs one per address, probes one per request."""
    first, second = (
        Verification(infra_id=ID, chains=(Chain(name="api", target="", links=tuple(links)),))
        for links in (before, after)
    )
    found = [(each.ended, each.link) for each in changes(first, second)]
    assert found == [*((True, each) for each in ended), *((False, each) for each in new)]
