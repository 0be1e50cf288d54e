"""``ipi``: run ``openshift-install`` with pre-checks, floating IPs and address pairs."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from openstack_prep.base.errors import ConfigError
from openstack_prep.base.style import visible
from openstack_prep.cli.running import code_of
from openstack_prep.cli.spec import read_of
from openstack_prep.core.plan import Report
from openstack_prep.hook_commands.options import USAGE
from openstack_prep.hook_commands.post_ipi import given_addresses
from openstack_prep.hook_commands.pre_ipi import prepare
from openstack_prep.hooks.installation import InstallOptions
from openstack_prep.hooks.ipi import Command, ipi
from openstack_prep.hooks.pre_ipi import NotReady, checked, entry_file, installation_of, warnings
from openstack_prep.hooks.reinstallation import start_over
from openstack_prep.openshift.check.preflight import HOSTS

if TYPE_CHECKING:
    from openstack_prep.hooks import Ready


def run(options: argparse.Namespace) -> int:
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

    command, ready = Command(options.installer), None
    if options.again:
        _start_over(options, command)
    if options.spec:
        ready = _ready(options, command)
        if ready.report.interrupted:
            return code_of(ready.report)
        for each in warnings(ready.findings, options.ingress_floating_ip or ready.ingress_floating_ip):
            _tell(str(each))
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


def _start_over(options: argparse.Namespace, command: Command) -> None:
    """Put the folder right before anything is applied or checked; raises ConfigError, CloudError."""
    if not command.creates:
        raise ConfigError("--again only applies to create cluster; leave it out")
    spec = read_of(options, options.spec) if options.spec else None
    given = installation_of(spec).file.parent if spec else options.dir
    folder = command.within(given).folder or Path()
    for each in start_over(folder, clouds=entry_file(spec) if spec else None, jobs=options.jobs):
        _tell(f"deleted {each}")


def _ready(options: argparse.Namespace, command: Command) -> Ready:
    """Return the installer's folder by the spec; before `create cluster`, apply the spec, with its output on stderr."""
    spec = read_of(options, options.spec)
    if not command.creates:
        return checked(spec, Report(()), look=False)
    command.release(installation_of(spec).release)  # fails before anything is created for another release
    with contextlib.redirect_stdout(sys.stderr):
        ready = prepare(options, look=not options.no_check)
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
