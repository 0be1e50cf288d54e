"""Clouds with TLS by a private CA: a server of our own on loopback, for requests-mock knows no TLS."""

from __future__ import annotations

import contextlib
import json
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme

from openstack_prep.base.errors import CloudError, ConfigError, Unreachable
from openstack_prep.cloud import service
from openstack_prep.cloud.connection import connect
from tests.unit.conftest import CLOUDS, ENDPOINTS, IDENTITY, token
from tests.unit.distant import running
from tests.unit.texts import Wording

YESTERDAY = datetime.now(UTC) - timedelta(days=1)
TRUST = "set cacert of the clouds.yaml entry to a file with its CA"

pytestmark = pytest.mark.usefixtures("clouds_yaml")


class Handler(BaseHTTPRequestHandler):
    """Keystone and Neutron of one port; collects what they were sent."""

    logins: list[str | None]
    url: str

    def do_GET(self) -> None:
        if self.path.startswith("/v2.0/networks"):
            self._answer({"networks": []})
        else:
            version = {"id": "v3.14", "status": "stable", "links": [{"rel": "self", "href": f"{self.url}/v3"}]}
            self._answer({"version": version})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        answer = json.dumps(token()).replace(IDENTITY, f"{self.url}/v3").replace(ENDPOINTS["network"], self.url)
        self._answer(json.loads(answer), 201, {"X-Subject-Token": "4f2a9c"})

    def _answer(self, body: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.logins.append(self.headers["Authorization"])
        text = json.dumps(body).encode()
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(text))} | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *words: Any) -> None:
        pass


@contextlib.contextmanager
def served(context: ssl.SSLContext | None) -> Iterator[type[Handler]]:
    class Own(Handler):
        logins: list[str | None] = []  # noqa: RUF012 - of one test

    server = ThreadingHTTPServer(("127.0.0.1", 0), Own)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    Own.url = f"http{'s' if context else ''}://localhost:{server.server_port}"
    with running(server):
        yield Own


