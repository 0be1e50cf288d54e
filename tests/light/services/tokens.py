"""Keystone: tokens, by password, token or application credential."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import Any

from tests.light.apis import IDENTITY
from tests.light.services.grants import roles_of
from tests.light.services.keystone import DOMAINS, many
from tests.light.state import DOMAIN, Cloud, Token, implied
from tests.light.table import Row
from tests.light.web import NOTHING, Answer, Json, Refused, Request, missing

LIFETIME = 3600.0
BRIEF_DOMAIN = {"id": DOMAIN, "name": "Default"}
_WRONG = "The request you have made requires authentication."


@IDENTITY.on("POST", "/v3/auth/tokens", public=True)
def log_in(asked: Request) -> Answer:
    cloud, wanted = asked.cloud, asked.json("auth")
    identity = wanted.get("identity") or {}
    methods = tuple(identity.get("methods", ()))
    user, credential, scope = _identified(cloud, methods, identity, wanted.get("scope"))
    if not user["enabled"]:
        raise Refused(401, _WRONG)
    project = _project(cloud, scope, user)
    roles = roles_of(cloud, user["id"], project["id"]) if project else frozenset()
    if credential is not None:
        roles &= implied(credential["_roles"])
    if project is not None and not roles:
        raise Refused(401, _WRONG)
    token = Token(user=user, project=project, roles=roles, methods=methods, credential=credential)
    value = f"gAAAAA{secrets.token_urlsafe(96)}"
    cloud.tokens.add(value, token)
    return Answer(201, {"token": _content(cloud, token)}, ((b"x-subject-token", value.encode()),))


def _identified(
    cloud: Cloud, methods: tuple[str, ...], identity: Mapping[str, Any], scope: Any
) -> tuple[Row, Row | None, Any]:
    """Return the user, its application credential if that is used, and the scope; raises Refused."""
    if methods == ("application_credential",):
        given = identity["application_credential"]
        credential = _credential(cloud, given)
        if credential["_secret"] != given.get("secret"):
            raise Refused(401, _WRONG)
        user = cloud.users.rows[credential["user_id"]]
        return user, credential, {"project": {"id": credential["project_id"]}}
    if methods == ("token",):
        known = cloud.tokens.get(identity["token"].get("id", ""))
        if known is None:
            raise Refused(401, _WRONG)
        return known.user, known.credential, scope
    if methods != ("password",):
        raise Refused(401, _WRONG)
    given = identity["password"]["user"]
    user = _named(cloud, given)
    if user["_password"] is None or user["_password"] != given.get("password"):
        raise Refused(401, _WRONG)
    return user, None, scope


def _named(cloud: Cloud, given: Mapping[str, Any]) -> Row:
    found = cloud.users.rows.get(given["id"]) if "id" in given else _only(cloud.users.having("name", given["name"]))
    if found is None or not _in_domain(given):
        raise Refused(401, _WRONG)
    return found


def _credential(cloud: Cloud, given: Mapping[str, Any]) -> Row:
    found = cloud.credentials.rows.get(given.get("id", ""))
    if found is None and "name" in given:
        user = _named(cloud, given["user"])
        mine = cloud.credentials.having("user_id", user["id"]).values()
        found = next((each for each in mine if each["name"] == given["name"]), None)
    if found is None:
        raise Refused(401, _WRONG)
    return found


def _only(rows: Mapping[str, Row]) -> Row | None:
    return next(iter(rows.values()), None)


def _in_domain(given: Mapping[str, Any]) -> bool:
    domain = given.get("domain") or BRIEF_DOMAIN
    return domain.get("id") == DOMAIN or domain.get("name") == "Default"


def _project(cloud: Cloud, scope: Any, user: Row) -> Row | None:
    """Return the project of a scope; without a scope that of the user, if it has a role there."""
    if not scope:
        default = user.get("default_project_id")
        return cloud.projects.rows.get(default) if default and roles_of(cloud, user["id"], default) else None
    wanted = scope.get("project") if isinstance(scope, dict) else None
    if wanted is None:  # a domain, or unscoped
        return None
    found = cloud.projects.rows.get(wanted["id"]) if "id" in wanted else None
    if found is None and "name" in wanted and _in_domain(wanted):
        found = _only(cloud.projects.having("name", wanted["name"]))
    if found is None or not found["enabled"]:
        raise Refused(401, _WRONG)
    return found


def _content(cloud: Cloud, token: Token) -> Json:
    user, project, began = token.user, token.project, time.time()
    content: Json = {
        "methods": list(token.methods),
        "user": {"domain": BRIEF_DOMAIN, "id": user["id"], "name": user["name"], "password_expires_at": None},
        "audit_ids": [secrets.token_urlsafe(16)],
        "expires_at": _time(began + LIFETIME),
        "issued_at": _time(began),
    }
    if project is None:
        return content
    if token.credential is not None:
        content["application_credential"] = {name: token.credential[name] for name in ("id", "name")}
        content["application_credential"]["restricted"] = not token.credential["unrestricted"]
    return content | {
        "project": {"domain": BRIEF_DOMAIN, "id": project["id"], "name": project["name"]},
        "is_domain": False,
        "roles": [{"id": cloud.role_ids[name], "name": name} for name in token.roles],
        "catalog": catalogue(cloud, project["id"]),
    }


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(seconds))


def catalogue(cloud: Cloud, project_id: str) -> list[Json]:
    region = {"region_id": cloud.region, "region": cloud.region}
    return [
        {
            "id": f"{kind}-{cloud.region}",
            "type": kind,
            "name": name,
            "endpoints": [
                {"id": f"{kind}-{interface}", "interface": interface, "url": url, **region}
                for interface in ("public", "internal", "admin")
            ],
        }
        for kind, name, url in cloud.urls(project_id)
    ]


def _subject(asked: Request) -> tuple[str, Token]:
    value = asked.headers.get(b"x-subject-token", b"").decode("latin-1")
    token = asked.cloud.tokens.get(value)
    if token is None:
        raise missing("token")
    return value, token


@IDENTITY.on("GET", "/v3/auth/tokens")
def show_token(asked: Request) -> Answer:
    value, token = _subject(asked)
    return Answer(200, {"token": _content(asked.cloud, token)}, ((b"x-subject-token", value.encode()),))


@IDENTITY.on("DELETE", "/v3/auth/tokens")
def revoke(asked: Request) -> Answer:
    value, _ = _subject(asked)
    asked.cloud.tokens.discard(value)
    return NOTHING


@IDENTITY.on("GET", "/v3/auth/catalog")
def show_catalogue(asked: Request) -> Answer:
    return Answer(200, {"catalog": catalogue(asked.cloud, asked.caller.project_id)})


@IDENTITY.on("GET", "/v3/auth/projects")
def own_projects(asked: Request) -> Answer:
    cloud = asked.cloud
    ids = {each["project"] for each in cloud.assignments.having("user", asked.caller.user["id"]).values()}
    return many(asked, "projects", [cloud.projects.rows[each] for each in sorted(ids)])


@IDENTITY.on("GET", "/v3/auth/domains")
def own_domains(asked: Request) -> Answer:
    return many(asked, "domains", DOMAINS if asked.caller.is_admin else ())
