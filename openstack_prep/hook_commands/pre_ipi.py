"""``pre-ipi``: before ``openshift-install``, apply the spec and check its install-config."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from openstack_prep.base import shell
from openstack_prep.base.errors import PrepError
from openstack_prep.base.style import visible
from openstack_prep.cli.of_spec import variable_words
from openstack_prep.cli.output import print_result
from openstack_prep.cli.reading import reading
from openstack_prep.cli.running import code_of, confirm_plan, execute, open_spec, print_warnings
from openstack_prep.cloud.connection import connect
from openstack_prep.hooks.cleanup import remaining
from openstack_prep.hooks.pre_ipi import checked, examine
from openstack_prep.hooks.reinstallation import advice
from openstack_prep.openshift.check.preflight import HOSTS
from openstack_prep.openshift.cluster import read_metadata
from openstack_prep.openshift.folder import Folder
from openstack_prep.verbs import api

if TYPE_CHECKING:
    from openstack_prep.base.diagnostic import Diagnostic
    from openstack_prep.base.raw import Values
    from openstack_prep.core.plan import Report
    from openstack_prep.hooks import Ready

CREATE = ("openshift-install", "create", "cluster")


def run(options: argparse.Namespace) -> int:
    ready = prepare(options)
    print_result(
        options, "\n".join([ready.report.summary, *map(str, ready.findings)]), _data(ready.report, ready.findings)
    )
    code = code_of(ready.report)
    if ready.ok and options.format == "text":
        print(visible("\n".join(_there(ready, options.jobs) if ready.installed else _next(options, ready))))
    return code or (0 if ready.ok else 1)


def _there(ready: Ready, jobs: int) -> Iterator[str]:
    """Yield what to do in the folder of a cluster, which cannot be used for another one, by what exists of it."""
    folder = Folder(ready.folder)
    yield f"cluster {ready.installed} was installed from {folder.path}, or is being installed: {folder.metadata} exists"
    try:
        infra_id = read_metadata(folder.metadata).infra_id
        left = remaining(connect(ready.cloud, clouds_file=ready.clouds_file), infra_id, jobs=jobs)
    except PrepError as error:
        yield f"what exists of it is unknown: {error}"
        yield f"to start over: {folder.restart_commands}"
        return
    yield from advice(folder, infra_id, left, code=None, masters=1)


def _next(options: argparse.Namespace, ready: Ready) -> Iterator[str]:
    given = {"--os-cloud": options.os_cloud, "--hosts": options.hosts}
    words = [word for option, value in given.items() if value for word in (option, str(value))]
    words += variable_words(options)
    yield "next: " + shell.join(["openstack-prep", "ipi", *words, "--spec", str(options.spec), "--", *CREATE])
    variables = {"OS_CLOUD": ready.cloud, "OS_CLIENT_CONFIG_FILE": str(ready.clouds_file)}
    environment = (f"{name}={shell.quote(value)}" for name, value in variables.items())
    yield " ".join(["or without openstack-prep:", *environment, shell.join([*CREATE, "--dir", str(ready.folder)])])


def prepare(options: argparse.Namespace, *, look: bool = True) -> Ready:
    """Apply the spec after confirmation, and check what the installer will read."""
    cloud, spec = open_spec(options, options.spec)
    hosts = options.hosts or HOSTS
    examine(spec, hosts if look else None)
    with reading(options):
        plan = api.plan(cloud, spec, allow_replace=options.allow_replace, jobs=options.jobs)
    print_warnings(plan, spec)
    confirm_plan(options, plan)
    report = execute(options, cloud, plan)
    try:
        return checked(spec, report, look=look, hosts=hosts, jobs=options.jobs)
    except PrepError as error:  # what apply has done is part of the result
        print_result(options, report.summary, _data(report, error.diagnostics))
        raise


def _data(report: Report, findings: Iterable[Diagnostic]) -> Values:
    return report.data() | {"findings": [each.data() for each in findings]}
