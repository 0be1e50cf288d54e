"""Images: streamed from a file or URL into Glance, and never active with a wrong sum.

Source: Image API v2, "Images", "Image data", "Image properties"; os_hash_value since 2.7 (Rocky).

Glance's states are not ours to change, so an image of ours is trusted only when it carries our
seal: the sha256 of its content, written after it was verified.  What a killed run left behind
(queued, saving, or active without a seal) is deleted and made anew.  An image that is "saving" may
in truth belong to an upload that still runs; two runs of one spec at a time are not supported.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from openstack_prep import disk_format
from openstack_prep.cloud import Cloud
from openstack_prep.download import Digests, Verified, local_path
from openstack_prep.errors import Mistake, PrepError, ResourceFailed
from openstack_prep.fields import Checksum, GiB, MiB, Name, Source, Text
from openstack_prep.model import Change, Key, Observed
from openstack_prep.resources.project import ByTenant, InProject
from openstack_prep.site import Site, only_one

SPEC, NAME, SEAL = "openstack_prep", "openstack_prep_name", "openstack_prep_sha256"
"""Properties that hold our mark, the name within the spec, and the sum that was verified."""

EVERYBODYS = ("public", "community")
TIMEOUT = 600.0  # seconds for Glance to answer when it has everything: it may first copy it to its store
PATCH = {"Content-Type": "application/openstack-images-v2.1-json-patch"}

DiskFormat = Literal["aki", "ami", "ari", "iso", "ploop", "qcow2", "raw", "vdi", "vhd", "vhdx", "vmdk"]
ContainerFormat = Literal["aki", "ami", "ari", "bare", "compressed", "docker", "ova", "ovf"]
Visibility = Literal["private", "shared", "community", "public"]

Raw = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Image(ByTenant):
    """An image of the project; without a source it must be there already, and may be a public one.

    Without a checksum any content under that name will do.  With another one than before, the new
    content is uploaded beside the old (NAME-new) and takes its name when it is verified.
    """

    kind: ClassVar[str] = "image"
    identity: ClassVar[frozenset[str]] = InProject.identity | {"source"}
    immutable: ClassVar[frozenset[str]] = frozenset({"disk_format", "container_format"})

    name: Name
    """Name of the image, unique in its project."""
    source: Source | None = None
    """Where the content comes from: an http, https or file URL, or a path relative to the spec."""
    checksum: Checksum | None = None
    """Sum of the content, such as sha256:HEX; also sha512 and md5."""
    disk_format: DiskFormat | None = None
    """What the content is; recognised by its first bytes when unset."""
    container_format: ContainerFormat | None = None
    """What is around it; made as bare by default."""
    visibility: Visibility | None = None
    """Who sees it; made private by default.  Public is an administrator's right."""
    min_disk: GiB | None = None
    """Root disk that a server needs for it, GiB."""
    min_ram: MiB | None = None
    """Memory that a server needs for it, MiB."""
    protected: bool | None = None
    """Whether it is safe from deletion; destroy lifts that of an image of ours."""
    properties: Mapping[Name, Text] | None = None
    """Properties to have, such as hw_disk_bus; others stay."""
    tags: tuple[Name, ...] | None = None
    """Tags to have; others stay."""

    def needs(self) -> Iterable[Key]:
        return () if self.visibility in EVERYBODYS else super().needs()

    def desired(self) -> dict[str, Any]:
        values = super().desired() | {"status": "active"}
        if self.tags is not None:
            values["tags"] = frozenset(self.tags)
        return values

    # --- what is there ----------------------------------------------------------------------

    @classmethod
    def find(cls, site: Site, wanted: Sequence[Self]) -> Mapping[Key, Observed]:
        names = sorted(name for each in wanted for name in (each.name, each._new, each._old))
        listed = site.once(("images", *names), lambda: _named(site, names))
        found = {}
        for each in wanted:
            project_id = site.find_project_id(each.owner)
            observed = each._among(site, listed, project_id) if project_id else None
            if observed is not None:
                found[each.key] = observed
        return found

    @property
    def _new(self) -> str:
        return f"{self.name}-new"

    @property
    def _old(self) -> str:
        return f"{self.name}-old"

    def _among(self, site: Site, listed: Iterable[Raw], project_id: str) -> Observed | None:
        """Return the image that stands for this one, with all that runs of this spec made for it."""
        within = [raw for raw in listed if raw["owner"] == project_id]
        family = [raw for raw in within if raw.get(SPEC) == site.mark.spec and raw.get(NAME) == self.name]
        candidates = [raw for raw in within if raw["name"] == self.name and (SEAL in raw or raw not in family)]
        if not candidates and (self.source is None or self.visibility in EVERYBODYS):
            candidates = [raw for raw in listed if raw["name"] == self.name and raw["visibility"] in EVERYBODYS]
        standing = only_one(candidates, str(self.key))
        if standing is not None:
            return self._observed(standing, family)
        if family:
            values = self.desired() | {"status": "incomplete"}
            return Observed(id=family[0]["id"], ours=True, values=values, handle={"family": family})
        return None

    def _observed(self, raw: Raw, family: Sequence[Raw]) -> Observed:
        ours = raw in family
        return Observed(
            id=raw["id"],
            ours=ours,
            values={name: raw.get(name) for name in self.desired()}
            | {
                "status": "incomplete" if ours and len(family) > 1 else raw["status"],
                "checksum": self._sum(raw),
                "properties": {name: raw[name] for name in self.properties or () if name in raw},
                "tags": frozenset(raw["tags"]) & frozenset(self.tags or ()),
            },
            handle={"raw": raw, "family": family},
        )

    def _sum(self, raw: Raw) -> str | None:
        """Return an image's sum by the declared algorithm, as far as it is known."""
        algorithm = (self.checksum or "").partition(":")[0]
        known = {"md5": raw.get("checksum"), "sha256": raw.get(SEAL), raw.get("os_hash_algo"): raw.get("os_hash_value")}
        return f"{algorithm}:{known[algorithm]}" if known.get(algorithm) else None

    # --- what would go wrong ----------------------------------------------------------------

    def check(self, site: Site, observed: Observed | None) -> Iterable[Mistake]:
        status = observed.values["status"] if observed else "incomplete"
        other = observed is not None and self.checksum not in (None, observed.values.get("checksum"))
        if status not in ("active", "incomplete"):
            yield self.mistake(f"is there, but {status}", "wait until it is active, reactivate it, or delete it")
        elif other and observed and not observed.ours:
            content = observed.values["checksum"] or f"no {(self.checksum or '').partition(':')[0]} that is known"
            yield self.mistake(
                f"exists, was not made by this spec, and its content is another: it has {content}",
                "correct the checksum, or choose another name",
            )
        elif other or status == "incomplete":
            yield from self._check_source()

    def _check_source(self) -> Iterable[Mistake]:
        if self.source is None:
            yield self.mistake("does not exist, and cannot be made without a source", "give one, or correct the name")
        elif not self.source.startswith(("http://", "https://")) and not os.access(local_path(self.source), os.R_OK):
            yield self.mistake(f"source: {self.source} cannot be read", "correct the path, or get the file")

    # --- the verbs --------------------------------------------------------------------------

    def create(self, site: Site) -> Observed:
        raw = self._settle(site, [])
        return self._observed(raw, [raw])

    def update(self, site: Site, observed: Observed, changes: Sequence[Change]) -> Observed:
        family = observed.handle["family"]
        raw = self._settle(site, family) if observed.ours else observed.handle["raw"]
        before = self._observed(raw, [raw] if observed.ours else [])
        differing = {name: value for name, value in self.desired().items() if before.values[name] != value}
        operations = _operations(differing, raw)
        raw = _patch(site, raw, operations) if operations else raw
        return self._observed(raw, [raw] if observed.ours else [])

    def delete(self, site: Site, observed: Observed) -> None:
        for raw in observed.handle["family"] if observed.ours else [observed.handle["raw"]]:
            _delete(site, raw)

    def _settle(self, site: Site, family: Sequence[Raw]) -> Raw:
        """Leave exactly one image: verified, with the right content, under its own name.

        Whichever request is the last of a killed run, the next run comes through here again.
        """
        standing = [raw for raw in family if raw["name"] == self.name and SEAL in raw]
        good = min(filter(self._is_good, family), key=lambda raw: raw["name"] != self.name, default=None)
        if good is None:
            for raw in family:
                if raw not in standing:
                    _delete(site, raw)
            family = standing
            good = self._upload(site, self._new if standing else self.name)
        if good["name"] != self.name:
            for raw in standing:
                _patch(site, raw, [_operation("name", self._old)])
            good = _patch(site, good, [_operation("name", self.name)])
        for raw in family:
            if raw["id"] != good["id"]:
                _delete(site, raw)
        return good

    def _is_good(self, raw: Raw) -> bool:
        return raw["status"] == "active" and SEAL in raw and self.checksum in (None, self._sum(raw))

    def _upload(self, site: Site, name: str) -> Raw:
        assert self.source is not None
        maker, owner = self._maker(site)
        body = self._body(site) | owner | {"name": name}
        image_id = maker.image.post("/images", body)["id"]
        content = Verified(
            self.source,
            self.checksum,
            algorithms=("sha256", "sha512"),
            progress=lambda done, total: site.progress(self.key, done, total),
        )
        try:
            maker.image.request(
                "PUT",
                f"/images/{image_id}/file",
                data=content,
                headers={"Content-Type": "application/octet-stream"},
                timeout=TIMEOUT,
                once=True,
            )
            raw = maker.image.get(f"/images/{image_id}")
            self._compare(raw, content.digests)
        except PrepError as error:
            if not getattr(error, "retryable", False):  # who tries again looks first, and finds it
                maker.image.delete(f"/images/{image_id}")
            raise
        operations = [_operation(SEAL, content.digests.get("sha256"))]
        if self.protected is not None:
            operations.append(_operation("protected", self.protected))
        return _patch(site, raw, operations)

    def _maker(self, site: Site) -> tuple[Cloud, dict[str, str]]:
        """Return who uploads it, and what the body must then say of its owner."""
        tenant = None if self.visibility in EVERYBODYS else site.find_tenant(self.owner)
        if tenant is not None:
            return tenant, {}
        return site.admin, {"owner": site.id(self.owner)} if self.owner else {}

    def _body(self, site: Site) -> dict[str, Any]:
        assert self.source is not None
        sizes = {"min_disk": self.min_disk, "min_ram": self.min_ram}
        return {
            "disk_format": self.disk_format or disk_format.of_source(self.source),
            "container_format": self.container_format or "bare",
            "visibility": self.visibility or "private",
            "tags": list(self.tags or ()),
            **{field: value for field, value in sizes.items() if value is not None},
            **(self.properties or {}),
            SPEC: site.mark.spec,
            NAME: self.name,
        }

    def _compare(self, raw: Raw, sent: Digests) -> None:
        """Raise ResourceFailed unless Glance holds what was sent."""
        kept = sent.get(raw["os_hash_algo"]) if raw.get("os_hash_algo") else None
        if raw["size"] != sent.size or kept not in (None, raw["os_hash_value"]):
            raise ResourceFailed(
                f"image {raw['id']}: Glance holds {raw['size']} bytes with {raw.get('os_hash_algo')} "
                f"{raw.get('os_hash_value')}, not the {sent.size} bytes that were sent ({kept})"
            )


def _named(site: Site, names: Iterable[str]) -> list[dict[str, Any]]:
    quoted = ",".join('"{}"'.format(name.replace('"', r"\"")) for name in names)
    return site.admin.image.list("/images", "images", name=f"in:{quoted}", visibility="all", limit=1000)


def _operation(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": "/" + path.replace("~", "~0").replace("/", "~1"), "value": value}


def _operations(differing: Mapping[str, Any], raw: Raw) -> list[dict[str, Any]]:
    """Return the changes of metadata in the API's words."""
    values = dict(differing)
    if "tags" in values:
        values["tags"] = sorted({*raw["tags"], *values["tags"]})
    values |= values.pop("properties", {})
    return [_operation(path, value) for path, value in values.items()]


def _patch(site: Site, raw: Raw, operations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return site.admin.image.patch(f"/images/{raw['id']}", operations, headers=PATCH)


def _delete(site: Site, raw: Raw) -> None:
    if raw["protected"]:
        _patch(site, raw, [_operation("protected", False)])
    site.admin.image.delete(f"/images/{raw['id']}")
