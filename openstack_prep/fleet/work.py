"""One task: a target is planned, carried out, audited or exported, by the same functions as a single spec."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openstack_prep.base.codes import Code
from openstack_prep.base.diagnostic import Diagnostic
from openstack_prep.base.errors import InternalError, Mistake, PlanRefused, PrepError, text_of
from openstack_prep.base.raw import Values
from openstack_prep.base.style import first_of
from openstack_prep.core import interrupts, text
from openstack_prep.core.model import Action
from openstack_prep.core.plan import ApplyFailed, Report, differences
from openstack_prep.fleet import process
from openstack_prep.fleet.order import Order, TargetOutcome, TargetStatus, words_of
from openstack_prep.resources.identity.project import Project
from openstack_prep.verbs import api, plan_file, rights
from openstack_prep.verbs.audit import audit
from openstack_prep.verbs.export import export
from openstack_prep.verbs.plan_file import SavedPlan

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud
    from openstack_prep.spec import Spec
    from openstack_prep.verbs.opening import LivePlan

_log = logging.getLogger(__name__)


PERMISSIONS = ("allow_replace", "adopt", "prune", "allow_loss")
"""Options that allow what a plan does not do by default."""


def work(order: Order) -> TargetOutcome:
    """Carry out an order, in whatever thread or process; what goes wrong is in the outcome."""
    begun = time.monotonic()
    try:
        interrupts.raise_passed_on()
        spec = process.spec_of(order)
        if order.content not in ("", process.content_of(spec)):
            what = "was modified after the run had begun"
            raise PlanRefused([Mistake(order.spec, what, "run again", code=Code.PLAN_CHANGED)])
        found = _WORK[order.verb](order, spec)
    except KeyboardInterrupt:
        found = TargetOutcome(
            target=order.target, status=TargetStatus.INTERRUPTED, summary="interrupted; run again to continue"
        )
    except PrepError as error:
        found = _failed(order, error)
    except Exception as error:  # noqa: BLE001 - a bug in one target must not end the others
        _log.debug("target %s", order.target, exc_info=error)
        found = _failed(order, InternalError(f"internal error: {text_of(error)}; please report it"))
    return replace(found, cloud=order.cloud or "", seconds=time.monotonic() - begun)


def _failed(order: Order, error: PrepError) -> TargetOutcome:
    status = TargetStatus.REFUSED if isinstance(error, PlanRefused) else TargetStatus.FAILED
    errors = [diagnostic.data() for diagnostic in error.diagnostics]
    return TargetOutcome(target=order.target, status=status, summary=status.value, errors=errors)


def _plan(order: Order, spec: Spec) -> TargetOutcome:
    cloud = process.cloud_for_reading(order)
    made = rights.warn_of_missing_rights(_made(order, spec, cloud))
    saved = None
    if order.options.save_to and not made.refusals:
        path, salt = Path(order.spec), bytes.fromhex(order.options.salt)
        read = plan_file.content_of(path)
        place = Path(order.options.save_to)
        saved = plan_file.saved(place, made, path, spec, read, cloud, made.tenant, salt=salt)
    return replace(_planned(order, made), saved=saved)


def _planned(order: Order, made: LivePlan) -> TargetOutcome:
    """Return a plan as an outcome."""
    options = order.options
    status = TargetStatus.REFUSED if made.refusals else TargetStatus.CHANGES if made else TargetStatus.UNCHANGED
    counts = Counter(step.action.value for step in made if step.action is not Action.KEEP)
    return TargetOutcome(
        target=order.target,
        status=status,
        summary="; ".join(filter(None, (text.counts(made.steps), made.left_over))),
        counts=counts,
        errors=made.refusals_data(),
        warnings=made.warnings,
        data=made.document() if options.data else None,
        table=made.render(options.style) if options.style else "",
        agreement=_agreement(made) if made else None,
    )


def _made(order: Order, spec: Spec, cloud: Cloud) -> LivePlan:
    options = order.options
    if options.destroy or order.verb == "destroy":
        return api.plan_destroy(cloud, spec, allow_loss=options.allow_loss, jobs=order.jobs)
    permissions: Mapping[str, Any] = {name: getattr(options, name) for name in PERMISSIONS}
    return api.plan(cloud, spec, jobs=order.jobs, **permissions)


def _agreement(plan: LivePlan) -> Values:
    """Return what a person agrees to by agreeing to a plan: its steps, and what they may replace."""
    return {"steps": plan.data(), "allow_replace": sorted(plan_file.allowed_replacements(plan))}


def _refuse_other_plan(agreed: Values, now: LivePlan) -> None:
    """Raise PlanRefused unless a plan is the one that was agreed to."""
    new = _agreement(now)
    moved = differences(agreed["steps"], new["steps"])
    moved += [each for each in new["allow_replace"] if each not in agreed["allow_replace"]]
    what = "has changed since the plan was created"
    refusals = [Mistake(each, what, "plan again", code=Code.PLAN_CHANGED) for each in dict.fromkeys(moved)]
    if refusals:
        raise PlanRefused(refusals)


def _apply(order: Order, spec: Spec) -> TargetOutcome:
    """Plan and carry out: ``api.apply`` plans once more what nobody has agreed to, unless that plan is empty."""
    agreed = order.agreed is not None or order.saved is not None
    cloud = process.cloud_of(order) if agreed else process.cloud_for_applying(order, spec)
    plan = _made(order, spec, cloud) if order.saved is None else _made_from_saved(order, spec, cloud)
    if order.agreed is not None:
        plan.raise_for_refusals()
        _refuse_other_plan(order.agreed, plan)
    interrupts.raise_passed_on()
    options = order.options
    permissions: Mapping[str, Any] = {"allow_replace": options.allow_replace, "prune": options.prune}
    report = api.apply(cloud, plan, jobs=order.jobs, lock_timeout=options.lock_timeout, agreed=agreed, **permissions)
    return _reported(order, plan, report)


def _made_from_saved(order: Order, spec: Spec, cloud: Cloud) -> LivePlan:
    """Return the present plan if it equals the saved one; raises PlanRefused."""
    saved, path = SavedPlan(Path(f"{order.saved_in}: {order.target}"), order.saved), Path(order.spec)
    saved.check_variables(spec)
    saved.check_cloud(cloud.authenticate())
    permissions: Mapping[str, Any] = {
        "allow_replace": saved.allow_replace,
        "adopt": saved.adopts,
        "prune": saved.prunes,
    }
    permissions = {**permissions, "allow_loss": saved.allow_loss}
    plan = api.plan(cloud, spec, jobs=order.jobs, **permissions)
    saved.check(plan, path, spec, plan.tenant)
    plan.raise_for_refusals()
    return plan


def _reported(order: Order, plan: LivePlan, report: Report) -> TargetOutcome:
    """Return a report as an outcome."""
    status = TargetStatus.DONE if report.changed else TargetStatus.UNCHANGED
    if report.interrupt is not None and report.skipped:
        status = TargetStatus.INTERRUPTED
    elif report.failed or report.skipped:
        status = TargetStatus.FAILED
    counts = Counter(result.step.action.value for result in report.changed)
    data = report.data() | ({"undeclared": plan.undeclared_data()} if plan.purpose == "apply" else {})
    return TargetOutcome(
        target=order.target,
        status=status,
        summary="; ".join(filter(None, (words_of(counts, done=True) or status.value, plan.left_over))),
        counts=counts,
        errors=[
            Diagnostic(code=ApplyFailed.code, where=str(result.step), what=text_of(result.error)).data()
            for result in report.failed
        ],
        warnings=plan.warnings,
        data=data if order.options.data else None,
    )


def _audit(order: Order, spec: Spec) -> TargetOutcome:
    found = audit(process.cloud_for_reading(order), spec, jobs=order.jobs)
    lines = "\n".join(map(str, found))
    return TargetOutcome(
        target=order.target,
        status=TargetStatus.DRIFT if found else TargetStatus.UNCHANGED,
        summary=f"{len(found)} found: {first_of(dict.fromkeys(drift.resource for drift in found))}"
        if found
        else "no drift",
        counts=Counter(drift.code.value for drift in found),
        warnings=tuple(f"not read: {each}" for each in found.left_out),
        data={"spec": spec.name, "drift": [drift.data() for drift in found], "left_out": list(found.left_out)}
        if order.options.data
        else None,
        table=lines if order.options.style else "",
    )


def _export(order: Order, spec: Spec) -> TargetOutcome:
    cloud = process.cloud_of(order)
    project = next((resource for resource in spec.resources if isinstance(resource, Project)), None)
    found = export(cloud.authenticate(), project, kinds=order.options.kinds, jobs=order.jobs)
    return TargetOutcome(
        target=order.target,
        status=TargetStatus.DONE,
        summary=f"{len(found.sections)} sections, {len(found.unsaid)} notes",
        data={"spec": dict(found.sections), "left_out": list(found.unsaid)} if order.options.data else None,
        table=str(found),
    )


_WORK: Mapping[str, Callable[[Order, Any], TargetOutcome]] = {
    "plan": _plan,
    "apply": _apply,
    "destroy": _apply,
    "audit": _audit,
    "export": _export,
}
