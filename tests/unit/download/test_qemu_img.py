"""What is asked of qemu-img, and what comes of its answers; the program is a stand-in."""

from __future__ import annotations

import shutil
import tempfile
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.base.errors import PrepError
from openstack_prep.download import qemu_img
from tests.unit.stand_in_qemu_img import stand_in
from tests.unit.texts import Wording, expect_error

RAW = b"a raw disk"

Convert = Callable[[], bytes]


@pytest.fixture
def convert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., bytes]:
    def run(**answers: Any) -> bytes:
        monkeypatch.setenv("PATH", f"{stand_in(tmp_path / 'bin', RAW, **answers)}:/usr/bin:/bin")
        with tempfile.TemporaryFile() as image, tempfile.TemporaryFile() as raw:
            image.write(b"QFI\xfb")
            qemu_img.to_raw(image, raw, "image/rhcos")
            return raw.read()

    return run


def test_it_is_converted_between_files_without_a_name(convert: Callable[..., bytes], tmp_path: Path) -> None:
    assert convert(extents=[{"data": True, "length": 1024}, {"data": False, "length": 2**60}]) == RAW
    assert (tmp_path / "bin" / "called").read_text().split() == ["info", "map", "convert"]


@pytest.mark.parametrize(
    "info",
    [
        {"backing-filename": "/etc/shadow"},
        {"format-specific": {"type": "qcow2", "data": {"data-file": "/etc/shadow"}}},
    ],
)
def test_one_that_would_take_in_other_files_is_refused(
    convert: Callable[..., bytes], tmp_path: Path, info: dict[str, Any]
) -> None:
    with expect_error(PrepError, "image/rhcos", "/etc/shadow"):
        convert(info=info)
    assert "convert" not in (tmp_path / "bin" / "called").read_text()


def test_the_room_it_takes_is_looked_at_first(convert: Callable[..., bytes], tmp_path: Path) -> None:
    with expect_error(PrepError, "1099511627776", "TMPDIR"):
        convert(extents=[{"data": True, "length": 2**40 * 2**20}])
    assert "convert" not in (tmp_path / "bin" / "called").read_text()


def test_room(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(0, 0, 2**21))
    assert qemu_img.missing_room(2**21) is None
    wrong = qemu_img.missing_room(2**22)
    assert wrong is not None
    assert wrong.endswith("has 2 MiB free, but 4 MiB are needed")


def test_what_it_says_of_a_failure(convert: Callable[..., bytes]) -> None:
    with expect_error(PrepError, "failed (1", "space"):
        convert(ending="echo no space left >&2; exit 1")


def test_without_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wording: Wording) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        tempfile.TemporaryFile() as file,
        pytest.raises(PrepError) as caught,
    ):
        qemu_img.to_raw(file, file, "image/rhcos")
    wording(caught.value)
