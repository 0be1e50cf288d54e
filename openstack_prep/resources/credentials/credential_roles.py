"""Roles of application credentials, compared with those that their user has.

Source: Keystone 30.0.0.  models/token_model.py, ``_get_application_credential_roles``: a token holds those roles of its
credential that the user still has, by group, inheritance or implication too; without any, ``_validate_project_scope``
refuses it.  api/users.py, ``_get_roles``: a new credential may hold only roles of the token that creates it; without a
list it holds all of them.  assignment/core.py: credentials are deleted with a role, but not with an assignment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from openstack_prep.base.errors import NotAllowed
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Resource
from openstack_prep.core.run import query
from openstack_prep.resources.identity.role_assignment import RoleAssignment, unknown_role

ALL = "all of the user's"
"""The roles of a credential whose spec lists no roles."""


def held_roles(run: CloudRun, project: Resource | None) -> frozenset[str] | None:
    """Return the roles that the acting user has in a project once the spec is applied; None if unknown.

    A login in the project tells them without another request. Before all role assignments of the spec exist, there is
    no login; then Keystone is asked, and the assignments that the spec declares are added.
    """
    own = run.find_tenant(project)
    if own is not None:  # a token of a credential contains only that credential's roles
        return None if own.application_credential_id else own.roles or None
    actor = run.actor(project)
    project_id = run.find_project_id(project)
    if actor is None:
        return None
    try:
        user_id = run.find_id(actor.user)
        declared = frozenset(each.role for each in actor.roles if isinstance(each, RoleAssignment))
        effective = _effective(run, user_id, project_id) if user_id and project_id else frozenset()
        return implied_by(run, declared) | effective
    except NotAllowed:  # only administrators may ask
        return None


@query
def _effective(run: CloudRun, user_id: str, project_id: str) -> frozenset[str]:
    which: Values = {"user.id": user_id, "scope.project.id": project_id}
    listed = run.admin.identity.list(
        "/role_assignments", "role_assignments", **which, effective=True, include_names=True
    )
    return frozenset(each["role"]["name"] for each in listed)


@query
def _role_inferences(run: CloudRun) -> Sequence[Raw]:
    answer: Sequence[Raw] = run.admin.identity.get("/role_inferences")["role_inferences"]
    return answer


def implied_by(run: CloudRun, names: Iterable[str]) -> frozenset[str]:
    """Return roles and all roles that they imply."""
    rules = _role_inferences(run)
    implies = {rule["prior_role"]["name"]: {role["name"] for role in rule["implies"]} for rule in rules}
    found = set(names)
    while more := set().union(*(implies.get(name, ()) for name in found)) - found:
        found |= more
    return frozenset(found)


def compared(
    run: CloudRun, wanted: tuple[str, ...] | None, has: frozenset[str], project: Resource | None
) -> frozenset[str] | str:
    """Return a credential's roles as a spec would declare them: without roles that ``wanted`` implies, or ALL."""
    if wanted is None:
        held = held_roles(run, project)
        return ALL if held is None or has == held else has
    if not frozenset(wanted) < has:
        return has
    try:
        return has - (implied_by(run, wanted) - frozenset(wanted))
    except NotAllowed:  # only administrators may list implications: any role may be implied
        return frozenset(wanted)


def role_changes(run: CloudRun, wanted: tuple[str, ...] | None, has: frozenset[str], project: Resource | None) -> str:
    """Return the roles that a new credential would have more or less than the existing ones, such as "new: admin"."""
    standing = compared(run, wanted, has, project)
    if isinstance(standing, str):
        return ""
    target = frozenset(wanted) if wanted is not None else held_roles(run, project) or standing
    parts = {"new": target - has, "no longer": standing - target}
    return "; ".join(f"{word}: {', '.join(sorted(roles))}" for word, roles in parts.items() if roles)


def lacking(run: CloudRun, wanted: Iterable[str], project: Resource | None) -> Iterable[tuple[str, str]]:
    """Yield each wanted role that does not exist or that the user lacks, and the fix."""
    held = held_roles(run, project) if wanted else None
    for role in wanted:
        unknown = unknown_role(run, role) if run.acting_user(project) else None
        if unknown:
            yield unknown
        elif held is not None and role not in held:
            has = ", ".join(sorted(held)) or "none"
            yield (
                f"its user does not have the role {role} in the project (has: {has}), so no credential can have it",
                "assign the role to the user, or remove it from roles",
            )
