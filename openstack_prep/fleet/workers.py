"""Orders carried out by the workers of a Dask scheduler: in other processes, also on other machines.

A lost worker's orders run again on others, which converges, as each apply does; leases keep a worker away that is only
out of reach. Workers need the same openstack-prep, and the files of the fleet, of its specs and of secrets in the same
places: they get paths and names, never secrets.

Sources: distributed 2026.8.0, client.py (submit, run, wait_for_workers), cfexecutor.py, deploy/local.py, security.py;
distributed.yaml (allowed-failures: after so many lost workers an order is given up).
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar

from openstack_prep.base.errors import ConfigError
from openstack_prep.base.extras import install
from openstack_prep.fleet.engine import Executors
from openstack_prep.fleet.order import Order, TargetOutcome, TargetStatus
from openstack_prep.fleet.scheduler import patience, reach
from openstack_prep.version import __version__

LOCAL, ANY = "local", ""
PAUSE = 2.0
"""Seconds between two looks for the workers that orders wait for."""
P = ParamSpec("P")
T = TypeVar("T")
PROFILE = "distributed.worker.profile.enabled"
"""The profiler of workers, which reads the frames of all threads: with Python before 3.11.9 they hang sooner or later.

Source: https://github.com/python/cpython/issues/106883
"""
FOLDER = "temporary-directory"
PRIVATE: dict[str, Any] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
"""Pages about tasks, and a proxy, which any user of this machine could read: Dask has them also without a dashboard."""


@contextlib.contextmanager
def on_workers(scheduler: str, *, jobs: int, processes: int | None = None) -> Iterator[Executors]:
    """Yield what makes executors for an engine; raises ConfigError.

    ``scheduler`` is an address such as tls://10.0.0.5:8786, or "local" for ``processes`` workers on this machine, by
    default one per processor, which carry out ``jobs`` orders at a time.
    """
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        what = f"--scheduler {scheduler} needs a package that is not installed"
        raise ConfigError(f"{what}; {install('fleet')}") from None
    except ValueError as error:  # a file of Dask's configuration
        raise ConfigError(f"--scheduler {scheduler}: {' '.join(str(error).split())}") from error
    with contextlib.ExitStack() as stack:
        stack.enter_context(_silenced())
        here = scheduler == LOCAL
        try:
            if not here:
                reach(scheduler)
            target = stack.enter_context(_local(distributed, jobs, processes)) if here else scheduler
            client = stack.enter_context(distributed.Client(target, timeout=patience(), set_as_default=False))
            _await_a_worker(client)
            _refuse_unfit(client)
        except ConfigError as error:
            raise ConfigError(f"--scheduler {scheduler}: {error}") from error
        except (OSError, RuntimeError, TimeoutError, ValueError, TypeError) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            fix = "use an address, or leave --scheduler out" if here else "look at the log of the scheduler"
            raise ConfigError(f"--scheduler {scheduler}: {reason}; {fix}") from error
        labels = _labels(client)
        yield lambda number: _Workers(client, labels)


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """Silence what our errors say: distributed gives levels of their own to its loggers, and logs tracebacks."""
    names = [each for each in logging.root.manager.loggerDict if each.split(".")[0] in ("distributed", "tornado")]
    loggers = [logging.getLogger(each) for each in ("asyncio", *names)]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for each, level in zip(loggers, levels, strict=True):
            each.setLevel(level)


@contextlib.contextmanager
def _local(distributed: Any, jobs: int, processes: int | None) -> Iterator[Any]:
    """Yield workers of this machine, which only this process can talk to, and which no Ctrl-C reaches."""
    settings: Any = importlib.import_module("dask.config")
    number = min(jobs, processes or os.cpu_count() or 1)
    # modules are looked for in this folder, which by default is one in /tmp that may belong to somebody else
    with tempfile.TemporaryDirectory(prefix="openstack-prep-", ignore_cleanup_errors=True) as folder:
        with _ignored(signal.SIGINT, signal.SIGHUP), settings.set(PRIVATE | {PROFILE: False, FOLDER: folder}):
            cluster = distributed.LocalCluster(
                n_workers=number,
                threads_per_worker=-(-jobs // number),
                security=True,  # certificates of its own, that live as long as it does
                dashboard_address="127.0.0.1:0",  # without one it warns when port 8787 is in use
                scheduler_kwargs={"dashboard": False},
                memory_limit=0,
                silence_logs=logging.CRITICAL,
            )
        with cluster:
            yield cluster


@contextlib.contextmanager
def _ignored(*numbers: int) -> Iterator[None]:
    """Ignore signals meanwhile, as processes that are started do from then on; only the main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _about() -> tuple[str, bool]:
    """Return the version of a worker, and whether it may hang."""
    settings: Any = importlib.import_module("dask.config")
    return __version__, sys.version_info < (3, 11, 9) and bool(settings.get(PROFILE, default=False))


