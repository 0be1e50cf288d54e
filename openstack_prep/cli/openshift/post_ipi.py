"""``post-ipi``: after ``openshift-install``, attach floating IPs and add allowed address pairs."""

from __future__ import annotations

import argparse
from typing import Any

from openstack_prep.base.raw import Values
from openstack_prep.cli import AddCommand
from openstack_prep.cli.of_cluster import add_cluster_options, chosen_cluster, cloud_of, seconds
from openstack_prep.cli.running import add_lock_timeout, carry_out


def add(command: AddCommand) -> None:
    parser = command("post-ipi", _run, "after openshift-install: attach floating IPs and add allowed address pairs")
    add_cluster_options(parser)
    add_addresses(parser)
    parser.add_argument(
        "--wait", type=seconds, default=0, metavar="SECONDS", help="time to wait for the virtual ports (default: 0)"
    )
    parser.add_argument("--move", action="store_true", help="allow to detach a floating IP from another port")
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask for confirmation")
    add_lock_timeout(parser)


def add_addresses(parser: argparse.ArgumentParser) -> None:
    """Add an option per field of ClusterAddresses."""

    def add(option: str, field: str, text: str, **how: Any) -> None:
        parser.add_argument(option, dest=field, metavar="ADDR", help=text, **how)

    add("--ingress-ip", "ingress_floating_ip", "floating IP for the ingress port, by address or ID")
    add("--api-ip", "api_floating_ip", "floating IP for the API port, by address or ID")
    add("--vip", "vips", "address or network to allow on all nodes; repeatable", action="append", default=[])


def given_addresses(options: argparse.Namespace) -> Values:
    """Return the fields of ClusterAddresses that the options give."""
    return {field: getattr(options, field) for field in ("ingress_floating_ip", "api_floating_ip", "vips")}


def _run(options: argparse.Namespace) -> int:
    from openstack_prep.hooks.post_ipi import spec_of, wait_for_ports
    from openstack_prep.openshift.cluster import ClusterAddresses
    from openstack_prep.verbs import api

    metadata = chosen_cluster(options)
    spec = spec_of(metadata, ClusterAddresses(**given_addresses(options)), move=options.move)
    cloud = cloud_of(options, metadata)
    wait_for_ports(cloud, spec, options.wait)
    return carry_out(options, cloud, api.plan(cloud, spec, jobs=options.jobs))
