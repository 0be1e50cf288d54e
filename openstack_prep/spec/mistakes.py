"""pydantic's validation errors as mistakes: place, value and fix."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Protocol

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake
from openstack_prep.base.invalid import InvalidValue, shown
from openstack_prep.base.raw import Raw, dotted
from openstack_prep.base.suggestion import suggest
from openstack_prep.spec.schema import known_keys
from openstack_prep.spec.substitution import Reference
from openstack_prep.spec.variables import has_type

BY_HEAT = ("servers", "instances", "volumes", "load_balancers", "loadbalancers")
"""Sections that a spec does not have, and what Heat creates, as others name it."""


class Placed(Protocol):
    """Knows the place of each part of a spec."""

    def place(self, where: Sequence[str | int]) -> str: ...

    def part(self, where: Sequence[str | int]) -> Hashable: ...


TYPES = {
    "int_type": "integer",
    "float_type": "number",
    "bool_type": "boolean",
    "list_type": "list",
    "tuple_type": "list",
    "dict_type": "map",
    "mapping_type": "map",
    "dataclass_type": "map",
}
"""Types of variables whose values would be valid, by pydantic's errors for a text."""


def mistakes(
    document: Placed,
    errors: Sequence[Raw],
    within: Sequence[str | int] = (),
    reference: Callable[[Sequence[str | int]], Reference | None] = lambda where: None,
    known: Callable[[Sequence[str | int]], Iterable[str]] = known_keys,
) -> list[Mistake]:
    """Return pydantic's errors as mistakes, each once; errors of a list's length only if its items are valid.

    ``within`` is the part of a spec that was read alone; ``reference`` knows which variables a value came from, and
    ``known`` the keys of each part.
    """
    found: dict[Hashable, Mistake] = {}
    for error in errors:
        loc = error["loc"]
        inner = (each["loc"] for each in errors if len(each["loc"]) > len(loc))
        if error["type"] == "too_short" and any(each[: len(loc)] == loc for each in inner):
            continue  # invalid items were not counted
        parsed = mistake(document, error, within, reference(loc), known)
        same = (
            document.place(loc),
            document.part(loc),
            loc[-1:],
            parsed.what,
            parsed.fix,
        )  # also reached by an alias
        found.setdefault(same, parsed)
    return list(found.values())


def mistake(
    document: Placed,
    error: Raw,
    within: Sequence[str | int] = (),
    reference: Reference | None = None,
    known: Callable[[Sequence[str | int]], Iterable[str]] = known_keys,
) -> Mistake:
    """Return one error of pydantic as a mistake."""
    loc = error["loc"]
    if loc[-1:] == ("[key]",):  # pydantic's word for the key of a mapping, whose name comes before it
        loc = loc[:-1]
    where = f"{document.place(loc)}: {dotted(loc)}" if loc else document.place(loc)
    if error["type"] == "unexpected_keyword_argument":
        keys = sorted(known((*within, *loc[:-1])))
        by_heat = "stacks" in keys and loc[-1] in BY_HEAT
        other = suggest(str(loc[-1]), keys, f"choose one of {', '.join(keys)}")
        fix = "create them by Heat, in a template of stacks" if by_heat else other
        return Mistake(where, "unknown key", fix, code=Code.SPEC_UNKNOWN_KEY)
    if error["type"] in ("missing", "missing_argument", "missing_keyword_only_argument"):
        return Mistake(where, "is missing", "add it", code=Code.SPEC_MISSING_KEY)
    if error["type"] in ("secret", "contradiction"):
        given = error["ctx"]
        return Mistake(where, given["what"], given["fix"], code=given.get("code", Code.SPEC_CONTRADICTION))
    invalid = InvalidValue.of(error)
    value = f"{_shown(error)} " if loc else ""  # the mistake is about the whole resource
    fix = invalid.fix or _fix(error)
    if reference and loc:
        value += f"of {reference.text} "
        is_text = reference.variable and isinstance(error["input"], str) and error["type"] in TYPES
        fix = has_type(TYPES[error["type"]], reference.variable) if is_text else fix
    return Mistake(where, f"{value}{invalid.what}", fix, code=invalid.code)


OF_SEVERAL = ("tuple_type", "list_type", "set_type", "frozen_set_type", "dict_type", "mapping_type", "dataclass_type")
"""Errors about a value in the place of a list or mapping, which may have secrets among its parts."""


def _shown(error: Raw) -> str:
    given = error["input"]
    return "a string" if isinstance(given, str) and error["type"] in OF_SEVERAL else shown(given)


def _fix(error: Raw) -> str:
    """Return the fix of a pydantic error; empty if its message contains it already."""
    limits = error.get("ctx", {})
    match error["type"]:
        case "string_too_short":
            return "set a value, or remove the key if it is optional"
        case "string_too_long":
            return f"use at most {limits['max_length']} characters"
        case "too_short":
            return "add an item, or remove the key if it is optional"
        case "too_long":
            return f"keep at most {limits['max_length']} items"
        case "greater_than_equal":
            return f"use {limits['ge']} or more"
        case "greater_than":
            return f"use more than {limits['gt']}"
        case "less_than_equal":
            return f"use {limits['le']} or less"
        case "less_than":
            return f"use less than {limits['lt']}"
    return ""
