"""What the first bytes of an image tell."""

from __future__ import annotations

import struct

import pytest

from openstack_prep.download import qemu_img
from tests.devcloud.qcow2 import qcow2


def with_bytes(image: bytes, place: int, piece: bytes) -> bytes:
    return image[:place] + piece + image[place + len(piece) :]


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (qcow2(1), ""),
        (with_bytes(qcow2(1), 8, struct.pack(">Q", 1024)), "a backing file"),
        (with_bytes(qcow2(1), 79, b"\x04"), "a data file"),
        (with_bytes(bytes(1024), 8, struct.pack(">Q", 1024)), ""),  # no qcow2
        (qcow2(1)[:20], ""),
    ],
)
def test_files_besides_the_image(image: bytes, expected: str) -> None:
    assert qemu_img.unsafe_part(image) == expected
