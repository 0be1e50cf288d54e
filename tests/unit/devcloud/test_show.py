"""The demos stop when a command does not prove what they say that it proves."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.devcloud.layout import Layout
from tests.show import Show

LINE = {
    "time": 1.0,
    "query": "",
    "status": 200,
    "user_agent": "a client",
    "request_id": "",
    "milliseconds": 1.0,
    "fault": False,
}


@pytest.fixture
def show(tmp_path: Path) -> Show:
    cloud = Layout(10000, tmp_path)
    cloud.access_log("keystone").parent.mkdir(parents=True)
    return Show(cloud, tmp_path)


def send(show: Show, *requests: str) -> tuple[str, ...]:
    """Return a command that leaves these requests in Keystone's access log."""
    words = (each.split() for each in requests)
    lines = "".join(json.dumps(LINE | {"method": method, "path": path}) + "\n" for method, path in words)
    log = str(show.cloud.access_log("keystone"))
    return (sys.executable, "-c", "import sys; open(sys.argv[1], 'a').write(sys.argv[2])", log, lines)


def test_a_proof_has_its_seconds_and_requests(show: Show, capfd: pytest.CaptureFixture[str]) -> None:
    show.run(*send(show, "GET /v3/users"))
    reads = send(show, "POST /v3/auth/tokens", "GET /v3/users", "HEAD /v3/users/1")
    show.run(*reads, writes=False, proves="nothing changed: {requests} requests")
    ((seconds, proof),) = show.proofs
    assert proof == "nothing changed: 3 requests"
    assert 0 < seconds < 60
    show.summary()
    assert capfd.readouterr().out.splitlines()[-1] == f"{seconds:5.1f} s  {proof}"


def test_a_write_where_nothing_may_change_stops_the_demo(show: Show) -> None:
    with pytest.raises(SystemExit, match="PATCH /v3/users/1"):
        show.run(*send(show, "GET /v3/users", "PATCH /v3/users/1"), writes=False, proves="nothing changed")
    assert not show.proofs


@pytest.mark.parametrize(("ended", "expected", "stops"), [(0, 0, False), (1, 0, True), (0, 2, True), (1, None, False)])
def test_an_unexpected_exit_code_stops_the_demo(show: Show, ended: int, expected: int | None, stops: bool) -> None:
    command = (sys.executable, "-c", f"raise SystemExit({ended})")
    if stops:
        with pytest.raises(SystemExit):
            show.run(*command, code=expected)
    else:
        show.run(*command, code=expected)
