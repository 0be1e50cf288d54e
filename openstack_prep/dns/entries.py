"""Lines of a hosts or dnsmasq file that give names addresses: those that we write, and those outside of our block.

Sources: hosts(5), whose lines with one name all count (glibc's nss_files merges them for getaddrinfo); dnsmasq(8),
which answers with all addresses of ``host-record`` and ``address`` lines for a name.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from openstack_prep.base.fields import is_address

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
        left = [each for each in self.names if each.lower() not in names]
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
        addresses = [each for each in words if is_address(each)]
        return tuple(each for each in words if not is_address(each) and not each.isdigit()), tuple(addresses)
    return (), ()


def conflicts(lines: Sequence[str], wanted: Wanted, form: Form) -> Iterator[tuple[NameEntry, list[str]]]:
    """Yield lines that give a wanted name another address, and these names as ``wanted`` has them."""
    for entry in read_entries(lines, form):
        names = [each.lower() for each in entry.names]
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
