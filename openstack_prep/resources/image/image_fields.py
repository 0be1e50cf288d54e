"""The fields of an image, their contradictions and requirements; RHCOS in place of a source and checksums."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal
from urllib.parse import urlsplit

from openstack_prep.base.errors import SpecError
from openstack_prep.base.fields import Bytes, Checksum, File, GiB, MiB, Name, Source, Text
from openstack_prep.base.invalid import InvalidValue, rare_character
from openstack_prep.base.raw import Values
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Adoptable, Coherent, Context, Key, Resource
from openstack_prep.download.address import file_of, shown
from openstack_prep.download.compression import Compression
from openstack_prep.download.rhcos import Arch, Release, ask_installer, find_release, mirrored, read_stream
from openstack_prep.resources.identity.in_project import ByProjectUser, InProject, InstallerInput
from openstack_prep.resources.identity.project import DEFAULT_DOMAIN, Project
from openstack_prep.resources.image import glance
from openstack_prep.resources.image.glance import ImageRecord

# --- RHCOS -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Rhcos(Coherent):
    """The image of RHCOS, or of OKD's SCOS, that belongs to an installer."""

    __pydantic_config__: ClassVar[dict[str, object]] = Resource.__pydantic_config__

    stream: Source | None = field(default=None, repr=False)  # the URL may contain a login
    """CoreOS stream metadata, the ConfigMap coreos-bootimages of a release, or the rhcos.json of 4.1 to 4.4: a URL, or
    a path relative to the spec.
    """
    installer: File | None = None
    """An openshift-install program whose stream metadata is used instead."""
    os_image_stream: Name | None = None
    """Stream of the operating system, such as rhel-9 or rhel-10 (4.22 and later), or centos-10 of OKD; default: that of
    the install_config of the spec that names the image, otherwise the default of the release.
    """
    arch: Arch = "x86_64"
    """Architecture of the nodes."""
    mirror: Source | None = field(default=None, repr=False)
    """URL that replaces the host of the image's URL; the path is kept."""
    cache: bool = False
    """Whether to also store the decompressed image in the installer's cache, so that the installer need not download
    it.
    """

    def contradictions(self) -> Iterable[InvalidValue]:
        if (self.stream is None) == (self.installer is None):
            yield InvalidValue("needs exactly one of stream and installer", "set one")
        if self.mirror is not None and "://" not in self.mirror:
            yield InvalidValue("mirror is not a URL", "use an http, https or file URL")

    def read(self, stream: str | None = None) -> Release:
        """Return where the image is, and its checksums; ``stream`` is the default stream.  Raises PrepError."""
        wanted = self.os_image_stream or stream
        if self.installer is not None:
            return find_release(ask_installer(self.installer, wanted), self.arch, self.installer, wanted)
        assert self.stream is not None
        return find_release(read_stream(self.stream), self.arch, shown(self.stream), wanted)

    def locate(self, release: Release) -> str:
        """Return the address of the image of a release, at the mirror if there is one."""
        return mirrored(release.location, self.mirror) if self.mirror else release.location


# --- image -----------------------------------------------------------------------------------


EVERYBODYS = ("public", "community")
"""Visibilities that only an administrator may set, and that let every project see an image."""
FROM_RHCOS = ("source", "checksum", "compression", "compressed_checksum", "size", "cached_as")
HOW = frozenset({"source", "rhcos", "cached_as", "compression", "size", "import_method", "output_format"})
"""Fields that determine how the content is uploaded."""

_STREAM = re.compile(r"(?:rhel|centos)-\d+")

DiskFormat = Literal["aki", "ami", "ari", "iso", "ploop", "qcow2", "raw", "vdi", "vhd", "vhdx", "vmdk"]
ContainerFormat = Literal["aki", "ami", "ari", "bare", "compressed", "docker", "ova", "ovf"]
Visibility = Literal["private", "shared", "community", "public"]


UPLOAD = "use a URL without it, or remove import_method: then the image is uploaded, and Glance does not learn its URL"


