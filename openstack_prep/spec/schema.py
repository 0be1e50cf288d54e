"""The JSON Schema of a spec, with the docstrings of its fields."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import is_dataclass
from functools import cache
from itertools import pairwise
from types import ModuleType
from typing import Any, get_args, get_type_hints

from openstack_prep import extensions
from openstack_prep.base.raw import Raw, Values, walk
from openstack_prep.spec import sections


@cache
def _bare_schema() -> Any:
    return sections.adapter().json_schema()


def schema(*, included: bool = False) -> Values:
    """Return the JSON Schema (2020-12) of a spec, or of a file that specs include, for editors: with variables."""
    whole = with_variables(filled_schema())
    if included:
        del whole["properties"]["name"]
        whole["required"].remove("name")
        whole["title"] += ", included file"
    return whole


def filled_schema() -> Values:
    """Return the JSON Schema of a spec whose variables have been replaced."""
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", **deepcopy(_bare_schema())}
    for section in extensions.sections():
        whole["properties"][section.name].setdefault("description", section.text)
    classes = [sections.Sections, *_classes(sections.Sections), *_classes(*_kinds())]
    docstrings = docstrings_of(
        {each.__module__: sys.modules[each.__module__] for kind in classes for each in _own(kind)}
    )
    for kind in classes:
        part = whole if kind is sections.Sections else whole["$defs"].get(kind.__name__, {})
        for owner in _own(kind):
            for name, text in docstrings.get((owner.__module__, owner.__name__), {}).items():
                part.get("properties", {}).get(name, {}).setdefault("description", text)
    return whole


def _kinds() -> list[type]:
    return [extensions.load(section.kind) for section in extensions.sections()]


def _own(kind: type) -> list[type]:
    """Return a class and its bases, as far as they are in packages."""
    return [each for each in kind.__mro__ if each.__module__ not in sys.stdlib_module_names]


def _classes(*kinds: type) -> list[type]:
    """Return dataclasses with those that the types of their fields name, each once."""
    found: dict[type, None] = {}
    waiting: list[Any] = list(kinds)
    while waiting:
        each = waiting.pop()
        if is_dataclass(each) and isinstance(each, type):
            if each not in found:
                found[each] = None
                waiting += get_type_hints(each).values()
        else:
            waiting += get_args(each)
    return list(found)


def docstrings_of(modules: Mapping[str, ModuleType]) -> dict[tuple[str, str], dict[str, str]]:
    """Return the docstrings of fields by module and class.

    pydantic can read them too, but parses a module again for each class, and ignores base classes.
    """
    parsed = [(name, ast.parse(inspect.getsource(module))) for name, module in modules.items()]
    return {
        (name, node.name): {
            field.target.id: str(text.value.value)
            for field, text in pairwise(node.body)
            if isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
        }
        for name, module in parsed
        for node in module.body
        if isinstance(node, ast.ClassDef)
    }


def known_keys(where: Sequence[str | int], whole: Any = None) -> Iterable[str]:
    """Return the keys that a schema, by default that of a spec, allows at a place."""
    whole = part = whole or _bare_schema()
    for step in where:
        options = [part, *part.get("anyOf", ())]
        for option in options:
            option = _resolved(whole, option)
            if isinstance(step, int) and "items" in option:
                part = option["items"]
            elif step in option.get("properties", {}):
                part = option["properties"][step]
            elif isinstance(option.get("additionalProperties"), dict):
                part = option["additionalProperties"]
    options = [_resolved(whole, option) for option in (part, *part.get("anyOf", ()))]
    return {key for option in options for key in option.get("properties", {})}


def _resolved(whole: Raw, part: Raw) -> Any:
    return whole["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part


# --- what it allows because values are replaced, and items repeated, before the spec is read ---

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
    for each in walk(part):
        items = each.get("items") if isinstance(each, dict) else None
        for of in [items, *items.get("anyOf", ())] if isinstance(items, dict) else []:
            if "$ref" in of:
                yield of["$ref"].rpartition("/")[2]


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
