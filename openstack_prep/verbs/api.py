"""The verbs: plan, apply, destroy, show; a few lines each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from openstack_prep.base.errors import ConfigError, Mistake, PlanRefused, SpecError
from openstack_prep.cloud.connection import ADMINISTRATOR, Cloud, connect
from openstack_prep.cloud.lease import LOCK_TIMEOUT, Sight
from openstack_prep.cloud.site import Actor, Site
from openstack_prep.core import consent, executor, observing, planner
from openstack_prep.core.executor import JOBS, Event, silent
from openstack_prep.core.model import Action, Key, Mark, Observed, Resource
from openstack_prep.core.plan import Plan, Report, differences
from openstack_prep.resources.identity.default_group import LeftGroup
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.identity.role_assignment import RoleAssignment
from openstack_prep.resources.identity.user import User
from openstack_prep.spec import Spec
from openstack_prep.spec.python import spec_from
from openstack_prep.spec.resolving import resolve_spec
from openstack_prep.verbs import exclusive, scan
from openstack_prep.verbs.live_plan import LivePlan

FRESH = 10.0  # seconds for which a plan is taken to be still true

Wanted = Spec | Iterable[Resource]
Progress = Callable[[Key, int, int | None, int | None], None]


def _no_progress(key: Key, done: int, total: int | None, unpacked: int | None) -> None:
    """Show nothing."""


def plan(
    cloud: Cloud,
    wanted: Wanted,
    *,
    name: str | None = None,
    allow_replace: bool = False,
    adopt: bool = False,
    prune: bool = False,
    jobs: int = JOBS,
    progress: Progress = _no_progress,
) -> LivePlan:
    """Return what apply would do; nothing is changed.

    ``wanted`` is a spec or a list of resources, which may hold whatever YAML may: ``Quota(ram="64GiB")``.
    ``name`` is the name of the spec that a list stands for: the ownership tag of what apply creates holds it.
    By default it is that of the list's one project.  ``plan.refusals`` lists all that forbids it.  What is
    managed by a whole spec (one read from a file, or any with ``prune``) and no longer declared stands in
    ``plan.undeclared``; with ``prune`` it is deleted by further steps.
    Raises CloudError when the cloud cannot be read, SpecError with every wrong value and contradiction.
    """
    spec, site = open_site(cloud, wanted, jobs, progress, name=name, for_apply=True)
    seen = exclusive.look(site, spec.name, spec.resources)

    def make() -> Plan:
        others = frozenset(each.key for each in spec.resources)
        with cloud.reading(ADMINISTRATOR), ThreadPoolExecutor(1) as pool:
            standing = pool.submit(scan.look, site, spec.resources, jobs=jobs) if prune or spec.is_whole else None
            observed, found = observing.examine(site, spec.chosen, others=others, jobs=jobs)
        site.known.update(observed)
        mistakes = [*spec.unread, *found]
        made = planner.plan_apply(
            spec.name, spec.chosen, observed, mistakes=mistakes, allow_replace=allow_replace, adopt=adopt
        )
        if standing is not None:
            unchosen = [each for each in spec.resources if not spec.is_chosen(each)]
            there = observed | (observing.observe(site, unchosen, jobs=jobs) if unchosen else {})
            left = scan.undeclared(site, standing.result(), spec.resources, there, jobs=jobs)
            made = planner.plan_removals(made, left, prune=prune)
            refused = observing.examine_deletes(site, made, jobs=jobs)
            made = replace(made, refusals=(*made.refusals, *refused))
        return replace(made, refusals=tuple(spec.placed(made.refusals)))

    made = replace(exclusive.attempt(site, seen, "apply", make), allow_replace=allow_replace, adopt=adopt)
    return LivePlan.of(made, wanted=spec, site=site, lease=seen)


def plan_destroy(cloud: Cloud, wanted: Wanted, *, name: str | None = None, jobs: int = JOBS) -> LivePlan:
    """Return what destroy would delete: only what the spec manages, whether it still declares it or not."""
    spec, site = open_site(cloud, wanted, jobs, name=name)
    seen = exclusive.look(site, spec.name, spec.resources)

    def make() -> Plan:
        with cloud.reading(ADMINISTRATOR), ThreadPoolExecutor(1) as pool:
            standing = pool.submit(scan.look, site, spec.resources, jobs=jobs) if spec.is_whole else None
            observed = observing.observe(site, spec.resources, jobs=jobs)
            site.known.update(observed)
            left = scan.undeclared(site, standing.result(), spec.resources, observed, jobs=jobs) if standing else []
            if any(isinstance(each, Project) for each in spec.resources):
                left += scan.everything(site, (), [LeftGroup], jobs=jobs)
        made = planner.plan_destroy(spec.name, spec.resources, observed, left)
        refusals = spec.placed(observing.examine_deletes(site, made, jobs=jobs))
        return replace(made, refusals=tuple(refusals))

    made = exclusive.attempt(site, seen, "destroy", make)
    return LivePlan.of(made, wanted=spec, site=site, lease=seen)


def apply(
    cloud: Cloud,
    wanted: LivePlan | Wanted,
    *,
    name: str | None = None,
    allow_replace: bool = False,
    adopt: bool = False,
    prune: bool = False,
    jobs: int = JOBS,
    tell: Callable[[Event], None] = silent,
    progress: Progress = _no_progress,
    lock_timeout: float = LOCK_TIMEOUT,
    agreed: bool | None = None,
) -> Report:
    """Carry out a plan, or plan and carry out; the report says how each step went.

    One run at a time works on a spec: another one is waited for, ``lock_timeout`` seconds at most, then LeaseHeld
    is raised.  A plan that has become old, or was carried out before, or since which somebody else was at work, is
    made again first; if it differs, PlanRefused is raised before anything is changed, unless ``agreed`` is false:
    then the new plan counts.  Default: a given plan was agreed to.  Raises PlanRefused for a plan with refusals.
    ``allow_replace`` and ``adopt`` are for what is planned here; a plan brings the consent that it was made with.
    The run replaces, adopts and takes away only what the plan shows; whatever turns up later fails its step.
    """
    agreed = isinstance(wanted, LivePlan) if agreed is None else agreed
    if not isinstance(wanted, LivePlan):
        wanted = plan(
            cloud,
            wanted,
            name=name,
            allow_replace=allow_replace,
            adopt=adopt,
            prune=prune,
            jobs=jobs,
            progress=progress,
        )
    elif name not in (None, wanted.spec):
        raise SpecError([Mistake("name", f"{name!r} is not that of the plan, {wanted.spec!r}", "leave name out")])
    _refuse_no_cloud(cloud)
    if agreed:
        wanted.raise_for_refusals()

    def again(old: LivePlan) -> LivePlan:
        return _made_again(cloud, old, jobs, progress, agreed=agreed, prune=prune)

    def run(chosen: LivePlan) -> Report:
        chosen.site.progress = progress
        return executor.run(chosen, chosen.site, jobs=jobs, tell=tell)

    return exclusive.carry_out(wanted, current=_is_current, again=again, run=run, timeout=lock_timeout)


def _is_current(made: LivePlan) -> bool:
    return made.age <= FRESH and not made.site.spent


def look_for_lease(cloud: Cloud, wanted: Wanted, *, jobs: int = JOBS) -> Sight:
    """Return who is at work on a spec, if anybody is."""
    spec, site = open_site(cloud, wanted, jobs)
    with cloud.reading(ADMINISTRATOR):
        return exclusive.look(site, spec.name, spec.resources)


def destroy(
    cloud: Cloud,
    wanted: LivePlan | Wanted,
    *,
    name: str | None = None,
    jobs: int = JOBS,
    tell: Callable[[Event], None] = silent,
    lock_timeout: float = LOCK_TIMEOUT,
) -> Report:
    """Take back what carries our mark, dependents first; what others made stays.  One run at a time, as for apply."""
    agreed = isinstance(wanted, LivePlan)
    if not isinstance(wanted, LivePlan):
        wanted = plan_destroy(cloud, wanted, name=name, jobs=jobs)
    elif wanted.purpose != "destroy":
        raise SpecError([Mistake("plan", "is one to apply", "make one by plan_destroy")])
    return apply(cloud, wanted, name=name, jobs=jobs, tell=tell, lock_timeout=lock_timeout, agreed=agreed)


def show(cloud: Cloud, wanted: Wanted, *, name: str | None = None, jobs: int = JOBS) -> dict[Key, Observed | None]:
    """Return what exists of a spec, by key; None where there is nothing yet."""
    spec, site = open_site(cloud, wanted, jobs, name=name)
    with cloud.reading(ADMINISTRATOR):
        observed = observing.observe(site, spec.resources, jobs=jobs)
    return {resource.key: observed.get(resource.key) for resource in spec.resources}


def _made_again(cloud: Cloud, old: LivePlan, jobs: int, progress: Progress, *, agreed: bool, prune: bool) -> LivePlan:
    """Return the plan as it would be now, with its consent; raises PlanRefused when that is not what was agreed to."""
    new = _anew(cloud, old, jobs, progress, prune=prune)
    if not agreed:
        return new
    new.raise_for_refusals()
    moved = differences(old.data(), new.data())
    refusals = [Mistake(key, "has changed since the plan was made", "plan again") for key in moved]
    refusals = refusals or consent.beyond_plan(old, new)
    if refusals:
        raise PlanRefused(refusals)
    return new


def _anew(cloud: Cloud, old: LivePlan, jobs: int, progress: Progress, *, prune: bool) -> LivePlan:
    if old.remake is not None:
        return old.remake()
    if old.purpose == "destroy":
        return plan_destroy(cloud, old.wanted, jobs=jobs)
    prune = prune or any(step.action is Action.DELETE and not step.duplicate_of for step in old)
    return plan(
        cloud, old.wanted, allow_replace=old.allow_replace, adopt=old.adopt, prune=prune, jobs=jobs, progress=progress
    )


def open_site(
    cloud: Cloud,
    wanted: Wanted,
    jobs: int,
    progress: Progress = _no_progress,
    *,
    name: str | None = None,
    for_apply: bool = False,
) -> tuple[Spec, Site]:
    """Return a spec with its resources resolved, and the site that they are looked at in.

    Raises SpecError, and ConfigError for what is no cloud.
    """
    _refuse_no_cloud(cloud)
    if isinstance(wanted, LivePlan):
        raise SpecError([Mistake("spec", "is a plan already", "give that to apply or destroy")])
    spec = spec_from(wanted, name)
    tenant = connect(spec.clouds.tenant).allow_parallel(jobs) if spec.clouds.tenant else None
    cloud.allow_parallel(jobs).authenticate()  # before all else: a wrong password has one clear error
    spec = resolve_spec(spec, cloud, for_apply=for_apply)
    mark, homes = Mark(spec.name), scan.homes_of(spec.resources)
    project = next((each for each in spec.resources if isinstance(each, Project) and not spec.is_chosen(each)), None)
    if project and tenant is None and project.name == cloud.project_name and project.domain in cloud.domains:
        # who works in the project that others look after needs neither its users nor a look for it
        site = Site(cloud, mark, tenant=cloud, homes=homes, progress=progress)
        site.known[project.key] = Observed(id=cloud.project_id)
        return spec, site
    actors = _actors(spec.resources)
    return spec, Site(cloud, mark, tenant=tenant, actors=actors, homes=homes, progress=progress)


def _refuse_no_cloud(cloud: object) -> None:
    """Refuse what is given in place of a cloud, before anything is asked of it."""
    if not isinstance(cloud, Cloud):
        remedy = f"connect({cloud!r})" if isinstance(cloud, str) else "connect(), or connect(connection=...)"
        raise ConfigError(f"the first argument is a {type(cloud).__name__}, not a Cloud; give {remedy}")


def _actors(resources: Sequence[Resource]) -> dict[Key | None, Actor]:
    """Return by project the first user whose password the spec knows and who has a role there."""
    users = {each.key: each for each in resources if isinstance(each, User) and each.password is not None}
    assignments = [each for each in resources if isinstance(each, RoleAssignment) and each.gives_access]
    actors: dict[Key | None, Actor] = {}
    for each in assignments:
        user = users.get(each.holder.key)
        place = each.owner.key if each.owner else None
        if user is not None and user.password is not None and place not in actors:
            roles = tuple(one for one in assignments if one.holder == each.holder and one.owner == each.owner)
            actors[place] = Actor(each.holder, user.password, user.domain, each.owner, roles)
    return actors
