"""Who does the scenario, and how each is started and timed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench import environments, scenario
from tests.bench.scenario import BenchError
from tests.bench.table import Row
from tests.devcloud.clouds_file import ADMIN
from tests.devcloud.layout import PASSWORD, REPOSITORY, Layout

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Contender:
    """A command that does the scenario, once for each row of the table, one after the other."""

    rows: Sequence[Row]
    command: Sequence[str]
    programs: Path  # the directory that comes first in PATH
    times_itself: bool = False  # prints its seconds, rather than being measured from outside

    def called(self, texts: Sequence[str]) -> bool:
        """Whether any of these stands in the name of a row."""
        return any(text in row for row in self.rows for text in texts)

    def runs(self, layout: Layout, directory: Path) -> Iterator[tuple[Row, float]]:
        """Do the scenario; seconds, at the moment when it is done."""
        for row in self.rows:
            started = time.monotonic()
            done = subprocess.run(
                self.command,
                cwd=directory,
                env=self._environment(layout, directory),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            seconds = time.monotonic() - started
            if done.returncode:
                raise BenchError(f"{row.value}: exit code {done.returncode}\n{done.stdout[-3000:]}")
            yield row, float(done.stdout.split()[-1]) if self.times_itself else seconds

    def _environment(self, layout: Layout, directory: Path) -> dict[str, str]:
        """Return all that a contender knows: no configuration of the user's own."""
        return {
            "PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}",
            "PWD": str(directory),
            "HOME": str(directory.parent),  # shared, so that caches are warm after the first round
            "LC_ALL": "C.UTF-8",
            "OS_CLIENT_CONFIG_FILE": str(layout.clouds_file),
            "OS_CLOUD": ADMIN,
            "AUTH_URL": layout.auth_url,
            "ADMIN_PASSWORD": PASSWORD,
            "OCP_PASSWORD": scenario.USER_PASSWORD,
            "TEMP_URL_KEY": scenario.TEMP_URL_KEY,
            "ANSIBLE_PIPELINING": "1",  # the one setting that everybody recommends
        }


def contenders(layout: Layout) -> list[Contender]:
    shell, ansible, ours = environments.ensure("shell"), environments.ensure("ansible"), Path(sys.executable).parent
    interpreter = f"ansible_python_interpreter={ansible / 'python'}"
    playbook = ["ansible-playbook", "-i", "localhost,", "-e", interpreter, str(HERE / "playbook.yaml")]
    # the repository stands in the path for tests.bench; openstack_prep is found there, too
    from_repository = ["env", f"PYTHONPATH={REPOSITORY}", sys.executable, "-m"]
    return [
        Contender([Row.SHELL], ["bash", str(HERE / "scenario.sh")], shell),
        Contender([Row.ORCA], ["bash", str(HERE / "orca.sh")], environments.ensure("orca")),
        Contender([Row.ANSIBLE, Row.ANSIBLE_AGAIN], playbook, ansible),
        Contender([Row.OURS, Row.OURS_AGAIN], ["openstack-prep", "apply", "--yes", scenario.SPEC], ours),
        Contender(
            [Row.INSIDE, Row.INSIDE_AGAIN],
            [*from_repository, "tests.bench.inside", scenario.SPEC],
            ours,
            times_itself=True,
        ),
        Contender([Row.FLOOR], [*from_repository, "tests.bench.floor", layout.auth_url], ours, times_itself=True),
    ]
