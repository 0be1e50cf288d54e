"""The text of a pool file: one line per claim, sorted by name, so that git merges claims of different branches.

What people have added besides (comments, the order of settings) is kept: only the lines that change are written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import yaml

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.fields import Address, Mac, Name, Reads
from openstack_prep.base.formats import yaml_text
from openstack_prep.base.formats.yaml_places import Document
from openstack_prep.base.invalid import InvalidValue, shown
from openstack_prep.base.raw import Raw, Values
from openstack_prep.exposures.register.claims import Claim
from openstack_prep.exposures.register.pool import STRICT, Pool, PoolSettings

VERSION = 1
CONFLICT = re.compile(r"(<{7}|\|{7}|={7}|>{7})( |$)")
"""Git's marks around what it could not merge (gitattributes(5), conflict-marker-size)."""
LISTED = ("users", "claims")
"""The sections with one line per entry."""


def identifier(value: object) -> object:
    if isinstance(value, str) and not re.fullmatch("[0-9a-f]{16}", value):
        raise InvalidValue("is not the id of a pool file", "restore the former id")
    return value


@dataclass(frozen=True, kw_only=True)
class _User:
    __pydantic_config__: ClassVar[dict[str, object]] = STRICT
    project: str = ""


@dataclass(frozen=True, kw_only=True)
class _Claim:
    __pydantic_config__: ClassVar[dict[str, object]] = STRICT
    address: Address
    mac: Mac | None = None


@dataclass(frozen=True, kw_only=True)
class _File:
    __pydantic_config__: ClassVar[dict[str, object]] = STRICT
    version: Literal[1]
    pool: Name
    id: Annotated[str, Reads(identifier)]
    network: PoolSettings
    users: Mapping[str, _User] | None = None
    claims: Mapping[str, _Claim] | None = None


def read(path: Path, text: str) -> Pool:
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
    pool = Pool(name=found.pool, id=found.id, settings=found.network, users=users, claims=claims)
    wrong = [Mistake(document.place(["claims", key]), f"{key}: {what}", fix) for key, what, fix in pool.mistakes()]
    if wrong:
        raise SpecError(wrong)
    return pool


def write(before: Pool | None, after: Pool, text: str) -> str:
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
    from pydantic import TypeAdapter

    return TypeAdapter(_File)


def _validate(document: Document) -> _File:
    from pydantic import ValidationError

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


def _data(pool: Pool) -> Values:
    settings = {each.name: getattr(pool.settings, each.name) for each in fields(pool.settings)}
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


def _whole(pool: Pool) -> str:
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
