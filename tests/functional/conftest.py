"""The devcloud's fixtures, and the command as a user calls it."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import standin
from tests.devcloud.pytest_devcloud import Devcloud, devcloud, module_tenant, pytest_runtest_teardown, tenant
from tests.devcloud.qcow2 import qcow2
from tests.devcloud.tenant import Tenant
from tests.functional import client, warm
from tests.functional.lab import NODES, Lab
from tests.races.stopped import Stop

__all__ = ["devcloud", "module_tenant", "pytest_runtest_teardown", "tenant"]

COMMAND = str(Path(sys.executable).with_name("openstack-prep"))
OPENSTACK = str(Path(sys.executable).with_name("openstack"))
LONGEST = (
    "test_rke2_choices", "test_rolls", "test_schedules", "test_ipi", "test_rke2_config", "test_port", "test_stack",
    "test_stack_losses", "test_lease", "test_image", "test_faults", "test_rke", "test_address_pairs_sync",
    "test_credentials", "test_network", "test_fleet", "test_heat_templates", "test_stack_previews",
)  # fmt: skip
"""Modules that take minutes are the first ones, so that no worker has one left when the others have ended."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda each: LONGEST.index(each.path.stem) if each.path.stem in LONGEST else len(LONGEST))


@dataclass
class Prep:
    """``openstack-prep`` in a folder of its own, against the devcloud."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def spec(self) -> Path:
        return self.folder / "spec.yaml"

    def write(self, spec: dict[str, Any]) -> None:
        self.spec.write_text(yaml.safe_dump(spec, sort_keys=False))

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(
            [COMMAND, *words], cwd=self.folder, env=os.environ | self.environment, text=True, **pipes | options
        )

    def run(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run the command and insist on its exit code."""
        environment = os.environ | self.environment
        if warm.suits(environment):
            ended, out, err = warm.run(words, environment, self.folder, 300)
        else:
            process = self.start(*words)
            out, err = process.communicate(timeout=300)
            ended = process.returncode
        assert ended == code, f"{words}: {ended}\n{out}\n{err}"
        return subprocess.CompletedProcess(words, ended, out, err)

    def run_killed(self, write: int, *words: str) -> None:
        """Run the command, and insist that a signal kills it once that write of its is answered."""
        environment = os.environ | self.environment
        assert warm.suits(environment)
        stop = Stop(write, "after", writes=True)
        ended, out, err = warm.run(words, environment, self.folder, 300, stop)
        assert ended == -signal.SIGKILL, f"{words}: {ended} before its write number {write}\n{out}\n{err}"

    def plan(self, code: int = 0) -> dict[str, str]:
        """Return by resource what apply would do."""
        steps = json.loads(self.run("plan", "--format", "json", self.spec.name, code=code).stdout)["steps"]
        return {step["resource"]: step["action"] for step in steps}

    def apply(self, *words: str, code: int = 0) -> dict[str, dict[str, Any]]:
        """Apply and return the report's steps by resource."""
        out = self.run("apply", "--yes", "--format", "json", *words, self.spec.name, code=code).stdout
        return {step["resource"]: step for step in json.loads(out)["steps"]}

    def destroy(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        return self.run("destroy", "--yes", *words, self.spec.name, code=code)

    def changes(self) -> set[str]:
        """Return what a second apply would touch."""
        return {resource for resource, action in self.plan().items() if action != "keep"}

    def openstack(self, *words: str, **environment: str) -> Any:
        """Ask the ``openstack`` command, as the administrator unless told otherwise."""
        return json.loads(client.openstack([*words, "-f", "json"], self.environment | environment, self.folder))


@pytest.fixture
def prep(devcloud: Devcloud, tmp_path: Path) -> Iterator[Prep]:
    """The command, with the administrator's entry; what its spec made is destroyed at the end."""
    made = Prep(
        tmp_path,
        {
            "OS_CLIENT_CONFIG_FILE": str(devcloud.clouds_file),
            "OS_CLOUD": "devcloud-admin",
            "PREP_PASSWORD": "a-password-of-the-test",
            "PREP_TEMP_URL_KEY": "a-key-of-the-test",
        },
    )
    (tmp_path / "disk.qcow2").write_bytes(qcow2(1))
    yield made
    if made.spec.exists():
        made.destroy()


@pytest.fixture
def own_lab(devcloud: Devcloud) -> Iterator[Lab]:
    """A project with a user, for resources made in Python; destroyed at the end, with all that was declared."""
    made = Lab(devcloud)
    yield made
    made.destroy()
    assert made.admin.identity.find_project(made.name) is None


@pytest.fixture
def lab(own_lab: Lab) -> Lab:
    """That project; a module whose tests leave project and user alone takes ``shared_lab`` in its place."""
    return own_lab


@pytest.fixture(scope="module")
def module_lab(devcloud: Devcloud) -> Iterator[Lab]:
    """A project with a user, for all tests of a module; destroyed at the end."""
    made = Lab(devcloud)
    yield made
    made.destroy()
    assert made.admin.identity.find_project(made.name) is None


@pytest.fixture
def shared_lab(module_lab: Lab) -> Iterator[Lab]:
    """The module's project; what a test declared in it is destroyed at its end, and the project stays.

    To make and destroy a project takes some eighty requests, which is as many as most tests send beside it.
    """
    yield module_lab
    module_lab.clear()


@pytest.fixture(scope="module")
def project(devcloud: Devcloud) -> Iterator[Lab]:
    """One project with the network ``nodes``, for all tests of a module; destroyed with all that they declared."""
    made = Lab(devcloud)
    made.apply(*NODES)
    yield made
    made.destroy()
    assert made.admin.identity.find_project(made.name) is None


@pytest.fixture(scope="module")
def images(devcloud: Devcloud) -> Iterator[tuple[str, str]]:
    """Two images that all projects see."""
    formats = {"disk_format": "qcow2", "container_format": "bare", "visibility": "public"}
    names = [f"image-{secrets.token_hex(3)}" for _ in range(2)]
    made = [devcloud.admin.image.create_image(name, data=qcow2(1), **formats) for name in names]
    yield names[0], names[1]
    for each in made:
        devcloud.admin.image.delete_image(each)


@pytest.fixture
def standin_cluster(tenant: Tenant) -> Callable[..., standin.Cluster]:
    """Make clusters, by the stand-in for the installer, in the tenant's project: ``standin_cluster("dev-x7k2p")``."""
    return partial(standin.make, tenant.connect())
