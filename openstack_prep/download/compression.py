"""Compressed files: detection, and their content in chunks.

gz by ISA-L (RFC 1952), xz by the standard library, zst by libzstd (RFC 8878). All three decoders verify the checksums
within the file (a zst file may have none), and have the interface of ``lzma.LZMADecompressor``. A file may have several
members, such as those that parallel compressors write; anything else after the first member is an error.
"""

from __future__ import annotations

import itertools
import lzma
import sys
from collections.abc import Callable, Iterable
from typing import Any, Literal, cast, get_args

from isal import igzip_lib

from openstack_prep.base.errors import DownloadError
from openstack_prep.download.address import CHUNK, Chunks, shown
from openstack_prep.download.source import open_source

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Compression = Literal["gz", "xz", "zst", "none"]

MEMORY = 2**28  # bytes that the decoder of an xz file may allocate; xz -9 needs 65 MiB

_MAGIC = ((b"\x1f\x8b", "gz"), (b"\xfd7zXZ\0", "xz"), (b"\x28\xb5\x2f\xfd", "zst"), (b"BZh", "bzip2"))
_HEAD = max(len(magic) for magic, _ in _MAGIC)


class Unsound(DownloadError):
    """The data cannot be decompressed."""


def recognised(head: bytes) -> str:
    """Return the compression of a file with these first bytes; bzip2 is recognised, but not supported."""
    return next((name for magic, name in _MAGIC if head.startswith(magic)), "none")


def open_packed(where: str, compression: Compression | None = None) -> tuple[Chunks, int | None, Compression]:
    """Return the undecoded chunks of a file or URL, its size if known, and its compression.

    Unless given, its first bytes determine the compression: names deceive, as servers decompress and old releases of
    RHCOS name a gz file .qcow2. Raises DownloadError.
    """
    chunks, size = open_source(where)
    if compression:
        return chunks, size, compression
    head = b""
    while len(head) < _HEAD and (chunk := next(chunks, None)) is not None:
        head += chunk
    found = recognised(head)
    if found not in get_args(Compression):
        chunks.close()
        raise DownloadError(f"{shown(where)} is compressed with {found}; decompress it first, or set compression: none")
    return _joined(head, chunks), size, found  # type: ignore[return-value] # one of its arguments


def _joined(head: bytes, rest: Chunks) -> Chunks:
    try:
        yield from itertools.chain([head] if head else [], rest)
    finally:
        rest.close()


def unpacked(chunks: Iterable[bytes], compression: Compression, where: str) -> Chunks:
    """Yield the content, at most CHUNK bytes at once; raises Unsound if it is broken or incomplete."""
    if compression == "none":
        yield from chunks
        return
    new, broken = _decoder(compression)
    decoder = new()
    try:
        for piece in chunks:
            while piece or not (decoder.eof or decoder.needs_input):
                if decoder.eof:
                    decoder = new()
                content = decoder.decompress(piece, CHUNK)
                if content:
                    yield content
                piece = decoder.unused_data if decoder.eof else b""
    except broken as error:
        raise Unsound(f"{shown(where)} is not a valid {compression} file: {error}") from error
    if not decoder.eof:
        raise Unsound(f"{shown(where)} is not a valid {compression} file: it ends too early")


def _decoder(compression: Compression) -> tuple[Callable[[], Any], type[Exception]]:
    """Return the factory of decoders for one member, and the error of such decoders."""
    if compression == "gz":
        # its stubs declare the class as an object
        broken = cast("type[Exception]", igzip_lib.IsalError)
        return lambda: igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_GZIP), broken
    if compression == "xz":
        return lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY), lzma.LZMAError
    return zstd.ZstdDecompressor, zstd.ZstdError
