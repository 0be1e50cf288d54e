"""What is documented of the codes of diagnostics."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from openstack_prep import extensions
from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.base.formats.foreign_text import shipped_yaml

REPORTS = "openstack_prep.reports"
COMMANDS = ("openstack ", "openstack-prep ", "kubectl ", "oc ", "unset ", "export ")


def documented(
    *,
    code: str,
    where: str,
    what: str,
    why: str | None = None,
    fix: str | None = None,
    status: DiagnosticStatus = DiagnosticStatus.ERROR,
) -> Diagnostic:
    """Return a diagnostic with the ``why`` and ``fix`` that codes.yaml has for its code, as far as none are given."""
    entry = _entries()[code]
    return Diagnostic(
        code=code,
        where=where,
        what=what,
        why=entry["why"] if why is None else why,
        fix=entry["fix"] if fix is None else fix,
        status=status,
    )


def read_codes() -> dict[str, Mapping[str, str]]:
    """Return what is documented of each code, sorted by code, in sentences."""
    return {code: {part: _sentence(text) for part, text in entry.items()} for code, entry in sorted(_entries().items())}


@cache
def _entries() -> Mapping[str, Mapping[str, str]]:
    found: dict[str, Mapping[str, str]] = {}
    for package in (REPORTS, *(extension.codes for extension in extensions.installed() if extension.codes)):
        found |= shipped_yaml(package, "codes.yaml")
    return found


def _sentence(text: str | None) -> str:
    """Return a text as a sentence, if it is a clause that diagnostics say; commands stay as they are."""
    if not text:  # of a package of somebody else
        return ""
    if text.endswith(".") or text.startswith(COMMANDS):
        return text
    return f"{text[0].upper()}{text[1:]}."
