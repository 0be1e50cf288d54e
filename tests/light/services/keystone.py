"""Keystone: versions, domains, projects with their tags, users, and roles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.light.apis import IDENTITY
from tests.light.listing import following, limit_of, page, select
from tests.light.state import DOMAIN, IMPLIES, plain_id
from tests.light.table import Row, Table
from tests.light.web import NOTHING, Answer, Json, Query, Refused, Request, missing

DOMAINS = [{"id": DOMAIN, "name": "Default", "description": "The default domain", "enabled": True, "options": {}}]
FILTERS = ("name", "domain_id", "parent_id", "enabled", "tags", "is_domain", "email", "default_project_id")


@IDENTITY.on("GET", "/", public=True)
def versions(asked: Request) -> Answer:
    return Answer(300, {"versions": {"values": [_version(asked)]}})


@IDENTITY.on("GET", "/v3", public=True)
def version(asked: Request) -> Answer:
    return Answer(200, {"version": _version(asked)})


def _version(asked: Request) -> Json:
    links = [{"rel": "self", "href": f"{asked.url}/v3/"}]
    media = [{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}]
    when = "2020-04-07T00:00:00Z"
    return {"id": "v3.14", "status": "stable", "updated": when, "links": links, "media-types": media}


# --- answers ------------------------------------------------------------------------------


def shown(asked: Request, plural: str, row: Row) -> Row:
    """Return what Keystone shows of a row: all but what begins with an underscore."""
    open_fields = {name: value for name, value in row.items() if name[0] != "_"}
    return open_fields | {"links": {"self": f"{asked.url}/v3/{plural}/{row['id']}"}}


def one(asked: Request, plural: str, row: Row, status: int = 200) -> Answer:
    return Answer(status, {plural[:-1]: shown(asked, plural, row)})


def many(asked: Request, plural: str, rows: Iterable[Row]) -> Answer:
    """Answer a list; with ``limit`` as much of it, and a link to the rest."""
    listed, last = page(list(rows), asked, limit_of(asked))
    following_url = f"{asked.url}{asked.path}?{following(asked, last)}" if last else None
    links = {"next": following_url, "self": asked.whole_url, "previous": None}
    body: Json = {plural: [shown(asked, plural, row) for row in listed], "links": links}
    return Answer(200, body | ({"truncated": True} if last else {}))


def filters(asked: Request) -> Query:
    """Return those filters that Keystone knows; it passes over all others."""
    return {name: values for name, values in asked.query.items() if name in FILTERS}


def get(table: Table, what: str, row_id: str) -> Row:
    row = table.rows.get(row_id)
    if row is None:
        raise missing(what, row_id)
    return row


def check_name(table: Table, what: str, name: Any, but: str = "") -> None:
    if not isinstance(name, str) or not name:
        raise Refused(400, f"{what} name is missing")
    if table.having("name", name).keys() - {but}:
        raise Refused(409, f"Conflict occurred attempting to store {what} - it is not permitted to have two: {name}.")


# --- domains and roles --------------------------------------------------------------------


@IDENTITY.on("GET", "/v3/domains", admin=True)
def list_domains(asked: Request) -> Answer:
    name = asked.first("name")
    return many(asked, "domains", [each for each in DOMAINS if name in ("", each["name"])])


@IDENTITY.on("GET", "/v3/domains/{}", admin=True)
def get_domain(asked: Request, domain_id: str) -> Answer:
    if domain_id != DOMAIN:
        raise missing("domain", domain_id)
    return one(asked, "domains", DOMAINS[0])


@IDENTITY.on("GET", "/v3/roles", admin=True)
def list_roles(asked: Request) -> Answer:
    return many(asked, "roles", select(asked.cloud.roles, filters(asked)))


@IDENTITY.on("GET", "/v3/roles/{}", admin=True)
def get_role(asked: Request, role_id: str) -> Answer:
    return one(asked, "roles", get(asked.cloud.roles, "role", role_id))


@IDENTITY.on("GET", "/v3/role_inferences", admin=True)
def role_inferences(asked: Request) -> Answer:
    ids = asked.cloud.role_ids

    def brief(name: str) -> Json:
        return {"id": ids[name], "name": name, "links": {"self": f"{asked.url}/v3/roles/{ids[name]}"}}

    rules = [{"prior_role": brief(prior), "implies": list(map(brief, names))} for prior, names in IMPLIES.items()]
    return Answer(200, {"role_inferences": rules})


@IDENTITY.on("GET", "/v3/groups", admin=True)
def list_groups(asked: Request) -> Answer:
    return many(asked, "groups", ())


# --- projects -----------------------------------------------------------------------------


@IDENTITY.on("GET", "/v3/projects", admin=True)
def list_projects(asked: Request) -> Answer:
    return many(asked, "projects", select(asked.cloud.projects, filters(asked)))


@IDENTITY.on("POST", "/v3/projects", admin=True)
def create_project(asked: Request) -> Answer:
    given = asked.json("project")
    check_name(asked.cloud.projects, "project", given.get("name"))
    parent = given.get("parent_id") or DOMAIN
    fixed = {"id": plain_id(), "domain_id": DOMAIN, "parent_id": parent, "is_domain": False}
    row = {"description": "", "enabled": True, "tags": [], "options": {}} | given | fixed
    return one(asked, "projects", asked.cloud.projects.add(row), 201)


@IDENTITY.on("GET", "/v3/projects/{}")
def get_project(asked: Request, project_id: str) -> Answer:
    if asked.caller.project is None or asked.caller.project["id"] != project_id:
        asked.only_admin()
    return one(asked, "projects", get(asked.cloud.projects, "project", project_id))


@IDENTITY.on("PATCH", "/v3/projects/{}", admin=True)
def change_project(asked: Request, project_id: str) -> Answer:
    projects = asked.cloud.projects
    row, given = get(projects, "project", project_id), asked.json("project")
    if "name" in given:
        check_name(projects, "project", given["name"], project_id)
    projects.change(row, given)
    if row["enabled"] is False:
        asked.cloud.tokens.revoke(project_id)
    return one(asked, "projects", row)


@IDENTITY.on("DELETE", "/v3/projects/{}", admin=True)
def delete_project(asked: Request, project_id: str) -> Answer:
    cloud = asked.cloud
    cloud.projects.remove(get(cloud.projects, "project", project_id))
    for each in list(cloud.assignments.having("project", project_id).values()):
        cloud.assignments.remove(each)
    for each in list(cloud.credentials.having("project_id", project_id).values()):
        cloud.credentials.remove(each)
    cloud.tokens.revoke(project_id)
    return NOTHING


@IDENTITY.on("GET", "/v3/projects/{}/tags", admin=True)
def list_tags(asked: Request, project_id: str) -> Answer:
    return Answer(200, {"tags": get(asked.cloud.projects, "project", project_id)["tags"]})


@IDENTITY.on("PUT", "/v3/projects/{}/tags/{}", admin=True)
def add_tag(asked: Request, project_id: str, tag: str) -> Answer:
    row = get(asked.cloud.projects, "project", project_id)
    if tag in row["tags"]:
        raise Refused(400, f"the project has the tag {tag} already")
    asked.cloud.projects.change(row, {"tags": [*row["tags"], tag]})
    return Answer(201)


@IDENTITY.on("DELETE", "/v3/projects/{}/tags/{}", admin=True)
def remove_tag(asked: Request, project_id: str, tag: str) -> Answer:
    row = get(asked.cloud.projects, "project", project_id)
    if tag not in row["tags"]:
        raise missing("project tag", tag)
    asked.cloud.projects.change(row, {"tags": [each for each in row["tags"] if each != tag]})
    return NOTHING


# --- users --------------------------------------------------------------------------------


@IDENTITY.on("GET", "/v3/users", admin=True)
def list_users(asked: Request) -> Answer:
    return many(asked, "users", select(asked.cloud.users, filters(asked)))


@IDENTITY.on("POST", "/v3/users", admin=True)
def create_user(asked: Request) -> Answer:
    given = asked.json("user")
    check_name(asked.cloud.users, "user", given.get("name"))
    given["_password"] = given.pop("password", None)
    fixed = {"id": plain_id(), "domain_id": DOMAIN, "password_expires_at": None}
    row = {"enabled": True, "options": {}} | given | fixed
    return one(asked, "users", asked.cloud.users.add(row), 201)


@IDENTITY.on("GET", "/v3/users/{}")
def get_user(asked: Request, user_id: str) -> Answer:
    if asked.caller.user["id"] != user_id:
        asked.only_admin()
    return one(asked, "users", get(asked.cloud.users, "user", user_id))


@IDENTITY.on("PATCH", "/v3/users/{}", admin=True)
def change_user(asked: Request, user_id: str) -> Answer:
    users = asked.cloud.users
    row, given = get(users, "user", user_id), asked.json("user")
    if "name" in given:
        check_name(users, "user", given["name"], user_id)
    if "password" in given:
        given["_password"] = given.pop("password")
    users.change(row, given)
    if "_password" in given or row["enabled"] is False:
        asked.cloud.tokens.revoke(user_id)
    return one(asked, "users", row)


@IDENTITY.on("DELETE", "/v3/users/{}", admin=True)
def delete_user(asked: Request, user_id: str) -> Answer:
    cloud = asked.cloud
    cloud.users.remove(get(cloud.users, "user", user_id))
    for each in list(cloud.assignments.having("user", user_id).values()):
        cloud.assignments.remove(each)
    for each in list(cloud.credentials.having("user_id", user_id).values()):
        cloud.credentials.remove(each)
    cloud.tokens.revoke(user_id)
    return NOTHING
