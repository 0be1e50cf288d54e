"""Contents that several uploads of one process need: each is read, decompressed and verified once.

One thread per content writes it to a temporary file without a name, which vanishes however the process ends. Each
upload follows the file at its own pace: it begins at once, a slow one delays no other, and memory depends neither on
the size nor on the number of uploads.
"""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
import threading
import time
from collections.abc import Hashable, Iterator
from enum import Enum, auto
from typing import IO, Any, cast

from openstack_prep.base.errors import DownloadError
from openstack_prep.download import qemu_img
from openstack_prep.download.address import CHUNK, Chunks, shown
from openstack_prep.download.qemu_img import missing_room
from openstack_prep.download.verification import Digests, Verified

IDLE = 600.0  # seconds after which a file that nobody reads is closed: a worker may outlive the run of a fleet

_log = logging.getLogger(__name__)


class Contents:
    """The contents that uploads of this process share; ``close`` ends all of them."""

    def __init__(self) -> None:
        self._spools: dict[Hashable, Spool] = {}
        self._lock = threading.Lock()
        self._closed = False

    def spool(self, wanted: Verified) -> Spool:
        """Return the file of a content; a new one if there is none yet, or if the last one has failed."""
        # local files, too: decompression and two digests per upload cost more than one copy
        what = (wanted.source, wanted.checksum, wanted.compression, wanted.compressed_checksum, wanted.size)
        key = (*what, frozenset(wanted.algorithms))
        with self._lock:
            if self._closed:
                raise _ended(wanted.source)
            if key not in self._spools or self._spools[key].is_over:
                self._spools[key] = Spool(wanted)
            return self._spools[key]

    def close(self) -> None:
        """Close the files; what still reads one of them gets a DownloadError."""
        with self._lock:
            self._closed = True
            for each in self._spools.values():
                each.close()


class Shared(Verified):
    """A content like Verified for one upload, which it shares with others that need the same.

    It ends only after the content was verified. If there is no room for the file, or its time is over, the upload goes
    on with a download of its own. ``progress`` is called with the number of bytes of the content.
    """

    def __init__(self, contents: Contents, source: str, checksum: str | None = None, **options: Any) -> None:
        super().__init__(source, checksum, **options)
        self._contents = contents

    def __iter__(self) -> Chunks:
        spool, done = self._contents.spool(self), 0
        while chunk := spool.read(done):
            yield chunk
            done += len(chunk)
            self.progress(done, spool.size, None)
        if chunk is None:
            # if the source has changed meanwhile, the digests of this download are not those that Glance computes
            with contextlib.closing(super().__iter__()) as chunks:
                yield from _after(done, chunks)
        else:
            self.digests = spool.digests

    def disk_format(self) -> str:
        with contextlib.closing(iter(self)) as chunks:
            return qemu_img.of_chunks(chunks)


def _after(done: int, chunks: Iterator[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        if rest := chunk[done:]:
            yield rest
        done = max(0, done - len(chunk))


def _ended(source: str) -> DownloadError:
    return DownloadError(f"{shown(source)} is no longer read, because the run has ended; run the command again")


class _State(Enum):
    FILLING = auto()
    WHOLE = auto()
    """Completely written, and verified."""
    NO_ROOM = auto()
    OVER = auto()


class _NoRoom(Exception):
    """The content cannot be kept in a file."""


class Spool:
    """The file of one content. ``size`` is that of the content, if known; ``digests`` are complete at its end."""

    def __init__(self, wanted: Verified) -> None:
        self._verified = Verified(
            wanted.source,
            wanted.checksum,
            compression=wanted.compression,
            compressed_checksum=wanted.compressed_checksum,
            size=wanted.size,
            algorithms=wanted.algorithms,
            progress=self._note_size,
        )
        self.size = wanted.size
        self._file: IO[bytes] | None = None
        self._written, self._used = 0, time.monotonic()
        self._state, self._error = _State.FILLING, cast("BaseException | None", None)
        self._changed = threading.Condition()
        threading.Thread(target=self._work, daemon=True).start()

    @property
    def digests(self) -> Digests:
        return self._verified.digests

    @property
    def is_over(self) -> bool:
        """Whether the file is of no use any more: it has failed, or nobody has read it for long."""
        return self._error is not None or self._state is _State.OVER

    # --- whoever reads --------------------------------------------------------------------

    def read(self, start: int) -> bytes | None:
        """Return the next bytes from a place on, nothing at the verified end, or None if there is no file.

        Waits for bytes that are not there yet. Raises the error with which the content ended.
        """
        with self._changed:
            self._used = time.monotonic()
            self._changed.wait_for(lambda: self._written > start or self._error or self._state is not _State.FILLING)
            if isinstance(self._error, DownloadError):
                raise DownloadError(str(self._error)) from self._error  # each upload handles an error of its own
            if self._error is not None:
                raise self._error
            if self._file is None or self._state in (_State.NO_ROOM, _State.OVER):
                return None
            if start == self._written:
                return b""
            size = min(CHUNK, self._written - start)
            file = os.dup(self._file.fileno())  # the file may be closed before it is read
        try:
            return os.pread(file, size, start) or None
        finally:
            os.close(file)

    def close(self) -> None:
        """End the thread, at the latest after its current read, and with it the file."""
        with self._changed:
            self._error = self._error or _ended(self._verified.source)
            self._changed.notify_all()

    # --- the thread -----------------------------------------------------------------------

    def _work(self) -> None:
        """Fill the file, and keep it for as long as it is read."""
        state, error = _State.OVER, cast("BaseException | None", None)
        with contextlib.ExitStack() as stack:
            try:
                self._file = self._opened(stack)
                self._fill(self._file)
                self._wait_until_idle()
            except _NoRoom as reason:
                _log.info("uploads of %s do not share a download: %s", shown(self._verified.source), reason)
                state = _State.NO_ROOM
            except BaseException as found:  # noqa: BLE001 - whoever reads gets it
                error = found
            with self._changed:  # before the file is closed
                self._state, self._error = state, self._error or error
                self._changed.notify_all()

    def _opened(self, stack: contextlib.ExitStack) -> IO[bytes]:
        with _room():
            if wrong := missing_room(self.size or 0):
                raise _NoRoom(wrong)
            return stack.enter_context(tempfile.TemporaryFile(buffering=0))

    def _fill(self, file: IO[bytes]) -> None:
        with contextlib.closing(iter(self._verified)) as chunks:
            for chunk in chunks:
                with _room():
                    _write(file, chunk)
                with self._changed:
                    if self._error is not None:
                        return
                    self._written += len(chunk)
                    self._changed.notify_all()
        with self._changed:
            self._state, self.size = _State.WHOLE, self._written
            self._changed.notify_all()

    def _wait_until_idle(self) -> None:
        with self._changed:
            while self._error is None and (left := self._used + IDLE - time.monotonic()) > 0:
                self._changed.wait(left)

    def _note_size(self, done: int, total: int | None, unpacked: int | None) -> None:
        if unpacked is None and self.size is None:
            self.size = total


@contextlib.contextmanager
def _room() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _NoRoom(f"{tempfile.gettempdir()}: {error.strerror}") from error


def _write(file: IO[bytes], chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        rest = rest[file.write(rest) :]
