"""qemu-img: convert disk images to raw, which Glance on Ceph needs for copy-on-write.

Source: QEMU documentation, "qemu-img".
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterable
from typing import IO, Any

from openstack_prep.base.errors import PrepError
from openstack_prep.base.raw import Values
from openstack_prep.download.compression import Compression, open_packed, unpacked

# The format of a disk image, by its first bytes.

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


COMMAND = "qemu-img"
PATIENCE = 60.0  # seconds to inspect an image; a conversion has no time limit


def missing_room(needed: int) -> str | None:
    """Return what is wrong with the folder for temporary files unless it has that many free bytes."""
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if needed <= free:
        return None
    return f"{folder} has {free / 2**20:.0f} MiB free, but {needed / 2**20:.0f} MiB are needed"


def to_raw(image: IO[bytes], raw: IO[bytes], what: str) -> None:
    """Convert an open qcow2 image into another open file, with holes for empty areas.

    Both files may be unnamed. An image that refers to other files is refused: it would include the content of these
    files. Raises PrepError.
    """
    image.flush()
    source, target = f"/dev/fd/{image.fileno()}", f"/dev/fd/{raw.fileno()}"
    files = (image.fileno(), raw.fileno())
    if other := _other_file(_asked(files, "info", "--output=json", "-f", "qcow2", source)):
        raise PrepError(
            f"{what} refers to another file, {other}, and is not converted; use an image without a backing file"
        )
    extents = _asked(files, "map", "--output=json", "-f", "qcow2", source)
    if wrong := missing_room(sum(extent["length"] for extent in extents if extent["data"])):
        raise PrepError(f"{what} cannot be converted to raw: {wrong}; free some space, or set TMPDIR to another folder")
    _run(files, None, "convert", "-f", "qcow2", "-O", "raw", source, target)


def _other_file(info: Values) -> str | None:
    other: str | None = info.get("backing-filename")
    return other or info.get("format-specific", {}).get("data", {}).get("data-file")


def _asked(files: tuple[int, ...], *words: str) -> Any:
    return json.loads(_run(files, PATIENCE, *words))


def _run(files: tuple[int, ...], timeout: float | None, *words: str) -> str:
    """Run the program shielded from the terminal's Ctrl-C, so that running steps can finish."""
    try:
        done = subprocess.run(
            [COMMAND, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            check=True,
            pass_fds=files,
            process_group=0,
            env=os.environ | {"LC_ALL": "C"},
        )
    except OSError as error:
        raise PrepError(f"{COMMAND} cannot be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise PrepError(f"{COMMAND} {words[0]} did not end within {PATIENCE:.0f} seconds") from error
    except subprocess.CalledProcessError as error:
        output = error.stderr.strip() or "without a message"
        raise PrepError(f"{COMMAND} {words[0]} failed ({error.returncode}): {output}") from error
    return done.stdout
