"""RHCOS and OKD's SCOS for OpenStack: the location of a release's image, and its checksums.

Source: OpenShift installer docs/source, "RHCOS image": the file of the 4.1 to 4.4 era (other
architectures had it longer), and CoreOS stream metadata since.  Since 4.22 there is one file per stream of the
operating system: data/data/coreos/coreos-rhel-9.json and -10.json; ``coreos print-stream-json --stream``
(pkg/coreoscli/cmd.go) prints one, rhel-9 by default and rhel-10 from 5.0 on (pkg/rhcos/stream.go); the ConfigMap
coreos-bootimages has all in ``streams`` and the default in ``stream`` (hack/build-coreos-manifest.go, 006d457393).
OKD has centos-10 (#10730).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

import yaml

from openstack_prep.base.errors import DownloadError
from openstack_prep.base.fields import is_url
from openstack_prep.base.formats.foreign_text import parse_json, parse_yaml
from openstack_prep.base.raw import Raw
from openstack_prep.download.address import shown
from openstack_prep.download.compression import Compression
from openstack_prep.download.installer_program import asked
from openstack_prep.download.source import read_small

Arch = Literal["x86_64", "aarch64", "ppc64le", "s390x"]

LARGEST = 16 * 2**20  # bytes of metadata; today's files have 30 KiB

BOOTIMAGES = b"coreos-bootimages"  # the ConfigMap with the metadata of all streams

_FORMATS: dict[str, Compression] = {"qcow2.gz": "gz", "qcow2.xz": "xz", "qcow2.zst": "zst", "qcow2": "none"}
_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Release:
    """One release's qcow2 image for OpenStack."""

    release: str
    """The build, such as 410.84.202201251203-0."""
    arch: str
    """Architecture, in terms of the kernel."""
    location: str
    """URL of the file."""
    sha256: str
    """Checksum of the file."""
    uncompressed_sha256: str
    """Checksum of the decompressed image."""
    size: int | None = None
    """Size of the file in bytes; only in old metadata."""
    uncompressed_size: int | None = None
    """Size of the image in bytes; only in old metadata."""
    compression: Compression | None = None
    """Compression of the file; None if only its first bytes show it."""

    @property
    def stream(self) -> str | None:
        """Stream of the operating system, such as rhel-9, by the number of the build; None if that does not tell."""
        found = re.match(r"(?:4\d{1,2}\.(?=[89])(\d)\d?|(9|10)\.\d+)\.\d", self.release)
        system = "centos" if "/scos-" in self.location else "rhel"
        return f"{system}-{found[1] or found[2]}" if found else None


# --- metadata -----------------------------------------------------------------------------


def read_stream(where: str) -> object:
    """Return the metadata in a file or at a URL; raises DownloadError."""
    return _parsed(read_small(where, LARGEST), shown(where))


def ask_installer(path: str, stream: str | None = None) -> object:
    """Return the metadata that an ``openshift-install`` contains, of its default stream or another; raises PrepError.

    Before 4.22 installers have one stream, and refuse to be asked for another.
    """
    words = ("coreos", "print-stream-json", *(("--stream", stream) if stream else ()))
    return _parsed(asked(Path(path), *words), " ".join([path, *words]))


def _parsed(text: bytes, origin: str) -> object:
    try:
        if BOOTIMAGES in text and not text.lstrip().startswith(b"{"):
            return parse_yaml(text.decode())
        return parse_json(text)
    except (ValueError, yaml.YAMLError) as error:
        raise DownloadError(f"{origin} is not JSON: {error}") from error


def find_release(metadata: object, arch: str, origin: str, stream: str | None = None) -> Release:
    """Return the image of an architecture; raises DownloadError that names ``origin`` and what is missing.

    ``stream``: such as rhel-10; default: the one stream of the metadata, or the default of several.
    """
    chosen, origin = _choose(metadata, stream, origin)
    found = _of_one_stream(chosen, arch, origin)
    if stream and found.stream not in (None, stream):
        raise DownloadError(f"{origin}: its build {found.release} is {found.stream}, not {stream}")
    return found


