"""What both forms of a report hold, by their schemas."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.base.key import Key
from openstack_prep.reports.findings import Findings, Place, junit, of_drift, of_warning, placed, sarif
from openstack_prep.verbs.audit import Drift, DriftCode
from tests.unit.reports.schemas import read_junit, read_sarif

STARTED = datetime(2026, 11, 23, 17, 0, 0, tzinfo=UTC)
HOSTILE = "\x00\x1b[31m\u202e]]>&\ud800\ufffe<x>\r\n{0} [a](https://example.com)"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.yaml").touch()
    return tmp_path


def findings(*found: Diagnostic, ended: bool = False, subjects: tuple[str, ...] = ("spec.yaml",)) -> Findings:
    return Findings(
        command="check",
        subjects=subjects,
        found=placed(found, subjects[0] if len(subjects) == 1 else "", ended),
        exit_code=1,
        started=STARTED,
        ended=STARTED + timedelta(seconds=2),
    )


def results(*found: Diagnostic) -> list[dict[str, Any]]:
    return list(read_sarif(sarif(findings(*found)))["results"])


SHORT = Diagnostic(code="quota.short", where="quota.cores", what="40 are needed, 12 are free", why="w", fix="f")
PLACED = Diagnostic(code="spec.unknown-key", where="spec.yaml:7: flavors[0].vcpu", what="unknown key")
OK = Diagnostic(status=DiagnosticStatus.OK, where="port", what="exists")
LOOSE = Diagnostic(code="dns.missing", status=DiagnosticStatus.WARNING, where="name", what="has no address")
HIDDEN = Diagnostic(code="access.denied", status=DiagnosticStatus.UNKNOWN, where="routers", what="cannot be read")


def test_a_place_is_a_file_a_line_and_a_field(folder: Path) -> None:
    (folder / "a:1: b.yaml").touch()
    assert Place.of("spec.yaml:7: a.b") == Place("spec.yaml", 7, "a.b")
    assert Place.of("spec.yaml:7") == Place("spec.yaml", 7, "")
    assert Place.of("spec.yaml: a") == Place("spec.yaml", 1, "a")
    assert Place.of("a:1: b.yaml:9: c:3: d") == Place("a:1: b.yaml", 9, "c:3: d")
    assert Place.of("quota.cores", "spec.yaml") == Place("spec.yaml", 1, "quota.cores")
    assert Place.of("gone.yaml:7: a", "missing.yaml") == Place("", 1, "gone.yaml:7: a")
    assert Place.of("\0:1: a", "x" * 9999) == Place("", 1, "\0:1: a")


def test_levels_and_rules_follow_the_diagnostics() -> None:
    run = read_sarif(sarif(findings(SHORT, PLACED, OK, LOOSE, HIDDEN)))
    assert [(each["ruleId"], each["level"]) for each in run["results"]] == [
        ("quota.short", "error"),
        ("spec.unknown-key", "error"),
        ("dns.missing", "warning"),
        ("access.denied", "note"),
    ]
    rules = run["tool"]["driver"]["rules"]
    assert [rules[each["ruleIndex"]]["id"] for each in run["results"]] == [each["ruleId"] for each in run["results"]]
    assert all(each["help"]["text"].startswith(each["shortDescription"]["text"]) for each in rules)
    regions = [each["locations"][0]["physicalLocation"]["region"]["startLine"] for each in run["results"]]
    assert regions == [1, 7, 1, 1]


def test_a_junit_report_has_one_test_per_finding() -> None:
    suite = read_junit(junit(findings(SHORT, PLACED, OK, LOOSE, HIDDEN)))
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5",
        "failures": "2",
        "errors": "0",
        "skipped": "1",
    }
    assert [[child.tag for child in case] for case in suite] == [
        ["failure"],
        ["failure"],
        [],
        ["system-out"],
        ["skipped"],
    ]
    assert suite.findtext("./testcase[2]/failure") == "spec.yaml:7: flavors[0].vcpu: unknown key"
    assert suite.find("./testcase[2]").attrib["name"] == "spec.unknown-key: flavors[0].vcpu"  # type: ignore[union-attr]


def test_subjects_without_findings_are_tests_that_passed(folder: Path) -> None:
    (folder / "good.yaml").touch()
    suite = read_junit(junit(findings(PLACED, subjects=("spec.yaml", "good.yaml"))))
    assert [(case.get("classname"), len(case)) for case in suite] == [("spec.yaml", 1), ("good.yaml", 0)]
    gone = Diagnostic(code="spec.unreadable", where="gone.yaml", what="cannot be read")
    (case,) = read_junit(junit(findings(gone, subjects=("spec.yaml", "gone.yaml"))))[:1]
    assert case.get("classname") == "gone.yaml"
    nothing = findings()
    assert [case.get("classname") for case in read_junit(junit(nothing))] == ["spec.yaml"]
    assert read_sarif(sarif(nothing))["results"] == []


def test_a_run_without_a_result_is_an_error_and_not_successful() -> None:
    down = Diagnostic(code="cloud.unreachable", where="", what="http://cloud/v3 does not answer")
    ended = findings(down, ended=True)
    run = read_sarif(sarif(ended))
    (invocation,) = run["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (False, 1)
    assert invocation["toolExecutionNotifications"][0]["descriptor"] == {"id": "cloud.unreachable"}
    assert [each["ruleId"] for each in run["results"]] == ["cloud.unreachable"]
    (case,) = read_junit(junit(ended))
    assert [child.tag for child in case] == ["error"]


def test_fingerprints_do_not_follow_lines_and_values() -> None:
    def prints(*found: Diagnostic) -> list[str]:
        return [each["partialFingerprints"]["primaryLocationLineHash"] for each in results(*found)]

    moved = Diagnostic(code=PLACED.code, where="spec.yaml:99: flavors[0].vcpu", what="unknown key, as before")
    other = Diagnostic(code=PLACED.code, where="spec.yaml:7: flavors[1].vcpu", what="unknown key")
    assert prints(PLACED) == prints(moved)
    assert len({*prints(PLACED, moved, other)}) == 3


def test_names_of_others_break_neither_form() -> None:
    hostile = Diagnostic(code="quota.short", where=f"port/{HOSTILE}", what=HOSTILE, why=HOSTILE, fix=HOSTILE)
    (result,) = results(hostile)
    text = result["message"]["text"]
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "{{0}} \\[a](https://example.com)" in text
    (case,) = read_junit(junit(findings(hostile)))
    (failure,) = case
    assert "]]>&" in str(failure.text)
    assert "<x>" in str(failure.get("message"))


def test_paths_are_relative_to_the_working_directory_and_escaped(folder: Path, tmp_path_factory: Any) -> None:
    odd, outside = "a b%ü?#:.yaml", tmp_path_factory.mktemp("outside") / "c d.yaml"
    (folder / odd).touch()
    outside.touch()
    uris = [
        each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for each in results(
            Diagnostic(code="quota.short", where=f"{folder}/{odd}:3: x", what="w"),
            Diagnostic(code="quota.short", where=f"{outside}:3: x", what="w"),
        )
    ]
    assert uris[0] == "a%20b%25%C3%BC%3F%23%3A.yaml"
    assert uris[1].startswith("file:///")
    assert uris[1].endswith("/c%20d.yaml")


def test_drift_has_the_line_of_its_resource() -> None:
    places = {Key("network", "nodes"): "spec.yaml:4"}
    declared = Drift(resource="network/nodes", code=DriftCode.CHANGED, what="plan: update")
    unknown = Drift(resource="network/other", code=DriftCode.UNMANAGED, what="1 is not managed by any spec")
    found = [of_drift(each, places) for each in (declared, unknown)]
    assert [(each.code, each.where) for each in found] == [
        ("drift.changed", "spec.yaml:4: network/nodes"),
        ("drift.unmanaged", "network/other"),
    ]


def test_a_warning_keeps_its_place() -> None:
    found = of_warning("spec.yaml:4: rke_cluster/a: cilium.version: 1.99 is unknown")
    assert (found.where, found.what) == ("spec.yaml:4", "rke_cluster/a: cilium.version: 1.99 is unknown")
