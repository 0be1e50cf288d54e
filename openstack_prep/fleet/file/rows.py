"""Rows of a for_each in a fleet file that are not written there: of a CSV file, a glob, or a command.

All of them may come from somebody else: what is put into a path or a name is checked where it is used.
"""

from __future__ import annotations

import csv
import glob
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake
from openstack_prep.base.fields import file_path
from openstack_prep.base.formats.foreign_text import parse_json
from openstack_prep.base.given_file import MIB, read_text, unreadable
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.programs import run
from openstack_prep.base.raw import Raw
from openstack_prep.spec.variables import is_plain

MOST_OUTPUT = 16 * MIB
PATIENCE = 60
"""Seconds that a command may take, unless it has a time-out of its own."""
LONGEST = 3600
KEYS: Mapping[str, Sequence[str]] = {"csv": (), "glob": (), "command": ("timeout",)}
HOW = "write [A, B], {csv: PATH}, {glob: PATTERN} or {command: [PROGRAM, ARGUMENT, ...]}"


class Rows:
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
                cells, line = [each.strip() for each in cells], f"{shown}:{reader.line_num}"
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
                what = f"column {index + 1} has no name" if not name else f"column {name} is there twice"
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
        if not isinstance(words, list) or not words or not all(isinstance(each, str) and each for each in words):
            raise InvalidValue("command is not a list of words", "write {command: [./inventory, --json]}")
        if isinstance(timeout, bool) or not isinstance(timeout, int) or not 1 <= timeout <= LONGEST:
            raise InvalidValue("timeout is not a number of seconds", f"use 1 to {LONGEST}")
        shown = f"the command {words[0]}"
        try:
            ran = run(words, folder=self.base, most=MOST_OUTPUT, seconds=timeout)
        except OSError as error:
            raise InvalidValue(f"{shown} cannot be run: {error.strerror}", "install it, or correct its name") from None
        if ran.late:
            raise InvalidValue(f"{shown} has not ended after {timeout} seconds", "set timeout to more seconds")
        if len(ran.printed) > MOST_OUTPUT:
            raise InvalidValue(f"{shown} printed more than {MOST_OUTPUT // MIB} MiB", "print one list of JSON")
        if ran.code:
            raise InvalidValue(f"{shown} ended with exit code {ran.code}", f"run it yourself in {self.base}")
        try:
            rows = parse_json(ran.printed)
        except ValueError:  # its text would quote the output
            rows = None
        if not isinstance(rows, list) or not is_plain(rows):
            raise InvalidValue(f"{shown} did not print a list of JSON", 'print [{"name": "a"}, {"name": "b"}]')
        if not rows:
            raise InvalidValue(f"{shown} printed an empty list", "print one item per target")
        return rows, [f"item {index} of {shown}" for index in range(len(rows))]

    def _refuse(self, place: str, what: str, fix: str) -> None:
        self.mistakes.append(Mistake(place, what, fix, code=Code.SPEC_INVALID_VALUE))
