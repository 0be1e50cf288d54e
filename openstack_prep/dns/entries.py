"""Lines of a hosts or dnsmasq file that give names addresses: those that we write, and those outside of our block.

Sources: hosts(5), whose lines with one name all count (glibc's nss_files merges them for getaddrinfo); dnsmasq(8),
which answers with all addresses of ``host-record`` and ``address`` lines for a name.
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.fields import is_address
from openstack_prep.base.file_lock import one_writer
from openstack_prep.base.given_file import read_bytes, unreadable
from openstack_prep.base.private_file import target_of, write_shared

# Blocks of lines in a file that others use as well, such as a hosts file.  Only ``put_block`` writes.

Edit: TypeAlias = Callable[[Sequence[str]], Sequence[str]]
"""Judges the lines of a file, of which those of the block are empty; returns them, changed or not."""


def put_block(path: Path, label: str, lines: Sequence[str], edit: Edit = list) -> bool:
    """Write lines into a file, between two comments with a label; return whether that changed the file.

    Everything outside of this block is left to ``edit``, which changes nothing by default; the file's mode and owner
    are left untouched.  Without lines, the block is removed.  Raises SpecError with the line of a comment that lacks
    its counterpart.
    """
    return change_file(path, lambda old: with_block(old, label, lines, str(path), edit))


def change_file(path: Path, change: Callable[[str], str]) -> bool:
    """Write what a function makes of the text of a file, while no other run does; return whether that changed it.

    The function may raise, and then nothing is written.  A file that would not change is not even locked, because it
    may be in a folder where this user must not write.
    """
    old = content(path)
    if change(old) == old:
        return False
    with contextlib.suppress(OSError):  # which the lock reports; others read the file, so the umask decides here
        target_of(path).parent.mkdir(parents=True, exist_ok=True)
    with one_writer(path) as target:
        write_shared(target, change(content(target)))
    return True


def content(path: Path) -> str:
    """Return the exact text of a file, "" if it does not exist; raises SpecError."""
    if not path.exists():
        return ""
    if not path.is_file():  # a pipe must never be written to
        raise SpecError([Mistake(str(path), "is not a regular file", "give another file")])
    try:
        return read_bytes(path).decode("utf-8", "surrogateescape")  # keeps line ends and invalid bytes
    except OSError as error:
        raise SpecError([Mistake(str(path), unreadable(error), "give another file")]) from error


def with_block(text: str, label: str, lines: Sequence[str], where: str = "hosts", edit: Edit = list) -> str:
    """Return a text with the block of a label, in its former place or at the end."""
    begin, end = f"# BEGIN openstack-prep {label}", f"# END openstack-prep {label}"
    block = "".join(f"{line}\n" for line in [begin, *lines, end]) if lines else ""
    old = text.splitlines(keepends=True)
    place = _place(old, begin, end, where)
    if place is None:
        rest = "".join(edit(old))
        glue = "\n" if rest and block and not rest.endswith("\n") else ""
        return rest + glue + block
    first, last = place
    others = edit([*old[:first], *[""] * (last + 1 - first), *old[last + 1 :]])
    return "".join([*others[:first], block, *others[last + 1 :]])


def _place(lines: Sequence[str], begin: str, end: str, where: str) -> tuple[int, int] | None:
    """Return the first and last line of a block."""
    comments = [(number, line.strip()) for number, line in enumerate(lines) if line.strip() in (begin, end)]
    if not comments:
        return None
    if [comment for _, comment in comments] == [begin, end]:
        return comments[0][0], comments[1][0]
    wanted = (begin, end)
    wrong = next((number for at, (number, text) in enumerate(comments) if at > 1 or text != wanted[at]), comments[0][0])
    what = f"{lines[wrong].strip()!r} lacks its counterpart, or is in the wrong place"
    raise SpecError([Mistake(f"{where}:{wrong + 1}", what, "leave one pair of these comments, or none")])


Form: TypeAlias = Literal["hosts", "dnsmasq"]
Wanted: TypeAlias = Mapping[str, Collection[str]]
"""The addresses that a name may have, by name; a wildcard such as ``*.apps.dev.example.com`` is a name of its own."""


@dataclass(frozen=True)
class NameEntry:
    """A line that gives names addresses."""

    number: int
    """Of the line, from 1."""
    text: str
    """The line, without its end."""
    names: tuple[str, ...]
    """As the line spells them; of ``address=/x/``, which holds for all below x, ``*.x``."""
    addresses: tuple[str, ...]
    """Of a ``cname``, its target."""
    form: Form

    def without(self, names: Collection[str]) -> str:
        """Return the line without some names; a comment if it has no others."""
        left = [name for name in self.names if name.lower() not in names]
        if not left:
            return f"# {self.text}"
        if self.form == "hosts":
            head, mark, comment = self.text.partition("#")
            ending = f" {mark}{comment}" if mark else ""
            return f"{head.split()[0]} {' '.join(left)}{ending}"
        key, _, _ = self.text.partition("=")
        if key.strip() == "address":
            return f"address=/{'/'.join(each.removeprefix(WILDCARD) for each in left)}/{self.addresses[0]}"
        rest = self.text.split(",")[len(self.names) :]
        return f"{key.strip()}={','.join([*left, *(each.strip() for each in rest)])}"


def read_entries(lines: Sequence[str], form: Form) -> Iterator[NameEntry]:
    """Yield the lines that give names addresses, in their order."""
    read = _of_hosts if form == "hosts" else _of_dnsmasq
    for number, line in enumerate(lines, 1):
        text = line.rstrip("\r\n")
        names, addresses = read(text.partition("#")[0])
        if names and addresses:
            yield NameEntry(number, text, names, addresses, form)


def _of_hosts(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    address, *names = text.split() or [""]
    return (tuple(names), (address,)) if is_address(address) else ((), ())


def _of_dnsmasq(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    key, _, value = (each.strip() for each in text.partition("="))
    if key == "address":
        domains, _, address = value.strip("/").rpartition("/")
        return tuple(f"{WILDCARD}{each}" for each in domains.split("/") if each), (address,)
    words = [each.strip() for each in value.split(",")]
    if key == "cname":
        return tuple(words[:1]), tuple(words[1:2])
    if key == "host-record":
        addresses = [word for word in words if is_address(word)]
        return tuple(word for word in words if not is_address(word) and not word.isdigit()), tuple(addresses)
    return (), ()


def conflicts(lines: Sequence[str], wanted: Wanted, form: Form) -> Iterator[tuple[NameEntry, list[str]]]:
    """Yield lines that give a wanted name another address, and these names as ``wanted`` has them."""
    for entry in read_entries(lines, form):
        names = [name.lower() for name in entry.names]
        given = {*map(_plain, entry.addresses)}
        found = [each for each in wanted if each in names and not given <= {*map(_plain, wanted[each])}]
        if found:
            yield entry, found


def _plain(address: str) -> str:
    """Return an address in its usual form; a name as it is."""
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return address


def without_conflicts(lines: Sequence[str], wanted: Wanted, form: Form) -> list[str]:
    """Return lines with their ends, without the names that they give another address; the rest is left untouched."""
    changed = list(lines)
    for entry, names in conflicts(lines, wanted, form):
        line = changed[entry.number - 1]
        ending = line[len(line.rstrip("\r\n")) :]
        changed[entry.number - 1] = entry.without(names) + ending
    return changed


# --- lines that resolve names: of hosts files and dnsmasq ---
#
# Sources: hosts(5), which has no wildcards; dnsmasq(8): ``host-record`` for one name, ``address=/x/`` for x and
# all below.


WILDCARD = "*."


def hosts_lines(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return the lines of a hosts file for pairs of address and name, without wildcards."""
    return [f"{address} {name}" for address, name in pairs if not name.startswith(WILDCARD)]


def dnsmasq_lines(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return lines for dnsmasq for pairs of address and name."""
    return [
        f"address=/{name.removeprefix(WILDCARD)}/{address}"
        if name.startswith(WILDCARD)
        else f"host-record={name},{address}"
        for address, name in pairs
    ]
