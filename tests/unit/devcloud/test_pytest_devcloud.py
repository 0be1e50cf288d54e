from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.devcloud.layout import REPOSITORY
from tests.devcloud.pytest_devcloud import NO_CLOUD

TESTS = "import pytest\n\n@pytest.mark.parametrize('n', range(20))\ndef test_any(devcloud, n): pass\n"


@pytest.mark.parametrize(("words", "code"), [([], NO_CLOUD), (["-n", "2", "--dist", "loadfile"], 2)])
def test_a_cloud_that_does_not_start_ends_the_run_with_one_message(tmp_path: Path, words: list[str], code: int) -> None:
    for name in "abcd":
        (tmp_path / f"test_{name}.py").write_text(TESTS)
    plugin = ["-p", "tests.devcloud.pytest_devcloud", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", tmp_path]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *plugin, *words, tmp_path],
        cwd=REPOSITORY,
        env=os.environ | {"OPENSTACK_PREP_TEST_PORT_BASE": "50000", "OPENSTACK_PREP_DEVCLOUD_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == code, run.stdout + run.stderr
    assert run.stdout.count("will not do: it must lie between") == 1
    assert " error" not in run.stdout.splitlines()[-1]
