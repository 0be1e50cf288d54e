"""A fleet file to targets; all mistakes at once, each with its line and the row that it comes from.

All of them may come from somebody else: what is put into a path or a name is checked where it is used.
"""

from __future__ import annotations

import csv
import glob
import io
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.fields import file_path
from openstack_prep.base.formats.foreign_text import parse_json
from openstack_prep.base.formats.yaml_places import Document
from openstack_prep.base.given_file import MIB, folder_of, read_text, unreadable
from openstack_prep.base.invalid import InvalidValue, shown
from openstack_prep.base.programs import hide_arguments, output_of
from openstack_prep.base.raw import Raw, dotted
from openstack_prep.base.secret import SOURCE_NAMES
from openstack_prep.base.suggestion import suggest
from openstack_prep.fleet.file.fields import Fleet, FleetFields, FleetTarget, TargetFields, adapter
from openstack_prep.fleet.file.schema import known_keys
from openstack_prep.resources.file_forms import refuse_other_form
from openstack_prep.spec.mistakes import mistakes
from openstack_prep.spec.parts import IGNORED, Part
from openstack_prep.spec.substitution import REFERENCE, Substitution, Tokens
from openstack_prep.spec.variables import FILES, VariableValues, is_plain

# --- row --------------------------------------------------------------------------------------


MOST_OUTPUT = 16 * MIB
PATIENCE = 60
"""Seconds that a command may take, unless it has a time-out of its own."""
LONGEST = 3600
KEYS: Mapping[str, Sequence[str]] = {"csv": (), "glob": (), "command": ("timeout",)}
HOW = "write [A, B], {csv: PATH}, {glob: PATTERN} or {command: [PROGRAM, ARGUMENT, ...]}"


class RowReader:
    """Reads the rows of all for_each of a fleet file, whose folder is ``base``.

    ``places`` has, by the path of an item in the fleet file, the place of each row; ``mistakes`` are those in a file.
    """

    def __init__(self, path: Path, base: Path) -> None:
        self.path, self.base = path, base
        self.places: dict[tuple[str | int, ...], list[str]] = {}
        self.matched: set[str] = set()
        """Files that a glob has found."""
        self.mistakes: list[Mistake] = []

    def read(self, given: Raw, where: tuple[str | int, ...]) -> list[Any]:
        """Return the rows that a mapping describes; raises InvalidValue."""
        found = [name for name in KEYS if name in given]
        if len(found) != 1 or given.keys() - {found[0], *KEYS[found[0]]}:
            raise InvalidValue("is not a source of rows", HOW)
        value = given[found[0]]
        if found[0] == "command":
            rows, places = self._of_command(value, given.get("timeout", PATIENCE))
        elif not isinstance(value, str) or not value:
            raise InvalidValue(f"{found[0]} is not a path", HOW)
        else:
            rows, places = self._of_csv(value) if found[0] == "csv" else self._of_glob(value)
        self.places[where] = places
        return rows

    def _of_csv(self, name: str) -> tuple[list[Any], list[str]]:
        path, shown = Path(file_path(name, self.base)), self.path.parent / name
        try:
            text = read_text(path).removeprefix("\ufeff")  # a mark that spreadsheets write
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidValue(f"{shown} {unreadable(error)}", "choose a CSV file in UTF-8") from None
        reader = csv.reader(io.StringIO(text), skipinitialspace=True, strict=True)
        rows: list[Any] = []
        places: list[str] = []
        columns: list[str] = []
        try:
            for cells in reader:
                cells, line = [cell.strip() for cell in cells], f"{shown}:{reader.line_num}"
                if not any(cells):
                    continue
                if not columns:
                    columns = self._columns(cells, line)
                elif len(cells) != len(columns):
                    what = f"has {len(cells)} cells, but the first line names {len(columns)} columns"
                    self._refuse(line, what, "write one cell per column, with quotes around commas")
                else:
                    rows.append(dict(zip(columns, cells, strict=True)))
                    places.append(line)
        except csv.Error as error:
            raise InvalidValue(f"{shown}:{reader.line_num} is not CSV: {error}", "correct the quotes") from None
        if not rows and not self.mistakes:
            raise InvalidValue(f"{shown} has no rows", "write the names of the columns, and one line per target")
        return rows, places

    def _columns(self, cells: Sequence[str], line: str) -> list[str]:
        for index, name in enumerate(cells):
            if not name or name in cells[:index]:
                twice = f"column {index + 1} has the name of column {cells.index(name) + 1}"  # it may be a value
                what = twice if name else f"column {index + 1} has no name"
                self._refuse(line, what, "name the columns in the first line, separated by commas")
        return [*cells]

    def _of_glob(self, pattern: str) -> tuple[list[Any], list[str]]:
        found = sorted(glob.glob(os.path.expanduser(pattern), root_dir=self.base, recursive=True))
        own = os.path.realpath(self.path)
        paths = [each for each in found if (self.base / each).is_file() and os.path.realpath(self.base / each) != own]
        if not paths:
            raise InvalidValue(f"{pattern} matches no file", f"write a pattern relative to {self.base}")
        self.matched |= {os.path.normpath(self.base / each) for each in paths}
        return [{"path": each, "name": Path(each).stem} for each in paths], paths

    def _of_command(self, words: object, timeout: object) -> tuple[list[Any], list[str]]:
        if not isinstance(words, list) or not words or not all(isinstance(word, str) and word for word in words):
            raise InvalidValue("command is not a list of words", "write {command: [./inventory, --json]}")
        if isinstance(timeout, bool) or not isinstance(timeout, int) or not 1 <= timeout <= LONGEST:
            raise InvalidValue("timeout is not a number of seconds", f"use 1 to {LONGEST}")
        shown = f"the command {hide_arguments(words[0], self.base)}"
        late = "set timeout to more seconds"
        printed = output_of(words, shown, folder=self.base, most=MOST_OUTPUT, seconds=timeout, if_late=late)
        try:
            rows = parse_json(printed)
        except ValueError:  # its text would quote the output
            rows = None
        if not isinstance(rows, list) or not is_plain(rows):
            raise InvalidValue(f"{shown} did not print a list of JSON", 'print [{"name": "a"}, {"name": "b"}]')
        if not rows:
            raise InvalidValue(f"{shown} printed an empty list", "print one item per target")
        return rows, [f"item {index} of {shown}" for index in range(len(rows))]

    def _refuse(self, place: str, what: str, fix: str) -> None:
        self.mistakes.append(Mistake(place, what, fix, code=Code.SPEC_INVALID_VALUE))


