"""The format of a disk image, by its first bytes."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterable

from openstack_prep.download.compression import Compression, open_packed, unpacked

HEAD = 40 * 2**10  # number of bytes needed for the detection

_MAGIC = (
    (0, b"QFI\xfb", "qcow2"),
    (0, b"KDMV", "vmdk"),
    (0, b"# Disk DescriptorFile", "vmdk"),
    (0, b"vhdxfile", "vhdx"),
    (0, b"conectix", "vhd"),
    (0x40, b"\x7f\x10\xda\xbe", "vdi"),
    (0x8001, b"CD001", "iso"),
)


def guess(head: bytes) -> str:
    """Return Glance's name of the format: raw if no other is recognised."""
    return next((name for place, magic, name in _MAGIC if head[place : place + len(magic)] == magic), "raw")


def of_source(where: str, compression: Compression | None = None) -> str:
    """Return the format of a file or URL, or of its decompressed content; raises DownloadError."""
    return guess(head_of_source(where, compression))


def head_of_source(where: str, compression: Compression | None = None) -> bytes:
    """Return the first bytes of a file or URL, or of its decompressed content; raises DownloadError."""
    chunks, _, found = open_packed(where, compression)
    with contextlib.closing(chunks):
        return _head(unpacked(chunks, found, where))


def unsafe_part(head: bytes) -> str:
    """Return which file besides itself a qcow2 image refers to, by its first bytes; empty for all others.

    Glance does not accept such images (oslo.utils 10.2.0, imageutils/format_inspector.py, QcowInspector).
    """
    if guess(head) != "qcow2" or len(head) < 80:
        return ""
    version, backing = struct.unpack(">IQ", head[4:16])
    if backing:
        return "a backing file"
    has_data_file = version >= 3 and head[79] & 4
    return "a data file" if has_data_file else ""


def of_chunks(chunks: Iterable[bytes]) -> str:
    """Return the format of a content; no more of it is read than necessary."""
    return guess(_head(chunks))


def _head(chunks: Iterable[bytes]) -> bytes:
    head = b""
    for chunk in chunks:
        head += chunk
        if len(head) >= HEAD:
            break
    return head
