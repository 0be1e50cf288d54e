"""Files and pipes that a person names."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from openstack_prep.base import given_file
from openstack_prep.base.given_file import read_text


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


@pytest.mark.parametrize("endless", ["/dev/zero", "file"])
def test_too_large_is_refused(endless: str, tmp_path: Path) -> None:
    path = tmp_path / endless  # an absolute one replaces the folder
    if not path.exists():
        path.write_bytes(b"x" * (given_file.MIB + 1))
    with pytest.raises(OSError, match="more than 1 MiB") as raised:
        read_text(path, given_file.MIB)
    assert raised.value.errno == errno.EFBIG


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
