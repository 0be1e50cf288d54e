"""This process as others on the same host can recognise it, and whether another one is still alive.

Source: proc(5) and pid_namespaces(7): containers share the host's boot id, but not its process ids.
"""

from __future__ import annotations

import getpass
import os
import socket
from pathlib import Path

PROC = Path("/proc")


def place() -> str:
    """Return what names the host since it started, and our process namespace; empty when it cannot be known."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink(PROC / 'self/ns/pid')}" if boot else ""
    except OSError:
        return ""


def started(pid: int) -> str:
    """Return when a process started, in ticks since the host did; empty when it cannot be known.

    One that has ended, and that its parent has not noticed yet, has "ended".
    """
    try:
        # the name in parentheses may hold anything; the start is field 22, and 3 is the first behind the name
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return "ended" if fields[0] in "ZX" else fields[19]
    except (OSError, IndexError):
        return ""


def exists(pid: int) -> bool:
    """Whether a process of our namespace has that id; other users' count, though /proc may hide them."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def owner() -> str:
    """Return user@host, for people."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container's user may have no name
        user = f"uid{os.getuid()}"
    return f"{user}@{socket.gethostname().partition('.')[0]}"
