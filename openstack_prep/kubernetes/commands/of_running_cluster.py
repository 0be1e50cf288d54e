"""The running cluster whose Services a command reads."""

from __future__ import annotations

import argparse

from openstack_prep.base.errors import ConfigError
from openstack_prep.kubernetes.api import RunningCluster


def chosen_cluster(options: argparse.Namespace) -> RunningCluster | None:
    """Return the cluster of --kubeconfig, if it is given; raises ConfigError."""
    if options.context and not options.kubeconfig:
        raise ConfigError("--context requires --kubeconfig; pass it, or remove --context")
    if not options.kubeconfig:
        return None

    return RunningCluster(options.kubeconfig, options.context)


def texts_of_cluster(options: argparse.Namespace) -> dict[str, str]:
    """Return the Services and Nodes of the chosen cluster, as ``kubectl get -o json`` prints them, by a name each."""
    cluster = chosen_cluster(options)
    if cluster is None:
        return {}
    with cluster.open() as server:
        found = {"Services": server.services(), "Nodes": server.nodes()}
    return {f"{kind} of {cluster}": each.text for kind, each in found.items() if each.count}
