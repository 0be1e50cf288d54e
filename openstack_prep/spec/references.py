"""What the JSON Schema of a spec allows because values are replaced, and items repeated, before the spec is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from openstack_prep.base.raw import Raw, Values

AS_WRITTEN = ("include", "variables")
"""Sections in which nothing is replaced."""
REFERENCE = {"$ref": "#/$defs/VariableValue"}
ADDED: Values = {
    "VariableValue": {"type": "string", "pattern": r"\$\{", "description": "the value of a variable, ${name}"},
    "ForEach": {
        "type": "object",
        "description": "a variable and its list: this item is repeated for each value",
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": {"anyOf": [{"type": "array"}, REFERENCE]},
    },
}


def with_variables(whole: Raw) -> Values:
    """Return the schema in which each value may be a variable, each object of a list repeated, and keys be ignored."""
    items = set(_items(whole))
    definitions = {name: _opened(part, repeated=name in items) for name, part in whole["$defs"].items()}
    definitions |= {name: whole["$defs"][name] for name in ("Variable",) if name in whole["$defs"]}
    top = _opened(whole, repeated=False)
    top["properties"] |= {name: whole["properties"][name] for name in AS_WRITTEN if name in whole["properties"]}
    return {**top, "patternProperties": {"^x-": {}}, "$defs": {**definitions, **ADDED}}


def _items(part: Any) -> Iterator[str]:
    """Yield the names of the definitions that are items of lists."""
    if isinstance(part, dict):
        items = part.get("items")
        for each in [items, *items.get("anyOf", ())] if isinstance(items, dict) else []:
            if "$ref" in each:
                yield each["$ref"].rpartition("/")[2]
        for value in part.values():
            yield from _items(value)
    elif isinstance(part, list):
        for value in part:
            yield from _items(value)


def _opened(part: Raw, *, repeated: bool) -> Values:
    """Return an object of the schema whose properties may be variables."""
    if "properties" not in part:
        return dict(part)
    properties = {name: _or_reference(value) for name, value in part["properties"].items()}
    if repeated:
        properties["for_each"] = {"$ref": "#/$defs/ForEach", "description": "Repeats this item for each value."}
    return {**part, "properties": properties}


def _or_reference(part: Raw) -> Values:
    """Return a value that may also be a reference to a variable."""
    inner = {**part, **_within(part)}
    if "anyOf" in part:
        options = [{**each, **_within(each)} for each in part["anyOf"]]
        return {**inner, "anyOf": options if any(map(_is_free_text, options)) else [*options, REFERENCE]}
    if _is_free_text(part) or not part.keys() & {"type", "$ref", "enum", "const"}:
        return inner
    outer: Values = {key: inner.pop(key) for key in ("description", "default", "title") if key in inner}
    return {"anyOf": [inner, REFERENCE], **outer}


def _within(part: Raw) -> Values:
    return {
        key: _or_reference(part[key]) for key in ("items", "additionalProperties") if isinstance(part.get(key), dict)
    }


def _is_free_text(part: Raw) -> bool:
    """Whether it accepts any text, and so a reference to a variable."""
    limits = {"enum", "const", "pattern", "format"}
    return part.get("type") == "string" and not part.keys() & limits
