"""The commands before, around and after ``openshift-install``: ``pre-ipi``, ``ipi``, ``post-ipi`` and ``wait-for``."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from openstack_prep.base import shell
from openstack_prep.base.errors import ConfigError, PrepError
from openstack_prep.base.raw import Values
from openstack_prep.base.style import visible
from openstack_prep.cli.of_spec import variable_words
from openstack_prep.cli.output import print_result, reading, warn
from openstack_prep.cli.running import carry_out, code_of, confirm_plan, execute, open_spec, print_warnings
from openstack_prep.cli.spec import read_of
from openstack_prep.cloud.connection import connect
from openstack_prep.core.plan import Report
from openstack_prep.hook_commands.options import USAGE
from openstack_prep.hooks.cleanup import remaining
from openstack_prep.hooks.installation import InstallOptions
from openstack_prep.hooks.ipi import CommandLine, ipi
from openstack_prep.hooks.post_ipi import find_bootstrap, spec_of, wait_for_ports
from openstack_prep.hooks.pre_ipi import NotReady, checked, entry_file, examine, installation_of, warnings
from openstack_prep.hooks.reinstallation import advice, start_over
from openstack_prep.hooks.wait_for import wait_for
from openstack_prep.openshift.check.preflight import HOSTS
from openstack_prep.openshift.cluster import ClusterAddresses, find_metadata, read_metadata
from openstack_prep.openshift.commands.of_cluster import chosen_cluster, cloud_of
from openstack_prep.openshift.folder import Folder
from openstack_prep.openshift.installer import to_continue
from openstack_prep.verbs import api

if TYPE_CHECKING:
    from openstack_prep.base.diagnostic import Diagnostic
    from openstack_prep.cloud.connection import Cloud
    from openstack_prep.hooks import Ready
    from openstack_prep.spec import Spec


def run_ipi(options: argparse.Namespace) -> int:
    try:
        return _around(options)
    except NotReady as error:  # each line gets our prefix, unlike the installer's
        _tell(str(error))
        _tell("the installer was not started; correct the errors, and run the command again")
        return error.exit_code


def _around(options: argparse.Namespace) -> int:
    if not options.installer:
        raise ConfigError(f"no installer command given; write {USAGE}")
    if options.installer[0].startswith("-"):
        raise ConfigError(f"{options.installer[0]}: options of openstack-prep go before --; write {USAGE}")
    if options.format != "text":
        raise ConfigError("--format does not apply to ipi, which passes the installer's output through; leave it out")

    command, ready = CommandLine(options.installer), None
    if options.again:
        _start_over(options, command)
    if options.spec:
        ready = _ready(options, command)
        if ready.report.interrupted:
            return code_of(ready.report)
        for warning in warnings(ready.findings, options.ingress_floating_ip or ready.ingress_floating_ip):
            _tell(str(warning))
        ready.raise_for_problems()
    outcome = ipi(
        options.installer,
        ready=ready,
        folder=options.dir,
        options=InstallOptions(
            **given_addresses(options),
            wait=options.wait,
            check=not options.no_check,
            hosts=options.hosts or HOSTS,
            lock_timeout=options.lock_timeout,
        ),
        tell=_tell,
        jobs=options.jobs,
    )
    if outcome.problem:
        _tell(outcome.problem)
    return outcome.exit_code


def _start_over(options: argparse.Namespace, command: CommandLine) -> None:
    """Put the folder right before anything is applied or checked; raises ConfigError, CloudError."""
    if not command.creates:
        raise ConfigError("--again only applies to create cluster; leave it out")
    spec = read_of(options, options.spec) if options.spec else None
    given = installation_of(spec).file.parent if spec else options.dir
    folder = command.within(given).folder or Path()
    for path in start_over(folder, clouds=entry_file(spec) if spec else None, jobs=options.jobs):
        _tell(f"deleted {path}")


def _ready(options: argparse.Namespace, command: CommandLine) -> Ready:
    """Return the installer's folder by the spec; before `create cluster`, apply the spec, with its output on stderr."""
    spec = read_of(options, options.spec)
    if not command.creates:
        return checked(spec, Report(()), look=False)
    command.release(installation_of(spec).release)  # fails before anything is created for another release
    with contextlib.redirect_stdout(sys.stderr):
        ready = prepare(options, *open_spec(options, options.spec), look=not options.no_check)
        print(visible(ready.report.summary))
    return ready


