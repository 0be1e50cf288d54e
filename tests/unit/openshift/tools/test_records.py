from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from openstack_prep.base.errors import PrepError
from openstack_prep.openshift.tools.fetching import HIDDEN, locked
from tests.unit.texts import Wording

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
