"""What an analysis found: one shape for ``check``, ``verify`` and ``rke mesh``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Protocol, TypeVar

from openstack_prep.base.raw import Values
from openstack_prep.base.secret_forms import without_logins
from openstack_prep.base.style import PLAIN, Style, indented


class DiagnosticStatus(StrEnum):
    """What a diagnostic says of its subject.

    ``ok``: it works.  ``warning``: it may fail.  ``error``: it fails.  ``unknown``: these credentials may not read
    what decides it, or the input does not say it.
    """

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"
    UNKNOWN = "unknown"


ORDER = (DiagnosticStatus.ERROR, DiagnosticStatus.WARNING, DiagnosticStatus.UNKNOWN, DiagnosticStatus.OK)


@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """One thing that was examined: what it is, what is wrong with it, why that matters and how to fix it."""

    code: str = ""
    """Stable name of the problem, such as quota.short, for ``openstack-prep explain``; empty when the status is ok."""
    status: DiagnosticStatus = DiagnosticStatus.ERROR
    """How bad it is."""
    where: str
    """What it is about: a field of install-config.yaml such as platform.openstack.apiFloatingIP, or quota.cores."""
    what: str
    """What is wrong, with the value."""
    why: str = ""
    """What happens because of it."""
    fix: str = ""
    """What to do: a command where possible."""

    def __post_init__(self) -> None:
        for name in ("where", "what", "why", "fix"):
            object.__setattr__(self, name, without_logins(getattr(self, name)))

    def __str__(self) -> str:
        return self.render()

    def render(self, style: Style = PLAIN) -> str:
        """Return it as lines, which fit a terminal except for the fix: a command that is broken is two commands."""
        lines = [f"{self.status}: {self.where}: {self.text}", *(f"  {line}" for line in self.advice)]
        fix = f"  fix: {self.fix}"
        return "\n".join(indented(line) if line == fix else style.wrapped(indented(line), 4) for line in lines)

    @property
    def text(self) -> str:
        """What is wrong, with the code to look up."""
        return f"{self.what} [{self.code}]" if self.code else self.what

    @property
    def advice(self) -> list[str]:
        """Lines that follow: why it matters and how to fix it."""
        return [f"{label}: {text}" for label, text in (("why", self.why), ("fix", self.fix)) if text]

    @property
    def line(self) -> str:
        """Place, problem, fix and code, for an error of a command."""
        named = f"{self.where}: {self.what}" if self.where else self.what
        return indented(f"{named}; {self.fix} [{self.code}]" if self.fix else f"{named} [{self.code}]")

    def data(self) -> Values:
        """Return it as plain data for JSON."""
        return asdict(self) | {"code": str(self.code), "status": self.status.value}


def by_weight(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return diagnostics without duplicates, errors first."""
    return sorted(dict.fromkeys(diagnostics), key=lambda each: ORDER.index(each.status))


class Located(Protocol):
    """Something about a place."""

    @property
    def where(self) -> str: ...


L = TypeVar("L", bound=Located)


def by_line(found: Iterable[L]) -> list[L]:
    """Sort by the lines of files; files, and what has no line, remain in the order found."""
    files: dict[str, int] = {}

    def place(located: L) -> tuple[int, int]:
        match = re.match(r"(.+?):([0-9]+)(?![^:, ])", located.where)
        file, line = (match[1], int(match[2])) if match else ("", 0)
        return files.setdefault(file, len(files)), line

    return sorted(found, key=place)


def errors(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return those that are errors."""
    return [diagnostic for diagnostic in diagnostics if diagnostic.status is DiagnosticStatus.ERROR]


def summary(diagnostics: Iterable[Diagnostic]) -> str:
    """Return how many errors, warnings and unknown results are among them, or "no problems found"."""
    statuses = [diagnostic.status for diagnostic in diagnostics]
    counts = {
        "error": statuses.count(DiagnosticStatus.ERROR),
        "warning": statuses.count(DiagnosticStatus.WARNING),
        "unknown": statuses.count(DiagnosticStatus.UNKNOWN),
    }
    words = [_count(number, word) for word, number in counts.items() if number]
    return ", ".join(words) or "no problems found"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 or word == 'unknown' else 's'}"