_printing = threading.Lock()


def _tell(text: str) -> None:
    """Print whole lines between those of the installer; a closed stderr does not end our part."""
    with _printing:
        try:
            sys.stderr.write("".join(f"openstack-prep: {line}\n" for line in visible(text).split("\n")))
            sys.stderr.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())  # Python flushes what is left at the exit


# --- ``pre-ipi``: before ``openshift-install``, apply the spec and check its install-config ---


CREATE = ("openshift-install", "create", "cluster")


def run_pre_ipi(options: argparse.Namespace) -> int:
    cloud, spec = open_spec(options, options.spec)
    ready = prepare(options, cloud, spec)
    print_result(
        options, "\n".join([ready.report.summary, *map(str, ready.findings)]), _data(ready.report, ready.findings)
    )
    code = code_of(ready.report)
    if ready.ok and options.format == "text":
        print(visible("\n".join(_there(ready, options.jobs) if ready.installed else _next(options, ready, spec))))
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


def _next(options: argparse.Namespace, ready: Ready, spec: Spec) -> Iterator[str]:
    given = {"--os-cloud": options.os_cloud, "--hosts": options.hosts}
    words = [word for option, value in given.items() if value for word in (option, str(value))]
    words += variable_words(options, has_plain_secrets=spec.has_plain_secrets)
    yield "next: " + shell.join(["openstack-prep", "ipi", *words, "--spec", str(options.spec), "--", *CREATE])
    variables = {"OS_CLOUD": ready.cloud, "OS_CLIENT_CONFIG_FILE": str(ready.clouds_file)}
    environment = (f"{name}={shell.quote(value)}" for name, value in variables.items())
    yield " ".join(["or without openstack-prep:", *environment, shell.join([*CREATE, "--dir", str(ready.folder)])])


def prepare(options: argparse.Namespace, cloud: Cloud, spec: Spec, *, look: bool = True) -> Ready:
    """Apply the spec after confirmation, and check what the installer will read."""
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
    return report.data() | {"findings": [finding.data() for finding in findings]}


# --- ``post-ipi``: after ``openshift-install``, attach floating IPs and add allowed address pairs ---


def given_addresses(options: argparse.Namespace) -> Values:
    """Return the fields of ClusterAddresses that the options give."""
    return {field: getattr(options, field) for field in ("ingress_floating_ip", "api_floating_ip", "vips")}


def run_post_ipi(options: argparse.Namespace) -> int:
    metadata = chosen_cluster(options)
    spec = spec_of(metadata, ClusterAddresses(**given_addresses(options)), move=options.move)
    cloud = cloud_of(options, metadata)
    wait_for_ports(cloud, spec, options.wait)
    with reading(options):
        plan = api.plan(cloud, spec, jobs=options.jobs)
    code = carry_out(options, cloud, plan)
    if code == 0:
        _name_bootstrap(options, cloud, metadata.infra_id)
    return code


def _name_bootstrap(options: argparse.Namespace, cloud: Cloud, infra_id: str) -> None:
    """Print how to remove the bootstrap machine, if it exists."""
    name = find_bootstrap(cloud, infra_id)
    if name:
        folder = Path("DIR") if options.infra_id else find_metadata(options.metadata or Path()).parent
        fix = f"if the installer has ended: {to_continue(folder, bootstrap=True)}"
        warn(f"{name} exists: the installation is not complete; {fix}")


# --- ``wait-for``: wait until the installer has created a virtual port ---


def run_wait_for(options: argparse.Namespace) -> int:
    metadata = chosen_cluster(options)
    cloud = cloud_of(options, metadata)
    port = wait_for(cloud, options.port, metadata, seconds=options.timeout)
    data = {"id": port.id, "name": port.name, "addresses": list(port.addresses)}
    print_result(options, f"{port.name}  {port.id}  {', '.join(port.addresses)}", data)
    return 0
