from __future__ import annotations

import contextlib
import gzip
import logging
import os
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NoReturn

import pytest
import trustme

from openstack_prep.base.errors import DownloadError
from openstack_prep.download import http as download
from openstack_prep.download import qemu_img
from openstack_prep.download.address import CHUNK, shown
from openstack_prep.download.source import open_source
from tests.unit import distant
from tests.unit.distant import Distant, Proxy, basic, forward
from tests.unit.texts import Wording, expect_error
from tests.unit.web import Web, serve

CONTENT = os.urandom(3 * CHUNK + 12345)


@pytest.fixture
def web() -> Iterator[Web]:
    with serve(Web(CONTENT)) as serving:
        yield serving


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "PAUSE", 0.001)


def read(where: str) -> bytes:
    chunks, size = open_source(where)
    content = b"".join(chunks)
    assert size in (None, len(content))
    return content


def test_a_file_by_path_or_url(tmp_path: Path) -> None:
    path = tmp_path / "a disk"
    path.write_bytes(CONTENT)
    assert read(str(path)) == CONTENT
    assert read(path.as_uri()) == CONTENT


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="No such file"):
        open_source(str(tmp_path / "none"))


def test_from_the_web(web: Web) -> None:
    assert read(web.url) == CONTENT
    assert web.asked[0]["Accept-Encoding"] == "identity"


def test_without_a_length(web: Web) -> None:
    web.length = False
    assert read(web.url) == CONTENT


def test_it_goes_on_where_it_broke_off(web: Web) -> None:
    web.breaks, web.etags = [2 * CHUNK, CHUNK], ['"a"'] * 3
    assert read(web.url) == CONTENT
    assert [(asked.get("Range"), asked.get("If-Range")) for asked in web.asked] == [
        (None, None),
        (f"bytes={2 * CHUNK}-", '"a"'),
        (f"bytes={3 * CHUNK}-", '"a"'),
    ]


def test_a_weak_tag_is_no_proof(web: Web) -> None:
    web.breaks, web.etags = [CHUNK], ['W/"a"', 'W/"a"']
    assert read(web.url) == CONTENT
    assert "If-Range" not in web.asked[1]


def test_another_content_meanwhile(web: Web, wording: Wording) -> None:
    web.breaks, web.etags = [CHUNK], ['"a"', '"b"']
    with pytest.raises(DownloadError) as caught:
        read(web.url)
    wording(caught.value)


def test_a_server_that_cannot_resume(web: Web) -> None:
    web.breaks, web.ranges = [CHUNK], False
    with pytest.raises(DownloadError, match="cannot be resumed"):
        read(web.url)


def test_no_progress_is_the_end(web: Web) -> None:
    web.breaks = [CHUNK, 0, 0]
    with expect_error(DownloadError, CHUNK, len(CONTENT)):
        read(web.url)


def test_passing_faults_are_waited_out(web: Web) -> None:
    web.refusals = [503, 429, 502]
    assert read(web.url) == CONTENT


@pytest.mark.parametrize(("refusals", "message"), [([404], "404 Not Found"), ([503] * 9, "503")])
def test_refusals(web: Web, refusals: list[int], message: str) -> None:
    web.refusals = refusals
    with pytest.raises(DownloadError, match=message):
        open_source(web.url)


def test_nobody_listens() -> None:
    with pytest.raises(DownloadError, match="refused") as caught:
        open_source("http://me:secret@127.0.0.1:1/disk?signature=secret")
    assert "secret" not in str(caught.value)


def test_what_is_shown_of_a_url() -> None:
    assert shown("https://me:pw@host:8443/a/disk?sig=x#y") == "https://host:8443/a/disk"
    assert shown("/a/disk") == "/a/disk"
    assert shown("https://me:pw@[/disk") == "https://..."


@pytest.mark.parametrize("url", ["http://me:pw@[/disk", "http://me:pw@a b/disk", "http://me:pw@/disk"])
def test_what_is_no_url(url: str, wording: Wording) -> None:
    with pytest.raises(DownloadError) as caught:
        open_source(url)
    wording(caught.value)
    assert "pw" not in str(caught.value)


