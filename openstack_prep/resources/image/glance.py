"""Images in terms of the Image API: lists by name, JSON patches, members, deletion, tags and seals of managed images.

Source: Image API v2, "Sharing". Only an image with visibility shared has members. A member does not see the image in
its list until it accepts the image; an administrator may accept on its behalf.

A seal is the checksum of the content as it was received, by one algorithm. It is written after the content was
verified, so an image of this spec without a seal is left over from a killed run.

Other services copy all properties into images with another content: Nova into snapshots and backups (34.0.0,
compute/utils.py, initialize_instance_snapshot_metadata), Cinder from the image to the volume and from the volume to
an image (29.0.0, volume/api.py, _merge_volume_image_meta), Glance into downloads from other regions. So the ownership
tag of an image names the image's own id, and what a copy says about the original counts for nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from openstack_prep.base.errors import ResourceFailed
from openstack_prep.base.raw import Raw, Values
from openstack_prep.cloud.cloud_run import CloudRun, refuse_others
from openstack_prep.core.model import Resource
from openstack_prep.core.run import query
from openstack_prep.resources.lists.queries import list_images

if TYPE_CHECKING:
    from openstack_prep.cloud.connection import Cloud

if TYPE_CHECKING:  # whoever uploads loads it
    from openstack_prep.download.verification import Digests

PATCH = {"Content-Type": "application/openstack-images-v2.1-json-patch"}

_FIELDS = """
    checksum container_format created_at direct_url disk_format file id locations min_disk min_ram name os_hash_algo
    os_hash_value os_hidden owner protected schema self size status stores tags updated_at virtual_size visibility
"""
FIELDS = frozenset(_FIELDS.split())
"""Glance's own fields, which share a namespace with an image's properties: no property can have such a name."""

SPEC, NAME, ID = "openstack_prep", "openstack_prep_name", "openstack_prep_id"
"""Properties that hold the ownership tag: the name of the spec, the name within the spec, and the image's own id."""
OF_SNAPSHOT = ("base_image_ref", "instance_uuid", "block_device_mapping")
"""Properties that Nova adds to snapshots (34.0.0, compute/utils.py, create_image; compute/api.py,
_populate_instance_for_create and snapshot_volume_backed).
"""
SEALS = {algorithm: f"openstack_prep_{algorithm}" for algorithm in ("sha256", "sha512", "md5")}
"""Properties that hold the verified checksum, by its algorithm."""
PACKED = "openstack_prep_compressed_checksum"
"""Property that holds the checksum of the compressed source, if that was verified."""
CONVERTED = "openstack_prep_converted_from"
"""Property that holds the original format of converted content: the seal covers the original, Glance's checksums do
not.
"""

TAGGED = frozenset((SPEC, NAME, ID, PACKED, CONVERTED, *SEALS.values()))
"""All properties of openstack-prep, which describe one image and no other."""
SIGNED = (
    "img_signature",
    "img_signature_hash_method",
    "img_signature_key_type",
    "img_signature_certificate_uuid",
)
"""Properties that hold the signature of the content: Nova 34.0.0, image/glance.py, _get_verifier; no other content has
it.
"""
OF_CONTENT = ("owner_specified.openstack.md5", "owner_specified.openstack.sha256")
"""Properties in which openstacksdk keeps checksums of the content (4.22.0, image/v2/_proxy.py), of no other content."""
CARRIED = ("visibility", "os_hidden", "min_disk", "min_ram")
"""Fields that others may set, and that say nothing of the content."""
OF_IMPORTS = "os_glance"
"""The namespace of properties that only Glance sets (33.0.0, api/v2/images.py, RequestDeserializer)."""


def is_reserved(name: str) -> bool:
    """Whether no property of a spec may have that name: a field, or one that Glance or openstack-prep reserves.

    Source: Glance 33.0.0, api/v2/images.py, RequestDeserializer (_reserved_properties, _reserved_namespaces).
    """
    return name in FIELDS | {"location", "deleted", "deleted_at"} or name.startswith((SPEC, OF_IMPORTS))


@dataclass(frozen=True, kw_only=True)
class ImageRecord:
    """An image as Glance stores it."""

    id: str
    status: str
    visibility: str
    name: str = ""
    owner: str | None = None
    protected: bool = False
    os_hidden: bool = False
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
    """All properties that are not Glance's own fields, without those that describe the original of a copy."""
    copied: tuple[str, ...] = ()
    """Names of the properties by which openstack-prep describes the original of a copy."""

    @classmethod
    def read(cls, raw: Raw) -> ImageRecord:
        known = {each.name: raw[each.name] for each in fields(cls) if raw.get(each.name) is not None}
        known["tags"] = tuple(known.get("tags", ()))
        known["copied"] = tuple(name for name in raw if name.startswith(SPEC)) if _is_copy(raw) else ()
        unknown = (*FIELDS, *known["copied"])
        known["properties"] = {name: value for name, value in raw.items() if name not in unknown}
        return cls(**known)

    @property
    def spec(self) -> str:
        """The name of the spec that manages it, or an empty string: somebody who renames an image wants to keep it."""
        is_named = self.name in names_of(self.properties.get(NAME, ""))
        return self.properties.get(SPEC, "") if ID in self.properties and is_named else ""

    @property
    def has_early_tag(self) -> bool:
        """Whether it has an ownership tag without an id, of 1.0.0rc1 or earlier, or is a copy of such an image."""
        return SPEC in self.properties and ID not in self.properties