# --- loading ----------------------------------------------------------------------------------


def load_fleet(path: str | Path) -> Fleet:
    """Read the fleet file at ``path``; commands that it names for its targets are run.

    Raises SpecError that lists all errors with file, line and field.
    """
    return _Reading(Path(path)).fleet()


@dataclass
class _Reading:
    path: Path
    mistakes: list[Mistake] = field(default_factory=list)

    def fleet(self) -> Fleet:
        document, base = Document(self.path), folder_of(self.path)
        if not isinstance(document.data, dict):
            what = "is empty" if document.data is None else "is not a mapping of sections"
            fix = "start the file with `name: my-fleet`"
            raise SpecError([Mistake(f"{document.name}:1", what, fix, code=Code.SPEC_UNREADABLE)])
        document.refuse_bare_keys()
        refuse_other_form(document.data, document.place, self.path, "a fleet", ("a fleet",))
        self.mistakes += [*document.repeated, *document.misread(ignored=IGNORED)]
        rows = RowReader(self.path, base)
        substitution = Substitution(document, VariableValues({}), Tokens(), rows=rows.read)
        given = {key: value for key, value in document.data.items() if not str(key).startswith(IGNORED)}
        data = substitution.fill(given)
        self.mistakes += [*substitution.mistakes, *rows.mistakes]
        part = Part(document, self.path, base, data, substitution.moved, frozenset(substitution.failed), substitution)
        placed = _Placed(part, rows)
        read = self._validated(placed, given)
        if read is None:
            raise SpecError([*dict.fromkeys(self.mistakes)])
        targets = tuple(self._target(each, index, placed) for index, each in enumerate(read.targets))
        self._refuse_twins(targets)
        self._refuse_unknown(read, targets, placed)
        if self.mistakes:
            raise SpecError([*dict.fromkeys(self.mistakes)])
        return Fleet(
            name=read.name,
            path=self.path,
            targets=targets,
            limits=read.limits,
            waves=read.waves,
            stop_after=read.stop_after,
        )

    def _validated(self, placed: _Placed, given: Raw) -> FleetFields | None:
        part = placed.part_of_file
        try:
            read: FleetFields = adapter().validate_json(json.dumps(part.data, default=str), context={"base": part.base})
        except ValidationError as error:
            errors = [each for each in error.errors(include_url=False) if not part.has_failed(each["loc"])]
            if self.mistakes and given.get("targets"):  # their sources of rows are wrong, so there are too few
                errors = [each for each in errors if each["loc"] != ("targets",)]
            self.mistakes += mistakes(placed, errors, reference=part.reference, known=known_keys)
            return None
        return read

    def _target(self, fields: TargetFields, index: int, placed: _Placed) -> FleetTarget:
        where = ("targets", index)
        variables = {name: value for name, value in fields.variables.items() if value not in ("", None)}
        for name, value in variables.items():
            self._refuse_source_of_row(value, (*where, "variables", name), placed)
        return FleetTarget(
            name=fields.name,
            spec=self._path(fields.spec, (*where, "spec"), placed),
            place=placed.place(where),
            variables=variables,
            from_row=frozenset(name for name, value in variables.items() if placed.is_filled(value, where, name)),
            vars_files=tuple(
                self._path(each, (*where, "vars_files", number), placed)
                for number, each in enumerate(fields.vars_files)
            ),
            cloud=fields.cloud,
            region=fields.region,
            groups=tuple(dict.fromkeys(fields.groups)),
        )

    def _refuse_source_of_row(self, value: object, where: Sequence[str | int], placed: _Placed) -> None:
        """Refuse a source of a secret that a row chooses: it could be any file or program of whoever runs the fleet."""
        if not isinstance(value, dict) or len(value) != 1:
            return
        ((source, path),) = value.items()
        if source not in SOURCE_NAMES:
            return
        if placed.part_of_file.reference(where) is not None:
            self._refuse(placed, where, "is a source of a secret from a row", "write the source in the fleet file")
        elif source in FILES and isinstance(path, str):
            self._within(path, (*where, source), placed)
        elif isinstance(path, str) and not placed.keeps_parts(path, (*where, source)):
            what = f"{shown(path)} has other parts than the fleet file names"
            self._refuse(placed, (*where, source), what, "correct the row", code=Code.SPEC_INVALID_VALUE)
        elif source == "command" and placed.part_of_file.reference((*where, source, 0)) is not None:
            self._refuse(placed, (*where, source), "is a program from a row", "write the program in the fleet file")

    def _within(self, given: str, where: Sequence[str | int], placed: _Placed) -> str | None:
        """Return the path of a file, which a value of a row must not lead out of the folder that is written."""
        try:
            path = str(file_path(given, placed.part_of_file.base))
            if not placed.stays_inside(path, given, where):
                raise InvalidValue("leads out of the folder that the fleet file names", "correct the row")
        except (InvalidValue, ValueError) as error:  # ValueError: a path with a null character
            invalid = error if isinstance(error, InvalidValue) else InvalidValue("is not a path", "correct it")
            self._refuse(placed, where, f"{shown(given)} {invalid.what}", invalid.fix, code=invalid.code)
            return None
        return path

    def _path(self, given: str, where: Sequence[str | int], placed: _Placed) -> Path:
        """Return an existing file."""
        path = self._within(given, where, placed)
        if path is not None and not os.path.exists(path):
            self._refuse(
                placed, where, f"{shown(given)} does not exist", "correct the path", code=Code.SPEC_INVALID_VALUE
            )
        return Path(path or "")

    def _refuse_twins(self, targets: Iterable[FleetTarget]) -> None:
        first: dict[str, str] = {}
        for target in targets:
            if target.name in first:
                what = f"target {target.name} is declared twice, also at {first[target.name]}"
                self.mistakes.append(
                    Mistake(target.place, what, "choose distinct names", code=Code.SPEC_DUPLICATE_NAME)
                )
            first.setdefault(target.name, target.place)

    def _refuse_unknown(self, read: FleetFields, targets: Sequence[FleetTarget], placed: _Placed) -> None:
        """Refuse waves of targets that do not exist or have nothing, and limits of clouds that no target is in."""
        groups = {group for target in targets for group in target.groups}
        names = {target.name for target in targets}
        for index, wave in enumerate(read.waves):
            where = ("waves", index)
            if sum(map(bool, (wave.groups, wave.targets, wave.percent))) != 1:
                self._refuse(placed, where, "does not have exactly one of groups, targets and percent", "write one")
            for word, given, known in (("group", wave.groups, groups), ("target", wave.targets, names)):
                for name in given:
                    if name not in known:
                        self._refuse(placed, (*where, f"{word}s"), f"no {word} is named {name}", meant(name, known))
        clouds = {target.cloud for target in targets}
        if None not in clouds:  # else a spec names others
            known = {str(cloud) for cloud in clouds}
            for name in read.limits:
                if name not in known:
                    self._refuse(placed, ("limits", name), f"no target is in the cloud {name}", meant(name, known))

    def _refuse(
        self, placed: _Placed, where: Sequence[str | int], what: str, fix: str, *, code: str = Code.SPEC_CONTRADICTION
    ) -> None:
        place = f"{placed.place(where)}: {dotted(where)}"
        self.mistakes.append(Mistake(place, what, fix, code=code))


