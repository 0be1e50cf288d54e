"""Specs of the same name that work in one project, where ownership tags do not tell them apart.

A spec is identified by its name and its home project. In a further project, an ownership tag names the spec alone: two
specs of one name would delete each other's rules, pairs and networks there. So a spec signs each further project before
it changes anything in it, by a tag of the project's ``default`` security group with the id of its home project, and
none works in a project that a spec of its name has signed from another home project.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from urllib.parse import quote

from openstack_prep.base import shell
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import CloudError, Mistake, PlanRefused
from openstack_prep.cloud import lease
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Key, OwnershipTag, Resource
from openstack_prep.core.plan import Plan, Report
from openstack_prep.resources.identity import home
from openstack_prep.resources.identity.in_project import InProject

_log = logging.getLogger(__name__)


def refusals(run: CloudRun, seen: lease.LeaseReading) -> Iterator[Mistake]:
    """Yield the projects of the spec that a spec of its name has signed from another home project."""
    for project in run.homes:
        is_read = seen.group is not None and seen.project == project
        with contextlib.suppress(CloudError):  # nothing is changed in a project of which nothing can be read
            group = seen.group if is_read else _group(run, project)
            yield from _others(run, project, group) if group else ()
        found = run.look(project) if project else None
        if project and found and not home.is_ours(run, found.home):
            yield _mistake(run, project.key, found.home, "give this spec another name")


def _others(run: CloudRun, project: Resource | None, group: lease.LeaseGroup) -> Iterator[Mistake]:
    for tag in sorted(group.tags):
        other = tag.removeprefix(_start(run.ownership))
        if other != tag and not home.is_ours(run, other):
            unset = shell.join(["openstack", "security", "group", "unset", "--tag", tag, group.id])
            fix = f"give this spec another name; if that one has nothing in it any more: {unset}"
            yield _mistake(run, project.key if project else f"project {run.admin.project_name}", other, fix)


def _mistake(run: CloudRun, place: Key | str, other: str, fix: str) -> Mistake:
    spec = home.other_spec(run, run.ownership.spec, other)
    what = f"spec {spec} works in it, too, and tags of resources in it do not tell the two specs apart"
    return Mistake.about(place, what, fix, code=Code.PLAN_OTHER_SPEC)


def sign(run: CloudRun, made: Plan) -> None:
    """Sign the further projects in which a plan changes something; raises PlanRefused.

    It reads the tags again after it has written: of two specs that sign at the same time, at least one sees the other.
    """
    own = home.ownership(run).home
    changed = {step.resource.owner for step in made.pending if isinstance(step.resource, InProject)}
    for project in [each for each in run.homes[1:] if own and each in changed]:
        try:
            found = _signed(run, project, _start(run.ownership) + own)
        except CloudError as error:  # such as no right to change the group: rules there need the same right
            _log.warning("%s: another spec of this name could not be excluded: %s", project and project.key, error)
            continue
        if found:
            raise PlanRefused(found)


def _signed(run: CloudRun, project: Resource | None, tag: str) -> list[Mistake]:
    """Return who else has signed a project, which has the tag if it is nobody else."""
    group = _group(run, project)
    if group is None or run.find_project_id(project) in home.family(run):
        return []
    if tag not in group.tags:
        group.cloud.network.put(_path(group, tag))
        group = group.again()
    found = list(_others(run, project, group))
    if found:
        group.cloud.network.delete(_path(group, tag))
    return found


def sign_off(run: CloudRun, report: Report) -> None:
    """Remove the signatures after a complete destroy; one that stays only excludes other specs of the same name."""
    start = _start(run.ownership)
    for project in run.homes[1:] if not report.failed and report.interrupt is None else ():
        with contextlib.suppress(CloudError):
            group = _group(run, project)
            for tag in group.tags if group else ():
                if group and tag.startswith(start) and home.is_ours(run, tag.removeprefix(start)):
                    group.cloud.network.delete(_path(group, tag))


def _group(run: CloudRun, project: Resource | None) -> lease.LeaseGroup | None:
    """Return the default group of a project; None without the project, or without Neutron."""
    exists = run.admin.has("network") and run.find_project_id(project)
    return lease.read(run, project) if exists else None


def _start(ownership: OwnershipTag) -> str:
    return f"{ownership.tag}~in~"


def _path(group: lease.LeaseGroup, tag: str) -> str:
    return f"/security-groups/{group.id}/tags/{quote(tag, safe='')}"
