"""Images in terms of the Image API: lists by name, JSON patches, deletion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from openstack_prep.base.errors import ResourceFailed
from openstack_prep.base.raw import Raw
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.run import query
from openstack_prep.download.verified import Digests

PATCH = {"Content-Type": "application/openstack-images-v2.1-json-patch"}

_FIELDS = """
    checksum container_format created_at direct_url disk_format file id locations min_disk min_ram name os_hash_algo
    os_hash_value os_hidden owner protected schema self size status stores tags updated_at virtual_size visibility
"""
FIELDS = frozenset(_FIELDS.split())
"""Glance's own fields, which share a namespace with an image's properties: no property can have such a name."""


@dataclass(frozen=True, kw_only=True)
class ImageRecord:
    """An image as Glance stores it."""

    id: str
    name: str
    status: str
    visibility: str
    owner: str | None = None
    protected: bool = False
    size: int | None = None
    tags: tuple[str, ...] = ()
    created_at: str = ""
    disk_format: str | None = None
    container_format: str | None = None
    min_disk: int | None = None
    min_ram: int | None = None
    checksum: str | None = None
    os_hash_algo: str | None = None
    os_hash_value: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    """All properties that are not Glance's own fields."""

    @classmethod
    def read(cls, raw: Raw) -> ImageRecord:
        return cls(
            id=raw["id"],
            name=raw.get("name") or "",
            status=raw["status"],
            visibility=raw["visibility"],
            owner=raw.get("owner"),
            protected=raw.get("protected", False),
            size=raw.get("size"),
            tags=tuple(raw.get("tags") or ()),
            created_at=raw.get("created_at") or "",
            disk_format=raw.get("disk_format"),
            container_format=raw.get("container_format"),
            min_disk=raw.get("min_disk"),
            min_ram=raw.get("min_ram"),
            checksum=raw.get("checksum"),
            os_hash_algo=raw.get("os_hash_algo"),
            os_hash_value=raw.get("os_hash_value"),
            properties={name: value for name, value in raw.items() if name not in FIELDS},
        )


@query
def named(run: CloudRun, names: tuple[str, ...]) -> list[ImageRecord]:
    """Return all images with these names, whoever owns them."""
    odd = [
        name for name in names if {'"', "\\"} & {*name}
    ]  # Glance accepts such names in a list request, and finds nothing
    listed = ",".join(f'"{name}"' for name in names if name not in odd)
    filters = [*([f"in:{listed}"] if listed else []), *(f"eq:{name}" for name in odd)]
    lists = (run.admin.image.list("/images", "images", name=each, visibility="all", limit=1000) for each in filters)
    return [ImageRecord.read(raw) for found in lists for raw in found]


@query
def owned(run: CloudRun, project_id: str) -> list[ImageRecord]:
    """Return all images that a project owns."""
    listed = run.admin.image.list("/images", "images", owner=project_id, visibility="all", limit=1000)
    return list(map(ImageRecord.read, listed))


def show(cloud: Cloud, image_id: str) -> ImageRecord:
    return ImageRecord.read(cloud.image.get(f"/images/{image_id}"))


def operation(path: str, value: object) -> dict[str, object]:
    """Return the change of one member."""
    return {"op": "add", "path": "/" + path.replace("~", "~0").replace("/", "~1"), "value": value}


def operations(differing: Raw, image: ImageRecord) -> list[dict[str, object]]:
    """Return the changes of metadata, which keep tags and properties of others."""
    values = dict(differing)
    if "tags" in values:
        values["tags"] = sorted({*image.tags, *values["tags"]})
    values |= values.pop("properties", {})
    return [operation(path, value) for path, value in values.items()]


def patch(run: CloudRun, image: ImageRecord, changes: Sequence[Raw]) -> ImageRecord:
    return ImageRecord.read(run.admin.image.patch(f"/images/{image.id}", changes, headers=PATCH))


def delete(run: CloudRun, image: ImageRecord) -> None:
    """Delete an image, whether it is protected or not."""
    if image.protected:
        patch(run, image, [operation("protected", False)])
    run.admin.image.delete(f"/images/{image.id}")


def compare(image: ImageRecord, sent: Digests) -> None:
    """Raise ResourceFailed unless Glance stored exactly the bytes that were sent."""
    kept = sent.get(image.os_hash_algo) if image.os_hash_algo else None
    if image.size != sent.size or kept not in (None, image.os_hash_value):
        raise ResourceFailed(
            f"image {image.id}: Glance stored {image.size} bytes with {image.os_hash_algo} "
            f"{image.os_hash_value}instead of the {sent.size} bytes that were sent ({kept})"
        )
