"""``exposures show``: which outside address leads to what, and the state of each hop on the way."""

from __future__ import annotations

import argparse

from openstack_prep.base import shell
from openstack_prep.base.errors import ConfigError
from openstack_prep.cli.of_spec import fix_options
from openstack_prep.cli.output import print_result
from openstack_prep.cli.running import open_spec
from openstack_prep.exposures.paths import examination
from openstack_prep.exposures.paths.hops import Running
from openstack_prep.kubernetes.commands.of_running_cluster import chosen_cluster
from openstack_prep.kubernetes.services import records


def run(options: argparse.Namespace) -> int:
    running = _running(options)
    cloud, spec = open_spec(options, options.spec)
    more, hosts = fix_options(options, has_plain_secrets=spec.has_plain_secrets), options.hosts
    path = str(options.spec)
    report = examination.look(cloud, spec, path=path, options=more, hosts=hosts, running=running, jobs=options.jobs)
    print_result(options, report, report.data())
    return 0 if report.ok else 1


def _running(options: argparse.Namespace) -> Running | None:
    """Return what the cluster of --kubeconfig has; None without it."""
    if options.cluster and not options.kubeconfig:
        raise ConfigError("--cluster requires --kubeconfig; pass it, or remove --cluster")
    cluster = chosen_cluster(options)
    if cluster is None:
        return None

    with cluster.open() as server:
        listing = server.services()
    words = ["kubectl", "--kubeconfig", str(options.kubeconfig)]
    words += ["--context", options.context] if options.context else []
    return Running(services=records(listing.text), kubectl=shell.join(words), cluster=options.cluster)
