"""Lock a file that others replace while they hold its lock.

The lock is flock(2) on the file itself, so no further file is needed, and the kernel releases it with the process. Who
gets the lock of a file that was replaced meanwhile retries with the new one. Source: flock(2). NFS clients before Linux
2.6.12 ignore flock; later ones translate it to locks of the server, which needs a descriptor that is open for writing.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from openstack_prep.base.errors import ConfigError, PrepError
from openstack_prep.base.lock_wait import WAIT, LockWait
from openstack_prep.base.private_file import remove_temporary


@contextlib.contextmanager
def locked(
    path: Path, *, create: bool = False, timeout: float = WAIT, tell: Callable[[str], None] = lambda text: None
) -> Iterator[Path]:
    """Lock a file, and yield the path of the file itself if ``path`` is a link.

    A missing file is created empty if ``create`` is set, and removed again if the block fails. Raises
    FileNotFoundError, FileLocked and other PrepErrors.
    """
    descriptor, target = _lock(path, create, LockWait(path, timeout, tell))
    try:
        remove_temporary(target)  # only who holds the lock writes them, which is this run now
        yield target
    except BaseException:
        if create and _is_at(descriptor, target) and not os.fstat(descriptor).st_size:
            target.unlink()
        raise
    finally:
        os.close(descriptor)


def _lock(path: Path, create: bool, waiting: LockWait) -> tuple[int, Path]:
    """Return the descriptor of the locked file and the file's own path."""
    while True:
        target = Path(os.path.realpath(path))
        descriptor = _open(path, target, create)
        try:
            waiting.lock(descriptor)
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


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether the path still names the open file, which others may have replaced or removed."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
