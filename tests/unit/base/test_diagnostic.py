from __future__ import annotations

from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus, by_weight, errors, summary
from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.style import Style

SHORT = Diagnostic(code="quota.short", where="quota.cores", what="24 are needed, 23 are free", why="so", fix="do")
WARNING = Diagnostic(code="dns.missing", status=DiagnosticStatus.WARNING, where="name", what="x")
UNKNOWN = Diagnostic(code="access.denied", status=DiagnosticStatus.UNKNOWN, where="machines", what="x")
OK = Diagnostic(status=DiagnosticStatus.OK, where="port", what="api-port")


def test_how_it_is_printed() -> None:
    assert str(SHORT).splitlines() == [
        "error: quota.cores: 24 are needed, 23 are free [quota.short]",
        "  why: so",
        "  fix: do",
    ]
    assert str(OK) == "ok: port: api-port"


def test_as_data() -> None:
    assert SHORT.data() == {
        "code": "quota.short",
        "status": "error",
        "where": "quota.cores",
        "what": "24 are needed, 23 are free",
        "why": "so",
        "fix": "do",
    }
    assert type(SHORT.data()["status"]) is str  # YAML's dumper takes no others


def test_errors_come_first_and_duplicates_are_removed() -> None:
    assert by_weight([OK, UNKNOWN, WARNING, SHORT, WARNING]) == [SHORT, WARNING, UNKNOWN, OK]
    assert errors([OK, SHORT, WARNING]) == [SHORT]


def test_summary() -> None:
    assert summary([OK, UNKNOWN, UNKNOWN, WARNING, SHORT, SHORT]) == "2 errors, 1 warning, 2 unknown"
    assert summary([OK]) == summary([]) == "no problems found"


def test_mistakes_of_a_file_are_listed_by_line() -> None:
    places = ["b.yaml:3: name", "a.yaml:12", "b.yaml:2, 5", "project/x", "a.yaml:2: path", "user/y:1"]
    error = SpecError([Mistake(place, "is wrong") for place in places])
    shown = ["b.yaml:2, 5", "b.yaml:3: name", "a.yaml:2: path", "a.yaml:12", "project/x", "user/y:1"]
    assert [diagnostic.where for diagnostic in error.diagnostics] == shown


def test_on_a_terminal_all_but_the_fix_is_wrapped() -> None:
    found = Diagnostic(
        where="quota.cores", what="word " * 20 + "end", why="because " * 19 + "so", fix="openstack " * 19 + "x"
    )
    lines = found.render(Style(width=80)).splitlines()
    assert [line for line in lines if len(line) > 80] == [f"  fix: {found.fix}"]
    assert " ".join(" ".join(lines).split()) == " ".join(str(found).split())
