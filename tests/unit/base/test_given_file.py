"""Files and pipes that a person names."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from openstack_prep.base import given_file
from openstack_prep.base.given_file import read_text
from tests.unit.texts import Wording, expect_error


def test_a_file_is_text_with_one_kind_of_line_end(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes("ä\r\nb\rc\n".encode())
    assert read_text(path) == "ä\nb\nc\n"


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    text = "x" * 3 * given_file.CHUNK
    writer = threading.Thread(target=path.write_text, args=(text,))
    writer.start()
    assert read_text(path) == text
    writer.join()


def test_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * given_file.MIB)
    assert len(read_text(path, given_file.MIB)) == given_file.MIB
    path.write_bytes(b"x" * (given_file.MIB + 1))
    with pytest.raises(OSError, match="more than 1 MiB") as raised:
        read_text(path, given_file.MIB)
    assert raised.value.errno == errno.EFBIG


def test_an_endless_pipe_is_refused(tmp_path: Path) -> None:
    with subprocess.Popen(["cat", "/dev/zero"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            with pytest.raises(OSError, match="more than 64 KiB"):
                read_text(Path(f"/dev/fd/{process.stdout.fileno()}"), given_file.MOST_KEY)
        finally:
            process.kill()


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_a_device_is_refused_and_nothing_stays_open(device: str, wording: Wording) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with expect_error(OSError) as raised:
        read_text(Path(device))
    wording(raised.value)
    assert raised.value.errno == errno.EINVAL
    assert len(os.listdir("/proc/self/fd")) == before


def test_links_in_a_circle_are_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links") as raised:
        read_text(tmp_path / "a")
    assert raised.value.errno == errno.ELOOP


def test_a_silent_pipe_is_reported_and_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, wording: Wording
) -> None:
    path = tmp_path / "pi\x1bpe"
    os.mkfifo(path)
    monkeypatch.setattr(given_file, "QUIET", 0.1)
    monkeypatch.setattr(given_file, "PATIENCE", 0.5)
    monkeypatch.setattr(given_file, "ROUND", 0.05)
    with expect_error(OSError) as raised:
        read_text(path)
    wording(raised.value)
    assert raised.value.errno == errno.ETIMEDOUT
    assert [each.getMessage().count("pi\\x1bpe") for each in caplog.records] == [1]


def test_standard_input_may_be_a_socket(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    code = (
        "from pathlib import Path; from openstack_prep.base import given_file as f; print(f.read_text(Path(f.STDIN)))"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=theirs, stdout=subprocess.PIPE) as process:
        theirs.close()
        ours.sendall(b"text")
        ours.close()
        assert process.communicate(timeout=30)[0] == b"text\n"


def test_a_folder_is_refused_and_nothing_stays_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(IsADirectoryError):
        read_text(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before


ANOTHER_THREAD_HEARS = """
import signal, sys, threading, time
from pathlib import Path
from openstack_prep.base.given_file import read_text

def heard():
    time.sleep(0.5)  # until the main thread waits
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
threading.Thread(target=heard, daemon=True).start()
read_text(Path(sys.argv[1]))
"""


def test_a_signal_that_interrupts_no_call_ends_the_waiting_for_a_pipe(tmp_path: Path) -> None:
    """As when it comes right before the call: Python looks for signals only between calls."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with subprocess.Popen([sys.executable, "-c", ANOTHER_THREAD_HEARS, str(path)]) as process:
        try:
            assert process.wait(timeout=30) == 7
        finally:
            process.kill()
