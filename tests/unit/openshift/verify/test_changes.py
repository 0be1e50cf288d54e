"""What a watch prints of two looks at the same paths."""

from __future__ import annotations

from dataclasses import replace

from openstack_prep.openshift.verify.chain import Verification
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
