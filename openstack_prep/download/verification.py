"""Verified content: streams with checksums, decompressed on the way.

Everything happens in one pass: reading, the checksum of the file, decompressing, the checksums of the content and
sending run in separate threads, each a few chunks ahead of the next.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator
from queue import SimpleQueue

from openstack_prep.base.errors import DownloadError
from openstack_prep.download import qemu_img
from openstack_prep.download.address import Chunks, shown
from openstack_prep.download.compression import Compression, Unsound, open_packed, unpacked

AHEAD = 16  # chunks that wait between two stages
UNDECLARED_MOST = 2**36  # bytes to which any file may decompress if the spec declares no size,
EXPANSION = 100  # or this multiple of its own size, if that is more: disks are large and empty, but not bombs

Progress = Callable[[int, int | None, int | None], None]


class Digests:
    """The checksums of a stream."""

    def __init__(self, algorithms: Iterable[str]) -> None:
        self._hashes = {name: hashlib.new(name, usedforsecurity=False) for name in algorithms}
        self.size = 0

    def through(self, chunks: Iterable[bytes], stage: Callable[[Chunks], Iterable[bytes]]) -> Chunks:
        """Pass chunks through one checksum after the other; ``stage`` runs each in its own thread."""
        for each in self._hashes.values():
            chunks = stage(_passing(each.update, chunks))
        return _passing(self._count, chunks)

    def _count(self, chunk: bytes) -> None:
        self.size += len(chunk)

    def get(self, algorithm: str) -> str | None:
        """Return a checksum in hexadecimal, if it was requested."""
        return self._hashes[algorithm].hexdigest() if algorithm in self._hashes else None


def _passing(see: Callable[[bytes], object], chunks: Iterable[bytes]) -> Chunks:
    for chunk in chunks:
        see(chunk)
        yield chunk


class Ahead:
    """Chunks that a separate thread reads, at most AHEAD chunks in advance.

    ``close`` ends the thread early, at the latest after its current read.
    """

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks
        self._room = threading.Semaphore(AHEAD)
        self._ready: SimpleQueue[bytes | BaseException | None] = SimpleQueue()
        self._closed = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        end: BaseException | None = None
        try:
            with contextlib.closing(self._chunks):
                for chunk in self._chunks:
                    self._room.acquire()
                    if self._closed.is_set():
                        break
                    self._ready.put(chunk)
        except BaseException as error:  # noqa: BLE001 - whoever iterates gets it
            end = error
        self._ready.put(end)

    def __iter__(self) -> Iterator[bytes]:
        while (item := self._ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            self._room.release()
            yield item

    def close(self) -> None:
        self._closed.set()
        self._room.release()


class Verified:
    """The verified content of a source as the body of a request: read again each time it is iterated.

    ``checksum`` is that of the content, ``compressed_checksum`` that of the file if it is compressed; ``size`` is that
    of the content, in bytes. If one of them is not as expected, iterating ends with DownloadError instead of simply
    ending, so that a chunked upload never gets its closing chunk; so does a file without a size that decompresses to
    more than a disk may hold. Afterwards ``digests`` are those of the content. ``progress`` is called with the number
    of bytes read, the size of the file, and, if it is compressed, the number of decompressed bytes.
    """

    def __init__(
        self,
        source: str,
        checksum: str | None = None,
        *,
        compression: Compression | None = None,
        compressed_checksum: str | None = None,
        size: int | None = None,
        algorithms: Iterable[str] = ("sha256",),
        progress: Progress = lambda done, total, unpacked: None,
    ) -> None:
        self.source = source
        self.checksum, self.compressed_checksum, self.size = checksum, compressed_checksum, size
        self.compression = compression
        self.algorithms = {*algorithms, *_algorithm(checksum)}
        self.progress = progress
        self.digests = Digests(self.algorithms)

    def disk_format(self) -> str:
        """Return the format of the content, by its first bytes; raises DownloadError."""
        return qemu_img.of_source(self.source, self.compression)

    def __iter__(self) -> Chunks:
        self.digests = Digests(self.algorithms)
        packed = Digests(_algorithm(self.compressed_checksum))
        chunks, total, compression = open_packed(self.source, self.compression)
        with contextlib.ExitStack() as stages:

            def stage(chunks: Chunks) -> Iterable[bytes]:
                return stages.enter_context(contextlib.closing(Ahead(chunks)))

            content: Iterable[bytes] = packed.through(stage(chunks), stage)
            if compression != "none":
                content = stage(self._unpacked(content, compression, packed))
            for chunk in self.digests.through(content, stage):
                self._check_size(self.digests.size, packed.size)
                yield chunk
                done = self.digests.size
                if compression == "none":
                    self.progress(done, total, None)
                else:
                    self.progress(packed.size, total, done)
        self._verify(packed)

    def _unpacked(self, chunks: Iterable[bytes], compression: Compression, packed: Digests) -> Chunks:
        """Decompress; if that fails because the file is wrong, all of it is read, so that its checksum is reported."""
        try:
            yield from unpacked(chunks, compression, self.source)
        except Unsound:
            if self.compressed_checksum:
                for _ in chunks:
                    pass
                _compare(shown(self.source), packed, self.compressed_checksum)
            raise

    def _check_size(self, so_far: int, packed: int) -> None:
        most = max(UNDECLARED_MOST, EXPANSION * packed) if self.size is None else self.size
        if so_far > most:
            fix = "correct the size, or use the right file" if self.size else "set size if this is correct"
            raise DownloadError(f"{shown(self.source)} has more than {most} bytes; {fix}")

    def _verify(self, packed: Digests) -> None:
        """Raise DownloadError unless all is as expected; a wrong file is reported before its wrong content."""
        where = shown(self.source)
        if not self.digests.size:
            raise DownloadError(f"{where} is empty")
        _compare(where, packed, self.compressed_checksum)
        if self.size not in (None, self.digests.size):
            raise DownloadError(f"{where} has {self.digests.size} bytes instead of {self.size}")
        _compare(f"the content of {where}" if self.compressed_checksum else where, self.digests, self.checksum)


def _algorithm(checksum: str | None) -> set[str]:
    return {checksum.partition(":")[0]} if checksum else set()


def _compare(what: str, digests: Digests, checksum: str | None) -> None:
    algorithm, _, expected = (checksum or "").partition(":")
    found = digests.get(algorithm)
    if found is not None and found != expected:
        raise DownloadError(
            f"{what} has {algorithm} {found} instead of {expected}; correct the checksum, or use the right file"
        )
