"""Keystone: application credentials."""

from __future__ import annotations

import secrets

from tests.light.apis import IDENTITY
from tests.light.listing import select
from tests.light.services.keystone import get, many, shown
from tests.light.state import implied, plain_id
from tests.light.table import Row
from tests.light.web import NOTHING, Answer, Refused, Request, missing

PATH = "/v3/users/{}/application_credentials"
PLURAL = "application_credentials"


def _own(asked: Request, user_id: str) -> None:
    if asked.caller.user["id"] != user_id:
        asked.only_admin()


def _found(asked: Request, user_id: str, credential_id: str) -> Row:
    _own(asked, user_id)
    row = asked.cloud.credentials.rows.get(credential_id)
    if row is None or row["user_id"] != user_id:
        raise missing("application credential", credential_id)
    return row


@IDENTITY.on("GET", PATH)
def list_credentials(asked: Request, user_id: str) -> Answer:
    _own(asked, user_id)
    get(asked.cloud.users, "user", user_id)
    wanted = {"user_id": [user_id]} | ({"name": asked.query["name"]} if "name" in asked.query else {})
    return many(asked, PLURAL, select(asked.cloud.credentials, wanted))


@IDENTITY.on("POST", PATH)
def create_credential(asked: Request, user_id: str) -> Answer:
    caller, cloud, given = asked.caller, asked.cloud, asked.json("application_credential")
    if caller.user["id"] != user_id:
        raise Refused(403, "You are not authorized to perform the requested action.")
    mine = cloud.credentials.having("user_id", user_id).values()
    if any(each["name"] == given["name"] for each in mine):
        raise Refused(409, f"Conflict occurred attempting to store application_credential - {given['name']}.")
    secret = given.get("secret") or secrets.token_urlsafe(64)
    row = {
        "id": plain_id(),
        "name": given["name"],
        "description": given.get("description"),
        "user_id": user_id,
        "project_id": caller.project_id,
        "system": None,
        "expires_at": given.get("expires_at"),
        "unrestricted": given.get("unrestricted"),
        "_secret": secret,
        **_roles(asked, given.get("roles")),
    }
    if "access_rules" in given:
        row["access_rules"] = [{"id": plain_id(), **rule} for rule in given["access_rules"]]
    cloud.credentials.add(row)
    return Answer(201, {"application_credential": shown(asked, PLURAL, row) | {"secret": secret}})


def _roles(asked: Request, given: list[dict[str, str]] | None) -> Row:
    """Return the fields with a credential's roles; raises Refused unless the token has them."""
    cloud = asked.cloud
    by_id = {role_id: name for name, role_id in cloud.role_ids.items()}
    named = None if given is None else [each.get("name") or by_id.get(each["id"], "") for each in given]
    names = asked.caller.roles if named is None else implied(named)
    if not names or not names <= asked.caller.roles:
        raise Refused(400, "Could not find role assignment for the application credential.")
    rows = [cloud.roles.rows[cloud.role_ids[name]] for name in sorted(names)]
    return {"_roles": names, "roles": rows}


@IDENTITY.on("GET", PATH + "/{}")
def get_credential(asked: Request, user_id: str, credential_id: str) -> Answer:
    return Answer(200, {"application_credential": shown(asked, PLURAL, _found(asked, user_id, credential_id))})


@IDENTITY.on("DELETE", PATH + "/{}")
def delete_credential(asked: Request, user_id: str, credential_id: str) -> Answer:
    row = _found(asked, user_id, credential_id)
    asked.cloud.credentials.remove(row)
    asked.cloud.tokens.revoke(credential_id)
    return NOTHING
