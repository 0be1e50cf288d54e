from __future__ import annotations

import copy
import dataclasses
import json
import logging
import os
import pickle
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import ConfigError, PrepError
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.secret import HIDDEN, Secret, from_spec
from openstack_prep.core import text
from tests.unit.texts import Wording

WORD = "correct-horse"


@dataclass(frozen=True)
class User:
    name: str
    password: Secret


# --- it does not show ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "shown",
    [
        str,
        repr,
        "{}".format,
        "{!r}".format,
        lambda secret: f"{secret}",
        lambda secret: "%s %r" % (secret, secret),  # noqa: UP031
        lambda secret: repr([secret]),
        lambda secret: repr(User("u", secret)),
        lambda secret: json.dumps(secret, default=str),
        lambda secret: str(text.plain({"password": secret})),
        lambda secret: text.show(secret),
        lambda secret: str(dir(secret)),
    ],
)
def test_no_way_of_printing_shows_it(shown: Any) -> None:
    said = shown(Secret(WORD))
    assert WORD not in said


def test_stars_stand_in_its_place() -> None:
    assert repr(User("u", Secret(WORD))) == f"User(name='u', password={HIDDEN})"


@pytest.mark.parametrize(
    "write", [pickle.dumps, copy.copy, copy.deepcopy, json.dumps, lambda secret: dataclasses.asdict(User("u", secret))]
)
def test_nothing_writes_it(write: Any) -> None:
    with pytest.raises(TypeError):
        write(Secret(WORD))


def test_it_has_no_dict_to_look_into() -> None:
    with pytest.raises(TypeError):
        vars(Secret(WORD))


def test_a_traceback_does_not_show_it() -> None:
    def fail(secret: Secret) -> None:
        raise ValueError(f"no: {secret} {User('u', secret)}")

    with pytest.raises(ValueError, match="no") as caught:
        fail(Secret(WORD))
    said = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert f"secret = {HIDDEN}" in said
    assert WORD not in said


def test_a_log_does_not_show_it(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("x").warning("%s %r", Secret(WORD), User("u", Secret(WORD)))
    assert WORD not in caplog.text


# --- it is itself -------------------------------------------------------------------------


def test_reveal_alone_opens_it() -> None:
    assert Secret(WORD).reveal() == WORD


def test_equality_is_that_of_the_values() -> None:
    assert Secret(WORD) == Secret(WORD)
    assert Secret(WORD) != Secret("other")
    assert Secret("pässwörd") == Secret("pässwörd")
    assert Secret(WORD) != WORD
    assert hash(Secret(WORD)) == hash(Secret("other")), "a hash would tell something of the value"


@pytest.mark.parametrize("arguments", [{}, {"value": "x", "fetch": str}])
def test_it_is_given_or_fetched(arguments: Any, wording: Wording) -> None:
    with pytest.raises(TypeError) as caught:
        Secret(**arguments)
    wording(caught.value)


def test_it_is_fetched_once_and_when_asked_for() -> None:
    fetched: list[str] = []
    slow = threading.Event()

    def fetch() -> str:
        slow.wait(0.02)
        fetched.append(WORD)
        return WORD

    secret = Secret(fetch=fetch)
    assert fetched == []
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: secret.reveal(), range(8))) == {WORD}
    assert fetched == [WORD]


# --- where a spec says it is --------------------------------------------------------------


def refused(value: Any, base: Path) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        from_spec(value, base=base)
    return str(caught.value)


@pytest.mark.parametrize(
    "source",
    [
        {"env": "NOBODY_HAS_SET_THIS"},
        {"file": "missing"},
        {"file": "missing/word"},
        {"content": "missing"},
        {"command": ["touch", "ran"]},
        {"vault": "secret/shop#password"},
        {"keyring": "openstack/shop"},
        {"prompt": True},
        {"generate": "missing"},
    ],
    ids=str,
)
def test_a_check_needs_no_value(source: object, tmp_path: Path) -> None:
    """It reads no other source than the environment and files, and changes nothing."""
    secret = from_spec(source, base=tmp_path, needed=False)
    assert not secret.ready
    assert not secret.awaited
    assert secret == secret
    assert secret != Secret(WORD)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConfigError):
        secret.reveal()
    assert list(tmp_path.iterdir()) == []


def test_a_check_reads_values_that_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCP_PASSWORD", WORD)
    (tmp_path / "word").touch(mode=0o600)
    (tmp_path / "word").write_text(WORD)
    for source in ({"env": "OCP_PASSWORD"}, {"file": "word"}, {"content": "word"}, {"generate": "word"}):
        secret = from_spec(source, base=tmp_path, needed=False)
        assert secret.ready
        assert secret.reveal() == WORD


