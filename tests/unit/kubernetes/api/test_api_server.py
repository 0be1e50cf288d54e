"""Lists and watches against recorded answers of a real API server, and answers that none would give."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import urllib3

from openstack_prep.base.errors import ConfigError
from openstack_prep.base.secret import Secret
from openstack_prep.kubernetes import services
from openstack_prep.kubernetes.api import ApiServer, ClusterError, RunningCluster, api_server
from openstack_prep.kubernetes.api.kubeconfig import Access
from tests.unit.kubernetes.recorded_api import DATA, TOKEN, Recorded, serve
from tests.unit.texts import Wording


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    with serve(Recorded()) as made:
        yield made


@pytest.fixture
def server(recorded: Recorded, tmp_path: Path) -> Iterator[ApiServer]:
    with RunningCluster(recorded.kubeconfig(tmp_path / "kubeconfig"), "test").open() as made:
        yield made


def failure(server: ApiServer, version: str | None = None) -> str:
    with pytest.raises(ClusterError) as caught:
        server.wait_for_change(version, 20) if version else server.services()
    assert TOKEN not in str(caught.value)
    assert caught.value.exit_code == 1
    return str(caught.value)


def test_a_list_is_what_kubectl_prints(server: ApiServer, recorded: Recorded) -> None:
    listing = server.services()
    assert services.read(listing.text).addresses == {
        "10.1.0.201": "shop/front",
        "10.1.0.1": "shop/old",
        "10.1.0.202": "shop/old",
    }
    assert services.read(listing.text) == services.read((DATA / "services.json").read_text())
    assert listing.count == 4
    assert (server.nodes().count, recorded.asked[-1]) == (0, {"limit": "500"})


def test_a_proxy_gets_its_name_and_password_and_no_server_without_tls_a_token(
    monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    """As with kubectl, NO_PROXY does not matter to the proxy of a kubeconfig."""
    monkeypatch.setenv("NO_PROXY", "*")
    with serve(Recorded(), tls=False) as recorded:
        proxy = Secret(recorded.url.replace("http://", "http://me:p%40ss@"))
        token = Secret(f"Bearer {TOKEN}")
        said = failure(ApiServer(Access(name="c", server="http://192.0.2.1", proxy=proxy, authorization=token)))
    wording(said)
    assert recorded.proxied == ["Basic bWU6cEBzcw=="]


def test_the_proxy_of_the_environment_except_for_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with kubectl, that for HTTP is not for servers with TLS, and none is for all."""
    access = Access(name="c", server="http://192.0.2.1")
    monkeypatch.setenv("ALL_PROXY", "socks5h://192.0.2.1:1080")
    assert not isinstance(api_server.pool_of(access), urllib3.ProxyManager)
    with serve(Recorded(), tls=False) as recorded:
        monkeypatch.setenv("HTTP_PROXY", recorded.url.removeprefix("http://"))
        assert "401, it does not accept these credentials" in failure(ApiServer(access))
    assert recorded.proxied == [None]
    assert not isinstance(api_server.pool_of(replace(access, server="https://192.0.2.1")), urllib3.ProxyManager)
    monkeypatch.setenv("NO_PROXY", "192.0.2.0/24")
    assert not isinstance(api_server.pool_of(access), urllib3.ProxyManager)


@pytest.mark.parametrize("proxy", [f"socks5://me:{TOKEN}@192.0.2.1", f"ftp://{TOKEN}", f"http://[{TOKEN}"])
def test_a_proxy_of_the_environment_that_cannot_work(
    proxy: str, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy)
    with pytest.raises(ConfigError) as caught:
        ApiServer(Access(name="c", server="http://192.0.2.1"))
    wording(str(caught.value))
    assert TOKEN not in str(caught.value)


