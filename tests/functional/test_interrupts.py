"""SIGTERM of a supervisor and SIGHUP of a closed terminal, sent to real runs."""

from __future__ import annotations

import json
import secrets
import signal
import time
from collections import Counter
from typing import Any

import pytest

from tests.devcloud.faults import Fault
from tests.devcloud.pytest_devcloud import Devcloud
from tests.functional.conftest import Prep

BOTH = pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.more)])


@pytest.fixture
def name() -> str:
    return f"t{secrets.token_hex(3)}"


def spec(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "networks": [{"name": f"{name}-nodes"}],
        "images": [{"name": f"{name}-{each}", "source": "disk.qcow2"} for each in "ab"],
    }


def wait_until(devcloud: Devcloud, mark: Any, path: str) -> None:
    """Wait for a request to be answered."""
    deadline = time.monotonic() + 120
    while not any(path in each.path for each in devcloud.requests_since(mark)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def wait_for_images(devcloud: Devcloud, name: str, count: int) -> None:
    """Wait until there are so many whose names begin with that."""
    deadline = time.monotonic() + 120
    while len([each for each in devcloud.admin.image.images() if each.name.startswith(name)]) != count:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@BOTH
def test_an_upload_ends_and_the_rest_is_skipped(
    prep: Prep, name: str, devcloud: Devcloud, number: signal.Signals
) -> None:
    prep.write(spec(name))
    mark = devcloud.mark()
    with devcloud.faults(Fault("glance", method="PUT", path_regex="/file$", delay=4)):
        process = prep.start("apply", "--yes", "--jobs", "1", "--format", "json", prep.spec.name)
        devcloud.wait_for_request(mark, "PUT", "/file")
        process.send_signal(number)
        out, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number, said
    assert said.endswith(f"interrupted by {number.name}; run the command again to continue [run.interrupted]\n")
    steps = {step["resource"]: step["status"] for step in json.loads(out)["steps"]}
    assert sorted(steps[f"image/{name}-{each}"] for each in "ab") == ["done", "skipped"]

    assert {step["status"] for step in prep.apply().values()} == {"done"}
    assert prep.changes() == set()
    found = [each.name for each in devcloud.admin.image.images() if each.name.startswith(name)]
    found += [each.name for each in devcloud.admin.network.networks() if each.name.startswith(name)]
    assert Counter(found) == Counter([f"{name}-a", f"{name}-b", f"{name}-nodes"])


@BOTH
def test_while_planning_nothing_is_begun(prep: Prep, name: str, devcloud: Devcloud, number: signal.Signals) -> None:
    prep.write(spec(name))
    mark = devcloud.mark()
    with devcloud.faults(Fault("glance", method="GET", path_regex="/images", delay=5)):
        process = prep.start("apply", "--yes", prep.spec.name)
        devcloud.wait_for_request(mark, "GET", "/images")
        process.send_signal(number)
        out, said = process.communicate(timeout=60)
    assert (process.returncode, out) == (128 + number, "")
    assert (
        said == f"openstack-prep: interrupted by {number.name}; run the command again to continue [run.interrupted]\n"
    )
    assert not [
        each for each in devcloud.requests_since(mark) if each.method != "GET" and "/auth/tokens" not in each.path
    ]
    prep.apply()
    assert prep.changes() == set()


def test_a_second_signal_does_not_wait_for_the_answer(prep: Prep, name: str, devcloud: Devcloud) -> None:
    prep.write(spec(name))
    mark = devcloud.mark()
    with devcloud.faults(Fault("glance", method="GET", path_regex="/images", delay=20)):
        process = prep.start("plan", prep.spec.name)
        wait_until(devcloud, mark, "/networks")  # read beside the images
        devcloud.wait_for_request(mark, "GET", "/images")
        time.sleep(2)  # a thread that begins may take a signal; the main one then hears both as one (docs/limits.md)
        started = time.monotonic()
        process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert time.monotonic() - started < 10
    assert (process.returncode, said) == (143, "openstack-prep: exited immediately\n")


def test_destroy_goes_on_where_it_was_stopped(prep: Prep, name: str, devcloud: Devcloud) -> None:
    prep.write(spec(name))
    prep.apply()
    with devcloud.faults(Fault("glance", method="DELETE", delay=4, times=2)):
        process = prep.start("destroy", "--yes", "--jobs", "1", prep.spec.name)
        wait_for_images(devcloud, name, 1)
        process.send_signal(signal.SIGTERM)
        out, said = process.communicate(timeout=60)
    assert process.returncode == 143, out + said
    prep.destroy()
    assert not [each for each in devcloud.admin.image.images() if each.name.startswith(name)]


def test_waiting_for_a_port(prep: Prep, devcloud: Devcloud) -> None:
    mark = devcloud.mark()
    process = prep.start("wait-for", "ingress-port", "--infra-id", "dev-x7k2p", "--timeout", "60")
    wait_until(devcloud, mark, "/ports")
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (
        143,
        "openstack-prep: interrupted by SIGTERM; run the command again to continue [run.interrupted]\n",
    )
