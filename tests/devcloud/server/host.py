"""Runs one OpenStack project behind a warm parent process.

    python -m tests.devcloud.server.host NAME HOME PORT [PORT_IT_NEEDS ...]

The parent has imported what the project needs; the service is a fork of it.  So a service with
fresh state costs a fork, not ten seconds of imports.  The parent obeys signals: SIGUSR1 ends the
service, SIGUSR2 starts one, SIGTERM ends both.
"""

import gc
import os
import signal
import sys
import time
import traceback

from tests.devcloud.server import lifeline

THREADS = 16
ORDERS = {signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGCHLD}


def say(text):
    print(f"devcloud: {text}", flush=True)


def serve(name, home, port, needs):
    """The service itself, in a process of its own.

    A start that fails must end the process by force: worker threads would keep it alive.
    """
    started = time.monotonic()
    try:
        from tests.devcloud.server import middleware, once_tuning, orm_tuning, projects, rpc_tuning, sqlite_tuning, wsgi

        middleware.sign_requests(name)
        sqlite_tuning.tune()
        orm_tuning.tune()
        rpc_tuning.tune()
        once_tuning.tune()
        if name == "heat":
            from tests.devcloud.server import yaql_tuning

            yaql_tuning.tune()
        if name == "neutron":
            from tests.devcloud.server import neutron_tuning

            neutron_tuning.tune()
            once_tuning.tune_pecan()
        built = projects.application(name, f"{home}/etc/{name}", needs)
        if name == "keystone":
            from tests.devcloud.server import keystone_tuning

            built = keystone_tuning.Cautious(built)
        server = wsgi.server(middleware.Watch(built, name, home), port, THREADS)
        gc.freeze()
        gc.set_threshold(50_000, 20, 100)  # its default walks the whole process several times a request
        say(f"{name} started in {time.monotonic() - started:.1f} s, listens on {port}")
        server.serve()
    finally:
        traceback.print_exc()
        os._exit(1)


def fork(parent, *arguments):
    """Start the service; it ends with its parent, whatever ends that."""
    child = os.fork()
    if child:
        return child
    lifeline.die_with(parent)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ORDERS)
    serve(*arguments)


def supervise(*arguments):
    """Obey orders until SIGTERM, or until the service falls over by itself."""
    parent, child, order = os.getpid(), None, signal.SIGUSR2
    while True:
        if order in (signal.SIGUSR1, signal.SIGTERM) and child:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            child = None
        if order == signal.SIGTERM:
            return
        if order == signal.SIGUSR2 and not child:
            child = fork(parent, *arguments)
        if order == signal.SIGCHLD and child and os.waitpid(child, os.WNOHANG)[0]:
            sys.exit(1)
        order = signal.sigwait(ORDERS)


def main():
    name, home, port, *needs = sys.argv[1:]
    sys.argv = [name]  # projects parse it
    signal.pthread_sigmask(signal.SIG_BLOCK, ORDERS)
    started = time.monotonic()
    from tests.devcloud.server import projects

    projects.preload(name)
    gc.freeze()  # what was imported stays shared with the forks
    say(f"{name} imported in {time.monotonic() - started:.1f} s")
    supervise(name, home, int(port), [int(need) for need in needs])


if __name__ == "__main__":
    main()
