"""A fleet on workers of Dask: on processes that it starts itself, and on a scheduler and workers that get killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional import test_fleet_images
from tests.functional.conftest import Prep
from tests.functional.test_fleet import SLOW, TEAMS, everywhere, fleet, fleet_run, lines, write
from tests.functional.test_fleet_images import Images, images

__all__ = ["fleet", "images"]


@dataclass
class Workers:
    """A scheduler and two workers, each a process that can be killed."""

    address: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]]


@pytest.fixture
def workers(prep: Prep, fleet: str) -> Iterator[Workers]:
    with started(prep, "first") as made:
        yield made


Kind = tuple[tuple[str, ...], dict[str, str]]
"""Further options and variables of a worker."""
PROFILER = "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED"
PLAIN: Kind = ((), {})


@contextlib.contextmanager
def started(
    prep: Prep, name: str, kinds: Sequence[Kind] = (PLAIN, PLAIN), *, protocol: str = "tcp", **variables: str
) -> Iterator[Workers]:
    """Start a scheduler on a free port, and its workers where the fleet file is; ``variables`` are for all of them."""
    told = prep.folder / f"{name}.json"
    environment = os.environ | prep.environment | {PROFILER: "False"} | variables
    dask, quiet = (
        str(Path(sys.executable).with_name("dask")),
        {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL},
    )
    with contextlib.ExitStack() as stack:

        def start(*words: str, **more: str) -> subprocess.Popen[bytes]:
            process = subprocess.Popen([dask, *words], cwd=prep.folder, env=environment | more, **quiet)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        here = ("--scheduler-file", str(told), "--no-dashboard", "--host", "127.0.0.1", "--protocol", protocol)
        scheduler = start("scheduler", "--port", "0", *here)
        until(told.exists)
        options = ("--nthreads", "2", "--no-nanny")
        workers = [start("worker", *here, *options, *words, **more) for words, more in kinds]
        yield Workers(json.loads(told.read_text())["address"], scheduler, workers)


def until(condition: Any) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def assert_no_twins(devcloud: Devcloud, name: str) -> None:
    admin: Any = devcloud.admin
    projects = {each.id: each.name for each in admin.identity.projects() if each.name.startswith(f"{name}-")}
    networks = Counter(each.project_id for each in admin.network.networks() if each.project_id in projects)
    assert sorted(projects.values()) == sorted(f"{name}-{team}" for team in TEAMS)
    assert networks == dict.fromkeys(projects, 1)


def test_processes_of_its_own(prep: Prep, fleet: str, devcloud: Devcloud) -> None:
    here = ("--scheduler", "local", "--workers", "2")
    assert fleet_run(prep, "apply", "--yes", *here)[0] == everywhere("done")
    assert_no_twins(devcloud, fleet)
    assert fleet_run(prep, "plan", *here)[0] == everywhere("unchanged")
    assert fleet_run(prep, "audit", *here)[0] == everywhere("unchanged")


def test_the_targets_of_a_killed_worker_are_done_by_another(
    prep: Prep, fleet: str, devcloud: Devcloud, workers: Workers
) -> None:
    with devcloud.faults(SLOW):
        words = ("apply", "--yes", "--scheduler", workers.address, "--format", "json", "fleet.yaml")
        process = prep.start("fleet", *words)
        assert process.stdout is not None
        first = process.stdout.readline()
        workers.workers[0].kill()
        out, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert lines(subprocess.CompletedProcess([], 0, first + out, said))[0].keys() == set(TEAMS)
    assert_no_twins(devcloud, fleet)
    assert fleet_run(prep, "apply", "--yes")[0] == everywhere("unchanged")


def test_a_killed_scheduler_costs_another_run(prep: Prep, fleet: str, devcloud: Devcloud, workers: Workers) -> None:
    with devcloud.faults(SLOW):
        words = ("apply", "--yes", "--jobs", "2", "--scheduler", workers.address, "--format", "json", "fleet.yaml")
        process = prep.start("fleet", *words)
        assert process.stdout is not None
        first = process.stdout.readline()
        workers.scheduler.kill()
        out, said = process.communicate(timeout=120)
    assert process.returncode == 1, said
    statuses, _ = lines(subprocess.CompletedProcess([], 1, first + out, said))
    assert statuses["red"] == "done"
    assert "failed" in statuses.values()
    assert "Traceback" not in said
    with started(prep, "second") as others:
        statuses, last = fleet_run(prep, "apply", "--yes", "--scheduler", others.address)
    assert "red" in last["done_before"]
    assert set(statuses.values()) <= {"done", "unchanged"}
    assert_no_twins(devcloud, fleet)
    assert fleet_run(prep, "apply", "--yes")[0] == everywhere("unchanged")


def test_targets_go_to_the_workers_with_the_name_of_their_cloud(prep: Prep, fleet: str) -> None:
    write(prep, cloud="devcloud-admin")
    near, elsewhere = ("--resources", "devcloud-admin=2"), {"OS_CLIENT_CONFIG_FILE": "there-is-none.yaml"}
    with started(prep, "labelled", [(near, {}), ((), elsewhere)]) as made:
        assert fleet_run(prep, "apply", "--yes", "--scheduler", made.address)[0] == everywhere("done")


def test_targets_whose_workers_are_all_lost_fail(prep: Prep, fleet: str, devcloud: Devcloud) -> None:
    write(prep, cloud="devcloud-admin")
    near = ("--resources", "devcloud-admin=2")
    prep.environment["DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT"] = "5s"
    with started(prep, "labelled", [(near, {}), PLAIN]) as made, devcloud.faults(SLOW):
        words = ("apply", "--yes", "--jobs", "2", "--scheduler", made.address, "--format", "json", "fleet.yaml")
        process = prep.start("fleet", *words)
        assert process.stdout is not None
        first = process.stdout.readline()
        made.workers[0].kill()
        out, said = process.communicate(timeout=120)
    assert process.returncode == 1, said
    statuses, _ = lines(subprocess.CompletedProcess([], 1, first + out, said))
    assert statuses.keys() == set(TEAMS)
    assert "failed" in statuses.values()
    assert "Traceback" not in said
    assert set(fleet_run(prep, "apply", "--yes")[0].values()) <= {"done", "unchanged"}
    assert_no_twins(devcloud, fleet)


def test_ctrl_c_reaches_no_worker(prep: Prep, fleet: str, devcloud: Devcloud) -> None:
    here = ("--scheduler", "local", "--workers", "2", "--jobs", "2")
    with devcloud.faults(SLOW):
        process = prep.start("fleet", "apply", "--yes", *here, "--format", "json", "fleet.yaml", start_new_session=True)
        assert process.stdout is not None
        first = process.stdout.readline()
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        out, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    statuses, _ = lines(subprocess.CompletedProcess([], 130, first + out, said))
    assert set(statuses.values()) == {"done", "not begun"}
    assert "Traceback" not in said
    assert set(fleet_run(prep, "apply", "--yes")[0].values()) == {"done"}


def test_workers_that_may_hang_are_refused(prep: Prep, fleet: str) -> None:
    with started(prep, "profiled", [((), {PROFILER: "True"})]) as profiled:
        may_hang = sys.version_info < (3, 11, 9)
        done = prep.run("fleet", "plan", "--scheduler", profiled.address, "fleet.yaml", code=2 if may_hang else 0)
    assert (f"{PROFILER}=False" in done.stderr) == may_hang


def test_a_scheduler_that_is_not_there(prep: Prep, fleet: str) -> None:
    refused = prep.run("fleet", "plan", "--scheduler", "tcp://127.0.0.1:9", "fleet.yaml", code=2)
    assert "--scheduler tcp://127.0.0.1:9: " in refused.stderr


def test_each_worker_downloads_an_image_once(images: Images) -> None:
    statuses, _ = fleet_run(images.prep, "apply", "--yes", "--scheduler", "local", "--workers", "2")
    assert statuses == test_fleet_images.everywhere("done")
    assert len(images.of("active")) == len(test_fleet_images.TEAMS)
    assert 1 <= len(images.web.asked) <= 2
