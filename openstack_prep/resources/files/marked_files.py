"""Managed files in a folder that others use as well: the ownership tag is the first line of each.

Sources: RFC 1035, section 5.1 (comments of zones); execve(2) (a script's first line names its interpreter).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from openstack_prep.base.errors import FolderRefused
from openstack_prep.base.file_lock import LOCK, one_writer_in
from openstack_prep.base.formats.foreign_text import parse_yaml_documents
from openstack_prep.base.given_file import read_text
from openstack_prep.base.private_file import PRIVATE, mode, remove_file, remove_temporary, target_of, write_private
from openstack_prep.base.secret import HIDDEN
from openstack_prep.core.model import OwnershipTag
from openstack_prep.core.text import show

SECRET = re.compile(r"password|secret|token|credential|private|ssh_key$|ssh_cert$", re.IGNORECASE)
"""Keys whose values are secret, however they came into a file."""
MOST = 8
"""Number of differences that are reported per file."""
YAML = (".yml", ".yaml")
LABELS = ("hostname_override", "nodeName", "name", "key", "url")
"""Keys that identify the members of lists."""
ZONES = ".zone"
"""End of the names of DNS zones, whose comments begin with a semicolon."""
SCRIPT = "#!"
HOME = re.compile(r"(@[^@\]]*){0,2}\]$")
"""The home project and the cloud at the end of an ownership tag."""
OF_COMMANDS = {"convert": "managed by another conversion", "fleet": "managed by another fleet"}
"""Whose the files are that commands write, not specs, by the first name in their ownership tag."""
PLACE = re.compile(r"(?<=^[#;] )(\S+) (?:([0-9a-f]{12}) )?(?=\[)")
"""The name of a file, and a digest of its folder if that is recorded, before the ownership tag."""


@dataclass(frozen=True)
class MarkedFiles:
    """The files of one owner in a folder; ``head``, a comment, is their first line, or the second one of a script.

    The line also records the file's name, so that a copy beside it is not taken for a managed file; files of earlier
    versions lack it.
    """

    folder: Path
    head: str
    is_ours: Callable[[str], bool] = lambda tag: False
    """Whether files are managed although their tag names another home project, such as one that was created again."""
    placed: bool = False
    """Whether the first line also records the folder, so that copies elsewhere are not taken for managed files."""

    def there(self) -> dict[str, str]:
        """Return the texts of the managed files by name."""
        with _said(self.folder):
            if not self.folder.is_dir():
                return {}
            texts = {path.name: _text(path) for path in sorted(self.folder.iterdir()) if path.is_file()}
        return {name: text for name, text in texts.items() if self._is_tagged(name, text)}

    def written_here(self) -> dict[str, str]:
        """Return the texts of those managed files that were written into this folder, not copied or moved there."""
        return {name: text for name, text in self.there().items() if _place(text) == (name, self._folder_digest)}

    def contents(self) -> dict[str, str]:
        """Return the texts of the managed files by name, without the ownership tag."""
        return {name: text.replace(f"{_tag_line(text)}\n", "", 1) for name, text in self.there().items()}

    def of_others(self, names: Sequence[str]) -> list[Path]:
        """Return existing files and links that are not managed and have the name of a managed file."""
        ours = self.there()
        lowest = next(each for each in (self.folder, *self.folder.parents) if each.exists())
        if not lowest.is_dir():
            return [lowest]
        return [
            path for name in names if name not in ours and ((path := self.folder / name).exists() or path.is_symlink())
        ]

    @staticmethod
    def spec_of(path: Path) -> str:
        """Return the name of the spec whose ownership tag is in a file; empty if there is none."""
        text = _text(path) if path.is_file() else ""
        return OwnershipTag.spec_in(PLACE.sub("", _tag_line(text))) or ""

    def write(self, texts: Mapping[str, str], *, exactly: bool = True, edited: Collection[str] = ()) -> None:
        """Write files, readable by their owner alone, and if ``exactly`` remove the other managed ones.

        Raises FolderRefused, also for unmanaged files of these names, and for the ``edited`` ones, which their owner
        changes by hand, if they exist with another text.
        """
        self._refuse_others(texts, edited)  # before the folder is created
        with one_writer_in(self.folder):
            self._refuse_others(texts, edited)
            self._write(texts, exactly)

    def _refuse_others(self, texts: Mapping[str, str], edited: Collection[str]) -> None:
        if others := self.of_others(list(texts)):
            by_owner: dict[str, list[Path]] = {}
            for path in others:
                spec = self.spec_of(path)
                tagged = f"managed by spec {spec}" if spec else "not managed by openstack-prep"
                by_owner.setdefault(OF_COMMANDS.get(spec, tagged), []).append(path)
            what = ", and ".join(
                f"{', '.join(map(str, paths))} {'exists and is' if len(paths) == 1 else 'exist and are'} {owner}"
                for owner, paths in by_owner.items()
            )
            raise FolderRefused(f"{what}; choose another folder, or remove {'it' if len(others) == 1 else 'them'}")
        there = self.there() if edited else {}
        for name in edited:
            if name in there and not self._is_same(name, there[name], texts[name]):
                what = f"{self.folder / name} exists with other content, such as changes by hand"
                raise FolderRefused(f"{what}; choose another folder, or rename it")

    def _write(self, texts: Mapping[str, str], exactly: bool) -> None:
        before = self.there()
        for name, text in texts.items():
            remove_temporary(target_of(self.folder / name))
            if not self._is_same(name, before.get(name), text) or mode(self.folder / name) != PRIVATE:
                write_private(self.folder / name, self._whole(name, text))
        with _said(self.folder):
            for name in before.keys() - texts.keys() if exactly else ():
                remove_file(self.folder / name)

    def remove(self, *, copies: bool = True) -> list[str]:
        """Remove the managed files, and the folder if it is empty then; else return what remains in it.

        Without ``copies``, only those that were written into this folder.
        """
        if not self.folder.is_dir():
            return []
        with one_writer_in(self.folder), _said(self.folder):
            for name in self.there() if copies else self.written_here():
                remove_file(self.folder / name)
            left = sorted(path.name for path in self.folder.iterdir() if path.name != LOCK)
            if not left:
                remove_file(self.folder / LOCK)  # who waits for it sees that it is gone
                self.folder.rmdir()
            return left

    def drift(self, texts: Mapping[str, str], shown: Mapping[str, str]) -> Iterator[str]:
        """Yield how the files differ from the desired texts; ``shown`` are these texts without secrets."""
        before = self.there()
        for name, text in texts.items():
            if name not in before:
                yield f"{name} is missing"
                continue
            if mode(self.folder / name) != PRIVATE:
                yield f"{name}: mode {mode(self.folder / name)}"
            if not self._is_same(name, before[name], text):
                yield from (f"{name}: {what}" for what in _few(_differences(name, before[name], text, shown[name])))
        yield from (f"unexpected file {name}" for name in sorted(before.keys() - texts.keys()))

    def _whole(self, name: str, text: str) -> str:
        if text.startswith(SCRIPT):
            interpreter, _, rest = text.partition("\n")
            return f"{interpreter}\n{self._tag(name)}\n{rest}"
        return f"{self._tag(name)}\n{text}"

    def _is_same(self, name: str, before: str | None, text: str) -> bool:
        """Whether a managed file needs no change.

        A folder that was moved as a whole does not matter, nor by which address of the cloud it was written, nor that
        an earlier version has not recorded the home project.
        """
        if before is None:
            return False
        wanted = self._whole(name, text)
        line, tag = _tag_line(before), _tag_line(wanted)
        homes = {OwnershipTag.home_in(line) or OwnershipTag.home_in(tag), OwnershipTag.home_in(tag)}
        return len(homes) == 1 and before.replace(line, "", 1) == wanted.replace(tag, "", 1)

    def _is_tagged(self, name: str, text: str) -> bool:
        place = _place(text)
        if place and place[0] != name:  # a copy beside the original
            return False
        line, tag = PLACE.sub("", _tag_line(text)), PLACE.sub("", self._tag(name))
        return line == tag or (HOME.sub("]", line) == HOME.sub("]", tag) and self.is_ours(line))

    def _tag(self, name: str) -> str:
        """Return the ownership tag as a comment of the file's language."""
        text = self.head.removeprefix("#").lstrip()
        place = f"{self._folder_digest} " if self.placed else ""
        return f"{';' if name.endswith(ZONES) else '#'} {name} {place}{text}"

    @property
    def _folder_digest(self) -> str:
        """The folder in few digits, because files may go to other machines."""
        return hashlib.sha256(os.path.realpath(self.folder).encode()).hexdigest()[:12]