@pytest.mark.parametrize(
    "source",
    [
        {"env": ""},
        {"env": "$OCP_PASSWORD"},
        {"env": 5},
        {"file": ["word"]},
        {"file": "empty"},
        {"file": "."},
        {"command": "pass shop"},
        {"vault": "secret/shop"},
        {"keyring": "shop"},
        {"prompt": False},
        {"generate": None},
        {"environment": "OCP_PASSWORD"},
        {"env": "OCP_PASSWORD", "file": "word"},
    ],
    ids=str,
)
@pytest.mark.parametrize("needed", [True, False])
def test_a_source_is_checked_without_its_value(source: object, needed: bool, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(InvalidValue):
        from_spec(source, base=tmp_path, needed=needed)


def test_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCP_PASSWORD", WORD)
    assert from_spec({"env": "OCP_PASSWORD"}, base=tmp_path).reveal() == WORD


@pytest.mark.parametrize("value", [None, ""])
def test_not_in_the_environment(
    value: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    monkeypatch.delenv("OCP_PASSWORD", raising=False)
    if value is not None:
        monkeypatch.setenv("OCP_PASSWORD", value)
    wording(refused({"env": "OCP_PASSWORD"}, tmp_path))


@pytest.mark.parametrize("content", [WORD, f"{WORD}\n", f"{WORD}\r\nand a note\n"])
def test_in_the_first_line_of_a_file_beside_the_spec(content: str, tmp_path: Path) -> None:
    (tmp_path / "word").write_text(content)
    assert from_spec({"file": "word"}, base=tmp_path).reveal() == WORD


def test_a_file_that_is_not_there(tmp_path: Path, wording: Wording) -> None:
    wording(refused({"file": "word"}, tmp_path))


@pytest.mark.parametrize("content", ["", "\nword"])
def test_a_file_whose_first_line_is_empty(content: str, tmp_path: Path) -> None:
    (tmp_path / "word").write_text(content)
    assert "word is empty" in refused({"file": "word"}, tmp_path)


def test_a_file_in_the_home_of_nobody(tmp_path: Path, wording: Wording) -> None:
    wording(refused({"file": "~nobody-of-that-name/word"}, tmp_path))


def test_no_prompt_without_a_terminal(tmp_path: Path, wording: Wording) -> None:
    wording(refused({"prompt": True}, tmp_path))


def test_a_prompt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("getpass.getpass", lambda *_: WORD)
    assert from_spec({"prompt": True}, base=tmp_path).reveal() == WORD
    assert from_spec({"prompt": "Password of ocp-user"}, base=tmp_path).reveal() == WORD


def test_in_the_spec_itself_with_a_warning(tmp_path: Path) -> None:
    warnings: list[str] = []
    assert from_spec(WORD, base=tmp_path, warn=warnings.append).reveal() == WORD
    (warning,) = warnings
    assert "plain text" in warning
    assert WORD not in warning


@pytest.mark.parametrize(
    "value", [12, None, [], {}, {"env": "A", "file": "b"}, {"pass": "x"}, {"env": 1}, {"prompt": False}]
)
def test_anything_else_is_refused_with_what_to_write(value: Any, tmp_path: Path) -> None:
    assert "use " in refused(value, tmp_path)


# --- generated ----------------------------------------------------------------------------


def test_a_generated_one_is_made_when_first_asked_for_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "word"
    secret = from_spec({"generate": "word"}, base=tmp_path)
    assert not secret.ready
    assert not path.exists()
    value = secret.reveal()
    assert len(value) >= 24
    assert path.stat().st_mode & 0o777 == 0o600
    assert secret.ready
    assert from_spec({"generate": "word"}, base=tmp_path).reveal() == value


def test_two_that_are_generated_into_one_file_are_the_same(tmp_path: Path) -> None:
    both = [from_spec({"generate": "word"}, base=tmp_path) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(Secret.reveal, both))) == 1


def test_a_generated_file_that_somebody_emptied_is_an_error_of_ours(tmp_path: Path) -> None:
    secret = from_spec({"generate": "word"}, base=tmp_path)
    (tmp_path / "word").touch(mode=0o600)
    with pytest.raises(PrepError, match="is empty"):
        secret.reveal()


READ = """
import sys
from pathlib import Path
from openstack_prep.base.secret import from_spec
secret = from_spec({"generate": "word"}, base=Path(sys.argv[1]))
sys.stdin.read(1)
print(secret.reveal())
"""


def test_processes_that_generate_one_file_at_once_use_what_is_in_it(tmp_path: Path) -> None:
    for number in range(5):
        folder = tmp_path / str(number)
        command = [sys.executable, "-B", "-c", READ, str(folder)]
        runs = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
        for run in runs:
            assert run.stdin is not None
            run.stdin.write("x")
            run.stdin.flush()
        values = {run.communicate(timeout=60)[0] for run in runs}
        assert values == {(folder / "word").read_text()}
        assert os.listdir(folder) == ["word"]


@pytest.mark.parametrize("mode", [0o644, 0o666, 0o640, 0o602])
def test_a_generated_file_that_is_open_to_others_is_closed_with_a_warning(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "word"
    warnings: list[str] = []
    path.write_text("hunter2\n")
    path.chmod(mode)
    from_spec({"generate": "word"}, base=tmp_path, warn=warnings.append, needed=False)
    assert (path.stat().st_mode & 0o777, len(warnings)) == (mode, 1)  # validate changes nothing
    assert from_spec({"generate": "word"}, base=tmp_path, warn=warnings.append).reveal() == "hunter2"
    assert (path.stat().st_mode & 0o777, len(warnings)) == (mode & 0o700, 2)
    from_spec({"generate": "word"}, base=tmp_path, warn=warnings.append)
    assert len(warnings) == 2
    assert "hunter2" not in "".join(warnings)


@pytest.mark.parametrize("change", [lambda path, mode: None, mock.Mock(side_effect=PermissionError)])
def test_a_generated_file_that_cannot_be_closed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[str, int], None]
) -> None:
    (tmp_path / "word").write_text("hunter2\n")
    (tmp_path / "word").chmod(0o644)
    monkeypatch.setattr(os, "chmod", change)  # CIFS, or vfat
    with pytest.raises(InvalidValue) as caught:
        from_spec({"generate": "word"}, base=tmp_path)
    assert caught.value.code == "secret.readable"
    assert "umask=077" in caught.value.fix


