"""``exposures show``: which outside address leads to what, and the state of each hop on the way."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from openstack_prep.base.errors import ConfigError
from openstack_prep.cli import AddCommand
from openstack_prep.cli.of_spec import add_spec
from openstack_prep.cli.running import no_garbage, open_spec, print_result
from openstack_prep.kubernetes.commands.of_running_cluster import add_cluster, chosen_cluster

if TYPE_CHECKING:
    from openstack_prep.exposures.paths.running import Running


def add(command: AddCommand) -> None:
    """Add it to the parser."""
    parser = command("exposures show", _run)
    add_spec(parser, "YAML file")
    parser.add_argument("--hosts", type=Path, metavar="FILE", help="hosts file to read before the resolver")
    add_cluster(parser)
    of_spec = "with --kubeconfig: its name in exposed_clusters (default: the only one)"
    parser.add_argument("--cluster", metavar="NAME", help=of_spec)


def _run(options: argparse.Namespace) -> int:
    with no_garbage():
        from openstack_prep.exposures.paths import examination

    running = _running(options)
    cloud, spec = open_spec(options, options.spec)
    path = str(options.spec)
    report = examination.look(cloud, spec, path=path, hosts=options.hosts, running=running, jobs=options.jobs)
    print_result(options, report, report.data())
    return 0 if report.ok else 1


def _running(options: argparse.Namespace) -> Running | None:
    """Return what the cluster of --kubeconfig has; None without it."""
    if options.cluster and not options.kubeconfig:
        raise ConfigError("--cluster requires --kubeconfig; pass it, or remove --cluster")
    cluster = chosen_cluster(options)
    if cluster is None:
        return None
    from openstack_prep.exposures.paths.running import Running
    from openstack_prep.kubernetes.services import records

    with cluster.open() as server:
        listing = server.services()
    words = ["kubectl", "--kubeconfig", str(options.kubeconfig)]
    words += ["--context", options.context] if options.context else []
    return Running(services=records(listing.text), kubectl=shlex.join(words), cluster=options.cluster)
