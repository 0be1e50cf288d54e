"""Unpack the tools of an archive while its checksum is computed; no other member is ever written.

Members are read in order, and never extracted by their own names.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tarfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from openstack_prep.base.errors import DownloadError, PrepError
from openstack_prep.download.address import CHUNK, shown
from openstack_prep.download.verification import Verified

LARGEST = 4 * 2**30  # bytes of one member; today's installer has 0.7 GiB
MEMBERS = 100  # in one archive; today's have two or three
HEADERS = 4 * 2**20  # bytes from one member to the next: padding, and headers, which tarfile holds in memory

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class UnpackedTool:
    """An unpacked tool under a temporary name."""

    path: Path
    sha256: str


def unpack(
    source: str, sha256: str, tools: Collection[str], folder: Path, progress: Progress
) -> Mapping[str, UnpackedTool]:
    """Unpack tools into a folder, and return them after the checksum of the whole archive was verified.

    Raises DownloadError if the checksum differs, a tool is missing, or the archive has members that no archive of
    tools has: names outside of its folder, links to other files, devices.  The caller must then empty the folder.
    """
    where = shown(source)
    body = Verified(
        source,
        compression="gz",
        compressed_checksum=f"sha256:{sha256}",
        algorithms=(),
        progress=lambda done, total, unpacked: progress(done, total),
    )
    with contextlib.closing(iter(body)) as chunks:
        content = _Content(chunks, where)
        try:
            parts = _read(content, tools, folder, where)
        except tarfile.TarError as error:
            raise DownloadError(f"{where} is not a valid tar archive: {error}") from error
        content.allow(HEADERS)
        while content.read(CHUNK):  # the checksum is verified at the end
            pass
    missing = ", ".join(tool for tool in tools if tool not in parts)
    if missing:
        raise DownloadError(f"{where} contains no {missing}")
    return parts


class _Content:
    """A file object for tarfile that reads chunks, up to an allowed number of bytes."""

    def __init__(self, chunks: Iterator[bytes], where: str) -> None:
        self._chunks, self._held, self._where = chunks, b"", where
        self._left = 0

    def allow(self, size: int) -> None:
        self._left = size

    def read(self, size: int) -> bytes:
        held = self._held or next(self._chunks, b"")
        piece, self._held = held[:size], held[size:]
        self._left -= len(piece)
        if self._left < 0:
            raise DownloadError(f"{self._where} is too large for an archive of tools")
        return piece


def _read(content: _Content, tools: Collection[str], folder: Path, where: str) -> dict[str, UnpackedTool]:
    parts: dict[str, UnpackedTool] = {}
    content.allow(HEADERS)
    with tarfile.open(fileobj=content, mode="r|", bufsize=CHUNK) as archive:  # type: ignore[call-overload] # it reads
        for number, member in enumerate(iter(archive.next, None)):
            if number == MEMBERS:
                raise DownloadError(f"{where} is too large for an archive of tools")
            name = _checked(member, tools, parts, where)
            content.allow(member.size + HEADERS)
            if member.isreg():
                chunks = _pieces(archive, member)
                if name in tools:
                    parts[name] = _written(chunks, folder / f"{name}.part")
                else:
                    for _ in chunks:
                        pass
            elif not member.isdir():
                parts[name] = _linked(parts[_plain(member.linkname)], folder / f"{name}.part")
            content.allow(HEADERS)
    return parts


def _checked(member: tarfile.TarInfo, tools: Collection[str], parts: Mapping[str, UnpackedTool], where: str) -> str:
    """Return the name of a harmless member; a link may only point to an earlier tool."""
    name = _plain(member.name)
    says = f"{where} contains {member.name[:100]!r}"
    if name.startswith("/") or ".." in name.split("/"):
        raise DownloadError(f"{says}, a name outside of its folder")
    if member.islnk() or member.issym():
        if name not in tools or _plain(member.linkname) not in parts:
            raise DownloadError(f"{says}, a link to {member.linkname[:100]!r}, which is not an earlier tool")
    elif not (member.isdir() or member.isreg()) or member.issparse():
        raise DownloadError(f"{says}, which is not a regular file")
    if name in parts:
        raise DownloadError(f"{says} twice")
    if member.size > LARGEST:
        raise DownloadError(f"{says} of {member.size} bytes, too large for a tool")
    return name


def _plain(name: str) -> str:
    return str(PurePosixPath(name))


def _pieces(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[bytes]:
    file = archive.extractfile(member)
    assert file is not None
    while piece := file.read(CHUNK):
        yield piece


def _written(chunks: Iterator[bytes], path: Path) -> UnpackedTool:
    digest = hashlib.sha256()
    try:
        with path.open("xb") as file:
            for chunk in chunks:
                digest.update(chunk)
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise PrepError(f"{path} cannot be written: {error.strerror}") from error
    return UnpackedTool(path, digest.hexdigest())


def _linked(part: UnpackedTool, path: Path) -> UnpackedTool:
    try:
        try:
            os.link(part.path, path)
        except OSError:  # not every file system supports links
            shutil.copyfile(part.path, path)
    except OSError as error:
        raise PrepError(f"{path} cannot be written: {error.strerror}") from error
    return UnpackedTool(path, part.sha256)
