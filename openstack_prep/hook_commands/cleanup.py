"""``cleanup``: list what is left of a cluster, and delete it after confirmation."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext
from pathlib import Path

from openstack_prep.base.style import visible
from openstack_prep.cli.output import print_result, reading, style_of, warn
from openstack_prep.cli.running import answer, confirm_plan, run_plan
from openstack_prep.cloud.connection import Cloud, connect
from openstack_prep.hooks.cleanup import plan_cleanup
from openstack_prep.hooks.reinstallation import start_over
from openstack_prep.openshift.cluster import Metadata, find_metadata
from openstack_prep.openshift.commands.of_cluster import chosen_cluster, cloud_of
from openstack_prep.openshift.folder import Folder
from openstack_prep.openshift.installer import to_create_again, written


def run(options: argparse.Namespace) -> int:
    if options.cluster is not None:
        return _clean(options, connect(options.os_cloud), options.cluster, None)
    folder = None if options.plan else _folder(options)
    with nullcontext() if folder is None else folder.locked():
        metadata = chosen_cluster(options)  # under the lock: ipi writes the file
        cloud = cloud_of(options, metadata)
        code = _clean(options, cloud, metadata.infra_id, metadata)
    if folder is None:
        return code
    # in another cloud the cluster may still run, and need its metadata.json
    if code or metadata.cloud not in (None, cloud.name) or options.format != "text":
        return code
    _put_right(options, folder, metadata)
    return code


def _folder(options: argparse.Namespace) -> Folder | None:
    """Return the installer's folder, whose metadata.json names the cluster; None beside --infra-id."""
    return None if options.infra_id is not None else Folder(find_metadata(options.metadata or Path()).parent)


def _clean(options: argparse.Namespace, cloud: Cloud, name: str, metadata: Metadata | None) -> int:
    """List what is left of the cluster, and delete it after confirmation; return the exit code."""
    named = metadata.cloud if metadata else None
    with reading(options):
        installer = metadata is not None
        plan, warnings = plan_cleanup(
            cloud,
            name,
            installer=installer,
            release=options.release,
            allow_loss=options.allow_loss,
            jobs=options.jobs,
        )
    if named not in (None, cloud.name):
        warnings.append(f"metadata.json names the cloud {named}, but this is {cloud.name}")
    for warning in warnings:
        warn(warning)
    if options.plan:
        data = {"infra_id" if metadata else "cluster": name, **plan.document()}
        print_result(options, plan.render(style_of(options, sys.stdout)), data)
        plan.raise_for_refusals()
        return 0
    if not (plan or plan.refusals):
        where = f"project {cloud.project_name} ({cloud.project_id}) of cloud {cloud.name}"
        print_result(options, f"nothing of {name} in {where}", {"seconds": 0, "steps": []})
        return 0
    what = "infraID" if metadata else "cluster's name"
    confirm_plan(options, plan, f"Delete this for good? Type the {what} {name}: ", name)
    return run_plan(options, cloud, plan)


def _put_right(options: argparse.Namespace, folder: Folder, metadata: Metadata) -> None:
    """Offer to delete the installer's files, now that nothing is left of its cluster.

    ``--yes`` agrees to the plan, which does not list these files, so they need the answer of a person.
    """

    files = written(folder.path)
    if not files:
        return
    if not options.yes and sys.stdin.isatty():
        listed = "".join(f"  {file}\n" for file in files)
        question = f"Files of {metadata.infra_id}, which stop another installation:\n{listed}Delete them? Type yes: "
        if answer(question) == "yes":
            start_over(folder.path, jobs=options.jobs)
            return
    again = to_create_again(folder.path)
    print(visible(f"another installation from {folder.path} deletes the files of this one: {again}"))
