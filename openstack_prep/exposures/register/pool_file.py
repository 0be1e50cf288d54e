"""The register of a network that OpenStack does not know: a pool file.

The lock is flock(2) on the file itself, so no further file is needed, and the kernel releases it with the process. Who
gets the lock of a file that was replaced meanwhile retries with the new one. Source: flock(2). NFS clients before Linux
2.6.12 ignore flock; later ones translate it to locks of the server, which needs a descriptor that is open for writing.

What people have added besides (comments, the order of settings) is kept: only the lines that change are written.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import TypeAdapter, ValidationError

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import ConfigError, Mistake, PrepError, SpecError
from openstack_prep.base.fields import Address, Mac, Name, Strict, matching
from openstack_prep.base.file_lock import WAIT, LockWait
from openstack_prep.base.formats import yaml_text
from openstack_prep.base.formats.yaml_places import Document
from openstack_prep.base.given_file import read_bytes, unreadable
from openstack_prep.base.invalid import InvalidValue, shown
from openstack_prep.base.private_file import remove_temporary, write_shared
from openstack_prep.base.raw import Raw, Values
from openstack_prep.exposures.register.pool import (
    Claim,
    ClaimRefused,
    ClaimRequest,
    Outcomes,
    PoolContent,
    PoolSettings,
    key_of,
)

# --- lock -------------------------------------------------------------------------------------


@contextlib.contextmanager
def locked(
    path: Path, *, create: bool = False, timeout: float = WAIT, tell: Callable[[str], None] = lambda text: None
) -> Iterator[Path]:
    """Lock a file, and yield the path of the file itself if ``path`` is a link.

    A missing file is created empty if ``create`` is set, and removed again if the block fails. Raises
    FileNotFoundError, FileLocked and other PrepErrors.
    """
    descriptor, target = _lock(path, create, LockWait(path, timeout, tell))
    try:
        remove_temporary(target)  # only who holds the lock writes them, which is this run now
        yield target
    except BaseException:
        if create and _is_at(descriptor, target) and not os.fstat(descriptor).st_size:
            target.unlink()
        raise
    finally:
        os.close(descriptor)


def _lock(path: Path, create: bool, waiting: LockWait) -> tuple[int, Path]:
    """Return the descriptor of the locked file and the file's own path."""
    while True:
        target = Path(os.path.realpath(path))
        descriptor = _open(path, target, create)
        try:
            waiting.lock(descriptor)
            if _is_at(descriptor, target):
                return descriptor, target
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _open(path: Path, target: Path, create: bool) -> int:
    try:
        if create:
            target.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_NONBLOCK | (os.O_CREAT if create else 0)
        descriptor = os.open(target, flags, 0o644)
    except FileNotFoundError:
        if not create:
            raise
        raise PrepError(f"{path} cannot be created: its folder was removed") from None
    except OSError as error:
        fix = "change its permissions or those of its folder, or choose another file"
        raise PrepError(f"{path} cannot be written: {error.strerror}; {fix}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ConfigError(f"{path} cannot be written: it is not a regular file; choose another one")
    return descriptor


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether the path still names the open file, which others may have replaced or removed."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


# --- text -------------------------------------------------------------------------------------


VERSION = 1
CONFLICT = re.compile(r"(<{7}|\|{7}|={7}|>{7})( |$)")
"""Git's marks around what it could not merge (gitattributes(5), conflict-marker-size)."""
LISTED = ("users", "claims")
"""The sections with one line per entry."""


@dataclass(frozen=True, kw_only=True)
class _User(Strict):
    project: str = ""


@dataclass(frozen=True, kw_only=True)
class _Claim(Strict):
    address: Address
    mac: Mac | None = None


@dataclass(frozen=True, kw_only=True)
class _File(Strict):
    version: Literal[1]
    pool: Name
    id: Annotated[str, matching("[0-9a-f]{16}", "is not the id of a pool file", "restore the former id")]
    network: PoolSettings
    users: Mapping[str, _User] | None = None
    claims: Mapping[str, _Claim] | None = None


def read(path: Path, text: str) -> PoolContent:
    """Return the content of a pool file; raises SpecError with all mistakes and their lines."""
    if marks := list(_conflicts(path, text)):
        raise SpecError(marks)
    document = Document(path, text)
    if wrong := [*document.repeated, *document.misread()]:
        raise SpecError(wrong)
    if not isinstance(document.data, dict) or "version" not in document.data:
        raise SpecError([Mistake(f"{path}:1", "is not a pool file", "choose another file, or restore this one")])
    if document.data["version"] != VERSION:
        what = f"version: {shown(document.data['version'])} is unknown to this release"
        raise SpecError([Mistake(document.place(["version"]), what, "use the release that wrote the file")])
    if unquoted := list(_unquoted(document)):
        raise SpecError(unquoted)
    found = _validate(document)
    claims = {key: Claim(address=each.address, mac=each.mac) for key, each in (found.claims or {}).items()}
    users = {key: each.project for key, each in (found.users or {}).items()}
    pool = PoolContent(name=found.pool, id=found.id, settings=found.network, users=users, claims=claims)
    wrong = [Mistake(document.place(["claims", key]), f"{key}: {what}", fix) for key, what, fix in pool.mistakes()]
    if wrong:
        raise SpecError(wrong)
    return pool


def write(before: PoolContent | None, after: PoolContent, text: str) -> str:
    """Return the text of ``after``: ``text``, which reads as ``before``, with the changed lines alone, if possible."""
    if before is not None:
        new = _spliced(text.replace("\r\n", "\n"), _data(before), _data(after))
        if "\r\n" in text:  # git's autocrlf, for example
            new = new.replace("\n", "\r\n")
        try:
            if read(Path("new"), new) == after:
                return new
        except SpecError:  # such as an anchor in a line that is gone
            pass
    return _whole(after)


# --- reading ------------------------------------------------------------------------------


def _conflicts(path: Path, text: str) -> Iterator[Mistake]:
    for number, line in enumerate(text.splitlines(), 1):
        if CONFLICT.match(line):
            fix = "keep the claims of both sides and remove this line; of two claims of one address keep one"
            yield Mistake(f"{path}:{number}", f"{line[:7]} is git's mark of a conflict", fix)


def _unquoted(document: Document) -> Iterator[Mistake]:
    """Yield names that YAML reads as numbers and the like: the lines of the file have other words for them."""
    data = document.data if isinstance(document.data, dict) else {}
    for section in ("users", "claims"):
        entries = data.get(section)
        for key in entries if isinstance(entries, dict) else ():
            if not isinstance(key, str):
                what = f"{section}: YAML reads the name as {shown(key)}, which is no text"
                yield Mistake(document.place([section]), what, "put the name in quotes")


@cache
def _adapter() -> Any:
    return TypeAdapter(_File)


def _validate(document: Document) -> _File:
    try:
        found: _File = _adapter().validate_json(json.dumps(document.data, default=str))
        return found
    except ValidationError as error:
        raise SpecError(list(_mistakes(document, error.errors(include_url=False)))) from None


def _mistakes(document: Document, errors: Iterable[Raw]) -> Iterator[Mistake]:
    for error in errors:
        steps: Sequence[str | int] = [each for each in error["loc"] if each != "[key]"]
        where = f"{document.place(steps)}: {'.'.join(map(str, steps))}"
        if error["type"] == "unexpected_keyword_argument":
            yield Mistake(where, "unknown key", "remove it", code=Code.SPEC_UNKNOWN_KEY)
        elif error["type"].startswith("missing"):
            yield Mistake(where, "is missing", "restore it from an earlier version", code=Code.SPEC_MISSING_KEY)
        elif error["type"] == "contradiction":
            yield Mistake(where, error["ctx"]["what"], error["ctx"]["fix"], code=Code.SPEC_CONTRADICTION)
        else:
            invalid = InvalidValue.of(error)
            fix = invalid.fix or "correct it, or restore an earlier version"
            yield Mistake(where, f"{shown(error['input'])} {invalid.what}", fix, code=invalid.code)


# --- writing ------------------------------------------------------------------------------


def _data(pool: PoolContent) -> Values:
    settings = {field.name: getattr(pool.settings, field.name) for field in fields(pool.settings)}
    network = {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}
    users = {key: {"project": project} if project else {} for key, project in sorted(pool.users.items())}
    claims = {
        key: {"address": each.address} | ({"mac": each.mac} if each.mac else {})
        for key, each in sorted(pool.claims.items())
    }
    return {
        "version": VERSION,
        "pool": pool.name,
        "id": pool.id,
        "network": {name: value for name, value in network.items() if value is not None},
        "users": users,
        "claims": claims,
    }


def _whole(pool: PoolContent) -> str:
    """Return the text of a new file."""
    head = (
        f"The addresses of pool {pool.name}, and who has claimed them: one line per claim, SPEC/NAME.",
        "openstack-prep owns this file and writes it. Keep it in git. To merge branches, keep the claims of both; of",
        "two claims of one address keep one, and apply the other's spec again. To reserve an address for something",
        "else, add a line whose name has no slash, such as printer: {address: 192.0.2.10}.",
    )
    parts = (_section(name, value) for name, value in _data(pool).items())
    return "".join((*(f"# {line}\n" for line in head), *parts))


def _section(name: str, value: object) -> str:
    if name in LISTED and isinstance(value, Mapping) and value:
        return f"{name}:\n" + "".join(_line(key, each) for key, each in value.items())
    return yaml_text.dump({name: value})


def _line(key: str, entry: object, column: int = 2) -> str:
    return f"{' ' * column}{yaml_text.one_line({key: entry})[1:-1]}\n"


def _spliced(text: str, before: Raw, after: Raw) -> str:
    """Return the text with the lines of changed sections and entries replaced."""
    lines = [line + "\n" for line in text.splitlines()]
    root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    for key, node in reversed(root.value):
        name = key.value
        if before.get(name) == after.get(name):
            continue
        if name in LISTED and before[name] and after[name] and not node.flow_style:
            _splice_entries(lines, key.start_mark.line + 1, node, before[name], after[name])
        else:
            lines[key.start_mark.line : _end(node)] = [_section(name, after[name])]
    present = {key.value for key, _ in root.value}
    return "".join([*lines, *(_section(name, value) for name, value in after.items() if name not in present)])


def _splice_entries(lines: list[str], start: int, node: Any, before: Raw, after: Raw) -> None:
    """Replace, remove and insert the lines of single entries; a new one follows the last smaller name."""
    column = node.value[0][0].start_mark.column
    spans = [(key.value, key.start_mark.line, _end(value)) for key, value in node.value]
    changes: list[tuple[int, int, str]] = [
        (first, last, key) for key, first, last in spans if before[key] != after.get(key)
    ]
    for key in after.keys() - before.keys():
        place = next((last for name, _, last in reversed(spans) if name < key), start)
        changes.append((place, place, key))
    for first, last, key in sorted(changes, reverse=True):
        lines[first:last] = [_line(key, after[key], column)] if key in after else []


def _end(node: Any) -> int:
    """Return the number of the line after a node, without the comments that follow it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.line + (1 if node.end_mark.column else 0))


# --- pool file --------------------------------------------------------------------------------


ATTEMPTS = 100
"""How often the file is read again after an editor, which knows no locks, has written to it."""


def _silent(text: str) -> None:
    """Say nothing."""


@dataclass(frozen=True, kw_only=True)
class PoolFileRegister:
    """The claims of one spec in a pool file, which several specs may share."""

    path: Path
    name: str
    """Name of the pool; the file of another pool is refused."""
    settings: PoolSettings
    spec: str
    """Name of the spec that claims."""
    project: str = ""
    """Id of the project of the spec, which distinguishes specs with the same name."""
    timeout: float = WAIT
    """Seconds to wait for the lock."""
    tell: Callable[[str], None] = _silent
    """Called with a message if the file is locked by another process."""
    # --- reading --------------------------------------------------------------------------

    def read(self) -> PoolContent | None:
        """Return the content of the file; None if it does not exist, or is empty.

        Needs no lock, because the file is replaced as a whole. Raises SpecError with all mistakes.
        """
        text = self._text()
        return self._parse(text) if text else None

    def held(self) -> Mapping[str, Claim]:
        pool = self.read()
        return pool.of_spec(self.spec) if pool and self.is_user(pool) else {}

    def holders(self) -> Mapping[str, str]:
        pool = self.read()
        return {each.address: key for key, each in pool.claims.items()} if pool else {}

    def is_user(self, pool: PoolContent) -> bool:
        """Whether this spec uses the file."""
        return self.spec in pool.users and self._owns(pool.users[self.spec])

    def refuse(self, pool: PoolContent) -> Mistake | None:
        """Return why this spec cannot use the file: a spec with its name does, or others use it with other settings."""
        where = str(self.path)
        if self.spec in pool.users and not self._owns(pool.users[self.spec]):
            theirs = pool.users[self.spec]
            project = f"project {theirs}" if theirs else "no project"
            what = f"is used by another spec {self.spec}, of {project}, in this cloud or another"
            fix = (
                f"rename this spec; or, if that spec is gone for good, remove by hand the line {self.spec} of users "
                f"and the lines {key_of(self.spec, '')}... of claims"
            )
            return Mistake(where, what, fix)
        others = sorted(pool.users.keys() - {self.spec})
        if pool.settings != self.settings and others:
            names = [var for var in vars(self.settings) if self._differs(pool, var)]
            what = f"is shared with spec {', '.join(others)} and has other {', '.join(names)}"
            return Mistake(where, what, "declare the same in all specs, or change the file by hand first")
        wrong = [f"{key}: {what}" for key, what, _ in replace(pool, settings=self.settings).mistakes()]
        return Mistake(where, "; ".join(wrong), "keep these addresses in the pool, or release them") if wrong else None

    def _differs(self, pool: PoolContent, field: str) -> bool:
        return bool(getattr(pool.settings, field) != getattr(self.settings, field))

    def _owns(self, project: str) -> bool:
        """Whether a recorded project is that of this spec: only the same id proves it.

        That a project does not exist here does not: it may exist in another cloud, whose spec shares the file.
        """
        return project == self.project

    def _text(self) -> str:
        try:
            return read_bytes(self.path).decode()  # with its own line ends
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except UnicodeDecodeError as error:
            what = unreadable(error)
            raise SpecError([Mistake(str(self.path), what, "restore an earlier version")]) from None
        except OSError as error:
            fix = "change its permissions, or choose another file"
            raise PrepError(f"{self.path} {unreadable(error)}; {fix}") from error

    def _parse(self, text: str) -> PoolContent:
        pool = read(self.path, text)
        if pool.name != self.name:
            what = f"is the file of pool {pool.name}, not of {self.name}"
            raise SpecError([Mistake(str(self.path), what, "correct the path or the name of the pool")])
        return pool

    # --- writing --------------------------------------------------------------------------

    def claim(self, requests: Sequence[ClaimRequest], foreign_macs: Collection[str] = ()) -> dict[str, Claim]:
        """Claim for all names in one write; see ``Register``. Raises SpecError if the file is damaged, PrepError."""
        pool = self._change(lambda pool: self._used(pool).claim(self.spec, requests, foreign_macs))
        claims = pool.of_spec(self.spec)
        return {request.name: claims[request.name] for request in requests}

    def claim_each(self, requests: Sequence[ClaimRequest], foreign_macs: Collection[str] = ()) -> Outcomes:
        """Claim for each name, all in one write. Raises SpecError if the file is damaged, PrepError."""
        refused: dict[str, ClaimRefused] = {}

        def change(pool: PoolContent) -> PoolContent:
            nonlocal refused
            pool, refused = self._used(pool).claim_each(self.spec, requests, foreign_macs)
            return pool

        claims = self._change(change).of_spec(self.spec)
        return {request.name: refused.get(request.name) or claims[request.name] for request in requests}

    def release(self, names: Sequence[str]) -> None:
        if self._text():
            self._change(lambda pool: pool.release(self.spec, names) if self.is_user(pool) else pool)

    def ensure(self) -> PoolContent:
        """Create the file, or enter this spec and its settings into it."""
        return self._change(self._used, create=True)

    def leave(self) -> PoolContent | None:
        """Remove this spec and its claims, and the file if nobody else uses it; return what remains of it."""
        try:
            with locked(self.path, timeout=self.timeout, tell=self.tell) as target:
                while text := self._text():
                    before = self._parse(text)
                    after = before.without_spec(self.spec) if self.is_user(before) else before
                    if not (after.users or after.claims):
                        target.unlink()
                        return None
                    if self._write(before, after, text):
                        return after
        except FileNotFoundError:  # removed already
            pass
        return None

    def _used(self, pool: PoolContent) -> PoolContent:
        """Return the pool with this spec as a user, and with its settings."""
        if refusal := self.refuse(pool):
            raise ClaimRefused(str(refusal))
        return replace(pool, settings=self.settings, users={**pool.users, self.spec: self.project})

    def _change(self, change: Callable[[PoolContent], PoolContent], *, create: bool = False) -> PoolContent:
        """Change the file under its lock, from what it contains by then; without a change it is not written."""
        try:
            with locked(self.path, create=create, timeout=self.timeout, tell=self.tell):
                for _ in range(ATTEMPTS):
                    text = self._text()
                    if not text and not create:
                        raise FileNotFoundError
                    before = self._parse(text) if text else None
                    new = before or PoolContent(name=self.name, id=secrets.token_hex(8), settings=self.settings)
                    after = change(new)
                    if self._write(before, after, text):
                        return after
        except FileNotFoundError:
            raise PrepError(f"{self.path} does not exist; apply its pool_file first, or restore it") from None
        raise PrepError(f"{self.path} is modified all the time; close the program that writes to it")

    def _write(self, before: PoolContent | None, after: PoolContent, text: str) -> bool:
        """Write the file, unless somebody has edited it since it was read: then return False."""
        if before == after:
            return True
        new = write(before, after, text)
        if self._text() != text:
            return False
        write_shared(self.path, new)
        return True
