"""Some trials of tests/faults: apply and destroy under faults and after kills; ``tox -e faults`` tries many more."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.devcloud.layout import REPOSITORY
from tests.devcloud.pytest_devcloud import Devcloud


@pytest.mark.parametrize(
    "words",
    [
        ("--seeds", "1-2", "--spec", "minimal"),
        ("--seeds", "15", "--spec", "exposures-openshift"),
        pytest.param(("--seeds", "3-14", "--spec", "minimal"), marks=pytest.mark.more),
        pytest.param(("--seeds", "16-17", "--spec", "exposures-openshift"), marks=pytest.mark.more),
        pytest.param(("--seeds", "18-20", "--spec", "openshift-lab"), marks=pytest.mark.more),
        ("--then-destroy", "20", "--from-request", "9", "--spec", "kinds"),
    ],
    ids=" ".join,
)
def test_trials_converge_and_leave_nothing(words: tuple[str, ...], devcloud: Devcloud) -> None:
    """Each trial that went wrong is printed with the line that repeats it."""
    words = ("--port-base", str(devcloud.base), "--no-reset", *words)
    environment = os.environ | {"OPENSTACK_PREP_DEVCLOUD_DIR": str(devcloud.layout.root)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults", *words], cwd=REPOSITORY, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# 0 trials" not in done.stdout
