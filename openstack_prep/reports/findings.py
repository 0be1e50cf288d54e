"""What a run has found, and where, in the form that the writers of reports share."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.base.key import Key, labels
from openstack_prep.base.style import indented, printable

if TYPE_CHECKING:
    from openstack_prep.verbs.audit import Drift

_END_OF_FILE = re.compile(r"(?::(\d+))?(?:: |$)")


@dataclass(frozen=True)
class Place:
    """Where a finding is: a file, if there is one, and a field or a resource."""

    file: str
    line: int
    field: str

    @classmethod
    def of(cls, where: str, subject: str = "") -> Place:
        """Return the place that ``FILE:LINE: FIELD`` names; without a file that exists, the begin of the subject.

        Names of files may contain what looks like a line: the shortest one that exists counts.
        """
        for end in _END_OF_FILE.finditer(where):
            file = where[: end.start()]
            if os.path.isfile(file):
                return cls(file, int(end[1] or 1), where[end.end() :])
        return cls(subject if os.path.isfile(subject) else "", 1, where)


@dataclass(frozen=True)
class Finding:
    """A diagnostic and its place."""

    diagnostic: Diagnostic
    place: Place
    ended_the_run: bool = False
    """Whether the run ended because of it, without a result."""

    @property
    def title(self) -> str:
        """Return what stays the same from run to run: without line and values."""
        return printable(": ".join(filter(None, (self.diagnostic.code, self.place.field))))

    @property
    def text(self) -> str:
        """Return place, problem, consequence and fix."""
        found = self.diagnostic
        what = ": ".join(filter(None, (self.place.field, found.what)))
        return "\n".join(map(indented, (what, *found.advice)))


@dataclass(frozen=True, kw_only=True)
class Findings:
    """The findings of one run of a command."""

    command: str
    subjects: tuple[str, ...]
    """Files that were examined, or the names of clusters."""
    found: tuple[Finding, ...]
    exit_code: int
    started: datetime
    ended: datetime
    invalid: tuple[str, ...] = ()
    """Subjects with errors, which may be in other files: those that a spec includes."""

    @property
    def title(self) -> str:
        """Return the name under which a pipeline collects the findings of this command."""
        return " ".join(("openstack-prep", self.command))

    @property
    def failed(self) -> bool:
        """Whether the run ended without a result."""
        return any(each.ended_the_run for each in self.found)

    @property
    def without(self) -> Iterator[str]:
        """Yield the subjects without a finding, if the run had a result."""
        if self.failed:
            return
        touched = {each.place.file for each in self.found} | {*self.invalid}
        if len(self.subjects) == 1 and self.found:
            return
        yield from (each for each in self.subjects if each not in touched)


def placed(diagnostics: Iterable[Diagnostic], subject: str, ended_the_run: bool = False) -> tuple[Finding, ...]:
    """Return diagnostics with their places; those about no file belong to the subject."""
    return tuple(Finding(each, Place.of(each.where, subject), ended_the_run) for each in diagnostics)


def of_warning(text: str) -> Diagnostic:
    """Return a warning about a valid setting, a text that begins with its place, as a diagnostic."""
    place = Place.of(text)
    where = f"{place.file}:{place.line}" if place.file else ""
    return Diagnostic(code="spec.warning", status=DiagnosticStatus.WARNING, where=where, what=place.field)


def of_drift(drift: Drift, places: Mapping[Key, str]) -> Diagnostic:
    """Return what ``audit`` has found as a diagnostic, with the place of a resource that the spec declares."""
    names = {name: places[key] for key, name in labels(places).items()}
    where = ": ".join(filter(None, (names.get(drift.resource), drift.resource)))
    return Diagnostic(code=f"drift.{drift.code}", where=where, what=drift.what)
