"""Programs of others that read what this package renders, in a namespace of their own: unprivileged, without a network.

OPENSTACK_PREP_EXTERNAL_PROGRAMS is the root folder of the programs, such as one of unpacked packages; default: /.
A missing program fails the tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

FOLDERS = ("usr/sbin", "usr/bin", "sbin", "bin")
BEGIN = """
set -euo pipefail
mount -t tmpfs none /run
ip link set lo up
until_it() { for _ in $(seq 100); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done; echo "gave up: $*" >&2; exit 1; }
"""


@dataclass(frozen=True)
class Programs:
    """The programs below a root folder."""

    root: Path

    def path(self, name: str) -> str:
        """Return the path of a program; fails the test without it."""
        found = shutil.which(name, path=":".join(str(self.root / folder) for folder in FOLDERS)) or shutil.which(name)
        if found is None:
            pytest.fail(f"{name} is missing below {self.root}; set OPENSTACK_PREP_EXTERNAL_PROGRAMS, or install it")
        return found

    @property
    def environment(self) -> dict[str, str]:
        folders = [str(self.root / folder) for folder in FOLDERS]
        libraries = self.root / "usr/lib" / str(sysconfig.get_config_var("MULTIARCH"))
        own = {} if self.root == Path("/") else {"LD_LIBRARY_PATH": str(libraries)}
        return os.environ | own | {"PATH": ":".join([*folders, os.environ["PATH"]]), "LC_ALL": "C.UTF-8"}

    def run(self, *command: str | Path) -> str:
        """Run a program and return what it printed; fails the test if it fails."""
        self.path(str(command[0]))
        done = subprocess.run(
            [str(word) for word in command],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def inside(self, script: str, *needed: str) -> str:
        """Run a script as root of a namespace with an empty network; whatever it started ends with it."""
        for name in ("unshare", "ip", *needed):
            self.path(name)
        spaces = ["--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--mount-proc"]
        return self.run("unshare", *spaces, "--propagation", "private", "bash", "-c", BEGIN + script)


@pytest.fixture(scope="session")
def programs() -> Programs:
    return Programs(Path(os.environ.get("OPENSTACK_PREP_EXTERNAL_PROGRAMS", "/")).resolve())