def _choose(metadata: object, stream: str | None, origin: str) -> tuple[object, str]:
    """Return the metadata of one stream, from the ConfigMap coreos-bootimages or its ``streams``, and their origin."""
    data = metadata.get("data") if isinstance(metadata, Mapping) else None
    if isinstance(data, Mapping):
        name = "streams" if stream and "streams" in data else "stream"
        metadata, origin = _parsed(str(_at(data, origin, name)).encode(), f"{origin}: {name}"), f"{origin}: {name}"
    if isinstance(metadata, Mapping) and not {"architectures", "baseURI"} & metadata.keys():
        members = [each for each in metadata.values() if isinstance(each, Mapping) and "architectures" in each]
        if members and stream is None:
            raise DownloadError(f"{origin}: contains the streams {_keys(metadata)}; choose one with os_image_stream")
        if members:
            return _at(metadata, origin, str(stream)), origin
    return metadata, origin


def _of_one_stream(metadata: object, arch: str, origin: str) -> Release:
    if isinstance(metadata, Mapping) and "baseURI" in metadata:
        return _of_old_era(metadata, arch, origin)
    artifact = _at(metadata, origin, "architectures", arch, "artifacts", "openstack")
    formats = _at(artifact, origin, "formats")
    known = next((name for name in _FORMATS if isinstance(formats, Mapping) and name in formats), None)
    if known is None:
        available = _keys(formats)
        raise DownloadError(f"{origin}: its OpenStack image for {arch} exists as {available}, but not as qcow2")
    disk = _at(formats, origin, known, "disk")
    sha256, uncompressed_sha256 = _sums(disk, _FORMATS[known], origin)
    return Release(
        release=str(_at(artifact, origin, "release")),
        arch=arch,
        location=_url(_at(disk, origin, "location"), origin),
        sha256=sha256,
        uncompressed_sha256=uncompressed_sha256,
        compression=_FORMATS[known],
    )


def _of_old_era(metadata: Raw, arch: str, origin: str) -> Release:
    """Return the image of a file for one architecture, which is at the end of its baseURI."""
    base = _url(metadata["baseURI"], origin).rstrip("/")
    last = base.rpartition("/")[2]
    only = last if last in get_args(Arch) else "x86_64"
    if arch != only:
        raise DownloadError(f"{origin}: only supports {only}, not {arch}")
    image = _at(metadata, origin, "images", "openstack")
    path = str(_at(image, origin, "path"))
    # files named .qcow2 were gz for a while, which the servers then undid
    compression = next((kind for kind in ("gz", "xz") if path.endswith(f".{kind}")), None)
    sha256, uncompressed_sha256 = _sums(image, compression, origin)
    return Release(
        release=str(_at(metadata, origin, "buildid")),
        arch=arch,
        location=f"{base}/{path}",
        sha256=sha256,
        uncompressed_sha256=uncompressed_sha256,
        size=_number(image.get("size"), origin),
        uncompressed_size=_number(image.get("uncompressed-size"), origin),
        compression=compression,  # type: ignore[arg-type] # one of its values
    )


def _sums(entry: Raw, compression: str | None, origin: str) -> tuple[str, str]:
    """Return the checksums of the file and of its content; an uncompressed file may have one for both."""
    packed = _at(entry, origin, "sha256")
    if compression in (None, "none"):
        plain = entry.get("uncompressed-sha256", packed)
    else:
        plain = _at(entry, origin, "uncompressed-sha256")
    for value in (packed, plain):
        if not isinstance(value, str) or not _SHA256.fullmatch(value):
            raise DownloadError(f"{origin}: {value!r} is not a sha256")
    return packed, plain


def _number(value: object, origin: str) -> int | None:
    if value is not None and (type(value) is not int or value < 1):
        raise DownloadError(f"{origin}: {value!r} is not a size")
    return value


def _url(value: object, origin: str) -> str:
    if not isinstance(value, str) or not is_url(value):
        raise DownloadError(f"{origin}: {value!r} is not an http, https or file URL")
    return value


def _at(data: Any, origin: str, *path: str) -> Any:
    """Return the value at a path; the error names the missing part, and what exists instead."""
    for depth, step in enumerate(path, 1):
        if not isinstance(data, Mapping) or step not in data:
            raise DownloadError(f"{origin}: {'.'.join(path[:depth])} is missing; found {_keys(data)} instead")
        data = data[step]
    return data


def _keys(data: object) -> str:
    return (", ".join(sorted(map(str, data))) if isinstance(data, Mapping) else "") or "nothing"


def mirrored(location: str, mirror: str) -> str:
    """Return the URL with the same path below a mirror."""
    parts = urlsplit(location)
    return mirror.rstrip("/") + parts.path + (f"?{parts.query}" if parts.query else "")
