"""Twenty schedules of tests/faults: apply and destroy under faults; ``tox -e faults`` tries many more, and kills."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.devcloud.layout import REPOSITORY
from tests.devcloud.pytest_devcloud import Devcloud


@pytest.mark.parametrize(
    ("seeds", "spec"),
    [("1-7", "minimal"), ("8-14", "minimal"), ("15-17", "exposures-openshift"), ("18-20", "openshift-lab")],
)
def test_schedules_converge_and_leave_nothing(seeds: str, spec: str, devcloud: Devcloud) -> None:
    """Each trial that went wrong is printed with the line that repeats it."""
    words = ["--port-base", str(devcloud.base), "--seeds", seeds, "--spec", spec]
    environment = os.environ | {"OPENSTACK_PREP_DEVCLOUD_DIR": str(devcloud.layout.root)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults", *words], cwd=REPOSITORY, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# 0 trials" not in done.stdout
