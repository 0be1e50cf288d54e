"""URLs and names of the archives of the tools.  Pure.

Source: https://mirror.openshift.com/pub/openshift-v4, ARCH/clients/ocp/RELEASE, and openshift-v5 for 5.0 and later
(redhat-performance/benchmark-runner #1282 for 5.0.0-rc.2); engineering candidates (-ec) are in ocp-dev-preview; the
releases of OKD on GitHub; the names that ``oc adm release extract --tools`` gives archives.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from openstack_prep.base.errors import DownloadError, Mistake, SpecError
from openstack_prep.base.fields import is_url
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.download.address import shown

# --- layout -----------------------------------------------------------------------------------


Arch = Literal["x86_64", "aarch64", "ppc64le", "s390x"]
System = Literal["linux", "mac"]
Name = Literal["openshift-install", "oc", "kubectl"]

NAMES: tuple[Name, ...] = get_args(Name)
ARCHIVES: Mapping[str, tuple[Name, ...]] = {
    "openshift-install": ("openshift-install",),
    "openshift-client": ("oc", "kubectl"),
}
"""The tools of an archive, by the beginning of its name."""

MIRRORS = "https://mirror.openshift.com/pub/openshift-v"  # and the major number
MIRROR = f"{MIRRORS}4"
OKD = "https://github.com/okd-project/okd/releases/download"

_VERSION = r"[4-9]\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?"
_CHANNEL = r"(?:latest|stable|fast|candidate)(?:-[4-9]\.\d+)?"
_GO = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, kw_only=True)
class Archive:
    """One archive of sha256sum.txt."""

    name: str
    """Name with the version."""
    version: str
    """Such as 4.18.7."""
    sha256: str
    """Checksum of the file."""
    aliases: tuple[str, ...] = ()
    """Further names of the same file."""


def is_version(release: str) -> bool:
    return re.fullmatch(_VERSION, release) is not None


def folder_of(release: str, mirror: str | None, arch: str) -> str:
    """Return the URL or folder with the sha256sum.txt of a release; raises InvalidValue.

    ``release`` is a version, a channel, or that URL or folder itself.
    """
    if "/" in release or release in (".", ".."):
        return release.rstrip("/") or "/"
    if not re.fullmatch(f"{_VERSION}|{_CHANNEL}", release):
        number = re.fullmatch(r"v?([4-9]\.\d+)", release)
        example = f"stable-{number[1]} or latest-{number[1]}" if number else "4.18.7, stable-4.18, latest"
        fix = f"write {example}, or the URL or folder of a sha256sum.txt, with a slash in it"
        raise InvalidValue("is neither a version nor a channel", fix)
    if mirror is None and "okd" in release:
        return f"{OKD}/{release}"
    clients = "ocp-dev-preview" if "-ec." in release else "ocp"
    return f"{(mirror or MIRRORS + _major(release)).rstrip('/')}/{arch}/clients/{clients}/{release}"


def _major(release: str) -> str:
    """Return "5" for "5.0.1" and "stable-5.0"; "4" for channels without a number, which belong to 4."""
    found = re.search(r"(?:^|-)(\d)\.", release)
    return found[1] if found else "4"


def platforms(system: str, host: str, arch: str) -> tuple[str, ...]:
    """Return the platforms in the names of archives that run on a machine, best first.

    ``arch`` is the architecture of the nodes; archives for the same architecture are named "linux".
    """
    if system == "mac":
        return ("mac-arm64",) if host == "aarch64" else ("mac",)
    exact = f"linux-{_GO.get(host, host)}"
    return ("linux", exact) if host == arch else (exact,)


def archive_names(stem: str, platform: Sequence[str], version: str) -> set[str]:
    """Return the possible names of the archive of a version."""
    return {f"{stem}-{each}-{version}.tar.gz" for each in platform}


def find_archive(sums: Mapping[str, str], stem: str, platform: Sequence[str], where: str) -> Archive:
    """Return the archive for a platform in sha256sum.txt; raises DownloadError unless there is exactly one."""
    for each in platform:
        pattern = re.compile(rf"{stem}-{each}-({_VERSION})\.tar\.gz")
        found = {name: match[1] for name in sums if (match := pattern.fullmatch(name))}
        if len(found) > 1:
            raise DownloadError(f"{where} lists {_listed(found)}; keep one release per folder, or give the version")
        for name, version in found.items():
            same = tuple(other for other in sums if sums[other] == sums[name] and other != name)
            return Archive(name=name, version=version, sha256=sums[name], aliases=same)
    wanted = " or ".join(f"{stem}-{each}-VERSION.tar.gz" for each in platform)
    listed = _listed(name for name in sums if name.startswith(stem))
    raise DownloadError(f"{where} lists no {wanted}; it lists {listed or f'no {stem} at all'}")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


# --- wanted -----------------------------------------------------------------------------------


_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_SYSTEMS = {"Linux": "linux", "Darwin": "mac"}


def this_machine() -> str:
    machine = platform.machine().lower()
    return _MACHINES.get(machine, machine)


def this_system() -> str:
    return _SYSTEMS.get(platform.system(), platform.system())


@dataclass(frozen=True, kw_only=True)
class ToolRequest:
    """The wanted release and tools, their platform and folder; raises SpecError with all mistakes."""

    release: str
    """A version (4.18.7), a channel (stable-4.18, latest), or the URL or folder of a sha256sum.txt."""
    mirror: str | None = None
    """URL or folder with ARCH/clients/ocp/RELEASE below it; None: mirror.openshift.com, and GitHub for OKD."""
    arch: Arch = "x86_64"
    """Architecture of the nodes."""
    host: Arch | None = None
    """Architecture of the machine that runs the tools; None: this machine's."""
    system: System | None = None
    """Operating system of that machine; None: this machine's."""
    tools: Collection[str] = NAMES
    """Some of openshift-install, oc and kubectl."""
    into: Path = Path()
    """Folder for the tools."""
    key: Path | None = None
    """File of OpenPGP public keys: sha256sum.txt must be signed by one of them."""

    def __post_init__(self) -> None:
        if mistakes := [*self._wrong_words(), *self._wrong_files()]:
            raise SpecError(mistakes)

    @property
    def source(self) -> str:
        """URL or folder of the archives."""
        return folder_of(self.release, self.mirror, self.arch)

    @property
    def version(self) -> str | None:
        """The version, unless the release is a channel, a URL or a folder."""
        return self.release if is_version(self.release) else None

    @property
    def platforms(self) -> tuple[str, ...]:
        return platforms(self.system or this_system(), self.host or this_machine(), self.arch)

    def _wrong_words(self) -> Iterator[Mistake]:
        try:
            folder_of(self.release, self.mirror, self.arch)
        except InvalidValue as error:
            yield error.at("release", self.release)
        for where, place in (("release", self.release), ("mirror", self.mirror or "")):
            if "://" in place and (not is_url(place) or {"?", "#"} & {*place}):
                yield Mistake(where, f"{shown(place)!r} is not a folder", "write an http, https or file URL of one")
        machine = (
            ("arch", self.arch, Arch),
            ("host", self.host or this_machine(), Arch),
            ("system", self.system or this_system(), System),
        )
        for where, value, known in machine:
            if value not in get_args(known):
                yield Mistake(where, f"{value!r} is not supported", f"give one of {', '.join(get_args(known))}")
        for tool in self.tools:
            if tool not in NAMES:
                yield Mistake("tools", f"{tool!r} is not a tool of a release", f"give some of {', '.join(NAMES)}")
        if not self.tools:
            yield Mistake("tools", "no tools selected", f"give some of {', '.join(NAMES)}")

    def _wrong_files(self) -> Iterator[Mistake]:
        if self.key is not None and not (self.key.is_file() and os.access(self.key, os.R_OK)):
            yield Mistake("key", f"{str(self.key)!r} cannot be read", "give the file of a public key")
        if self.into.exists() and not self.into.is_dir():
            yield Mistake("into", f"{str(self.into)!r} is not a folder", "give a folder")
