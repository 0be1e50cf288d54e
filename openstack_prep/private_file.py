"""Writing a file that holds secrets: 0600 from its first byte, whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from openstack_prep.errors import PrepError

PRIVATE = "0600"


def mode(path: Path) -> str:
    """Return a file's mode as in ``chmod``; all that only its owner can read count as 0600."""
    found = path.stat().st_mode & 0o777
    return f"{found:04o}" if found & 0o077 else PRIVATE


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, replacing an old one in one step.

    The text goes into a new file of the same folder, which then takes the old one's place, so a full
    disk or a kill leaves the old one as it was.  A link is followed: what it points to is replaced.
    A mode stricter than 0600 stays.  Raises PrepError.
    """
    path = Path(os.path.realpath(path))  # resolve() fails on a link to itself
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # made with 0600
    except OSError as error:
        raise PrepError(f"{path} cannot be written: {error}") from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            if path.exists() and not path.stat().st_mode & 0o177:
                os.fchmod(handle, path.stat().st_mode & 0o777)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        if isinstance(error, OSError):
            raise PrepError(f"{path} cannot be written: {error}; it is as it was before") from error
        raise