def shown_by_glance(source: str) -> str:
    """Return why the URL of a web-download must not be known to readers; empty if it may.

    ``GET /v2/images/ID/tasks`` shows it to whoever sees the image (Glance 33.0.0, api/v2/images.py, get_task_info).
    """
    parts = urlsplit(source)
    if "@" in parts.netloc:
        return "contains a user name, which Glance ignores, and shows to readers of the image"
    return (
        "has a query, which may be a signature, and which Glance shows to readers of the image" if parts.query else ""
    )


@dataclass(frozen=True, kw_only=True)
class ImageFields(ByProjectUser, Adoptable[CloudRun], Coherent):
    """The fields of an image."""

    kind: ClassVar[str] = "image"
    identity: ClassVar[frozenset[str]] = InProject.identity | HOW | {"shared_with_domain"}
    immutable: ClassVar[frozenset[str]] = frozenset({"disk_format", "container_format"})
    implied: ClassVar[frozenset[str]] = frozenset({"status"})

    name: Name
    """Name of the image, unique in its project."""
    source: Source | None = field(default=None, repr=False)  # the URL may contain a login
    """Source of the content: an http, https or file URL, or a path relative to the spec.

    As for curl, https_proxy, http_proxy and no_proxy set proxies, and REQUESTS_CA_BUNDLE or SSL_CERT_FILE names the
    file of CAs (REQUESTS_CA_BUNDLE applies to the cloud, too). The URL or ~/.netrc may contain a login. A login does
    not follow a redirect to another host or port, and https does not become http.
    """
    rhcos: Rhcos | None = None
    """Take the source, its compression and its checksums from RHCOS or SCOS metadata instead."""
    checksum: Checksum | None = None
    """Checksum of the content, such as sha256:HEX; also sha512 and md5. For a compressed source: of the decompressed
    content.
    """
    compression: Compression | None = None
    """Compression of the source; detected from its first bytes if unset. none: upload the source as it is."""
    compressed_checksum: Checksum | None = None
    """Checksum of the source itself, if it is compressed."""
    size: Bytes | None = None
    """Size of the content in bytes; no more bytes are uploaded.

    Without it, a compressed source may decompress to 64 GiB, or to 100 times its own size if that is more.
    """
    cached_as: Source | None = field(default=None, repr=False)
    """URL under which the content is also stored in the installer's cache; needs a sha256. For rhcos, set cache
    instead.
    """
    import_method: Literal["web-download"] | None = None
    """web-download: Glance fetches the source itself; then only sha512 and md5 checksums can be verified."""
    output_format: Literal["raw"] | None = None
    """raw: convert with qemu-img, for Glance on Ceph; TMPDIR then holds the content and the result of the conversion.
    """
    disk_format: DiskFormat | None = None
    """Format of the content; detected from its first bytes if unset."""
    container_format: ContainerFormat | None = None
    """Container format of the content; created as bare by default."""
    visibility: Visibility | None = None
    """Visibility; created as private by default. Only administrators may set public."""
    shared_with: tuple[Name, ...] | None = None
    """Names of projects to share it with; apply accepts on their behalf. Other members are left alone."""
    shared_with_domain: Name = DEFAULT_DOMAIN
    """Name of the domain of these projects."""
    min_disk: GiB | None = None
    """Root disk that a server needs for it, GiB."""
    min_ram: MiB | None = None
    """Memory that a server needs for it, MiB."""
    protected: bool | None = None
    """Whether it is protected from deletion; destroy removes the protection that the spec declares, and no other.

    A plan with --prune removes none: what it deletes is no longer declared.
    """
    properties: Mapping[Name, Text] | None = None
    """Properties to set, such as hw_disk_bus; other properties are left alone."""
    tags: tuple[Name, ...] | None = None
    """Tags to have; other tags are left alone."""

    def contradictions(self) -> Iterable[InvalidValue]:
        given = [name for name in FROM_RHCOS if getattr(self, name) is not None]
        if self.rhcos is not None and given:
            yield InvalidValue(f"sets both rhcos and {given[0]}, which rhcos implies", "remove one of them")
        if taken := [name for name in self.properties or () if glance.is_reserved(name)]:
            yield InvalidValue(f"{taken[0]} is a reserved name, not one of a property", "remove it from properties")
        texts = (self.name, *(text for each in (self.properties or {}).items() for text in each), *(self.tags or ()))
        if rare := rare_character(texts):
            yield InvalidValue(f"{rare} is not taken by Glance in names, properties and tags", "remove it")
        if self.shared_with and self.visibility not in (None, "shared"):
            yield InvalidValue(f"shared_with does not apply to visibility {self.visibility}", "set visibility: shared")
        if self.output_format and self.disk_format not in (None, self.output_format):
            yield InvalidValue(f"sets both disk_format {self.disk_format} and output_format", "remove disk_format")
        if self.cached_as and not (self.checksum or "").startswith("sha256:"):
            yield InvalidValue(
                "cached_as needs a sha256 checksum, for the cache only takes verified images", "add checksum"
            )
        if self.cached_as and not self.cached_as.startswith(("http://", "https://")):
            yield InvalidValue(f"cached_as {self.cached_as} is not an http or https URL", "set the URL of the image")
        if self.import_method and (self.output_format or self.cached_as or (self.rhcos and self.rhcos.cache)):
            yield InvalidValue(
                "import_method cannot be combined with output_format or a cache, which need a local copy", "remove one"
            )
        if self.import_method and self.source and (what := shown_by_glance(self.source)):
            yield InvalidValue(f"source: {what}", UPLOAD)

    def resolve(self, context: Context) -> Sequence[Resource]:
        """Return the image with source and checksums from the stream metadata; only an apply needs them."""
        if self.rhcos is None or not context.for_apply:
            return (self,)
        found = self.rhcos.read(self._stream_of_machines(context))
        named = _STREAM.search(self.name)
        if named and found.stream not in (None, named[0]):
            what = f"its name says {named[0]}, but {found.release} is {found.stream}"
            raise SpecError([self.mistake(what, f"set rhcos.os_image_stream: {named[0]}, or rename the image")])
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

    def _stream_of_machines(self, context: Context) -> str | None:
        """Return the stream of the install_configs that name this image; raises SpecError if they differ."""
        pairs = (each.boots for each in context.declared(InstallerInput))
        streams = sorted({pair[1] for pair in pairs if pair and pair[0] == self.name})
        if len(streams) > 1:
            what = f"install_configs of several streams name it: {', '.join(streams)}"
            raise SpecError([self.mistake(what, "declare an image per stream")])
        return streams[0] if streams else None

    def references(self) -> Iterable[Resource]:
        return (*super().references(), *self.members())

    def outlives(self) -> Iterable[Key]:
        return (*super().outlives(), *self.guests(self.members()))

    def members(self) -> Iterable[Project]:
        return tuple(Project(name=name, domain=self.shared_with_domain) for name in self.shared_with or ())

    def needs(self) -> Iterable[Key]:
        return () if self.visibility in EVERYBODYS else super().needs()

    def uploaded_file(self) -> str | None:
        """Return the path of the source if it is on this machine."""
        return file_of(self.source or "")

    @property
    def is_verified(self) -> bool:
        """Whether the content must have a declared checksum."""
        return bool(self.checksum or self.compressed_checksum)

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
        if self.checksum is not None:  # the same content, whatever its source was
            values.pop("compressed_checksum", None)
        return values

    @property
    def _new(self) -> str:
        return f"{self.name}{glance.NEW}"

    @property
    def _old(self) -> str:
        return f"{self.name}{glance.SUPERSEDED}"

    def share(self, run: CloudRun, image: ImageRecord) -> None:
        """Make the declared projects members of an image."""
        glance.share(run, image, [run.id(member) for member in self.members()])
