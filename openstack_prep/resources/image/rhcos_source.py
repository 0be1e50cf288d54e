"""What a spec says of an image of RHCOS instead of a source and sums."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from openstack_prep.base.fields import File, Source
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.core.model import Coherent, Resource
from openstack_prep.download.fetching import shown
from openstack_prep.download.rhcos import Arch, Release, ask_installer, find_release, mirrored, read_stream


@dataclass(frozen=True, kw_only=True)
class Rhcos(Coherent):
    """The image of RHCOS, or of OKD's SCOS, that belongs to an installer."""

    __pydantic_config__: ClassVar[dict[str, object]] = Resource.__pydantic_config__

    stream: Source | None = None
    """CoreOS stream metadata, or the rhcos.json of 4.1 to 4.4: a URL, or a path relative to the spec."""
    installer: File | None = None
    """An openshift-install to ask for its stream metadata instead."""
    arch: Arch = "x86_64"
    """Architecture of the nodes."""
    mirror: Source | None = None
    """URL that stands for the host from which the image is downloaded; the path stays."""
    cache: bool = False
    """Whether an upload also leaves the image, unpacked, in the installer's cache, which then need not download it."""

    def contradictions(self) -> Iterable[InvalidValue]:
        if (self.stream is None) == (self.installer is None):
            yield InvalidValue("names not just one of stream and installer", "name one")
        if self.mirror is not None and "://" not in self.mirror:
            yield InvalidValue("has a mirror that is no URL", "write an http, https or file URL")

    def read(self) -> Release:
        """Return where the image is, and its sums; raises PrepError."""
        if self.installer is not None:
            return find_release(ask_installer(self.installer), self.arch, self.installer)
        assert self.stream is not None
        return find_release(read_stream(self.stream), self.arch, shown(self.stream))

    def locate(self, release: Release) -> str:
        return mirrored(release.location, self.mirror) if self.mirror else release.location
