"""Parts of the JSON Schema of what commands print; each extension describes its own documents with them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from openstack_prep.base.raw import Values
from openstack_prep.cli.output import FORMAT

TEXT = {"type": "string"}
TEXT_OR_NULL = {"type": ["string", "null"]}
NUMBER = {"type": "number"}
INTEGER = {"type": "integer"}
BOOLEAN = {"type": "boolean"}
TEXTS = {"type": "array", "items": TEXT}
BY_NAME = {"type": "object", "additionalProperties": TEXT}
NUMBERS = {"type": "object", "additionalProperties": INTEGER}
ANYTHING: Values = {}


def enumeration(values: Iterable[Any]) -> Values:
    return {"enum": [getattr(value, "value", value) for value in values]}


def json_object(required: Values, optional: Values | None = None, description: str = "") -> Values:
    shape = {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}
    about = {"description": description} if description else {}
    return about | shape | {"additionalProperties": False}


def record(kind: Any, **special: Values) -> Values:
    """Return an object with all fields of a dataclass: texts, unless they are special."""
    return json_object({field.name: special.get(field.name, TEXT) for field in fields(kind)})


def list_of(name: str) -> Values:
    return {"type": "array", "items": ref(name)}


def ref(name: str) -> Values:
    return {"$ref": f"#/$defs/{name}"}


def document(description: str, required: Values, optional: Values | None = None) -> Values:
    return json_object({"version": {"const": FORMAT}, **required}, optional, description)


def mapping(description: str, pattern: str, value: Values) -> Values:
    """Return a document whose keys are names."""
    shape = {"properties": {"version": {"const": FORMAT}}, "patternProperties": {pattern: value}}
    about = {"description": description, "type": "object", "required": ["version"]}
    return about | shape | {"additionalProperties": False}