def _place(text: str) -> tuple[str, str] | None:
    """Return the name, and the digest of the folder, that a file was written with; None if it does not say so."""
    found = PLACE.search(_tag_line(text))
    return (found[1], found[2] or "") if found else None


def _tag_line(text: str) -> str:
    """Return the line of a file that its ownership tag is in."""
    first, _, rest = text.partition("\n")
    return rest.partition("\n")[0] if first.startswith(SCRIPT) else first


def documents(text: str) -> list[object] | None:
    """Return the documents of a YAML file; None if it is not YAML."""
    try:
        return parse_yaml_documents(text)
    except yaml.YAMLError:
        return None


@contextlib.contextmanager
def _said(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FolderRefused(f"{folder}: {error}; choose another directory, or change its permissions") from error


def _few(differences: list[str]) -> list[str]:
    more = len(differences) - MOST
    return [*differences[:MOST], f"{more} more"] if more > 1 else differences


def _text(path: Path) -> str:
    """Return a file's text; a file that cannot be read as text is not managed."""
    try:
        return read_text(path)
    except (OSError, UnicodeDecodeError):
        return ""


def _differences(name: str, before: str, after: str, shown: str) -> list[str]:
    if not name.endswith(YAML):
        return ["its text differs"]
    old = documents(before)
    if old is None:
        return ["is not YAML"]
    new, seen = (_named(documents(text)) for text in (after, shown))
    return list(_compare("", _named(old), new, seen)) or ["comments or order differ"]


def _named(documents: list[object] | None) -> object:
    """Return manifests by kind and name; a single document is returned as it is."""
    found = documents or []
    if len(found) == 1:
        return found[0]
    return {_title(each, number): each for number, each in enumerate(found)}


def _title(document: Any, number: int) -> str:
    metadata = document.get("metadata") if isinstance(document, Mapping) else None
    return f"{document.get('kind')}/{metadata.get('name')}" if isinstance(metadata, Mapping) else str(number)


def _compare(path: str, old: Any, new: Any, seen: Any) -> Iterator[str]:
    """Yield where two parts of documents differ; a value that must stay secret is replaced in ``seen``."""
    old, new, seen = _labelled(old), _labelled(new), _labelled(seen)
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in [*new, *(each for each in old if each not in new)]:
            inner = f"{path}.{name}".lstrip(".")
            if name not in old:
                yield f"{inner} is missing"
            elif name not in new:
                yield f"{inner} is unexpected"
            else:
                yield from _compare(inner, old[name], new[name], seen[name])
    elif old != new:
        words = (HIDDEN, HIDDEN) if seen != new else (_shown(path, old), _shown(path, new))
        yield f"{path} {' -> '.join(words)}"


def _labelled(value: object) -> object:
    """Return a list of mappings by their names."""
    if isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value):
        label = next((label for label in LABELS if all(label in each for each in value)), None)
        if label and len({str(each[label]) for each in value}) == len(value):
            return {str(each[label]): each for each in value}
    return value


def _shown(path: str, value: object) -> str:
    whole = isinstance(value, Mapping | list) or (isinstance(value, str) and "\n" in value)
    return HIDDEN if SECRET.search(path) or (whole and SECRET.search(str(value))) else show(value)
