"""``plan``, ``apply``, ``destroy`` and ``show``: the verbs on a spec."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from openstack_prep.base.errors import ConfigError
from openstack_prep.base.key import labels
from openstack_prep.cli.output import judge_reports, print_result, reading, say, style_of, warn, write_html
from openstack_prep.cli.running import carry_out, confirm_plan, name_holder, open_spec, print_warnings, run_plan
from openstack_prep.cli.spec import no_garbage
from openstack_prep.core import text
from openstack_prep.verbs import api, rights

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud
    from openstack_prep.core.model import Key, Observed
    from openstack_prep.reports.html import Page
    from openstack_prep.spec import Spec
    from openstack_prep.verbs.opening import LivePlan
    from openstack_prep.verbs.plan_file import SavedPlan


def plan_spec(options: argparse.Namespace) -> int:
    _refuse_beside_destroy(options)
    _refuse_beside_target(options)
    judge_reports(options)
    if options.out:
        from openstack_prep.verbs import plan_file  # with images and stacks, which few specs declare

        plan_file.refuse_other_file(options.out)
        read = plan_file.content_of(options.spec)
    cloud, spec = open_spec(options, options.spec)
    plan = (_plan_destroy if options.destroy else _plan_apply)(options, cloud, spec)

    plan = rights.warn_of_missing_rights(plan)
    print_warnings(plan, spec)
    plan_id = ""
    if options.out and not plan.refusals:  # before the plan is printed, so that it is not if this fails
        plan_id = plan_file.save(options.out, plan, options.spec, spec, read, cloud, plan.tenant)
        for warning in plan_file.list_warnings(options.spec, spec):
            warn(warning)
    print_result(options, plan.render(style_of(options, sys.stdout)), plan.document())
    code = 2 if options.detailed_exitcode and plan else 0
    code = write_html(options, lambda: _page(plan, options.spec), code)
    if options.out:
        is_saved = f"saved the plan as {options.out}; its id is {plan_id}"
        say(f"did not save {options.out}: the plan is refused" if plan.refusals else is_saved)
    name_holder(plan)
    plan.raise_for_refusals()
    return code


def _page(plan: LivePlan, spec: Path) -> Page:
    from openstack_prep.reports.html_content import page_of_plan  # with pictures and their networks, only for --html

    return page_of_plan(plan, plan.document(), spec)


def _refuse_beside_target(options: argparse.Namespace) -> None:
    """Refuse what needs the whole spec: to prune it, or to save its plan and to apply that."""
    for name in ("prune", "out", "plan"):
        if options.target and getattr(options, name, None):
            raise ConfigError(f"--target does not go with --{name}, which needs the whole spec; leave one of them out")


def _refuse_beside_destroy(options: argparse.Namespace) -> None:
    """Refuse options of an apply beside ``plan --destroy``."""
    given = {"--allow-replace": options.allow_replace, "--adopt": options.adopt, "--prune": options.prune}
    for option in (name for name, value in given.items() if value and options.destroy):
        raise ConfigError(f"plan: {option} does not apply to --destroy; leave it out")


def _limited(options: argparse.Namespace, spec: Spec, *, dependents: bool = False) -> Spec:
    """Return the spec with only the targets, and what they need, or what cannot exist without them."""
    if not options.target:
        return spec
    from openstack_prep.spec import targets  # few plans have any

    return (targets.limit_to_dependents if dependents else targets.limit_to)(spec, options.target)


def _plan_apply(options: argparse.Namespace, cloud: Cloud, spec: Spec) -> LivePlan:
    spec = _limited(options, spec)
    permissions = {"allow_replace": options.allow_replace, "adopt": options.adopt, "prune": options.prune}
    permissions["allow_loss"] = options.allow_loss
    with reading(options):
        plan = api.plan(cloud, spec, **permissions, jobs=options.jobs)
    return replace(plan, left_out=len(spec.resources) - len(spec.chosen))


def _plan_destroy(options: argparse.Namespace, cloud: Cloud, spec: Spec) -> LivePlan:
    spec = _limited(options, spec, dependents=True)
    with reading(options):
        plan = api.plan_destroy(cloud, spec, allow_loss=options.allow_loss, jobs=options.jobs)
    return replace(plan, left_out=len(spec.resources) - len(spec.chosen))


def apply_spec(options: argparse.Namespace) -> int:
    _refuse_beside_target(options)
    judge_reports(options)
    if options.plan:
        _refuse_permissions(options)
        return _apply_saved(options)
    if options.approved:
        raise ConfigError("apply: --approved requires --plan; name the plan that a person has approved")
    with no_garbage():
        from openstack_prep.verbs.plan_file import refuse_as_spec  # as for plan

        refuse_as_spec(options.spec, "apply")
    cloud, spec = open_spec(options, options.spec)
    plan = _plan_apply(options, cloud, spec)
    print_warnings(plan, spec)
    return carry_out(options, cloud, plan, options.spec)


def _refuse_permissions(options: argparse.Namespace) -> None:
    """Refuse permissions beside a saved plan, which has its own."""
    given = {"--allow-replace": options.allow_replace, "--adopt": options.adopt, "--prune": options.prune}
    given["--allow-loss"] = options.allow_loss
    for added in (name for name, value in given.items() if value):
        raise ConfigError(f"apply: {added} cannot be added to --plan; plan with it, and save that with --out")


def _apply_saved(options: argparse.Namespace) -> int:
    saved, cloud, plan, path = open_saved(options)
    if options.approved:
        from openstack_prep.verbs import approval  # few plans need one

        approval.take(saved)
    return run_plan(options, cloud, plan, path if plan.purpose == "apply" else None)


def open_saved(options: argparse.Namespace) -> tuple[SavedPlan, Cloud, LivePlan, Path]:
    """Return a saved plan, its cloud, the plan as it is now, which is the same, and its spec.

    Raises PlanRefused if the two differ, or if the plan is refused now.
    """
    from openstack_prep.verbs.plan_file import SavedPlan  # as for plan

    saved = SavedPlan(options.plan)
    path = saved.find_spec(options.spec)
    cloud, spec = open_spec(options, path, saved.content.variables)
    saved.check_variables(spec)
    saved.check_cloud(cloud.authenticate())
    with reading(options):
        if saved.content.purpose == "destroy":
            plan = api.plan_destroy(cloud, spec, allow_loss=saved.allow_loss, jobs=options.jobs)
        else:
            plan = api.plan(
                cloud,
                spec,
                allow_replace=saved.allow_replace,
                adopt=saved.adopts,
                prune=saved.prunes,
                allow_loss=saved.allow_loss,
                jobs=options.jobs,
            )
    saved.check(plan, path, spec, plan.tenant)
    print_warnings(plan, spec)
    plan.raise_for_refusals()
    return saved, cloud, plan, path


def destroy_spec(options: argparse.Namespace) -> int:
    cloud, spec = open_spec(options, options.spec)
    plan = _plan_destroy(options, cloud, spec)
    print_warnings(plan, spec)
    name = next((resource.name for resource in spec.resources if resource.kind == "project"), spec.name)
    confirm_plan(options, plan, f"Destroy this for good? Type the name {name}: ", name)
    return run_plan(options, cloud, plan)


def show_spec(options: argparse.Namespace) -> int:
    cloud, spec = open_spec(options, options.spec)
    with reading(options):
        found = api.show(cloud, spec, jobs=options.jobs)
    if options.reveal is not None:
        return _reveal(options, found)
    names = labels(found)  # as plan names them
    data = {names[key]: text.observed_data(each) for key, each in found.items()}
    print_result(options, text.observed_table(found, style_of(options, sys.stdout)), data)
    return 0


def _reveal(options: argparse.Namespace, found: Mapping[Key, Observed | None]) -> int:
    """Print one output, by its resource and name or, of a stack, by its name; raises ConfigError if it is not clear."""
    wanted = options.reveal
    values = {
        f"{key}.{name}": observed.secrets[name].reveal() if name in observed.secrets else value
        for key, observed in found.items()
        if observed is not None
        for name, value in observed.outputs.items()
    }
    of_stacks = [place for place in values if place.startswith("stack/") and place.rpartition(".")[2] == wanted]
    named = [wanted] if wanted in values else of_stacks
    if len(named) != 1:
        what = f"several outputs are called {wanted}" if named else f"nothing that exists has an output {wanted}"
        known = ", ".join(sorted(named or values))
        raise ConfigError(f"show: --reveal: {what}; {f'give one of {known}' if known else 'apply the spec first'}")
    print_result(options, values[named[0]], {"output": named[0], "value": values[named[0]]})
    return 0
