"""``ipi``: ``openshift-install`` with all that belongs around it."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from openstack_prep.base.errors import ConfigError
from openstack_prep.cli import AddCommand
from openstack_prep.cli.of_cluster import seconds
from openstack_prep.cli.openshift.post_ipi import add_addresses, given_addresses
from openstack_prep.cli.openshift.pre_ipi import add_preparation, prepare
from openstack_prep.cli.running import code_of, no_garbage

if TYPE_CHECKING:
    from openstack_prep.hooks import Ready
    from openstack_prep.hooks.ipi import Command

USAGE = "openstack-prep ipi [options] -- openshift-install create cluster [installer's options]"


def add(command: AddCommand) -> None:
    parser = command("ipi", _run, "run openshift-install: checked before, addresses attached meanwhile, pairs after")
    parser.usage = USAGE
    parser.add_argument("--spec", type=Path, metavar="SPEC", help="apply it first (pre-ipi); it has the install_config")
    parser.add_argument("--dir", type=Path, metavar="DIR", help="the installer's --dir, when its own words lack it")
    add_addresses(parser)
    parser.add_argument("--wait", type=seconds, metavar="SECONDS", help="wait for the ports (default: the whole run)")
    parser.add_argument("--no-check", action="store_true", help="start the installer even if check finds errors")
    add_preparation(parser)
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="behind --: the installer and its words")


def _run(options: argparse.Namespace) -> int:
    with no_garbage():
        from openstack_prep.hooks.pre_ipi import NotReady

    try:
        return _around(options)
    except NotReady as error:  # several findings of some lines: each line is ours, not the installer's
        _tell(str(error))
        return error.exit_code


def _around(options: argparse.Namespace) -> int:
    if not options.command:
        raise ConfigError(f"there is no command to run; write {USAGE}")
    if options.command[0].startswith("-"):
        raise ConfigError(f"{options.command[0]}: our own options go before --; write {USAGE}")
    if options.format != "text":
        raise ConfigError("--format: the installer's output is passed through; openstack-prep show has formats")
    with no_garbage():
        from openstack_prep.hooks.installation import InstallOptions
        from openstack_prep.hooks.ipi import Command, ipi
        from openstack_prep.hooks.pre_ipi import warnings
        from openstack_prep.openshift.check.preflight import HOSTS

    ready = None
    if options.spec:
        ready = _ready(options, Command(options.command))
        if ready.report.interrupted:
            return code_of(ready.report)
        for each in warnings(ready.findings, options.ingress_floating_ip or ready.ingress_floating_ip):
            _tell(str(each))
        ready.raise_for_problems()
    outcome = ipi(
        options.command,
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


def _ready(options: argparse.Namespace, command: Command) -> Ready:
    """Return what the spec says of the installer's folder; for a new cluster it is applied, printing to stderr."""
    from openstack_prep.core.plan import Report
    from openstack_prep.hooks.pre_ipi import checked, installation_of
    from openstack_prep.spec import load_spec

    spec = load_spec(options.spec)
    if not command.creates:
        return checked(spec, Report(()), look=False)
    command.release(installation_of(spec).release)  # before anything is made for another one
    with contextlib.redirect_stdout(sys.stderr):
        ready = prepare(options, look=not options.no_check)
        print(ready.report.summary)
    return ready


_one_at_a_time = threading.Lock()


def _tell(text: str) -> None:
    """Print lines beside the installer's own, each whole; that nobody reads them does not end our part."""
    with _one_at_a_time:
        try:
            sys.stderr.write("".join(f"openstack-prep: {line}\n" for line in text.splitlines()))
            sys.stderr.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())  # what is left is flushed at the exit
