from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from openstack_prep.base.errors import ConfigError, PrepError
from openstack_prep.openshift.tools.fetching import HIDDEN, ToolOrigin, _refuse_planted, load, locked, save
from tests.unit.texts import Wording

FIELDS = ("version", "archive", "archive_sha256", "sha256", "source", "signed_by")
HOLD = """
import sys, time
from pathlib import Path
from openstack_prep.openshift.tools.fetching import locked
with locked(Path(sys.argv[1])) as parts:
    (parts / "oc.part").write_bytes(b"half")
    print("at work", flush=True)
    time.sleep(60)
"""


def test_a_run_that_is_killed_gives_its_place_back(tmp_path: Path, wording: Wording) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"at work\n"
        with (
            pytest.raises(PrepError) as caught,
            locked(tmp_path),
        ):
            pass
        wording(caught.value)
        assert (tmp_path / HIDDEN / "parts" / "oc.part").read_bytes() == b"half"  # nothing of the other's is touched
        os.kill(other.pid, signal.SIGKILL)
    with locked(tmp_path) as parts:
        assert list(parts.iterdir()) == []
    assert os.listdir(tmp_path / HIDDEN) == ["lock"]


def test_a_folder_that_cannot_be_written_to(tmp_path: Path, wording: Wording) -> None:
    (tmp_path / HIDDEN).write_text("")
    with pytest.raises(PrepError) as caught, locked(tmp_path):
        pass
    wording(caught.value)


def test_what_goes_wrong_in_it_is_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="mine"), locked(tmp_path):
        raise OSError("mine")
    assert os.listdir(tmp_path / HIDDEN) == ["lock"]


def test_a_link_in_the_place_of_the_lock_empties_no_file(tmp_path: Path) -> None:
    victim, folder = tmp_path / "authorized_keys", tmp_path / "bin"
    victim.write_text("ssh-ed25519 AAAA\n")
    (folder / HIDDEN).mkdir(parents=True)
    (folder / HIDDEN / "lock").symlink_to(victim)
    with pytest.raises(PrepError), locked(folder):
        pass
    assert victim.read_text() == "ssh-ed25519 AAAA\n"


def test_a_link_in_the_place_of_the_record_changes_no_file(tmp_path: Path) -> None:
    victim = tmp_path / "theirs.json"
    victim.write_text("{}")
    with locked(tmp_path):
        (tmp_path / HIDDEN / "tools.json").symlink_to(victim)
        save(tmp_path, {"oc": ToolOrigin(**dict.fromkeys(FIELDS, "x"))})
    assert victim.read_text() == "{}"
    assert load(tmp_path).keys() == {"oc"}


def test_a_hidden_folder_that_leads_elsewhere_deletes_nothing_there(tmp_path: Path) -> None:
    elsewhere, folder = tmp_path / "project", tmp_path / "bin"
    (elsewhere / "parts").mkdir(parents=True)
    (elsewhere / "parts" / "drawing").write_text("of somebody else")
    folder.mkdir()
    (folder / HIDDEN).symlink_to(elsewhere)
    with pytest.raises(ConfigError), locked(folder):
        pass
    assert (elsewhere / "parts" / "drawing").exists()


def test_a_hidden_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only root gives folders away; for others, that of a process in /proc is one, below a folder of root."""
    planted = Path("/proc", str(os.getpid()))
    if os.geteuid() == 0:
        planted = tmp_path / HIDDEN
        planted.mkdir()
        os.chown(planted, 12345, 12345)
    else:
        _refuse_planted(planted)
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(ConfigError):
        _refuse_planted(planted)


def test_a_hidden_folder_in_one_of_the_same_user_is_no_surprise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / HIDDEN).mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with locked(tmp_path):
        pass
