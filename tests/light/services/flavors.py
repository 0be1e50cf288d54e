"""Nova: flavors, their extra specs, and which projects may use them."""

from __future__ import annotations

from typing import Any

import orjson

from tests.light.apis import COMPUTE
from tests.light.listing import limit_of, linked, page
from tests.light.state import new_id
from tests.light.table import Row
from tests.light.web import Answer, Json, Refused, Request, missing

MOST = 1000
PUBLIC = "os-flavor-access:is_public"
SPECS = "/v2.1/flavors/{}/os-extra_specs"


def _found(asked: Request, flavor_id: str) -> Row:
    row = asked.cloud.flavors.rows.get(flavor_id)
    if row is None or not _visible(asked, row):
        raise Refused(404, f"Flavor {flavor_id} could not be found.")
    return row


def _visible(asked: Request, row: Row) -> bool:
    caller = asked.caller
    return row[PUBLIC] or caller.is_admin or caller.project_id in asked.cloud.granted.get(row["id"], ())


def _shown(asked: Request, row: Row) -> Row:
    href = f"{asked.url}/v2.1/flavors/{row['id']}"
    return row | {"links": [{"rel": "self", "href": href}]}


def _listed(asked: Request) -> tuple[list[Row], Row | None]:
    wanted = asked.first("is_public") or ("" if asked.caller.is_admin else "none")
    rows = [row for row in asked.cloud.flavors.rows.values() if _visible(asked, row)]
    if wanted.lower() != "none":  # by default an administrator sees the public ones
        public = wanted.lower() not in ("false", "0")
        rows = [row for row in rows if row[PUBLIC] is public]
    return page(sorted(rows, key=lambda row: str(row["id"])), asked, limit_of(asked, MOST))


@COMPUTE.on("GET", "/v2.1/flavors/detail")
def list_details(asked: Request) -> Answer:
    """Answer all flavors, which are thousands where each project has its own; an administrator's list is kept."""
    version, kept = asked.cloud.kept_flavors
    if version != asked.cloud.flavors.version:
        kept = {}
        asked.cloud.kept_flavors = asked.cloud.flavors.version, kept
    if not asked.caller.is_admin or asked.query_text not in kept:
        rows, last = _listed(asked)
        content = orjson.dumps(linked("flavors", [_shown(asked, row) for row in rows], asked, last))
        if not asked.caller.is_admin:
            return Answer(200, content)
        kept[asked.query_text] = content
    return Answer(200, kept[asked.query_text])


@COMPUTE.on("GET", "/v2.1/flavors")
def list_flavors(asked: Request) -> Answer:
    rows, last = _listed(asked)
    brief = [{name: _shown(asked, row)[name] for name in ("id", "name", "links", "description")} for row in rows]
    return Answer(200, linked("flavors", brief, asked, last))


@COMPUTE.on("POST", "/v2.1/flavors", admin=True)
def create_flavor(asked: Request) -> Answer:
    given = asked.json("flavor")
    return Answer(200, {"flavor": _shown(asked, add(asked, given))})


def add(asked: Request, given: Json) -> Row:
    flavors = asked.cloud.flavors
    if flavors.having("name", given["name"]):
        raise Refused(409, f"Flavor with name {given['name']} already exists.")
    flavor_id = given.get("id")
    return flavors.add(new_flavor(given | {"id": new_id() if flavor_id in (None, "auto") else str(flavor_id)}))


def new_flavor(given: Json) -> Row:
    return {
        "id": given["id"],
        "name": given["name"],
        "ram": given["ram"],
        "disk": given["disk"],
        "swap": given.get("swap") or "",
        "OS-FLV-EXT-DATA:ephemeral": given.get("OS-FLV-EXT-DATA:ephemeral", 0),
        "OS-FLV-DISABLED:disabled": False,
        "vcpus": given["vcpus"],
        PUBLIC: given.get(PUBLIC, True),
        "rxtx_factor": given.get("rxtx_factor", 1.0),
        "description": given.get("description"),
        "extra_specs": {},
    }


@COMPUTE.on("GET", "/v2.1/flavors/{}")
def get_flavor(asked: Request, flavor_id: str) -> Answer:
    return Answer(200, {"flavor": _shown(asked, _found(asked, flavor_id))})


@COMPUTE.on("PUT", "/v2.1/flavors/{}", admin=True)
def describe(asked: Request, flavor_id: str) -> Answer:
    row = _found(asked, flavor_id)
    asked.cloud.flavors.change(row, {"description": asked.json("flavor")["description"]})
    return Answer(200, {"flavor": _shown(asked, row)})


@COMPUTE.on("DELETE", "/v2.1/flavors/{}", admin=True)
def delete_flavor(asked: Request, flavor_id: str) -> Answer:
    asked.cloud.flavors.remove(_found(asked, flavor_id))
    asked.cloud.granted.pop(flavor_id, None)
    return Answer(202)


# --- extra specs --------------------------------------------------------------------------


@COMPUTE.on("GET", SPECS)
def list_specs(asked: Request, flavor_id: str) -> Answer:
    return Answer(200, {"extra_specs": _found(asked, flavor_id)["extra_specs"]})


@COMPUTE.on("POST", SPECS, admin=True)
def add_specs(asked: Request, flavor_id: str) -> Answer:
    given: dict[str, Any] = asked.json("extra_specs")
    row = _found(asked, flavor_id)
    asked.cloud.flavors.change(row, {"extra_specs": row["extra_specs"] | given})
    return Answer(200, {"extra_specs": given})


@COMPUTE.on("DELETE", SPECS + "/{}", admin=True)
def delete_spec(asked: Request, flavor_id: str, name: str) -> Answer:
    row = _found(asked, flavor_id)
    if name not in row["extra_specs"]:
        raise missing("extra spec", name)
    left = {each: value for each, value in row["extra_specs"].items() if each != name}
    asked.cloud.flavors.change(row, {"extra_specs": left})
    return Answer(200)


# --- access -------------------------------------------------------------------------------


@COMPUTE.on("GET", "/v2.1/flavors/{}/os-flavor-access", admin=True)
def list_access(asked: Request, flavor_id: str) -> Answer:
    if _found(asked, flavor_id)[PUBLIC]:
        raise Refused(404, "Access list not available for public flavors.")
    return _access(asked, flavor_id)


def _access(asked: Request, flavor_id: str) -> Answer:
    ids = sorted(asked.cloud.granted.get(flavor_id, ()))
    return Answer(200, {"flavor_access": [{"flavor_id": flavor_id, "tenant_id": each} for each in ids]})


@COMPUTE.on("POST", "/v2.1/flavors/{}/action", admin=True)
def act(asked: Request, flavor_id: str) -> Answer:
    _found(asked, flavor_id)
    granted = asked.cloud.granted.setdefault(flavor_id, set())
    if b"addTenantAccess" in asked.body:
        project_id = asked.json("addTenantAccess")["tenant"]
        if project_id in granted:
            raise Refused(409, f"Flavor access already exists for flavor {flavor_id} and project {project_id}.")
        granted.add(project_id)
    else:
        project_id = asked.json("removeTenantAccess")["tenant"]
        if project_id not in granted:
            raise Refused(404, f"Flavor access not found for {flavor_id} / {project_id} combination.")
        granted.remove(project_id)
    return _access(asked, flavor_id)
