from __future__ import annotations

import os
from pathlib import Path

import pytest

from openstack_prep.base.errors import ConfigError
from openstack_prep.cli.main import main
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


def test_one_of_another_user_is_not_run(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = put(config.parent.parent)
    assert find_installer(config) == program
    if os.geteuid() == 0:  # only root gives files away, and only its own are everybody's
        os.chown(program, 12345, 12345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(ConfigError):
        find_installer(config)


@pytest.mark.parametrize("place", ["program", "folder"])
def test_one_that_everybody_can_change_is_not_run(config: Path, place: str) -> None:
    program = put(config.parent)
    (program if place == "program" else program.parent).chmod(0o777)
    with pytest.raises(ConfigError):
        find_installer(config)
    (program if place == "program" else program.parent).chmod(0o775)  # umask 002, in a group of the user's own
    assert find_installer(config) == program


def test_no_other_takes_the_place_of_one_that_is_not_run(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its release may differ; with a known release the file is checked without an installer."""
    program = put(config.parent)
    program.chmod(0o777)
    put(config.parent.parent)
    (config.parent / "bin").mkdir()
    put(config.parent / "bin")
    monkeypatch.setenv("PATH", str(config.parent / "bin"))
    with pytest.raises(ConfigError) as refused:
        find_installer(config)
    assert str(program) in str(refused.value)
    assert find_installer(config, "4.20") is None
    program.unlink()
    (config.parent.parent / INSTALLER).unlink()
    assert find_installer(config) == config.parent / "bin" / INSTALLER


def test_a_link_is_as_safe_as_the_folder_of_its_target(config: Path) -> None:
    target = config.parent.parent / "shared"
    target.mkdir()
    (config.parent / INSTALLER).symlink_to(put(target))
    assert find_installer(config) == config.parent / INSTALLER
    target.chmod(0o777)
    with pytest.raises(ConfigError):
        find_installer(config)


def test_import_takes_the_release_of_no_other_installer(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(config.parent).chmod(0o777)
    (config.parent / "bin").mkdir()
    put(config.parent / "bin").write_text("#!/bin/sh\necho openshift-install 4.20.3\n")
    monkeypatch.setenv("PATH", f"{config.parent / 'bin'}:{os.defpath}")
    config.write_text("apiVersion: v1\nbaseDomain: example.com\nmetadata: {name: shop}\nplatform: {openstack: {}}\n")
    assert main(["import", str(config)]) == 2
    (config.parent / INSTALLER).unlink()
    assert main(["import", str(config)]) != 2
