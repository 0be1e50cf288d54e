"""Reads a file that a person names: a spec, a secret, a key, or a pipe such as ``<(sops -d spec.yaml)``."""

from __future__ import annotations

import errno
import os
import select
from pathlib import Path

MIB = 2**20
MOST = 16 * MIB  # a spec has some kilobytes
CHUNK = MIB
ROUND = 0.2
"""Seconds. A signal that comes between Python's last look and a blocking call is heard when that call returns."""


def read_text(path: Path, most: int = MOST) -> str:
    """Return the text of a file or pipe in UTF-8, with ``\\n`` as line end.

    Raises OSError if it cannot be read or has more than ``most`` bytes, UnicodeDecodeError if it is not UTF-8.
    """
    return _read(path, most).decode().replace("\r\n", "\n").replace("\r", "\n")


def _read(path: Path, most: int) -> bytes:
    content = bytearray()
    with open(path, "rb", buffering=0, opener=_at_once) as file:
        ready = select.poll()
        ready.register(file, select.POLLIN)
        while len(content) <= most:
            if not ready.poll(ROUND * 1000):
                continue
            chunk = file.read(CHUNK)
            if chunk == b"":
                return bytes(content)
            content += chunk or b""  # None: another reader of the pipe was faster
    raise OSError(errno.EFBIG, f"it has more than {most // MIB} MiB", str(path))


def _at_once(path: str, flags: int) -> int:
    """Open a file without waiting for another program that writes to it."""
    return os.open(path, flags | os.O_NONBLOCK)
