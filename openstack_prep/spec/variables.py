"""Variables of a spec: their declarations, and what their values may be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from openstack_prep.base.errors import SpecError
from openstack_prep.base.fields import Reads
from openstack_prep.base.formats.yaml_places import Document
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.core.model import Resource

ENVIRONMENT = "OPENSTACK_PREP_VAR_"
Type = Literal["string", "integer", "number", "boolean", "list", "map"]
ARTICLE = {"integer": "an"}
PYTHON: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "list": list,
    "map": dict,
}
AS_IN_YAML = {
    "string": "put it in quotes",
    "integer": "write a whole number, such as 4",
    "number": "write a number, such as 1.5",
    "boolean": "write true or false",
    "list": "write [a, b]",
    "map": "write {a: b}",
}
FILES = ("file", "content", "generate")
"""Sources of a secret that are paths."""


def has_type(kind: str, name: str) -> str:
    """Return what to do with a variable whose values were taken for text."""
    return f"add `type: {kind}` to variable {name}"


def variable_name(value: object) -> object:
    """Check the name of a variable: in capitals it is part of an environment variable's name."""
    if not isinstance(value, str) or not is_name(value):
        raise InvalidValue("is not the name of a variable", "use a-z, 0-9 and _, and begin with a letter")
    return value


def is_name(text: str) -> bool:
    """Whether a text can be the name of a variable."""
    return text.isascii() and text.isidentifier() and text == text.lower() and not text.startswith("_")


VariableName = Annotated[str, Reads(variable_name)]


@dataclass(frozen=True, kw_only=True)
class Variable:
    """A variable; ``${name}`` in a value of the spec stands for its value."""

    __pydantic_config__: ClassVar[dict[str, object]] = Resource.__pydantic_config__

    type: Type | None = None
    """Type of its values; default: that of `default`, otherwise `string`."""
    default: Any = None
    """Its value if no other is given; without one, a value must be given. Of a secret: its source."""
    secret: bool = False
    """Whether it is a secret, whose values are no text but sources, such as `{env: NAME}`."""
    description: str = ""
    """What it is for, shown when it has no value."""

    @property
    def of(self) -> str:
        """Its type, also if that follows from the default."""
        kinds = (name for name, kind in PYTHON.items() if is_of(self.default, name))
        return self.type or next(kinds, "string")


@dataclass(frozen=True)
class Origin:
    """A file that has values for variables: they are no secrets, and a text may be of another type, as with ``--var``.

    ``places`` are where each value is, and paths in sources of secrets are relative to ``folder``.
    """

    folder: Path
    places: Mapping[str, str]


@dataclass(frozen=True)
class Given:
    """Values for variables: texts of ``--var``, files of ``--vars-file``, and values from Python."""

    arguments: Sequence[tuple[str, str]] = field(default=(), repr=False)
    files: Sequence[Path] = ()
    values: Mapping[str, object] = field(default_factory=dict, repr=False)
    saved: Mapping[str, object] = field(default_factory=dict, repr=False)
    """Values in a saved plan, which any but those of the environment override: then the plan is refused."""
    origin: Origin | None = None
    """Where ``values`` were read; None: they come from Python."""
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    """Variables of the environment in which the values were chosen, without secrets; None: that of this process."""
    needs_secrets: bool = True
    """Whether the values of secrets are needed; a command that only checks a spec accepts secrets without values."""


@dataclass(frozen=True)
class Declared:
    """A declared variable, and the part of a spec that declares it."""

    variable: Variable
    document: Document
    base: Path

    def place(self, name: str, *rest: str) -> str:
        return self.document.place(("variables", name, *rest))


@dataclass(frozen=True)
class Value:
    """A value in terms of YAML, or a Secret."""

    data: Any
    is_secret: bool = False


def is_of(value: object, kind: str) -> bool:
    """Whether a value of YAML is of a type; true is no number."""
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, PYTHON[kind])


def is_plain(value: object) -> bool:
    """Whether a value consists of what JSON has, too."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_plain(each) for key, each in value.items())
    if isinstance(value, list):
        return all(map(is_plain, value))
    return value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def _parsed(text: str) -> object:
    """Return the value that a text describes, as in a file of a spec; raises SpecError."""
    document = Document(Path("value"), text)
    if wrong := [*document.repeated, *document.misread()]:
        raise SpecError(wrong)
    return document.data


def typed(value: object, kind: str, *, parse: bool) -> object:
    """Return a value of a type; with ``parse`` from a text such as ``[a, b]``.  Raises InvalidValue."""
    if isinstance(value, tuple):
        value = list(value)
    if parse and isinstance(value, str) and kind != "string":
        try:
            value = _parsed(value)
        except SpecError:
            raise InvalidValue(f"is not {ARTICLE.get(kind, 'a')} {kind}", AS_IN_YAML[kind]) from None
    if not is_plain(value):
        raise InvalidValue("has parts that YAML cannot express, or keys that are not text", "write a plain value")
    if not is_of(value, kind):
        raise InvalidValue(f"is not {ARTICLE.get(kind, 'a')} {kind}", AS_IN_YAML[kind])
    return value
