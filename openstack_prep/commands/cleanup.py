"""``cleanup``: list what is left of a cluster, and remove it by consent."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from openstack_prep.commands.of_cluster import add_cluster_options, chosen_cluster
from openstack_prep.commands.running import ask, print_result, run_plan


def add(command: Any) -> None:
    """Add it to the parser."""
    parser = command("cleanup", _run, "after openshift-install destroy, or instead: remove what is left of a cluster")
    add_cluster_options(parser)
    parser.add_argument("--plan", action="store_true", help="list what would go, and change nothing")
    parser.add_argument("--release", metavar="SPEC", help="release floating IPs, too, that the spec of this name made")
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask")


def _run(options: argparse.Namespace) -> int:
    from openstack_prep.cloud import connect
    from openstack_prep.hooks.cleanup import plan_cleanup

    metadata = chosen_cluster(options)
    cloud = connect(options.os_cloud or metadata.cloud)
    plan, unread = plan_cleanup(cloud, metadata.infra_id, release=options.release, jobs=options.jobs)
    for each in unread:
        print(f"openstack-prep: warning: {each}", file=sys.stderr)
    if options.plan:
        data = {"infra_id": metadata.infra_id, "steps": plan.data(), "refusals": [str(each) for each in plan.refusals]}
        print_result(options, plan.table, data)
    plan.raise_for_refusals()
    if options.plan:
        return 0
    if not plan:
        nothing = f"nothing of {metadata.infra_id} in project {cloud.project_id}"
        print_result(options, nothing, {"seconds": 0, "steps": []})
        return 0
    if not options.yes:
        ask(plan, f"Remove this for good? Type the infraID {metadata.infra_id}: ", metadata.infra_id)
    return run_plan(options, cloud, plan)
