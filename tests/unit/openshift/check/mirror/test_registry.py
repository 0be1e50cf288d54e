from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from openstack_prep.base.secret import Secret
from openstack_prep.openshift.check import mirror
from openstack_prep.openshift.check.mirror import ManifestAnswer, ManifestState, MirrorRegistry
from tests.unit.openshift.check.mirror.serving import LOGIN, MANIFEST, Hosting, hosting
from tests.unit.openshift.probe.listener import OK, certificate, listening, unused
from tests.unit.texts import Wording

REPOSITORY = "ocp/release"


@pytest.fixture
def pem(tmp_path: Path) -> Path:
    return certificate(tmp_path, "127.0.0.1", "localhost")


@pytest.fixture
def host(pem: Path) -> Iterator[Hosting]:
    with hosting(pem) as found:
        yield found


def ask(
    host: str, pem: Path | None, reference: str = "latest", login: str | None = None, seconds: float = 30.0
) -> ManifestAnswer:
    bundle = pem.read_text().partition("-----END PRIVATE KEY-----\n")[2] if pem else None
    secret = Secret(login) if login else None
    return MirrorRegistry(host=host, login=secret, bundle=bundle, seconds=seconds).manifest(REPOSITORY, reference)


def test_a_manifest_by_tag_and_digest(host: Hosting, pem: Path) -> None:
    digest = host.push(REPOSITORY, MANIFEST)
    host.push(REPOSITORY, MANIFEST, "latest")
    for reference in ("latest", f"sha256:{digest}"):
        found = ask(host.host, pem, reference)
        assert (found.answer, found.manifest) == (ManifestState.FOUND, MANIFEST)
    assert ask(host.host, pem, "sha256:" + "0" * 64).answer == ManifestState.MISSING
    assert ask(host.host, pem, "none") == ManifestAnswer(answer=ManifestState.MISSING, detail="404 (MANIFEST_UNKNOWN)")
    assert {authorization for _, authorization in host.asked} == {None}


@pytest.mark.parametrize("wants", ["Basic", "Bearer"])
def test_a_registry_with_logins(host: Hosting, pem: Path, wants: str) -> None:
    host.wants = wants  # type: ignore[assignment] # one of its values
    host.push(REPOSITORY, MANIFEST, "latest")
    assert ask(host.host, pem, login=LOGIN).answer == ManifestState.FOUND
    denied = ManifestAnswer(answer=ManifestState.DENIED, detail="401 (UNAUTHORIZED)")
    assert ask(host.host, pem, login="d3Jvbmc6b25l") == denied
    assert ask(host.host, pem) == denied


def test_a_login_goes_to_no_realm_without_tls(host: Hosting, pem: Path, wording: Wording) -> None:
    host.wants, host.realm = "Bearer", "http://127.0.0.1:9/token"
    found = ask(host.host, pem, login=LOGIN)
    assert found.answer == ManifestState.INVALID
    wording(found.detail)


def test_a_redirect_gets_no_login_and_stays_in_tls(host: Hosting, pem: Path, wording: Wording) -> None:
    host.wants, host.moved = "Basic", "http://127.0.0.1:9/"
    found = ask(host.host, pem, login=LOGIN)
    assert found.answer == ManifestState.INVALID
    wording(found.detail)
    host.moved = f"https://{host.host}/elsewhere"
    assert ask(host.host, pem, login=LOGIN).answer == ManifestState.DENIED
    assert host.asked[-1] == ("/elsewhere", None)


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (403, ManifestState.DENIED),
        (404, ManifestState.MISSING),
        (429, ManifestState.UNREACHABLE),
        (503, ManifestState.UNREACHABLE),
    ],
)
def test_other_answers(host: Hosting, pem: Path, status: int, answer: ManifestState) -> None:
    host.refuse = status
    assert ask(host.host, pem) == ManifestAnswer(answer=answer, detail=str(status))


@pytest.mark.parametrize(
    "content", [b"", b"<html>", b"[]", b"{}", b'{"schemaVersion": 1}', b"\xff", b"[" * 100_000, b"null"]
)
def test_what_is_no_manifest(host: Hosting, pem: Path, content: bytes, wording: Wording) -> None:
    host.push(REPOSITORY, content, "latest")
    found = ask(host.host, pem)
    assert found.answer == ManifestState.INVALID
    wording(found.detail)


def test_content_of_another_digest(host: Hosting, pem: Path, wording: Wording) -> None:
    reference = "sha256:" + "0" * 64
    host.manifests[REPOSITORY, reference] = b"{}"
    wording(ask(host.host, pem, reference).detail)


def test_too_much(host: Hosting, pem: Path, monkeypatch: pytest.MonkeyPatch, wording: Wording) -> None:
    monkeypatch.setattr(mirror, "LARGEST", 10)
    host.push(REPOSITORY, MANIFEST, "latest")
    wording(ask(host.host, pem).detail)


def test_a_certificate_that_nobody_vouches_for(host: Hosting, pem: Path) -> None:
    assert ask(host.host, None).answer == ManifestState.UNTRUSTED
    assert ask(host.host.replace("127.0.0.1", "localhost"), pem).answer == ManifestState.MISSING


def test_a_certificate_of_another_name(tmp_path: Path) -> None:
    pem = certificate(tmp_path, "registry.example.com")
    with hosting(pem) as host:
        found = ask(host.host, pem)
    assert found.answer == ManifestState.UNTRUSTED
    assert "127.0.0.1" in found.detail


def test_silence_and_slowness(pem: Path) -> None:
    slow = OK.replace(b"2\r\n", b"2000\r\n") + b"x" * 2000
    with listening(None, pem=pem) as silent, listening(None) as no_tls, listening(slow, pem=pem, pause=0.1) as dripping:
        for port in (silent, no_tls, dripping):
            found = ask(f"127.0.0.1:{port}", pem, seconds=1.0)
            assert found == ManifestAnswer(answer=ManifestState.UNREACHABLE, detail="no answer within 1 seconds")


def test_nobody_there(pem: Path, wording: Wording) -> None:
    assert ask(f"127.0.0.1:{unused()}", pem) == ManifestAnswer(
        answer=ManifestState.UNREACHABLE, detail="Connection refused"
    )
    wording(ask("no-such-host.invalid", pem).detail)


def test_a_proxy_with_a_login_that_is_no_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http:/me:pass/word@proxy")
    answer = ask("registry.example.com", None)
    assert answer == ManifestAnswer(
        answer=ManifestState.INVALID, detail="the proxy of the environment has no valid address"
    )


def test_what_speaks_no_tls_or_no_http(pem: Path) -> None:
    with listening(OK) as plain, listening(b"220 smtp\r\n", pem=pem) as smtp, listening(b"", pem=pem) as closing:
        assert ask(f"127.0.0.1:{plain}", pem).answer == ManifestState.INVALID
        assert ask(f"127.0.0.1:{smtp}", pem).answer == ManifestState.INVALID
        closed = ManifestAnswer(answer=ManifestState.UNREACHABLE, detail="it closes the connection")
        assert ask(f"127.0.0.1:{closing}", pem) == closed
