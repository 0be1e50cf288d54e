"""Resolve names as this machine does: by a hosts file, then by the system's resolver, within a time limit."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.fields import is_address
from openstack_prep.base.given_file import read_bytes, unreadable

SECONDS = 5.0
"""Seconds that the system's resolver may take; without an answer it would retry for half a minute."""


@dataclass
class Answer:
    """The addresses of one name."""

    addresses: tuple[str, ...] = ()
    """IPv4 and IPv6 addresses, sorted; empty if the name does not resolve."""
    source: str = ""
    """Path of the hosts file, or "the resolver"."""
    late: bool = False
    """Whether the system's resolver did not answer in time."""
    done: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)


def resolve(names: Iterable[str], *, hosts: Path | None = None, seconds: float = SECONDS) -> dict[str, Answer]:
    """Return an answer per name, resolved in parallel; raises SpecError if the hosts file cannot be read."""
    listed = read_hosts(hosts) if hosts else {}
    found = {name: Answer(listed.get(name.lower(), ()), str(hosts)) for name in names}
    asked = {name: found.setdefault(name, Answer()) for name, answer in found.items() if not answer.addresses}
    for name, answer in asked.items():
        threading.Thread(target=_ask, args=(name, answer), daemon=True).start()  # getaddrinfo cannot be cancelled
    deadline = time.monotonic() + seconds
    for name, answer in asked.items():
        if not answer.done.wait(max(0.0, deadline - time.monotonic())):
            found[name] = Answer(source="the resolver", late=True)
    return found


def _ask(name: str, answer: Answer) -> None:
    answer.source = "the resolver"
    try:
        listed = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):  # unknown or invalid name, or no resolver
        listed = []
    answer.addresses = tuple(sorted({str(each[4][0]) for each in listed}))
    answer.done.set()


def read_hosts(path: Path) -> Mapping[str, tuple[str, ...]]:
    """Return the addresses of each name in a hosts file, by lowercase name."""
    try:
        text = read_bytes(path).decode("utf-8", "surrogateescape")
    except OSError as error:
        mistake = Mistake(str(path), unreadable(error), "give a hosts file")
        raise SpecError([mistake]) from error
    found: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        address, *names = line.partition("#")[0].split() or [""]
        for name in map(str.lower, names):
            if is_address(address):
                found[name] = (*found.get(name, ()), address)
    return found
