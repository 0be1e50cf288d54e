"""One engine for tasks, in an environment of its own: prints seconds of its import, start and tasks as JSON.

python engine_trial.py dask|ray|parsl|processes

Each has two processes on this machine, encrypted where the engine can do that by itself, and as little beside it as
it allows.  A start has ended when both processes have carried out something.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, wait
from contextlib import AbstractContextManager
from typing import Any

PROCESSES = 2
TASKS = 1000

Submit = Callable[..., "Future[Any]"]
Started = AbstractContextManager[Submit]


def dask() -> Callable[[], Started]:
    import distributed

    @contextlib.contextmanager
    def start() -> Iterator[Submit]:
        size: Any = {"n_workers": PROCESSES, "threads_per_worker": 1, "memory_limit": 0}
        cluster = distributed.LocalCluster(security=True, dashboard_address=None, **size)
        with cluster, distributed.Client(cluster) as client:
            client.wait_for_workers(PROCESSES)
            yield client.get_executor(pure=False).submit

    return start


def ray() -> Callable[[], Started]:
    import ray

    @contextlib.contextmanager
    def start() -> Iterator[Submit]:
        place: Any = {"_temp_dir": os.path.abspath("ray"), "object_store_memory": 2**27}
        ray.init(num_cpus=PROCESSES, include_dashboard=False, log_to_driver=False, **place)
        ready = ray.remote(nothing)
        try:
            yield lambda function, *words: ready.remote(*words).future()  # Ray has no Executor
        finally:
            ray.shutdown()

    return start


def parsl() -> Callable[[], Started]:
    from parsl.concurrent import ParslPoolExecutor
    from parsl.config import Config
    from parsl.executors import HighThroughputExecutor
    from parsl.providers import LocalProvider

    @contextlib.contextmanager
    def start() -> Iterator[Submit]:
        here = LocalProvider(init_blocks=1, max_blocks=1)
        size = {"max_workers_per_node": PROCESSES, "cores_per_worker": 0.01}
        config = Config(
            executors=[HighThroughputExecutor(address="127.0.0.1", encrypted=True, provider=here, **size)],
            strategy="none",
        )
        with ParslPoolExecutor(config) as executor:
            yield executor.submit

    return start


def processes() -> Callable[[], Started]:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    @contextlib.contextmanager
    def start() -> Iterator[Submit]:
        pool: Executor
        with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
            yield pool.submit

    return start


def nothing(seconds: float = 0) -> None:
    """Do the work of a task."""
    if seconds:
        time.sleep(seconds)


ENGINES = {each.__name__: each for each in (dask, ray, parsl, processes)}


def main(name: str) -> None:
    began = time.monotonic()
    start = ENGINES[name]()
    imported = time.monotonic()
    with start() as submit:
        wait([submit(nothing, 0.05) for _ in range(PROCESSES)])
        started = time.monotonic()
        futures = [submit(nothing) for _ in range(TASKS)]
        for each in futures:
            each.result()
        ended = time.monotonic()
        print(json.dumps({"import": imported - began, "start": started - imported, "tasks": ended - started}))
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
