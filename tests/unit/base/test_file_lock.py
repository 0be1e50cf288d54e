"""Locks: waiting for others, and a file system that locks no folders, which is how Linux's NFS client behaves."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.base import file_lock
from openstack_prep.base.errors import FileLocked
from openstack_prep.base.file_lock import LOCK, one_writer, turn, writer_after
from openstack_prep.resources.files.marked_files import MarkedFiles
from tests.unit.texts import contains, expect_error


@pytest.fixture
def nfs(monkeypatch: pytest.MonkeyPatch) -> None:
    flock = fcntl.flock

    def lock(descriptor: int, operation: int, *rest: Any) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", lock)


@pytest.mark.usefixtures("nfs")
def test_a_file_beside_carries_the_lock(tmp_path: Path) -> None:
    with one_writer(tmp_path / "clouds.yaml"):
        other = os.open(tmp_path / LOCK, os.O_RDWR)
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(other)


@pytest.mark.usefixtures("nfs")
def test_a_folder_of_ours_goes_with_its_lock(tmp_path: Path) -> None:
    files = MarkedFiles(tmp_path / "cluster", "# [ours]")
    files.write({"pools.yaml": "a: b\n"})
    assert (files.folder / LOCK).exists()
    (files.folder / "theirs").touch()
    assert files.remove() == ["theirs"]
    (files.folder / "theirs").unlink()
    assert files.remove() == []
    assert not files.folder.exists()


SECRET = "--password=of-somebody"
HOLD = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), 2); print('locked', flush=True); input()"


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock of the folder, until it gets a line."""
    command = [sys.executable, "-c", HOLD, str(tmp_path), SECRET]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_who_waits_says_for_whom_and_goes_on(
    tmp_path: Path, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(file_lock, "INFORM_AFTER", 0.1)
    path = tmp_path / "clouds.yaml"
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(write, path)
        while not caplog.messages:
            time.sleep(0.01)
        assert not path.exists()
        holder.communicate("\n", timeout=20)
        waiting.result(timeout=20)
    (message,) = caplog.messages
    assert contains(message, path, holder.pid)
    assert SECRET not in message


def test_nobody_waits_for_ever(tmp_path: Path, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_lock, "WAIT", 0.1)
    with expect_error(FileLocked, "clouds.yaml", holder.pid) as error:
        write(tmp_path / "clouds.yaml")
    assert SECRET not in str(error.value)


def write(path: Path) -> None:
    with one_writer(path) as target:
        target.touch()


def test_a_judgement_holds_no_lock_and_is_made_again_if_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A judge may ask OpenStack, which may not answer; others would give up their writes meanwhile."""
    monkeypatch.setattr(file_lock, "WAIT", 0.1)
    path, beside, seen = tmp_path / "a", tmp_path / "b", []

    def judge() -> int:
        seen.append(path.read_text() if path.exists() else None)
        with one_writer(tmp_path / "other"):  # somebody else writes into the folder
            if len(seen) == 1:
                path.write_text("theirs")
            elif len(seen) == 2:
                beside.write_text("theirs")
        return len(seen)

    with writer_after(judge, path, beside) as (target, judgement):
        assert (target, judgement) == (path, 3)
        with pytest.raises(FileLocked), one_writer(tmp_path / "other"):
            pass
    assert seen == [None, "theirs", "theirs"]


def test_whoever_holds_the_lock_removes_what_killed_writers_left(tmp_path: Path) -> None:
    names = ("clouds.yaml", ".clouds.yaml.copy")
    left = [tmp_path / f".{name}.openstack-prep-abcdefg1" for name in names]
    for each in left:
        each.write_text("secret")
    with one_writer(tmp_path / names[0]):
        assert [each.exists() for each in left] == [False, True]
    with writer_after(lambda: None, *(tmp_path / name for name in names)):
        assert not any(each.exists() for each in left)
    files = MarkedFiles(tmp_path / "cluster", "# [ours]")
    files.write({"pools.yaml": "a: b\n"})
    (tmp_path / "cluster" / ".pools.yaml.openstack-prep-abcdefg1").write_text("secret")
    files.write({"pools.yaml": "a: b\n"})
    assert [each.name for each in (tmp_path / "cluster").iterdir()] == ["pools.yaml"]


def test_a_folder_that_it_creates_is_its_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with one_writer(tmp_path / "a" / "b" / "clouds.yaml"):
            assert [stat.S_IMODE((tmp_path / each).stat().st_mode) for each in ("a", "a/b")] == [0o700, 0o700]
    finally:
        os.umask(before)


@pytest.mark.parametrize(("folder", "lock"), [(0o700, 0o600), (0o755, 0o600), (0o770, 0o660), (0o777, 0o666)])
def test_whoever_writes_to_a_folder_may_use_a_new_lock_in_it(tmp_path: Path, folder: int, lock: int) -> None:
    tmp_path.chmod(folder)
    with turn(tmp_path / "clouds.yaml"):
        assert (tmp_path / ".clouds.yaml.lock").stat().st_mode & 0o777 == lock


def test_a_file_with_the_name_of_a_lock_is_not_opened_to_others(tmp_path: Path) -> None:
    """Who may write to a folder may rename a file of somebody else there."""
    tmp_path.chmod(0o777)
    lock = tmp_path / ".clouds.yaml.lock"
    lock.write_text("hunter2")
    lock.chmod(0o600)
    with turn(tmp_path / "clouds.yaml"):
        assert lock.stat().st_mode & 0o777 == 0o600
