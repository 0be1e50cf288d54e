"""``topology``: the networks of a spec, a cluster or a project, and what is on them, as a picture or as data."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from openstack_prep.base.errors import ConfigError
from openstack_prep.base.style import visible
from openstack_prep.cli.output import print_result, reading
from openstack_prep.cli.running import open_spec
from openstack_prep.cli.spec import read_spec
from openstack_prep.cloud.connection import connect
from openstack_prep.openshift.commands.of_cluster import chosen_cluster, cloud_of
from openstack_prep.pictures.topology import drawing, elements, sources
from openstack_prep.resources.identity.project import Project

if TYPE_CHECKING:
    from openstack_prep.pictures.topology.elements import Topology


def run(options: argparse.Namespace) -> int:
    given = {"SPEC": options.spec, "--metadata": options.metadata, "--infra-id": options.infra_id}
    given["--project"] = options.project
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:  # without any, the command has a default spec
        what = f"{' and '.join(named)} are given"
        raise ConfigError(f"topology: {what}; give exactly one of SPEC, --metadata, --infra-id and --project")
    if options.offline and options.spec is None:
        raise ConfigError(f"topology: --offline only applies to a SPEC, not to {named[0]}; leave it out")
    found = _of_spec(options) if options.spec else _of_cloud(options)

    if options.format == "json":
        print_result(options, "", found.data())
        return 0
    draw = {"dot": elements.dot, "svg": drawing.draw}.get(options.format, elements.mermaid)
    print(visible(draw(found)))
    return 0


def _of_spec(options: argparse.Namespace) -> Topology:
    if options.offline:
        return sources.of_declared(read_spec(options, options.spec, needs_secrets=False))
    cloud, spec = open_spec(options, options.spec)
    with reading(options):
        return sources.of_spec(cloud, spec, jobs=options.jobs)


def _of_cloud(options: argparse.Namespace) -> Topology:
    if options.project is None:
        metadata = chosen_cluster(options)
        cloud = cloud_of(options, metadata)
        with reading(options):
            return sources.of_cluster(cloud, metadata.infra_id, jobs=options.jobs)
    project = Project(name=options.project, domain=options.project_domain) if options.project else None
    cloud = connect(options.os_cloud)
    with reading(options):
        return sources.of_project(cloud, project, jobs=options.jobs)
