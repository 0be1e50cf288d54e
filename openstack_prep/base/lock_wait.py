"""Wait for flock(2) on an open file: not silently, not for ever, and naming who holds it.

Source: flock(2); proc(5), /proc/locks.
"""

from __future__ import annotations

import errno
import fcntl
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

from openstack_prep.base.errors import FileLocked, PrepError
from openstack_prep.base.style import printable

WAIT = 60.0
"""Seconds to wait for another process; a write takes milliseconds."""
INFORM_AFTER = 1.0
"""Seconds after which the user is informed what the run waits for."""
PAUSE = 0.02
NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
LOCKS = Path("/proc/locks")


class LockWait:
    """One wait for the lock of ``path``: at most ``timeout`` seconds, which ``tell`` reports once."""

    def __init__(self, path: Path, timeout: float, tell: Callable[[str], None]) -> None:
        self._path, self._timeout, self._tell = path, timeout, tell
        self._started, self._informed = time.monotonic(), False

    def lock(self, descriptor: int) -> None:
        """Lock an open file or folder; raises FileLocked, PrepError if its file system has no locks, OSError."""
        while not self._try_lock(descriptor):
            self._wait(descriptor)

    def _try_lock(self, descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            what = f"{self._path} cannot be locked: its file system has no locks ({error.strerror})"
            fix = "keep it on a local file system, or have the NFS server's lock service started"
            raise PrepError(f"{what}; {fix}") from error
        return True

    def _wait(self, descriptor: int) -> None:
        waited = time.monotonic() - self._started
        if waited >= self._timeout:
            fix = "end that process if it hangs, or run the command again later"
            raise FileLocked(
                f"{self._path} is locked by {_holder(descriptor)} for more than {self._timeout:.0f} s; {fix}"
            )
        if waited >= INFORM_AFTER and not self._informed:
            holder = _holder(descriptor)
            self._tell(f"waiting for {self._path}, which is locked by {holder}, at most {self._timeout:.0f} s")
            self._informed = True
        time.sleep(PAUSE * (0.5 + random.random()))


def _holder(descriptor: int) -> str:
    """Return the process that holds the lock, as far as this machine shows it."""
    found = os.fstat(descriptor)
    lines = _locks()
    device = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    # overlayfs and btrfs give files another device than their locks
    pids = [pid for pid, place in lines if place == device] or [
        pid for pid, place in lines if place.rpartition(":")[2] == str(found.st_ino)
    ]
    if not pids or pids[0] <= 0:
        return "another process, perhaps on another machine"
    if pids[0] == os.getpid():
        return "another step of this run"
    return f"process {pids[0]}{_command(pids[0])}"


def _locks() -> list[tuple[int, str]]:
    """Return the process ids and files of all flocks that are held; empty if the system does not show them."""
    try:
        lines = [line.split() for line in LOCKS.read_text().splitlines()]
    except OSError:
        return []
    return [(int(line[4]), line[5]) for line in lines if len(line) > 5 and line[1] == "FLOCK"]


def _command(pid: int) -> str:
    """Return the name of a process's program: its arguments may contain secrets."""
    try:
        name = Path(f"/proc/{pid}/comm").read_bytes().decode(errors="replace").strip()
    except OSError:
        return ""
    return f" ({printable(name)})" if name else ""
