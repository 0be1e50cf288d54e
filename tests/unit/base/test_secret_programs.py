from __future__ import annotations

import contextlib
import os
import signal
import stat
import sys
import threading
import time
from pathlib import Path
from typing import Any

import keyring
import pytest
import requests_mock
from keyring.backend import KeyringBackend

from openstack_prep.base import secret_programs
from openstack_prep.base.errors import ConfigError
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.secret import Secret, from_spec
from tests.unit.texts import Wording

VAULT = "https://vault.example.com:8200"
PYTHON = sys.executable


def fetched(source: object, base: Path) -> str:
    return from_spec(source, base=base).reveal()


WRONG = [
    *({"command": each} for each in ("sops", [], ["a", 1], ["a\0b"])),
    *({"vault": each} for each in ("a", "secret/x", 1)),
    *({"keyring": each} for each in ("x", ["a"])),
]


@pytest.mark.parametrize("source", WRONG, ids=str)
def test_a_source_that_is_wrong_is_refused_at_once(source: object, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue):
        from_spec(source, base=tmp_path)


# --- a command -----------------------------------------------------------------------------


def test_a_command_runs_beside_the_spec_without_a_shell_once(tmp_path: Path) -> None:
    code = "import os; open('runs', 'a').write('x'); print(os.path.basename(os.getcwd()) + ' $HOME')"
    secret = from_spec({"command": [PYTHON, "-c", code]}, base=tmp_path)
    assert not (tmp_path / "runs").exists()
    assert {secret.reveal(), secret.reveal()} == {f"{tmp_path.name} $HOME"}
    assert (tmp_path / "runs").read_text() == "x"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys; print('word'); sys.exit(3)", "exit code 3"),
        ("pass", "printed nothing"),
        ("print('x' * 2_000_000)", "more than 1 MiB"),
        ("while True: print('word' * 1000)", "more than 1 MiB"),
        ("import sys; sys.stdout.buffer.write(b'word\\xff')", "not UTF-8"),
        ("import time; print('word', flush=True); time.sleep(60)", "has not ended"),
    ],
)
def test_a_command_that_fails_repeats_nothing_of_its_output(
    code: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secret_programs, "PATIENCE", 2.0)
    with pytest.raises(ConfigError, match=said) as caught:
        fetched({"command": [PYTHON, "-c", code]}, tmp_path)
    assert "word" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_command_line_in_one_string_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the command curl of a secret cannot be run") as caught:
        fetched({"command": ["curl -u me:hunter2 https://vault.example.com"]}, tmp_path)
    assert "hunter2" not in str(caught.value)
    (tmp_path / "my tool").touch()
    with pytest.raises(ConfigError, match=r"the command \./my tool of a secret cannot be run"):
        fetched({"command": ["./my tool"]}, tmp_path)


def children() -> list[str]:
    return Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split()


@pytest.mark.parametrize("child", ["sleep 30 &", "(sleep 30; echo late) &", "sleep 30 2>/dev/null & disown; true;"])
def test_what_a_command_leaves_behind_is_not_waited_for(child: str, tmp_path: Path) -> None:
    before, begun = children(), time.monotonic()
    script = f"{child} echo $! > pid; echo pw"
    try:
        assert fetched({"command": ["bash", "-c", script]}, tmp_path) == "pw"
        assert time.monotonic() - begun < 20
        assert children() == before, "no zombie"
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)


def test_a_command_may_close_its_output_before_it_ends(tmp_path: Path) -> None:
    assert fetched({"command": ["bash", "-c", "echo pw; exec >&-; sleep 0.3; touch done"]}, tmp_path) == "pw"
    assert (tmp_path / "done").exists()


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no-such-program"):
        fetched({"command": ["no-such-program"]}, tmp_path)
    with pytest.raises(InvalidValue):  # no argument of a program can hold a NUL character
        fetched({"command": ["echo", "a\0b"]}, tmp_path)
    (tmp_path / "no-rights").write_text("#!/bin/sh\n")
    (tmp_path / "no-rights").chmod(stat.S_IRUSR)
    with pytest.raises(ConfigError, match="cannot be run"):
        fetched({"command": [str(tmp_path / "no-rights")]}, tmp_path)


# --- Vault ---------------------------------------------------------------------------------


