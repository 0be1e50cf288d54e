"""Write a file completely or not at all; a file with secrets has mode 0600 from its first byte."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from openstack_prep.base.errors import ConfigError, PrepError

PRIVATE = "0600"
TEMPORARY = "openstack-prep-"
"""What follows the name of a file in that of its temporary file, before what tempfile.mkstemp adds.

Anybody may call a copy of the file .NAME.original or .NAME.20261126, which is as long as that.
"""


CHOOSE_FOLDER = (
    "store it in a folder of a file system with modes, or mount this one with a mode for its owner alone "
    "(vfat, exFAT, NTFS: uid=, umask=077; CIFS: uid=, file_mode=0600)"
)


def mode(path: Path) -> str:
    """Return a file's mode as in ``chmod``.

    Any mode that only the owner can read counts as 0600, and so does the one that its file system gives to all files:
    writing the file again would not change it.
    """
    found = path.stat().st_mode & 0o777
    return f"{found:04o}" if found & 0o077 and not _has_forced_modes(path.parent) else PRIVATE


def _has_forced_modes(folder: Path) -> bool:
    """Whether a file system gives its own mode to a file that is created with 0600, such as vfat or CIFS."""
    new = _new_file(folder)
    return new is not None and bool(new.st_mode & 0o077)


def _new_file(folder: Path) -> os.stat_result | None:
    """Return mode and owner of a file that is created with 0600 in a folder; None if it is not writable."""
    try:
        with tempfile.NamedTemporaryFile(prefix=".mode.", dir=folder) as probe:
            return os.fstat(probe.fileno())
    except OSError:
        return None


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, replacing an old one atomically.

    The text goes to a new file in the same folder, which then replaces the old one, so a full disk or a kill leaves the
    old file unchanged. A link is followed: its target is replaced. A mode stricter than 0600 is kept, and the owner,
    who otherwise could not read the file any more. Raises PrepError.
    """
    _replace(target_of(path), text, _keep_stricter_mode_and_owner, make_private_folder)


def target_of(path: Path) -> Path:
    """Return the file that a path leads to: itself, or through any number of links the file where they end.

    The file may not exist yet. Raises ConfigError for links that form a cycle, or end in a folder that does not exist:
    whoever made the link expects that folder, such as a disk that is not mounted.
    """
    target = Path(os.path.realpath(path))  # resolve() fails on a link to itself
    if target.is_symlink():  # realpath() returns where it gave up
        raise ConfigError(f"{path} cannot be written: it is a link that leads back to itself; remove the link")
    if path.is_symlink() and not target.parent.is_dir():
        what = f"it is a link to {target}, and {target.parent} does not exist"
        raise ConfigError(f"{path} cannot be written: {what}; create that folder, or remove the link")
    return target


def remove_file(path: Path) -> None:
    """Remove a file if it exists; of a link, the file that it leads to: no link is removed."""
    target_of(path).unlink(missing_ok=True)


def make_private_folder(folder: Path) -> None:
    """Create a folder and its missing parents for their owner alone, whatever the umask.

    In a folder that others may write to, they could replace the files. The mode of existing ones is kept. Raises
    OSError.
    """
    # not with parents=True, which gives the parents the mode of the umask
    for each in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        each.mkdir(mode=0o700, exist_ok=True)
    folder.mkdir(exist_ok=True)  # fails for a file


def remove_temporary(path: Path) -> None:
    """Remove what killed writers of a file have left beside it: its whole content under a temporary name.

    For a caller who excludes other writers. Only our own regular files with such a name are removed.
    """
    name = re.compile(rf"\.{re.escape(path.name)}\.{TEMPORARY}[a-z0-9_]{{8}}")
    with contextlib.suppress(OSError):  # a folder that is missing, or cannot be listed
        for entry in os.scandir(path.parent):
            if name.fullmatch(entry.name) and _is_own_file(entry.path):
                with contextlib.suppress(OSError):  # in a folder that is not writable, which the write reports
                    os.unlink(entry.path)


def _make_temporary(path: Path) -> tuple[int, str]:
    """Create the temporary file of a file, and return its descriptor and path."""
    return tempfile.mkstemp(prefix=f".{path.name}.{TEMPORARY}", dir=path.parent)


def _is_own_file(path: str) -> bool:
    found = os.lstat(path)
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def create_once(path: Path, text: str) -> None:
    """Write a file that only its owner can read, unless it exists by then: the first of several writers wins.

    The complete file gets its name by link(2), which fails if the name exists; so nobody ever reads a part of it, and
    nobody's file is replaced. Raises PrepError.
    """
    target = target_of(path)
    try:
        make_private_folder(target.parent)
        descriptor, name = _make_temporary(target)  # created with 0600
    except OSError as error:
        raise PrepError(f"{path} cannot be written: {error.strerror}: {target.parent}") from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            if os.fstat(descriptor).st_mode & 0o077:
                what = "its file system lets other users of this machine read each file"
                raise ConfigError(f"{path} is not created: {what}; {CHOOSE_FOLDER}")
            file.write(text)
            file.flush()
            # on the disk before it has its name: after a power failure the file is complete or absent
            os.fsync(file.fileno())
        _name_once(name, target)
    except OSError as error:
        raise PrepError(f"{path} cannot be written: {error}") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def _name_once(name: str, target: Path) -> None:
    """Give a file a further name, unless a file has it."""
    try:
        os.link(name, target)
    except FileExistsError:
        pass
    except FileNotFoundError:  # a faster run has removed it, by remove_temporary
        if not target.exists():
            raise
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS):
            raise
        if not target.exists():  # a file system without hard links, such as exFAT
            os.replace(name, target)


