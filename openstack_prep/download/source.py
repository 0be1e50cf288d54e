"""Bytes from a file or a URL, in chunks: memory use does not depend on the size."""

from __future__ import annotations

import contextlib
from pathlib import Path

from openstack_prep.base.errors import DownloadError
from openstack_prep.base.given_file import refuse_special, unreadable
from openstack_prep.download.address import CHUNK, Chunks, local_path, shown


def open_source(where: str) -> tuple[Chunks, int | None]:
    """Return the chunks of a file or URL, and the size in bytes if it is known; raises DownloadError."""
    if not where.startswith(("http://", "https://")):
        return _open_file(local_path(where))
    from openstack_prep.download.http import open_url  # with requests, which few specs need

    return open_url(where)


def read_small(where: str, largest: int) -> bytes:
    """Return the content of a file or URL if it has at most that many bytes; raises DownloadError."""
    text = b""
    chunks, _ = open_source(where)
    with contextlib.closing(chunks):
        for chunk in chunks:
            text += chunk
            if len(text) > largest:
                raise DownloadError(f"{shown(where)} is too large: more than {largest} bytes")
    return text


def _open_file(path: str) -> tuple[Chunks, int]:
    try:
        refuse_special(Path(path), allow_disk=True)
        file = open(path, "rb")  # noqa: SIM115 - closed by the generator
        size = file.seek(0, 2)
        file.seek(0)
    except OSError as error:
        raise DownloadError(f"{path} {unreadable(error)}") from error

    def chunks() -> Chunks:
        with file:
            try:
                while chunk := file.read(CHUNK):
                    yield chunk
            except OSError as error:
                raise DownloadError(f"{path} {unreadable(error)}") from error

    return chunks(), size
