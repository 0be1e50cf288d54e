"""An environment with openstack_prep and the package of docs/extending.md, as a user installs them."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import venv
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.devcloud.pytest_devcloud import Devcloud, devcloud, pytest_runtest_teardown
from tests.functional.conftest import Prep
from tests.functional.test_wheel import build, folder, sdist, wheel

__all__ = ["Prep", "devcloud", "folder", "pytest_runtest_teardown", "sdist", "wheel"]

PACKAGE = Path(__file__).parent / "package"


@dataclass
class Installed(Prep):
    """``openstack-prep`` and Python of the environment."""

    environment_folder: Path = field(kw_only=True)

    def start(self, *words: str, program: str = "openstack-prep", **options: Any) -> subprocess.Popen[str]:
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [str(self.environment_folder / "bin" / program), *words]
        environment = os.environ | self.environment
        return subprocess.Popen(command, cwd=self.folder, env=environment, text=True, **pipes | options)

    def run(self, *words: str, code: int = 0, program: str = "openstack-prep") -> subprocess.CompletedProcess[str]:
        """Run the command and insist on its exit code."""
        process = self.start(*words, program=program)
        out, err = process.communicate(timeout=300)
        assert process.returncode == code, f"{words}: {process.returncode}\n{out}\n{err}"
        return subprocess.CompletedProcess(words, code, out, err)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """A virtual environment with both wheels; dependencies are those of the tests, because there is no network."""
    made = tmp_path_factory.mktemp("environment")
    venv.create(made)
    own = Path(made, "lib", f"python{sys.version_info.major}.{sys.version_info.minor}", "site-packages")
    others = [each for each in site.getsitepackages() if Path(each).is_dir()]
    (own / "dependencies.pth").write_text(f"import site; list(map(site.addsitedir, {others!r}))\n")
    source = tmp_path_factory.mktemp("source") / "package"
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("__pycache__"))
    extension = build("wheel", source, source)
    pip = [sys.executable, "-m", "pip", "--quiet", "--python", str(made / "bin" / "python")]
    options = ["--no-deps", "--no-index", "--no-compile", "--ignore-installed"]
    subprocess.run([*pip, "install", *options, str(wheel), str(extension)], check=True)
    return made


@pytest.fixture
def prep(devcloud: Devcloud, environment: Path, tmp_path: Path) -> Iterator[Installed]:
    """The command, with the administrator's entry; what its spec made is destroyed at the end."""
    variables = {
        "OS_CLIENT_CONFIG_FILE": str(devcloud.clouds_file),
        "OS_CLOUD": "devcloud-admin",
        "PREP_PASSWORD": "a-password-of-the-test",
    }
    made = Installed(tmp_path, variables, environment_folder=environment)
    yield made
    if made.spec.exists():
        made.destroy()
