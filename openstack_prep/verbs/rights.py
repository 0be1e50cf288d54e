"""What the services' default policies reserve for administrators, so that a plan says it and no run ends half-way.

Clouds may have policies of their own. Roles that these defaults do not mention may carry any right, so nothing is
reported about a user who has one. What some clouds leave to members, such as a floating IP's address, is a warning; a
spec with ``clouds: custom_policies: true`` says that its cloud leaves more to them, so that everything is.

Source: Nova 34.0.0, policies/flavor_manage.py, quota_sets.py; Keystone 30.0.0, common/policies/project.py, user.py,
grant.py; Neutron 29.0.0, conf/policies/network.py, router.py, floatingip.py; Glance 33.0.0, policies/image.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import Mistake
from openstack_prep.cloud.cloud_run import BY_PASSWORD, DECLARE_USER, NO_TRUSTS, CloudRun
from openstack_prep.cloud.entries import ADMINISTRATOR
from openstack_prep.core.model import Action, Step
from openstack_prep.core.plan import Plan
from openstack_prep.core.resource import ListsUnchecked, needs_cloud, supports
from openstack_prep.core.twin import Twin
from openstack_prep.resources.identity.in_project import InProject
from openstack_prep.spec.sections import Clouds
from openstack_prep.verbs.opening import LivePlan

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud

WITHOUT = {
    "member",
    "_member_",
    "reader",
    "observer",
    "creator",
    "heat_stack_owner",
    "heat_stack_user",
    "swiftoperator",
    "load-balancer_member",
    "load-balancer_observer",
}
"""Roles that no default policy gives one of these rights, in lower case."""
READING = {"reader", "observer", "load-balancer_observer"}
"""Roles that by default allow no change of anything in a project, except of what belongs to the user."""
OF_USER = ("keypair", "application_credential")
MANAGER = "manager"
"""Role that the default policies give some of these rights: of a domain in Keystone, of a project in Neutron."""
OF_MANAGER = {
    "identity:create_project",
    "identity:create_user",
    "identity:create_grant",
    "create_floatingip:floating_ip_address",
}
"""The rights of role manager."""
WHOLE = {
    "flavor": "os_compute_api:os-flavor-manage",
    "project": "identity:create_project",
    "user": "identity:create_user",
    "role_assignment": "identity:create_grant",
    "quota": "os_compute_api:os-quota-sets:update",
}
"""The rights that kinds need for any change, by the names of their policies."""
FIELDS: Mapping[str, Mapping[str, str]] = {
    "network": {
        "shared": "create_network:shared",
        "external": "create_network:router:external",
        "provider_network_type": "create_network:provider:network_type",
    },
    "router": {
        "external_fixed_ips": "create_router:external_gateway_info:external_fixed_ips",
        "enable_snat": "create_router:external_gateway_info:enable_snat",
        "distributed": "create_router:distributed",
        "ha": "create_router:ha",
    },
    "floating_ip": {"address": "create_floatingip:floating_ip_address"},
    "image": {"visibility": "publicize_image"},
}
"""The rights that single fields need, in a new resource or when they change."""
OVERRIDE = "if this cloud's own policies give this right to these roles, set clouds: custom_policies: true in the spec"
TRUSTED = "if this cloud allows it, set clouds: custom_policies: true in the spec"
HARMLESS = {
    ("network", "shared"): (False,),
    ("network", "external"): (False,),
    ("image", "visibility"): ("private", "shared", "community"),
}
"""Values that need no right."""


def missing_logins(run: CloudRun, plan: Plan) -> Iterator[Mistake]:
    """Yield the steps of a plan that only a user of their project can do, and no user can log in to it."""
    pending = {step.key for step in plan.pending}
    for step in plan.pending:
        resource = step.resource
        if not isinstance(resource, InProject) or not resource.needs_login or step.action is Action.DELETE:
            continue
        if not run.has_tenant(owner := resource.owner):
            what = f"no user can log in to {owner.key if owner else 'the project'}, which this step needs"
            yield Mistake.about(step.key, what, DECLARE_USER, code=Code.MISSING_LOGIN)
        elif (actor := run.actor(owner)) and actor.user.key not in pending and (why := run.refused_login(owner)):
            what = f"{actor.user.key}, who does this step, cannot log in: {why}"
            yield Mistake.about(step.key, what, DECLARE_USER, code=Code.MISSING_LOGIN)


def wrong_entry(run: CloudRun, plan: Plan, clouds: Clouds) -> Iterator[Mistake]:
    """Yield that the entry for the project's own work leads to another place than the one that the plan has read.

    What takes its project from the token would be created there, at each apply again.
    """
    owners = {each.resource.owner for each in plan.pending if isinstance(each.resource, InProject)}
    entry, here = run.entry if clouds.tenant and owners else None, run.admin.region
    if entry and entry.project_id not in map(run.find_project_id, owners):
        what = f"entry {clouds.tenant} is scoped to project {entry.project_name}, in which the spec declares nothing"
        yield Mistake("clouds.tenant", what, "name an entry that is scoped to the project of the spec")
    elif entry and here and entry.region not in (None, here):
        what = f"entry {clouds.tenant} is for region {entry.region}, and {run.admin.name} for {here}"
        yield Mistake("clouds.tenant", what, "name entries for the same region")


def missing_trusts(run: CloudRun, plan: Plan, clouds: Clouds) -> Iterator[Mistake]:
    """Yield the new stacks of a plan for which Heat would need a trust of an application credential."""
    return iter(()) if clouds.custom_policies else _missing_trusts(run, plan)


def _missing_trusts(run: CloudRun, plan: Plan) -> Iterator[Mistake]:
    for step in plan.pending:
        resource = step.resource
        is_new = step.key.kind == "stack" and step.action in (Action.CREATE, Action.REPLACE)
        if is_new and isinstance(resource, InProject):
            tenant = run.find_tenant(resource.owner)
            if tenant is not None and tenant.application_credential_id:
                what = f"entry {tenant.name} logs in by an application credential; {NO_TRUSTS}"
                yield Mistake.about(step.key, what, f"{BY_PASSWORD}; {TRUSTED}", code=Code.STACK_REFUSED)


def missing(cloud: Cloud, plan: Plan, clouds: Clouds) -> Iterator[Mistake]:
    """Yield the steps of a plan that the default policies leave to no user with the roles of the connection."""
    return iter(()) if clouds.custom_policies else _missing(cloud, plan)


def _missing(cloud: Cloud, plan: Plan) -> Iterator[Mistake]:
    fix = f"{ADMINISTRATOR}, or ask an administrator of the cloud to do this step; {OVERRIDE}"
    for step in plan.pending:
        right = WHOLE.get(step.key.kind)
        if right and (who := _restricted(cloud, right)):
            what = f"needs the right {right}, by default that of role admin; {who}"
            yield Mistake.about(step.key, what, fix, code=Code.MISSING_RIGHT)


def doubtful(cloud: Cloud, plan: Plan, clouds: Clouds, run: CloudRun | None = None) -> Iterator[str]:
    """Yield warnings about what some clouds, or this one, leave to members, and the default policies do not."""
    if clouds.custom_policies:
        yield from (f"{mistake.where}: {mistake.what}" for mistake in _missing(cloud, plan))
        yield from (
            f"{missing_trust.where}: {missing_trust.what}"
            for missing_trust in (_missing_trusts(run, plan) if run else ())
        )
    if run and (steps := [each for each in plan.pending if _is_of_project(each)]):
        acting = run.entry or run.find_tenant(None) or cloud
        if acting.roles and READING.issuperset(map(str.lower, acting.roles)):
            has = f"user {acting.user[0]} (entry {acting.name}) has only the roles {', '.join(sorted(acting.roles))}"
            yield f"{', '.join(str(each.key) for each in steps)}: by default, this needs the role member; {has}"
    for step in plan.pending:
        for field, right in _needed(step):
            if who := _restricted(cloud, right):
                yield f"{step.key}: {field} needs the right {right}, by default that of role admin; {who}"
                break


POLICIES = "policies of this cloud, which may differ from the defaults"


def not_checked(cloud: Cloud, plan: Plan, run: CloudRun) -> Iterator[str]:
    """Yield what the steps of a plan need and no plan knows: values that only services judge, and policies."""
    pending = [each for each in plan.pending if needs_cloud(each.resource)]
    for step in pending:
        is_new = step.action in (Action.CREATE, Action.REPLACE)
        concerned = not isinstance(step.resource, Twin) and (is_new or step.action in (Action.UPDATE, Action.ADOPT))
        if concerned and supports(step.resource, ListsUnchecked):
            texts = step.resource.list_unchecked(run, None if is_new else step.changes)
            yield from (f"{text} ({step.key})" for text in texts)
    if pending and cloud.roles and "admin" not in map(str.lower, cloud.roles):
        yield POLICIES


def warn_of_missing_rights(plan: LivePlan) -> LivePlan:
    """Return a plan to look at, with missing rights as warnings: somebody else may apply it, who is examined then."""
    lacking = [refusal for refusal in plan.refusals if refusal.code in (Code.MISSING_RIGHT, Code.MISSING_LOGIN)]
    rest = tuple(refusal for refusal in plan.refusals if refusal not in lacking)
    return replace(plan, refusals=rest, warnings=(*plan.warnings, *map(str, lacking)))


def _restricted(cloud: Cloud, right: str) -> str | None:
    """Return who acts, if the default policies give none of the user's roles a right."""
    has = sorted(cloud.roles)
    without = WITHOUT if right in OF_MANAGER else WITHOUT | {MANAGER}
    if not has or not without.issuperset(map(str.lower, has)):
        return None
    return f"user {cloud.user[0]} (entry {cloud.name}) has only the roles {', '.join(has)}"


def _is_of_project(step: Step) -> bool:
    resource = step.resource
    return isinstance(resource, InProject) and needs_cloud(resource) and step.key.kind not in OF_USER


def _needed(step: Step) -> Iterator[tuple[str, str]]:
    """Yield the fields of a step that need a right beyond those of a project's member, and the rights."""
    kind = step.key.kind
    if isinstance(step.resource, Twin) or step.action is Action.DELETE:
        return
    changed = {change.field for change in step.changes}
    for field, right in FIELDS.get(kind, {}).items():
        value = getattr(step.resource, field)
        concerned = step.action in (Action.CREATE, Action.REPLACE) or field in changed
        if value is not None and concerned and value not in HARMLESS.get((kind, field), ()):
            yield field, right
