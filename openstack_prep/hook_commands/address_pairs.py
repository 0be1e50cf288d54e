"""``address-pairs sync``: synchronize the allowed address pairs of a cluster's nodes, also from a timer."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from openstack_prep.base.errors import ConfigError
from openstack_prep.base.given_file import MIB, STDIN, name_of, read_text, unreadable
from openstack_prep.cli.output import print_event, print_result, reading, style_of, warn
from openstack_prep.cli.running import exit_immediately, run_plan
from openstack_prep.cli.spec import read_of
from openstack_prep.cloud.connection import connect
from openstack_prep.core import interrupts
from openstack_prep.hooks.address_pairs import SECTIONS, Sync, to_sync
from openstack_prep.hooks.cluster_sync import ClusterSync
from openstack_prep.kubernetes.commands.of_running_cluster import chosen_cluster
from openstack_prep.verbs import api

if TYPE_CHECKING:
    from openstack_prep.spec import Spec

LARGEST = 64 * MIB
"""Of a list of Services; ten thousand of them have some 30 MiB."""


def run(options: argparse.Namespace) -> int:
    _check(options)
    services = _services(options.services)
    if options.spec:
        read = partial(read_of, options, options.spec, SECTIONS)
        spec = read()
        wanted: Spec | Callable[[], Spec] | Sync = read if options.watch else spec  # a watch reads it again each time
        cloud = connect(options.os_cloud or spec.clouds.tenant or spec.clouds.admin)
    else:
        wanted = Sync(
            stack=options.stack,
            tag=options.tag,
            security_group=options.security_group,
            ports=options.port,
            addresses=options.address,
            within=options.within,
            network=options.network,
            name=options.name,
        )
        cloud = connect(options.os_cloud)
    cluster = chosen_cluster(options)
    if cluster:
        sync = ClusterSync(
            cloud,
            wanted,
            cluster,
            only=options.pairs,
            jobs=options.jobs,
            lock_timeout=options.lock_timeout,
            tell=partial(_log, options) if options.watch else warn,
        )
        if options.watch:
            return _follow(options, sync)
        with reading(options):
            plan = sync.plan()
    else:
        spec = to_sync(cloud, wanted, services=services, only=options.pairs, tell=warn)
        with reading(options):
            plan = api.plan(cloud, spec, jobs=options.jobs)
    if options.dry_run:
        print_result(options, plan.render(style_of(options, sys.stdout)), plan.document())
        plan.raise_for_refusals()
        return 0
    return run_plan(options, cloud, plan)


def _check(options: argparse.Namespace) -> None:
    names = ("stack", "tag", "security_group", "port", "network", "address", "within", "name")
    given = [f"--{name.replace('_', '-')}" for name in names if getattr(options, name)]
    if options.spec and given:
        raise ConfigError(
            f"address-pairs sync: {', '.join(given)} cannot be combined with a SPEC; remove them, or the SPEC"
        )
    if options.pairs and not options.spec:
        raise ConfigError("address-pairs sync: --pairs requires a SPEC; pass the SPEC, or remove --pairs")
    if options.kubeconfig and options.services:
        raise ConfigError("address-pairs sync: --kubeconfig and --services exclude each other; remove one of them")
    if options.watch and not options.kubeconfig:
        raise ConfigError("address-pairs sync: --watch requires --kubeconfig; pass it, or remove --watch")
    if options.watch and (options.dry_run or options.format != "text"):
        raise ConfigError("address-pairs sync: --watch applies, and prints lines; remove --dry-run and --format")


def _follow(options: argparse.Namespace, sync: ClusterSync) -> int:
    """Follow the Services of a cluster until a signal; a second one does not wait for running steps."""
    try:
        sync.follow()
    except KeyboardInterrupt as error:
        if any(thread.name.startswith("step") for thread in threading.enumerate()):
            exit_immediately(options, error)
        _log(options, f"stopped by {interrupts.name(interrupts.number_of(error))}")
    return 0


def _log(options: argparse.Namespace, line: str) -> None:
    print_event(options, line, {})


def _services(name: str | None) -> str | None:
    """Return the output of kubectl."""
    if name is None:
        return None
    try:
        return read_text(Path(STDIN if name == "-" else name), LARGEST)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"--services {name_of(name)} {unreadable(error)}; name a file, or - for standard input"
        ) from None
