"""The files of a spec: itself and what it includes, with the values of variables put in.

Each file is read with its own places and its own folder, to which the paths in it are relative.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from openstack_prep import extensions
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.formats.yaml_places import Document
from openstack_prep.base.given_file import folder_of, name_of
from openstack_prep.base.invalid import shown
from openstack_prep.spec.mistakes import mistakes
from openstack_prep.spec.sections import Sections, all_fields, is_included, new_sections, read
from openstack_prep.spec.substitution import Reference, Substitution, Tokens
from openstack_prep.spec.variables import Declared, Given, Variable, VariableValues

if TYPE_CHECKING:
    from openstack_prep.spec.mistakes import Placed

HEAD = ("include", "variables")
"""Sections that say how the others are read."""
FOREIGN = 3
"""Keys of a file that is not a spec, if none of them is a section: one error says more than one about each."""
IGNORED = "x-"
"""Begins the keys of parts that are only there to be repeated by aliases of YAML."""


def _foreign(path: Path, data: Mapping[Any, Any], place: Callable[[Sequence[str | int]], str]) -> None:
    """Raise SpecError if a file is not a spec, or part of one."""
    sections = {name for name, _ in all_fields()} & data.keys()
    if sections - {*extensions.RESERVED, *extensions.AMBIGUOUS}:
        return
    from openstack_prep.resources.file_forms import SPEC, refuse_other_form  # only for a file without sections

    refuse_other_form(data, place, path, "a spec", (SPEC,))
    if sections - {"name"} or len(data) < FOREIGN:
        return
    what = f"is not a spec: it has no section of one, but {', '.join(map(shown, list(data)[:FOREIGN]))}"
    fix = "choose a spec; `openstack-prep example` lists ready-made ones"
    raise SpecError([Mistake(f"{name_of(path)}:1", what, fix, code=Code.SPEC_UNREADABLE)])


@dataclass(frozen=True)
class NoDocument:
    """Represents a document if the spec was not read from YAML."""

    origin: str

    def place(self, where: Sequence[str | int]) -> str:
        return self.origin

    def part(self, where: Sequence[str | int]) -> Hashable:
        return tuple(where)


@dataclass(frozen=True)
class Part:
    """One file of a spec: its data with the values of variables, and the place of each value in the file."""

    document: Placed
    path: Path
    base: Path
    """The folder of the file."""
    data: dict[str, Any] = field(repr=False)
    moved: dict[tuple[str | int, ...], list[int]] = field(default_factory=dict)
    failed: frozenset[tuple[str | int, ...]] = frozenset()
    substitution: Substitution | None = field(default=None, repr=False, compare=False)

    def place(self, where: Sequence[str | int]) -> str:
        return self.document.place(self._source(where))

    def part(self, where: Sequence[str | int]) -> Hashable:
        return self.document.part(self._source(where))

    def reference(self, where: Sequence[str | int]) -> Reference | None:
        """Return the reference that a value came from; None if the file itself has the value."""
        return self.substitution.reference(self._source(where)) if self.substitution else None

    def has_failed(self, where: Sequence[str | int]) -> bool:
        """Whether this value, or one in it or around it, could not be filled in, which was reported as such."""
        at = tuple(where)
        return any(at[: len(each)] == each or (at and each[: len(at)] == at) for each in self.failed)

    def _source(self, where: Sequence[str | int]) -> list[str | int]:
        """Return the path in the file of a path in the data."""
        found: list[str | int] = []
        for at, step in enumerate(where):
            origins = self.moved.get(tuple(where[:at]))
            found.append(origins[step] if origins and isinstance(step, int) and step < len(origins) else step)
        return found


@dataclass(frozen=True)
class Parts:
    """The files of a spec, itself first."""

    files: tuple[Part, ...]
    tokens: Tokens
    values: dict[str, object]
    """Values of variables that are neither secrets nor defaults."""
    sources: tuple[object, ...]
    """Sources of the secrets among the variables, with absolute paths."""
    mistakes: list[Mistake]


def read_parts(
    path: Path, sections: Collection[str] | None, given: Given, read: Callable[[Path], Document] = Document
) -> Parts:
    """Read a spec and what it includes, or some sections of them.

    Raises SpecError if the spec itself cannot be read; ``mistakes`` has all others.
    """
    files = _Files(read)
    files.add(path)
    declared = files.declared()
    tokens = Tokens()
    values = VariableValues.read(declared, given)
    values.refused |= files.unclear
    mistakes, used, parts = files.mistakes, set[str](), []
    for file in files.found:
        substitution = Substitution(file.document, values, tokens)
        wanted = {name: value for name, value in file.data.items() if sections is None or name in sections}
        data = substitution.fill(wanted if sections is None else _without_secrets(wanted))
        failed = frozenset((*substitution.failed, *((name,) for name in file.document.doubled)))
        parts.append(Part(file.document, file.path, file.base, data, substitution.moved, failed, substitution))
        mistakes += substitution.mistakes
        used |= substitution.used
    mistakes += [*values.mistakes, *values.missing(used & declared.keys())]
    if sections is None:
        mistakes += values.unused(declared.keys() - used - files.unclear)
    return Parts(tuple(parts), tokens, values.shown, tuple(values.sources), mistakes)


def _without_secrets(data: dict[str, Any]) -> dict[str, Any]:
    """Return sections without the fields that hold secrets, for those who need a part of a spec and no secrets."""
    found = dict(data)
    for each in extensions.sections():
        for path in each.secrets:
            if isinstance(items := found.get(each.name), list):
                found[each.name] = [_without(item, path.split(".")) for item in items]
    return found


def _without(item: object, path: Sequence[str]) -> object:
    """Return a value without one of its inner fields."""
    name, *inner = path
    if not isinstance(item, dict) or name not in item:
        return item
    if inner:
        return item | {name: _without(item[name], inner)}
    return {key: value for key, value in item.items() if key != name}


def merged(read: Sequence[tuple[Part, Sections]]) -> tuple[Sections, list[Mistake]]:
    """Return the first file's sections with those of the others that are no lists, and what several files have."""
    whole, first, mistakes = read[0][1], dict[str, str](), []
    for part, sections in read:
        for name in part.data:
            value, place = getattr(sections, str(name), ()), part.place((name,))  # unknown sections were reported
            if isinstance(value, tuple) or name == "name":
                continue
            if name in first:
                what = f"{name} is declared twice, also at {first[name]}"
                mistakes.append(Mistake(place, what, "remove one of them", code=Code.SPEC_DUPLICATE_NAME))
            first.setdefault(name, place)
            whole = replace(whole, **{name: value})
    return whole, mistakes


