"""A few schedules of tests/faults: apply and destroy under faults; ``tox -e faults`` tries many more, and kills."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.devcloud.layout import REPOSITORY
from tests.devcloud.pytest_devcloud import Devcloud

SPECS = ("minimal", "exposures-openshift", "openshift-lab")


def test_schedules_converge_and_leave_nothing(devcloud: Devcloud) -> None:
    """Each trial that went wrong is printed with the line that repeats it."""
    words = ["--port-base", str(devcloud.base), "--seeds", "1-6", "--spec", *SPECS]
    environment = os.environ | {"OPENSTACK_PREP_DEVCLOUD_DIR": str(devcloud.layout.root)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults", *words], cwd=REPOSITORY, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# 0 trials" not in done.stdout
