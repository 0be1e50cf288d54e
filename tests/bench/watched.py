"""Runs a command, and prints what it and its children used, as JSON.

python watched.py COMMAND...    its exit code is the command's

A small process of its own, because Linux counts as a child's peak memory at least what its parent
held when it started it.
"""

from __future__ import annotations

import json
import os
import sys
import time

if __name__ == "__main__":
    started = time.monotonic()
    child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, 2, 1)])
    _, status, usage = os.wait4(child, 0)
    seconds = time.monotonic() - started
    taken = {"seconds": seconds, "memory": usage.ru_maxrss * 1024, "written": usage.ru_oublock * 512}
    print(json.dumps(taken | {"cpu": usage.ru_utime + usage.ru_stime}))
    sys.exit(os.waitstatus_to_exitcode(status))
