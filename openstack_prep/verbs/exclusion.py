"""Carry out a plan while no other run works on the same spec: under its lease, planned again if necessary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import CloudError, Mistake, PlanRefused
from openstack_prep.cloud import lease
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.no_cloud import NoCloud
from openstack_prep.core.model import INTERRUPT, Action, Resource, Result, Status, Step
from openstack_prep.core.plan import Plan, Report
from openstack_prep.resources.identity.in_project import InProject
from openstack_prep.resources.identity.project import Project
from openstack_prep.verbs.opening import LivePlan


def look(run: CloudRun, spec: str, resources: Sequence[Resource]) -> lease.LeaseReading:
    """Return who is at work on a spec, to be called before anything else is read for a plan.

    Without a cloud nothing has the lease: the files of such a spec have locks of their own.
    """
    if isinstance(run.admin, NoCloud):
        return lease.LeaseReading(spec, None, existed=False)
    home, declared = _home(resources)
    return lease.look(run, spec, home, declared=declared)


def attempt(
    run: CloudRun, seen: lease.LeaseReading, purpose: Literal["apply", "destroy"], make: Callable[[], Plan]
) -> Plan:
    """Return a plan, refused if another run changes resources while they are read, such as between two requests."""
    try:
        made = make()
        unsure = bool(made.refusals) and lease.is_outdated(run, seen)
        return replace(made, refusals=tuple(map(_unsure, made.refusals))) if unsure else made
    except (CloudError, PlanRefused) as error:
        if not lease.is_outdated(run, seen):
            raise
        what = f"cannot be planned while another run works on it: {error}"
        refusal = Mistake(f"spec {seen.spec}", what, "plan again after that run has ended", code=Code.LEASE_HELD)
        return Plan(spec=seen.spec, purpose=purpose, steps=(), refusals=(refusal,))


def _unsure(refusal: Mistake) -> Mistake:
    """Return a refusal whose fix is to wait: the unfinished work of another run may look like this."""
    fix = "another run is at work on the spec, and this may be its unfinished work: plan again after it has ended"
    return replace(refusal, fix=fix)


def _home(resources: Sequence[Resource]) -> tuple[Project | None, bool]:
    """Return the project of the lease, None for the connection's own, and whether the spec declares it."""
    projects = (resource for resource in resources if isinstance(resource, Project))
    declared = next(projects, None)
    if declared is not None:
        return declared, True
    # many specs have recordsets in the project of a zone
    owners = (
        resource.owner for resource in resources if isinstance(resource, InProject) and resource.kind != "recordset"
    )
    return next(filter(None, owners), None), False


def carry_out(
    plan: LivePlan,
    *,
    current: Callable[[LivePlan], bool],
    again: Callable[[LivePlan], LivePlan],
    execute: Callable[[LivePlan], Report],
    timeout: float,
) -> Report:
    """Run a plan under the lease of its spec; a plan without steps needs no lease.

    ``current`` returns whether a plan is young enough, ``again`` creates it again, or raises PlanRefused. If somebody
    else may have worked on the spec since the plan was created, it is created again under the lease. So a plan with
    refusals is refused only if no other run was in progress, or was killed, while it was created: the incomplete work
    of another run looks like an error, and the last requests of a killed one may arrive while the cloud is read.
    Raises LeaseHeld, PlanRefused.
    """
    seen, run = plan.lease, plan.run

    def plan_again() -> Report:
        return carry_out(again(plan), current=current, again=again, execute=execute, timeout=timeout)

    if plan.refusals and not (seen.ended or lease.is_outdated(run, seen)):
        plan.raise_for_refusals()
    if not (plan or plan.refusals):
        return _run(plan, execute) if current(plan) else plan_again()
    home = _step_of_home(plan)
    first = None
    if home is not None and home.action is Action.CREATE:
        # Keystone's unique names are the first compare-and-swap: the lease is stored in the project
        if plan.refusals or not current(plan):
            return plan_again()
        # the project alone: nothing else may be written before the lease is held, which is stored in it
        first = execute(replace(plan, steps=(home,)))
        if first.failed or first.interrupt is not None:
            return _rest_skipped(plan, home, first)
        plan = replace(plan, steps=tuple(_made(step, first) if step is home else step for step in plan))
    elif not seen.existed:  # a destroy without the project: the remaining resources have unique names
        return plan_again() if lease.is_outdated(run, seen) else _run(plan, execute)
    try:
        with lease.held(run, seen, timeout) as held:
            # what was read before the lease was taken may be the incomplete work of its former holder
            if plan.refusals or not (held.untouched and current(plan)):
                plan = again(plan)
                plan.raise_for_refusals()
            return _joined(first, _run(_home_last(plan), execute, held))
    except lease.Vanished:
        return plan_again()


def _run(plan: LivePlan, execute: Callable[[LivePlan], Report], held: lease.Held | None = None) -> Report:
    """Run a plan, which makes the answers that were read for it outdated."""
    plan.run.carried_out = True
    if held is not None:
        plan.run.check_lease = held.check
    return execute(plan)


def _step_of_home(plan: LivePlan) -> Step | None:
    project = plan.lease.project
    return next((step for step in plan if project is not None and step.key == project.key), None)


def _made(step: Step, report: Report) -> Step:
    """Return the step of a project that has been created, for the run of all other steps."""
    return replace(step, action=Action.KEEP, observed=report.results[0].observed, changes=())


def _home_last(plan: LivePlan) -> LivePlan:
    """Return the plan with the deletion of the project after all other steps, because it deletes the lease."""
    home = _step_of_home(plan)
    if home is None or home.action is not Action.DELETE:
        return plan
    others = frozenset({frozenset(step.key for step in plan) - {home.key}})
    return replace(plan, steps=tuple(replace(step, after=others) if step is home else step for step in plan))


def _rest_skipped(plan: LivePlan, home: Step, first: Report) -> Report:
    cause = INTERRUPT if first.interrupt is not None else str(home.key)
    rest = (
        Result(step=step, status=Status.DONE, observed=step.observed)
        if step.action is Action.KEEP
        else Result(step=step, status=Status.SKIPPED, cause=cause)
        for step in plan
        if step is not home
    )
    return replace(first, results=(*first.results, *rest))


def _joined(first: Report | None, rest: Report) -> Report:
    """Return one report of the project's step and of all others."""
    if first is None:
        return rest
    done = {result.step.key: result for result in first.results}
    results = tuple(done.get(result.step.key, result) for result in rest.results)
    return replace(rest, results=results, seconds=first.seconds + rest.seconds)
