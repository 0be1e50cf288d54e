"""Keystone: who has which role in which project."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.light.apis import IDENTITY
from tests.light.listing import select
from tests.light.services.keystone import get, many
from tests.light.state import DOMAIN, Cloud, implied
from tests.light.table import Row
from tests.light.web import NOTHING, Answer, Json, Request, missing

PATH = "/v3/projects/{}/users/{}/roles"
FILTERS = {"user.id": "user", "scope.project.id": "project", "role.id": "role"}
BRIEF_DOMAIN = {"id": DOMAIN, "name": "Default"}


def roles_of(cloud: Cloud, user_id: str, project_id: str) -> frozenset[str]:
    """Return the roles that a user has in a project, with those that they imply, by name."""
    names = cloud.roles.rows
    mine = cloud.assignments.having("user", user_id).values()
    return implied(names[each["role"]]["name"] for each in mine if each["project"] == project_id)


def assign(cloud: Cloud, project_id: str, user_id: str, role_id: str) -> None:
    row_id = f"{project_id}/{user_id}/{role_id}"
    if row_id not in cloud.assignments.rows:
        cloud.assignments.add({"id": row_id, "project": project_id, "user": user_id, "role": role_id})


def _found(asked: Request, project_id: str, user_id: str, role_id: str) -> Row:
    row = asked.cloud.assignments.rows.get(f"{project_id}/{user_id}/{role_id}")
    if row is None:
        raise missing("role assignment")
    return row


@IDENTITY.on("PUT", PATH + "/{}", admin=True)
def grant(asked: Request, project_id: str, user_id: str, role_id: str) -> Answer:
    cloud = asked.cloud
    get(cloud.projects, "project", project_id)
    get(cloud.users, "user", user_id)
    get(cloud.roles, "role", role_id)
    assign(cloud, project_id, user_id, role_id)
    return NOTHING


@IDENTITY.on("GET", PATH + "/{}", admin=True)
def has_role(asked: Request, project_id: str, user_id: str, role_id: str) -> Answer:
    _found(asked, project_id, user_id, role_id)
    return NOTHING


@IDENTITY.on("DELETE", PATH + "/{}", admin=True)
def revoke_role(asked: Request, project_id: str, user_id: str, role_id: str) -> Answer:
    asked.cloud.assignments.remove(_found(asked, project_id, user_id, role_id))
    asked.cloud.tokens.revoke(user_id, project_id)
    return NOTHING


@IDENTITY.on("GET", PATH, admin=True)
def list_roles_of(asked: Request, project_id: str, user_id: str) -> Answer:
    cloud = asked.cloud
    mine = cloud.assignments.having("user", user_id).values()
    return many(asked, "roles", [cloud.roles.rows[each["role"]] for each in mine if each["project"] == project_id])


@IDENTITY.on("GET", "/v3/users/{}/projects")
def projects_of(asked: Request, user_id: str) -> Answer:
    if asked.caller.user["id"] != user_id:
        asked.only_admin()
    cloud = asked.cloud
    ids = dict.fromkeys(each["project"] for each in cloud.assignments.having("user", user_id).values())
    return many(asked, "projects", [cloud.projects.rows[each] for each in ids])


@IDENTITY.on("GET", "/v3/role_assignments", admin=True)
def list_assignments(asked: Request) -> Answer:
    names = asked.says("include_names")
    links = {"next": None, "self": asked.whole_url, "previous": None}
    listed = [_shown(asked, each, names=names) for each in _wanted(asked)]
    return Answer(200, {"role_assignments": listed, "links": links})


def _wanted(asked: Request) -> Iterable[Row]:
    cloud, query = asked.cloud, asked.query
    if {"group.id", "scope.domain.id", "scope.system"} & query.keys():
        return ()  # nobody has such a role here
    effective = asked.says("effective")
    filters = {field: query[name] for name, field in FILTERS.items() if name in query}
    wanted = filters.pop("role") if effective and "role" in filters else None
    found = select(cloud.assignments, filters)
    if not effective:
        return found
    effective_rows = _effective(cloud, found)
    return [each for each in effective_rows if wanted is None or each["role"] in wanted]


def _effective(cloud: Cloud, rows: Iterable[Row]) -> list[Row]:
    """Return assignments with those of implied roles."""
    found: dict[tuple[str, str, str], Row] = {}
    for row in rows:
        for name in implied([cloud.roles.rows[row["role"]]["name"]]):
            role = cloud.role_ids[name]
            found.setdefault((row["project"], row["user"], role), row | {"role": role})
    return list(found.values())


def _shown(asked: Request, row: Row, *, names: bool) -> Json:
    cloud = asked.cloud
    path = f"/v3/projects/{row['project']}/users/{row['user']}/roles/{row['role']}"

    def brief(what: Row, *, in_domain: bool = True) -> dict[str, Any]:
        if not names:
            return {"id": what["id"]}
        return {"id": what["id"], "name": what["name"]} | ({"domain": BRIEF_DOMAIN} if in_domain else {})

    return {
        "links": {"assignment": f"{asked.url}{path}"},
        "scope": {"project": brief(cloud.projects.rows[row["project"]])},
        "user": brief(cloud.users.rows[row["user"]]),
        "role": brief(cloud.roles.rows[row["role"]], in_domain=False),
    }
