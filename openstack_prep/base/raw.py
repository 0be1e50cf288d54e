"""Names for data whose members have no declared types: answers of APIs, documents of JSON and YAML, fields by name.

Whoever reads an answer makes a record of it as soon as possible; from there on, members have types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Raw: TypeAlias = Mapping[str, Any]
"""An object of JSON or YAML, to be read only."""
Values: TypeAlias = dict[str, Any]
"""Values by name that the caller may change: fields of a resource as the spec has them, or a body to send."""