def write_private_here(path: Path, text: str) -> None:
    """Write a file that only its owner can read, at exactly this path: a link is replaced, not followed.

    For a file in a folder where others may have planted the link, such as /tmp. The folder must exist. Raises
    PrepError.
    """
    _refuse_missing_folder(path)
    _replace(path, text, lambda path, descriptor: None)


def create_private(path: Path, text: str) -> None:
    """Write a new file that only its owner can read; whatever exists at this path, also a link, is an error.

    For a file that replaces none. Raises PrepError, ConfigError for what exists.
    """
    _refuse_missing_folder(path)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise ConfigError(f"{path} exists; choose another file, or delete it") from None
    except OSError as error:
        raise PrepError(f"{path} cannot be written: {error.strerror}; choose another file") from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        if isinstance(error, OSError):
            raise PrepError(f"{path} cannot be written: {error}") from error
        raise


def write_readable_here(path: Path, text: str) -> None:
    """Write a file that others may read, at exactly this path: a link is replaced, not followed.

    For a file without secrets that another user collects, such as the runner of a pipeline. Raises PrepError.
    """
    _refuse_missing_folder(path)
    _replace(path, text, lambda path, descriptor: os.fchmod(descriptor, 0o644))


def _refuse_missing_folder(path: Path) -> None:
    if not path.parent.is_dir():
        raise PrepError(f"{path} cannot be written: {path.parent} is not a directory; create it, or choose another one")


def write_shared(path: Path, text: str) -> None:
    """Write a file that others read, in the same way; mode and owner of an old file are kept, a new one is 0644.

    Raises PrepError, also if the owner differs and the process may not change the owner of a file.
    """
    target = target_of(path)
    _replace(target, text, _keep_mode_and_owner)
    _sync_folder(target)


def _sync_folder(path: Path) -> None:
    """Have the folder's new content written to the disk; without that, a power failure could bring the old file back.

    Some file systems, such as CIFS, cannot do that for a folder and answer EINVAL.
    """
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise PrepError(f"{path} was written, but may be lost in a power failure: {error}") from error
    finally:
        os.close(descriptor)


def _keep_stricter_mode_and_owner(path: Path, descriptor: int) -> None:
    if not path.exists():
        return
    old = path.stat()
    if not old.st_mode & 0o177:
        os.fchmod(descriptor, old.st_mode & 0o777)
    if old.st_uid != os.fstat(descriptor).st_uid:
        os.fchown(descriptor, old.st_uid, old.st_gid)


def _keep_mode_and_owner(path: Path, descriptor: int) -> None:
    if not path.exists():
        os.fchmod(descriptor, 0o644)
        return
    old, new = path.stat(), os.fstat(descriptor)
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, old.st_mode & 0o7777)  # chown may have cleared bits


def refuse_unwritable(path: Path) -> None:
    """Raise ConfigError if a file cannot be written, as far as links, kinds of files and rights show it."""
    target = target_of(path)
    _refuse_target(target)
    folder = next(parent for parent in target.parents if os.path.lexists(parent))
    if not folder.is_dir():
        raise ConfigError(f"{path} cannot be written: {folder} is not a directory; choose another file")
    if not os.access(folder, os.W_OK | os.X_OK):
        fix = "change its permissions, or choose another file"
        raise ConfigError(f"{path} cannot be written: {folder} is not writable; {fix}")


def _refuse_target(path: Path) -> None:
    if not path.exists() or path.is_symlink():
        return
    if not path.is_file():  # root could replace /dev/null
        raise ConfigError(f"{path} cannot be written: it is not a regular file; choose another one")
    owner, me = path.stat().st_uid, os.geteuid()
    # a mount with uid= gives all files one owner
    if me not in (0, owner) and getattr(_new_file(path.parent), "st_uid", me) != owner:
        raise ConfigError(f"{path} cannot be written: the file belongs to another user; choose another one")


def _make_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)


def _replace(
    path: Path,
    text: str,
    prepare: Callable[[Path, int], None],
    make_folder: Callable[[Path], None] = _make_folder,
) -> None:
    _refuse_target(path)
    try:
        make_folder(path.parent)
        descriptor, name = _make_temporary(path)  # created with 0600
    except OSError as error:  # it names a temporary file
        fix = "; choose another file, or run this as a user who may write there"
        what = f"{path} cannot be written: {error.strerror}: {path.parent}"
        raise PrepError(what + (fix if isinstance(error, PermissionError) else "")) from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
            # mode and owner before the first byte, so that nobody can read it in between
            prepare(path, descriptor)
            file.write(text)
            file.flush()
            # on the disk before the rename: otherwise a power failure may leave an empty file under the name
            os.fsync(file.fileno())
        _replace_file(name, path)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        if isinstance(error, OSError):
            raise PrepError(f"{path} cannot be written: {error}; the file was not changed") from error
        raise


def _replace_file(name: str, path: Path) -> None:
    """Rename a file, or write into the target if a container has it mounted, as it has /etc/hosts."""
    try:
        os.replace(name, path)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        # rename(2) cannot replace a mount point, so the mounted file itself is written
        shutil.copymode(name, path)
        _write_over(path, Path(name).read_bytes())
        os.unlink(name)


def _write_over(path: Path, content: bytes) -> None:
    """Write into a file, after ensuring that there is room before the first byte changes."""
    with path.open("r+b") as file:
        size = os.fstat(file.fileno()).st_size
        try:
            # the old content is lost as soon as this begins, so a full disk must show before
            os.posix_fallocate(file.fileno(), 0, max(1, len(content)))
        except OSError:
            file.truncate(size)
            raise
        file.write(content)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())
