"""A disk image to measure with: always the same bytes, which compress about as RHCOS does, and its .gz."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from pathlib import Path

from isal import isal_zlib

from tests.devcloud.qcow2 import qcow2

GZIP = 31  # window bits that make it a gz file
CLUSTER = 2**16  # bytes
CLUSTERS = 512  # that differ; then they come again, farther away than a gz file can refer to


@dataclass(frozen=True)
class Disk:
    """A qcow2 image and the same compressed, in one folder."""

    plain: Path
    packed: Path
    sha256: str
    sha512: str
    packed_sha256: str


def make(folder: Path, size: int) -> Disk:
    """Write a disk of at least so many bytes.

    Its header is that of an empty qcow2 image, which is all that Glance reads; what follows is a
    mixture of noise, of text out of few words, and of nothing.
    """
    plain, packed = folder / "disk.qcow2", folder / "disk.qcow2.gz"
    unit, written = _unit(), 0
    sums = [hashlib.sha256(), hashlib.sha512()]
    compressor = isal_zlib.compressobj(2, isal_zlib.DEFLATED, GZIP)
    with plain.open("wb") as plainly, packed.open("wb") as tightly:
        piece = qcow2()
        while written < size:
            plainly.write(piece)
            tightly.write(compressor.compress(piece))
            for each in sums:
                each.update(piece)
            written += len(piece)
            piece = unit
        tightly.write(compressor.flush())
    with packed.open("rb") as file:
        packed_sum = hashlib.file_digest(file, "sha256").hexdigest()
    return Disk(plain, packed, *(each.hexdigest() for each in sums), packed_sum)


def _unit() -> bytes:
    numbers = random.Random(3)
    words = [numbers.randbytes(numbers.randint(8, 60)) for _ in range(400)]

    def cluster() -> bytes:
        kind = numbers.random()
        if kind < 0.15:
            return numbers.randbytes(CLUSTER)
        if kind < 0.42:
            return bytes(CLUSTER)
        return b"".join(numbers.choices(words, k=4000))[:CLUSTER]

    return b"".join(cluster() for _ in range(CLUSTERS))
