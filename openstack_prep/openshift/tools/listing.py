"""sha256sum.txt of a release, as sha256sum(1) writes it, and its signer; read once, and only when needed."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path

from openstack_prep.base.errors import DownloadError
from openstack_prep.download.fetching import local_path, read_small, shown
from openstack_prep.openshift.tools import layout, signature
from openstack_prep.openshift.tools.layout import Archive
from openstack_prep.openshift.tools.wanted import Wanted

LARGEST = 2**20  # bytes of sha256sum.txt or its signature; today's have a few KiB
SIGNATURES = ("sha256sum.txt.gpg", "sha256sum.txt.sig", "sha256sum.txt.asc")
_LINE = re.compile(r"([0-9a-fA-F]{64}) [ *](\S+)")


class Listing:
    """The archives in sha256sum.txt of a source."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.where = f"{wanted.source}/sha256sum.txt"

    @cached_property
    def _content(self) -> tuple[dict[str, str], str | None]:
        try:
            content = read_small(self.where, LARGEST)
        except DownloadError as error:
            raise DownloadError(f"{error}; give an existing release, or the URL or folder of its files") from error
        signer = None
        if self.wanted.key is not None:
            content, signer = signature.verify(content, self.wanted.key, *self._signature())
        return parse(content, shown(self.where)), signer

    @property
    def signed_by(self) -> str | None:
        """Fingerprint of the key that signed the list; None without a key to verify it."""
        return self._content[1]

    def archive(self, stem: str) -> Archive:
        """Return the archive whose name begins with ``stem``; raises DownloadError."""
        archive = layout.find_archive(self._content[0], stem, self.wanted.platforms, shown(self.where))
        if self.wanted.version not in (None, archive.version):
            raise DownloadError(f"{shown(self.where)} lists {archive.name} instead of {self.wanted.version}")
        return archive

    def location(self, archive: Archive) -> str:
        """Return the URL or path of an archive; a folder may have it under an alias."""
        places = [f"{self.wanted.source}/{name}" for name in (archive.name, *archive.aliases)]
        return next((each for each in places if Path(local_path(each)).exists()), places[0])

    def _signature(self) -> tuple[bytes, str]:
        """Return the signature, from the first of its file names that exists, and its URL or path."""
        errors = []
        for name in SIGNATURES:
            where = f"{self.wanted.source}/{name}"
            try:
                return read_small(where, LARGEST), shown(where)
            except DownloadError as error:
                errors.append(str(error))
        raise DownloadError("; ".join([*errors, "there is no signature to verify; leave the key out"]))


def parse(text: bytes, where: str) -> dict[str, str]:
    """Return the checksums by file name; raises DownloadError with the number of an invalid line."""
    sums: dict[str, str] = {}
    for number, line in enumerate(text.decode("utf-8", "replace").splitlines(), 1):
        if not line.strip():
            continue
        found = _LINE.fullmatch(line.rstrip())
        if not found:
            raise DownloadError(f"{where}:{number}: {line[:60]!r} is not a SHA-256 checksum with a file name")
        sha256, name = found[1].lower(), found[2]
        if sums.setdefault(name, sha256) != sha256:
            raise DownloadError(f"{where}:{number}: {name} has two different checksums; download the file again")
    return sums
