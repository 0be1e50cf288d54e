"""Nova: versions, key pairs, server groups, and no servers."""

from __future__ import annotations

import base64
import binascii
import hashlib

from tests.light.apis import COMPUTE
from tests.light.listing import among, limit_of
from tests.light.services.flavors import MOST
from tests.light.state import new_id
from tests.light.table import Row
from tests.light.web import NOTHING, Answer, Json, Refused, Request

POLICIES = ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")


def _version(asked: Request, name: str, newest: str, oldest: str, status: str) -> Json:
    links = [{"rel": "self", "href": f"{asked.url}/{name.partition('.')[0]}{'.1' if newest else ''}/"}]
    when = "2013-07-23T11:33:21Z"
    return {"id": name, "status": status, "version": newest, "min_version": oldest, "updated": when, "links": links}


@COMPUTE.on("GET", "/", public=True)
def versions(asked: Request) -> Answer:
    return Answer(200, {"versions": [_version(asked, "v2.1", "2.104", "2.1", "CURRENT")]})


@COMPUTE.on("GET", "/v2.1", public=True)
def version(asked: Request) -> Answer:
    return Answer(200, {"version": _version(asked, "v2.1", "2.104", "2.1", "CURRENT")})


@COMPUTE.on("GET", "/v2.1/servers")
@COMPUTE.on("GET", "/v2.1/servers/detail")
def list_servers(asked: Request) -> Answer:
    if asked.says("all_tenants"):
        asked.only_admin()
    return Answer(200, {"servers": []})


# --- key pairs ----------------------------------------------------------------------------


def _owner(asked: Request, user_id: str) -> dict[str, Row]:
    """Return the key pairs of a user, which only the user and administrators see."""
    user_id = user_id or asked.caller.user["id"]
    if user_id != asked.caller.user["id"]:
        asked.only_admin()
    return asked.cloud.keypairs.setdefault(user_id, {})


@COMPUTE.on("GET", "/v2.1/os-keypairs")
def list_keypairs(asked: Request) -> Answer:
    rows = _owner(asked, asked.first("user_id")).values()
    hidden = ("user_id",)
    listed = [{name: value for name, value in row.items() if name not in hidden} for row in rows]
    return Answer(200, {"keypairs": [{"keypair": each} for each in listed]})


@COMPUTE.on("POST", "/v2.1/os-keypairs")
def create_keypair(asked: Request) -> Answer:
    given = asked.json("keypair")
    user_id = given.get("user_id") or asked.caller.user["id"]
    owned = _owner(asked, user_id)
    if given["name"] in owned:
        raise Refused(409, f"Key pair '{given['name']}' already exists.")
    try:
        content = base64.b64decode(given["public_key"].split()[1], validate=True)
    except (KeyError, IndexError, binascii.Error):
        raise Refused(400, "Keypair data is invalid: failed to generate fingerprint") from None
    digits = hashlib.md5(content, usedforsecurity=False).hexdigest()
    fingerprint = ":".join(digits[place : place + 2] for place in range(0, 32, 2))
    row = {"name": given["name"], "public_key": given["public_key"], "fingerprint": fingerprint}
    row |= {"type": given.get("type", "ssh"), "user_id": user_id}
    owned[given["name"]] = row
    return Answer(201, {"keypair": row})


@COMPUTE.on("GET", "/v2.1/os-keypairs/{}")
def get_keypair(asked: Request, name: str) -> Answer:
    row = _owner(asked, asked.first("user_id")).get(name)
    if row is None:
        raise Refused(404, f"Keypair {name} not found")
    return Answer(200, {"keypair": row})


@COMPUTE.on("DELETE", "/v2.1/os-keypairs/{}")
def delete_keypair(asked: Request, name: str) -> Answer:
    if _owner(asked, asked.first("user_id")).pop(name, None) is None:
        raise Refused(404, f"Keypair {name} not found")
    return NOTHING


# --- server groups ------------------------------------------------------------------------


def _group(asked: Request, group_id: str) -> Row:
    row = asked.cloud.server_groups.rows.get(group_id)
    if row is None or not (asked.caller.is_admin or row["project_id"] == asked.caller.project_id):
        raise Refused(404, f"Instance group {group_id} could not be found.")
    return row


@COMPUTE.on("GET", "/v2.1/os-server-groups")
def list_groups(asked: Request) -> Answer:
    """Answer a page without links to the next one, as Nova does."""
    if asked.says("all_projects") and asked.caller.is_admin:
        rows = list(asked.cloud.server_groups.rows.values())
    else:
        rows = among(asked.cloud.server_groups.having("project_id", asked.caller.project_id).values(), {})
    first = int(asked.first("offset", "0"))
    return Answer(200, {"server_groups": rows[first:][: limit_of(asked, MOST)]})


@COMPUTE.on("POST", "/v2.1/os-server-groups")
def create_group(asked: Request) -> Answer:
    given, caller = asked.json("server_group"), asked.caller
    if given.get("policy") not in POLICIES:
        raise Refused(400, f"policy {given.get('policy')!r} is not one of {list(POLICIES)}")
    row = {
        "id": new_id(),
        "name": given["name"],
        "policy": given["policy"],
        "rules": given.get("rules") or {},
        "members": [],
        "project_id": caller.project_id,
        "user_id": caller.user["id"],
    }
    return Answer(200, {"server_group": asked.cloud.server_groups.add(row)})


@COMPUTE.on("GET", "/v2.1/os-server-groups/{}")
def get_group(asked: Request, group_id: str) -> Answer:
    return Answer(200, {"server_group": _group(asked, group_id)})


@COMPUTE.on("DELETE", "/v2.1/os-server-groups/{}")
def delete_group(asked: Request, group_id: str) -> Answer:
    asked.cloud.server_groups.remove(_group(asked, group_id))
    return NOTHING
