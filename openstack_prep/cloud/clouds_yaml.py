"""Entries of a clouds.yaml: written and removed, with all other entries left untouched.

Source: openstacksdk's "Configuring OpenStack SDK Applications".
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from openstack_prep.base.errors import Mistake, PrepError, SpecError
from openstack_prep.base.formats.foreign_text import parse_yaml
from openstack_prep.base.formats.yaml_places import shared_document
from openstack_prep.base.given_file import read_bytes
from openstack_prep.base.private_file import write_private
from openstack_prep.base.raw import Raw, Values
from openstack_prep.base.secret import without_values


def read(path: Path, section: str = "clouds") -> Values:
    """Return the entries of a file by name, not to be changed; raises SpecError that names the line of an error."""
    if not path.exists():
        return {}
    document = shared_document(path)
    data = {} if document.data is None else document.data
    if not isinstance(data, dict):
        raise SpecError([Mistake(f"{path}:1", "is not a mapping", "correct it, or choose another file")])
    clouds = data.get(section) or {}
    if not isinstance(clouds, dict):
        place = document.place((section,))
        raise SpecError(
            [Mistake(place, f"{section} is not a mapping of entries", "correct it, or choose another file")]
        )
    return clouds


def put(path: Path, name: str, entry: Raw) -> None:
    """Write an entry to a file, which is created if necessary."""
    with _alone(path):
        read(path)
        with _as_mistake(path):
            write_private(path, merge(_text(path) if path.exists() else "", name, entry))


def drop(path: Path, name: str) -> None:
    """Remove an entry from a file, and the file if it is empty then."""
    if not path.exists():
        return
    with _alone(path):
        read(path)
        with _as_mistake(path):
            text = remove(_text(path), name)
        if text is None:
            path.unlink()
        else:
            write_private(path, text)


def _text(path: Path) -> str:
    """Return the text of a file with its own line ends."""
    return read_bytes(path).decode()


@contextlib.contextmanager
def _as_mistake(path: Path) -> Iterator[None]:
    """Raise SpecError for a file that openstacksdk could not read, such as one with the date 2026-13-01."""
    try:
        yield
    except yaml.YAMLError as error:
        what = f"is not YAML: {without_values(' '.join(str(error).split()))}"
        raise SpecError([Mistake(str(path), what, "correct it, or choose another file")]) from None


@contextlib.contextmanager
def turn(path: Path) -> Iterator[None]:
    """Let one run at a time do what takes several writes of a file; single writes of others continue meanwhile.

    The lock is on a separate file, which is empty and kept: if it were deleted, two runs could lock two files with the
    same name.
    """
    lock = Path(os.path.realpath(path)).with_name(f".{path.name}.lock")
    with _locked(lock.parent, lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, named=lock):
        yield


def _alone(path: Path) -> contextlib.AbstractContextManager[None]:
    """Prevent other threads and processes of openstack-prep from changing files in the same folder."""
    folder = Path(os.path.realpath(path)).parent
    return _locked(folder, folder, os.O_RDONLY, named=path)


@contextlib.contextmanager
def _locked(folder: Path, lock: Path, flags: int, *, named: Path) -> Iterator[None]:
    """Lock a file or a folder; errors contain the path ``named``."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(lock, flags, 0o600)
    except OSError as error:
        raise PrepError(f"{named} cannot be written: {error}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


# --- text in, text out --------------------------------------------------------------------


def merge(text: str, name: str, entry: Raw) -> str:
    """Return a clouds.yaml with an entry added, or replacing the old entry with its name."""
    data = parse_yaml(text) or {}
    data["clouds"] = {**(data.get("clouds") or {}), name: dict(entry)}
    return _rewritten(text, name, entry, data)


def remove(text: str, name: str) -> str | None:
    """Return a clouds.yaml without an entry; None if it is empty then."""
    data = parse_yaml(text) or {}
    data["clouds"] = {each: entry for each, entry in (data.get("clouds") or {}).items() if each != name}
    if not data["clouds"] and len(data) == 1:
        return None
    return _rewritten(text, name, None, data)


def _rewritten(text: str, name: str, entry: Raw | None, data: Raw) -> str:
    """Return text that reads as ``data``: the old text spliced if that is possible, or a new text."""
    new = _spliced(text, name, entry)
    try:
        if parse_yaml(new) == data:
            return new
    except yaml.YAMLError:  # such as an anchor that was part of the old entry
        pass
    return _dump(data)


def _spliced(text: str, name: str, entry: Raw | None) -> str:
    """Return the text with the lines of one entry replaced; comments and order of others are kept.

    The caller has parsed the text, and parses the new one: nothing depends on libyaml but the time.
    """
    root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    pairs = root.value if isinstance(root, yaml.MappingNode) else []
    clouds = next((value for key, value in pairs if key.value == "clouds"), None)
    end = "\r\n" if "\r\n" in text else "\n"
    if text and not text.endswith("\n"):
        text += end
    if not isinstance(clouds, yaml.MappingNode) or not clouds.value:
        return text + _dump({"clouds": {name: dict(entry or {})}}).replace("\n", end)
    lines = text.splitlines(keepends=True)
    first = last = _last_line(clouds) + 1
    for key, value in clouds.value:
        if key.value == name:
            first, last = key.start_mark.line, _last_line(value) + 1
    indent = " " * clouds.value[0][0].start_mark.column
    new = [] if entry is None else [textwrap.indent(_dump({name: dict(entry)}), indent).replace("\n", end)]
    return "".join([*lines[:first], *new, *lines[last:]])


def _last_line(node: Any) -> int:
    """Return the number of a node's last line, without the comments after it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _last_line(last[1] if isinstance(last, tuple) else last)
    end = node.end_mark
    return int(end.line if end.column else max(end.line - 1, node.start_mark.line))


def _dump(data: Raw) -> str:
    return str(yaml.safe_dump(dict(data), sort_keys=False, allow_unicode=True))
