"""Types of data without declared members: answers of APIs, documents of JSON and YAML, fields by name.

The reader of an answer creates a record from it as soon as possible; from then on, members have types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Raw: TypeAlias = Mapping[str, Any]
"""An object of JSON or YAML, which must not be changed."""
Values: TypeAlias = dict[str, Any]
"""Values by name that the caller may change: fields of a resource in terms of a spec, or a body to send."""
