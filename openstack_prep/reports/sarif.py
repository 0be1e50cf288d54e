"""Findings as SARIF 2.1.0, which code scanning of GitHub and others show beside the lines of files.

Source: Static Analysis Results Interchange Format (SARIF) Version 2.1.0, OASIS, errata 01.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from openstack_prep.base.diagnostic import DiagnosticStatus
from openstack_prep.base.raw import Values
from openstack_prep.base.style import indented, printable
from openstack_prep.reports.codes import read_codes
from openstack_prep.reports.findings import Finding, Findings, Place
from openstack_prep.version import __version__

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {DiagnosticStatus.ERROR: "error", DiagnosticStatus.WARNING: "warning", DiagnosticStatus.UNKNOWN: "note"}
FINGERPRINT = "primaryLocationLineHash"
"""The only fingerprint that GitHub compares; without it, its upload hashes the line, which moves."""


def sarif(findings: Findings) -> str:
    """Return a document with one result per finding that is not ok."""
    found = [each for each in findings.found if each.diagnostic.status in LEVELS]
    codes = sorted({each.diagnostic.code for each in found})
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
    ended_by = [each.diagnostic for each in findings.found if each.ended_the_run]
    notifications = [
        {"level": "error", "message": _message(indented(each.what)), "descriptor": {"id": each.code}}
        for each in ended_by
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
    for each in found:
        code, place = each.diagnostic.code, each.place
        identity = (code, _uri(place.file) if place.file else "", place.field)
        times[identity] += 1
        digest = hashlib.sha256("\0".join(identity).encode(errors="surrogatepass")).hexdigest()
        yield {
            "ruleId": code,
            "ruleIndex": codes.index(code),
            "level": LEVELS[each.diagnostic.status],
            "message": _message(each.text),
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
