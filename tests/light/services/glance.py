"""Glance: images and their members; ``uploads`` takes their content."""

from __future__ import annotations

import csv
from typing import Any

import orjson

from tests.light.apis import IMAGE
from tests.light.listing import following, limit_of, page, select
from tests.light.state import new_id, now
from tests.light.table import Row
from tests.light.web import NOTHING, Answer, Query, Refused, Request

PAGE, MOST = 25, 1000
VERSIONS = (17, 16, *range(15, -1, -1))
_READ_ONLY = """
    id owner status size virtual_size checksum os_hash_algo os_hash_value created_at updated_at self file schema
    direct_url stores
"""
READ_ONLY = frozenset(_READ_ONLY.split())
_FILTERS = "id name owner status visibility disk_format container_format protected os_hidden tag"
FILTERS = frozenset(_FILTERS.split())


@IMAGE.on("GET", "/", public=True)
@IMAGE.on("GET", "/versions", public=True)
def versions(asked: Request) -> Answer:
    links = [{"rel": "self", "href": f"{asked.url}/v2/"}]
    status = {17: "CURRENT"}
    listed = [{"id": f"v2.{each}", "status": status.get(each, "SUPPORTED"), "links": links} for each in VERSIONS]
    return Answer(300, {"versions": listed})


# --- who sees what ------------------------------------------------------------------------


def found(asked: Request, image_id: str, *, to_write: bool = False) -> Row:
    row = asked.cloud.images.rows.get(image_id)
    if row is None or not (_visible(asked, row) or row["visibility"] == "community"):
        raise Refused(404, f"No image found with ID {image_id}")
    if to_write and not (asked.caller.is_admin or row["owner"] == asked.caller.project_id):
        raise Refused(403, f"You are not authorized to change image {image_id}")
    return row


def _visible(asked: Request, row: Row) -> bool:
    caller = asked.caller
    if caller.is_admin or row["visibility"] == "public" or row["owner"] == caller.project_id:
        return True
    member = asked.cloud.members.get(row["id"], {}).get(caller.project_id)
    return member is not None


def _in_list(asked: Request, row: Row, visibility: str) -> bool:
    caller = asked.caller
    if visibility == "all":
        return _visible(asked, row) or row["visibility"] == "community"
    if visibility:
        return row["visibility"] == visibility and (_visible(asked, row) or visibility == "community")
    if row["visibility"] == "community" and row["owner"] != caller.project_id:
        return False
    if row["visibility"] == "shared" and row["owner"] != caller.project_id and not caller.is_admin:
        member = asked.cloud.members.get(row["id"], {}).get(caller.project_id)
        return member is not None and member["status"] == "accepted"
    return _visible(asked, row)


def shown(row: Row) -> Row:
    path = f"/v2/images/{row['id']}"
    return row | {"self": path, "file": f"{path}/file", "schema": "/v2/schemas/image"}


# --- images -------------------------------------------------------------------------------


def _filters(asked: Request) -> Query:
    filters = {name: values for name, values in asked.query.items() if name in FILTERS and name != "visibility"}
    if "tag" in filters:
        filters["tags"] = [",".join(filters.pop("tag"))]
    for name in filters.keys() & {"name", "id", "status", "disk_format", "container_format"}:
        operator, colon, rest = filters[name][0].partition(":")
        if colon and operator == "in":
            filters[name] = next(csv.reader([rest]), [])
        elif colon and operator == "eq":
            filters[name] = [rest]
    return filters


@IMAGE.on("GET", "/v2/images")
def list_images(asked: Request) -> Answer:
    visibility = asked.first("visibility")
    rows = [row for row in select(asked.cloud.images, _filters(asked)) if _in_list(asked, row, visibility)]
    rows.sort(key=lambda row: (row["created_at"], row["id"]), reverse=True)
    rows, last = page(rows, asked, limit_of(asked, MOST, PAGE))
    first = f"/v2/images?{asked.query_text}" if asked.query_text else "/v2/images"
    body: Row = {"images": list(map(shown, rows)), "first": first, "schema": "/v2/schemas/images"}
    if last is not None:
        body["next"] = f"/v2/images?{following(asked, last)}"
    return Answer(200, body)


