"""The files that a spec reads, how changes of them are detected, and paths without this machine's directories.

A saved plan records these files. It may be published (a CI artifact), so nothing in it may help to guess a secret:

- a password file, ``{file: PATH}``, is identified by its modification time alone: a digest of a short
  password could be guessed, whatever its salt, and its size would reveal the password's length;
- other files go through scrypt with the plan's salt, since an environment or the spec itself may contain a
  password in plain text: each guess costs 16 MiB and tens of milliseconds;
- a file larger than ``LARGE`` is not read a second time: size and modification time represent it, and the
  size alone if the spec declares its checksum, which is verified during the upload.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from openstack_prep.base.fields import file_path
from openstack_prep.base.given_file import read_bytes
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.raw import map_texts, walk_steps
from openstack_prep.base.secret import digest

if TYPE_CHECKING:
    from openstack_prep.core.plan import Plan
    from openstack_prep.spec import Spec

LARGE = 64 * 2**20


@runtime_checkable
class HasSources(Protocol):
    """A kind whose resources are made of files of this machine, and follow their changes."""

    def source_files(self) -> Iterable[str]:
        """Return their paths."""
        ...


@runtime_checkable
class HasUpload(Protocol):
    """A kind whose resources are created from one source, and do without it once they exist."""

    def uploaded_file(self) -> str | None:
        """Return the path of the source if it is on this machine."""
        ...

    @property
    def is_verified(self) -> bool:
        """Whether the content must have a declared checksum."""
        ...


NOT_SECRET = "public_key"  # the only other field that takes {file: PATH}


def fingerprints(spec: Spec, plan: Plan, salt: bytes) -> dict[str, str]:
    """Return, by path, the fingerprints of all files that a plan of a spec depends on, without the spec itself.

    An included file has its path relative to the folder of the spec.
    """
    found: dict[str, str] = {}
    main = spec.folder or Path()
    for path, base, secret in _files_of_sources(spec):
        name = path if base == main else os.path.relpath(path, main)
        found[name] = _time(path) if secret else _content(path, salt)
    for part in spec.parts[1:]:
        found[os.path.relpath(part.path, spec.folder)] = _content(str(part.path), salt)
    for step in plan.steps:
        resource = step.resource
        if isinstance(resource, HasSources):
            found |= {source: _content(source, salt) for source in resource.source_files()}
        elif isinstance(resource, HasUpload) and step in plan.pending and (upload := resource.uploaded_file()):
            found[upload] = _content(upload, salt, verified=resource.is_verified)
    return found


def local_files(spec: Spec) -> list[str]:
    """Return the paths of files that a spec names, as far as nothing else has to be read to know them."""
    found = [path for path, _, _ in _files_of_sources(spec)]
    for resource in spec.resources:
        if isinstance(resource, HasSources):
            found += resource.source_files()
        elif isinstance(resource, HasUpload) and (path := resource.uploaded_file()):
            found.append(path)
    return found


def _files_of_sources(spec: Spec) -> Iterator[tuple[str, Path, bool]]:
    """Yield each file that ``{file: PATH}`` names, the folder of its path, and whether it contains a secret."""
    for data, base in [*((part.data, part.base) for part in spec.parts), ([*spec.sources], spec.folder or Path())]:
        for value, secret in _sources(data):
            with contextlib.suppress(InvalidValue):  # plain data with the word file, such as a parameter of a stack
                yield str(file_path(value, base)), base, secret


def _sources(document: object) -> Iterator[tuple[str, bool]]:
    """Yield each ``{file: PATH}`` of a spec, and whether the file contains a secret."""
    for steps, part in walk_steps(document):
        path = part.get("file") if isinstance(part, Mapping) and len(part) == 1 else None
        if isinstance(path, str) and path:
            names = [step for step in steps if isinstance(step, str)]
            yield path, names[-1:] != [NOT_SECRET]


def _content(path: str, salt: bytes, *, verified: bool = False) -> str:
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            return "not a regular file"
        if found.st_size <= LARGE:
            return f"content {digest(read_bytes(Path(path), LARGE), salt)}"
    except OSError:
        return "cannot be read"
    return f"size {found.st_size}" + ("" if verified else f", time {found.st_mtime_ns}")


def _time(path: str) -> str:
    try:
        return f"time {os.stat(path).st_mtime_ns}"
    except OSError:
        return "cannot be read"


def names_own_folder(value: object, base: Path) -> bool:
    """Whether plain data contain the path of the spec's folder or of the user's home."""
    return bool(without_folders(value, base) != value)


def portable(value: Any, base: Path) -> Any:
    """Return plain data without absolute paths, so that they can be compared on another machine.

    Paths in the folder of the spec begin with ``./``, those in the user's home with ``~/``; all others are replaced
    with a digest.
    """
    return map_texts(without_folders(value, base), _digested)


def without_folders(value: Any, base: Path | None = None) -> Any:
    """Return plain data with ``.`` for the folder of the spec, if any is given, and ``~`` for the user's home."""
    try:
        home = Path.home()
    except RuntimeError:  # a user without a name, as in containers
        home = Path("/")
    folders = [(base, ".")] if base else []
    folders += [(home, "~")] if home.is_absolute() else []  # HOME may be any text
    shortened = [(str(path), short) for path, short in folders if path != path.parent]
    return map_texts(value, lambda text: _shortened(text, shortened))


def _shortened(text: str, folders: Sequence[tuple[str, str]]) -> str:
    for folder, short in folders:
        text = re.sub(rf"(?<![\w.~-]){re.escape(folder)}(?=/|$)", short, text)
    return text


def _digested(text: str) -> str:
    return f"path {hashlib.sha256(text.encode()).hexdigest()[:16]}" if text.startswith("/") else text
