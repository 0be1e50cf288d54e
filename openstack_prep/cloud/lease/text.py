"""Leases as text: who is at work on which spec, within the description of a security group. Pure functions.

The text is a block such as ``[openstack-prep 3 ENTRY ENTRY]``; the rest of the description is kept. The number counts
the leases of specs that declare the project. An entry is spec, run and beat (4, 4 and 1 characters, without spaces),
then ``.SINCE.PLACE.PID.START`` and ``.WHO`` if there is room.
"""

from __future__ import annotations

import base64
import hashlib
import re
import time
from dataclasses import dataclass, replace

LIMIT = 255  # characters; Neutron 29.0.0, extensions/standardattrdescription.py (DESCRIPTION_FIELD_SIZE)
WHO = 40  # characters
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_BLOCK = re.compile(r" ?\[openstack-prep (\d{1,9})((?: [^\s\[\]]+)*)\]")
_ENTRY = re.compile(
    r"(?P<spec>[\w-]{4})(?P<run>[\w-]{4})(?P<beat>[\w-])"
    r"(?:\.(?P<since>\d{1,12})\.(?P<place>[\w-]*)\.(?P<pid>\d{1,9})\.(?P<start>[\w-]*)(?:\.(?P<who>[\w@.-]+))?)?",
    re.ASCII,
)
BARE, PROCESS, WHOLE = range(3)
"""How much of the entries is written: only what excludes others; also the process; also its user and host."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One run at work on one spec of the project.

    ``beat`` counts its renewals. ``since`` is in seconds since 1970 by the holder's clock, for people only.
    """

    spec: str
    run: str
    beat: int = 0
    since: int = 0
    place: str = ""
    """Digest of the holder's host and process namespace; empty if unknown."""
    pid: int = 0
    start: str = ""
    """Digest of the start time of that process."""
    who: str = ""
    """User and host, without characters that would end the entry."""

    def text(self, level: int) -> str:
        words = [f"{self.spec}{self.run}{_ALPHABET[self.beat]}"]
        if level >= PROCESS and self.since:
            words += [str(self.since), self.place, str(self.pid), self.start]
            words += [self.who] if level >= WHOLE and self.who else []
        return ".".join(words)

    def renewed(self) -> Entry:
        return replace(self, beat=(self.beat + 1) % len(_ALPHABET))

    def __str__(self) -> str:
        """Return a text for people that identifies the run, as far as there was room for it."""
        if not self.since:
            return "another run"
        written = time.localtime(self.since)
        day = "" if abs(time.time() - self.since) < 12 * 3600 else "%Y-%m-%d "
        return f"{self.who or 'another run'} (pid {self.pid}) since {time.strftime(f'{day}%H:%M', written)}"


@dataclass(frozen=True, kw_only=True)
class Description:
    """A parsed description: foreign text, and the leases within it."""

    before: str = ""
    after: str = ""
    count: int = 0
    entries: tuple[Entry, ...] = ()
    unknown: tuple[str, ...] = ()
    """Entries that this version cannot read; they are kept."""

    @classmethod
    def read(cls, text: str | None) -> Description:
        found = _BLOCK.search(text or "")
        if found is None or text is None:
            return cls(before=text or "")
        words = [(word, _entry(word)) for word in found[2].split()]
        return cls(
            before=text[: found.start()],
            after=text[found.end() :],
            count=int(found[1]),
            entries=tuple(entry for _, entry in words if entry),
            unknown=tuple(word for word, entry in words if not entry),
        )

    def write(self) -> str | None:
        """Return the text, with as much of the entries as fits; None if even the shortest form does not fit."""
        if not (self.count or self.entries or self.unknown):
            return self.before + self.after
        for level in (WHOLE, PROCESS, BARE):
            words = [str(self.count), *(each.text(level) for each in self.entries), *self.unknown]
            text = f"{self.before}{' ' if self.before else ''}[openstack-prep {' '.join(words)}]{self.after}"
            if len(text) <= LIMIT:
                return text
        return None

    def of_spec(self, spec: str) -> Entry | None:
        """Return the lease on a spec, given by its digest."""
        return next((each for each in self.entries if each.spec == spec), None)

    def of_run(self, entry: Entry) -> Entry | None:
        """Return the lease of a run in this description."""
        return next((each for each in self.entries if (each.spec, each.run) == (entry.spec, entry.run)), None)

    def holding(self, entry: Entry, *, counted: bool = False) -> Description:
        """Return the same description with a lease, replacing any other on that spec."""
        others = tuple(each for each in self.entries if each.spec != entry.spec)
        return replace(self, entries=(*others, entry), count=self.count + counted)

    def without(self, entry: Entry) -> Description:
        """Return the same description without the lease of a run; another run's lease on the same spec is kept."""
        left = tuple(each for each in self.entries if (each.spec, each.run) != (entry.spec, entry.run))
        return replace(self, entries=left)


def strip(text: str | None) -> str:
    """Return a description without leases."""
    return _BLOCK.sub("", text or "", count=1)


def keep(old: str | None, new: str) -> str:
    """Return a new description with the leases of the old one, as far as there is room."""
    return replace(Description.read(old), before=new, after="").write() or new


def digest(text: str, characters: int = 4) -> str:
    """Return a short digest of a text, of letters, digits, hyphen and underscore."""
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode()[:characters]


def plain(who: str) -> str:
    """Return a name without characters that would end an entry."""
    return re.sub(r"[^\w@.-]", "_", who, flags=re.ASCII)[:WHO]


def _entry(word: str) -> Entry | None:
    found = _ENTRY.fullmatch(word)
    if found is None:
        return None
    return Entry(
        spec=found["spec"],
        run=found["run"],
        beat=_ALPHABET.index(found["beat"]),
        since=int(found["since"] or 0),
        place=found["place"] or "",
        pid=int(found["pid"] or 0),
        start=found["start"] or "",
        who=found["who"] or "",
    )
