from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from openstack_prep.base.secret import Secret
from openstack_prep.openshift.install_config import FileContents, mistakes
from openstack_prep.openshift.install_config.rules.contents import NO_LOGIN, are_public_keys
from tests.unit.openshift.install_config.parsable import CERTIFICATE, ECDSA, RSA
from tests.unit.openshift.install_config.test_rules import FILES, RIGHT
from tests.unit.texts import Wording

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB"
PRIVATE = "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n-----END OPENSSH PRIVATE KEY-----"


def told(**contents: Any) -> list[str]:
    said = [f"{each.where}: {each.what}" for each in mistakes(RIGHT, replace(FILES, **contents))]
    assert "hunter2" not in str(said)
    assert "aHVudGVyMg" not in str(said)
    return said


def of_login(**login: Any) -> list[str]:
    return told(pull_secret=Secret(json.dumps({"auths": {"quay.io": login}})))


# --- pull secret --------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "hunter2", '{"auths": "hunter2"}', '["hunter2"]', "[" * 9999])
def test_a_pull_secret_that_is_none_is_not_repeated(text: str) -> None:
    assert told(pull_secret=Secret(text)) == ["pull_secret: is not JSON with auths"]


def test_no_pull_secret_and_one_for_nobody(wording: Wording) -> None:
    (mistake,) = mistakes(RIGHT, FileContents())
    assert str(mistake).startswith("pull_secret: is missing")
    assert NO_LOGIN in mistake.fix
    assert told(pull_secret=Secret(NO_LOGIN)) == []
    wording(told(pull_secret=Secret('{"auths": {}}')))


@pytest.mark.parametrize("login", [{"auth": "aHVudGVyMjo="}, {"credsStore": "desktop"}])
def test_a_login(login: dict[str, Any]) -> None:
    assert of_login(**login) == []


@pytest.mark.parametrize("auth", ["hunter2", "aHVudGVyMg==", "", None, 7, ["aHVudGVyMg"]])
def test_a_login_is_not_decoded_as_the_installer_does_not(auth: Any) -> None:
    assert of_login(auth=auth) == []


def test_each_login_is_looked_at() -> None:
    auths = {"a": {}, "b": "hunter2", "c": {"auth": ""}, "d": {"password": "hunter2"}}
    assert told(pull_secret=Secret(json.dumps({"auths": auths}))) == [
        f"pull_secret: has neither auth nor credsStore for {name!r}" for name in "abd"
    ]


# --- SSH keys -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", [KEY, f"{KEY} me@here\n\n{KEY}\r\n", f'from="10.0.0.0/8, ::1" {KEY}', f"no-pty {KEY} me"]
)
def test_ssh_keys(text: str) -> None:
    assert told(ssh_key=text) == []
    assert are_public_keys(text)


def test_a_private_key_is_not_repeated(wording: Wording) -> None:
    wording(told(ssh_key=PRIVATE))
    wording(told(ssh_key=f"{KEY}\n{PRIVATE}"))
    assert not are_public_keys(f"{KEY}\n{PRIVATE}")


@pytest.mark.parametrize(
    "line",
    [
        "hunter2",
        "PuTTY-User-Key-File-2: hunter2",
        "/root/.ssh/hunter2.pub",
        "ssh-ed25519",
        KEY[:-1],
        KEY.replace("ssh-ed25519", "ssh-rsa"),
        f"ssh-ed25519 {base64.b64encode(b'hunter2').decode()}",
    ],
)
def test_what_is_no_ssh_key_is_told_by_its_line(line: str, wording: Wording) -> None:
    wording(told(ssh_key=line))
    wording(told(ssh_key=f"{KEY}\n{line}\n\n{line}"))
    assert not are_public_keys(f"{KEY}\n{line}")


def test_a_comment_is_accepted_up_to_4_19(wording: Wording) -> None:
    files = replace(FILES, ssh_key=f"# mine\n{KEY}")
    assert are_public_keys(files.ssh_key or "")
    assert mistakes(replace(RIGHT, release="4.19"), files) == []
    (mistake,) = mistakes(RIGHT, files)
    assert mistake.code == "install-config.invalid"
    wording(mistake.what)


def test_comments_are_no_key() -> None:
    files = replace(FILES, ssh_key="# none yet\n")
    assert [each.what for each in mistakes(replace(RIGHT, release="4.19"), files)] == ["contains no key"]


@pytest.mark.parametrize("length", [30, 60, len(ECDSA) - 4])
def test_a_key_that_was_cut_off(length: int, wording: Wording) -> None:
    wording(told(ssh_key=ECDSA[:length]))


@pytest.mark.parametrize(
    ("key", "allowed"), [(ECDSA, True), (RSA, True), (KEY, False), (f"{KEY}\n{RSA}", False), (f"{RSA}\n{KEY}", True)]
)
def test_fips_excludes_ed25519(key: str, allowed: bool) -> None:
    wheres = [each.where for each in mistakes(replace(RIGHT, fips=True), replace(FILES, ssh_key=key))]
    assert wheres == ([] if allowed else ["ssh_key"])
    assert mistakes(replace(RIGHT, fips=True, release="4.8"), replace(FILES, ssh_key=key)) == []


# --- CA certificates ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "bundle",
    [CERTIFICATE, CERTIFICATE * 2, CERTIFICATE.rstrip(), f"my CA\n{CERTIFICATE}", f"{CERTIFICATE}x\n{CERTIFICATE}"],
)
def test_certificates(bundle: str) -> None:
    assert told(additional_trust_bundle=bundle) == []


BROKEN = CERTIFICATE.replace("MIHe", "MIHf")
BUNDLES = {
    "hunter2": "contains no certificate",
    CERTIFICATE[:150]: "contains no certificate",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----BEGIN PRIVATE KEY-----\nhunter2\n": "contains a private key",
    BROKEN: "block 1 of 1 is not a certificate",
    CERTIFICATE + BROKEN: "block 2 of 2 is not a certificate",
    f"{CERTIFICATE}\n": "text or an empty line follows the last certificate",
    f"{CERTIFICATE}hunter2": "text or an empty line follows the last certificate",
}


@pytest.mark.parametrize("bundle", BUNDLES)
def test_a_bundle_that_holds_something_else(bundle: str) -> None:
    assert told(additional_trust_bundle=bundle) == [f"additional_trust_bundle: {BUNDLES[bundle]}"]
