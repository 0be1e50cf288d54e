from __future__ import annotations

import itertools
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.devcloud import access
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


def application(environ: Any, start_response: Any) -> list[bytes]:
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", "14")])
    return [b'{"networks": ', b"[]}"]


def call_with(layout: Layout, served: Any = application, **environ: object) -> tuple[str, dict[str, str], bytes]:
    """Return the answer of a service as the client gets it."""
    answered: list[tuple[str, dict[str, str]]] = []

    def start(status: str, headers: list[tuple[str, str]], exc_info: object = None) -> None:
        answered.append((status, dict(headers)))

    body = b"".join(Watch(served, "neutron", layout.home)({**REQUEST, **environ}, start))
    return *answered[0], body


@pytest.mark.parametrize(
    ("effect", "body"),
    [("html", b"<html>"), ("empty", b""), ("half", b'{"networ'), ("list", b"[]")],
)
def test_wrong_shapes_keep_the_status(layout: Layout, effect: str, body: bytes) -> None:
    with inject(layout, Fault("neutron", effect=effect)):
        status, headers, answer = call_with(layout)
    assert status == "200 OK"
    assert answer.startswith(body)
    assert headers["content-length"] == str(len(answer))
    assert answer != b'{"networks": []}'


def test_a_late_answer_comes_after_the_work(layout: Layout) -> None:
    asked: list[str] = []

    def served(environ: Any, start_response: Any) -> list[bytes]:
        asked.append(environ["PATH_INFO"])
        return application(environ, start_response)

    with inject(layout, Fault("neutron", effect="late", status=504, body="too late")):
        assert call_with(layout, served)[::2] == ("504 Fault", b"too late")
    assert asked == ["/x"]


def test_a_dripping_answer_is_whole_and_slow(layout: Layout) -> None:
    started = time.monotonic()
    with inject(layout, Fault("neutron", effect="drip", delay=0.1)):
        assert call_with(layout)[::2] == ("200 OK", b'{"networks": []}')
    assert time.monotonic() - started >= 0.07


def test_a_cut_answer_ends_the_connection_in_its_middle(layout: Layout) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, inject(layout, Fault("neutron", effect="cut")):
        assert call_with(layout, **{"devcloud.socket": ours})[2] == b'{"networ'
        assert theirs.recv(1) == b""


def test_a_reset_connection_asks_for_no_work(layout: Layout) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        theirs = socket.create_connection(server.getsockname())
        ours, _ = server.accept()
    with ours, theirs, inject(layout, Fault("neutron", effect="reset")):
        call_with(layout, pytest.fail, **{"devcloud.socket": ours})
        with pytest.raises(ConnectionResetError):
            theirs.recv(1)


def test_a_stale_answer_is_the_first_one_to_the_same_token(layout: Layout) -> None:
    numbers = itertools.count()

    def served(environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        return [str(next(numbers)).encode()]

    watch = Watch(served, "neutron", layout.home)

    def ask(token: str) -> bytes:
        return b"".join(watch({**REQUEST, "HTTP_X_AUTH_TOKEN": token}, lambda *_: None))

    with inject(layout, Fault("neutron", effect="stale", skip=2, times=2)):
        assert [ask("a"), ask("a"), ask("a"), ask("b"), ask("a")] == [b"0", b"1", b"0", b"2", b"3"]


def test_a_request_is_noted_when_it_begins_and_when_it_ends(layout: Layout) -> None:
    mark, seen = access.mark(layout), list[object]()

    def broken(environ: Any, start_response: Any) -> Any:
        seen.extend(access.unanswered(layout, mark))
        raise ValueError("a bug of the service")

    watch = Watch(broken, "nova", layout.home)
    with pytest.raises(ValueError, match="a bug"):
        watch(dict(REQUEST), lambda *_: None)
    assert seen == [("nova", "GET", "/x")]
    assert access.unanswered(layout, mark) == []
