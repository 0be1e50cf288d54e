"""Makes a valid, empty qcow2 image: Glance inspects what is uploaded, and refuses random bytes.

python -m tests.devcloud.qcow2 FILE [GIB]
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

CLUSTER = 65536  # bytes; the file is four of them: header, refcount table, refcount block, L1 table
VERSION = 3
HEADER_LENGTH = 104


def qcow2(gibibytes: int = 16) -> bytes:
    """The image file of an empty disk of that size; 256 KiB, whatever the size."""
    size = gibibytes << 30
    l1_entries = -(-size // (CLUSTER * CLUSTER // 8))
    header = struct.pack(
        ">4sIQIIQIIQQIIQQQQII",
        b"QFI\xfb",
        VERSION,
        *(0, 0),  # no backing file
        CLUSTER.bit_length() - 1,
        size,
        0,  # not encrypted
        l1_entries,
        3 * CLUSTER,  # where the L1 table is: all zero, nothing allocated
        *(CLUSTER, 1),  # where the refcount table is, and its length in clusters
        *(0, 0),  # no snapshots
        *(0, 0, 0),  # no features
        4,  # a refcount has 1 << 4 bits
        HEADER_LENGTH,
    )
    image = bytearray(4 * CLUSTER)
    image[: len(header)] = header
    image[CLUSTER : CLUSTER + 8] = struct.pack(">Q", 2 * CLUSTER)  # the one refcount block
    image[2 * CLUSTER : 2 * CLUSTER + 8] = struct.pack(">4H", 1, 1, 1, 1)  # each cluster is used once
    return bytes(image)


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(qcow2(*map(int, sys.argv[2:3])))
