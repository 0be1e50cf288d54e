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
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

from openstack_prep import disk_format, rhcos
from openstack_prep.cloud import Cloud
from openstack_prep.compression import Compression
from openstack_prep.download import local_path
from openstack_prep.errors import Mistake, PrepError
from openstack_prep.fields import Bytes, Checksum, GiB, MiB, Name, Source, Text
from openstack_prep.model import Change, Key, Observed
from openstack_prep.resources import glance
from openstack_prep.resources.glance import Raw
from openstack_prep.resources.project import ByTenant, InProject
from openstack_prep.resources.rhcos_source import Rhcos
from openstack_prep.site import Site, only_one
from openstack_prep.verified import Verified

SPEC, NAME, SEAL = "openstack_prep", "openstack_prep_name", "openstack_prep_sha256"
"""Properties that hold our mark, the name within the spec, and the sum that was verified."""
PACKED = "openstack_prep_compressed_checksum"
"""Property that holds the sum of the compressed file it was made from, if that was verified."""

EVERYBODYS = ("public", "community")
FROM_RHCOS = ("source", "checksum", "compression", "compressed_checksum", "size")
TIMEOUT = 600.0  # seconds for Glance to answer when it has everything: it may first copy it to its store

DiskFormat = Literal["aki", "ami", "ari", "iso", "ploop", "qcow2", "raw", "vdi", "vhd", "vhdx", "vmdk"]
ContainerFormat = Literal["aki", "ami", "ari", "bare", "compressed", "docker", "ova", "ovf"]
Visibility = Literal["private", "shared", "community", "public"]


