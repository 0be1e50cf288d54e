"""Records of the tools in a folder, and a lock that keeps concurrent runs out.

Both are in a hidden folder, together with files that are being unpacked: a killed run leaves nothing else, and the
next run deletes them.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from openstack_prep.base.errors import PrepError
from openstack_prep.base.formats.foreign_text import parse_json
from openstack_prep.base.given_file import read_text
from openstack_prep.base.private_file import write_shared

HIDDEN = ".openstack-prep"


@dataclass(frozen=True, kw_only=True)
class Record:
    """The origin of a tool."""

    version: str
    archive: str
    archive_sha256: str
    sha256: str
    source: str
    signed_by: str | None

    def matches(self, path: Path) -> bool:
        """Whether a file is the one that was unpacked, and is executable."""
        if not path.is_file() or not os.access(path, os.R_OK | os.X_OK):
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[Path]:
    """Lock a folder of tools, and yield a folder in it for files that are being unpacked; create both if missing.

    Raises PrepError if another run holds the lock.
    """
    parts = folder / HIDDEN / "parts"
    with contextlib.ExitStack() as stack:
        try:
            parts.parent.mkdir(parents=True, exist_ok=True)
            lock = stack.enter_context((folder / HIDDEN / "lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(parts, ignore_errors=True)
            parts.mkdir()
        except BlockingIOError as error:
            raise PrepError(f"{folder}: another run is fetching tools into this folder; wait until it ends") from error
        except OSError as error:
            raise PrepError(f"{folder}: cannot be written to: {error}") from error
        stack.callback(shutil.rmtree, parts, ignore_errors=True)  # before the lock is released
        yield parts


def load(folder: Path) -> dict[str, Record]:
    """Return the records of a folder by tool; an unreadable file counts as empty, and is replaced later."""
    try:
        text = read_text(folder / HIDDEN / "tools.json")
        return {name: Record(**fields) for name, fields in parse_json(text).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def save(folder: Path, records: Mapping[str, Record]) -> None:
    """Write the records of a folder if they differ; raises PrepError."""
    if records == load(folder):
        return
    data = {name: asdict(record) for name, record in sorted(records.items())}
    write_shared(folder / HIDDEN / "tools.json", json.dumps(data, indent=2) + "\n")
