"""What stands between us and a file: a web server with TLS, a login, redirects and pauses, and a proxy."""

from __future__ import annotations

import contextlib
import functools
import http.client
import select
import socket
import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Distant:
    """Serves one content under all paths but those that redirect."""

    content: bytes
    login: str = ""
    """USER:PASSWORD that it asks for."""
    redirects: dict[str, str] = field(default_factory=dict)
    """URLs by path."""
    stalls: int = 0
    """How many answers stop in the middle, and never go on."""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Path and user:password of each request, if any."""
    port: int = 0
    over: threading.Event = field(default_factory=threading.Event)


class _Quiet(BaseHTTPRequestHandler):
    def log_message(self, *words: Any) -> None:
        pass


class _Handler(_Quiet):
    def __init__(self, distant: Distant, *arguments: Any) -> None:
        self.distant = distant
        super().__init__(*arguments)

    def do_GET(self) -> None:
        distant, given = self.distant, self.headers.get("Authorization", "")
        distant.asked.append((self.path, given))
        if self.path in distant.redirects:
            self.send_response(302)
            self.send_header("Location", distant.redirects[self.path])
            self.end_headers()
        elif distant.login and given != basic(distant.login):
            self.send_error(401)
        else:
            self._send()

    def _send(self) -> None:
        content = self.distant.content
        start = int(self.headers.get("Range", "bytes=0-")[6:-1])
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        if not self.distant.stalls:
            self.wfile.write(content[start:])
            return
        self.distant.stalls -= 1
        self.wfile.write(content[start : (start + len(content)) // 2])
        self.wfile.flush()
        self.distant.over.wait(30)


def basic(login: str) -> str:
    """Return the header that says USER:PASSWORD."""
    return f"Basic {b64encode(login.encode()).decode()}"


@contextlib.contextmanager
def serve(distant: Distant, context: ssl.SSLContext | None = None) -> Iterator[Distant]:
    """Serve on a port of 127.0.0.1, with TLS when there is a context."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, distant))
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    distant.port = server.server_port
    with running(server):
        yield distant
        distant.over.set()


@contextlib.contextmanager
def running(server: ThreadingHTTPServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# --- a proxy ------------------------------------------------------------------------------


@dataclass
class Proxy:
    """Forwards every request to one port of 127.0.0.1, whatever host it names: it alone knows those names."""

    behind: int
    login: str = ""
    asked: list[str] = field(default_factory=list)
    """Method and target of each request, such as "CONNECT mirror.invalid:443"."""
    port: int = 0


class _Forwarding(_Quiet):
    def __init__(self, proxy: Proxy, *arguments: Any) -> None:
        self.proxy = proxy
        super().__init__(*arguments)

    def _refused(self) -> bool:
        self.proxy.asked.append(f"{self.command} {self.path}")
        wrong = bool(self.proxy.login) and self.headers.get("Proxy-Authorization") != basic(self.proxy.login)
        if wrong:
            self.send_error(407)
        return wrong

    def do_GET(self) -> None:
        if self._refused():
            return
        behind = http.client.HTTPConnection("127.0.0.1", self.proxy.behind, timeout=10)
        path = "/" + self.path.split("/", 3)[3]
        kept = {name: value for name, value in self.headers.items() if not name.startswith("Proxy-")}
        behind.request("GET", path, headers=kept)
        answer = behind.getresponse()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.read())
        behind.close()

    def do_CONNECT(self) -> None:
        if self._refused():
            return
        with socket.create_connection(("127.0.0.1", self.proxy.behind), 10) as behind:
            self.send_response(200)
            self.end_headers()
            ends = {self.connection: behind, behind: self.connection}
            while True:
                for end in select.select([*ends], [], [], 10)[0]:
                    if not (data := end.recv(2**16)):
                        return
                    ends[end].sendall(data)


@contextlib.contextmanager
def forward(proxy: Proxy) -> Iterator[Proxy]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Forwarding, proxy))
    proxy.port = server.server_port
    with running(server):
        yield proxy
