"""``post-ipi``: after ``openshift-install``, attach floating IPs and add allowed address pairs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from openstack_prep.base.raw import Values
from openstack_prep.cli import AddCommand
from openstack_prep.cli.parser import seconds
from openstack_prep.cli.reading import reading
from openstack_prep.cli.running import add_lock_timeout, carry_out
from openstack_prep.cli.style import warn
from openstack_prep.openshift.commands.of_cluster import add_cluster_options, chosen_cluster, cloud_of

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud


def add(command: AddCommand) -> None:
    parser = command("post-ipi", _run)
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
    for port in ("ingress", "api"):
        text = f"floating IP for the {port} port, by address or ID"
        parser.add_argument(f"--{port}-ip", dest=f"{port}_floating_ip", metavar="ADDR", help=text)
    text = "address or network to allow on all nodes; repeatable"
    parser.add_argument("--vip", dest="vips", action="append", default=[], metavar="ADDR", help=text)


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
    with reading(options):
        plan = api.plan(cloud, spec, jobs=options.jobs)
    code = carry_out(options, cloud, plan)
    if code == 0:
        _name_bootstrap(options, cloud, metadata.infra_id)
    return code


def _name_bootstrap(options: argparse.Namespace, cloud: Cloud, infra_id: str) -> None:
    """Print how to remove the bootstrap machine, if it exists."""
    from openstack_prep.hooks.post_ipi import find_bootstrap
    from openstack_prep.openshift.cluster import find_metadata
    from openstack_prep.openshift.installer import to_continue

    name = find_bootstrap(cloud, infra_id)
    if name:
        folder = Path("DIR") if options.infra_id else find_metadata(options.metadata or Path()).parent
        fix = f"if the installer has ended: {to_continue(folder, bootstrap=True)}"
        warn(f"{name} exists: the installation is not complete; {fix}")
