"""Private names of libraries that the package uses, for want of public ones: the installed versions have them.

Where a test fails with a new release, change the code that it names before the upper bound in setup.cfg.
"""

from __future__ import annotations

import argparse
import configparser
import copy
import importlib.metadata
from pathlib import Path
from typing import Any

import pytest
import requests
from keystoneauth1 import session
from keystoneauth1.access import AccessInfoV3
from keystoneauth1.identity import v3
from openstack.config import OpenStackConfig
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
URL = "http://keystone/v3"
BOUNDED = ("keystoneauth1", "openstacksdk")
"""Packages whose private names are used."""


@pytest.mark.parametrize("name", BOUNDED)
def test_packages_with_private_names_in_use_have_an_upper_bound(name: str) -> None:
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    lines = [line for line in settings["options"]["install_requires"].splitlines() if line[:1] not in ("", "#")]
    (needed,) = [each for each in map(Requirement, lines) if each.name == name]
    installed = importlib.metadata.version(name)
    assert needed.specifier.contains(installed)
    assert not needed.specifier.contains(f"{int(installed.partition('.')[0]) + 1}.0")


class Counting:
    """A lock that counts how often it is taken."""

    def __init__(self) -> None:
        self.taken = 0

    def __enter__(self) -> None:
        self.taken += 1

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(
    "plugin",
    [
        v3.Password(URL, username="u", password="p"),
        v3.ApplicationCredential(URL, application_credential_id="i", application_credential_secret="s"),
        v3.Token(URL, token="t"),
        v3.TOTP(URL, passcode="1", username="u"),
    ],
    ids=lambda plugin: type(plugin).__name__,
)
def test_plugins_that_keep_a_token(plugin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """cloud/login.py, _share and _Login: a lock around each login, and whether one is due."""
    with plugin._lock:
        pass
    assert plugin.auth_ref is None
    assert plugin._needs_reauthenticate() is True
    lock, access = Counting(), AccessInfoV3({"token": {"expires_at": "2999-01-01T00:00:00Z"}}, "t")
    monkeypatch.setattr(plugin, "_lock", lock)
    monkeypatch.setattr(type(plugin), "get_auth_ref", lambda *_: access)
    assert plugin.get_access(session.Session()) is access
    assert lock.taken == 1
    assert plugin.auth_ref is access
    assert plugin._needs_reauthenticate() is False
    assert plugin.invalidate() is True
    assert plugin.auth_ref is None


def test_a_session_closes_the_connections_that_it_has_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """cloud/connection.py, UserCloud: a copy that must not close what it shares."""
    closed: list[object] = []
    monkeypatch.setattr(requests.Session, "close", lambda self: closed.append(self))
    made = session.Session()
    assert made._session is made.session
    shared: Any = copy.copy(made)
    shared._session = None
    shared.close()
    assert closed == []
    assert shared.session is made.session
    made.close()
    assert closed == [shared.session]


def test_a_region_knows_the_files_that_it_comes_from(tmp_path: Path) -> None:
    """cloud/connection.py, _said and _secured."""
    file, secure = tmp_path / "clouds.yaml", tmp_path / "secure.yaml"
    file.write_text(f"clouds: {{x: {{auth: {{auth_url: '{URL}', username: u}}}}}}")
    secure.write_text("clouds: {x: {auth: {password: p}}}")
    region = OpenStackConfig([str(file)], secure_files=[str(secure)], load_envvars=False).get_one("x")
    files: Any = region._openstack_config
    assert (files.config_filename, files.secure_config_filename) == (str(file), str(secure))
    assert set(files.cloud_config["clouds"]) == {"x"}
    assert files.envvar_key == "envvars"


def test_a_parser_knows_its_options() -> None:
    """cli/parser.py and cli/reference/completion.py."""
    checked: list[object] = []

    class Parser(argparse.ArgumentParser):
        def _check_value(self, action: argparse.Action, value: object) -> None:
            checked.append(value)

    parser = Parser()
    option = parser.add_argument("-o", "--output", choices=("a", "b"))
    file = parser.add_argument("file", nargs="?")
    assert (parser._option_string_actions["-o"], parser._option_string_actions["--output"]) == (option, option)
    assert {option, file} <= {*parser._actions}
    assert file.option_strings == []
    assert parser._subparsers is None
    parser.parse_args(["-o", "c"])
    assert checked == ["c"]
    commands = parser.add_subparsers()
    below = commands.add_parser("below")
    assert parser._subparsers is not None
    assert isinstance(commands, argparse._SubParsersAction)
    assert commands in parser._actions
    assert commands.choices["below"] is below
