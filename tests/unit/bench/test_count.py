"""Which requests count: the client's, and not those that the cloud or the benchmark itself makes."""

from __future__ import annotations

import json
from pathlib import Path

from requests_mock import Mocker

from tests.bench.scenario import Client, endpoints
from tests.devcloud import access
from tests.devcloud.layout import Layout

LINE = {
    "time": 1.0,
    "method": "GET",
    "path": "/v3",
    "query": "",
    "status": 200,
    "request_id": "",
    "milliseconds": 1.0,
    "fault": False,
}
TOKEN = {
    "token": {
        "catalog": [
            {
                "type": "identity",
                "endpoints": [
                    {"interface": "admin", "url": "http://admin"},
                    {"interface": "public", "url": "http://public"},
                ],
            },
            {"type": "empty", "endpoints": []},
        ]
    }
}


def log(layout: Layout, *agents: str) -> None:
    layout.log.mkdir(parents=True, exist_ok=True)
    with open(layout.access_log("keystone"), "a") as file:
        for agent in agents:
            file.write(json.dumps(LINE | {"user_agent": agent}) + "\n")


def test_only_the_clients_requests_since_the_mark_count(tmp_path: Path, requests_mock: Mocker) -> None:
    layout = Layout(20000, tmp_path)
    log(layout, "python-requests/2")
    mark = access.mark(layout)
    requests_mock.post("http://there/auth/tokens", json=TOKEN, headers={"X-Subject-Token": "4f2a9c"})
    own = Client("http://there", "admin", "x", "admin").session.headers["User-Agent"]
    log(layout, "python-requests/2", "keystonemiddleware devcloud/nova", str(own), "openstacksdk/4")
    assert [each.user_agent for each in access.read(layout, mark)] == ["python-requests/2", "openstacksdk/4"]


def test_public_endpoints_of_the_catalogue() -> None:
    assert endpoints(TOKEN) == {"identity": "http://public"}
