from __future__ import annotations

import gzip
import lzma
import os
import random
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from openstack_prep.base.errors import DownloadError
from openstack_prep.download.address import CHUNK
from openstack_prep.download.compression import Compression, open_packed, unpacked

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CONTENT = os.urandom(CHUNK // 2) + bytes(4 * CHUNK) + b"the end"
COMPRESS: dict[Compression, Callable[[bytes], bytes]] = {
    "gz": lambda data: gzip.compress(data, 1),
    "xz": lambda data: lzma.compress(data, preset=0),
    "zst": lambda data: zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1}),
}
PACKED = {name: compress(CONTENT) for name, compress in COMPRESS.items()}

each_compression = pytest.mark.parametrize("name", PACKED)


def content(name: Compression, *chunks: bytes) -> bytes:
    return b"".join(unpacked(chunks, name, "disk"))


@each_compression
def test_unpacked(name: Compression) -> None:
    found = list(unpacked([PACKED[name]], name, "disk"))
    assert b"".join(found) == CONTENT
    assert max(map(len, found)) <= CHUNK


@each_compression
def test_however_it_comes(name: Compression) -> None:
    packed, numbers, chunks = PACKED[name], random.Random(name), [b""]
    while packed:
        cut = numbers.choice([1, 2, 7, 1000, 100000])
        chunks.append(packed[:cut])
        packed = packed[cut:]
    assert content(name, *chunks) == CONTENT


@each_compression
def test_several_members(name: Compression) -> None:
    first, second = COMPRESS[name](b"first"), COMPRESS[name](b"second")
    assert content(name, first + second + first) == b"firstsecondfirst"
    assert content(name, first, second) == b"firstsecond"


@each_compression
@pytest.mark.parametrize("left", [0, 1, 20, -9, -1])
def test_truncated(name: Compression, left: int) -> None:
    packed = COMPRESS[name](b"a disk" * 100)
    with pytest.raises(DownloadError, match=f"disk is not a valid {name} file: it ends too early"):
        content(name, packed[:left])


@each_compression
@pytest.mark.parametrize("garbage", [b"x", bytes(512), b"garbage" * 9])
def test_garbage_behind_it(name: Compression, garbage: bytes) -> None:
    with pytest.raises(DownloadError, match="not a valid"):
        content(name, COMPRESS[name](b"a disk") + garbage)


@each_compression
def test_damaged(name: Compression) -> None:
    packed = bytearray(PACKED[name])
    packed[len(packed) // 3] ^= 1
    with pytest.raises(DownloadError, match="not a valid"):
        content(name, packed)


def test_the_sum_and_size_within_a_gz_file_are_verified() -> None:
    for place in (-8, -4):
        packed = bytearray(PACKED["gz"])
        packed[place] ^= 1
        with pytest.raises(DownloadError, match="checksum"):
            content("gz", packed)


@each_compression
def test_a_bomb_takes_no_memory(name: Compression) -> None:
    packed = COMPRESS[name](bytes(16 * CHUNK))
    tracemalloc.start()
    size = sum(map(len, unpacked([packed], name, "disk")))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size == 16 * CHUNK
    assert peak < 6 * CHUNK


# --- told by the first bytes --------------------------------------------------------------


@each_compression
def test_told_by_the_first_bytes(tmp_path: Path, name: Compression) -> None:
    path = tmp_path / "disk.qcow2"
    path.write_bytes(PACKED[name])
    chunks, size, found = open_packed(str(path))
    assert (found, size, b"".join(chunks)) == (name, len(PACKED[name]), PACKED[name])


@pytest.mark.parametrize("data", [b"", b"Q", b"QFI\xfb a disk"])
def test_not_compressed(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "disk.gz").write_bytes(data)
    chunks, _, found = open_packed(str(tmp_path / "disk.gz"))
    assert (found, b"".join(chunks)) == ("none", data)


def test_given(tmp_path: Path) -> None:
    (tmp_path / "disk").write_bytes(PACKED["gz"])
    chunks, _, found = open_packed(str(tmp_path / "disk"), "none")
    assert (found, b"".join(chunks)) == ("none", PACKED["gz"])


def test_what_is_not_unpacked_here(tmp_path: Path) -> None:
    (tmp_path / "disk").write_bytes(b"BZh91AY&SY")
    with pytest.raises(DownloadError, match="compressed with bzip2"):
        open_packed(str(tmp_path / "disk"))
