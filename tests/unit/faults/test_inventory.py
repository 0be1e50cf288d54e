from __future__ import annotations

from collections import Counter

import pytest

from tests.faults.inventory import RANDOM, Thing, counts, differences
from tests.faults.trial import left_wrong
from tests.unit.texts import Wording

NET, PORT = Thing("networks", "nodes", "lab"), Thing("ports", "api", "lab")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("cluster1-server-0", "cluster1-server-0"),
        ("rke2-api-7gk2q5tdmzx4", "rke2-api-*"),
        ("f845ffd63e964a42aecfb820db32bb66-2ac5f13a-0bcf-4617-90b4-ab0d39c", "*-*"),
    ],
)
def test_what_heat_adds_to_names_is_left_out(name: str, shown: str) -> None:
    assert RANDOM.sub("*", name) == shown


def test_twice_and_missing_are_differences(wording: Wording) -> None:
    before = {"n0": NET}
    now = counts({"n0": NET, "n1": NET, "n2": NET}, before)
    assert now == Counter({NET: 2})
    wording(list(differences(now, Counter({NET: 1, PORT: 1}), "after apply")))


def test_after_destroy_all_is_as_before(wording: Wording) -> None:
    before = {"n0": NET, "p0": PORT}
    assert list(left_wrong(before, before)) == []
    wording(list(left_wrong({"n1": NET, "p0": Thing("ports", "ingress", "lab")}, before)))
