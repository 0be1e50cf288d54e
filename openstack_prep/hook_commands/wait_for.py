"""``wait-for``: wait until the installer has created a virtual port."""

from __future__ import annotations

import argparse

from openstack_prep.cli.output import print_result
from openstack_prep.hooks.wait_for import wait_for
from openstack_prep.openshift.commands.of_cluster import chosen_cluster, cloud_of


def run(options: argparse.Namespace) -> int:
    metadata = chosen_cluster(options)
    cloud = cloud_of(options, metadata)
    port = wait_for(cloud, options.port, metadata, seconds=options.timeout)
    data = {"id": port.id, "name": port.name, "addresses": list(port.addresses)}
    print_result(options, f"{port.name}  {port.id}  {', '.join(port.addresses)}", data)
    return 0