def test_a_generated_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "word").write_text("hunter2\n")
    (tmp_path / "word").chmod(0o644)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(InvalidValue) as caught:
        from_spec({"generate": "word"}, base=tmp_path)
    assert (caught.value.code, (tmp_path / "word").stat().st_mode & 0o777) == ("secret.readable", 0o644)


def test_a_closed_generated_file_of_another_user_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, warnings = tmp_path / "word", list[str]()
    path.write_text("hunter2\n")
    path.chmod(0o600)
    from_spec({"generate": "word"}, base=tmp_path, warn=warnings.append)
    assert warnings == []
    if os.getuid():
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    else:  # whoever is root can read it
        os.chown(path, 65534, -1)
    from_spec({"generate": "word"}, base=tmp_path, warn=warnings.append)
    assert [str(path) in each for each in warnings] == [True]


@pytest.mark.parametrize("needed", [True, False])
def test_an_empty_generated_file_is_no_mistake_of_a_spec(tmp_path: Path, needed: bool) -> None:
    """Validate and destroy need no value, and apply refuses it; nor is a value generated in its place."""
    (tmp_path / "word").touch(0o600)
    secret = from_spec({"generate": "word"}, base=tmp_path, needed=needed)
    assert (secret.ready, secret.is_to_generate) == (False, False)
    with pytest.raises(ConfigError, match="word is empty"):
        secret.reveal()
    assert (tmp_path / "word").stat().st_size == 0


def test_no_secret_is_generated_where_others_can_read_each_file(tmp_path: Path, forced_modes: None) -> None:
    with pytest.raises(ConfigError, match="umask=077"):
        from_spec({"generate": "word"}, base=tmp_path).reveal()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("source", ["file", "content"])
def test_a_given_file_that_is_open_to_others_is_reported(tmp_path: Path, source: str) -> None:
    (tmp_path / "word").write_text("hunter2\n")
    warnings: list[str] = []
    for mode, count in ((0o644, 1), (0o600, 1), (0o444, 1 if os.geteuid() else 2)):
        (tmp_path / "word").chmod(mode)
        from_spec({source: "word"}, base=tmp_path, warn=warnings.append)
        assert len(warnings) == count
    assert "chmod 600" in warnings[0]
    assert "hunter2" not in warnings[0]


# --- a whole file -------------------------------------------------------------------------


def test_a_whole_file_is_read_when_somebody_has_written_it(tmp_path: Path) -> None:
    secret = from_spec({"content": "clouds.yaml"}, base=tmp_path)
    assert (secret.ready, secret.awaited, secret.path) == (False, True, str(tmp_path / "clouds.yaml"))
    with pytest.raises(PrepError, match="cannot be read"):
        secret.reveal()
    (tmp_path / "clouds.yaml").write_text("clouds:\n  one: {}\n")
    assert secret.ready
    assert secret.reveal() == "clouds:\n  one: {}\n"


def test_an_empty_file_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "clouds.yaml").write_text("\n")
    with pytest.raises(PrepError, match="is empty"):
        from_spec({"content": "clouds.yaml"}, base=tmp_path).reveal()


@pytest.mark.parametrize("source", [{"prompt": True}, ""])
def test_an_empty_secret_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: object) -> None:
    """Keystone takes an empty password, by which anybody could log in."""
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("getpass.getpass", lambda *_: "")
    with pytest.raises(InvalidValue) as caught:
        from_spec(source, base=tmp_path)
    assert caught.value.code == Code.SECRET_MISSING