# --- logins and redirects -----------------------------------------------------------------


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the tester's own environment has a say."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("NETRC", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", *download.CA_BUNDLES):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def guarded() -> Iterator[Distant]:
    with distant.serve(Distant(CONTENT, login="me:p@ss wörd")) as serving:
        yield serving


@pytest.fixture
def netrc(tmp_path: Path) -> Path:
    """It has what the guarded server takes, and what no other may get."""
    path = tmp_path / ".netrc"
    path.write_text("machine 127.0.0.1 login me password not-this\nmachine localhost login it password own\n")
    path.chmod(0o600)
    return path


def test_a_login_in_the_url_is_stronger_than_netrc(guarded: Distant, netrc: Path) -> None:
    assert read(f"http://me:p%40ss%20w%C3%B6rd@127.0.0.1:{guarded.port}/disk") == CONTENT


def test_a_login_in_netrc(guarded: Distant, netrc: Path) -> None:
    guarded.login = "me:not-this"
    assert read(f"http://127.0.0.1:{guarded.port}/disk") == CONTENT


def test_a_login_that_is_wrong(guarded: Distant, wording: Wording) -> None:
    with pytest.raises(DownloadError) as caught:
        read(f"http://me:not-this@127.0.0.1:{guarded.port}/disk")
    wording(caught.value)
    assert "not-this" not in str(caught.value)