def of(ca: trustme.CA, name: str = "localhost", ended: datetime | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    began = ended and ended - timedelta(days=1)
    ca.issue_cert(name, not_before=began, not_after=ended).configure_cert(context)
    return context


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(autouse=True)
def trusted(tmp_path: Path, ca: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the CA into ca.pem of the present folder."""
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(service, "PAUSE", 0.001)
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))


def ask(folder: Path, url: str, **settings: object) -> Any:
    """Log in by an entry with these settings and ask Neutron."""
    lines = "".join(f"    {name}: {json.dumps(value)}\n" for name, value in settings.items())
    text = CLOUDS.replace(IDENTITY, f"{url}/v3").replace("  lab:\n", f"  lab:\n{lines}")
    (folder / "clouds.yaml").write_text(text)
    return connect("lab").authenticate().network.list("/networks", "networks")


@pytest.mark.parametrize("cacert", ["ca.pem", "./ca.pem", "absolute"])
def test_a_private_ca_by_any_path(tmp_path: Path, ca: trustme.CA, cacert: str) -> None:
    with served(of(ca)) as there:
        path = str(tmp_path / "ca.pem") if cacert == "absolute" else cacert
        assert ask(tmp_path, there.url, cacert=path) == []


def test_a_private_ca_by_the_environment(tmp_path: Path, ca: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "ca.pem")
    with served(of(ca)) as there:
        assert ask(tmp_path, there.url) == []


@pytest.mark.parametrize("version", ["/v3", ""])
def test_a_ca_that_is_not_trusted(tmp_path: Path, ca: trustme.CA, version: str) -> None:
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "other.pem"))
    with served(of(ca)) as there:
        for settings in ({}, {"cacert": "other.pem"}):
            with pytest.raises(ConfigError, match=rf"cloud 'lab': .* refused: .*; {TRUST}$"):
                ask(tmp_path, there.url.replace("/v3", version), **settings)
        assert there.logins == []


def test_a_certificate_that_has_expired(tmp_path: Path, ca: trustme.CA, wording: Wording) -> None:
    with (
        served(of(ca, ended=YESTERDAY)) as there,
        pytest.raises(ConfigError) as caught,
    ):
        ask(tmp_path, there.url, cacert="ca.pem")
    wording(caught.value)


def test_a_certificate_for_another_name(tmp_path: Path, ca: trustme.CA) -> None:
    with served(of(ca, "other.example")) as there:
        for url in (there.url, there.url.replace("localhost", "127.0.0.1")):
            with pytest.raises(ConfigError, match=r"not valid for '(localhost|127\.0\.0\.1)'; use a name that"):
                ask(tmp_path, url, cacert="ca.pem")


def test_a_service_of_the_catalogue_with_a_certificate_of_its_own(tmp_path: Path, ca: trustme.CA) -> None:
    with served(of(trustme.CA())) as other, served(of(ca)) as there:
        overridden = {"network_endpoint_override": f"{other.url}/v2.0"}
        with pytest.raises(ConfigError, match=rf"GET network/networks: .* refused: .*; {TRUST}"):
            ask(tmp_path, there.url, cacert="ca.pem", **overridden)


@pytest.mark.parametrize("text", ["", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"])
@pytest.mark.parametrize("by", ["cacert", "REQUESTS_CA_BUNDLE"])
def test_a_file_without_a_ca(
    tmp_path: Path, ca: trustme.CA, text: str, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ca.pem").write_text(text)
    if by != "cacert":
        monkeypatch.setenv(by, "ca.pem")
    with served(of(ca)) as there, pytest.raises(ConfigError, match=r"certificate"):
        ask(tmp_path, there.url, **({"cacert": "ca.pem"} if by == "cacert" else {}))


@pytest.mark.parametrize("content", ["", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "other"])
def test_a_key_that_is_not_that_of_the_certificate(
    tmp_path: Path, ca: trustme.CA, content: str, wording: Wording
) -> None:
    """Both files are those of a user who logs in by TLS."""
    mine, other = ca.issue_cert("me"), ca.issue_cert("other")
    mine.cert_chain_pems[0].write_to_path(str(tmp_path / "me.pem"))
    other.private_key_pem.write_to_path(str(tmp_path / "me.key"))
    if content != "other":
        (tmp_path / "me.key").write_text(content)
    with served(of(ca)) as there, pytest.raises(ConfigError) as caught:
        ask(tmp_path, there.url, cacert="ca.pem", cert="me.pem", key="me.key")
    wording(caught.value)


def test_a_port_without_tls(tmp_path: Path, wording: Wording) -> None:
    with served(None) as there, pytest.raises(ConfigError) as caught:
        ask(tmp_path, there.url.replace("http:", "https:"), cacert="ca.pem")
    wording(caught.value)


def test_a_port_that_wants_tls(tmp_path: Path, ca: trustme.CA) -> None:
    with served(of(ca)) as there, pytest.raises(CloudError):
        ask(tmp_path, there.url.replace("https:", "http:"))


def test_tls_that_breaks_off_is_tried_again(tmp_path: Path, ca: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the proxy that ends TLS is restarted."""
    context = of(ca)
    monkeypatch.setattr("openstack_prep.cloud.connection.PAUSE", 0.001)
    with served(context) as there:
        context.sni_callback = lambda *_: ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        with pytest.raises(Unreachable) as caught:
            ask(tmp_path, there.url, cacert="ca.pem")
        assert caught.value.retryable
        refusals = iter(range(3))
        context.sni_callback = lambda *_: (
            ssl.ALERT_DESCRIPTION_INTERNAL_ERROR if next(refusals, None) is not None else None
        )
        assert ask(tmp_path, there.url, cacert="ca.pem") == []


def test_a_login_of_netrc_is_for_nobody_here(tmp_path: Path, ca: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".netrc").write_text("machine localhost login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    with served(of(ca)) as there:
        assert ask(tmp_path, there.url, cacert="ca.pem") == []
        assert set(there.logins) == {None}