@pytest.fixture
def vault(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A Vault with version 2 at secret/ and version 1 at old/."""
    monkeypatch.setenv("VAULT_ADDR", VAULT)
    monkeypatch.setenv("VAULT_TOKEN", "a-token")
    with requests_mock.Mocker() as answers:
        for mount, version in (("secret/", "2"), ("old/", "1")):
            mounts = f"{VAULT}/v1/sys/internal/ui/mounts/{mount}shop"
            answers.get(mounts, json={"data": {"path": mount, "type": "kv", "options": {"version": version}}})
        answers.get(f"{VAULT}/v1/secret/data/shop", json={"data": {"data": {"password": "word"}, "metadata": {}}})
        answers.get(f"{VAULT}/v1/old/shop", json={"data": {"password": "old word"}})
        yield answers


def test_both_versions_of_its_store(vault: requests_mock.Mocker, tmp_path: Path) -> None:
    assert fetched({"vault": "secret/shop#password"}, tmp_path) == "word"
    assert fetched({"vault": "old/shop#password"}, tmp_path) == "old word"
    assert {each.headers["X-Vault-Token"] for each in vault.request_history} == {"a-token"}


def test_nothing_is_asked_before_it_is_needed(vault: requests_mock.Mocker, tmp_path: Path) -> None:
    from_spec({"vault": "secret/shop#password"}, base=tmp_path)
    assert vault.call_count == 0


@pytest.mark.parametrize(("status", "said"), [(403, "vault login"), (404, "does not exist"), (500, "VAULT_ADDR")])
def test_what_vault_refuses(status: int, said: str, vault: requests_mock.Mocker, tmp_path: Path) -> None:
    vault.get(f"{VAULT}/v1/secret/data/shop", status_code=status, json={"errors": ["a-token"]})
    with pytest.raises(ConfigError, match=said) as caught:
        fetched({"vault": "secret/shop#password"}, tmp_path)
    assert "a-token" not in str(caught.value)


@pytest.mark.parametrize(("target", "is_followed"), [("https://other:8200/x", True), ("http://other:8200/x", False)])
def test_the_token_follows_no_redirect_out_of_tls(
    target: str, is_followed: bool, vault: requests_mock.Mocker, tmp_path: Path
) -> None:
    vault.get(f"{VAULT}/v1/secret/data/shop", status_code=307, headers={"Location": target})
    asked = vault.get(target, json={"data": {"data": {"password": "word"}}})
    with contextlib.nullcontext() if is_followed else pytest.raises(ConfigError, match="without TLS"):
        assert fetched({"vault": "secret/shop#password"}, tmp_path) == "word"
    assert asked.called == is_followed


def test_a_key_that_is_not_there_names_the_others(vault: requests_mock.Mocker, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="it has password"):
        fetched({"vault": "secret/shop#token"}, tmp_path)


def test_vault_without_an_address(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wording: Wording) -> None:
    monkeypatch.delenv("VAULT_ADDR", raising=False)
    with pytest.raises(ConfigError) as caught:
        fetched({"vault": "secret/shop#password"}, tmp_path)
    wording(caught.value)


# --- the keyring ---------------------------------------------------------------------------


class Memory(KeyringBackend):  # type: ignore[misc]
    """A keyring of one password."""

    priority = 1

    def get_password(self, service: str, username: str) -> str | None:
        if service == "locked":
            raise keyring.errors.KeyringLocked("word")
        return "word" if (service, username) == ("openstack/lab", "shop") else None

    def set_password(self, service: str, username: str, password: str) -> None:
        raise NotImplementedError


@pytest.fixture
def memory() -> Any:
    before = keyring.get_keyring()
    keyring.set_keyring(Memory())
    yield
    keyring.set_keyring(before)


@pytest.mark.usefixtures("memory")
def test_the_keyring_of_the_desktop(tmp_path: Path) -> None:
    secret = from_spec({"keyring": "openstack/lab/shop"}, base=tmp_path)
    assert isinstance(secret, Secret)
    assert secret.reveal() == "word"
    with pytest.raises(ConfigError, match="keyring set openstack/lab other"):
        fetched({"keyring": "openstack/lab/other"}, tmp_path)
    with pytest.raises(ConfigError, match="KeyringLocked"):
        fetched({"keyring": "locked/shop"}, tmp_path)
