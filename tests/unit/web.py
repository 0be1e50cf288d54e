"""A web server on loopback that breaks off, refuses and changes its mind as told."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Web:
    """One file under every path, or several by their paths, and what goes wrong with them."""

    content: bytes
    url: str = ""
    breaks: list[int] = field(default_factory=list)
    """After how many bytes each answer breaks off, one after the other."""
    refusals: list[int] = field(default_factory=list)
    """Status codes to answer before serving."""
    ranges: bool = True
    length: bool = True
    etags: list[str] = field(default_factory=list)
    """Tags of the first answer, the second ...; none after the last."""
    asked: list[dict[str, str]] = field(default_factory=list)
    """Headers of each request."""
    files: dict[str, bytes] = field(default_factory=dict)
    """Contents by path, in place of the one; others are not found."""
    paths: list[str] = field(default_factory=list)
    """Path of each request."""
    pause: threading.Event | None = None
    """What each answer waits for in its middle."""


@contextmanager
def serve(web: Web) -> Iterator[Web]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _answer(web, self)

        def log_message(self, *words: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    web.url = f"http://127.0.0.1:{server.server_port}/disk"
    try:
        yield web
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _answer(web: Web, request: BaseHTTPRequestHandler) -> None:
    web.asked.append(dict(request.headers))
    web.paths.append(request.path)
    if web.refusals:
        request.send_error(web.refusals.pop(0))
        return
    if web.files and request.path not in web.files:
        request.send_error(404)
        return
    content = web.files.get(request.path, web.content)
    tag = web.etags.pop(0) if web.etags else ""
    wanted = re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range", ""))
    unchanged = request.headers.get("If-Range", tag) == tag
    start = int(wanted[1]) if wanted and web.ranges and unchanged else 0
    request.send_response(206 if start else 200)
    if start:
        request.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
    if web.length:
        request.send_header("Content-Length", str(len(content) - start))
    if tag:
        request.send_header("ETag", tag)
    request.end_headers()
    end = start + web.breaks.pop(0) if web.breaks else None
    if web.pause:
        half = (start + len(content)) // 2
        request.wfile.write(content[start:half])
        web.pause.wait(300)
        start = half
    request.wfile.write(content[start:end])
