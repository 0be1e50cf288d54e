"""Variables of a spec: their declarations, and what their values may be.

The value is the first of: ``--var`` or a value from Python, the last file of ``--vars-file`` that has it, the saved
plan, the environment variable OPENSTACK_PREP_VAR_NAME, the default. A secret is read from its source when a value first
refers to it.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.fields import Reads, file_path
from openstack_prep.base.formats.yaml_places import Document
from openstack_prep.base.given_file import folder_of
from openstack_prep.base.invalid import InvalidValue, shown
from openstack_prep.base.secret import SOURCES, Secret, from_spec
from openstack_prep.base.suggestion import suggest
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
    document.refuse_bare_keys()
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


# --- the value of each variable of a spec, from whoever gives one -----------------------


@dataclass(frozen=True)
class Source:
    """Where a secret comes from: it is only read when a value refers to it."""

    given: object
    """A Secret, or the source of one in terms of a spec."""
    folder: Path
    """Paths in it are relative to this folder."""
    place: str


@dataclass
class VariableValues:
    """The values of the declared variables; ``mistakes`` in what was given, and ``tokens`` of secrets."""

    declared: Mapping[str, Declared]
    plain: dict[str, object] = field(default_factory=dict)
    secrets: dict[str, Source] = field(default_factory=dict)
    read_secrets: dict[str, Value | None] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    """Variables to which a wrong value was given."""
    explicit: set[str] = field(default_factory=set)
    """Variables whose value is not the default."""
    needs_secrets: bool = True

    @classmethod
    def read(cls, declared: Mapping[str, Declared], given: Given) -> VariableValues:
        """Read what was given; later sources override earlier ones."""
        values = cls(declared, needs_secrets=given.needs_secrets)
        for name, each in declared.items():
            if each.variable.default is not None:
                values._set(name, each.variable.default, each.place(name, "default"), each.base, plain=False)
        values.explicit.clear()
        for name in declared:
            texts = os.environ if given.environment is None or declared[name].variable.secret else given.environment
            if (text := texts.get(f"{ENVIRONMENT}{name.upper()}")) is not None:
                values._set_from_environment(name, text)
        for name, value in given.saved.items():
            values._set(name, value, f"variables.{name} of the saved plan", Path.cwd())
        for path in given.files:
            values._set_from_file(path)
        for name, text in dict(given.arguments).items():
            values._set_from_argument(name, text)
        for name, number in Counter(name for name, _ in dict.fromkeys(given.arguments)).items():
            if number > 1:  # the last one would hide the others without a word
                values._refuse(f"--var {name}", f"is given {number} times, with different values", "keep one of them")
        for name, value in given.values.items():
            if given.origin is None:
                values._set(name, value, f"variables[{name!r}]", Path.cwd())
            else:
                place, folder = given.origin.places.get(name, ""), given.origin.folder
                values._set(name, value, place, folder, parse=isinstance(value, str), plain=False)
        return values

    def _set_from_environment(self, name: str, text: str) -> None:
        place = f"{ENVIRONMENT}{name.upper()}"
        if self.declared[name].variable.secret:
            self._keep_secret(name, Source({"env": place}, Path.cwd(), place))
        else:
            self._set(name, text, place, Path.cwd(), parse=True)

    def _set_from_argument(self, name: str, text: str) -> None:
        declared = self.declared.get(name)
        if declared and declared.variable.secret:
            fix = f"pass it in {ENVIRONMENT}{name.upper()} or by --vars-file"
            what = "is a secret, and other users of this machine see arguments"
            self._refuse(f"--var {name}", what, fix)
            self.refused.add(name)
        else:
            self._set(name, text, f"--var {name}", Path.cwd(), parse=True)

    def _set_from_file(self, path: Path) -> None:
        try:
            document = Document(path)
            document.refuse_bare_keys()
        except SpecError as error:
            self.mistakes += error.mistakes
            self.refused |= self.declared.keys()
            return
        self.mistakes += [*document.repeated, *document.misread()]
        if not isinstance(document.data, dict):
            self._refuse(f"{path}:1", "is not a mapping", "write one line NAME: VALUE per variable")
            return
        for name, value in document.data.items():
            self._set(str(name), value, document.place((str(name),)), folder_of(path))

    def _set(
        self, name: str, value: object, place: str, folder: Path, *, parse: bool = False, plain: bool = True
    ) -> None:
        declared = self.declared.get(name)
        if declared is None:
            self.mistakes.append(unknown(place, name, self.declared))
            return
        try:
            if declared.variable.secret:
                self._keep_secret(name, Source(_source(value, plain=plain), folder, place))
            else:
                if parse and value == "" and declared.variable.default is None:
                    raise InvalidValue("is empty", "set what it is taken from; for an empty text use --vars-file")
                self._keep(name, typed(value, declared.variable.of, parse=parse))
        except InvalidValue as error:
            variable = declared.variable  # the value of a list or map may hold passwords, such as those of users
            hidden = "a secret" if variable.secret else "its value" if variable.of in ("list", "map") else shown(value)
            self._refuse(place, f"variable {name}: {hidden} {error.what}", error.fix)
            self.refused.add(name)

    def _keep(self, name: str, value: object) -> None:
        self.plain[name] = value
        self.explicit.add(name)

    def _keep_secret(self, name: str, source: Source) -> None:
        self.secrets[name] = source

    def get(self, name: str) -> Value | None:
        """Return the value of a declared variable, a secret read from its source now; None if it has none."""
        if name in self.plain:
            return Value(self.plain[name])
        if name not in self.secrets:
            return None if name in self.refused or not self._may_lack(name) else self._without_value(name)
        if name not in self.read_secrets:
            self.read_secrets[name] = self._read_secret(name, self.secrets[name])
        return self.read_secrets[name]

    def _may_lack(self, name: str) -> bool:
        """Whether a variable needs no value."""
        return self.declared[name].variable.secret and not self.needs_secrets

    def _without_value(self, name: str) -> Value:
        return Value(Secret(missing=f"variable {name} has no value"), is_secret=True)

    def _read_secret(self, name: str, source: Source) -> Value | None:
        given = source.given
        try:
            secret = (
                given if isinstance(given, Secret) else from_spec(given, base=source.folder, needed=self.needs_secrets)
            )
        except InvalidValue as error:
            self.mistakes.append(Mistake(source.place, f"variable {name}: {error.what}", error.fix, code=error.code))
            self.refused.add(name)
            return None
        return Value(secret, is_secret=True)

    @property
    def sources(self) -> list[object]:
        """The sources of the secrets that were read, with absolute paths."""
        read = (self.secrets[name] for name, value in self.read_secrets.items() if value)
        found: list[object] = []
        for each in read:
            if isinstance(each.given, dict):
                ((source, where),) = each.given.items()
                found.append({source: file_path(where, each.folder) if source in FILES else where})
        return found

    def _refuse(self, place: str, what: str, fix: str) -> None:
        self.mistakes.append(Mistake(place, what, fix, code=Code.SPEC_VARIABLE))

    @property
    def shown(self) -> dict[str, object]:
        """VariableValues that are neither secrets nor defaults."""
        return {name: value for name, value in self.plain.items() if name in self.explicit}

    def unused(self, names: Iterable[str]) -> Iterator[Mistake]:
        """Yield a mistake for each of these variables, which no value refers to."""
        for name in sorted(names):
            what, fix = f"variable {name} is not used", f"use it as ${{{name}}}, or remove it"
            yield Mistake(self.declared[name].place(name), what, fix, code=Code.SPEC_VARIABLE)

    def missing(self, names: Iterable[str]) -> Iterator[Mistake]:
        """Yield a mistake for each of these variables that has no value."""
        for name in sorted(set(names) - self.plain.keys() - self.secrets.keys() - self.refused):
            if self._may_lack(name):
                continue
            meant = self.declared[name].variable.description
            how = [] if self.declared[name].variable.secret else [f"--var {name}=VALUE"]
            fix = f"pass {', '.join([*how, '--vars-file FILE'])} or {ENVIRONMENT}{name.upper()}, or add a default"
            what = f"variable {name} has no value{f' ({meant})' if meant else ''}"
            yield Mistake(self.declared[name].place(name), what, fix, code=Code.SPEC_VARIABLE)


def _source(value: object, *, plain: bool) -> object:
    """Return a source of a secret; with ``plain`` a text may be the secret itself.  Raises InvalidValue."""
    if isinstance(value, Secret):
        return value
    if isinstance(value, str) and value and plain:
        return Secret(value)
    if not isinstance(value, dict) or len(value) != 1:
        raise InvalidValue("is not a source of a secret", f"use one of {SOURCES}")
    return value


def unknown(place: str, name: str, known: Iterable[str]) -> Mistake:
    """Return the mistake of a variable that is not declared."""
    fix = suggest(name, known, "declare it in the section variables")
    return Mistake(place, f"variable {name} is not declared", fix, code=Code.SPEC_VARIABLE)
