"""Locks on a file system that locks no folders, which is how Linux's NFS client behaves."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.base.file_lock import LOCK, one_writer
from openstack_prep.resources.files.marked_files import MarkedFiles


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
