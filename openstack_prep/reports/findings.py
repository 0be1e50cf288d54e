"""What a run has found, and where; written as JUnit XML and as SARIF."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.base.key import Key, labels
from openstack_prep.base.raw import Values
from openstack_prep.base.style import indented, printable
from openstack_prep.reports.codes import read_codes
from openstack_prep.version import __version__

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
        return any(finding.ended_the_run for finding in self.found)

    @property
    def without(self) -> Iterator[str]:
        """Yield the subjects without a finding, if the run had a result."""
        if self.failed:
            return
        touched = {finding.place.file for finding in self.found} | {*self.invalid}
        if len(self.subjects) == 1 and self.found:
            return
        yield from (subject for subject in self.subjects if subject not in touched)


def placed(diagnostics: Iterable[Diagnostic], subject: str, ended_the_run: bool = False) -> tuple[Finding, ...]:
    """Return diagnostics with their places; those about no file belong to the subject."""
    return tuple(Finding(diagnostic, Place.of(diagnostic.where, subject), ended_the_run) for diagnostic in diagnostics)


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


# --- findings as JUnit XML, which GitLab, Jenkins and others show as tests ---
#
# Source: junit-10.xsd of Jenkins' xunit-plugin, to which the files conform; it has no attribute for a line.


def junit(findings: Findings) -> str:
    """Return a document with one test per finding, and one that passed per subject without any."""
    suites = Element("testsuites", name="openstack-prep")
    suite = SubElement(suites, "testsuite", name=findings.title)
    for finding in findings.found:
        _add_finding(suite, finding, findings)
    for subject in findings.without:
        _add_case(suite, subject, findings.command)
    seconds = (findings.ended - findings.started).total_seconds()
    counts = {tag: str(len(suite.findall(f"./testcase/{tag}"))) for tag in ("failure", "error", "skipped")}
    totals = {"tests": str(len(suite)), "failures": counts["failure"], "errors": counts["error"]}
    for element in (suites, suite):
        element.attrib |= totals | {"time": f"{max(0.0, seconds):.3f}"}
    suite.attrib |= {"skipped": counts["skipped"], "timestamp": findings.started.strftime("%Y-%m-%dT%H:%M:%S")}
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def _add_case(suite: Element, subject: str, name: str) -> Element:
    return SubElement(suite, "testcase", classname=printable(subject), name=name, time="0.000")


def _add_finding(suite: Element, finding: Finding, findings: Findings) -> None:
    found, place = finding.diagnostic, finding.place
    named = (each for each in findings.subjects if each == place.field)  # a file that does not exist
    subject = place.file or next(named, next(iter(findings.subjects), findings.command))
    case = _add_case(suite, subject, finding.title or findings.command)
    text = f"{printable(place.file)}:{place.line}: {finding.text}" if place.file else finding.text
    if found.status is DiagnosticStatus.OK:
        return
    if found.status is DiagnosticStatus.WARNING:  # JUnit knows no warnings
        SubElement(case, "system-out").text = f"warning: {text}"
        return
    tag = "skipped" if found.status is DiagnosticStatus.UNKNOWN else "error" if finding.ended_the_run else "failure"
    SubElement(case, tag, type=str(found.code), message=printable(found.what)).text = text


# --- findings as SARIF 2.1.0, which code scanning of GitHub and others show beside the lines of files ---
#
# Source: Static Analysis Results Interchange Format (SARIF) Version 2.1.0, OASIS, errata 01.


SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {DiagnosticStatus.ERROR: "error", DiagnosticStatus.WARNING: "warning", DiagnosticStatus.UNKNOWN: "note"}
FINGERPRINT = "primaryLocationLineHash"
"""The only fingerprint that GitHub compares; without it, its upload hashes the line, which moves."""


def sarif(findings: Findings) -> str:
    """Return a document with one result per finding that is not ok."""
    found = [finding for finding in findings.found if finding.diagnostic.status in LEVELS]
    codes = sorted({finding.diagnostic.code for finding in found})
    explained = read_codes()
    run = {
        "tool": {
            "driver": {
                "name": "openstack-prep",
                "version": __version__,
                "rules": [_rule(code, explained.get(code, {})) for code in codes],
            }
        },
        "automationDetails": {"id": f"{findings.title}/"},
        "invocations": [_invocation(findings)],
        "columnKind": "unicodeCodePoints",
        "results": list(_results(found, codes)),
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(code: str, explained: Mapping[str, str]) -> Values:
    if not explained:
        return {"id": code}
    lines = (f"{part}: {explained[part]}" for part in ("why", "fix", "source"))
    return {
        "id": code,
        "shortDescription": _message(explained["means"]),
        "fullDescription": _message(f"{explained['means']} {explained['why']}"),
        "help": _message("\n\n".join((explained["means"], *lines))),
    }


def _invocation(findings: Findings) -> Values:
    ended_by = [finding.diagnostic for finding in findings.found if finding.ended_the_run]
    notifications = [
        {"level": "error", "message": _message(indented(diagnostic.what)), "descriptor": {"id": diagnostic.code}}
        for diagnostic in ended_by
    ]
    return {
        "executionSuccessful": not findings.failed,
        "exitCode": findings.exit_code,
        "startTimeUtc": _time(findings.started),
        "endTimeUtc": _time(findings.ended),
    } | ({"toolExecutionNotifications": notifications} if notifications else {})


def _time(when: datetime) -> str:
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _results(found: list[Finding], codes: list[str]) -> Iterator[Values]:
    times: Counter[tuple[str, ...]] = Counter()
    for finding in found:
        code, place = finding.diagnostic.code, finding.place
        identity = (code, _uri(place.file) if place.file else "", place.field)
        times[identity] += 1
        digest = hashlib.sha256("\0".join(identity).encode(errors="surrogatepass")).hexdigest()
        yield {
            "ruleId": code,
            "ruleIndex": codes.index(code),
            "level": LEVELS[finding.diagnostic.status],
            "message": _message(finding.text),
            "locations": [_location(place)],
            "partialFingerprints": {FINGERPRINT: f"{digest[:16]}:{times[identity]}"},
        }


def _location(place: Place) -> Values:
    """Return a place: GitHub shows only those that have a file and a line."""
    found: Values = {}
    if place.file:
        found["physicalLocation"] = {
            "artifactLocation": {"uri": _uri(place.file)},
            "region": {"startLine": max(1, place.line)},
        }
    if place.field:
        found["logicalLocations"] = [{"fullyQualifiedName": printable(place.field)}]
    return found


def _uri(file: str) -> str:
    """Return a path as URI: relative below the working directory, which is the repository's in a pipeline."""
    path = Path(os.path.abspath(file))
    try:
        return quote(os.fsencode(path.relative_to(Path.cwd())))
    except (ValueError, FileNotFoundError):  # elsewhere; or the working directory was deleted
        return "file://" + quote(os.fsencode(path))


_LINK = re.compile(r"\[(?=[^\]]*\]\()")


def _message(text: str) -> Values:
    """Return a message in which nothing is a placeholder (section 3.11.5) or a link (3.11.6) of somebody else."""
    return {"text": _LINK.sub(r"\\[", text.replace("{", "{{").replace("}", "}}"))}
