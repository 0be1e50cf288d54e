"""The verbs plan, apply, destroy and show; a few lines each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import CloudError, ConfigError, Mistake, PlanRefused, SpecError
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.entries import ADMINISTRATOR
from openstack_prep.cloud.lease import LOCK_TIMEOUT, LeaseReading
from openstack_prep.core import executor, observation, permission, planner
from openstack_prep.core.deletion_loss import DeletionLoss
from openstack_prep.core.executor import JOBS, Event, silent
from openstack_prep.core.model import Action, Key, Observed, Resource, Step
from openstack_prep.core.plan import Plan, Report, differences
from openstack_prep.core.resource import ListsPlanWarnings, supports
from openstack_prep.resources.identity.project import LeftGroup, Project
from openstack_prep.spec import Spec
from openstack_prep.spec.resolution import list_warnings
from openstack_prep.verbs import entries, exclusion, quotas, rights, scan
from openstack_prep.verbs.opening import LivePlan, Progress, Wanted, no_progress, open_run, refuse_no_cloud
from openstack_prep.verbs.refused_steps import RefusedSteps

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud

FRESH = 10.0  # seconds for which a plan counts as up to date


def plan(
    cloud: Cloud,
    wanted: Wanted,
    *,
    name: str | None = None,
    allow_replace: bool = False,
    adopt: bool = False,
    prune: bool = False,
    allow_loss: Collection[str] = (),
    jobs: int = JOBS,
    progress: Progress = no_progress,
) -> LivePlan:
    """Return what apply would do; nothing is changed.

    ``cloud`` is the connection of an administrator, or of a user of the spec's project. ``wanted`` is a spec, or a list
    of resources whose fields may be written as in YAML: ``Quota(ram="64GiB")``. ``name`` is the name of the spec for a
    list: the ownership tags of created resources contain it. Default: the name of the only project in the list.

    ``allow_replace`` allows deleting and creating again what cannot be changed in place, ``adopt`` changing what exists
    and is not managed by the spec. With ``prune``, further steps delete what the spec manages and no longer declares;
    otherwise ``plan.undeclared`` lists it, for a spec that was read from a file. ``allow_loss`` names what deletions,
    replacements and updates may take from others, as the refusals name it: ``["subnet/1c5e..."]``. ``jobs`` is how many
    requests are sent at a time. ``progress`` is called with a key, and the bytes of its image that were read, their
    total and the unpacked ones, as far as they are known.

    ``plan.refusals`` lists all reasons why the plan may not be carried out. Raises CloudError if the cloud cannot be
    read, SpecError with every wrong value and contradiction.
    """
    spec, run = open_run(cloud, wanted, jobs, progress, name=name, for_apply=True)
    seen = exclusion.look(run, spec.name, spec.resources)

    def make() -> Plan:
        others = frozenset(resource.key for resource in spec.resources)
        look = partial(scan.look, run, spec.resources, jobs=jobs, folder=spec.folder)
        with (
            cloud.reading(ADMINISTRATOR),
            observation.beside(look if prune or spec.is_whole else None, jobs=jobs) as standing,
        ):
            observed, found = observation.examine(run, spec.chosen, others=others, jobs=jobs)
        run.known.update(observed)
        permissions = {"allow_replace": allow_replace, "adopt": adopt}
        made = planner.plan_apply(spec.name, spec.chosen, observed, mistakes=[*spec.unread, *found], **permissions)
        if (sight := standing()) is not None:
            unchosen = [resource for resource in spec.resources if not spec.is_chosen(resource)]
            # what another target of the spec declares is not undeclared, so all of the spec is looked for
            all_observed = observed | (observation.observe(run, unchosen, jobs=jobs) if unchosen else {})
            left = scan.undeclared(run, sight, spec.resources, all_observed, jobs=jobs)
            made = replace(planner.plan_removals(made, left, prune=prune), warnings=sight.warnings)
        made = with_losses(run, made, allow_loss, sight.failed if sight else {}, jobs=jobs)
        refusals = [*made.refusals, *rights.missing(cloud, made, spec.clouds), *rights.missing_logins(run, made)]
        refusals += [*rights.wrong_entry(run, made, spec.clouds), *rights.missing_trusts(run, made, spec.clouds)]
        short = list(quotas.shortages(run, replace(made, refusals=tuple(refusals))))
        refusals += (mistake for mistake in short if isinstance(mistake, Mistake))
        unknown = (*(each for each in short if isinstance(each, str)), *rights.not_checked(cloud, made, run))
        made = replace(made, not_checked=tuple(dict.fromkeys(unknown)))
        logins = entries.examine(run, made, jobs=jobs)
        refusals += (login for login in logins if isinstance(login, Mistake))
        warnings = (*made.warnings, *(login for login in logins if isinstance(login, str)))
        return replace(made, refusals=tuple(spec.placed(refusals)), warnings=warnings)

    made = exclusion.attempt(run, seen, "apply", make)
    warnings = (*spec.warnings, *list_warnings(spec), *rights.doubtful(cloud, made, spec.clouds, run), *made.warnings)
    warnings = (*warnings, *entries.list_warnings(cloud, made, spec), *_plan_warnings(run, made, spec))
    warnings = (*warnings, *RefusedSteps(cloud).standing(made))
    made = replace(made, allow_replace=allow_replace, adopt=adopt, warnings=warnings)
    return LivePlan.of(made, wanted=spec, run=run, lease=seen)


def _plan_warnings(run: CloudRun, made: Plan, spec: Spec) -> Iterator[str]:
    """Yield what kinds warn about once everything is known that exists."""
    for step in made.steps if not made.refusals else ():
        if step.observed is not None and supports(step.resource, ListsPlanWarnings):
            place = f"{spec.places[step.key]}: " if step.key in spec.places else ""
            for text in step.resource.list_plan_warnings(run, step.observed):
                yield f"{place}{step.key}: {text}"


def plan_destroy(
    cloud: Cloud, wanted: Wanted, *, name: str | None = None, allow_loss: Collection[str] = (), jobs: int = JOBS
) -> LivePlan:
    """Return what destroy would delete: only what the spec manages, whether it still declares it or not.

    ``cloud``, ``wanted``, ``name``, ``allow_loss`` and ``jobs`` are those of ``plan``. Raises CloudError, SpecError.
    """
    spec, run = open_run(cloud, wanted, jobs, name=name)
    seen = exclusion.look(run, spec.name, spec.resources)

    def make() -> Plan:
        failed: dict[type[Resource], CloudError] = {}
        look = partial(scan.look, run, spec.resources, jobs=jobs, folder=spec.folder, all_may_fail=True)
        with cloud.reading(ADMINISTRATOR), observation.beside(look if spec.is_whole else None, jobs=jobs) as standing:
            observed = observation.observe(run, spec.resources, jobs=jobs, failed=failed.__setitem__)
            run.known.update(observed)
            sight = standing()
            left = []
            if sight is not None:
                failed |= sight.failed
                left = scan.undeclared(run, sight, spec.resources, observed, jobs=jobs)
            if any(isinstance(resource, Project) for resource in spec.chosen):
                left += scan.everything(run, (), [LeftGroup], jobs=jobs)
        made = planner.plan_destroy(spec.name, spec.chosen, observed, left)
        made = with_losses(run, made, allow_loss, failed, jobs=jobs)
        refusals = [*made.refusals, *rights.missing(cloud, made, spec.clouds)]
        return replace(made, refusals=tuple(spec.placed(refusals)))

    made = exclusion.attempt(run, seen, "destroy", make)
    made = replace(made, warnings=(*rights.doubtful(cloud, made, spec.clouds), *made.warnings))
    return LivePlan.of(made, wanted=spec, run=run, lease=seen)


def apply(
    cloud: Cloud,
    wanted: LivePlan | Wanted,
    *,
    name: str | None = None,
    allow_replace: bool = False,
    adopt: bool = False,
    prune: bool = False,
    allow_loss: Collection[str] = (),
    jobs: int = JOBS,
    tell: Callable[[Event], None] = silent,
    progress: Progress = no_progress,
    lock_timeout: float = LOCK_TIMEOUT,
    agreed: bool | None = None,
) -> Report:
    """Carry out a plan, or plan and carry out; the report contains the outcome of each step.

    ``wanted`` is a plan, or a spec or list as for ``plan``, which also explains ``cloud``, ``name``, ``allow_replace``,
    ``adopt``, ``prune``, ``allow_loss``, ``jobs`` and ``progress``. The permissions apply to the plan that this call
    creates; a given plan keeps its own. ``tell`` is called with an Event whenever a step begins, is retried or ends.

    Only one run at a time works on a spec: apply waits for another run, at most ``lock_timeout`` seconds, then
    LeaseHeld is raised. A plan that is too old, was carried out before, or since which somebody else was at work, is
    first created again; if it differs, PlanRefused is raised before anything is changed, unless ``agreed`` is false:
    then the new plan is used. A plan with nothing left to do never differs. Default: a given plan was agreed to.
    Raises PlanRefused for a plan with refusals, SpecError, CloudError; not for steps that fail: see
    ``report.raise_for_failures()``. The run replaces, adopts and deletes only what the plan shows; any other such
    change fails its step.
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
            allow_loss=allow_loss,
            jobs=jobs,
            progress=progress,
        )
    _check_name(name, wanted)
    refuse_no_cloud(cloud)

    def again(old: LivePlan) -> LivePlan:
        return _made_again(cloud.own, old, jobs, progress, agreed=agreed, prune=prune)

    if wanted.run.admin is not wanted.run.admin.own and (wanted or wanted.refusals):
        wanted = again(wanted)  # its answers were read for many plans, and may be old
    if agreed:
        wanted.raise_for_refusals()

    def execute(chosen: LivePlan) -> Report:
        chosen.run.progress = progress
        refused = RefusedSteps(cloud)

        def note(event: Event) -> None:
            if event.result is not None:
                refused.note(event.result, chosen)
            tell(event)

        return executor.execute(chosen, chosen.run, jobs=jobs, tell=note)

    return exclusion.carry_out(wanted, current=_is_current, again=again, execute=execute, timeout=lock_timeout)


