"""Cinder: versions, types, and no volumes."""

from __future__ import annotations

from tests.light.apis import VOLUME
from tests.light.web import Answer, Json, Request

TYPES: list[Json] = [
    {
        "id": "3d2c1f8e-6b3f-4f0e-9f0a-5a9d7c1b2e40",
        "name": "__DEFAULT__",
        "description": "Default Volume Type",
        "is_public": True,
        "os-volume-type-access:is_public": True,
        "extra_specs": {},
        "qos_specs_id": None,
    }
]


def _version(asked: Request) -> Json:
    links = [{"rel": "self", "href": f"{asked.url}/v3/"}]
    return {"id": "v3.0", "status": "CURRENT", "version": "3.71", "min_version": "3.0", "links": links}


@VOLUME.on("GET", "/", public=True)
def versions(asked: Request) -> Answer:
    return Answer(300, {"versions": [_version(asked)]})


@VOLUME.on("GET", "/v3", public=True)
def version(asked: Request) -> Answer:
    return Answer(200, {"versions": [_version(asked)]})


@VOLUME.on("GET", "/v3/types")
@VOLUME.on("GET", "/v3/{}/types")
def list_types(_asked: Request, *_project_id: str) -> Answer:
    return Answer(200, {"volume_types": TYPES})


def _empty(plural: str) -> None:
    def listed(asked: Request, *_project_id: str) -> Answer:
        if asked.says("all_tenants"):
            asked.only_admin()
        return Answer(200, {plural: []})

    for prefix in ("/v3", "/v3/{}"):
        VOLUME.on("GET", f"{prefix}/{plural}")(listed)
        VOLUME.on("GET", f"{prefix}/{plural}/detail")(listed)


for each in ("volumes", "snapshots", "backups"):
    _empty(each)
