"""What tests say of texts: the values in them, and whole ones that texts/ stores.

A sentence belongs to people and may change any day, so tests assert codes and values. Where a text as a whole is the
point, or has no value of its own, it is stored; ``OPENSTACK_PREP_STORE=1 pytest tests/unit`` writes those that have
changed, and the diff is read like any other.
"""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from openstack_prep.base.errors import PrepError

HERE = Path(__file__).parent
STORED = HERE / "texts"
VOLATILE = (
    (re.compile(r"(?<=\b127\.0\.0\.1:)\d{4,5}\b|(?<=\blocalhost:)\d{4,5}\b"), "PORT"),
    (re.compile(r"(?<=\bprocess )\d+ \([\w.]+\)"), "PID"),
    (re.compile(rf"{re.escape(tempfile.gettempdir())}/openstack-prep-\w+"), "TEMPORARY"),
    (re.compile(r"(?<=/dev/fd/)\d+"), "N"),
    (re.compile(r"\n *For further information visit \S+"), ""),  # pydantic names its version
    (re.compile(r"Error -\d [\w /]+ found"), "ERROR OF ZLIB"),
)
"""What differs from run to run, besides the folder of the test."""
E = TypeVar("E", bound=BaseException)
Wording = Callable[[object], None]


def contains(text: object, *values: object) -> bool:
    """Whether a text contains each value, as a whole word: 1 is not in 10."""
    return not missing(text, values)


def missing(text: object, values: tuple[object, ...]) -> list[str]:
    """Return the values that a text lacks."""
    return [value for value in map(str, values) if not re.search(_whole(value), str(text))]


def _whole(value: str) -> str:
    before = r"(?<!\w)" if re.match(r"\w", value) else ""
    after = r"(?!\w)" if re.search(r"\w$", value) else ""
    return before + re.escape(value) + after


@contextmanager
def expect_error(error: type[E], *values: object, code: str = "") -> Iterator[pytest.ExceptionInfo[E]]:
    """Expect an error of a class whose text contains each value; all its diagnostics have the code."""
    with pytest.raises(error) as caught:
        yield caught
    assert missing(caught.value, values) == [], str(caught.value)
    if code:
        assert isinstance(caught.value, PrepError)
        assert {str(each.code) for each in caught.value.diagnostics} == {code}


class StoredTexts:
    """The texts of one test, in the order in which it compares them."""

    def __init__(self, module: Path, test: str, folder: Path) -> None:
        self.path = STORED / module.relative_to(HERE).with_suffix(".yaml")
        self.test = test
        self.folder = str(folder)
        self.compared: list[object] = []

    def __call__(self, value: object) -> None:
        """Compare a text, or a structure of texts, with the stored one."""
        self.compared.append(self._plain(value))
        if not os.environ.get("OPENSTACK_PREP_STORE"):
            self._compare(self.compared, self._stored[: len(self.compared)])

    def end(self) -> None:
        """Find no text that the test has not compared, or store all."""
        if os.environ.get("OPENSTACK_PREP_STORE"):
            write(self.path, self.test, self.compared)
        else:
            self._compare(self.compared, self._stored)

    @property
    def _stored(self) -> list[object]:
        return read(self.path).get(self.test, [])

    def _compare(self, now: list[object], stored: list[object]) -> None:
        place = self.path.relative_to(STORED)
        assert now == stored, f"texts/{place} has {stored[-1:]}, not {now[-1:]}; OPENSTACK_PREP_STORE=1 stores it"

    def _plain(self, value: object) -> object:
        if isinstance(value, Mapping):
            return {str(key): self._plain(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self._plain(each) for each in value]
        if isinstance(value, bool | int | None):
            return value
        text = str(value).replace(self.folder, "FOLDER")
        for pattern, name in VOLATILE:
            text = pattern.sub(name, text)
        return text


@cache
def read(path: Path) -> dict[str, list[Any]]:
    """Return the texts of a module's tests."""
    return yaml.load(path.read_text(), yaml.CSafeLoader) if path.exists() else {}


class _Dumper(yaml.CSafeDumper):
    pass


def _lines(dumper: yaml.CSafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _lines)


def write(path: Path, test: str, texts: list[object]) -> None:
    """Store the texts of a test; several processes may store those of one module."""
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(STORED, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        read.cache_clear()
        whole = {**read(path), test: texts}
        ordered = {name: whole[name] for name in sorted(whole)}
        path.write_text(yaml.dump(ordered, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100_000))
    finally:
        read.cache_clear()
        os.close(folder)
