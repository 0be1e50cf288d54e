"""What a name's address is on this machine: by a hosts file, else as the system resolves it, in bounded time."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.fields import is_address

SECONDS = 5.0
"""How long the system may take; resolvers that nobody answers try for half a minute."""


@dataclass
class Answer:
    """What is known of one name."""

    addresses: tuple[str, ...] = ()
    """IPv4 and IPv6 addresses, sorted; empty when there are none."""
    source: str = ""
    """Path of the hosts file, or "the resolver"."""
    late: bool = False
    """Whether the system did not answer in time."""
    done: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)


def resolve(names: Iterable[str], *, hosts: Path | None = None, seconds: float = SECONDS) -> dict[str, Answer]:
    """Return an answer for each name; all are asked for at once.  Raises SpecError for a file nobody can read."""
    told = read_hosts(hosts) if hosts else {}
    found = {name: Answer(told.get(name.lower(), ()), str(hosts)) for name in names}
    asked = {name: found.setdefault(name, Answer()) for name, answer in found.items() if not answer.addresses}
    for name, answer in asked.items():
        threading.Thread(target=_ask, args=(name, answer), daemon=True).start()  # nobody can end getaddrinfo
    deadline = time.monotonic() + seconds
    for name, answer in asked.items():
        if not answer.done.wait(max(0.0, deadline - time.monotonic())):
            found[name] = Answer(source="the resolver", late=True)
    return found


def _ask(name: str, answer: Answer) -> None:
    answer.source = "the resolver"
    try:
        listed = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):  # no such name, no resolver, or no name at all: no address
        listed = []
    answer.addresses = tuple(sorted({str(each[4][0]) for each in listed}))
    answer.done.set()


def read_hosts(path: Path) -> Mapping[str, tuple[str, ...]]:
    """Return the addresses of each name in a hosts file, names in small letters."""
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        mistake = Mistake(str(path), f"cannot be read: {error.strerror}", "name a hosts file")
        raise SpecError([mistake]) from error
    found: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        address, *names = line.partition("#")[0].split() or [""]
        for name in map(str.lower, names):
            if is_address(address):
                found[name] = (*found.get(name, ()), address)
    return found