def meant(name: str, known: Iterable[str]) -> str:
    """Return what to do about an unknown name."""
    names = sorted(known)
    listed = ", ".join(names[:10]) + (" ..." if len(names) > 10 else "")
    return suggest(name, names, f"choose one of {listed}" if names else "remove it")


@dataclass(frozen=True)
class _Placed:
    """Knows the place of each part of a fleet: of a target that a row has made, the row's, too."""

    part_of_file: Part
    rows: RowReader

    def place(self, where: Sequence[str | int]) -> str:
        row = self._row(where)
        return self.part_of_file.place(where) + (f" ({row})" if row else "")

    def part(self, where: Sequence[str | int]) -> Any:
        return (self._row(where), self.part_of_file.part(where))

    def _row(self, where: Sequence[str | int]) -> str:
        if len(where) < 2 or where[0] != "targets" or not isinstance(where[1], int):
            return ""
        index = where[1]
        origins = self.part_of_file.moved.get(("targets",)) or [*range(index + 1)]
        item = ("targets", origins[index])
        number = origins[:index].count(origins[index])
        places = self.rows.places.get(item, [])
        return places[number] if number < len(places) else ""

    def stays_inside(self, path: str, given: str, where: Sequence[str | int]) -> bool:
        """Whether a path is in the folder that the fleet file has before the first value of a row."""
        reference = self.part_of_file.reference(where)
        if reference is None or path in self.rows.matched:
            return True
        folder = os.path.normpath(self.part_of_file.base / os.path.expanduser(self._literal(where)))
        return not given.startswith("~") and os.path.commonpath([folder, path]) == folder and path != folder

    def keeps_parts(self, text: str, where: Sequence[str | int]) -> bool:
        """Whether values of a row are whole parts of a name such as PATH/NAME#KEY, and add no further ones."""
        written, pattern, end = self._written(where), "", 0
        for match in REFERENCE.finditer(written):
            pattern, end = f"{pattern}{re.escape(written[end : match.start()])}(?!\\.+[/#]|\\.+$)[^/#]+", match.end()
        return not end or re.fullmatch(pattern + re.escape(written[end:]), text) is not None

    def is_filled(self, value: object, where: Sequence[str | int], name: str) -> bool:
        """Whether a variable of a target differs from what the file itself has there."""
        return bool(self._in_file((*where, "variables", name)) != value)

    def _literal(self, where: Sequence[str | int]) -> str:
        """Return the folder that is written before the first reference in the text at a place of the file."""
        return os.path.dirname(self._written(where).partition("${")[0])

    def _written(self, where: Sequence[str | int]) -> str:
        """Return the text at a place of the file."""
        return str(self._in_file(where))

    def _in_file(self, where: Sequence[str | int]) -> object:
        """Return what the file has at a place, or the whole reference around it."""
        data: Any = self.part_of_file.document.data  # type: ignore[attr-defined]
        for step in self.part_of_file._source(where):
            if isinstance(data, str):  # a whole reference
                break
            data = data[step]
        return data
