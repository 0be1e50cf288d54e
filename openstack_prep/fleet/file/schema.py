"""The JSON Schema of a fleet file, with the docstrings of its fields."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from functools import cache
from typing import Any

from openstack_prep.base.raw import Values
from openstack_prep.fleet.file import fields
from openstack_prep.spec.schema import REFERENCE, docstrings_of, with_variables
from openstack_prep.spec.schema import known_keys as known_keys_of

SOURCES: Values = {
    "csv": {"type": "string", "description": "CSV file in UTF-8 whose first line names the columns"},
    "glob": {"type": "string", "description": "pattern of files; each row has path and name, which is without suffix"},
    "command": {
        "type": "array",
        "description": "program and arguments, run without a shell; it prints a list of JSON",
        "items": {"type": "string"},
        "minItems": 1,
    },
    "timeout": {"type": "integer", "minimum": 1, "description": "seconds that the command may take (60)"},
}


@cache
def _bare_schema() -> Any:
    return fields.adapter().json_schema()


def schema() -> Values:
    """Return the JSON Schema (2020-12) of a fleet file, for editors."""
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", **deepcopy(_bare_schema())}
    texts = docstrings_of({fields.__name__: fields})
    for name, part in [(fields.FleetFields.__name__, whole), *whole["$defs"].items()]:
        for field_name, text in texts.get((fields.__name__, name), {}).items():
            part["properties"][field_name].setdefault("description", text)
    found = with_variables(whole)
    rows = {"type": "object", "properties": SOURCES, "additionalProperties": False}
    found["$defs"]["ForEach"] = {
        **found["$defs"]["ForEach"],
        "description": "a name and its rows: this item is repeated for each, and ${name.column} is a value of it",
        "additionalProperties": {"anyOf": [{"type": "array"}, REFERENCE, rows]},
    }
    return found


def known_keys(where: Sequence[str | int]) -> Iterable[str]:
    """Return the keys that a fleet file may have at a place."""
    return known_keys_of(where, _bare_schema())
