"""The options of commands whose findings are also written for the pipeline that runs them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from openstack_prep.base.errors import ConfigError, Mistaken, PrepError

if TYPE_CHECKING:
    from openstack_prep.base.diagnostic import Diagnostic
    from openstack_prep.reports.findings import Finding

FORMS = {"junit": "JUnit XML", "sarif": "SARIF 2.1.0"}


def add_reports(parser: argparse.ArgumentParser, subjects: str) -> None:
    """Add the options; ``subjects`` is the one that names the examined files."""
    for form, name in FORMS.items():
        help_text = f"also write the findings as {name}, for a pipeline"
        parser.add_argument(f"--{form}", type=Path, metavar="FILE", help=help_text)
    parser.set_defaults(subjects=subjects, started=datetime.now(UTC))


def judge_reports(options: argparse.Namespace) -> None:
    """Refuse files for reports, also those of --html, before the work is done; raises ConfigError."""
    paths = _paths(options)
    if not paths:
        return
    from openstack_prep.reports import files

    problems: dict[str, str] = {}
    taken = dict.fromkeys(map(os.path.realpath, _subjects(options)), "an input of this command")
    for form, path in paths.items():
        real = os.path.realpath(path)
        try:
            if real in taken:
                what = f"--{form}: {path} is {taken[real]}, which would be replaced; choose another file"
                raise ConfigError(what)
            files.judge(form, path)
        except ConfigError as error:
            problems[form] = str(error)
        taken.setdefault(real, f"the file of --{form}")
    if problems:
        options.reported = frozenset(problems)
        raise ConfigError("\n".join(problems.values()))


def report(
    options: argparse.Namespace,
    diagnostics: Iterable[Diagnostic],
    code: int,
    subjects: Sequence[object] | None = None,
) -> int:
    """Write the files that the options name, and return the exit code; raises PrepError."""
    if _wanted(options):
        from openstack_prep.reports.findings import placed

        names = _subjects(options) if subjects is None else tuple(map(str, subjects))
        _write(options, placed(diagnostics, names[0] if len(names) == 1 else ""), code, names)
    return code


def report_error(options: argparse.Namespace, error: PrepError, code: int) -> None:
    """Write the files for a run that an error has ended before they were written; raises PrepError."""
    if not _wanted(options) or "reported" in options:
        return
    from openstack_prep.reports.findings import placed

    names = _subjects(options)
    found = placed(error.diagnostics, names[0] if len(names) == 1 else "", not isinstance(error, Mistaken))
    _write(options, found, code, names)


def _wanted(options: argparse.Namespace) -> bool:
    return any(form in FORMS for form in _paths(options))


def _paths(options: argparse.Namespace) -> dict[str, Path]:
    """Return the files that the options name, by the form of the report."""
    return {form: path for form in (*FORMS, "html") if (path := getattr(options, form, None))}


def _subjects(options: argparse.Namespace) -> tuple[str, ...]:
    given = getattr(options, getattr(options, "subjects", "spec"))
    return tuple(map(str, given if isinstance(given, list) else filter(None, [given])))


def _write(options: argparse.Namespace, found: tuple[Finding, ...], code: int, subjects: tuple[str, ...]) -> None:
    from openstack_prep.reports import files
    from openstack_prep.reports.findings import Findings
    from openstack_prep.reports.junit import junit
    from openstack_prep.reports.sarif import sarif

    options.reported = frozenset(FORMS)
    findings = Findings(
        command=options.called,
        subjects=subjects,
        found=found,
        exit_code=code,
        started=options.started,
        ended=datetime.now(UTC),
    )
    for form, path in _paths(options).items():
        if form in FORMS:
            files.write(form, path, {"junit": junit, "sarif": sarif}[form](findings))