def _check_name(name: str | None, made: LivePlan) -> None:
    """Raise SpecError if a plan is of another spec than ``name``."""
    if name not in (None, made.spec):
        what = f"{name!r} differs from the name of the plan, {made.spec!r}"
        raise SpecError([Mistake("name", what, "remove the argument name")])


def _is_current(made: LivePlan) -> bool:
    return made.age <= FRESH and not made.run.carried_out


def look_for_lease(cloud: Cloud, wanted: Wanted, *, jobs: int = JOBS) -> LeaseReading:
    """Return who is at work on a spec, if anybody is."""
    spec, run = open_run(cloud, wanted, jobs)
    with cloud.reading(ADMINISTRATOR):
        return exclusion.look(run, spec.name, spec.resources)


def destroy(
    cloud: Cloud,
    wanted: LivePlan | Wanted,
    *,
    name: str | None = None,
    allow_loss: Collection[str] = (),
    jobs: int = JOBS,
    tell: Callable[[Event], None] = silent,
    lock_timeout: float = LOCK_TIMEOUT,
) -> Report:
    """Delete what the spec manages, dependents first; everything else is kept.

    ``wanted`` is a plan of ``plan_destroy``, or a spec or list. ``cloud``, ``name``, ``allow_loss``, ``jobs``,
    ``tell`` and ``lock_timeout`` (seconds) are those of ``apply``. Raises PlanRefused, LeaseHeld, SpecError,
    CloudError.
    """
    agreed = isinstance(wanted, LivePlan)
    if not isinstance(wanted, LivePlan):
        wanted = plan_destroy(cloud, wanted, name=name, allow_loss=allow_loss, jobs=jobs)
    elif wanted.purpose != "destroy":
        raise SpecError([Mistake("plan", "is a plan for apply, not for destroy", "create it with plan_destroy()")])
    return apply(cloud, wanted, name=name, jobs=jobs, tell=tell, lock_timeout=lock_timeout, agreed=agreed)


