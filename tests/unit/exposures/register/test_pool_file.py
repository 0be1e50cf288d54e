"""Pool files on a real file system: locks, races, kills, and what cannot be written."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from openstack_prep.base import file_lock, private_file
from openstack_prep.base.errors import ConfigError, FileLocked, PrepError, SpecError
from openstack_prep.exposures.register import pool_file
from openstack_prep.exposures.register.pool import ClaimRefused, ClaimRequest, PoolSettings
from openstack_prep.exposures.register.pool_file import PoolFileRegister
from tests.unit.exposures.register.claiming import claim_one
from tests.unit.texts import Wording, expect_error

SETTINGS = PoolSettings(cidr="10.0.0.0/24", gateway="10.0.0.1", addresses=("10.0.0.100-10.0.0.199",))


@pytest.fixture
def register(tmp_path: Path) -> PoolFileRegister:
    made = PoolFileRegister(path=tmp_path / "pool.yaml", name="lab", settings=SETTINGS, spec="s", project="p1")
    made.ensure()
    return made


@pytest.fixture
def holder(register: PoolFileRegister) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock of the file."""
    script = (
        "import fcntl, sys; file = open(sys.argv[1], 'r+'); fcntl.flock(file, 2); print('locked', flush=True); input()"
    )
    words = [sys.executable, "-c", script, str(register.path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        process.stdout.readline()
        yield process
        process.kill()


def test_a_claim_is_kept_and_two_specs_share_a_file(register: PoolFileRegister) -> None:
    other = replace(register, spec="t", project="p2")
    other.ensure()
    assert claim_one(register, "web").address == claim_one(register, "web").address == "10.0.0.100"
    assert claim_one(other, "web").address == "10.0.0.101"
    assert register.holders() == {"10.0.0.100": "s/web", "10.0.0.101": "t/web"}
    assert list(other.held()) == ["web"]
    with pytest.raises(ClaimRefused, match="claimed by s/web"):
        claim_one(other, "api", "10.0.0.100")
    with pytest.raises(ClaimRefused, match="claimed by t/web"):  # all or none
        register.claim([ClaimRequest(name="x"), ClaimRequest(name="y", address="10.0.0.101")])
    assert list(register.held()) == ["web"]
    assert register.leave() is not None
    assert list(other.holders()) == ["10.0.0.101"]
    assert other.leave() is None
    assert not register.path.exists()
    assert other.leave() is None
    other.release(["web"])


def test_a_claim_of_a_person_keeps_the_file(register: PoolFileRegister) -> None:
    text = register.path.read_text().replace("claims: {}", "claims:\n  printer: {address: 10.0.0.100}")
    register.path.write_text(text)
    assert claim_one(register, "web").address == "10.0.0.101"
    register.leave()
    assert "printer" in register.path.read_text()


def test_a_spec_with_the_same_name_is_another_one(register: PoolFileRegister, wording: Wording) -> None:
    claim_one(register, "web")
    other = replace(register, project="p2")
    assert other.held() == {}
    with pytest.raises(ClaimRefused) as caught:
        claim_one(other, "web")
    wording(caught.value)
    other.release(["web"])
    assert list(register.held()) == ["web"]
    assert [each for each in register.path.read_text().splitlines() if "s/" in each or " s:" in each] == [
        "  s: {project: p1}",
        "  s/web: {address: 10.0.0.100}",
    ]


@pytest.mark.parametrize(("theirs", "mine"), [("p1", "p2"), ("p1", ""), ("", "p1")])
def test_only_the_same_project_proves_that_a_spec_is_the_same(
    tmp_path: Path, theirs: str, mine: str, wording: Wording
) -> None:
    """The other project may be in another cloud, so that whether it exists here says nothing."""
    first = PoolFileRegister(path=tmp_path / "f", name="lab", settings=SETTINGS, spec="a b", project=theirs)
    first.ensure()
    claim_one(first, "web", mac=True)
    text = first.path.read_text()
    second = replace(first, project=mine)
    for act in (second.ensure, lambda: claim_one(second, "web", mac=True), lambda: claim_one(second, "x")):
        with pytest.raises(ClaimRefused) as caught:
            act()
        wording(caught.value)
    second.release(["web"])
    second.leave()
    assert first.path.read_text() == text


def test_settings_change_unless_others_rely_on_them_or_claims_would_be_outside(
    register: PoolFileRegister, wording: Wording
) -> None:
    claim_one(register, "web")
    smaller = replace(register, settings=replace(SETTINGS, addresses=("10.0.0.100-10.0.0.110",)))
    smaller.ensure()
    assert "10.0.0.100-10.0.0.110" in register.path.read_text()
    outside = replace(register, settings=replace(SETTINGS, addresses=("10.0.0.101-10.0.0.110",)))
    with expect_error(ClaimRefused, "s/web", "10.0.0.100", code="address.in-use"):
        outside.ensure()
    replace(smaller, spec="t", project="p2").ensure()
    with pytest.raises(ClaimRefused) as caught:
        register.ensure()
    wording(caught.value)


def test_the_file_of_another_pool_is_refused(register: PoolFileRegister, wording: Wording) -> None:
    with pytest.raises(SpecError) as caught:
        replace(register, name="prod").ensure()
    wording(caught.value)


def test_damage_is_not_overwritten(register: PoolFileRegister) -> None:
    register.path.write_text(register.path.read_text() + "<<<<<<< HEAD\n")
    before = register.path.read_text()
    for change in (register.ensure, register.leave, lambda: claim_one(register, "web")):
        with pytest.raises(SpecError, match="git's mark"):
            change()
    assert register.path.read_text() == before


def test_without_its_file_a_claim_says_so_and_creates_nothing(
    tmp_path: Path, register: PoolFileRegister, wording: Wording
) -> None:
    register.path.unlink()
    assert register.held() == {}
    with pytest.raises(PrepError) as caught:
        claim_one(register, "web")
    wording(caught.value)
    assert list(tmp_path.iterdir()) == []


# --- files --------------------------------------------------------------------------------


def test_mode_and_link_are_kept(tmp_path: Path, register: PoolFileRegister) -> None:
    register.path.chmod(0o664)
    link = tmp_path / "elsewhere" / "link.yaml"
    link.parent.mkdir()
    link.symlink_to("../pool.yaml")
    claim_one(replace(register, path=link), "web")
    assert link.is_symlink()
    assert "s/web" in register.path.read_text()
    assert register.path.stat().st_mode & 0o777 == 0o664
    assert list(link.parent.iterdir()) == [link]


@pytest.mark.parametrize("kind", ["folder", "pipe", "device"])
def test_what_is_no_regular_file_is_refused(tmp_path: Path, register: PoolFileRegister, kind: str) -> None:
    path = {"folder": tmp_path, "pipe": tmp_path / "pipe", "device": Path("/dev/null")}[kind]
    if kind == "pipe":
        os.mkfifo(path)
    with pytest.raises((ConfigError, PrepError), match=r"cannot be (written|read)"):
        replace(register, path=path).leave()
    assert path.exists()


def refuse(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, number: int) -> None:
    def refused(*words: Any, **options: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(module, name, refused)


def test_a_file_that_is_no_text_is_a_mistake_and_stays(register: PoolFileRegister) -> None:
    content = register.path.read_bytes() + b"\xff"
    register.path.write_bytes(content)
    for read in (register.read, register.held, register.ensure, register.leave):
        with expect_error(SpecError, "UTF-8", len(content) - 1):
            read()
    assert register.path.read_bytes() == content


@pytest.mark.parametrize(
    ("module", "name", "number", "what"),
    [
        (private_file.tempfile, "mkstemp", errno.EROFS, "cannot be written: .*Read-only file system"),
        (private_file.tempfile, "mkstemp", errno.EACCES, "cannot be written: .*Permission denied"),
        (private_file.os, "fsync", errno.ENOSPC, "No space left on device; the file was not changed"),
        (pool_file.os, "open", errno.EACCES, "cannot be written: Permission denied; change its permissions"),
        (fcntl, "flock", errno.ENOLCK, "its file system has no locks .*; keep it on a local file system"),
    ],
)
def test_what_cannot_be_written_or_locked_is_said_and_changes_nothing(
    register: PoolFileRegister, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, number: int, what: str
) -> None:
    before = register.path.read_text()
    with monkeypatch.context() as patch:
        refuse(patch, module, name, number)
        with pytest.raises(PrepError, match=what):
            claim_one(register, "web")
    assert register.path.read_text() == before
    assert list(register.path.parent.iterdir()) == [register.path]
    claim_one(register, "web")


def test_a_write_that_ends_in_the_middle_leaves_the_old_file(register: PoolFileRegister) -> None:
    """A limit of the kernel stands for a full disk; a new file that could not be filled is removed again."""
    before = register.path.read_text()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
            for change in (
                lambda: claim_one(register, "web"),
                replace(register, path=Path(f"{register.path}2")).ensure,
            ):
                try:
                    change()
                except PrepError as error:
                    code = 0 if "File too large" in str(error) else 2
                else:
                    code = 3
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert register.path.read_text() == before
    assert list(register.path.parent.iterdir()) == [register.path]


def test_an_edit_between_read_and_write_is_kept(register: PoolFileRegister, monkeypatch: pytest.MonkeyPatch) -> None:
    """An editor knows no locks: the file is read again, and the address that it took is given to nobody."""
    edits = iter([register.path.read_text().replace("claims: {}", "claims:\n  printer: {address: 10.0.0.100}\n")])
    write = PoolFileRegister._write

    def edited(self: PoolFileRegister, *words: Any) -> bool:
        if text := next(edits, None):
            self.path.write_text(text)
        return write(self, *words)

    monkeypatch.setattr(PoolFileRegister, "_write", edited)
    assert claim_one(register, "web").address == "10.0.0.101"
    assert register.holders() == {"10.0.0.100": "printer", "10.0.0.101": "s/web"}


# --- locks --------------------------------------------------------------------------------


def test_a_living_holder_is_named_and_waited_for(
    register: PoolFileRegister, holder: subprocess.Popen[str], wording: Wording
) -> None:
    told: list[str] = []
    with expect_error(FileLocked, f"{holder.pid} ({Path(sys.executable).name}", "1"):
        claim_one(replace(register, timeout=1.2, tell=told.append), "web")
    assert len(told) == 1
    wording(told[0])
    assert holder.stdin
    threading.Timer(0.3, holder.stdin.close).start()
    assert claim_one(register, "web").address == "10.0.0.100"


def test_a_dead_holder_has_no_lock(register: PoolFileRegister, holder: subprocess.Popen[str]) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    claim_one(replace(register, timeout=0.0), "web")


def test_without_proc_the_holder_is_unknown(
    register: PoolFileRegister, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_lock, "LOCKS", Path("/nonexistent"))
    with pytest.raises(FileLocked, match="another process"):
        claim_one(replace(register, timeout=0.0), "web")


def test_who_waited_for_a_file_that_was_replaced_or_removed_gets_the_new_one(register: PoolFileRegister) -> None:
    with register.path.open("r+") as old:
        fcntl.flock(old, fcntl.LOCK_EX)
        found: list[object] = []
        waiting = threading.Thread(target=lambda: found.append(claim_one(register, "web")))
        waiting.start()
        time.sleep(0.1)
        copy = register.path.with_name("copy")
        copy.write_text(register.path.read_text().replace("claims: {}", "claims:\n  x: {address: 10.0.0.100}"))
        copy.replace(register.path)
    waiting.join()
    assert register.holders() == {"10.0.0.100": "x", "10.0.0.101": "s/web"}


def test_threads_of_one_run_take_turns(register: PoolFileRegister) -> None:
    names = [f"n{each}" for each in range(12)]
    threads = [threading.Thread(target=claim_one, args=(register, name)) for name in names]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(register.held()) == sorted(names)
    assert len(register.holders()) == 12


def test_what_a_killed_writer_left_is_removed_and_an_editors_file_is_not(register: PoolFileRegister) -> None:
    folder = register.path.parent
    kept = [".pool.yaml.20261126", ".pool.yaml.swp", ".pool.yml.openstack-prep-a1b2c3d4"]
    for name in (".pool.yaml.openstack-prep-a1b2c3d4", *kept):
        (folder / name).touch()
    claim_one(register, "web")
    assert sorted(each.name for each in folder.iterdir()) == [*kept, "pool.yaml"]


def test_an_empty_file_counts_as_missing(register: PoolFileRegister) -> None:
    """A run may be killed between creating the file and filling it."""
    register.path.write_text("")
    assert register.read() is None
    register.ensure()
    assert claim_one(register, "web").address == "10.0.0.100"


def test_processes_that_race_get_distinct_addresses(tmp_path: Path) -> None:
    """One of each round is killed in the middle; ``python -m tests.races.pools`` does 100 rounds."""
    words = [sys.executable, "-m", "tests.races.pools", "--rounds", "8", "--seed", str(os.getpid())]
    done = subprocess.run(words, cwd=Path(__file__).parents[4], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(", 0 faults") == 2


def test_a_file_with_line_ends_of_another_system_keeps_them(register: PoolFileRegister) -> None:
    claim_one(register, "web")
    register.path.write_bytes(register.path.read_bytes().replace(b"\n", b"\r\n"))
    claim_one(register, "api")
    after = register.path.read_bytes()
    assert after.count(b"\n") == after.count(b"\r\n")
    assert set(register.held()) == {"web", "api"}
