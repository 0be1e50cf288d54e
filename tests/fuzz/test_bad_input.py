"""Every file that a person or a program writes, damaged: refused with its name, without a traceback or a request."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.mutating import damaged
from tests.fuzz.running import judge, judge_refusal, run
from tests.fuzz.trials import BESIDE, TRIALS, Trial

FORMS = ((), (), ("--format", "json"), ("--format", "yaml"))
MOST_KIB = 2 * 2**20
WRITTEN = ("hosts", "saved.plan")
"""What a command may have written."""


@pytest.mark.parametrize("trial", TRIALS, ids=str)
@given(data=st.data())
def test_a_damaged_file_is_refused_by_its_name(trial: Trial, folder: Path, data: st.DataObject) -> None:
    for name, text in BESIDE.items():
        (folder / name).write_text(text)
    (folder / trial.file).write_bytes(data.draw(damaged(trial.documents(), trial.form)))
    command = data.draw(st.sampled_from(trial.commands)).split()
    found = run([*command, *data.draw(st.sampled_from(FORMS))])
    judge(found, (*trial.codes, 1) if found.connections else trial.codes)
    if found.code == 2:
        judge_refusal(found, trial.named or trial.file)
    for name in WRITTEN:
        (folder / name).unlink(missing_ok=True)


OFFLINE = [
    each for each in TRIALS if each.commands[0].startswith(("validate", "names", "rke", "kubernetes", "exposures"))
]


@settings(max_examples=max(4, settings.default.max_examples // 4))
@given(data=st.data())
def test_the_program_itself_says_the_same(folder: Path, data: st.DataObject) -> None:
    """A sample runs as a process with bounded memory, which a fault of a C library would end."""
    trial = data.draw(st.sampled_from(OFFLINE))
    for name, text in BESIDE.items():
        (folder / name).write_text(text)
    (folder / trial.file).write_bytes(data.draw(damaged(trial.documents(), trial.form)))
    command = data.draw(st.sampled_from(trial.commands)).split()
    limited = ["bash", "-c", f'ulimit -v {MOST_KIB}; exec "$0" "$@"', sys.executable, "-m", "openstack_prep.cli.main"]
    done = subprocess.run([*limited, *command], capture_output=True, timeout=60)
    found = run(command)
    assert (done.returncode, done.stderr.decode()) == (found.code, found.err)
