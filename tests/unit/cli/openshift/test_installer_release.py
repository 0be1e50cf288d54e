from __future__ import annotations

import os
from pathlib import Path

import pytest

from openstack_prep.openshift.commands.of_cluster import INSTALLER, find_installer


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in a folder of its owner, in a folder of everybody such as /tmp."""
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    (tmp_path / "lab").mkdir()
    tmp_path.chmod(0o1777)
    return tmp_path / "lab" / "install-config.yaml"


def put(folder: Path) -> Path:
    (folder / INSTALLER).write_text("#!/bin/sh\n")
    (folder / INSTALLER).chmod(0o755)
    return folder / INSTALLER


def test_the_installer_beside_the_file_or_around_it(config: Path) -> None:
    around = put(config.parent.parent)
    assert find_installer(config) == around
    beside = put(config.parent)
    assert find_installer(config) == beside


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to other users")
def test_one_of_another_user_is_not_run(config: Path) -> None:
    os.chown(put(config.parent.parent), 12345, 12345)
    assert find_installer(config) is None


@pytest.mark.parametrize("place", ["program", "folder"])
def test_one_that_everybody_can_change_is_not_run(config: Path, place: str) -> None:
    program = put(config.parent)
    (program if place == "program" else program.parent).chmod(0o777)
    assert find_installer(config) is None
    (program if place == "program" else program.parent).chmod(0o775)  # umask 002, in a group of the user's own
    assert find_installer(config) == program
