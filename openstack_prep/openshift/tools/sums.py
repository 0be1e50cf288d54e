"""sha256sum.txt, as sha256sum(1) writes it.  Pure."""

from __future__ import annotations

import re

from openstack_prep.base.errors import DownloadError

_LINE = re.compile(r"([0-9a-fA-F]{64}) [ *](\S+)")


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
