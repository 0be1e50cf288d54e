"""Resolve names as this machine does: by a hosts file, then by the system's resolver, within a time limit."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.given_file import read_bytes, unreadable
from openstack_prep.dns.entries import NameEntry, read_entries

HOSTS = Path("/etc/hosts")
SECONDS = 5.0
"""Seconds that the system's resolver may take; without an answer it would retry for half a minute."""


@dataclass
class ResolvedName:
    """The addresses of one name."""

    addresses: tuple[str, ...] = ()
    """IPv4 and IPv6 addresses, sorted; empty if the name does not resolve."""
    source: str = ""
    """The lines of the hosts file, such as hosts:2, or "the resolver"."""
    file: Path = HOSTS
    """The hosts file that has the name, or where it can be written."""
    late: bool = False
    """Whether the system's resolver did not answer in time."""
    done: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)


def resolve(names: Iterable[str], *, hosts: Path | None = None, seconds: float = SECONDS) -> dict[str, ResolvedName]:
    """Return an answer per name, resolved in parallel; raises SpecError if the hosts file cannot be read."""
    listed = read_hosts(hosts) if hosts else {}
    file = hosts or HOSTS
    found = {name: _listed(file, listed.get(name.lower(), [])) for name in names}
    asked = {name: answer for name, answer in found.items() if not answer.addresses}
    for name, answer in asked.items():
        threading.Thread(target=_ask, args=(name, answer), daemon=True).start()  # getaddrinfo cannot be cancelled
    deadline = time.monotonic() + seconds
    for name, answer in asked.items():
        if not answer.done.wait(max(0.0, deadline - time.monotonic())):
            found[name] = ResolvedName(source="the resolver", file=file, late=True)
    return found


def _listed(file: Path, entries: Sequence[NameEntry]) -> ResolvedName:
    addresses = (address for entry in entries for address in entry.addresses)
    return ResolvedName(tuple(addresses), ", ".join(f"{file}:{entry.number}" for entry in entries), file)


def _ask(name: str, answer: ResolvedName) -> None:
    answer.source = "the resolver"
    try:
        listed = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):  # unknown or invalid name, or no resolver
        listed = []
    answer.addresses = tuple(sorted({str(each[4][0]) for each in listed}))
    answer.done.set()


def read_hosts(path: Path) -> Mapping[str, list[NameEntry]]:
    """Return the lines of a hosts file that give each name addresses, by lowercase name; raises SpecError."""
    found: dict[str, list[NameEntry]] = {}
    for entry in _entries(path):
        for name in {each.lower() for each in entry.names}:
            found.setdefault(name, []).append(entry)
    return found


def _entries(path: Path) -> list[NameEntry]:
    try:
        text = read_bytes(path).decode("utf-8", "surrogateescape")
    except OSError as error:
        mistake = Mistake(str(path), unreadable(error), "give a hosts file")
        raise SpecError([mistake]) from error
    return list(read_entries(text.splitlines(), "hosts"))
