"""The fields of an RHCOS image that replace a source and checksums."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from openstack_prep.base.fields import File, Name, Source
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.core.model import Coherent, Resource
from openstack_prep.download.rhcos import Arch, Release, ask_installer, find_release, mirrored, read_stream
from openstack_prep.download.source import shown


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
