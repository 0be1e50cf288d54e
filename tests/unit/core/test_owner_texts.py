"""Whose a thing is, in the words of a refusal."""

from __future__ import annotations

import pytest

from openstack_prep.core.model import COPIED, Observed


@pytest.mark.parametrize(
    ("observed", "known_owner", "owner"),
    [
        (Observed(id="i"), "", "not managed by this spec"),
        (Observed(id="i", managed_by="web"), "managed by spec web", "managed by spec web"),
        (Observed(id="i", doubt=COPIED), COPIED, COPIED),
        (Observed(id="i", managed_by="web", doubt=COPIED), "managed by spec web", "managed by spec web"),
    ],
)
def test_whose_something_is(observed: Observed, known_owner: str, owner: str) -> None:
    assert (observed.known_owner, observed.owner) == (known_owner, owner)
