"""``kubernetes checklist``: the order in which a person brings up the clusters of a spec."""

from __future__ import annotations

import argparse
import os
import textwrap
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from openstack_prep.base.errors import ConfigError, SpecError
from openstack_prep.cli.output import print_result
from openstack_prep.cli.spec import read_spec
from openstack_prep.cloud.no_cloud import NoCloud
from openstack_prep.kubernetes.cluster import rke_checklist
from openstack_prep.kubernetes.cluster.rke_cluster import RkeCluster
from openstack_prep.resources.files.clouds_entry import CloudsEntry
from openstack_prep.spec.resolution import resolve_spec

if TYPE_CHECKING:
    from openstack_prep.kubernetes.cluster.rke_checklist import ChecklistStep

WIDTH = 80


def run(options: argparse.Namespace) -> int:
    spec = read_spec(options, options.spec, needs_secrets=False)
    resolved = resolve_spec(spec, NoCloud.as_cloud(), for_apply=False)
    if resolved.unread:
        raise SpecError(spec.placed(resolved.unread))
    clusters = [resource for resource in resolved.resources if isinstance(resource, RkeCluster)]
    if not clusters:
        raise ConfigError(f"{options.spec}: declares no rke_clusters; name the spec of a cluster")
    near = [replace(cluster, directory=os.path.relpath(cluster.directory)) for cluster in clusters]
    entries = (
        () if spec.clouds.tenant else (resource for resource in resolved.resources if isinstance(resource, CloudsEntry))
    )
    entry = next(((os.path.relpath(each.file), each.cloud) for each in entries), None)
    steps = rke_checklist.steps(near, str(options.spec), entry)
    text = "\n\n".join(_shown(number, each) for number, each in enumerate(steps, 1))
    print_result(options, text, {"spec": spec.name, "steps": [asdict(step) for step in steps]})
    return 0


def _shown(number: int, step: ChecklistStep) -> str:
    normal = textwrap.fill(f"normal: {step.normal}", WIDTH, initial_indent=" " * 7, subsequent_indent=" " * 7)
    return "\n".join([f"[ ] {number}. {step.title}", *(f"       {command}" for command in step.commands), normal])