def test_a_list_in_pages(server: ApiServer, recorded: Recorded) -> None:
    recorded.lists = ["services-page-1.json"]
    listing = server.services()
    first = json.loads((DATA / "services-page-1.json").read_text())["metadata"]
    assert [each.get("continue") for each in recorded.asked] == [None, first["continue"]]
    assert services.read(listing.text).addresses == services.read((DATA / "services.json").read_text()).addresses
    assert listing.version == first["resourceVersion"]


def test_a_watch_ends_with_the_first_change(server: ApiServer, recorded: Recorded, wording: Wording) -> None:
    recorded.watches = ["watch.jsonl", "gone.jsonl"]
    began = time.monotonic()
    server.wait_for_change("5", 20)
    server.wait_for_change("5", 20)
    assert time.monotonic() - began < 15
    assert {name: each.lower() for name, each in recorded.asked[0].items()} == {
        "watch": "true",
        "resourceVersion": "5",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "20",
    }
    bookmarks = [line for line in (DATA / "watch.jsonl").read_bytes().splitlines(True) if b'"BOOKMARK"' in line]
    recorded.watches = [b"".join(bookmarks)]
    wording(failure(server, "5"))
    recorded.watches = [1.0]
    server.wait_for_change("5", 1)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((403, "403.json"), 'User "nobody" cannot list resource "services"'),
        ((401, "401.json"), "401, it does not accept these credentials"),
        ((404, b"<html>"), "404; check the address of the API server"),
        ((500, json.dumps({"kind": "Status", "message": f"you sent {TOKEN}"}).encode()), "500 you sent ********"),
        ((500, json.dumps({"kind": "Status", "message": "x" * 290 + TOKEN}).encode()), f"500 {'x' * 290}********"),
        ((302, b""), "302"),
        (b"<html>", "something other than a list of Services"),
        (b"[" * 100_000, "something other than a list of Services"),
        (b'{"kind": "PodList", "items": [], "metadata": {"resourceVersion": "1"}}', "other than a list of Services"),
        (b'{"kind": "ServiceList", "items": [1], "metadata": {"resourceVersion": "1"}}', "other than a list"),
        (b'{"kind": "ServiceList", "items": [], "metadata": {"resourceVersion": "1"}}', "has lost its data"),
    ],
)
def test_answers_that_are_no_list(server: ApiServer, recorded: Recorded, answer: Any, said: str) -> None:
    recorded.lists = [answer]
    assert said in failure(server)


@pytest.mark.parametrize(
    ("events", "said"),
    [
        (b"<html>\n", "sends something other than events"),
        (b'{"type": "ADDED"}\n', "sends something other than events"),
        (b'{"type": "ERROR", "object": {"code": 500, "message": "etcd"}}\n', "ended a watch: etcd"),
        (b'{"type": "ERROR", "object": {"code": 500}}\n', "ended a watch: without a message"),
    ],
)
def test_events_that_are_none(server: ApiServer, recorded: Recorded, events: bytes, said: str) -> None:
    recorded.watches = [events]
    assert said in failure(server, "5")


def test_servers_that_do_not_answer(monkeypatch: pytest.MonkeyPatch, wording: Wording) -> None:
    monkeypatch.setattr(api_server, "ANSWER", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"127.0.0.1:{silent.getsockname()[1]}"
        wording(failure(ApiServer(Access(name="c", server=f"http://{url}"))))
        wording(failure(ApiServer(Access(name="c", server=f"http://{url}"))))
    assert "connection refused" in failure(ApiServer(Access(name="c", server=f"http://{url}")))
    assert "does not resolve" in failure(ApiServer(Access(name="c", server="http://none.invalid")))


def test_a_list_that_is_too_long_or_drips(
    server: ApiServer, recorded: Recorded, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    monkeypatch.setattr(api_server, "MOST", 1000)
    wording(failure(server))
    monkeypatch.setattr(api_server, "MOST", 2**20)
    monkeypatch.setattr(api_server, "ANSWER", 1e-9 + 0.05)
    monkeypatch.setattr(api_server, "CHUNK", 1)
    wording(failure(server))
