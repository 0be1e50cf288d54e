"""Lock a file that others replace while they hold its lock.

The lock is flock(2) on the file itself, so no further file is needed, and the kernel releases it with the process. Who
gets the lock of a file that was replaced meanwhile retries with the new one. Source: flock(2); proc(5), /proc/locks.
NFS clients before Linux 2.6.12 ignore flock; later ones translate it to locks of the server, which needs a descriptor
that is open for writing.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import random
import re
import shlex
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from openstack_prep.base.errors import ConfigError, FileLocked, PrepError
from openstack_prep.base.style import printable

WAIT = 60.0
"""Seconds to wait for another process; a write takes milliseconds."""
INFORM_AFTER = 1.0
"""Seconds after which the user is informed what the run waits for."""
PAUSE = 0.02
NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
LOCKS = Path("/proc/locks")
LONGEST = 80
TEMPORARY = "[a-z0-9_]{8}"
"""How the temporary files of tempfile.mkstemp end; an editor's .NAME.swp is no such file."""


@contextlib.contextmanager
def locked(
    path: Path, *, create: bool = False, timeout: float = WAIT, tell: Callable[[str], None] = lambda text: None
) -> Iterator[Path]:
    """Lock a file, and yield the path of the file itself if ``path`` is a link.

    A missing file is created empty if ``create`` is set, and removed again if the block fails. Raises
    FileNotFoundError, FileLocked and other PrepErrors.
    """
    until, informed = time.monotonic() + timeout, False

    def waits(descriptor: int) -> None:
        nonlocal informed
        now = time.monotonic()
        holder = _holder(descriptor) if now >= until or (not informed and now >= until - timeout + INFORM_AFTER) else ""
        if now >= until:
            fix = "end that process if it hangs, or run the command again later"
            raise FileLocked(f"{path} is locked by {holder} for more than {timeout:.0f} s; {fix}")
        if holder:
            tell(f"waiting for {path}, which is locked by {holder}, at most {timeout:.0f} s")
            informed = True
        time.sleep(PAUSE * (0.5 + random.random()))

    descriptor, target = _lock(path, create, waits)
    try:
        _remove_temporary(target)
        yield target
    except BaseException:
        if create and _is_at(descriptor, target) and not os.fstat(descriptor).st_size:
            target.unlink()
        raise
    finally:
        os.close(descriptor)


def _lock(path: Path, create: bool, waits: Callable[[int], None]) -> tuple[int, Path]:
    """Return the descriptor of the locked file and the file's own path; ``waits`` is called before each new attempt."""
    while True:
        target = Path(os.path.realpath(path))
        descriptor = _open(path, target, create)
        try:
            while not _try_lock(descriptor, path):
                waits(descriptor)
            if _is_at(descriptor, target):
                return descriptor, target
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _open(path: Path, target: Path, create: bool) -> int:
    try:
        if create:
            target.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_NONBLOCK | (os.O_CREAT if create else 0)
        descriptor = os.open(target, flags, 0o644)
    except FileNotFoundError:
        if not create:
            raise
        raise PrepError(f"{path} cannot be created: its folder was removed") from None
    except OSError as error:
        fix = "change its permissions or those of its folder, or choose another file"
        raise PrepError(f"{path} cannot be written: {error.strerror}; {fix}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ConfigError(f"{path} cannot be written: it is not a regular file; choose another one")
    return descriptor


def _try_lock(descriptor: int, path: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        what = f"{path} cannot be locked: its file system has no locks ({error.strerror})"
        fix = "keep it on a local file system, or have the NFS server's lock service started"
        raise PrepError(f"{what}; {fix}") from error
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether the path still names the open file, which others may have replaced or removed."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _remove_temporary(path: Path) -> None:
    """Remove what killed writers have left: only who holds the lock writes temporary files, which is this run now."""
    name = re.compile(rf"\.{re.escape(path.name)}\.{TEMPORARY}")
    for each in path.parent.iterdir():
        if name.fullmatch(each.name):
            with contextlib.suppress(OSError):  # of another user, in a folder with the sticky bit: it does no harm
                each.unlink()


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
    return f"process {pids[0]}{_command(pids[0])}"


def _locks() -> list[tuple[int, str]]:
    """Return the process ids and files of all flocks that are held; empty if the system does not show them."""
    try:
        lines = [line.split() for line in LOCKS.read_text().splitlines()]
    except OSError:
        return []
    return [(int(line[4]), line[5]) for line in lines if len(line) > 5 and line[1] == "FLOCK"]


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
    except OSError:
        return ""
    command = shlex.join(words) if any(words) else ""
    command = command if len(command) <= LONGEST else command[: LONGEST - 3] + "..."
    return f" ({printable(command)})" if command else ""
