"""Signatures by throw-away keys of the real gpg."""

from __future__ import annotations

from pathlib import Path

import pytest

from openstack_prep.base.errors import ConfigError, DownloadError
from openstack_prep.openshift.tools.fetching import verify
from tests.unit.openshift.tools.gpg import Signer
from tests.unit.texts import Wording, expect_error

LIST = b"a" * 64 + b"  openshift-install-linux.tar.gz\n"


@pytest.fixture
def key(signer: Signer, tmp_path: Path) -> Path:
    return signer.public(tmp_path / "key")


@pytest.mark.parametrize("armor", [[], ["--armor"]])
def test_a_detached_signature(signer: Signer, tmp_path: Path, armor: list[str]) -> None:
    key = signer.public(tmp_path / "key", *armor)
    assert verify(LIST, key, signer.detached(LIST, *armor), "x") == (LIST, signer.fingerprint)


@pytest.mark.parametrize("how", ["--sign", "--clear-sign"])
def test_a_signed_message_is_what_counts(signer: Signer, key: Path, how: str) -> None:
    assert verify(b"another list", key, signer.attached(LIST, how), "x") == (LIST, signer.fingerprint)


def test_one_of_several_keys(signer: Signer, stranger: Signer, tmp_path: Path) -> None:
    key = tmp_path / "keys"
    key.write_bytes(signer.gpg("--armor", "--export"))
    assert verify(LIST, key, stranger.detached(LIST), "x") == (LIST, stranger.fingerprint)


def test_a_changed_list(signer: Signer, key: Path, wording: Wording) -> None:
    with pytest.raises(DownloadError) as caught:
        verify(LIST + b"\n", key, signer.detached(LIST), "x")
    wording(caught.value)


def test_a_changed_message(signer: Signer, key: Path, wording: Wording) -> None:
    message = signer.attached(LIST, "--clear-sign").replace(b"linux", b"lunix")
    with pytest.raises(DownloadError) as caught:
        verify(LIST, key, message, "x")
    wording(caught.value)


def test_somebody_elses_signature(stranger: Signer, key: Path) -> None:
    for signature in (stranger.detached(LIST), stranger.attached(LIST), stranger.attached(LIST, "--clear-sign")):
        with expect_error(DownloadError, "x", "/key"):
            verify(LIST, key, signature, "x")


@pytest.mark.parametrize("signature", [b"", b"<html>", LIST])
def test_what_is_no_signature(key: Path, signature: bytes) -> None:
    with expect_error(DownloadError, "signature", "sha256sum.txt"):
        verify(LIST, key, signature, "x")


def test_an_expired_key(gpg_home: Path, tmp_path: Path, wording: Wording) -> None:
    past = ["--faked-system-time", "20200101T000000!"]
    old = Signer(gpg_home, "Long Ago <ago@example.com>")
    old.gpg(*past, "--quick-generate-key", old.name, "ed25519", "sign", "30d")
    with pytest.raises(DownloadError) as caught:
        verify(LIST, old.public(tmp_path / "key"), old.detached(LIST, *past), "x")
    wording(caught.value)


def test_a_revoked_key(gpg_home: Path, tmp_path: Path, wording: Wording) -> None:
    lost = Signer(gpg_home, "Lost <lost@example.com>").made()
    signature = lost.detached(LIST)
    revocation = (gpg_home / "openpgp-revocs.d" / f"{lost.fingerprint}.rev").read_text()
    lost.gpg("--import", content=revocation.replace(":-----BEGIN", "-----BEGIN").encode())
    with pytest.raises(DownloadError) as caught:
        verify(LIST, lost.public(tmp_path / "key"), signature, "x")
    wording(caught.value)


def test_a_file_without_a_key(signer: Signer, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("no key\n")
    with pytest.raises(ConfigError, match="/key contains no OpenPGP public key"):
        verify(LIST, tmp_path / "key", signer.detached(LIST), "x")


def test_without_gpg_a_key_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wording: Wording) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError) as caught:
        verify(LIST, tmp_path / "key", b"", "x")
    wording(caught.value)


def test_a_gpg_that_hangs_is_not_waited_for_for_ever(
    key: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wording: Wording
) -> None:
    program = tmp_path / "gpg"  # a stand-in for gpg: a shell script
    program.write_text("#!/bin/sh\nexec sleep 5\n")
    program.chmod(0o700)
    monkeypatch.setattr("openstack_prep.openshift.tools.fetching.TIMEOUT", 0.05)
    monkeypatch.setattr("shutil.which", lambda name: str(program))
    with pytest.raises(ConfigError) as caught:
        verify(LIST, key, b"", "x")
    wording(caught.value)
