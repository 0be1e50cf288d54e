"""Writes docs/spec.md from the JSON Schema of the spec: ``python docs/make_spec_md.py``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from openstack_prep.spec import schema

INTRODUCTION = """\
# Spec reference

One YAML file per cluster. `python docs/make_spec_md.py` generates this page from the JSON Schema; `openstack-prep
schema` prints the schema itself.

- Resources refer to each other by name, never by id.
- Omitted fields are not managed.
- Sizes are numbers of the unit given here, or text with a unit: `ram: 16384` and `ram: 16GiB` are equal.
- A secret is `{env: NAME}`, `{file: PATH}`, `{prompt: true}` or `{generate: PATH}` (stored in that file with mode 0600;
  a random secret is generated if the file does not exist). Plain text is accepted with a warning.
- Paths are relative to the folder of the spec.
- Project-scoped resources belong to the project of the section `project`, unless they set `project:` themselves.
"""


def page() -> str:
    """Return the whole page."""
    whole = schema()
    parts = [INTRODUCTION, "## Sections\n" + table(whole, whole)]
    shown: set[str] = set()
    for section, part in whole["properties"].items():
        for name in references(part):
            parts += describe(whole, name, section, shown)
    return "\n".join(parts)


def describe(whole: Mapping[str, Any], name: str, section: str, shown: set[str]) -> Iterator[str]:
    """Yield the text of one object of the schema, and of those within it."""
    if name in shown:
        return
    shown.add(name)
    part = whole["$defs"][name]
    yield f"## `{section}`: {name}\n{part.get('description', '')}\n\n{table(whole, part)}"
    for inner in references(part.get("properties", {})):
        yield from describe(whole, inner, section, shown)


def table(whole: Mapping[str, Any], part: Mapping[str, Any]) -> str:
    required = part.get("required", ())
    rows = [
        f"| `{name}`{' (required)' if name in required else ''} | {kind(each)} | {meaning(each)} |"
        for name, each in part["properties"].items()
    ]
    return "\n".join(["| field | type | meaning |", "|---|---|---|", *rows, ""])


def meaning(part: Mapping[str, Any]) -> str:
    return " ".join(part.get("description", "").split())


def kind(part: Mapping[str, Any]) -> str:
    """Return a type in a few words."""
    if "$ref" in part:
        return part["$ref"].rpartition("/")[2]
    if "const" in part:
        return f"`{part['const']}`"
    if "enum" in part:
        return ", ".join(f"`{each}`" for each in part["enum"])
    if "anyOf" in part:
        options = [option for option in part["anyOf"] if option.get("type") != "null"]
        if any("env" in option.get("properties", ()) for option in options):
            return "secret"
        if any(str(option.get("description", "")).startswith("a number of ") for option in options):
            unit = next(option["description"] for option in options if "description" in option)
            return f"size, {unit.removeprefix('a number of ')}"
        return " or ".join(dict.fromkeys(map(kind, options)))
    if part.get("type") == "array":
        return f"list of {kind(part['items'])}" if isinstance(part.get("items"), dict) else "list"
    if part.get("type") == "object":
        inner = part.get("additionalProperties")
        return f"mapping to {kind(inner)}" if isinstance(inner, dict) else "mapping"
    words = {"string": "text", "integer": "number", "number": "number", "boolean": "true or false"}
    types = part.get("type", "any")
    return " or ".join(dict.fromkeys(words.get(each, each) for each in ([types] if isinstance(types, str) else types)))


def references(part: Any) -> Iterator[str]:
    """Yield the names of the objects that a part of the schema refers to."""
    if isinstance(part, dict):
        if "$ref" in part:
            yield part["$ref"].rpartition("/")[2]
        for each in part.values():
            yield from references(each)
    elif isinstance(part, list):
        for each in part:
            yield from references(each)


if __name__ == "__main__":
    Path(__file__).with_name("spec.md").write_text(page())
