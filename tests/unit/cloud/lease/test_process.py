from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from openstack_prep.cloud import lease


def test_a_process_is_known_by_its_id_and_its_start() -> None:
    assert lease.exists(os.getpid())
    assert lease.started(os.getpid()).isdecimal()
    assert lease.place() == lease.place() != ""
    assert lease.owner().count("@") == 1


def test_people_see_the_user_and_the_host_without_its_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease.getpass, "getuser", lambda: "ops")
    monkeypatch.setattr(lease.socket, "gethostname", lambda: "bastion.example.com")
    assert lease.owner() == "ops@bastion"


def test_one_that_ended_is_dead_even_before_its_parent_notices() -> None:
    with subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.read()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert lease.started(child.pid) == "ended"
    assert not lease.exists(child.pid)
    assert lease.started(child.pid) == ""


def test_without_proc_nothing_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(lease, "PROC", tmp_path)
    assert lease.place() == lease.started(os.getpid()) == ""


def test_its_clock_counts_while_the_machine_is_suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease.time, "clock_gettime", float)
    assert lease.now() == time.CLOCK_BOOTTIME
