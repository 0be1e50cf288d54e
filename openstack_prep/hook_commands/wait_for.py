"""``wait-for``: wait until the installer has created a virtual port."""

from __future__ import annotations

import argparse

from openstack_prep.cli import AddCommand
from openstack_prep.cli.parser import seconds
from openstack_prep.cli.running import print_result
from openstack_prep.openshift.commands.of_cluster import add_cluster_options, chosen_cluster, cloud_of

PORTS = ("ingress-port", "api-port")
SECONDS = 1800.0


def add(command: AddCommand) -> None:
    parser = command("wait-for", _run)
    parser.add_argument("port", choices=PORTS, help="the virtual port")
    add_cluster_options(parser)
    parser.add_argument("--timeout", type=seconds, default=SECONDS, metavar="SECONDS", help=f"(default: {SECONDS:.0f})")


def _run(options: argparse.Namespace) -> int:
    from openstack_prep.hooks.wait_for import wait_for

    metadata = chosen_cluster(options)
    cloud = cloud_of(options, metadata)
    port = wait_for(cloud, options.port, metadata, seconds=options.timeout)
    data = {"id": port.id, "name": port.name, "addresses": list(port.addresses)}
    print_result(options, f"{port.name}  {port.id}  {', '.join(port.addresses)}", data)
    return 0