@dataclass(frozen=True, kw_only=True)
class Image(ByTenant):
    """An image of the project; without a source it must be there already, and may be a public one.

    Without a checksum any content under that name will do.  With another one than before, the new
    content is uploaded beside the old (NAME-new) and takes its name when it is verified.  What is
    compressed is unpacked on the way, in one pass and without a temporary file.  What an OpenShift
    installer has in its cache, with the right sha256, is taken from there.
    """

    kind: ClassVar[str] = "image"
    identity: ClassVar[frozenset[str]] = InProject.identity | {"source", "rhcos", "compression", "size"}
    immutable: ClassVar[frozenset[str]] = frozenset({"disk_format", "container_format"})

    name: Name
    """Name of the image, unique in its project."""
    source: Source | None = None
    """Where the content comes from: an http, https or file URL, or a path relative to the spec."""
    rhcos: Rhcos | None = None
    """Where to find the source, its compression and its sums instead, for an image of RHCOS or SCOS."""
    checksum: Checksum | None = None
    """Sum of the content, such as sha256:HEX; also sha512 and md5.  If it is compressed, of what is in it."""
    compression: Compression | None = None
    """What the source is compressed with; recognised by its first bytes when unset.  none: to be left as it is."""
    compressed_checksum: Checksum | None = None
    """Sum of the source as it is, if it is compressed."""
    size: Bytes | None = None
    """Bytes of the content; not one more is uploaded."""
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

    def __post_init__(self) -> None:
        given = [name for name in FROM_RHCOS if getattr(self, name) is not None]
        if self.rhcos is not None and given:
            raise ValueError(f"has rhcos and {given[0]}, which rhcos tells; leave one out")

    def informed(self) -> Self:
        if self.rhcos is None:
            return self
        found = self.rhcos.read()
        return replace(
            self,
            rhcos=None,
            source=self.rhcos.locate(found),
            checksum=f"sha256:{found.uncompressed_sha256}",
            compression=found.compression,
            compressed_checksum=f"sha256:{found.sha256}",
            size=found.uncompressed_size,
            disk_format=self.disk_format or "qcow2",
        )

    def needs(self) -> Iterable[Key]:
        return () if self.visibility in EVERYBODYS else super().needs()

    def desired(self) -> dict[str, Any]:
        values = super().desired() | {"status": "active"}
        if self.tags is not None:
            values["tags"] = frozenset(self.tags)
        if self.checksum is not None:  # the same content, however it came here
            values.pop("compressed_checksum", None)
        return values

    # --- what is there ----------------------------------------------------------------------

    @classmethod
    def find(cls, site: Site, wanted: Sequence[Self]) -> Mapping[Key, Observed]:
        names = sorted(name for each in wanted for name in (each.name, each._new, each._old))
        listed = site.once(("images", *names), lambda: glance.named(site, names))
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
        if not candidates and ((self.source is None and self.rhcos is None) or self.visibility in EVERYBODYS):
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
                "compressed_checksum": raw.get(PACKED),
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
        if self.rhcos is not None:
            return  # it could not be read, which has been said
        status = observed.values["status"] if observed else "incomplete"
        sums = {name: value for name, value in self.desired().items() if name in ("checksum", "compressed_checksum")}
        other = observed is not None and any(observed.values.get(name) != value for name, value in sums.items())
        if status not in ("active", "incomplete"):
            yield self.mistake(f"is there, but {status}", "wait until it is active, reactivate it, or delete it")
        elif other and observed and not observed.ours:
            ((name, value),) = sums.items()
            content = observed.values[name] or f"no {value.partition(':')[0]} that is known"
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
        operations = glance.operations(differing, raw)
        raw = glance.patch(site, raw, operations) if operations else raw
        return self._observed(raw, [raw] if observed.ours else [])

    def delete(self, site: Site, observed: Observed) -> None:
        for raw in observed.handle["family"] if observed.ours else [observed.handle["raw"]]:
            glance.delete(site, raw)

    def _settle(self, site: Site, family: Sequence[Raw]) -> Raw:
        """Leave exactly one image: verified, with the right content, under its own name.

        Whichever request is the last of a killed run, the next run comes through here again.
        """
        standing = [raw for raw in family if raw["name"] == self.name and SEAL in raw]
        good = min(filter(self._is_good, family), key=lambda raw: raw["name"] != self.name, default=None)
        if good is None:
            for raw in family:
                if raw not in standing:
                    glance.delete(site, raw)
            family = standing
            good = self._upload(site, self._new if standing else self.name)
        if good["name"] != self.name:
            for raw in standing:
                glance.patch(site, raw, [glance.operation("name", self._old)])
            good = glance.patch(site, good, [glance.operation("name", self.name)])
        for raw in family:
            if raw["id"] != good["id"]:
                glance.delete(site, raw)
        return good

    def _is_good(self, raw: Raw) -> bool:
        if self.checksum is None and self.compressed_checksum not in (None, raw.get(PACKED)):
            return False
        return raw["status"] == "active" and SEAL in raw and self.checksum in (None, self._sum(raw))

    def _upload(self, site: Site, name: str) -> Raw:
        content = self._content(site)
        maker, owner = self._maker(site)
        body = self._body(site, content) | owner | {"name": name}
        image_id = maker.image.post("/images", body)["id"]
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
            glance.compare(raw, content.digests)
        except PrepError as error:
            if not getattr(error, "retryable", False):  # who tries again looks first, and finds it
                maker.image.delete(f"/images/{image_id}")
            raise
        sealed = {SEAL: content.digests.get("sha256"), PACKED: content.compressed_checksum, "protected": self.protected}
        changes = [glance.operation(path, value) for path, value in sealed.items() if value is not None]
        return glance.patch(site, raw, changes)

    def _content(self, site: Site) -> Verified:
        """Return what to upload: from the installer's cache, or else from the source."""
        assert self.source is not None
        algorithm, _, digits = (self.checksum or "").partition(":")
        distant = self.source.startswith(("http://", "https://"))
        near = rhcos.cached(self.source, digits) if distant and algorithm == "sha256" else None
        as_it_is = near is not None or (self.container_format == "compressed" and self.compression is None)
        return Verified(
            near or self.source,
            self.checksum,
            compression="none" if as_it_is else self.compression,
            compressed_checksum=None if near else self.compressed_checksum,
            size=self.size,
            algorithms=("sha256", "sha512"),
            progress=lambda done, total, unpacked: site.progress(self.key, done, total, unpacked),
        )

    def _maker(self, site: Site) -> tuple[Cloud, dict[str, str]]:
        """Return who uploads it, and what the body must then say of its owner."""
        tenant = None if self.visibility in EVERYBODYS else site.find_tenant(self.owner)
        if tenant is not None:
            return tenant, {}
        return site.admin, {"owner": site.id(self.owner)} if self.owner else {}

    def _body(self, site: Site, content: Verified) -> dict[str, Any]:
        sizes = {"min_disk": self.min_disk, "min_ram": self.min_ram}
        return {
            "disk_format": self.disk_format or disk_format.of_source(content.source, content.compression),
            "container_format": self.container_format or "bare",
            "visibility": self.visibility or "private",
            "tags": list(self.tags or ()),
            **{field: value for field, value in sizes.items() if value is not None},
            **(self.properties or {}),
            SPEC: site.mark.spec,
            NAME: self.name,
        }
