"""Redirects of services to other addresses: two servers of our own on loopback, one of which must hear nothing."""

from __future__ import annotations

import contextlib
import json
import ssl
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme

from openstack_prep.base.errors import CloudError, Unreachable
from openstack_prep.base.secret import Secret
from openstack_prep.cloud import service
from openstack_prep.cloud.connection import connect
from tests.unit.conftest import CLOUDS, ENDPOINTS, IDENTITY, token
from tests.unit.distant import running

pytestmark = pytest.mark.usefixtures("clouds_yaml")
STATUSES = (301, 302, 303, 307, 308)


class Handler(BaseHTTPRequestHandler):
    """Keystone, and all services of its catalogue, at one port; it redirects what ``targets`` names."""

    url: str
    status: int
    targets: dict[str, str]
    asked: list[tuple[str, str, dict[str, str], bytes]]

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.partition("?")[0]
        self.asked.append((self.command, path, dict(self.headers), body))
        if path in self.targets:
            target = self.targets[path]
            self._answer({}, self.status, {"Location": target} if target else {})
        elif path == "/v3/auth/tokens":
            text = json.dumps(token())
            for name, url in ENDPOINTS.items():
                text = text.replace(f'"{url}"', f'"{self.url}/{name}{"/v3" if name == "identity" else ""}"')
            self._answer(json.loads(text), 201, {"X-Subject-Token": "the-token"})
        else:
            self._answer({"networks": [], "here": {"path": path}})

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _serve

    def _answer(self, body: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(text))} | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text if self.command != "HEAD" else b"")

    def log_message(self, *words: Any) -> None:
        pass


@contextlib.contextmanager
def served(context: ssl.SSLContext | None = None) -> Iterator[type[Handler]]:
    class Own(Handler):
        status, targets, asked = 302, {}, []

    server = ThreadingHTTPServer(("127.0.0.1", 0), Own)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    Own.url = f"http{'s' if context else ''}://localhost:{server.server_port}"
    with running(server):
        yield Own


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(service, "PAUSE", 0.001)


@pytest.fixture
def other() -> Iterator[type[Handler]]:
    with served() as there:
        yield there


def connected(folder: Path, cloud: type[Handler], **settings: str) -> Any:
    lines = "".join(f"    {name}: {json.dumps(value)}\n" for name, value in settings.items())
    text = CLOUDS.replace(IDENTITY, f"{cloud.url}/v3").replace("  lab:\n", f"  lab:\n{lines}")
    (folder / "clouds.yaml").write_text(text)
    return connect("lab")


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"])
def test_a_token_stays_at_its_address(tmp_path: Path, other: type[Handler], status: int, method: str) -> None:
    with served() as there:
        there.status, there.targets = status, {"/compute/servers": f"{other.url}/taken?signature=abc"}
        cloud = connected(tmp_path, there)
        with pytest.raises(Unreachable) as caught:
            cloud.compute.request(method, "/servers")
    assert other.asked == []
    assert f"{other.url}/taken" in str(caught.value)
    assert "signature" not in str(caught.value)
    assert not caught.value.retryable
    assert sum(path == "/compute/servers" for _, path, *_ in there.asked) == 1


@pytest.mark.parametrize("service_type", sorted(ENDPOINTS))
def test_every_service_keeps_the_token(tmp_path: Path, other: type[Handler], service_type: str) -> None:
    with served() as there:
        base = "/identity/v3" if service_type == "identity" else f"/{service_type}"
        there.targets = {f"{base}{version}/things": other.url for version in ("", "/v2.0")}
        cloud = connected(tmp_path, there)
        with pytest.raises(CloudError, match=other.url):
            cloud.open(service_type).get("/things")
    assert other.asked == []


