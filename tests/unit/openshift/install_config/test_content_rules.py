from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from openstack_prep.base.secret import Secret
from openstack_prep.openshift.install_config import Contents, mistakes
from openstack_prep.openshift.install_config.content_rules import NO_LOGIN, are_public_keys
from tests.unit.openshift.install_config.test_rules import FILES, RIGHT

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


def test_no_pull_secret_and_one_for_nobody() -> None:
    (mistake,) = mistakes(RIGHT, Contents())
    assert str(mistake).startswith("pull_secret: is missing")
    assert NO_LOGIN in mistake.fix
    assert told(pull_secret=Secret(NO_LOGIN)) == []
    assert told(pull_secret=Secret('{"auths": {}}')) == ["pull_secret: has an empty auths"]


@pytest.mark.parametrize("login", [{"auth": "aHVudGVyMjo="}, {"credsStore": "desktop"}])
def test_a_login(login: dict[str, Any]) -> None:
    assert of_login(**login) == []


@pytest.mark.parametrize("auth", ["hunter2", "me:hunter2", "aHVudGVyMg==", "", "grüße", None, 7, ["aHVudGVyMg"]])
def test_a_login_that_is_none_is_told_by_its_registry(auth: Any) -> None:
    assert of_login(auth=auth) == ["pull_secret: auth for 'quay.io' is not user:password in base64"]


def test_each_login_is_looked_at() -> None:
    auths = {"a": {}, "b": "hunter2", "c": {"auth": "aHVudGVyMjo="}, "d": {"password": "hunter2"}}
    assert told(pull_secret=Secret(json.dumps({"auths": auths}))) == [
        f"pull_secret: has neither auth nor credsStore for {name!r}" for name in "abd"
    ]


# --- SSH keys -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", [KEY, f"{KEY} me@here\n\n# another\n{KEY}\r\n", f'from="10.0.0.0/8, ::1" {KEY}', f"no-pty {KEY} me"]
)
def test_ssh_keys(text: str) -> None:
    assert told(ssh_key=text) == []
    assert are_public_keys(text)


def test_a_private_key_is_not_repeated() -> None:
    assert told(ssh_key=PRIVATE) == ["ssh_key: is a private key"]
    assert told(ssh_key=f"{KEY}\n{PRIVATE}") == ["ssh_key: is a private key"]
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
def test_what_is_no_ssh_key_is_told_by_its_line(line: str) -> None:
    assert told(ssh_key=line) == ["ssh_key: not an OpenSSH public key in line 1"]
    assert told(ssh_key=f"{KEY}\n{line}\n\n{line}") == ["ssh_key: not an OpenSSH public key in line 2, 4"]
    assert not are_public_keys(f"{KEY}\n{line}")


def test_comments_are_no_key() -> None:
    assert told(ssh_key="# none yet\n") == ["ssh_key: contains no key"]


# --- CA certificates ----------------------------------------------------------------------


def test_a_bundle_without_certificate() -> None:
    assert told(additional_trust_bundle="hunter2") == ["additional_trust_bundle: contains no certificate"]


def test_a_bundle_with_a_private_key() -> None:
    bundle = "-----BEGIN CERTIFICATE-----\nMIIB\n-----BEGIN PRIVATE KEY-----\nhunter2\n"
    assert told(additional_trust_bundle=bundle) == ["additional_trust_bundle: contains a private key"]


def test_a_policy_without_a_bundle() -> None:
    (mistake,) = mistakes(replace(RIGHT, additional_trust_bundle_policy="Always"), FILES)
    expected = "additional_trust_bundle_policy: requires a bundle; give additional_trust_bundle"
    assert str(mistake) == expected
