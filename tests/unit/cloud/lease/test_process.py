from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from openstack_prep.cloud.lease import process


def test_a_process_is_known_by_its_id_and_its_start() -> None:
    assert process.exists(os.getpid())
    assert process.started(os.getpid()).isdecimal()
    assert process.place() == process.place() != ""
    assert process.owner().count("@") == 1


def test_one_that_ended_is_dead_even_before_its_parent_notices() -> None:
    with subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.read()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert process.started(child.pid) == "ended"
    assert not process.exists(child.pid)
    assert process.started(child.pid) == ""


def test_without_proc_nothing_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(process, "PROC", tmp_path)
    assert process.place() == process.started(os.getpid()) == ""
