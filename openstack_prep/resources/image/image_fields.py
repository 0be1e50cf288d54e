"""What a spec says of an image: fields, their contradictions, and what they need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from openstack_prep.base.fields import Bytes, Checksum, GiB, MiB, Name, Source, Text
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.raw import Values
from openstack_prep.cloud.site import Site
from openstack_prep.core.model import Adoptable, Coherent, Context, Key, Resource
from openstack_prep.download.compression import Compression
from openstack_prep.resources.identity.in_project import ByTenant, InProject
from openstack_prep.resources.identity.project import DEFAULT_DOMAIN, Project
from openstack_prep.resources.image import glance, image_members
from openstack_prep.resources.image.glance import ImageRecord
from openstack_prep.resources.image.image_seal import SPEC
from openstack_prep.resources.image.rhcos_source import Rhcos

EVERYBODYS = ("public", "community")
"""Visibilities that only an administrator gives, and that let every project see an image."""
FROM_RHCOS = ("source", "checksum", "compression", "compressed_checksum", "size", "cached_as")
HOW = frozenset({"source", "rhcos", "cached_as", "compression", "size", "import_method", "output_format"})
"""Fields that say how the content gets there."""

DiskFormat = Literal["aki", "ami", "ari", "iso", "ploop", "qcow2", "raw", "vdi", "vhd", "vhdx", "vmdk"]
ContainerFormat = Literal["aki", "ami", "ari", "bare", "compressed", "docker", "ova", "ovf"]
Visibility = Literal["private", "shared", "community", "public"]


@dataclass(frozen=True, kw_only=True)
class ImageFields(ByTenant, Adoptable[Site], Coherent):
    """What a spec says of an image."""

    kind: ClassVar[str] = "image"
    identity: ClassVar[frozenset[str]] = InProject.identity | HOW | {"shared_with_domain"}
    immutable: ClassVar[frozenset[str]] = frozenset({"disk_format", "container_format"})
    implied: ClassVar[frozenset[str]] = frozenset({"status"})

    name: Name
    """Name of the image, unique in its project."""
    source: Source | None = None
    """Where the content comes from: an http, https or file URL, or a path relative to the spec.

    As for curl, proxies stand in https_proxy, http_proxy and no_proxy, CAs in the file that
    REQUESTS_CA_BUNDLE or SSL_CERT_FILE names (the first holds for the cloud, too), and a login in the URL
    or in ~/.netrc.  A login does not follow a redirect to another host, and https does not become http.
    """
    rhcos: Rhcos | None = None
    """Where to find the source, its compression and its sums instead, for an image of RHCOS or SCOS."""
    checksum: Checksum | None = None
    """Sum of the content, such as sha256:HEX; also sha512 and md5.  If it is compressed, of what is in it."""
    compression: Compression | None = None
    """What the source is compressed with; recognised by its first bytes when unset.  none: to be left as it is."""
    compressed_checksum: Checksum | None = None
    """Sum of the source as it is, if it is compressed."""
    size: Bytes | None = None
    """Bytes of the content; not one more is uploaded.

    Without it, what is compressed may unpack to 64 GiB, or to 100 times its own size if that is more.
    """
    cached_as: Source | None = None
    """URL under which the installer's cache also gets the content; it takes a sha256.  rhcos has cache instead."""
    import_method: Literal["web-download"] | None = None
    """web-download: Glance fetches the source itself; of its sums sha512 and md5 can then be verified."""
    output_format: Literal["raw"] | None = None
    """raw: it is converted by qemu-img, for Glance on Ceph; TMPDIR then holds the content and what is made of it."""
    disk_format: DiskFormat | None = None
    """What the content is; recognised by its first bytes when unset."""
    container_format: ContainerFormat | None = None
    """What is around it; made as bare by default."""
    visibility: Visibility | None = None
    """Who sees it; made private by default.  Public is an administrator's right."""
    shared_with: tuple[Name, ...] | None = None
    """Names of projects that may use it, in whose name we accept; it is then shared.  Others stay."""
    shared_with_domain: Name = DEFAULT_DOMAIN
    """Name of the domain in which those projects lie."""
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

    def contradictions(self) -> Iterable[InvalidValue]:
        given = [name for name in FROM_RHCOS if getattr(self, name) is not None]
        if self.rhcos is not None and given:
            yield InvalidValue(f"has rhcos and {given[0]}, which rhcos tells", "leave one out")
        if taken := [name for name in self.properties or () if name in glance.FIELDS or name.startswith(SPEC)]:
            yield InvalidValue(f"has {taken[0]} among its properties, which is none", "leave it out there")
        if self.shared_with and self.visibility not in (None, "shared"):
            yield InvalidValue(f"has shared_with and visibility {self.visibility}", "only a shared image has members")
        if self.output_format and self.disk_format not in (None, self.output_format):
            yield InvalidValue(f"has disk_format {self.disk_format} and output_format", "leave disk_format out")
        if self.cached_as and not (self.checksum or "").startswith("sha256:"):
            yield InvalidValue("has cached_as and no sha256 as checksum, without which nothing may go into that cache")
        if self.cached_as and not self.cached_as.startswith(("http://", "https://")):
            yield InvalidValue(
                f"has cached_as {self.cached_as}, which is no http or https URL", "write that of the image"
            )
        if self.import_method and (self.output_format or self.cached_as or (self.rhcos and self.rhcos.cache)):
            yield InvalidValue(
                "has import_method beside output_format or a cache, which need the content here", "choose"
            )

    def resolve(self, context: Context) -> Sequence[Resource]:
        """Return it with its source and sums as stream metadata says; only an apply needs them."""
        if self.rhcos is None or not context.for_apply:
            return (self,)
        found = self.rhcos.read()
        resolved = replace(
            self,
            rhcos=None,
            source=self.rhcos.locate(found),
            checksum=f"sha256:{found.uncompressed_sha256}",
            compression=found.compression,
            compressed_checksum=f"sha256:{found.sha256}",
            size=found.uncompressed_size,
            cached_as=found.location if self.rhcos.cache else None,
            disk_format=self.disk_format or self.output_format or "qcow2",
        )
        return (resolved,)

    def references(self) -> Iterable[Resource]:
        return (*super().references(), *self.members())

    def members(self) -> Iterable[Project]:
        return tuple(Project(name=name, domain=self.shared_with_domain) for name in self.shared_with or ())

    def needs(self) -> Iterable[Key]:
        return () if self.visibility in EVERYBODYS else super().needs()

    def desired(self) -> Values:
        values = super().desired() | {"status": "active"}
        if self.tags is not None:
            values["tags"] = frozenset(self.tags)
        if self.output_format is not None:
            values["disk_format"] = self.output_format
        if self.shared_with is not None:
            values["shared_with"] = frozenset(self.shared_with)
        if self.shared_with:
            values["visibility"] = "shared"
        if self.checksum is not None:  # the same content, however it came here
            values.pop("compressed_checksum", None)
        return values

    @property
    def _new(self) -> str:
        return f"{self.name}-new"

    @property
    def _old(self) -> str:
        return f"{self.name}-old"

    def share(self, site: Site, image: ImageRecord) -> None:
        """Make the declared projects members of an image."""
        image_members.share(site, image, [site.id(each) for each in self.members()])
