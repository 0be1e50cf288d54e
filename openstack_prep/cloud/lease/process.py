"""Identify this process for others on the same host, and detect whether another process still runs.

Source: proc(5) and pid_namespaces(7): containers share the host's boot id, but not its process ids.
"""

from __future__ import annotations

import getpass
import os
import socket
from pathlib import Path

from openstack_prep.cloud.lease.text import Entry, digest

PROC = Path("/proc")


def place() -> str:
    """Return an id of the host since it booted, and of our process namespace; empty if unknown."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink(PROC / 'self/ns/pid')}" if boot else ""
    except OSError:
        return ""


def started(pid: int) -> str:
    """Return when a process started, in ticks since the host booted; empty if unknown.

    For a process that has ended and whose parent has not noticed yet, return "ended".
    """
    try:
        # the name in parentheses may contain anything; the start is field 22, and field 3 follows the name
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return "ended" if fields[0] in "ZX" else fields[19]
    except (OSError, IndexError):
        return ""


def exists(pid: int) -> bool:
    """Whether a process with this id exists in our namespace, including other users', which /proc may hide."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def here() -> str:
    """Return the digest of this host and process namespace, as entries have it; empty if unknown."""
    found = place()
    return found and digest(found)


def has_ended(holder: Entry) -> bool:
    """Whether the process of a lease's holder has ended; False for one that runs elsewhere, which is not known."""
    if not holder.place or holder.place != here():
        return False
    start = started(holder.pid)
    return not exists(holder.pid) or (bool(start) and digest(start, 3) != holder.start)


def owner() -> str:
    """Return user@host, for people."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # the user of a container may have no name
        user = f"uid{os.getuid()}"
    return f"{user}@{socket.gethostname().partition('.')[0]}"
