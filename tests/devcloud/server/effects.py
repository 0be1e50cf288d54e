"""What a fault does to an answer, and to its connection."""

import ctypes
import socket
import time

PAGE = b"<html><head><title>Sign in</title></head><body><h1>Sign in</h1>to use this network</body></html>"
PIECES = 10


class Whole:
    """A whole answer of an application, which nobody has seen yet."""

    def __init__(self, application, environ):
        self.status, self.headers, written = "", [], []
        chunks = application(environ, self._start)
        try:
            written += chunks
        finally:
            if hasattr(chunks, "close"):
                chunks.close()
        self.body = b"".join(written)

    def _start(self, status, headers, exc_info=None):
        self.status, self.headers = status, headers

    def send(self, start, body=None, **changed):
        """Begin the answer; returns its body.  ``changed`` are headers, with _ for -."""
        body = self.body if body is None else body
        changed = {name.replace("_", "-").lower(): value for name, value in changed.items()}
        kept = [(name, value) for name, value in self.headers if name.lower() not in changed]
        start(self.status, [*kept, *changed.items()])
        return [body]


def apply(fault, application, environ, start):
    """Answer by an effect of a fault; the body of the answer."""
    if fault.effect in ("refuse", "reset"):
        return _reset(fault, environ, start)
    return _answered(fault, Whole(application, environ), environ, start)


def remembering(faults, application, environ, start, fault):
    """Keep the first answer to each GET, and give it again where the fault says so."""
    names = ("SCRIPT_NAME", "PATH_INFO", "QUERY_STRING", "HTTP_X_AUTH_TOKEN")
    request = tuple(environ.get(name, "") for name in names)
    if fault and fault.effect == "stale" and request in faults.remembered:
        return faults.remembered[request].send(start)
    if fault and fault.effect in ("refuse", "reset"):
        return _reset(fault, environ, start)
    if fault and fault.status and not fault.effect:
        start(f"{fault.status} Fault", [*fault.headers.items()])
        return [fault.body.encode()]
    whole = Whole(application, environ)
    if whole.status.startswith("200"):
        faults.remembered.setdefault(request, whole)
    return _answered(fault, whole, environ, start)


def _answered(fault, whole, environ, start):
    effect = fault.effect if fault else ""
    if effect == "late":
        start(f"{fault.status} Fault", [*fault.headers.items()])
        return [fault.body.encode()]
    if effect == "drip":
        whole.send(start)
        return _dripping(whole.body, environ, fault.delay)
    if effect == "cut":
        whole.send(start)
        return _cut(whole.body, environ)
    if effect in SHAPES and whole.body and whole.status.startswith("2"):
        kind, body = SHAPES[effect](whole.body)
        return whole.send(start, body, content_length=str(len(body)), **({"content_type": kind} if kind else {}))
    return whole.send(start)


SHAPES = {
    "html": lambda body: ("text/html", PAGE),
    "empty": lambda body: ("", b""),
    "half": lambda body: ("", body[: len(body) // 2]),
    "list": lambda body: ("application/json", b"[]"),
}


def _dripping(body, environ, seconds):
    environ["eventlet.minimum_write_chunk_size"] = 1
    size = max(1, -(-len(body) // PIECES))
    for place in range(0, len(body), size):
        time.sleep(seconds / PIECES)
        yield body[place : place + size]


def _cut(body, environ):
    environ["eventlet.minimum_write_chunk_size"] = 1
    if half := body[: len(body) // 2]:
        yield half
    hang_up(environ)


def _reset(fault, environ, start):
    if fault.effect == "refuse" and "devcloud.refuse" in environ:
        environ["devcloud.refuse"](fault.delay)
    reset(environ)
    start("503 Fault", [("Content-Length", "0")])
    return []


def connection_of(environ):
    return environ.get("devcloud.socket") or environ["eventlet.input"].get_socket()


def hang_up(environ):
    """End the connection; what the server still writes to it is lost."""
    connection_of(environ).shutdown(socket.SHUT_RDWR)


def reset(environ):
    """Reset the connection, as connecting to no address does (connect(2), AF_UNSPEC)."""
    nowhere = bytes(16)
    ctypes.CDLL(None, use_errno=True).connect(connection_of(environ).fileno(), nowhere, len(nowhere))
