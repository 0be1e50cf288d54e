"""Entries of a clouds.yaml: written and removed, with all other entries left untouched.

Source: openstacksdk's "Configuring OpenStack SDK Applications".
"""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.file_lock import turn as turn
from openstack_prep.base.file_lock import writer_after
from openstack_prep.base.formats.foreign_text import parse_yaml
from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.base.given_file import read_bytes
from openstack_prep.base.private_file import remove_file, write_private, write_shared
from openstack_prep.base.raw import Raw
from openstack_prep.cloud.entries import OWNER as OWNER
from openstack_prep.cloud.entries import owner_of as owner_of
from openstack_prep.cloud.entries import read as read


def put(path: Path, name: str, entry: Raw | Callable[[Any], Raw]) -> None:
    """Write an entry to a file, which is created if necessary.

    A function gets the present entry, None if there is none, and returns the new one, or raises: what it judges still
    holds when the file is written. It may ask OpenStack, and is called again if the file has changed meanwhile.
    """

    def judge() -> Raw:
        found = read(path).get(name)
        with _as_mistake(path):
            return entry(found) if callable(entry) else entry

    with writer_after(judge, path) as (target, new), _as_mistake(path):
        write_private(target, merge(_text(target) if target.exists() else "", name, new))


def drop(path: Path, name: str, wanted: Callable[[Any], bool] = lambda found: True) -> None:
    """Remove an entry from a file, if the entry is ``wanted``, and the file if nothing else was in it."""
    if not path.exists():
        return

    def judge() -> bool:
        entries = read(path)
        return name in entries and wanted(entries[name])

    with writer_after(judge, path) as (target, is_wanted):
        if not is_wanted:
            return
        with _as_mistake(path):
            text = remove(_text(target), name)
        if text.strip():
            write_shared(target, text)  # without the entry, its mode is the owner's choice
        else:
            remove_file(target)


def _text(path: Path) -> str:
    """Return the text of a file with its own line ends."""
    return read_bytes(path).decode()


@contextlib.contextmanager
def _as_mistake(path: Path) -> Iterator[None]:
    """Raise SpecError for a file that openstacksdk could not read, such as one with the date 2026-13-01."""
    try:
        yield
    except yaml.YAMLError as error:
        what = f"is not YAML: {' '.join(str(error).split())}"
        raise SpecError([Mistake(str(path), what, "correct it, or choose another file")]) from None


# --- text in, text out --------------------------------------------------------------------


def merge(text: str, name: str, entry: Raw) -> str:
    """Return a clouds.yaml with an entry added, or replacing the old entry with its name."""
    data = parse_yaml(text) or {}
    data["clouds"] = {**(data.get("clouds") or {}), name: dict(entry)}
    return _checked(text, _spliced(text, name, entry), data)


def remove(text: str, name: str) -> str:
    """Return a clouds.yaml without an entry; with the last one, the section goes as well, but no comment."""
    data = parse_yaml(text) or {}
    left = {each: entry for each, entry in (data.get("clouds") or {}).items() if each != name}
    if left:
        return _checked(text, _spliced(text, name, None), {**data, "clouds": left})
    return _checked(text, _without_section(text), {key: value for key, value in data.items() if key != "clouds"})


def _checked(old: str, new: str, data: Raw) -> str:
    """Return the new text if it reads as ``data``, else one that does, with the comments of the old text at its top."""
    try:
        if (parse_yaml(new) or {}) == data:
            return new
    except yaml.YAMLError:  # such as an anchor that was part of the old entry
        pass
    comments = [f"{line}\n" for line in old.splitlines() if _is_comment(line)]
    return "".join([*comments, *_comments_behind(old), dump(data) if data else ""])


def _comments_behind(text: str) -> Iterator[str]:
    """Yield the comments that follow something else on their line, each as a line: what is between two tokens."""
    last = 0
    with contextlib.suppress(yaml.YAMLError):  # of a text that only libyaml reads
        for token in yaml.scan(text, Loader=yaml.SafeLoader):
            between = text[last : token.start_mark.index].partition("\n")[0]
            if last and text[last - 1] != "\n" and _is_comment(between):
                yield f"{between.strip()}\n"
            last = max(last, token.end_mark.index)


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _section(text: str) -> tuple[Any, Any]:
    """Return the nodes of the key ``clouds`` and of its value; None for both if there is none.

    The caller has parsed the text, and parses the new one: nothing depends on libyaml but the time.
    """
    root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    pairs = root.value if isinstance(root, yaml.MappingNode) else []
    return next(((key, value) for key, value in pairs if key.value == "clouds"), (None, None))


def _spliced(text: str, name: str, entry: Raw | None) -> str:
    """Return the text with the lines of one entry replaced; comments and order of others are kept."""
    key, clouds = _section(text)
    end = "\r\n" if "\r\n" in text else "\n"
    if text and not text.endswith("\n"):
        text += end
    if not isinstance(clouds, yaml.MappingNode) or not clouds.value:
        section = dump({"clouds": {name: dict(entry or {})}}).replace("\n", end)
        lines = text.splitlines(keepends=True)
        if key is None:
            return text + section
        first = key.start_mark.line  # of an empty section
        return "".join([*lines[:first], section, *lines[max(first, _last_line(clouds)) + 1 :]])
    lines = text.splitlines(keepends=True)
    first = last = _last_line(clouds) + 1
    for key, value in clouds.value:
        if key.value == name:
            first, last = key.start_mark.line, _last_line(value) + 1
    indent = " " * clouds.value[0][0].start_mark.column
    new = [] if entry is None else [textwrap.indent(dump({name: dict(entry)}), indent).replace("\n", end)]
    return "".join([*lines[:first], *new, *lines[last:]])


def _without_section(text: str) -> str:
    """Return the text without the section ``clouds``, whose last entry goes; comments before this entry are kept."""
    key, clouds = _section(text)
    if key is None:
        return text
    lines = text.splitlines(keepends=True)
    first = key.start_mark.line
    entry = clouds.value[0][0].start_mark.line if clouds.value else first
    comments = [line for line in lines[first:entry] if _is_comment(line)]
    return "".join([*lines[:first], *comments, *lines[_last_line(clouds) + 1 :]])


def _last_line(node: Any) -> int:
    """Return the number of a node's last line, without the comments after it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _last_line(last[1] if isinstance(last, tuple) else last)
    end = node.end_mark
    return int(end.line if end.column else max(end.line - 1, node.start_mark.line))
