"""What kind of disk image a file is, by its first bytes."""

from __future__ import annotations

import contextlib

from openstack_prep.download import open_source, shown
from openstack_prep.errors import DownloadError

HEAD = 40 * 2**10  # bytes that are enough to tell

_MAGIC = (
    (0, b"QFI\xfb", "qcow2"),
    (0, b"KDMV", "vmdk"),
    (0, b"# Disk DescriptorFile", "vmdk"),
    (0, b"vhdxfile", "vhdx"),
    (0, b"conectix", "vhd"),
    (0x40, b"\x7f\x10\xda\xbe", "vdi"),
    (0x8001, b"CD001", "iso"),
)
_COMPRESSED = ((b"\x1f\x8b", "gzip"), (b"\xfd7zXZ\0", "xz"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh", "bzip2"))


def guess(head: bytes) -> str:
    """Return Glance's name of the format: raw when no other is recognised."""
    return next((name for place, magic, name in _MAGIC if head[place : place + len(magic)] == magic), "raw")


def compression(head: bytes) -> str | None:
    return next((name for magic, name in _COMPRESSED if head.startswith(magic)), None)


def of_source(where: str) -> str:
    """Return the format of a file or URL; raises DownloadError when it is compressed."""
    head = _head(where)
    packed = compression(head)
    if packed:
        raise DownloadError(f"{shown(where)} is compressed ({packed}); unpack it first, or give its disk_format")
    return guess(head)


def _head(where: str) -> bytes:
    head = b""
    chunks, _ = open_source(where)
    with contextlib.closing(chunks):
        for chunk in chunks:
            head += chunk
            if len(head) >= HEAD:
                break
    return head
