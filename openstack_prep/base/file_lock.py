"""Locks between the processes and threads of openstack-prep that change the same file.

flock(2) belongs to an open file, so the kernel releases it with the process, and two threads exclude each other too. A
file itself cannot carry the lock, because each write replaces it: its folder does, or a separate file beside it. A
run that waits for longer than a second reports for which one.

Source: flock(2); proc(5), /proc/locks.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from openstack_prep.base.errors import FileLocked, PrepError
from openstack_prep.base.given_file import read_bytes
from openstack_prep.base.private_file import make_private_folder, remove_temporary, target_of
from openstack_prep.base.style import printable

# --- wait for flock(2) on an open file: not silently, not for ever, and naming who holds it ---

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


T = TypeVar("T")
LOCK = ".openstack-prep.lock"
"""Name of the lock file of a folder that cannot be locked itself."""
WAIT_FOR_TURN = 600.0
"""Seconds to wait for a run that does several writes, with requests to OpenStack and retries in between."""

_log = logging.getLogger(__name__)


@contextlib.contextmanager
def one_writer(path: Path) -> Iterator[Path]:
    """Prevent others from changing files in the folder of a file, and yield the file itself if ``path`` is a link.

    What is judged in this block still holds when it writes. Not reentrant. Raises PrepError.
    """
    target = target_of(path)
    with one_writer_in(target.parent, named=path):
        remove_temporary(target)
        yield target


@contextlib.contextmanager
def writer_after(judge: Callable[[], T], path: Path, *others: Path) -> Iterator[tuple[Path, T]]:
    """Do the same for a writer that has judged the file, and ``others`` in its folder; also yield the judgement.

    ``judge`` may ask OpenStack, which may take minutes to answer: it is called without the lock, for which others wait
    only ``WAIT`` seconds, and again if one of the files has changed by the time the lock is held.
    """
    while True:
        judged = [_content(each) for each in (path, *others)]
        judgement = judge()
        with one_writer(path) as target:
            if [_content(each) for each in (path, *others)] == judged:
                for each in others:
                    remove_temporary(target_of(each))
                yield target, judgement
                return


def _content(path: Path) -> bytes | None:
    """Return what a file contains; None if it does not exist or cannot be read, which its judge reports."""
    try:
        return read_bytes(path)
    except OSError:
        return None


@contextlib.contextmanager
def one_writer_in(folder: Path, *, named: Path | None = None) -> Iterator[None]:
    """Prevent others from changing files in a folder, which is created if necessary; errors contain ``named``."""
    folder = Path(os.path.realpath(folder))
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(_locked(folder, folder, os.O_RDONLY, LockWait(named or folder, WAIT, _log.warning)))
        except OSError as error:
            if error.errno != errno.EBADF:
                raise PrepError(f"{named or folder} cannot be written: {error}") from error
            # Linux's NFS client locks only what is open for writing, which a folder never is: flock(2), "NFS details"
            stack.enter_context(_locked_file(folder / LOCK, LockWait(named or folder, WAIT, _log.warning)))
        yield


@contextlib.contextmanager
def turn(path: Path) -> Iterator[None]:
    """Let one run at a time do what takes several writes of a file; single writes of others continue meanwhile.

    The lock is on a separate file, which is empty and kept: if it were deleted, two runs could lock two files with the
    same name.
    """
    target = target_of(path)
    lock = target.with_name(f".{target.name}.lock")
    with _locked_file(lock, LockWait(path, WAIT_FOR_TURN, _log.warning)):
        yield


@contextlib.contextmanager
def _locked_file(lock: Path, waiting: LockWait) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(_locked(lock.parent, lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, waiting))
        except OSError as error:
            raise PrepError(f"{lock} cannot be written: {error}") from error
        yield


@contextlib.contextmanager
def _locked(folder: Path, lock: Path, flags: int, waiting: LockWait) -> Iterator[None]:
    descriptor = _lock(folder, lock, flags, waiting)
    try:
        yield
    finally:
        os.close(descriptor)


def _lock(folder: Path, lock: Path, flags: int, waiting: LockWait) -> int:
    """Return the descriptor of a locked file or folder; one that was removed while we waited is opened again."""
    while True:
        make_private_folder(folder)
        descriptor = _open(folder, lock, flags | os.O_CLOEXEC)
        try:
            waiting.lock(descriptor)
            if os.path.samestat(os.fstat(descriptor), os.stat(lock)):
                return descriptor
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _open(folder: Path, lock: Path, flags: int) -> int:
    """Open a lock file, which is created if necessary, or a folder.

    Whoever may write to the folder may use a new lock file, also one of root. Nothing is changed of an existing file:
    somebody may have given the lock's name to a file with secrets.
    """
    if flags & os.O_CREAT:
        with contextlib.suppress(FileExistsError):
            descriptor = os.open(lock, flags | os.O_EXCL, 0o600)
            with contextlib.suppress(PermissionError):  # of a file system without modes and owners
                _share(descriptor, os.stat(folder))
            return descriptor
    return os.open(lock, flags, 0o600)


def _share(descriptor: int, folder: os.stat_result) -> None:
    """Give a file to the owner and the writers of its folder."""
    writers = folder.st_mode & 0o022
    if writers:
        os.fchmod(descriptor, 0o600 | writers | writers << 1)  # who writes reads, too
    if os.geteuid() == 0:
        os.fchown(descriptor, folder.st_uid, folder.st_gid)
