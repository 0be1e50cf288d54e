"""Types of data without declared members: answers of APIs, documents of JSON and YAML, fields by name.

The reader of an answer creates a record from it as soon as possible; from then on, members have types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Raw: TypeAlias = Mapping[str, Any]
"""An object of JSON or YAML, which must not be changed."""
Values: TypeAlias = dict[str, Any]
"""Values by name that the caller may change: fields of a resource in terms of a spec, or a body to send."""


def map_texts(value: object, change: Callable[[str], str]) -> Any:
    """Return plain data with each of its texts changed, keys as well."""
    if isinstance(value, Mapping):
        return {map_texts(key, change): map_texts(each, change) for key, each in value.items()}
    if isinstance(value, list):
        return [map_texts(each, change) for each in value]
    return change(value) if isinstance(value, str) else value