@pytest.mark.parametrize("status", STATUSES)
def test_a_password_stays_at_its_address(tmp_path: Path, other: type[Handler], status: int) -> None:
    with served() as there:
        there.status, there.targets = status, {"/v3/auth/tokens": f"{other.url}/v3/auth/tokens"}
        cloud = connected(tmp_path, there)
        with pytest.raises(CloudError, match=other.url) as caught:
            cloud.authenticate()
        with pytest.raises(CloudError, match=other.url):
            cloud.as_user(username="u", password=Secret("p"), user_domain="Default").authenticate()
    assert other.asked == []
    assert "check that entry" not in str(caught.value)  # nothing is wrong with the password


def test_versions_are_not_read_elsewhere(tmp_path: Path, other: type[Handler]) -> None:
    """keystoneauth does without the document, and its reason is in the error where that is no longer possible."""
    with served() as there:
        there.targets = {"/v3": f"{other.url}/v3", "/": other.url}
        assert connected(tmp_path, there).authenticate().project_name
        text = (tmp_path / "clouds.yaml").read_text().replace(f"{there.url}/v3", there.url)
        (tmp_path / "clouds.yaml").write_text(text)
        there.targets["/"] = there.targets[""] = other.url
        with pytest.raises(CloudError, match=other.url):
            connect("lab").authenticate()
    assert other.asked == []


@pytest.mark.parametrize(
    "written",
    ["{url}/compute/moved", "/compute/moved", "moved", "//{address}/compute/moved", "HTTP://{address}/compute/moved"],
)
def test_a_redirect_at_the_same_address_is_followed(tmp_path: Path, written: str) -> None:
    with served() as there:
        address = there.url.partition("//")[2]
        there.targets = {"/compute/servers": written.format(url=there.url, address=address)}
        cloud = connected(tmp_path, there)
        assert cloud.compute.get("/servers")["here"] == {"path": "/compute/moved"}
    moved = [headers for _, path, headers, _ in there.asked if path == "/compute/moved"]
    assert [each["X-Auth-Token"] for each in moved] == ["the-token"]


@pytest.mark.parametrize(
    "written",
    [
        "http://127.0.0.1:{port}/",
        "http://localhost.:{port}/",
        "http://localhost:{other}/",
        "http://localhost:{port}@127.0.0.1:{other}/",
        "http://localhost:{other}\\@localhost:{port}/",
        "//127.0.0.1:{other}/",
        "https://localhost:{port}/",
        "ftp://localhost:{port}/",
        "http://localhost:99999/",
        "http://[::1/",
        "file:///etc/passwd",
    ],
)
def test_an_address_is_scheme_host_and_port(tmp_path: Path, other: type[Handler], written: str) -> None:
    with served() as there:
        ports = {"port": there.url.rpartition(":")[2], "other": other.url.rpartition(":")[2]}
        there.targets = {"/compute/servers": written.format(**ports)}
        cloud = connected(tmp_path, there)
        with pytest.raises(Unreachable):
            cloud.compute.get("/servers")
    assert other.asked == []
    assert [path for _, path, *_ in there.asked if path not in ("/v3", "/v3/auth/tokens", "/compute")].count("/") == 0


def test_tls_is_not_left(tmp_path: Path, other: type[Handler]) -> None:
    ca, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("localhost").configure_cert(context)
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with served(context) as there:
        there.targets = {"/network/v2.0/networks": f"http{there.url.removeprefix('https')}/network/v2.0/networks"}
        there.targets["/network/networks"] = there.targets["/network/v2.0/networks"]
        cloud = connected(tmp_path, there, cacert="ca.pem")
        with pytest.raises(Unreachable, match=f"http{there.url.removeprefix('https')}"):
            cloud.network.list("/networks", "networks")


@pytest.mark.parametrize("target", ["", "/compute/servers/1"])
def test_a_redirect_that_leads_nowhere_is_an_error(tmp_path: Path, target: str) -> None:
    """A deletion would otherwise count as done."""
    with served() as there:
        there.targets = {"/compute/servers/1": target}
        cloud = connected(tmp_path, there)
        with pytest.raises(CloudError, match="redirect"):
            cloud.compute.delete("/servers/1")
