"""A web server on loopback that repeats what a real kube-apiserver has answered (data/api).

The answers were recorded from kube-apiserver 1.36.2 with etcd 3.4.23; tests/external runs against such a server.
"""

from __future__ import annotations

import base64
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import trustme
import yaml

DATA = Path(__file__).parent / "data" / "api"
TOKEN = "marker-of-a-token"


@dataclass
class Recorded:
    """Answers by path and query; each request takes the first of its list, and the last one stays."""

    url: str = ""
    lists: list[Any] = field(default_factory=lambda: ["services.json"])
    """Of Services: a file, a status with a file, or bytes."""
    watches: list[Any] = field(default_factory=list)
    """A file, or seconds to send nothing; none are left: a second."""
    asked: list[dict[str, str]] = field(default_factory=list)
    """The query of each request."""
    proxied: list[str | None] = field(default_factory=list)
    """The header Proxy-Authorization of each request."""

    def kubeconfig(self, path: Path, **user: Any) -> Path:
        authority = base64.b64encode(_authority().cert_pem.bytes()).decode()
        cluster = {"server": self.url, "certificate-authority-data": authority}
        config = {
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": user or {"token": TOKEN}}],
        }
        path.write_text(yaml.safe_dump(config))
        return path


def _next(answers: list[Any], otherwise: Any) -> Any:
    return answers.pop(0) if len(answers) > 1 else answers[0] if answers else otherwise


@cache
def _authority() -> trustme.CA:
    return trustme.CA()


@contextmanager
def serve(recorded: Recorded, *, tls: bool = True) -> Iterator[Recorded]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = dict(parse_qsl(parts.query))
            recorded.asked.append(query)
            recorded.proxied.append(self.headers["Proxy-Authorization"])
            if self.headers["Authorization"] != f"Bearer {TOKEN}":
                self._answer(401, (DATA / "401.json").read_bytes())
            elif query.get("watch"):
                self._watch(recorded.watches.pop(0) if recorded.watches else 1.0)
            elif parts.path == "/api/v1/nodes":
                self._answer(200, (DATA / "nodes.json").read_bytes())
            elif query.get("continue"):
                self._answer(200, (DATA / "services-page-2.json").read_bytes())
            else:
                given = _next(recorded.lists, "services.json")
                status, name = given if isinstance(given, tuple) else (200, given)
                self._answer(status, name if isinstance(name, bytes) else (DATA / name).read_bytes())

        def _answer(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _watch(self, given: Any) -> None:
            """Send events in chunks, as an API server does."""
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            if isinstance(given, float):
                time.sleep(given)
            else:
                content = given if isinstance(given, bytes) else (DATA / given).read_bytes()
                for line in content.splitlines(keepends=True):
                    for part in (line[:20], line[20:]):  # an event may come in pieces
                        self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n" if part else b"")
                        self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")

        def log_message(self, *words: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # a client that goes away

    server = Server(("127.0.0.1", 0), Handler)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        _authority().issue_cert("127.0.0.1").configure_cert(context)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    recorded.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    try:
        yield recorded
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
