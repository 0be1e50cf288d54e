"""The tools that a user wants, validated."""

from __future__ import annotations

import os
import platform
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.fields import is_url
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.download.fetching import shown
from openstack_prep.openshift.tools import layout
from openstack_prep.openshift.tools.layout import NAMES, Arch, System

_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_SYSTEMS = {"Linux": "linux", "Darwin": "mac"}


def this_machine() -> str:
    machine = platform.machine().lower()
    return _MACHINES.get(machine, machine)


def this_system() -> str:
    return _SYSTEMS.get(platform.system(), platform.system())


@dataclass(frozen=True, kw_only=True)
class Wanted:
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
        return layout.folder_of(self.release, self.mirror, self.arch)

    @property
    def version(self) -> str | None:
        """The version, unless the release is a channel, a URL or a folder."""
        return self.release if layout.is_version(self.release) else None

    @property
    def platforms(self) -> tuple[str, ...]:
        return layout.platforms(self.system or this_system(), self.host or this_machine(), self.arch)

    def _wrong_words(self) -> Iterator[Mistake]:
        try:
            layout.folder_of(self.release, self.mirror, self.arch)
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
        for each in self.tools:
            if each not in NAMES:
                yield Mistake("tools", f"{each!r} is not a tool of a release", f"give some of {', '.join(NAMES)}")
        if not self.tools:
            yield Mistake("tools", "no tools selected", f"give some of {', '.join(NAMES)}")

    def _wrong_files(self) -> Iterator[Mistake]:
        if self.key is not None and not (self.key.is_file() and os.access(self.key, os.R_OK)):
            yield Mistake("key", f"{str(self.key)!r} cannot be read", "give the file of a public key")
        if self.into.exists() and not self.into.is_dir():
            yield Mistake("into", f"{str(self.into)!r} is not a folder", "give a folder")