def _await_a_worker(client: Any) -> None:
    """Wait for the first worker; raises ConfigError."""
    seconds = patience()
    try:
        client.wait_for_workers(1, timeout=seconds)
    except TimeoutError as error:
        what = f"the scheduler answers, but has had no worker for {seconds:g} s"
        raise ConfigError(f"{what}; start `dask worker`, or look at its log (with TLS: at its certificate)") from error


def _refuse_unfit(client: Any) -> None:
    """Raise ConfigError if a worker may hang, or has another release, whose orders and outcomes may differ."""
    try:
        found: dict[str, tuple[str, bool]] = client.run(_about)
    except Exception as error:
        what = f"a worker cannot import openstack_prep {__version__} ({type(error).__name__})"
        raise ConfigError(f"{what}; install it where `dask worker` runs") from error
    for address, (version, may_hang) in found.items():
        if may_hang:
            fix = "start it with DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED=False, or with a newer Python"
            raise ConfigError(f"worker {address}: its profiler makes it hang with Python before 3.11.9; {fix}")
        if version != __version__:
            raise ConfigError(f"worker {address} has openstack_prep {version}, not {__version__}; install the same")


def _labels(client: Any) -> frozenset[str]:
    """Return the names of the resources of all workers, as ``dask worker --resources "RegionOne=8"`` gives them.

    ANY is one of them if there is a worker.
    """
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return frozenset(label for worker in workers for label in (ANY, *worker["resources"]))


class _Workers(Executor):
    """An executor of ``concurrent.futures`` on a scheduler; an order goes to workers with the label of its region.

    An order for which no worker is left is given up after a while: Dask would let it wait for ever. Source: distributed
    2026.8.0, distributed.yaml (scheduler.no-workers-timeout is null).
    """

    def __init__(self, client: Any, labels: frozenset[str]) -> None:
        self._client, self._inner = client, client.get_executor(pure=False)
        self._labels, self._lost = labels, set[str]()
        self._waiting: dict[Future[Any], str] = {}
        self._ended = threading.Event()
        threading.Thread(target=self._watch, name="workers", daemon=True).start()

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        if self._client.status != "running":  # what is submitted while it looks for a lost scheduler waits for ever
            raise ConnectionError("the scheduler is gone")
        order = args[0] if isinstance(args[0], Order) else None
        label = next((each for each in order.labels if each in self._labels), ANY) if order else ANY
        if ANY in self._lost:
            raise ConnectionError("no worker is left")
        if order and label in self._lost:
            not_begun: Future[Any] = Future()
            why = f"not begun: no worker with the label {label} is left"
            not_begun.set_result(TargetOutcome(target=order.target, status=TargetStatus.NOT_BEGUN, summary=why))
            return not_begun
        wanted = {"resources": {label: 1}} if label != ANY else {}
        future: Future[T] = self._inner.submit(work, *args, **kwargs, **wanted)
        self._waiting[future] = label
        future.add_done_callback(self._waiting.pop)
        return future

    def _watch(self) -> None:
        """Cancel orders whose workers have been missing for as long as the first one was waited for."""
        missing: dict[str, float] = {}
        while not self._ended.wait(PAUSE):
            waiting = dict(self._waiting)
            labels = {*waiting.values(), *missing}
            if not labels or self._client.status != "running":
                continue
            with contextlib.suppress(
                OSError, RuntimeError
            ):  # of a scheduler that is being lost, and of a closed client
                present = _labels(self._client)
                missing = {label: missing.get(label, time.monotonic()) for label in labels - present}
            self._lost = {label for label, since in missing.items() if time.monotonic() - since > patience()}
            for future, label in waiting.items():
                if label in self._lost:
                    future.cancel()  # its Dask future is cancelled, too, which wakes whoever waits

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._ended.set()
        if self._client.status == "running":
            self._inner.shutdown(wait=wait)
