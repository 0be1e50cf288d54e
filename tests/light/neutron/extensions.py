"""Versions, the extensions whose fields are there, and collections in which nothing can be made."""

from __future__ import annotations

from tests.light.apis import NETWORK
from tests.light.web import Answer, Request

_ALIASES = """
    address-group allowed-address-pairs external-net ext-gw-mode extraroute filter-validation net-mtu
    net-mtu-writable pagination port-security project-id provider quotas quota_details revision-if-match router
    security-group security-groups-normalized-cidr sorting standard-attr-description standard-attr-revisions
    standard-attr-tag standard-attr-timestamp stateful-security-group subnet-external-network
"""
ALIASES = _ALIASES.split()


@NETWORK.on("GET", "/", public=True)
def versions(asked: Request) -> Answer:
    links = [{"rel": "self", "href": f"{asked.url}/v2.0/"}]
    return Answer(200, {"versions": [{"id": "v2.0", "status": "CURRENT", "links": links}]})


def _empty(collection: str) -> None:
    plural = collection.replace("-", "_")
    NETWORK.on("GET", f"/v2.0/{collection}")(lambda asked: Answer(200, {plural: []}))


for each in ("rbac-policies", "subnetpools", "trunks"):
    _empty(each)


@NETWORK.on("GET", "/v2.0/extensions")
def list_extensions(asked: Request) -> Answer:
    listed = [{"alias": each, "name": each, "description": "", "updated": "", "links": []} for each in ALIASES]
    wanted = asked.query.get("fields")
    return Answer(200, {"extensions": [{name: each[name] for name in wanted or each} for each in listed]})


@NETWORK.on("GET", "/v2.0/extensions/{}")
def get_extension(_asked: Request, alias: str) -> Answer:
    return Answer(200 if alias in ALIASES else 404, {"extension": {"alias": alias}})
