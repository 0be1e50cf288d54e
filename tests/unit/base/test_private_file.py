from __future__ import annotations

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.base import private_file
from openstack_prep.base.errors import ConfigError, PrepError
from openstack_prep.base.private_file import (
    create_once,
    create_private,
    refuse_unwritable,
    remove_file,
    remove_temporary,
    write_private,
    write_shared,
)
from tests.unit.texts import Wording, contains, expect_error


@pytest.fixture(autouse=True)
def careless() -> Iterator[None]:
    """A umask that takes nothing away."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def fails(*_: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_it_writes(tmp_path: Path) -> None:
    write_private(tmp_path / "x", "größe\n")
    assert (tmp_path / "x").read_bytes() == "größe\n".encode()
    assert list(tmp_path.iterdir()) == [tmp_path / "x"]


def test_folders_on_the_way_are_made(tmp_path: Path) -> None:
    write_private(tmp_path / "a" / "b" / "x", "x")
    assert (tmp_path / "a" / "b" / "x").read_text() == "x"


def test_folders_on_the_way_are_their_owners_alone(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir(mode=0o755)
    write_private(tmp_path / "old" / "a" / "b" / "x", "x")
    create_once(tmp_path / "old" / "c" / "y", "y")
    made = {each.name: mode(each) for each in tmp_path.rglob("*") if each.is_dir()}
    assert made == {"old": 0o755, "a": 0o700, "b": 0o700, "c": 0o700}


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    path, other = tmp_path / "clouds.yaml", tmp_path / "other"
    copies = {".clouds.yaml.original", ".clouds.yaml.20261126", ".clouds.yaml.swp", ".x.openstack-prep-abcdefgh"}
    for name in (".clouds.yaml.openstack-prep-ab_c9xyz", *copies):
        (tmp_path / name).write_text("secret")
    (tmp_path / ".clouds.yaml.openstack-prep-folder99").mkdir()
    (tmp_path / ".clouds.yaml.openstack-prep-link9999").symlink_to(other)
    kept = {*copies, ".clouds.yaml.openstack-prep-folder99", ".clouds.yaml.openstack-prep-link9999"}
    remove_temporary(path)
    assert {each.name for each in tmp_path.iterdir()} == kept


def test_only_our_own_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = tmp_path / ".clouds.yaml.openstack-prep-ab_c9xyz"
    left.write_text("secret")
    monkeypatch.setattr(os, "geteuid", lambda: left.stat().st_uid + 1)
    remove_temporary(tmp_path / "clouds.yaml")
    assert left.exists()


def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    write_private(tmp_path / "x", "x")
    assert mode(tmp_path / "x") == 0o600


def test_an_old_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, "new")
    assert (path.read_text(), mode(path)) == ("new", 0o600)


def test_it_is_private_from_its_first_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[int] = []
    real = os.fsync

    def look(handle: int) -> None:
        modes.extend(mode(path) for path in tmp_path.iterdir())
        modes.append(os.fstat(handle).st_mode & 0o777)
        real(handle)

    monkeypatch.setattr("os.fsync", look)
    write_private(tmp_path / "x", "x")
    assert modes == [0o600, 0o600]


def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_private(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


@pytest.mark.parametrize("where", ["os.fsync", "os.replace"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    monkeypatch.setattr(where, fails)
    with pytest.raises(PrepError) as caught:
        write_private(path, "new")
    wording(caught.value)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


FILL = """
import sys
from pathlib import Path
from openstack_prep.base.errors import PrepError
from openstack_prep.base.private_file import write_private
try:
    write_private(Path(sys.argv[1]), "x" * 100_000)
except PrepError as error:
    print(error)
