"""``post-ipi``: after ``openshift-install``, attach floating IPs and add allowed address pairs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from openstack_prep.base.raw import Values
from openstack_prep.cli.reading import reading
from openstack_prep.cli.running import carry_out
from openstack_prep.cli.style import warn
from openstack_prep.hooks.post_ipi import find_bootstrap, spec_of, wait_for_ports
from openstack_prep.openshift.cluster import ClusterAddresses, find_metadata
from openstack_prep.openshift.commands.of_cluster import chosen_cluster, cloud_of
from openstack_prep.openshift.installer import to_continue
from openstack_prep.verbs import api

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud


def given_addresses(options: argparse.Namespace) -> Values:
    """Return the fields of ClusterAddresses that the options give."""
    return {field: getattr(options, field) for field in ("ingress_floating_ip", "api_floating_ip", "vips")}


def run(options: argparse.Namespace) -> int:
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
    name = find_bootstrap(cloud, infra_id)
    if name:
        folder = Path("DIR") if options.infra_id else find_metadata(options.metadata or Path()).parent
        fix = f"if the installer has ended: {to_continue(folder, bootstrap=True)}"
        warn(f"{name} exists: the installation is not complete; {fix}")