def show(cloud: Cloud, wanted: Wanted, *, name: str | None = None, jobs: int = JOBS) -> dict[Key, Observed | None]:
    """Return the existing resources of a spec, by key; None for missing ones.

    ``cloud``, ``wanted``, ``name`` and ``jobs`` are those of ``plan``. Raises SpecError, CloudError.
    """
    spec, run = open_run(cloud, wanted, jobs, name=name)
    with cloud.reading(ADMINISTRATOR):
        observed = observation.observe(run, spec.resources, jobs=jobs)
    return {resource.key: observed.get(resource.key) for resource in spec.resources}


def _made_again(cloud: Cloud, old: LivePlan, jobs: int, progress: Progress, *, agreed: bool, prune: bool) -> LivePlan:
    """Return the plan created again with its permissions; raises PlanRefused if it differs from what was agreed to."""
    new = _planned_again(cloud, old, jobs, progress, prune=prune)
    if not agreed:
        return new
    new.raise_for_refusals()
    moved = differences(old.data(), new.data())
    what = "has changed since the plan was created"
    refusals = [Mistake(key, what, "plan again", code=Code.PLAN_CHANGED) for key in moved]
    # the same changes may lose more than before: what others have added since
    refusals = refusals or permission.beyond_plan(old, new)
    if refusals:
        raise PlanRefused(refusals)
    return new