"""


def test_a_full_disk_leaves_no_part_of_a_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    monkeypatch.setattr("os.fsync", fails)
    with pytest.raises(PrepError) as caught:
        create_private(tmp_path / "x", "new")
    wording(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_somebody_else_is_named_and_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(tmp_path / ".hosts.np7kn15h"))

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    with pytest.raises(PrepError) as caught:
        write_shared(tmp_path / "hosts", "")
    wording(str(caught.value))


def test_a_file_that_may_not_grow_is_left_as_it_was(tmp_path: Path) -> None:
    """The kernel's own refusal, in the middle of writing."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    path = tmp_path / "x"
    path.write_text("old")
    said = subprocess.run(
        [sys.executable, "-B", "-c", FILL, str(path)], preexec_fn=limit, capture_output=True, text=True, check=True
    )
    assert contains(said.stdout, path, "27")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupt_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "x"
    path.write_text("old")
    monkeypatch.setattr("os.fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_private(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_in_its_place(tmp_path: Path, wording: Wording) -> None:
    (tmp_path / "x" / "y").mkdir(parents=True)
    with pytest.raises(ConfigError) as caught:
        write_private(tmp_path / "x", "new")
    wording(caught.value)
    assert list(tmp_path.iterdir()) == [tmp_path / "x"]


def test_a_device_or_pipe_is_never_replaced(tmp_path: Path, wording: Wording) -> None:
    os.mkfifo(tmp_path / "x")
    (tmp_path / "link").symlink_to("x")
    for name in ("x", "link"):
        with pytest.raises(PrepError) as caught:
            write_private(tmp_path / name, "new")
        wording(caught.value)
    assert (tmp_path / "x").is_fifo()


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(PrepError, match="cannot be written"):
        write_private(tmp_path / "x" / "y", "new")


def test_links_lead_to_the_file_and_are_never_replaced(tmp_path: Path) -> None:
    """A chain of links whose last one dangles: the file is created, changed and removed where it ends."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "x").symlink_to("y")
    (tmp_path / "y").symlink_to(tmp_path / "disk" / "z")
    for text in ("first", "second"):
        write_private(tmp_path / "x", text)
        assert (tmp_path / "disk" / "z").read_text() == text
    remove_file(tmp_path / "x")
    assert not (tmp_path / "disk" / "z").exists()
    assert (tmp_path / "x").is_symlink()
    assert (tmp_path / "y").is_symlink()


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("x", "it is a link that leads back to itself"),
        ("missing/z", "missing does not exist; create that folder"),
        (".", "it is not a regular file"),
    ],
)
def test_a_link_that_leads_to_no_file_is_refused(tmp_path: Path, target: str, said: str) -> None:
    (tmp_path / "x").symlink_to(target)
    for write in (lambda: write_private(tmp_path / "x", "new"), lambda: refuse_unwritable(tmp_path / "x")):
        with pytest.raises(ConfigError, match=said):
            write()
    assert os.listdir(tmp_path) == ["x"]
    assert os.readlink(tmp_path / "x") == target


NOBODY = 65534


def test_another_users_file_is_refused(tmp_path: Path, wording: Wording) -> None:
    """A rename would need only the folder's rights, and take the file from its owner, also in a folder of a team."""
    with tempfile.TemporaryDirectory(prefix="team-") as team:  # nobody may search the folders above tmp_path
        path = Path(team) / "x"
        if os.geteuid():
            path.symlink_to("/etc/passwd")
        else:
            path.write_text("theirs")
            path.chmod(0o666)
            os.chmod(team, 0o777)
        before = path.read_bytes()
        for write in (lambda: write_private(path, "new"), lambda: refuse_unwritable(path)):
            said = _as_nobody(write)
            wording(said.replace("/etc/passwd", str(path)).replace(team, "FOLDER"))
        assert path.read_bytes() == before


def _as_nobody(act: Callable[[], object]) -> str:
    """Return the ConfigError of a function that a process of the user nobody calls, or of this user if not root."""
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        try:
            if os.geteuid() == 0:
                os.setresuid(NOBODY, NOBODY, NOBODY)
            act()
        except ConfigError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with open(reader) as pipe:
        return pipe.read()


def test_a_file_keeps_its_owner(tmp_path: Path) -> None:
    """Who otherwise could not read the own entries any more, once root has written to the file."""
    owner = os.geteuid() or NOBODY
    path = tmp_path / "x"
    path.write_text("theirs")
    os.chown(path, owner, -1)
    write_private(path, "new")
    assert (path.stat().st_uid, stat.S_IMODE(path.stat().st_mode)) == (owner, 0o600)


ONCE = """
import sys
from pathlib import Path
from openstack_prep.base.private_file import create_once
sys.stdin.read(1)
create_once(Path(sys.argv[1]), sys.argv[2] * 1000)
print(Path(sys.argv[1]).read_text()[:1])
"""


def test_the_first_of_several_processes_creates_a_file(tmp_path: Path) -> None:
    command = [sys.executable, "-B", "-c", ONCE, str(tmp_path / "x")]
    runs = [
        subprocess.Popen([*command, text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for text in "abcd"
    ]
    for run in runs:
        assert run.stdin is not None
        run.stdin.write("x")
        run.stdin.flush()
    assert len({run.communicate(timeout=60)[0] for run in runs}) == 1
    assert os.listdir(tmp_path) == ["x"]
    assert mode(tmp_path / "x") == 0o600


def test_a_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    for text in ("first", "second"):
        create_once(tmp_path / "x", text)
    assert (tmp_path / "x").read_text() == "first"
    assert os.listdir(tmp_path) == ["x"]


@pytest.fixture
def mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that a container has mounted, as it has /etc/hosts."""

    def busy(*_: Any) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")  # rename(2) on a mount point

    monkeypatch.setattr(os, "replace", busy)
    path = tmp_path / "hosts"
    path.write_text("old, and longer\n")
    return path


def test_a_mounted_file_is_written_in_place(tmp_path: Path, mounted: Path) -> None:
    inode = mounted.stat().st_ino
    write_private(mounted, "new\n")
    assert (mounted.read_text(), mounted.stat().st_ino, mode(mounted)) == ("new\n", inode, 0o600)
    write_private(mounted, "")
    assert mounted.read_text() == ""
    assert list(tmp_path.iterdir()) == [mounted]


def test_a_mounted_file_without_room_is_as_it_was(
    tmp_path: Path, mounted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int, *_: int) -> None:
        os.ftruncate(handle, 100)  # as far as there was room
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with expect_error(PrepError, "hosts", "Errno 28"):
        write_private(mounted, "new\n" * 100)
    assert mounted.read_text() == "old, and longer\n"
    assert list(tmp_path.iterdir()) == [mounted]


def test_a_shared_file_survives_a_power_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    """Its folder is written to the disk as well; a file system that cannot do that for folders is no error."""
    synced: list[bool] = []
    number = errno.EINVAL

    def sync(handle: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(handle).st_mode))
        if synced[-1]:
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", sync)
    path = tmp_path / "hosts"
    write_shared(path, "new\n")
    assert synced == [False, True]
    number = errno.EIO
    with pytest.raises(PrepError) as caught:
        write_shared(path, "newer\n")
    wording(caught.value)
    assert path.read_text() == "newer\n"


def test_the_mode_of_a_file_system_without_modes_is_no_drift(tmp_path: Path, forced_modes: None) -> None:
    write_private(tmp_path / "x", "x")
    assert (mode(tmp_path / "x"), private_file.mode(tmp_path / "x")) == (0o644, private_file.PRIVATE)
    assert os.listdir(tmp_path) == ["x"]
