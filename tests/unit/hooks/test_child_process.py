from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from openstack_prep.core.interrupts import SIGNALS
from openstack_prep.hooks import child_process
from openstack_prep.hooks.child_process import NoSuchProgram, find_program
from tests.unit.texts import Wording

SHELL = "/bin/sh"


@pytest.mark.parametrize(
    ("does", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137), ("kill -INT $$", 130)]
)
def test_a_code_is_what_a_shell_would_say(does: str, code: int) -> None:
    assert child_process.run([SHELL, "-c", does], os.environ) == code


def test_what_cannot_be_run(tmp_path: Path, wording: Wording) -> None:
    plain = tmp_path / "plain"
    plain.write_text("#!/no/such/interpreter\n")
    for name, code, said in (
        ("no-such-program", 127, "is not on PATH; use its path"),
        (f"{tmp_path}/nothing", 127, "the file does not exist"),
        (str(plain), 126, "is not executable; chmod"),
        (str(tmp_path), 126, "is not executable; choose the program in this directory"),
    ):
        with pytest.raises(NoSuchProgram, match=said) as caught:
            find_program(name)
        assert caught.value.exit_code == code
    plain.chmod(0o755)
    assert find_program(str(plain)) == plain
    with pytest.raises(NoSuchProgram) as caught:
        child_process.run([str(plain)], os.environ)
    wording(caught.value)
    assert caught.value.exit_code == 127
    plain.write_bytes(b"\x7fELF and no more")
    with pytest.raises(NoSuchProgram) as caught:
        child_process.run([str(plain)], os.environ)
    wording(caught.value)
    assert caught.value.exit_code == 126


def test_sigterm_is_passed_on_and_sigint_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_process, "LOOK_UP", 0.05)
    ready = tmp_path / "ready"
    does = f"trap 'exit 3' TERM; trap 'exit 4' INT; echo > {ready}; while :; do sleep 0.02; done"

    def send() -> None:
        while not ready.exists():
            time.sleep(0.005)
        for number in (signal.SIGINT, signal.SIGTERM):  # to us alone: from a terminal it has the first already
            os.kill(os.getpid(), number)

    before = [signal.getsignal(each) for each in SIGNALS]
    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    assert child_process.run([SHELL, "-c", does], os.environ) == 3
    sender.join()
    assert [signal.getsignal(each) for each in SIGNALS] == before


def test_an_ignored_signal_stays_ignored() -> None:
    script = "import os; from openstack_prep.hooks.child_process import run; "
    script += "run(['/bin/sh', '-c', 'kill -HUP $$'], os.environ)"
    words = ["/bin/sh", "-c", f'trap "" HUP; exec "{sys.executable}" -c "{script}"']
    assert subprocess.run(words, check=False).returncode == 0


def test_from_another_thread_it_runs_all_the_same() -> None:
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(child_process.run([SHELL, "-c", "exit 5"], os.environ)))
    thread.start()
    thread.join()
    assert codes == [5]
