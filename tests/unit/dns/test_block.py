from __future__ import annotations

import os
from pathlib import Path

import pytest

from openstack_prep.base.errors import SpecError
from openstack_prep.dns import entries
from openstack_prep.dns.entries import put_block, with_block
from tests.unit.texts import Wording, expect_error

LINES = ["192.0.2.4 api.dev.example.com"]
BLOCK = "# BEGIN openstack-prep dev\n192.0.2.4 api.dev.example.com\n# END openstack-prep dev\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", BLOCK),
        ("127.0.0.1 localhost\n", f"127.0.0.1 localhost\n{BLOCK}"),
        ("127.0.0.1 localhost", f"127.0.0.1 localhost\n{BLOCK}"),
        (
            "a\r\n# BEGIN openstack-prep dev\nold\n# END openstack-prep dev\nb\n",
            f"a\r\n{BLOCK}b\n",
        ),
        (
            "# BEGIN openstack-prep dev2\nx\n# END openstack-prep dev2\n",
            f"# BEGIN openstack-prep dev2\nx\n# END openstack-prep dev2\n{BLOCK}",
        ),
    ],
)
def test_a_block(before: str, after: str) -> None:
    assert with_block(before, "dev", LINES) == after
    assert with_block(after, "dev", LINES) == after


def test_a_block_is_taken_out() -> None:
    assert with_block(f"a\n{BLOCK}b\n", "dev", []) == "a\nb\n"
    assert with_block("a", "dev", []) == "a"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\n# BEGIN openstack-prep dev\n", 2),
        ("a\n# END openstack-prep dev\n", 2),
        ("# END openstack-prep dev\n# BEGIN openstack-prep dev\n", 1),
        (f"{BLOCK}x\n# BEGIN openstack-prep dev\n", 5),
        (f"# BEGIN openstack-prep dev\n{BLOCK}", 2),
        (f"{BLOCK}{BLOCK}", 4),
    ],
)
def test_unbalanced_marks_are_refused_with_their_line(text: str, line: int) -> None:
    with pytest.raises(SpecError, match=f"^hosts:{line}: '# (BEGIN|END) openstack-prep dev' lacks its counterpart"):
        with_block(text, "dev", LINES)


def test_a_file_is_rewritten_only_when_different(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_bytes(b"127.0.0.1 caf\xe9\r\n")
    path.chmod(0o640)
    assert put_block(path, "dev", LINES)
    first = path.stat()
    assert first.st_mode & 0o7777 == 0o640
    assert path.read_bytes() == b"127.0.0.1 caf\xe9\r\n" + BLOCK.encode()
    assert not put_block(path, "dev", LINES)
    assert (path.stat().st_ino, path.stat().st_ctime_ns) == (first.st_ino, first.st_ctime_ns)
    assert os.listdir(tmp_path) == ["hosts"]


def test_a_new_file_can_be_read_by_all(tmp_path: Path) -> None:
    put_block(tmp_path / "hosts", "dev", LINES)
    assert (tmp_path / "hosts").stat().st_mode & 0o7777 == 0o644


def test_what_cannot_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "hosts").write_text("")
    monkeypatch.setattr(entries, "read_bytes", failing)
    with expect_error(SpecError, "hosts", "denied"):
        put_block(tmp_path / "hosts", "dev", LINES)


def test_a_folder_or_pipe_is_no_hosts_file(tmp_path: Path, wording: Wording) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(SpecError) as caught:
            put_block(path, "dev", LINES)
        wording(caught.value)
    assert (tmp_path / "pipe").is_fifo()


def test_the_owner_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "hosts"
    path.write_text("")
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "fchown", lambda handle, user, group: given.append((user, group)))
    real = os.fstat
    monkeypatch.setattr(os, "fstat", lambda handle: os.stat_result([*real(handle)[:4], 4242, *real(handle)[5:10]]))
    put_block(path, "dev", LINES)
    assert given == [(path.stat().st_uid, path.stat().st_gid)]
