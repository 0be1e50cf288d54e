"""Images in the Image API's words: lists by name, JSON patches, deletion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from openstack_prep.content.verified import Digests
from openstack_prep.errors import ResourceFailed
from openstack_prep.site import Site, query

PATCH = {"Content-Type": "application/openstack-images-v2.1-json-patch"}

_FIELDS = """
    checksum container_format created_at direct_url disk_format file id locations min_disk min_ram name os_hash_algo
    os_hash_value os_hidden owner protected schema self size status stores tags updated_at virtual_size visibility
"""
FIELDS = frozenset(_FIELDS.split())
"""What Glance keeps beside an image's properties, in the same place: no property can be called so."""

Raw = Mapping[str, Any]


@query
def named(site: Site, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return all images of these names, whoever owns them."""
    odd = [name for name in names if {'"', "\\"} & {*name}]  # Glance takes them in a list, and finds nothing
    listed = ",".join(f'"{name}"' for name in names if name not in odd)
    filters = [*([f"in:{listed}"] if listed else []), *(f"eq:{name}" for name in odd)]
    lists = (site.admin.image.list("/images", "images", name=each, visibility="all", limit=1000) for each in filters)
    return [raw for found in lists for raw in found]


@query
def owned(site: Site, project_id: str) -> list[dict[str, Any]]:
    """Return all images that a project owns."""
    return site.admin.image.list("/images", "images", owner=project_id, visibility="all", limit=1000)


def operation(path: str, value: Any) -> dict[str, Any]:
    """Return the change of one member."""
    return {"op": "add", "path": "/" + path.replace("~", "~0").replace("/", "~1"), "value": value}


def operations(differing: Mapping[str, Any], raw: Raw) -> list[dict[str, Any]]:
    """Return the changes of metadata, in which tags and properties of others stay."""
    values = dict(differing)
    if "tags" in values:
        values["tags"] = sorted({*raw["tags"], *values["tags"]})
    values |= values.pop("properties", {})
    return [operation(path, value) for path, value in values.items()]


def patch(site: Site, raw: Raw, changes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return site.admin.image.patch(f"/images/{raw['id']}", changes, headers=PATCH)


def delete(site: Site, raw: Raw) -> None:
    """Delete an image, protected or not."""
    if raw["protected"]:
        patch(site, raw, [operation("protected", False)])
    site.admin.image.delete(f"/images/{raw['id']}")


def compare(raw: Raw, sent: Digests) -> None:
    """Raise ResourceFailed unless Glance holds what was sent."""
    kept = sent.get(raw["os_hash_algo"]) if raw.get("os_hash_algo") else None
    if raw["size"] != sent.size or kept not in (None, raw["os_hash_value"]):
        raise ResourceFailed(
            f"image {raw['id']}: Glance holds {raw['size']} bytes with {raw.get('os_hash_algo')} "
            f"{raw.get('os_hash_value')}, not the {sent.size} bytes that were sent ({kept})"
        )