@pytest.mark.parametrize("with_netrc", [False, True])
def test_a_login_does_not_follow_to_another_host(
    guarded: Distant, netrc: Path, with_netrc: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not with_netrc:
        netrc.unlink()
    with distant.serve(Distant(CONTENT)) as other:
        guarded.redirects = {"/disk": f"http://localhost:{other.port}/there"}
        assert read(f"http://me:secret@127.0.0.1:{guarded.port}/disk") == CONTENT
        assert other.asked == [("/there", basic("it:own") if with_netrc else "")]


@pytest.mark.parametrize("login", ["", "me:secret@"])
def test_a_login_does_not_follow_to_another_port(guarded: Distant, netrc: Path, login: str) -> None:
    """.netrc has hosts, not ports: the other port got its login after the redirect."""
    with distant.serve(Distant(CONTENT)) as other:
        guarded.redirects = {"/disk": f"http://127.0.0.1:{other.port}/there"}
        assert read(f"http://{login}127.0.0.1:{guarded.port}/disk") == CONTENT
        assert other.asked == [("/there", "")]


@pytest.mark.parametrize("with_netrc", [False, True])
def test_it_follows_on_its_own_host(guarded: Distant, netrc: Path, with_netrc: bool) -> None:
    """After the redirect the login of .netrc took the place of the one in the URL."""
    if not with_netrc:
        netrc.unlink()
    guarded.redirects = {"/disk": "/there"}
    assert read(f"http://me:p%40ss%20w%C3%B6rd@127.0.0.1:{guarded.port}/disk") == CONTENT


@pytest.mark.parametrize(
    "answer",
    [
        "200 OK\r\nno header",
        "404 /disk?signature=secret is not here",
        "404 disk%3Fsignature%3Dsecret%2Fa",
        "401 bWU6c2VjcmV0",
        "403 secret/a is over",
    ],
)
def test_what_a_server_repeats_or_breaks_shows_no_signature(caplog: pytest.LogCaptureFixture, answer: str) -> None:
    """urllib3 warns of headers that it cannot read, with the URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.wfile.write(f"HTTP/1.0 {answer}\r\n\r\n".encode())

        def log_message(self, *words: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server, ThreadPoolExecutor() as pool:
        pool.submit(server.serve_forever, 0.01)
        said = ""
        try:
            read(f"http://me:secret@127.0.0.1:{server.server_port}/disk?signature=secret%2Fa")
        except DownloadError as error:
            said = str(error)
        finally:
            server.shutdown()
    assert not [word for word in ("secret", "c2VjcmV0") if word in caplog.text + said]


def test_signatures_are_not_logged(web: Web, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    web.refusals = [503]
    read(f"{web.url}?signature=secret")
    with pytest.raises(DownloadError) as caught:
        open_source("http://me:secret@127.0.0.1:1/disk?signature=secret")
    chain = caplog.handler.format(logging.makeLogRecord({"exc_info": (DownloadError, caught.value, caught.tb)}))
    assert "DownloadError" in chain
    assert "secret" not in caplog.text + chain.replace("me:secret@127.0.0.1:1/disk?signature=secret", "")


# --- TLS and proxies ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def bundle(ca: trustme.CA, tmp_path: Path) -> str:
    ca.cert_pem.write_to_path(tmp_path / "ca.pem")
    return str(tmp_path / "ca.pem")


@pytest.fixture
def safe(ca: trustme.CA) -> Iterator[Distant]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("localhost", "mirror.invalid").configure_cert(context)
    with distant.serve(Distant(CONTENT), context) as serving:
        yield serving


@pytest.mark.parametrize("name", download.CA_BUNDLES)
def test_a_private_ca(safe: Distant, bundle: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"https://localhost:{safe.port}/disk"
    with expect_error(DownloadError, "refused", "REQUESTS_CA_BUNDLE"):
        open_source(url)
    monkeypatch.setenv(name, bundle)
    assert read(url) == CONTENT


def test_a_certificate_that_has_expired(
    ca: trustme.CA, bundle: str, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    """The fix is not to trust its CA."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ended = datetime.now(UTC) - timedelta(days=1)
    ca.issue_cert("localhost", not_before=ended - timedelta(days=1), not_after=ended).configure_cert(context)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", bundle)
    with (
        distant.serve(Distant(CONTENT), context) as expired,
        pytest.raises(DownloadError) as caught,
    ):
        open_source(f"https://localhost:{expired.port}/disk")
    wording(caught.value)


def test_a_name_that_the_certificate_lacks(
    safe: Distant, bundle: str, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", bundle)
    with pytest.raises(DownloadError) as caught:
        open_source(f"https://127.0.0.1:{safe.port}/disk")
    wording(caught.value)


def test_tls_that_breaks_off_is_tried_again(ca: trustme.CA, bundle: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", bundle)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("localhost").configure_cert(context)
    left = iter(range(2))
    refused = ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
    context.sni_callback = lambda *_: refused if next(left, None) is not None else None
    with distant.serve(Distant(CONTENT), context) as safe:
        assert read(f"https://localhost:{safe.port}/disk") == CONTENT


def test_a_bundle_that_is_not_there(safe: Distant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/ca.pem")
    with expect_error(DownloadError, "/disk", "/nowhere/ca.pem"):
        open_source(f"https://localhost:{safe.port}/disk")


def test_tls_is_not_left(safe: Distant, bundle: str, netrc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", bundle)
    with distant.serve(Distant(CONTENT)) as other:
        safe.redirects = {"/disk": f"http://localhost:{other.port}/disk?signature=secret"}
        with expect_error(DownloadError, "http://localhost", "/disk"):
            open_source(f"https://localhost:{safe.port}/disk")
        assert other.asked == []


def unknown(*_: Any) -> NoReturn:
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def test_through_a_proxy(guarded: Distant, monkeypatch: pytest.MonkeyPatch) -> None:
    guarded.login = ""
    with forward(Proxy(guarded.port, login="me:of-the-proxy")) as proxy:
        monkeypatch.setenv("http_proxy", f"http://me:of-the-proxy@127.0.0.1:{proxy.port}")
        assert read("http://mirror.invalid/disk") == CONTENT
        assert proxy.asked == ["GET http://mirror.invalid/disk"]
        monkeypatch.setenv("no_proxy", "127.0.0.1,.invalid")
        assert read(f"http://127.0.0.1:{guarded.port}/disk") == CONTENT
        monkeypatch.setattr(socket, "getaddrinfo", unknown)  # a resolver that nobody answers takes its time
        with pytest.raises(DownloadError, match=r"[Rr]esol"):
            open_source("http://mirror.invalid/disk")
        assert len(proxy.asked) == 1


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_refuses_us(guarded: Distant, scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with forward(Proxy(guarded.port, login="me:of-the-proxy")) as proxy:
        monkeypatch.setenv(f"{scheme}_proxy", f"http://me:wrong-one@127.0.0.1:{proxy.port}")
        with pytest.raises(DownloadError, match="407 Proxy Authentication Required") as caught:
            open_source(f"{scheme}://mirror.invalid/disk")
        assert "wrong-one" not in str(caught.value)


def test_tls_through_a_proxy(safe: Distant, bundle: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", bundle)
    with forward(Proxy(safe.port)) as proxy:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.port}")
        assert read("https://mirror.invalid/disk") == CONTENT
        assert proxy.asked == ["CONNECT mirror.invalid:443"]


# --- servers that hang --------------------------------------------------------------------


def test_a_pause_too_long_is_a_broken_connection(guarded: Distant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "TIMEOUT", (10.0, 0.2))
    guarded.login, guarded.stalls = "", 1
    assert read(f"http://127.0.0.1:{guarded.port}/disk") == CONTENT
    assert len(guarded.asked) == 2


def test_a_server_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "TIMEOUT", (10.0, 0.02))
    # the kernel takes the connection, and nobody the request
    with (
        socket.create_server(("127.0.0.1", 0)) as mute,
        expect_error(DownloadError, "/disk", "0.02"),
    ):
        open_source(f"http://127.0.0.1:{mute.getsockname()[1]}/disk")


# --- servers that make no sense -----------------------------------------------------------


@contextlib.contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """Yield a URL at which every request gets that answer."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(2**16)
            self.request.sendall(answer)

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/disk?signature=hidden"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("302 Found\r\nLocation: http://me:hidden@[/x", "ValueError; correct the URL"),
        ("302 Found\r\nLocation: file:///etc/passwd", "InvalidSchema; correct the URL"),
        ("200 OK\r\nContent-Length: \xb2\r\nTransfer-Encoding: chunked", "broke off after 0 of [?] bytes"),
        # swiftclient, which heatclient imports, raises the limit of the whole process from 100 to 256
        ("200 OK\r\n" + "a: b\r\n" * 300, "got more than (100|256) headers"),
    ],
)
def test_an_answer_that_makes_no_sense(head: str, said: str) -> None:
    with answering(f"HTTP/1.1 {head}\r\n\r\nxx".encode("latin-1")) as url:
        with pytest.raises(DownloadError, match=said) as caught:
            read(url)
        assert "hidden" not in str(caught.value)


def test_no_answer_at_all(wording: Wording) -> None:
    with answering(b"") as url, pytest.raises(DownloadError) as caught:
        read(url)
    wording(caught.value)


# --- formats ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"QFI\xfb\0\0\0\3", "qcow2"),
        (b"KDMV\1", "vmdk"),
        (b"vhdxfile", "vhdx"),
        (b"\0" * 0x8001 + b"CD001", "iso"),
        (b"\0" * 0x40 + b"\x7f\x10\xda\xbe", "vdi"),
        (b"\xeb\x63\x90", "raw"),
    ],
)
def test_formats_by_their_first_bytes(tmp_path: Path, head: bytes, expected: str) -> None:
    (tmp_path / "disk").write_bytes(head)
    assert qemu_img.of_source(str(tmp_path / "disk")) == expected


def test_the_format_of_what_is_compressed(tmp_path: Path) -> None:
    (tmp_path / "disk").write_bytes(gzip.compress(b"QFI\xfb" + CONTENT))
    assert qemu_img.of_source(str(tmp_path / "disk")) == "qcow2"
    assert qemu_img.of_source(str(tmp_path / "disk"), "none") == "raw"
