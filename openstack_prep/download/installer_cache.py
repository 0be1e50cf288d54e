"""The OpenShift installer's cache of images, as source and as target.

Source: OpenShift installer, pkg/rhcos/cache. It stores decompressed images under the file's name without .gz or .xz; in
older releases under the md5 of the URL, to which the installer adds the checksum. The installer uses a cached file as
it is, so only verified content may be stored.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Self
from urllib.parse import unquote, urlsplit

from openstack_prep.base.errors import PrepError

MODE = 0o444  # the mode that the installer uses


def cached(location: str, sha256: str) -> str | None:
    """Return the path of a URL's image, decompressed, in the cache, if it exists and is correct."""
    for path in _places(location, sha256):
        if path.is_file() and os.access(path, os.R_OK):
            with path.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() == sha256:
                    return str(path)
    return None


def _places(location: str, sha256: str) -> list[Path]:
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "openshift-installer" / "image_cache"
    name = PurePosixPath(unquote(urlsplit(location).path)).name.removesuffix(".xz").removesuffix(".gz")
    older = hashlib.md5(f"{location}?sha256={sha256}".encode(), usedforsecurity=False).hexdigest()
    return [folder / each for each in (name, older) if each]


class Kept:
    """Chunks of a URL's image, copied to the cache under the names of all releases while they are read.

    ``chunks`` end with an error if they are wrong; then, as when the reader gives up, nothing remains in the cache. If
    an installer or another run is filling the cache, this run does not. Iterating starts over, and raises PrepError if
    the cache cannot be written; ``with`` closes it at once, where an error's traceback would still reference it.
    """

    def __init__(self, chunks: Iterable[bytes], location: str, sha256: str) -> None:
        self.chunks, self.places = chunks, _places(location, sha256)
        self._passing = self._pass()

    def __iter__(self) -> Iterator[bytes]:
        self._passing.close()
        self._passing = self._pass()
        return self._passing

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._passing.close()

    def _pass(self) -> Generator[bytes, None, None]:
        path, *others = self.places
        temporary = Path(
            f"{path}.tmp"
        )  # the installer's own name, under its own lock: either process removes the other's leftover
        with _locked(path) as mine:
            if not mine:
                yield from self.chunks
                return
            try:
                with _explained(path):
                    temporary.unlink(missing_ok=True)
                    file = temporary.open("xb")
                with file:
                    yield from _copied(self.chunks, file, path)
                with _explained(path):
                    _publish(temporary, path, others)
            finally:
                temporary.unlink(missing_ok=True)


def _copied(chunks: Iterable[bytes], file: IO[bytes], path: Path) -> Iterator[bytes]:
    for chunk in chunks:
        with _explained(path):
            file.write(chunk)
        yield chunk
    with _explained(path):
        file.flush()
        os.fsync(file.fileno())


def _publish(temporary: Path, path: Path, others: Iterable[Path]) -> None:
    """Link the file under its names: it is one file, whatever name a release uses."""
    temporary.chmod(MODE)
    for other in others:
        other.unlink(missing_ok=True)
        other.hardlink_to(temporary)
    temporary.replace(path)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Hold the installer's lock of a file in its cache; False if another process holds it."""
    lock = Path(f"{path}.lock")
    with _explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = lock.open("wb")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        try:
            yield True
        finally:
            lock.unlink(missing_ok=True)


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise PrepError(
            f"{path} cannot be written: {error.strerror}; free space, grant access, or disable the installer's cache"
        ) from error
