from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.devcloud.faults import Fault, inject
from tests.devcloud.layout import Layout
from tests.devcloud.server.middleware import Watch

REQUEST = {"REQUEST_METHOD": "GET", "PATH_INFO": "/x", "QUERY_STRING": "a=b", "HTTP_USER_AGENT": "me"}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(22000, tmp_path)
    layout.log.mkdir(parents=True)
    layout.run.mkdir()
    return layout


def late_application(environ: Any, start_response: Any) -> Iterator[bytes]:
    """Starts its response only when its first chunk is asked for, as Swift's does."""
    start_response("201 Created", [("X-Trans-Id", "tx1")])
    yield b"one"
    yield b"two"


def call(layout: Layout, **environ: object) -> tuple[list[str], bytes, dict[str, Any]]:
    """Status lines, body and the line that was in the log before the body was read."""
    answered: list[str] = []
    watch = Watch(late_application, "nova", layout.home)
    body = watch({**REQUEST, **environ}, lambda status, headers, exc_info=None: answered.append(status))
    line = json.loads(layout.access_log("nova").read_text().splitlines()[-1])
    return answered, b"".join(body), line


def test_line_is_written_before_the_body_is_sent(layout: Layout) -> None:
    answered, body, line = call(layout)
    assert (answered, body) == (["201 Created"], b"onetwo")
    assert line.pop("time") > 0
    assert line.pop("milliseconds") >= 0
    assert line == {
        "method": "GET",
        "path": "/x",
        "query": "a=b",
        "status": 201,
        "user_agent": "me",
        "request_id": "tx1",
        "fault": False,
    }


def test_status_fault_answers_without_the_application(layout: Layout) -> None:
    with inject(layout, Fault("nova", status=503, body="no")):
        answered, body, line = call(layout)
    assert (answered, body) == (["503 Fault"], b"no")
    assert line["fault"]


def test_dropped_answer_closes_the_connection(layout: Layout) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, inject(layout, Fault("nova", drop_answer=True)):
        _answered, _body, line = call(layout, **{"devcloud.socket": ours})
        assert theirs.recv(1) == b""
    assert line["status"] == 201
