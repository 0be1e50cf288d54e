"""What pydantic found wrong, in our words: place, value and remedy."""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Sequence
from typing import Protocol

from openstack_prep.base.errors import Mistake
from openstack_prep.base.invalid import InvalidValue, shown
from openstack_prep.base.raw import Raw
from openstack_prep.spec.schema import known_keys


class Placed(Protocol):
    """What knows where each part of a spec stands."""

    def place(self, where: Sequence[str | int]) -> str: ...

    def part(self, where: Sequence[str | int]) -> Hashable: ...


def mistakes(document: Placed, errors: Sequence[Raw], within: Sequence[str | int] = ()) -> list[Mistake]:
    """Return pydantic's findings in our words, each once; of a list's length only when nothing in it is wrong.

    ``within`` is the part of a spec that was read alone.
    """
    found: dict[Hashable, Mistake] = {}
    for error in errors:
        loc = error["loc"]
        inner = (each["loc"] for each in errors if len(each["loc"]) > len(loc))
        if error["type"] == "too_short" and any(each[: len(loc)] == loc for each in inner):
            continue  # what is wrong was not counted
        said = mistake(document, error, within)
        same = (document.place(loc), document.part(loc), loc[-1:], said.what, said.remedy)  # reached by an alias, too
        found.setdefault(same, said)
    return list(found.values())


def mistake(document: Placed, error: Raw, within: Sequence[str | int] = ()) -> Mistake:
    """Return pydantic's finding in our words."""
    loc = error["loc"]
    if loc[-1:] == ("[key]",):  # pydantic's word for the key of a mapping, whose name comes before it
        loc = loc[:-1]
    dotted = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in loc).lstrip(".")
    where = f"{document.place(loc)}: {dotted}" if dotted else document.place(loc)
    if error["type"] == "unexpected_keyword_argument":
        known = sorted(known_keys((*within, *loc[:-1])))
        close = difflib.get_close_matches(str(loc[-1]), known, n=1)
        return Mistake(where, "unknown key", f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}")
    if error["type"] in ("missing", "missing_argument", "missing_keyword_only_argument"):
        return Mistake(where, "is missing", "add it")
    if error["type"] == "secret":
        return Mistake(where, **error["ctx"])
    said = InvalidValue.of(error)
    value = f"{shown(error['input'])} " if loc else ""  # the whole resource is named already
    return Mistake(where, f"{value}{said.what}", said.remedy or _remedy(error))


def _remedy(error: Raw) -> str:
    """Return what to do about a finding of pydantic's own; nothing where that says it already."""
    given, limits = error["input"], error.get("ctx", {})
    match error["type"]:
        case "string_type" if isinstance(given, int | float):
            return "write it in quotes"
        case "string_too_short":
            return "write one, or leave it out where it may be"
        case "string_too_long":
            return f"write {limits['max_length']} characters at most"
        case "too_short":
            return "add one, or leave it out where it may be"
        case "too_long":
            return f"keep {limits['max_length']} at most"
        case "greater_than_equal":
            return f"write {limits['ge']} or more"
        case "greater_than":
            return f"write more than {limits['gt']}"
        case "less_than_equal":
            return f"write {limits['le']} or less"
        case "less_than":
            return f"write less than {limits['lt']}"
    return ""