def _planned_again(cloud: Cloud, old: LivePlan, jobs: int, progress: Progress, *, prune: bool) -> LivePlan:
    if old.remake is not None:
        return old.remake()
    if old.purpose == "destroy":
        return plan_destroy(cloud, old.wanted, allow_loss=old.allow_loss, jobs=jobs)
    prune = prune or any(step.action is Action.DELETE and not step.duplicate_of for step in old)
    return plan(
        cloud,
        old.wanted,
        allow_replace=old.allow_replace,
        adopt=old.adopt,
        prune=prune,
        allow_loss=old.allow_loss,
        jobs=jobs,
        progress=progress,
    )


def with_losses(
    run: CloudRun,
    made: Plan,
    allow_loss: Collection[str],
    failed: Mapping[type[Resource], CloudError] | None = None,
    *,
    jobs: int = JOBS,
) -> Plan:
    """Return a plan that shows what its deletions take from others.

    It is refused if a service would refuse one of them, or unless all losses are allowed. ``failed`` are the kinds that
    were not looked for, because their service failed.
    """
    blockers = observation.examine_deletes(run, made, jobs=jobs)
    made = _with_unread(observation.find_losses(run, made, jobs=jobs), failed or {})
    if isinstance(allow_loss, str):
        raise ConfigError(f"allow_loss={allow_loss!r} is one string; pass a list: [{allow_loss!r}]")
    made = replace(made, allow_loss=frozenset(allow_loss))
    unchecked = dict.fromkeys(str(each) for step in made for each in step.unchecked)
    losses = permission.refuse_losses(made, made.allow_loss)
    unknown = permission.unknown_losses(made, made.allow_loss) if losses else ()  # a repeated run may find them gone
    warnings = (*made.warnings, *unchecked, *unknown)
    return replace(made, refusals=(*made.refusals, *blockers, *losses), warnings=warnings)


def _with_unread(made: Plan, failed: Mapping[type[Resource], CloudError]) -> Plan:
    """Return a plan in which the deletion of a project shows what was not looked for: no run finds it later.

    Without such a deletion, the last one of a destroy does, which would otherwise seem complete.
    """
    if not failed:
        return made
    deletions = [step for step in made if step.action is Action.DELETE]
    chosen = [step for step in deletions if isinstance(step.resource, Project)]
    chosen = chosen or deletions[-1:] if made.purpose == "destroy" else chosen
    keys = {step.key for step in chosen}
    losses = [
        DeletionLoss.unread(kind.kind, f"{scan.plural(kind)} of the spec", error) for kind, error in failed.items()
    ]

    def shown(step: Step) -> Step:
        known = {loss.address for loss in step.deletion_losses}
        added = (loss for loss in losses if loss.address not in known)
        return replace(step, deletion_losses=(*step.deletion_losses, *added))

    return replace(made, steps=tuple(shown(step) if step.key in keys else step for step in made))
