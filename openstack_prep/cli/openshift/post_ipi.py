"""``post-ipi``: after ``openshift-install``, floating IPs to the virtual ports and pairs to the nodes."""

from __future__ import annotations

import argparse

from openstack_prep.cli import AddCommand
from openstack_prep.cli.of_cluster import add_cluster_options, chosen_cluster, cloud_of, seconds
from openstack_prep.cli.reading import reading
from openstack_prep.cli.running import add_lock_timeout, carry_out


def add(command: AddCommand) -> None:
    parser = command("post-ipi", _run, "after openshift-install: attach floating IPs, allow address pairs on the nodes")
    add_cluster_options(parser)
    parser.add_argument("--ingress-ip", metavar="ADDR", help="floating IP, by address or id, for the ingress port")
    parser.add_argument("--api-ip", metavar="ADDR", help="floating IP, by address or id, for the API port")
    parser.add_argument(
        "--vip", action="append", default=[], metavar="ADDR", help="virtual address to allow; repeatable"
    )
    parser.add_argument("--wait", type=seconds, default=0, metavar="SECONDS", help="how long to wait for the ports (0)")
    parser.add_argument("--move", action="store_true", help="allow a floating IP to be taken from another port")
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask for confirmation")
    add_lock_timeout(parser)


def _run(options: argparse.Namespace) -> int:
    from openstack_prep.hooks.post_ipi import repairs_of, wait_for_ports
    from openstack_prep.verbs import api

    metadata = chosen_cluster(options)
    spec = repairs_of(
        metadata,
        ingress_floating_ip=options.ingress_ip,
        api_floating_ip=options.api_ip,
        vips=options.vip,
        move=options.move,
    )
    cloud = cloud_of(options, metadata)
    wait_for_ports(cloud, spec, options.wait)
    with reading(options):
        plan = api.plan(cloud, spec, jobs=options.jobs)
    return carry_out(options, cloud, plan)
