"""The value of each variable of a spec, from whoever gives one.

The value is the first of: ``--var`` or a value from Python, the last file of ``--vars-file`` that has it, the saved
plan, the environment variable OPENSTACK_PREP_VAR_NAME, the default. A secret is read from its source when a value first
refers to it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.fields import file_path
from openstack_prep.base.formats.yaml_places import Document
from openstack_prep.base.given_file import folder_of
from openstack_prep.base.invalid import InvalidValue, shown
from openstack_prep.base.secret import SOURCES, Secret, from_spec
from openstack_prep.base.suggestion import suggest
from openstack_prep.spec.variables import ENVIRONMENT, FILES, Declared, Given, Value, typed


@dataclass(frozen=True)
class Source:
    """Where a secret comes from: it is only read when a value refers to it."""

    given: object
    """A Secret, or the source of one in terms of a spec."""
    folder: Path
    """Paths in it are relative to this folder."""
    place: str


@dataclass
class Values:
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
    def read(cls, declared: Mapping[str, Declared], given: Given) -> Values:
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
            hidden = "a secret" if declared.variable.secret else shown(value)
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
        """Values that are neither secrets nor defaults."""
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
