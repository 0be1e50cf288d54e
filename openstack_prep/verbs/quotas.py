"""What the additions of a plan need of the quotas of their projects, together, so that no run ends half-way.

The quotas of a spec count as written: their step comes before those that need them. Counted are resources that are
created, interfaces of routers, rules that new groups bring, and what Heat would create. Not counted are ports of DHCP
and what other runs are about to use. Of a new project the defaults are read.

Source: Neutron 29.0.0, quota/resource.py (ports count by their project: those of interfaces do, those of gateways and
floating IPs have none), db/extraroute_db.py (the quota of routes is one per router); Compute API "os-quota-sets".
"""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import CloudError, Mistake
from openstack_prep.base.raw import Raw
from openstack_prep.core.model import Action, Key, Step
from openstack_prep.core.observation import UPDATING
from openstack_prep.core.resource import NeedsQuota, supports
from openstack_prep.core.twin import Twin
from openstack_prep.resources.compute import quota_stores
from openstack_prep.resources.compute.quota_stores import EACH, QuotaUsage, Store
from openstack_prep.resources.identity.in_project import InProject

if TYPE_CHECKING:
    from openstack_prep.cloud.cloud_run import CloudRun
    from openstack_prep.core.plan import Plan
    from openstack_prep.resources.identity.project import Project

Place = tuple[str, ...]
UNENFORCED = {("router", "ports")}
"""What counts against a quota, and is never refused for it: Neutron creates the ports of interfaces itself.

Neutron 29.0.0, db/l3_db.py, _add_interface_by_subnet: the core plugin is called, and quotas are those of requests. The
next port that a request creates is refused.
"""


def shortages(run: CloudRun, plan: Plan) -> Iterator[Mistake | str]:
    """Yield the quotas that a plan exceeds, unless a step reports them, and as texts those that could not be read."""
    reported = {key for refusal in plan.refusals if refusal.code == Code.QUOTA_SHORT for key in refusal.keys}
    limits = {_place(step): step.resource.desired() for step in plan.steps if step.key.kind == "quota"}
    for place, needs in _needs(run, plan).items():
        owner = next(iter(needs.values()))[0][0].owner
        for name, quota in _read(run, owner, needs, limits.get(place, {})):
            if isinstance(quota, str):
                yield quota
            elif not reported & {resource.key for resource, _ in needs[name]}:
                for users in [[each] for each in needs[name]] if name in EACH else [needs[name]]:
                    yield from _shortage(run, owner, name, quota, users, declared=name in limits.get(place, {}))


def _place(step: Step) -> Place:
    return step.resource.place if isinstance(step.resource, InProject) else ()


Needs = dict[str, list[tuple[InProject, int]]]
"""By quota, who needs how much."""


def _needs(run: CloudRun, plan: Plan) -> dict[Place, Needs]:
    found: dict[Place, Needs] = defaultdict(lambda: defaultdict(list))
    for step in plan.pending:
        resource = step.resource
        is_new = step.action is Action.CREATE
        if not (is_new or step.action in UPDATING) or isinstance(resource, Twin):
            continue
        if isinstance(resource, InProject) and supports(resource, NeedsQuota):
            for name, number in resource.quota_need(run, None if is_new else step.changes).items():
                if number > 0:
                    found[resource.place][name].append((resource, number))
    return found


def _read(
    run: CloudRun, owner: Project | None, names: Needs, declared: Mapping[str, int]
) -> Iterator[tuple[str, QuotaUsage | str]]:
    """Yield the quotas of a project with the limits that the spec writes, or why those of a service are unknown."""
    for store in quota_stores.STORES:
        mine = [name for name in names if quota_stores.store_of(name) is store]
        if not mine:
            continue
        try:
            answer = _answer(run, owner, store)
        except CloudError as error:
            whose = f" of {owner.key}" if owner else ""
            yield mine[0], f"quotas{whose} for {', '.join(mine)} (they cannot be read: {error})"
            continue
        for name in mine:
            if quota := quota_stores.quota_usage(name, answer):
                yield name, quota._replace(limit=declared.get(name, quota.limit))


def _answer(run: CloudRun, owner: Project | None, store: Store) -> Raw:
    """Return the quotas of a project in the service's own names; of a new project, the defaults."""
    project_id = run.find_project_id(owner)
    if project_id is None:
        return quota_stores.read_defaults(run, store)
    return quota_stores.read_usage(run, store, project_id)


def _shortage(
    run: CloudRun,
    owner: Project | None,
    name: str,
    quota: QuotaUsage,
    users: Sequence[tuple[InProject, int]],
    *,
    declared: bool,
) -> Iterator[Mistake | str]:
    needed: Counter[Key] = Counter()
    for resource, number in users:
        needed[resource.key] += number
    if quota.allows(needed.total()):
        return
    if all((key.kind, name) in UNENFORCED for key in needed):
        yield f"the quota {name}, which {', '.join(map(str, needed))} exceed without being refused"
        return
    enough = quota.used + needed.total()
    if declared:
        fix = f"raise quota.{name} in the spec to {enough}"
    elif project_id := run.find_project_id(owner):
        fix = f"raise the quota: {shlex.join(quota_stores.set_command(name, enough, project_id))}"
    else:
        fix = f"set {name}: {enough} in the quota of the new project in the spec"
    exceed = "exceeds" if len(needed) == 1 else "exceed together"
    what = f"{exceed} the quota {name}: {needed.total()} more, {quota.left} of {quota.limit} left"
    yield Mistake.about([*needed], what, fix, code=Code.QUOTA_SHORT)
