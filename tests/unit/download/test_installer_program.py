from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from openstack_prep.base.errors import PrepError
from openstack_prep.download import installer_program as module
from openstack_prep.download.installer_program import asked, release_of, version_of
from tests.unit.texts import Wording, expect_error

Write = Callable[[str], Path]


@pytest.fixture
def binary(tmp_path: Path) -> Write:
    """Write a stand-in for the installer: a shell script."""

    def write(script: str) -> Path:
        path = tmp_path / "my openshift-install; false"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o700)
        return path

    return write


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("4.18.7", "4.18"),
        ("v4.2.0", "4.2"),
        ("4.20.0-okd-scos.3", "4.20"),
        ("4.15.0-0.okd-2024-03-10-010116", "4.15"),
        ("4.21.0-rc.1", "4.21"),
        ("4.23.0-ec.0", "4.23"),
        ("v5.0.0", "5.0"),
        ("5.1.0-0.nightly-2026-08-01-000000", "5.1"),
        ("unreleased-master-6542-g0123456789", None),
        ("v0.16.1", None),
    ],
)
def test_releases(binary: Write, version: str, release: str | None) -> None:
    path = binary(f'test "$*" = version && echo "$0 {version}" && echo "built from commit 4.1.0"')
    assert release_of(path) == release
    assert version_of(path) == version


@pytest.mark.parametrize("script", ["", "echo", "echo usage"])
def test_one_that_does_not_tell(binary: Write, script: str) -> None:
    assert release_of(binary(script)) is None


def test_a_file_of_this_folder_is_meant_not_one_on_the_path(binary: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = binary("echo x 4.18.7")
    monkeypatch.chdir(path.parent)
    assert release_of(Path(path.name)) == "4.18"


def test_one_that_fails(binary: Write, monkeypatch: pytest.MonkeyPatch, wording: Wording) -> None:
    path = binary('echo "no such thing" >&2; exit 3')
    with expect_error(PrepError, "failed (3", "thing"):
        release_of(path)
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    with pytest.raises(PrepError) as caught:
        release_of(binary("exec sleep 5"))
    wording(caught.value)
    os.chmod(path, 0o600)
    with pytest.raises(PrepError) as caught:
        release_of(path)
    wording(caught.value)
    with pytest.raises(PrepError) as caught:
        release_of(Path("/nowhere/openshift-install"))
    wording(caught.value)


def test_other_questions(binary: Write) -> None:
    assert asked(binary('echo "$*"'), "coreos", "print-stream-json") == b"coreos print-stream-json\n"
