from __future__ import annotations

from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus, by_weight, errors, summary

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
