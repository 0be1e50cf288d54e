from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.devcloud import access
from tests.devcloud.layout import Layout

LINE: dict[str, Any] = {
    "time": 1.0,
    "method": "GET",
    "path": "/",
    "query": "",
    "status": 200,
    "user_agent": "openstacksdk/4.0",
    "request_id": "req-1",
    "milliseconds": 2.0,
    "fault": False,
}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(22000, tmp_path)
    layout.log.mkdir(parents=True)
    return layout


def log(layout: Layout, service: str, **fields: object) -> None:
    with open(layout.access_log(service), "a") as file:
        file.write(json.dumps({**LINE, **fields}) + "\n")


def paths(requests: list[access.Request]) -> list[str]:
    return [request.path for request in requests]


def test_read_merges_services_in_time_order(layout: Layout) -> None:
    log(layout, "nova", time=2.0, path="/second")
    log(layout, "glance", time=1.0, path="/first")
    assert paths(access.read(layout)) == ["/first", "/second"]
    assert paths(access.read(layout, services=["nova"])) == ["/second"]


def test_mark_hides_what_came_before(layout: Layout) -> None:
    log(layout, "nova", path="/before")
    mark = access.mark(layout)
    log(layout, "nova", path="/after")
    log(layout, "heat", path="/first-ever")
    assert sorted(paths(access.read(layout, mark))) == ["/after", "/first-ever"]


def test_own_requests_of_the_cloud_are_left_out(layout: Layout) -> None:
    log(layout, "keystone", user_agent="python-requests devcloud/nova")
    assert access.read(layout) == []
    (request,) = access.read(layout, internal=True)
    assert request.internal


def test_unfinished_line_waits(layout: Layout) -> None:
    log(layout, "nova")
    with open(layout.access_log("nova"), "a") as file:
        file.write('{"time": 3')
    assert len(access.read(layout)) == 1


def note(layout: Layout, **fields: object) -> None:
    with open(layout.begun_log("nova"), "a") as file:
        file.write(json.dumps(fields) + "\n")


def test_what_is_under_way(layout: Layout) -> None:
    begun: dict[str, object] = {"method": "POST", "path": "/servers", "internal": False}
    note(layout, number="1-0", **begun)
    mark = access.mark(layout)
    for number in ("1-1", "1-2"):
        note(layout, number=number, **begun)
    note(layout, number="1-3", **begun | {"internal": True})
    assert access.unanswered(layout, mark) == [("nova", "POST", "/servers")] * 2
    for number in ("1-0", "1-2", "1-1"):
        note(layout, number=number)
    assert access.unanswered(layout, mark) == []
