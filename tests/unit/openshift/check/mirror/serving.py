"""A registry on loopback that speaks TLS and the registry API: manifests by tag and digest, logins and tokens."""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

LOGIN = base64.b64encode(b"puller:a secret").decode()
TOKEN = "t0ken"
MANIFEST = {"schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json", "layers": []}
SIMPLE_SIGNING = "application/vnd.dev.cosign.simplesigning.v1+json"
SIGNATURE = {
    "schemaVersion": 2,
    "mediaType": "application/vnd.oci.image.manifest.v1+json",
    "layers": [{"mediaType": SIMPLE_SIGNING, "annotations": {"dev.cosignproject.cosign/signature": "MEUCIQ=="}}],
}


@dataclass
class Hosting:
    """The content of a registry, and how it lets clients in."""

    manifests: dict[tuple[str, str], bytes] = field(default_factory=dict)
    """Manifests by repository and reference."""
    wants: Literal["nothing", "Basic", "Bearer"] = "nothing"
    realm: str = ""
    """URL that gives tokens; default: this registry's own."""
    refuse: int = 0
    """Status of all answers, if not 0."""
    moved: str = ""
    """URL to redirect requests for manifests to."""
    host: str = ""
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """Path and Authorization of each request."""

    def push(self, repository: str, manifest: Any, tag: str | None = None) -> str:
        """Store a manifest by its tag, or by its digest; return the digest without the algorithm."""
        content = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
        digest = hashlib.sha256(content).hexdigest()
        self.manifests[repository, tag or f"sha256:{digest}"] = content
        return digest


@contextmanager
def hosting(pem: Path) -> Iterator[Hosting]:
    """Serve a registry with a certificate for 127.0.0.1 until the test ends."""
    registry = Hosting()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _answer(registry, self)

        def log_message(self, *words: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.handle_error = lambda request, client_address: None  # type: ignore[method-assign] # clients that distrust it
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    registry.host = f"127.0.0.1:{server.server_port}"
    try:
        yield registry
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _answer(registry: Hosting, request: BaseHTTPRequestHandler) -> None:
    authorization = request.headers.get("Authorization")
    registry.asked.append((request.path, authorization))
    parts = urlsplit(request.path)
    if registry.refuse:
        _send(request, registry.refuse, b"<html>no</html>")
    elif parts.path == "/token":
        _give_token(request, parse_qs(parts.query), authorization)
    elif registry.wants != "nothing" and authorization != {"Basic": f"Basic {LOGIN}", "Bearer": f"Bearer {TOKEN}"}.get(
        registry.wants
    ):
        realm = registry.realm or f"https://{registry.host}/token"
        challenge = f'{registry.wants} realm="{realm}",service="loopback"'
        _send(request, 401, _error("UNAUTHORIZED"), {"WWW-Authenticate": challenge})
    elif registry.moved:
        _send(request, 307, b"", {"Location": registry.moved})
    else:
        repository, _, reference = parts.path.removeprefix("/v2/").partition("/manifests/")
        found = registry.manifests.get((repository, reference))
        _send(request, 200 if found is not None else 404, found if found is not None else _error("MANIFEST_UNKNOWN"))


def _give_token(request: BaseHTTPRequestHandler, query: dict[str, list[str]], authorization: str | None) -> None:
    wanted = ["repository:ocp/release:pull"]
    if authorization != f"Basic {LOGIN}" or query.get("scope") != wanted or query.get("service") != ["loopback"]:
        _send(request, 401, _error("DENIED"))
    else:
        _send(request, 200, json.dumps({"token": TOKEN}).encode())


def _error(code: str) -> bytes:
    return json.dumps({"errors": [{"code": code, "message": "no"}]}).encode()


def _send(request: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
    request.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(body)