def _is_copy(raw: Raw) -> bool:
    """Whether the ownership tag of an image is that of another image."""
    if ID in raw:
        return bool(raw[ID] != raw["id"])
    return any(raw.get(name) for name in OF_SNAPSHOT)


@query
def named(run: CloudRun, names: tuple[str, ...]) -> list[ImageRecord]:
    """Return all images with these names, whoever owns them."""
    odd = [
        name for name in names if {'"', "\\"} & {*name}
    ]  # Glance accepts such names in a list request, and finds nothing
    listed = ",".join(f'"{name}"' for name in names if name not in odd)
    filters = [*([f"in:{listed}"] if listed else []), *(f"eq:{name}" for name in odd)]
    return [ImageRecord.read(raw) for each in filters for raw in list_images(run.admin, name=each)]


@query
def owned(run: CloudRun, project_id: str) -> list[ImageRecord]:
    """Return all images that a project owns."""
    listed = list_images(run.admin, owner=project_id)
    refuse_others("GET image/images", listed, "owner", project_id)
    return list(map(ImageRecord.read, listed))


def has_tagged(run: CloudRun, project: Resource | None) -> bool:
    """Whether a project owns images that the spec manages."""
    project_id = run.find_project_id(project)
    return any(image.spec == run.ownership.spec for image in (owned(run, project_id) if project_id else ()))


NEW, SUPERSEDED = "-new", "-superseded"
"""What the names of a new image and of its predecessor end with while a run replaces one by the other."""


def names_of(name: str) -> tuple[str, ...]:
    """Return all names that a run gives to an image with a name in a spec."""
    return name, f"{name}{NEW}", f"{name}{SUPERSEDED}"


def show(cloud: Cloud, image_id: str) -> ImageRecord:
    return ImageRecord.read(cloud.image.get(f"/images/{image_id}"))


def operation(path: str, value: object) -> dict[str, object]:
    """Return the change of one member; None removes it."""
    pointer = "/" + path.replace("~", "~0").replace("/", "~1")
    return {"op": "remove", "path": pointer} if value is None else {"op": "add", "path": pointer, "value": value}


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


# --- members and seals ---------------------------------------------------------------------


def answers(run: CloudRun, image: ImageRecord) -> dict[str, str]:
    """Return the answer of each member by project id: pending, accepted, or rejected."""
    if image.visibility != "shared":
        return {}
    members = run.admin.image.get(f"/images/{image.id}/members")["members"]
    return {member["member_id"]: member["status"] for member in members}


def share(run: CloudRun, image: ImageRecord, project_ids: Iterable[str]) -> None:
    """Make projects members and accept on their behalf; a rejection by a member is kept."""
    member_answers, path = answers(run, image), f"/images/{image.id}/members"
    for project_id in project_ids:
        if project_id not in member_answers:
            run.admin.image.post(path, {"member": project_id})
        if member_answers.get(project_id, "pending") == "pending":
            run.admin.image.put(f"{path}/{project_id}", {"status": "accepted"})


def carry_over(run: CloudRun, old: ImageRecord, new: ImageRecord, declared: Collection[str]) -> ImageRecord:
    """Give a new image what others have set at the old one: fields that are not declared, properties, tags, members.

    ``declared`` are the fields that the spec sets itself. Raises CloudError if the cloud refuses one of them; then the
    old image still stands.
    """
    values: Values = {name: getattr(old, name) for name in CARRIED if name not in declared}
    differing = {name: value for name, value in values.items() if value != getattr(new, name)}
    if missing := {*old.tags} - {*new.tags}:
        differing["tags"] = sorted({*new.tags, *missing})
    differing |= {name: value for name, value in _foreign(old).items() if name not in new.properties}
    if differing:
        new = patch(run, new, [operation(name, value) for name, value in differing.items()])
    if new.visibility == "shared":
        _carry_members(run, old, new)
    return new


def _foreign(image: ImageRecord) -> dict[str, str]:
    """Return the properties of an image that are neither openstack-prep's nor Glance's, nor describe its content."""
    bound = TAGGED.union(SIGNED, OF_CONTENT)
    named = image.properties.items()
    return {name: value for name, value in named if name not in bound and not name.startswith(OF_IMPORTS)}


def _carry_members(run: CloudRun, old: ImageRecord, new: ImageRecord) -> None:
    """Make members of the old image members of the new one, with the same answer."""
    path, standing = f"/images/{new.id}/members", answers(run, new)
    for project_id, answer in answers(run, old).items():
        if project_id not in standing:
            run.admin.image.post(path, {"member": project_id})
        if answer not in ("pending", standing.get(project_id)):
            run.admin.image.put(f"{path}/{project_id}", {"status": answer})


def is_sealed(image: ImageRecord) -> bool:
    """Whether the content of an image was verified."""
    return any(name in image.properties for name in SEALS.values())


def sums(image: ImageRecord) -> dict[str, str]:
    """Return the known checksums of an image's content, by algorithm: Glance's own, and that of the seal."""
    properties = image.properties
    known = {} if CONVERTED in image.properties else glances_sums(image)
    return known | {algorithm: properties[name] for algorithm, name in SEALS.items() if name in properties}


def glances_sums(image: ImageRecord) -> dict[str, str]:
    """Return Glance's checksums of the stored content, by algorithm."""
    computed = {"md5": image.checksum, image.os_hash_algo: image.os_hash_value}
    return {algorithm: value for algorithm, value in computed.items() if algorithm and value}
