"""Runs several commands of a project's management tool for the price of one import.

    python -m tests.devcloud.server.manage MODULE JSON_LIST_OF_ARGUMENT_LISTS

Every command gets a fork of its own, so that none sees the configuration that another has parsed.
"""

import importlib
import json
import os
import sys
import time
import traceback

from tests.devcloud.server import lifeline, sqlite_tuning


def run(main, name, arguments):
    """Exit code of a command, run in a fork."""
    parent, child = os.getpid(), os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    lifeline.die_with(parent)
    code = 1
    try:
        sys.argv[:] = [name, *arguments]  # swift has kept the list itself
        code = main() or 0
    except SystemExit as exit_:
        code = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    finally:
        if sys.exc_info()[0]:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main():
    module, commands = sys.argv[1], json.loads(sys.argv[2])
    lifeline.die_with(os.getppid())  # a build that was killed must not go on behind the next one
    if module.startswith(("heat.", "keystone.")):
        sqlite_tuning.use_no_id_twice()
    command = importlib.import_module(module).main
    for arguments in commands:
        started = time.monotonic()
        print(f"$ {module} {' '.join(arguments)}", flush=True)
        if code := run(command, module, arguments):
            sys.exit(f"devcloud: exit code {code}")
        print(f"devcloud: {time.monotonic() - started:.1f} s", flush=True)


if __name__ == "__main__":
    main()