@IMAGE.on("POST", "/v2/images")
def create_image(asked: Request) -> Answer:
    given, caller = orjson.loads(asked.body), asked.caller
    if given.get("owner", caller.project_id) != caller.project_id or given.get("visibility") == "public":
        asked.only_admin()
    if given.get("id") in asked.cloud.images.rows:
        raise Refused(409, f"Image ID {given['id']} already exists!")
    fixed = {
        "size": None,
        "virtual_size": None,
        "status": "queued",
        "checksum": None,
        "os_hash_algo": None,
        "os_hash_value": None,
        "created_at": now(),
        "updated_at": now(),
    }
    defaults: Row = {
        "id": new_id(),
        "name": None,
        "disk_format": None,
        "container_format": None,
        "visibility": "shared",
        "protected": False,
        "min_ram": 0,
        "min_disk": 0,
        "owner": caller.project_id,
        "os_hidden": False,
        "tags": [],
    }
    row = asked.cloud.images.add(defaults | given | fixed)
    location = f"{asked.url}/v2/images/{row['id']}".encode()
    return Answer(201, shown(row), ((b"location", location),))


@IMAGE.on("GET", "/v2/images/{}")
def get_image(asked: Request, image_id: str) -> Answer:
    return Answer(200, shown(found(asked, image_id)))


@IMAGE.on("PATCH", "/v2/images/{}")
def change_image(asked: Request, image_id: str) -> Answer:
    row = found(asked, image_id, to_write=True)
    values: dict[str, Any] = {}
    for each in orjson.loads(asked.body):
        name = each["path"][1:].replace("~1", "/").replace("~0", "~")
        if name in READ_ONLY:
            raise Refused(403, f"Attribute '{name}' is read-only.")
        if each["op"] != "add" and name not in row:
            raise Refused(409, f"Property {name} does not exist.")
        values[name] = each.get("value")
        if each["op"] == "remove":
            del values[name]
            row.pop(name)
    if values.get("visibility") == "public":
        asked.only_admin()
    asked.cloud.images.change(row, values | {"updated_at": now()})
    return Answer(200, shown(row))


@IMAGE.on("DELETE", "/v2/images/{}")
def delete_image(asked: Request, image_id: str) -> Answer:
    row = found(asked, image_id, to_write=True)
    if row["protected"]:
        raise Refused(403, f"Image {image_id} is protected and cannot be deleted.")
    asked.cloud.images.remove(row)
    asked.cloud.members.pop(image_id, None)
    return NOTHING


@IMAGE.on("PUT", "/v2/images/{}/tags/{}")
def add_tag(asked: Request, image_id: str, tag: str) -> Answer:
    row = found(asked, image_id, to_write=True)
    row["tags"] = [*(each for each in row["tags"] if each != tag), tag]
    return NOTHING


@IMAGE.on("DELETE", "/v2/images/{}/tags/{}")
def remove_tag(asked: Request, image_id: str, tag: str) -> Answer:
    row = found(asked, image_id, to_write=True)
    if tag not in row["tags"]:
        raise Refused(404, f"tag {tag} was not found")
    row["tags"] = [each for each in row["tags"] if each != tag]
    return NOTHING


# --- members ------------------------------------------------------------------------------


@IMAGE.on("GET", "/v2/images/{}/members")
def list_members(asked: Request, image_id: str) -> Answer:
    if found(asked, image_id)["visibility"] != "shared":
        raise Refused(403, "Only shared images have members.")
    return Answer(200, {"members": list(asked.cloud.members.get(image_id, {}).values())})


@IMAGE.on("POST", "/v2/images/{}/members")
def add_member(asked: Request, image_id: str) -> Answer:
    if found(asked, image_id, to_write=True)["visibility"] != "shared":
        raise Refused(403, "Only shared images have members.")
    members, project_id = asked.cloud.members.setdefault(image_id, {}), asked.json("member")
    if project_id in members:
        raise Refused(409, f"The target member {project_id} is already associated with image {image_id}.")
    when = now()
    members[project_id] = {"image_id": image_id, "member_id": project_id, "status": "pending"}
    members[project_id] |= {"created_at": when, "updated_at": when, "schema": "/v2/schemas/member"}
    return Answer(200, members[project_id])


@IMAGE.on("PUT", "/v2/images/{}/members/{}")
def answer_for_member(asked: Request, image_id: str, project_id: str) -> Answer:
    member = asked.cloud.members.get(image_id, {}).get(project_id)
    if member is None:
        raise Refused(404, f"{project_id} not found in the member list of the image {image_id}.")
    if asked.caller.project_id != project_id:
        asked.only_admin()
    member["status"] = asked.json("status")
    return Answer(200, member)


@IMAGE.on("DELETE", "/v2/images/{}/members/{}")
def remove_member(asked: Request, image_id: str, project_id: str) -> Answer:
    found(asked, image_id, to_write=True)
    if asked.cloud.members.get(image_id, {}).pop(project_id, None) is None:
        raise Refused(404, f"{project_id} not found in the member list of the image {image_id}.")
    return NOTHING
