"""One connection: TCP, then TLS, then the status of one HTTP request, within one time limit."""

from __future__ import annotations

import errno
import re
import socket
import ssl
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from openstack_prep.openshift.probe.certificate import Certificate, read_certificate

SECONDS = 5.0
"""Seconds for one connection, from the first packet to the status of the answer."""
LONGEST_LINE = 4096
"""Bytes of an answer that may precede the end of its first line."""
_STATUS = re.compile(rb"HTTP/\d(?:\.\d)? (\d{3})\b")


class Failure(StrEnum):
    """Why a connection did not succeed."""

    NONE = ""
    TIMEOUT = "timeout"
    REFUSED = "refused"
    HOST_UNREACHABLE = "host-unreachable"
    NO_ROUTE = "no-route"
    CLOSED = "closed"
    INVALID = "invalid"


@dataclass(frozen=True, kw_only=True)
class Request:
    """Where to connect, and what to request there."""

    host: str
    """Host name that TLS and HTTP ask for; the address itself if there is no name."""
    address: str
    port: int
    path: str | None = None
    """Path to request by HTTPS; None: the connection is closed as soon as it is open."""

    @property
    def url(self) -> str:
        return f"https://{self.host}:{self.port}{self.path}" if self.path else f"TCP {self.port}"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How far a request came."""

    request: Request
    stage: Literal["TCP", "TLS", "HTTP"]
    """The last stage that was tried."""
    failure: Failure = Failure.NONE
    detail: str = ""
    """The system's or the TLS library's own words."""
    certificate: Certificate | None = None
    status: int | None = None
    """Status of the HTTP answer."""
    seconds: float = 0.0

    @property
    def connected(self) -> bool:
        """Whether TCP connected: something has the address and listens."""
        return self.stage != "TCP" or self.failure is Failure.NONE


def connect(request: Request, seconds: float = SECONDS) -> Outcome:
    """Carry out a request; never raises for what the network or the peer does."""
    started = time.monotonic()
    until = started + seconds
    stage: Literal["TCP", "TLS", "HTTP"] = "TCP"
    certificate, status, failure, detail = None, None, Failure.NONE, ""
    try:
        with socket.create_connection((request.address, request.port), seconds) as opened:
            if request.path is not None:
                stage = "TLS"
                opened.settimeout(_left(until))
                with _unverified().wrap_socket(opened, server_hostname=request.host) as secured:
                    certificate = read_certificate(secured.getpeercert(binary_form=True) or b"")
                    stage = "HTTP"
                    status = _status(secured, request, until)
    except (OSError, ValueError) as error:
        failure, detail = _failure(error), _detail(error)
    return Outcome(
        request=request,
        stage=stage,
        failure=failure,
        detail=detail,
        certificate=certificate,
        status=status,
        seconds=time.monotonic() - started,
    )


def _unverified() -> ssl.SSLContext:
    """Return a context that accepts any certificate: a cluster's own authority signs it, and it is examined later."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _status(secured: ssl.SSLSocket, request: Request, until: float) -> int:
    """Return the status of the answer; raises ValueError if it is no HTTP."""
    host = f"[{request.host}]" if ":" in request.host else request.host
    lines = [f"GET {request.path} HTTP/1.1", f"Host: {host}:{request.port}", "Connection: close", "", ""]
    secured.settimeout(_left(until))
    secured.sendall("\r\n".join(lines).encode())
    answer = b""
    while b"\n" not in answer and len(answer) < LONGEST_LINE:
        secured.settimeout(_left(until))
        more = secured.recv(LONGEST_LINE)
        if not more:
            raise ConnectionResetError(errno.ECONNRESET, "closed without an answer")
        answer += more
    found = _STATUS.match(answer)
    if found is None:
        raise ValueError("the answer is not HTTP")
    return int(found[1])


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError(errno.ETIMEDOUT, "no answer in time")
    return left


def _failure(error: Exception) -> Failure:
    if isinstance(error, TimeoutError) and not isinstance(error, ssl.SSLError):
        return Failure.TIMEOUT
    if isinstance(error, ConnectionRefusedError):
        return Failure.REFUSED
    if isinstance(error, ssl.SSLEOFError | ConnectionError):
        return Failure.CLOSED
    if isinstance(error, ssl.SSLError):  # its errno is not the system's
        return Failure.INVALID
    number = getattr(error, "errno", None)
    if number == errno.EHOSTUNREACH:
        return Failure.HOST_UNREACHABLE
    if number in (errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EACCES, errno.EPERM):
        return Failure.NO_ROUTE
    return Failure.INVALID


def _detail(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or "").replace("_", " ").lower() or str(error)
    return str(getattr(error, "strerror", None) or error)
