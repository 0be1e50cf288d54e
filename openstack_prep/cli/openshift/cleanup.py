"""``cleanup``: list what is left of a cluster, and delete it after confirmation."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from openstack_prep.cli import AddCommand
from openstack_prep.cli.of_cluster import add_cluster_options, chosen_cluster, cloud_of
from openstack_prep.cli.reading import reading
from openstack_prep.cli.running import add_lock_timeout, consent, plan_data, print_result, run_plan
from openstack_prep.cli.style import style_of


def add(command: AddCommand) -> None:
    parser = command("cleanup", _run)
    add_cluster_options(parser)
    parser.add_argument("--plan", action="store_true", help="list what would be deleted, and change nothing")
    parser.add_argument("--release", metavar="SPEC", help="also delete the floating IPs that this spec created")
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask for confirmation")
    add_lock_timeout(parser)


def _run(options: argparse.Namespace) -> int:
    from openstack_prep.hooks.cleanup import plan_cleanup

    metadata = chosen_cluster(options)
    cloud = cloud_of(options, metadata)
    with reading(options):
        plan, warnings = plan_cleanup(cloud, metadata.infra_id, release=options.release, jobs=options.jobs)
    if metadata.cloud not in (None, cloud.name):
        warnings.append(f"metadata.json names the cloud {metadata.cloud}, but this is {cloud.name}")
    for each in warnings:
        print(f"openstack-prep: warning: {each}", file=sys.stderr)
    if options.plan:
        data = {"infra_id": metadata.infra_id, **plan_data(plan)}
        print_result(options, plan.render(style_of(options, sys.stdout)), data)
        plan.raise_for_refusals()
        return 0
    if not (plan or plan.refusals):
        where = f"project {cloud.project_name} ({cloud.project_id}) of cloud {cloud.name}"
        print_result(options, f"nothing of {metadata.infra_id} in {where}", {"seconds": 0, "steps": []})
        # in another cloud the cluster may still run, and need its metadata.json
        return _cleared(options, 0) if metadata.cloud in (None, cloud.name) else 0
    consent(options, plan, f"Delete this for good? Type the infraID {metadata.infra_id}: ", metadata.infra_id)
    return _cleared(options, run_plan(options, cloud, plan))


def _cleared(options: argparse.Namespace, code: int) -> int:
    """Print what prevents another installation once nothing is left of this one; return the exit code."""
    from openstack_prep.hooks.folder import Folder
    from openstack_prep.openshift.cluster import find_metadata

    if code == 0 and options.infra_id is None and options.format == "text":
        folder = Folder(find_metadata(options.metadata or Path()).parent)
        if folder.traces:
            print(f"before another installation from {folder.path}: {folder.to_clear}")
    return code