@dataclass(frozen=True)
class _File:
    document: Document
    path: Path
    base: Path
    data: dict[str, Any] = field(repr=False)
    head: Sections


@dataclass
class _Files:
    """The files of a spec in the order in which they are included, each once."""

    read: Callable[[Path], Document]
    found: list[_File] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)
    unclear: set[str] = field(default_factory=set)
    """Variables of declarations with a mistake."""
    _read: set[str] = field(default_factory=set)

    def add(self, path: Path, within: Sequence[str] = ()) -> None:
        """Read a file and what it includes; ``within`` are the files that include it.  Raises SpecError."""
        document, real, base = self.read(path), os.path.realpath(path), folder_of(path)
        self._read.add(real)
        data = document.data
        if not isinstance(data, dict):
            what = "is empty" if data is None else "is not a mapping of sections"
            fix = "start the file with a section" if within else "start the file with `name: my-cluster`"
            raise SpecError([Mistake(f"{name_of(path)}:1", what, fix, code=Code.SPEC_UNREADABLE)])
        _foreign(path, data, document.place)
        if within and "name" in data:
            what = "an included file has no name of its own"
            self.mistakes.append(Mistake(document.place(("name",)), what, "remove it", code=Code.SPEC_UNKNOWN_KEY))
        document.refuse_bare_keys()
        self.mistakes += [*document.repeated, *document.misread(ignored=IGNORED)]
        head = self._head(document, data)
        left_out = (*HEAD, *(("name",) if within else ()))
        plain = {key: value for key, value in data.items() if key not in left_out and not str(key).startswith(IGNORED)}
        self.found.append(_File(document, Path(real), base, plain, head))
        near = path.parent if os.path.abspath(path.parent) == str(base) else base
        for index, name in enumerate(head.include):
            place = f"{document.place(('include', index))}: include[{index}]"
            self._include(near / name, place, (*within, real))

    def _head(self, document: Document, data: dict[str, Any]) -> Sections:
        """Return the sections that say how the others are read."""
        given = {name: data[name] for name in HEAD if name in data}
        if not given:
            return new_sections("")
        try:
            return read(json.dumps(given, default=str), given, {"base": Path()}, name="")
        except ValidationError as error:
            self.mistakes += mistakes(document, error.errors(include_url=False))
        variables, include = data.get("variables"), data.get("include")
        names = [name for name in variables if isinstance(name, str)] if isinstance(variables, dict) else []
        self.unclear |= set(names)
        listed = include if isinstance(include, list) else []
        paths = [each for each in listed if isinstance(each, str) and is_included(each)]
        return new_sections("", include=tuple(paths), variables={name: Variable() for name in names})

    def _include(self, path: Path, place: str, within: Sequence[str]) -> None:
        path = Path(os.path.normpath(path))
        real = os.path.realpath(path)
        if real in within:
            what = f"{path} includes itself, through {' and '.join(map(os.path.basename, within))}"
            self.mistakes.append(Mistake(place, what, "remove one of them", code=Code.SPEC_CYCLE))
        elif real not in self._read:
            try:
                self.add(path, within)
            except SpecError as error:
                self.mistakes += error.mistakes if path.is_file() else [_missing(place, path)]

    def declared(self) -> dict[str, Declared]:
        """Return all declared variables."""
        found: dict[str, Declared] = {}
        for file in self.found:
            for name, variable in file.head.variables.items():
                declared = Declared(variable, file.document, file.base)
                if name in found:
                    what = f"variable {name} is declared twice, also at {found[name].place(name)}"
                    fix = "remove one of them"
                    self.mistakes.append(Mistake(declared.place(name), what, fix, code=Code.SPEC_DUPLICATE_NAME))
                found.setdefault(name, declared)
        return found


def _missing(place: str, path: Path) -> Mistake:
    what = "is not a file" if path.exists() else "does not exist"
    return Mistake(place, f"{path} {what}", "correct the path", code=Code.SPEC_UNREADABLE)
