"""Which known name a wrong one probably means: the only place that says "did you mean"."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

CUTOFF = 0.72
"""The least similarity: ``nmae`` resembles ``name`` (0.75), and ``node`` does not (0.5)."""
SHORTEST = 4
"""Letters of a known name that another may begin with, such as ``user`` in ``username``."""
SHORTEST_EDITED = 3
"""Letters of names that may differ by one edit: ``rem`` means ``ram``, although only 0.67 of it is the same."""


def similar(name: str, known: Iterable[str], *, count: int = 1) -> list[str]:
    """Return the known names that differ from a name by a few letters, the most similar first.

    Case and punctuation do not count: programs differ in them.
    """
    by_letters, letters = {_letters(each): each for each in known}, _letters(name)
    close = difflib.get_close_matches(letters, by_letters, n=count, cutoff=CUTOFF)
    return [
        by_letters[each] for each in close or _one_edit_away(letters, by_letters) or _beginnings(letters, by_letters)
    ]


def suggest(name: str, known: Iterable[str], otherwise: str = "", *, count: int = 1) -> str:
    """Return the question that names similar known names, or else another fix."""
    return ask(similar(name, known, count=count), otherwise)


def ask(names: Sequence[str], otherwise: str = "") -> str:
    """Return the question whether one of some names is meant, or else another fix."""
    return f"did you mean {' or '.join(names)}?" if names else otherwise


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9/]", "", name.lower())


def _one_edit_away(letters: str, known: Iterable[str]) -> list[str]:
    """Return the known name that differs from a name by one edit; none if several do."""
    found = [each for each in known if min(len(each), len(letters)) >= SHORTEST_EDITED and _is_one_edit(each, letters)]
    return found if len(found) == 1 else []


def _is_one_edit(one: str, other: str) -> bool:
    """Whether two different names differ by one letter that is added or replaced, or by two that are swapped."""
    pairs = enumerate(zip(one, other, strict=False))
    start = next((i for i, (left, right) in pairs if left != right), min(len(one), len(other)))
    shorter, longer = sorted((one[start:], other[start:]), key=len)
    if len(shorter) < len(longer):
        return longer[1:] == shorter
    return longer[1:] == shorter[1:] or (longer[1::-1] == shorter[:2] and longer[2:] == shorter[2:])


def _beginnings(letters: str, known: Iterable[str]) -> list[str]:
    """Return the longest known name with which a name begins, if that is at least half of it."""
    found = [each for each in known if len(each) >= SHORTEST and letters.startswith(each)]
    return [each for each in sorted(found, key=len)[-1:] if 2 * len(each) >= len(letters)]
