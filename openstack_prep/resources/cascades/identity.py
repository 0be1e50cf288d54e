"""What Keystone deletes together with users and role assignments, and what is left of a user elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator

from openstack_prep.base.key import DEFAULT_DOMAIN
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.deletion_loss import LossEffect
from openstack_prep.core.run import query
from openstack_prep.resources.cascades.row import CascadeRow, CascadeTable, Deletions, Dependent, place, user_name
from openstack_prep.resources.lists import queries

PROJECT_KIND = "project"


@query
def application_credentials(run: CloudRun, user_id: str) -> list[Raw]:
    return [*run.admin.identity.list(f"/users/{user_id}/application_credentials", "application_credentials")]


@query
def credentials(run: CloudRun, user_id: str) -> list[Raw]:
    """Return the credentials of a user other than passwords: EC2, TOTP; without their secrets."""
    listed = run.admin.identity.list("/credentials", "credentials", log=False, user_id=user_id)
    return [{name: value for name, value in raw.items() if name != "blob"} for raw in listed]


@query
def trusts(run: CloudRun, user_id: str) -> list[Raw]:
    """Return the trusts by which a user delegates roles, or by which others have delegated roles to the user."""
    found: list[Values] = []
    for end in ("trustor_user_id", "trustee_user_id"):
        which: Values = {end: user_id}
        found += run.admin.identity.list("/OS-TRUST/trusts", "trusts", **which)
    return [*{raw["id"]: raw for raw in found}.values()]


@query
def _assignments(run: CloudRun, user_id: str) -> list[Raw]:
    which: Values = {"user.id": user_id, "include_names": True}
    return [*run.admin.identity.list("/role_assignments", "role_assignments", **which)]


def own_projects(asked: Deletions) -> frozenset[str]:
    """Return the ids of projects that the plan deletes or that the spec manages: what a user has there is no loss."""
    known = asked.run.known.items()
    managed = {found.id for key, found in known if key.kind == PROJECT_KIND and found.ours}
    return asked.going | managed


def _application_credentials(asked: Deletions) -> Iterator[Dependent]:
    for user in asked.every:
        for raw in filter(asked.stays, application_credentials(asked.run, user.id)):
            yield Dependent(user, raw["id"], raw["name"], place(asked.run, raw))


def _credentials(asked: Deletions) -> Iterator[Dependent]:
    for user in asked.every:
        for raw in filter(asked.stays, credentials(asked.run, user.id)):
            yield Dependent(user, raw["id"], f"of type {raw['type']}", place(asked.run, raw))


def _trusts(asked: Deletions) -> Iterator[Dependent]:
    """Yield trusts, without those by which Heat works on the stacks that the plan deletes: Heat deletes them first."""
    for user in asked.every:
        for raw in filter(asked.stays, trusts(asked.run, user.id)):
            if not (_may_be_heats(raw) and raw["project_id"] in _projects_of_stacks(asked)):
                ends = (
                    f"{user_name(asked.run, raw['trustor_user_id'])} to {user_name(asked.run, raw['trustee_user_id'])}"
                )
                yield Dependent(user, raw["id"], f"from {ends}", place(asked.run, raw))


def _may_be_heats(raw: Raw) -> bool:
    """Whether a trust looks like one of Heat's, in which nothing names the stack.

    Source: openstack_heat 27.0.1, engine/clients/os/keystone/heat_keystoneclient.py, impersonation=True, no end.
    """
    return bool(raw["impersonation"] and not raw.get("expires_at") and not raw.get("remaining_uses"))


def _projects_of_stacks(asked: Deletions) -> set[str]:
    """Return the ids of the projects in which the plan deletes stacks that still exist, as far as a user lists them."""
    run, found = asked.run, set[str]()
    for home in run.homes if run.admin.has("orchestration") else ():
        tenant = run.find_tenant(home)
        stacks = queries.stacks_of(run, tenant) if tenant is not None else ()
        if any(raw["id"] in asked.going for raw in stacks):
            found.add(str(run.find_project_id(home)))
    return found


def _role_assignments(asked: Deletions) -> Iterator[Dependent]:
    ours = own_projects(asked)
    for user in asked.every:
        for raw in _assignments(asked.run, user.id):
            if raw["scope"].get(PROJECT_KIND, {}).get("id") not in ours and path_of(raw) not in asked.going:
                yield Dependent(user, name_of(raw))


def path_of(raw: Raw) -> str:
    """Return the path of an assignment in Keystone, as that of a declared one."""
    kind = "user" if "user" in raw else "group"
    scope = next(name for name in ("project", "domain", "system") if name in raw["scope"])
    where = "/system" if scope == "system" else f"/{scope}s/{raw['scope'][scope]['id']}"
    who = f"/{kind}s/{raw[kind]['id']}/roles/{raw['role']['id']}"
    return f"/OS-INHERIT{where}{who}/inherited_to_projects" if _is_inherited(raw) else where + who


def name_of(raw: Raw) -> str:
    """Return an assignment as its resource is named: user:NAME@project:NAME/ROLE."""
    kind = "user" if "user" in raw else "group"
    who = f"{kind}:{raw[kind]['name']}{_of_domain(raw[kind])}"
    scope, target = next((name, raw["scope"][name]) for name in ("project", "domain", "system") if name in raw["scope"])
    where = "system" if scope == "system" else f"{scope}:{target['name']}{_of_domain(target)}"
    return f"{who}@{where}/{raw['role']['name']}" + (" (inherited)" if _is_inherited(raw) else "")


def _of_domain(raw: Raw) -> str:
    domain = (raw.get("domain") or {}).get("name", DEFAULT_DOMAIN)
    return "" if domain == DEFAULT_DOMAIN else f"@{domain}"


def _is_inherited(raw: Raw) -> bool:
    return "OS-INHERIT:inherited_to" in raw["scope"]


def _memberships(asked: Deletions) -> Iterator[Dependent]:
    for user in asked.every:
        for raw in asked.run.admin.identity.list(f"/users/{user.id}/groups", "groups"):
            yield Dependent(user, raw["id"], raw["name"], "loses its member")


def _keypairs(asked: Deletions) -> Iterator[Dependent]:
    """Yield key pairs, without those of stacks that the plan deletes: their id in Heat is the name alone.

    Source: openstack_heat 27.0.1, engine/resources/openstack/nova/keypair.py, handle_create.
    """
    for user in asked.every:
        for raw in asked.run.admin.compute.list("/os-keypairs", "keypairs", user_id=user.id):
            name = raw["keypair"]["name"]
            if asked.going.isdisjoint((f"{user.id} {name}", name)):
                yield Dependent(user, name, detail="of this user")


USER: CascadeTable = (
    CascadeRow(
        effect=LossEffect.DELETED,
        takes="application_credential",
        what="application credentials of a user",
        source="keystone 30.0.0, application_credential/core.py, _delete_app_creds_on_user_delete_callback",
        read=_application_credentials,
    ),
    CascadeRow(
        effect=LossEffect.DELETED,
        takes="credential",
        what="EC2 and other credentials of a user",
        source="keystone 30.0.0, identity/core.py, delete_user: delete_credentials_for_user",
        read=_credentials,
    ),
    CascadeRow(
        effect=LossEffect.DELETED,
        takes="trust",
        what="trusts of a user",
        source="keystone 30.0.0, trust/core.py, _on_user_delete",
        read=_trusts,
    ),
    CascadeRow(
        effect=LossEffect.DELETED,
        takes="role_assignment",
        what="role assignments of a user elsewhere",
        source="keystone 30.0.0, identity/core.py, delete_user: delete_user_assignments",
        read=_role_assignments,
    ),
    CascadeRow(
        effect=LossEffect.CUT_OFF,
        takes="group",
        what="groups of a user",
        source="keystone 30.0.0, identity/backends/sql.py, delete_user: UserGroupMembership",
        read=_memberships,
    ),
    CascadeRow(
        effect=LossEffect.ORPHANED,
        takes="keypair",
        what="key pairs of a user",
        source="Nova 34.0.0, objects/keypair.py: a key pair has the id of its user, and Nova does not hear of Keystone",
        read=_keypairs,
    ),
)


def _credentials_with_role(asked: Deletions) -> Iterator[Dependent]:
    """Yield the application credentials of users who stay and lose a role in a project."""
    for of in asked.every:
        (path,) = of.resource.deleted_ids(of.observed)
        found = re.fullmatch(r"/projects/([^/]+)/users/([^/]+)/roles/([^/]+)", path)
        if found and found[2] not in asked.going:
            for raw in filter(asked.stays, application_credentials(asked.run, found[2])):
                if raw["project_id"] == found[1] and found[3] in {role["id"] for role in raw["roles"]}:
                    yield Dependent(of, raw["id"], raw["name"], place(asked.run, raw))


ROLE_ASSIGNMENT: CascadeTable = (
    CascadeRow(
        effect=LossEffect.CUT_OFF,
        takes="application_credential",
        what="application credentials that have a role",
        source="keystone 30.0.0, models/token_model.py, _get_application_credential_roles",
        read=_credentials_with_role,
    ),
)
