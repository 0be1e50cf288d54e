"""What Keystone deletes together with users and role assignments, and what is left of a user elsewhere."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from openstack_prep.base.key import DEFAULT_DOMAIN
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.deletion_loss import Deletion, LossEffect
from openstack_prep.core.observed import Observed
from openstack_prep.core.resource import deleted_ids
from openstack_prep.core.run import query
from openstack_prep.resources.cascades.row import (
    SEVERAL,
    CascadeRow,
    CascadeTable,
    Deletions,
    Dependent,
    WholeList,
    per_deletion,
    place,
    user_name,
)
from openstack_prep.resources.lists import queries

PROJECT_KIND = "project"
CREDENTIALS = WholeList(service="identity", path="/credentials", member="credentials", secret="blob")
TRUSTS = WholeList(service="identity", path="/OS-TRUST/trusts", member="trusts")
ASSIGNMENTS = WholeList(service="identity", path="/role_assignments", member="role_assignments", most=10000)
"""Without names, which Keystone would look up one by one."""
DOMAINS = WholeList(service="identity", path="/domains", member="domains", most=4)
GROUPS = WholeList(service="identity", path="/groups", member="groups", most=6, has_limit=True)
MEMBERS = WholeList(service="identity", path="/groups/{}/users", member="users", most=1000)


@query
def application_credentials(run: CloudRun, user_id: str) -> list[Raw]:
    # keystone 30.0.0, api/users.py, UserAppCredListCreateResource: there is no list of several users
    return [*run.admin.identity.list(f"/users/{user_id}/application_credentials", "application_credentials")]


def _all_of(run: CloudRun, whole: WholeList) -> Sequence[Raw]:
    """Return all rows of a list that Keystone does not filter by project, without their secrets; raises CloudError."""
    rows = whole.rows(run)
    if rows is not None:
        return rows
    listed = run.admin.identity.list(whole.path, whole.member, log=not whole.secret)
    return [{name: value for name, value in raw.items() if name != whole.secret} for raw in listed]


def credentials_in(run: CloudRun, project_id: str) -> Sequence[Raw]:
    """Return the credentials of all users that are bound to a project: EC2."""
    # keystone 30.0.0, api/credentials.py, CredentialResource.get: it filters by user and type alone
    return [raw for raw in _all_of(run, CREDENTIALS) if raw.get("project_id") == project_id]


def trusts_in(deletions: Deletions) -> Iterator[Dependent]:
    """Yield the trusts that delegate roles in projects, whoever has created them."""
    for project in deletions:
        listed = _all_of(deletions.run, TRUSTS)
        yield from _without_heats(deletions, project, (raw for raw in listed if raw["project_id"] == project.id))


def _trusts_with_role(deletions: Deletions) -> Iterator[Dependent]:
    """Yield the trusts by which users who stay delegate a role that they lose in a project."""
    run = deletions.run
    for lost in _lost_roles(deletions):
        which: Values = {"trustor_user_id": lost.user_id}
        listed = run.admin.identity.list("/OS-TRUST/trusts", "trusts", **which)
        # keystone 30.0.0, api/trusts.py, TrustsResource.get: "get_trust returns roles, list_trusts does not"
        there = (raw for raw in listed if raw["project_id"] in lost.roles)
        mine = (raw for raw in there if lost.roles[raw["project_id"]] & _roles_of(run, raw["id"]))
        yield from _without_heats(deletions, lost.deletion, mine)


def _roles_of(run: CloudRun, trust_id: str) -> set[str]:
    return {role["id"] for role in run.admin.identity.get(f"/OS-TRUST/trusts/{trust_id}")["trust"]["roles"]}


class LostRoles(NamedTuple):
    """What a user who stays loses with one role assignment."""

    deletion: Deletion
    user_id: str
    roles: Mapping[str, frozenset[str]]
    """The ids of the lost roles by project: those that the assignment gives and implies, and no other gives."""
    left: Mapping[str, frozenset[str]]
    """Those of the roles that the user still has."""


ASSIGNMENT = re.compile(r"(?:/OS-INHERIT)?/(?:projects|domains)/[^/]+/(?:users|groups)/[^/]+/roles/([^/]+).*")


def _lost_roles(deletions: Deletions) -> Iterator[LostRoles]:
    """Yield what users who stay lose: roles imply others, come by groups, and are inherited."""
    run = deletions.run
    for deletion in deletions:
        (path,) = deleted_ids(deletion.resource, deletion.observed)
        kind, holder = re.findall(r"/(users|groups)/([^/]+)", path)[-1]
        members = run.admin.identity.list(f"/groups/{holder}/users", "users") if kind == "groups" else ({"id": holder},)
        for user_id in (raw["id"] for raw in members if raw["id"] not in deletions.going):
            given, kept = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
            implied = defaultdict[str, set[str]](set)
            for raw in _effective(run, user_id):
                found, role = ASSIGNMENT.search(raw["links"]["assignment"]), raw["role"]["id"]
                project_id = raw["scope"].get(PROJECT_KIND, {}).get("id")
                if found is None or project_id is None:
                    continue
                if found[1] != role:  # keystone 30.0.0, api/role_assignments.py, _format_entity: that of the prior role
                    implied[found[1]].add(role)
                elif found[0] == path:
                    given[project_id].add(role)
                elif deletions.going.isdisjoint((found[0], project_id)):
                    kept[project_id].add(role)
            left = {project_id: _with_implied(roles, implied) for project_id, roles in kept.items()}
            lost = {each: _with_implied(roles, implied) - left.get(each, frozenset()) for each, roles in given.items()}
            yield LostRoles(deletion, user_id, lost, left)


@query
def _effective(run: CloudRun, user_id: str) -> list[Raw]:
    """Return the roles of a user in all projects, each with the assignment that gives it."""
    which: Values = {"user.id": user_id, "effective": True}
    return [*run.admin.identity.list("/role_assignments", "role_assignments", **which)]


def _with_implied(roles: Iterable[str], implied: Mapping[str, Iterable[str]]) -> frozenset[str]:
    found, left = set[str](), [*roles]
    while left:
        role = left.pop()
        left += [] if role in found else implied.get(role, ())
        found.add(role)
    return frozenset(found)


def _credentials(run: CloudRun, user: Deletion) -> list[Raw]:
    """Return the credentials of a user other than passwords: EC2, TOTP; without their secrets."""
    if (everybodys := CREDENTIALS.read_for(run, user.resource.kind, user.id)) is not None:
        return [raw for raw in everybodys if raw["user_id"] == user.id]
    listed = run.admin.identity.list("/credentials", "credentials", log=False, user_id=user.id)
    return [{name: value for name, value in raw.items() if name != "blob"} for raw in listed]


def _trusts_with(run: CloudRun, user: Deletion) -> list[Raw]:
    """Return the trusts by which a user delegates roles, or by which others have delegated roles to the user."""
    ends = ("trustor_user_id", "trustee_user_id")
    if (everybodys := TRUSTS.read_for(run, user.resource.kind, user.id)) is not None:
        return [raw for raw in everybodys if user.id in map(raw.get, ends)]
    trusts: list[Values] = []
    for end in ends:
        which: Values = {end: user.id}
        trusts += run.admin.identity.list("/OS-TRUST/trusts", "trusts", **which)
    return [*{raw["id"]: raw for raw in trusts}.values()]


def _trusts(deletions: Deletions) -> Iterator[Dependent]:
    """Yield the trusts that users have created, or by which they act."""
    for user in deletions:
        yield from _without_heats(deletions, user, _trusts_with(deletions.run, user))


def _without_heats(deletions: Deletions, deletion: Deletion, trusts: Iterable[Raw]) -> Iterator[Dependent]:
    """Yield trusts, without those by which Heat works on the stacks that the plan deletes: Heat deletes them first."""
    run = deletions.run
    for raw in filter(deletions.stays, trusts):
        if not (_may_be_heats(raw) and raw["project_id"] in _projects_of_stacks(deletions)):
            ends = f"{user_name(run, raw['trustor_user_id'])} to {user_name(run, raw['trustee_user_id'])}"
            yield Dependent(deletion, raw["id"], f"from {ends}", place(run, raw))


def _may_be_heats(raw: Raw) -> bool:
    """Whether a trust looks like one of Heat's, in which nothing names the stack.

    Source: openstack_heat 27.0.1, engine/clients/os/keystone/heat_keystoneclient.py, impersonation=True, no end.
    """
    return bool(raw["impersonation"] and not raw.get("expires_at") and not raw.get("remaining_uses"))


def _projects_of_stacks(deletions: Deletions) -> set[str]:
    """Return the ids of the projects in which the plan deletes stacks that still exist, as far as a user lists them."""
    run, projects = deletions.run, set[str]()
    for home in run.homes if run.admin.has("orchestration") else ():
        tenant = run.find_tenant(home)
        stacks = queries.stacks_of(run, tenant) if tenant is not None else ()
        if any(raw["id"] in deletions.going for raw in stacks):
            projects.add(str(run.find_project_id(home)))
    return projects


def _role_assignments(deletions: Deletions) -> Iterator[Dependent]:
    """Yield the roles of a user in projects that neither the plan deletes nor the spec manages."""
    run = deletions.run
    known = run.known.items()
    ours = deletions.going | {seen.id for key, seen in known if key.kind == PROJECT_KIND and seen.ours}

    def is_elsewhere(raw: Raw) -> bool:
        return raw["scope"].get(PROJECT_KIND, {}).get("id") not in ours and path_of(raw) not in deletions.going

    for user in deletions:
        everybodys = ASSIGNMENTS.read_for(run, user.resource.kind, user.id)
        mine = (raw for raw in everybodys or () if raw.get("user", {}).get("id") == user.id)
        if everybodys is None or any(map(is_elsewhere, mine)):
            which: Values = {"user.id": user.id, "include_names": True}
            listed = run.admin.identity.list("/role_assignments", "role_assignments", **which)
            yield from (Dependent(user, name_of(raw)) for raw in filter(is_elsewhere, listed))


def _groups(run: CloudRun, user: Deletion) -> Sequence[Raw]:
    if len(run.companions_of(user.resource.kind, user.id)) >= SEVERAL:
        memberships = _memberships(run)
        if memberships is not None:
            return memberships.get(user.id, ())
    return run.admin.identity.list(f"/users/{user.id}/groups", "groups")


@query
def _memberships(run: CloudRun) -> Mapping[str, Sequence[Raw]] | None:
    """Return the groups of all users, by the user's id; None unless the cloud has few groups.

    A user may be in a group of another domain (keystone 30.0.0, identity/core.py, add_user_to_group), and with drivers
    per domain Keystone lists the groups of one domain at a time (server/flask/common.py,
    _get_domain_id_for_list_request).
    """
    domains = DOMAINS.rows(run)
    groups: list[Raw] = []
    for domain in domains or ():
        listed = GROUPS.of(domain_id=domain["id"]).rows(run)
        groups += listed or ()
        if listed is None or len(groups) > GROUPS.most:
            domains = None
            break
    found: dict[str, list[Raw]] = defaultdict(list)
    for group in groups if domains is not None else ():
        members = MEMBERS.at(group["id"]).rows(run)
        if members is None:
            domains = None
            break
        for member in members:
            found[member["id"]].append(group)
    if domains is None:
        DOMAINS.give_up(run)
        return None
    return found


def path_of(raw: Raw) -> str:
    """Return the path of an assignment in Keystone, as that of a declared one."""
    kind = "user" if "user" in raw else "group"
    scope = next(name for name in ("project", "domain", "system") if name in raw["scope"])
    where = "/system" if scope == "system" else f"/{scope}s/{raw['scope'][scope]['id']}"
    who = f"/{kind}s/{raw[kind]['id']}/roles/{raw['role']['id']}"
    return f"/OS-INHERIT{where}{who}/inherited_to_projects" if _is_inherited(raw) else where + who


def name_of(raw: Raw) -> str:
    """Return an assignment as its resource is named, user:NAME@project:NAME/ROLE, and so that no two have one name."""
    kind = "user" if "user" in raw else "group"
    who = f"{kind}:{raw[kind]['name']}{_of_domain(raw[kind])}"
    scope, target = next((name, raw["scope"][name]) for name in ("project", "domain", "system") if name in raw["scope"])
    where = "system" if scope == "system" else f"{scope}:{target['name']}{_of_domain(target)}"
    return f"{who}@{where}/{raw['role']['name']}" + (" (inherited)" if _is_inherited(raw) else "")


def _of_domain(raw: Raw) -> str:
    domain = (raw.get("domain") or {}).get("name", DEFAULT_DOMAIN)
    return "" if domain == DEFAULT_DOMAIN and "@" not in raw["name"] else f"@{domain}"


def _is_inherited(raw: Raw) -> bool:
    return "OS-INHERIT:inherited_to" in raw["scope"]


def _keypairs(deletions: Deletions) -> Iterator[Dependent]:
    """Yield key pairs, without those of the spec and of its stacks, of whose owner Heat shows the name alone."""
    for user in deletions:
        # Nova 34.0.0, api/openstack/compute/keypairs.py, _index: there is no list of several users
        for raw in deletions.run.admin.compute.list("/os-keypairs", "keypairs", user_id=user.id):
            name = raw["keypair"]["name"]
            if deletions.going.isdisjoint((f"{user.id} {name}", f"{user.resource.name} {name}")):
                yield Dependent(user, f"{user.id}/{name}", detail="of this user")


USER: CascadeTable = (
    CascadeRow(
        effect=LossEffect.DELETED,
        takes="application_credential",
        what="application credentials of a user",
        source="keystone 30.0.0, application_credential/core.py, _delete_app_creds_on_user_delete_callback",
        read=per_deletion(lambda run, user: application_credentials(run, user.id)),
    ),
    CascadeRow(
        effect=LossEffect.DELETED,
        takes="credential",
        what="EC2 and other credentials of a user",
        source="keystone 30.0.0, identity/core.py, delete_user: delete_credentials_for_user",
        read=per_deletion(_credentials, name=lambda run, raw: f"of type {raw['type']}"),
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
        read=per_deletion(_groups, detail=lambda run, raw: "loses its member"),
    ),
    CascadeRow(
        effect=LossEffect.ORPHANED,
        takes="keypair",
        what="key pairs of a user",
        service="compute",
        source="Nova 34.0.0, objects/keypair.py: a key pair has the id of its user, and Nova does not hear of Keystone",
        read=_keypairs,
    ),
)


def _credentials_with_role(deletions: Deletions) -> Iterator[Dependent]:
    """Yield the application credentials of users who stay and lose a role of these in a project."""
    run = deletions.run
    for lost in _lost_roles(deletions):
        for raw in filter(deletions.stays, application_credentials(run, lost.user_id)):
            if lost.roles.get(raw["project_id"], frozenset()) & {role["id"] for role in raw["roles"]}:
                yield Dependent(lost.deletion, raw["id"], raw["name"], place(run, raw))


def _credentials_without_role(deletions: Deletions) -> Iterator[Dependent]:
    """Yield the EC2 credentials of users who stay and lose their last role in the project."""
    run = deletions.run
    for lost in _lost_roles(deletions):
        gone = lost.roles.keys() - lost.left.keys()
        listed = _credentials(run, Deletion(lost.deletion.resource, Observed(id=lost.user_id))) if gone else ()
        for raw in listed:
            if raw.get("project_id") in gone and deletions.stays(raw):
                yield Dependent(lost.deletion, raw["id"], f"of type {raw['type']}", place(run, raw))


ROLE_ASSIGNMENT: CascadeTable = (
    CascadeRow(
        effect=LossEffect.CUT_OFF,
        takes="application_credential",
        what="application credentials that have a role",
        source="keystone 30.0.0, models/token_model.py, _get_application_credential_roles",
        read=_credentials_with_role,
    ),
    CascadeRow(
        effect=LossEffect.CUT_OFF,
        takes="trust",
        what="trusts that delegate a role",
        source="keystone 30.0.0, models/token_model.py, _get_trust_roles: the trustor must have the role",
        read=_trusts_with_role,
    ),
    CascadeRow(
        effect=LossEffect.CUT_OFF,
        takes="credential",
        what="EC2 credentials of a user without another role",
        source="keystone 30.0.0, api/_shared/EC2_S3_Resource.py, handle_authenticate: a token of its project",
        read=_credentials_without_role,
    ),
)
