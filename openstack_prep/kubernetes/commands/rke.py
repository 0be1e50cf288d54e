"""``rke check``: find what RKE2 and RKE silently ignore in a file."""

from __future__ import annotations

import argparse

from openstack_prep.base.errors import ConfigError, Mistake, SpecError
from openstack_prep.base.raw import Raw
from openstack_prep.cli.output import error_data, judge_reports, print_result, report, warn
from openstack_prep.kubernetes import reading, rke2_rules
from openstack_prep.kubernetes.versions import minor_of, version_warnings
from openstack_prep.reports.findings import of_warning


def run(options: argparse.Namespace) -> int:
    judge_reports(options)
    form: reading.Form = options.rke2 or "cluster.yml"
    mistakes: list[Mistake] = []
    valid: list[str] = []
    servers: list[Raw] = []
    if options.kubernetes_version and form == "cluster.yml":
        raise ConfigError("--kubernetes-version requires --rke2: a cluster.yml has kubernetes_version")
    warnings = version_warnings(options.kubernetes_version)
    for warning in warnings:
        warn(warning)
    minor = minor_of(options.kubernetes_version)
    for path in options.files:
        try:
            content = reading.read(path, form, minor)
        except SpecError as unreadable:
            mistakes += unreadable.mistakes
            continue
        mistakes += content.mistakes
        for warning in (*reading.rancher_note(content), *reading.warnings(content.data, form)):
            warnings.append(f"{path}: {warning}")
            warn(f"{path}: {warning}")
        if not content.mistakes:
            valid.append(str(path))
        servers += [content.data] if form == "server" else []
    for warning in rke2_rules.warnings_of_servers(servers):
        warnings.append(warning)
        warn(warning)
    error = SpecError(mistakes) if mistakes else None
    data = {
        "files": list(map(str, options.files)),
        "valid": error is None,
        "errors": error_data(error) if error else [],
        "warnings": warnings,
        "exit_code": error.exit_code if error else 0,
    }
    print_result(options, "\n".join(f"{path}: valid {reading.NAMES[form]}" for path in valid), data)
    findings = [*(error.diagnostics if error else ()), *map(of_warning, warnings)]
    invalid = (path for path in options.files if str(path) not in valid)
    code = report(options, findings, error.exit_code if error else 0, invalid=invalid)
    if error:
        raise error
    return code
