"""``check``: pre-installation checks."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from openstack_prep.base.codes import Code
from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus, by_weight, summary
from openstack_prep.base.errors import ConfigError, Mistake, SpecError
from openstack_prep.cli.output import error_data, judge_reports, print_result, report, style_of, write_html
from openstack_prep.cloud.connection import connect
from openstack_prep.openshift.check.preflight import HOSTS, Verdict, check_file, preflight
from openstack_prep.openshift.commands.of_cluster import ask_release, find_installer
from openstack_prep.openshift.commands.options import CONFIG
from openstack_prep.openshift.install_config.given import InstallConfigValues
from openstack_prep.openshift.installer import find_file
from openstack_prep.pictures.topology import sources

if TYPE_CHECKING:
    from openstack_prep.pictures.topology.elements import Topology
    from openstack_prep.reports.html import Page


def run(options: argparse.Namespace) -> int:
    judge_reports(options)
    _refuse_options(options)
    paths = [find_file(path, CONFIG.name) for path in options.paths]
    if not options.release:
        _refuse_missing(paths)
    installer = options.installer or find_installer(paths[0], options.release)
    release = options.release or ask_release(installer)
    if options.offline:
        return _check_files(options, paths, release)
    verdict = preflight(paths[0], release, installer=installer, hosts=options.hosts or HOSTS, jobs=options.jobs)
    verdict = _with_choice(verdict, options.os_cloud)
    print_result(options, _text(options, verdict), verdict.data())
    code = report(options, verdict.placed, 1 if verdict.errors else 0, paths)
    look = partial(_project, options, verdict.cloud) if verdict.cloud else None
    return write_html(options, lambda: _page([verdict], [], look), code)


def _refuse_options(options: argparse.Namespace) -> None:
    if options.installer and not options.installer.is_file():
        raise ConfigError(f"--installer: {options.installer} is no file; name the openshift-install")
    if not options.offline and len(options.paths) > 1:
        raise ConfigError("several files can only be checked with --offline; name one file")
    for name in ("hosts", "os_cloud"):
        if options.offline and getattr(options, name):
            raise ConfigError(f"--{name.replace('_', '-')} does not apply with --offline; leave it out")


def _refuse_missing(paths: list[Path]) -> None:
    """Name what is no install-config.yaml; the installer beside it, which tells the release, is not missed then."""
    what, fix = f"cannot be read: {os.strerror(errno.ENOENT)}", "name the file or its folder"
    if missing := [Mistake(str(path), what, fix, code=Code.SPEC_UNREADABLE) for path in paths if not path.exists()]:
        raise SpecError(missing)
    if len(paths) == 1:
        InstallConfigValues(paths[0], without_cloud=True)  # raises SpecError for a file of another form


def _check_files(options: argparse.Namespace, paths: list[Path], release: str) -> int:
    """Check files alone, all of them, also when some cannot be read."""
    verdicts: list[Verdict] = []
    mistakes: list[Mistake] = []
    for path in paths:
        try:
            verdicts.append(check_file(path, release))
        except SpecError as unreadable:
            mistakes += unreadable.mistakes
    error = SpecError(mistakes) if mistakes else None
    code = error.exit_code if error else 1 if any(verdict.errors for verdict in verdicts) else 0
    text = "\n".join(_text(options, verdict, "without its cloud") for verdict in verdicts)
    if len(paths) > 1:
        errors = error_data(error) if error else []
        print_result(options, text, {"files": [verdict.data() for verdict in verdicts], "errors": errors})
    elif verdicts:
        print_result(options, text, verdicts[0].data())
    found = [diagnostic for verdict in verdicts for diagnostic in verdict.placed]
    unread = {*paths} - {verdict.path for verdict in verdicts}
    code = report(options, [*(error.diagnostics if error else ()), *found], code, paths, unread)
    code = write_html(options, lambda: _page(verdicts, mistakes, None), code)
    if error:
        raise error
    return code


def _page(verdicts: list[Verdict], unread: list[Mistake], look: Callable[[], Topology] | None) -> Page:
    found = [each for verdict in verdicts for each in verdict.findings]
    groups = [(str(verdict.path), [one.data() for one in verdict.placed]) for verdict in verdicts]
    if unread:
        groups.append(("Unreadable", [mistake.diagnostic(SpecError.code).data() for mistake in unread]))
    facts = dict.fromkeys(
        fact for verdict in verdicts for fact in (("Release", verdict.release), ("Cloud", verdict.cloud or "none"))
    )
    good = not unread and not any(verdict.errors for verdict in verdicts)
    title = "Check of " + (", ".join(str(verdict.path) for verdict in verdicts) or CONFIG.name)
    from openstack_prep.reports.html_content import page_of_findings  # only for --html

    return page_of_findings(title, summary(found), good, [*facts], groups, look)


def _project(options: argparse.Namespace, cloud: str) -> Topology:
    """Return what is in the project that the installer will use."""
    return sources.of_project(connect(cloud), jobs=options.jobs)


def _with_choice(verdict: Verdict, chosen: str | None) -> Verdict:
    """Return the verdict with a warning about an --os-cloud that the installer will not use."""
    if chosen is None or chosen == verdict.cloud:
        return verdict
    if verdict.cloud is None:
        raise ConfigError("--os-cloud does not apply to the platforms none and external; leave it out")
    chosen_ignored = Diagnostic(
        code="environment.other-cloud",
        where="--os-cloud",
        what=f"is {chosen!r}, but the installer uses {verdict.cloud!r}, which was checked",
        why="the installer follows install-config.yaml, and OS_CLOUD only where that names no cloud",
        fix=f"write platform.openstack.cloud: {chosen}, or leave --os-cloud out",
        status=DiagnosticStatus.WARNING,
    )
    return replace(verdict, findings=tuple(by_weight([*verdict.findings, chosen_ignored])))


def _text(options: argparse.Namespace, verdict: Verdict, where: str = "") -> str:
    """Return the diagnostics as text, with line numbers of the file."""
    where = where or (f"in cloud {verdict.cloud!r}" if verdict.cloud else "without a cloud")
    subject = f"{verdict.path} for {verdict.release} {where}"
    style = style_of(options, sys.stdout)
    lines = [*(each.render(style) for each in verdict.placed), f"{subject}: {summary(verdict.findings)}"]
    return "\n".join(lines)
