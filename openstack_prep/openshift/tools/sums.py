"""The list of sums beside the archives: sha256sum.txt, as sha256sum(1) writes it (pure)."""

from __future__ import annotations

import re

from openstack_prep.base.errors import DownloadError

_LINE = re.compile(r"([0-9a-fA-F]{64}) [ *](\S+)")


def parse(text: bytes, where: str) -> dict[str, str]:
    """Return the sums by name of the file; raises DownloadError that names the line which is no such thing."""
    sums: dict[str, str] = {}
    for number, line in enumerate(text.decode("utf-8", "replace").splitlines(), 1):
        if not line.strip():
            continue
        found = _LINE.fullmatch(line.rstrip())
        if not found:
            raise DownloadError(f"{where}:{number}: {line[:60]!r} is no sha256 with the name of a file")
        sha256, name = found[1].lower(), found[2]
        if sums.setdefault(name, sha256) != sha256:
            raise DownloadError(f"{where}:{number}: {name} has two different sums; get a sound list")
    return sums
