from __future__ import annotations

import json
import logging
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import CloudError
from openstack_prep.cloud.connection import Cloud
from openstack_prep.reports import last_run
from tests.unit.conftest import connection, failure

recorded = partial(last_run.recorded, code_of=lambda error: 3)
NETWORKS = "http://neutron/v2.0/networks"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv(last_run.SWITCH)
    return tmp_path / "openstack-prep"


@pytest.fixture
def cloud(services: requests_mock.Mocker) -> Cloud:
    services.get(NETWORKS, json={"networks": []}, headers={"X-Openstack-Request-Id": "req-1"})
    return Cloud(connection())


def kept(state: Path) -> list[list[dict[str, Any]]]:
    return [[json.loads(line) for line in each.read_text().splitlines()] for each in sorted(state.iterdir())]


def test_a_run_keeps_its_requests_in_a_private_file(state: Path, cloud: Cloud) -> None:
    os.umask(0)
    with recorded("plan"):
        cloud.network.get("/networks", name="a-name")
    (path,) = state.iterdir()
    assert (path.stat().st_mode & 0o777, state.stat().st_mode & 0o777) == (0o600, 0o700)
    began, login, asked, ended = kept(state)[0]
    assert began["command"] == "plan"
    assert began["began"] <= login["started"] <= asked["started"] <= ended["ended"]
    assert (login["path"], login["status"]) == ("/auth/tokens", 201)
    expected = {"method": "GET", "service": "network", "path": "/networks", "status": 200, "request_id": "req-1"}
    assert asked.items() >= expected.items()
    assert ended["requests"] == 2
    assert "a-name" not in path.read_text()
    assert last_run.read()["requests"][1].startswith(f"{asked['started']} GET network/networks: 200, ")


def test_nothing_is_kept_without_a_request_afterwards_or_when_it_is_off(
    state: Path, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recorded("plan"):
        pass
    cloud.network.get("/networks")
    monkeypatch.setenv(last_run.SWITCH, "off")
    with recorded("plan"):
        cloud.network.get("/networks")
    assert not state.exists()
    assert "unknown" in last_run.read()


def test_failures_have_a_status_and_a_class(state: Path, cloud: Cloud, services: requests_mock.Mocker) -> None:
    services.put(NETWORKS, **failure(409))
    services.post(NETWORKS, exc=ConnectionError("no"))

    def run() -> None:
        with recorded("apply"):
            with pytest.raises(ConnectionError):
                cloud.network.post("/networks", {})
            cloud.network.put("/networks", {})

    with pytest.raises(CloudError):
        run()
    _, _, lost, refused, ended = kept(state)[0]
    assert (lost["status"], lost["error"]) == (None, "ConnectionError")
    assert (refused["status"], refused["error"]) == (409, "CloudError")
    assert (ended["exit_code"], ended["error"]) == (3, "CloudError")
    assert "no answer" in last_run.read()["requests"][1]


def test_runs_and_requests_are_bounded(state: Path, cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_run, "MOST", 2)
    for number in range(last_run.KEPT + 2):
        with recorded(str(number)):
            for _ in range(3):
                cloud.network.get("/networks")
    runs = kept(state)
    assert [each[0]["command"] for each in runs] == [str(number) for number in range(2, last_run.KEPT + 2)]
    assert {(len(each), each[-1]["requests"]) for each in runs} == {(4, 3)}


def test_two_runs_at_once_have_a_file_each(state: Path, cloud: Cloud) -> None:
    with recorded("a"):
        cloud.network.get("/networks")
        with recorded("b"):
            cloud.network.get("/networks")
    assert [each[0]["command"] for each in kept(state)] == ["a", "b"]


def test_a_request_after_the_end_is_written_nowhere(
    state: Path, cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A thread that has found the handler before it was removed uses it afterwards."""
    logger = logging.getLogger(last_run.NAME)
    handlers: list[logging.Handler] = []
    monkeypatch.setattr(logger, "removeHandler", handlers.append)
    caplog.set_level(logging.INFO, last_run.NAME)
    with recorded("plan"):
        cloud.network.get("/networks")
        number = vars(logger.handlers[-1])["_descriptor"]
    (before,) = kept(state)
    foreign = os.open(tmp_path / "foreign", os.O_WRONLY | os.O_CREAT)
    if foreign != number:  # the system gives numbers of closed files to others
        os.dup2(foreign, number)
        os.close(foreign)
    cloud.network.get("/networks")
    os.close(number)
    logging.Logger.removeHandler(logger, *handlers)
    assert (tmp_path / "foreign").read_text() == ""
    assert kept(state) == [before]


def test_the_file_of_a_run_at_work_is_kept(state: Path, cloud: Cloud) -> None:
    with recorded("apply"):
        cloud.network.get("/networks")
        for _ in range(last_run.KEPT + 2):
            with recorded("show"):
                cloud.network.get("/networks")
    runs = [each for each in kept(state) if each[0]["command"] == "apply"]
    assert [each[-1]["requests"] for each in runs] == [2 + 1 + last_run.KEPT + 1]


def test_of_dead_processes_files_are_not_kept(state: Path, cloud: Cloud) -> None:
    state.mkdir()
    for number in range(last_run.KEPT + 1):
        (state / f"requests-{number}-{2**22 + 1}.jsonl").write_text("")
    with recorded("show"):
        cloud.network.get("/networks")
    assert len(list(state.iterdir())) == last_run.KEPT


def test_a_run_that_found_something_does_not_hide_one_that_failed(state: Path, cloud: Cloud) -> None:
    for command, code in {"show": 0, "apply": 1, "audit": 1, "plan": 2}.items():
        with recorded(command) as ended:
            cloud.network.get("/networks")
            ended(code)
    assert last_run.read()["command"] == "plan"
    assert (last_run.read_failed() or {})["command"] == "apply"
    with recorded("destroy") as ended:
        cloud.network.get("/networks")
        ended(1)
    assert last_run.read_failed() is None


def test_a_killed_run_has_no_end(state: Path, cloud: Cloud) -> None:
    with recorded("plan"):
        cloud.network.get("/networks")
    (path,) = state.iterdir()
    path.write_text("\n".join(path.read_text().splitlines()[:3]) + '\n{"method": "GE')
    found = last_run.read()
    assert found["ended"] == last_run.RUNNING
    path.rename(state / f"requests-0-{2**22 + 1}.jsonl")  # more than the kernel gives
    found = last_run.read()
    assert (len(found["requests"]), "killed" in found["ended"]) == (2, True)


@pytest.mark.parametrize("place", ["/proc/nowhere", "file"])
def test_a_log_that_cannot_be_written_stops_nothing_and_is_reported_once(
    place: str, tmp_path: Path, cloud: Cloud, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / place))
    with recorded("plan"), caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert cloud.network.get("/networks") == {"networks": []}
    assert [each.levelname for each in caplog.records if each.name == last_run.__name__] == ["WARNING"]
    assert f"{last_run.SWITCH}=off" in caplog.text
