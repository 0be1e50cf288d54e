"""Reads a file that a person names: a spec, a secret, a key, or a pipe such as ``<(sops -d spec.yaml)``.

Only regular files, pipes and terminals are read, and no more of them than fits what they are: a device such as
/dev/zero has no end, and a pipe that no program writes to says nothing.
"""

from __future__ import annotations

import errno
import logging
import os
import select
import stat
import time
from pathlib import Path

KIB, MIB = 2**10, 2**20
MOST = 16 * MIB  # a spec has some kilobytes
MOST_SECRET = MIB
MOST_KEY = 64 * KIB
STDIN = "/dev/stdin"
READ = (stat.S_ISREG, stat.S_ISFIFO, stat.S_ISSOCK, stat.S_ISDIR)  # Python refuses a directory
CHUNK = MIB
ROUND = 0.2
"""Seconds. A signal that comes between Python's last look and a blocking call is heard when that call returns."""
QUIET = 5.0
"""Seconds without data after which a person learns what is waited for."""
PATIENCE = 600.0
"""Seconds without data after which a pipe is given up: a program that fills it may ask for a key to be touched."""

_log = logging.getLogger(__name__)


def read_text(path: Path, most: int = MOST) -> str:
    """Return the text of a file or pipe in UTF-8, with ``\\n`` as line end.

    Raises OSError if it cannot be read, is neither a regular file, a pipe nor a terminal, has more than ``most`` bytes,
    or is silent for too long; UnicodeDecodeError if it is not UTF-8.
    """
    return read_bytes(path, most).decode().replace("\r\n", "\n").replace("\r", "\n")


def read_bytes(path: Path, most: int = MOST) -> bytes:
    """Return the content of a file or pipe; raises OSError like ``read_text``."""
    content = bytearray()
    with open(path, "rb", buffering=0, opener=_at_once) as file:
        ready = select.poll()
        ready.register(file, select.POLLIN)
        silence = _Silence(path)
        while len(content) <= most:
            if not ready.poll(ROUND * 1000):
                silence.lasts()
                continue
            chunk = file.read(min(CHUNK, most + 1 - len(content)))
            if chunk == b"":
                return bytes(content)
            content += chunk or b""  # None: another reader of the pipe was faster
            silence = _Silence(path)
    raise OSError(errno.EFBIG, f"it has more than {_size(most)}", str(path))


def unreadable(error: OSError | UnicodeDecodeError) -> str:
    """Return that a file cannot be read, and why, without its path."""
    if isinstance(error, UnicodeDecodeError):
        return f"cannot be read: it is not UTF-8 text from byte {error.start} on"
    return f"cannot be read: {error.strerror or error}"


def name_of(path: str | Path) -> str:
    """Return how messages name a file: by its path, or as standard input.

    Somebody may give the text of a spec or kubeconfig in the place of its path: it is not repeated.
    """
    if "\n" in str(path):
        return "a text in the place of a path"
    return "standard input" if str(path) in (STDIN, "-") else str(path)


def folder_of(path: Path) -> Path:
    """Return the folder that relative paths in a file refer to: its own, also if ``path`` is a link to the file.

    What comes through a pipe or standard input has no folder: the current one takes its place, as for a shell's user.
    """
    through = os.path.abspath(path).startswith(("/dev/stdin", "/dev/fd/", "/proc/"))
    if through or (path.exists() and not path.is_file()):
        return Path.cwd()
    return Path(os.path.realpath(path)).parent


def refuse_special(path: Path, *, allow_disk: bool = False) -> None:
    """Raise OSError if a path is not a regular file, or a disk, for readers of their own; it is not opened."""
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or (allow_disk and stat.S_ISBLK(mode))):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))


class _Silence:
    """The time since a pipe has last delivered anything."""

    def __init__(self, path: Path) -> None:
        self.path, self.since, self.reported = path, time.monotonic(), False

    def lasts(self) -> None:
        """Report it when it has lasted for a while; raises OSError when it has lasted for too long."""
        seconds = time.monotonic() - self.since
        if seconds >= PATIENCE:
            what = f"no program has written to it for {PATIENCE:.0f} seconds"
            raise OSError(errno.ETIMEDOUT, what, str(self.path))
        if seconds >= QUIET and not self.reported:
            self.reported = True
            _log.warning("waiting for a program to write to %s (at most %.0f s)", ascii(name_of(self.path)), PATIENCE)


def _size(most: int) -> str:
    return f"{most // MIB} MiB" if most >= MIB else f"{most // KIB} KiB"


def _at_once(path: str, flags: int) -> int:
    """Open a file without waiting for another program that writes to it."""
    # a socket, which standard input may be, cannot be opened by its name
    descriptor = os.dup(0) if path == STDIN else os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
    mode = os.fstat(descriptor).st_mode
    if any(fits(mode) for fits in READ) or os.isatty(descriptor):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is not a regular file or a pipe", path)
