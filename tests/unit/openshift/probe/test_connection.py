from __future__ import annotations

import time
from pathlib import Path

import pytest

from openstack_prep.openshift.probe import Failure, ProbeOutcome, ProbeRequest, connect
from tests.unit.openshift.probe.listener import OK, certificate, listening, unused

HOST = "api.dev.example.com"


def ask(port: int, *, path: str | None = "/readyz", seconds: float = 5.0) -> ProbeOutcome:
    return connect(ProbeRequest(host=HOST, address="127.0.0.1", port=port, path=path), seconds)


def test_an_answer(tmp_path: Path) -> None:
    with listening(pem=certificate(tmp_path, HOST, "127.0.0.1")) as port:
        found = ask(port)
    assert (found.stage, found.failure, found.status) == ("HTTP", Failure.NONE, 200)
    assert found.certificate is not None
    assert found.certificate.names == (HOST, "127.0.0.1")


def test_a_port_alone() -> None:
    with listening() as port:
        found = ask(port, path=None)
    assert (found.stage, found.failure, found.connected) == ("TCP", Failure.NONE, True)


def test_nothing_listens() -> None:
    found = ask(unused())
    assert (found.stage, found.failure, found.connected) == ("TCP", Failure.REFUSED, False)


def test_no_tls(tmp_path: Path) -> None:
    with listening(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        found = ask(port)
    assert (found.stage, found.failure, found.connected) == ("TLS", Failure.INVALID, True)


@pytest.mark.parametrize(
    ("answer", "failure"), [(b"", Failure.CLOSED), (b"SSH-2.0-OpenSSH\r\n", Failure.INVALID), (b"x" * 9000, "invalid")]
)
def test_no_http(answer: bytes, failure: str, tmp_path: Path) -> None:
    with listening(answer, pem=certificate(tmp_path, HOST)) as port:
        found = ask(port)
    assert (found.stage, found.failure, found.status) == ("HTTP", failure, None)


@pytest.mark.parametrize("secure", [True, False])
def test_silence_ends_with_the_time(secure: bool, tmp_path: Path) -> None:
    started = time.monotonic()
    with listening(None, pem=certificate(tmp_path, HOST) if secure else None) as port:
        found = ask(port, seconds=0.5)
    assert (found.stage, found.failure) == ("HTTP" if secure else "TLS", Failure.TIMEOUT)
    assert time.monotonic() - started < 20


def test_an_answer_drop_by_drop_ends_with_the_time(tmp_path: Path) -> None:
    """Each byte in time, the line never: the limit is that of the whole connection."""
    with listening(OK, pem=certificate(tmp_path, HOST), pause=0.3) as port:
        found = ask(port, seconds=1.5)
    assert found.failure is Failure.TIMEOUT
    assert found.seconds < 15
