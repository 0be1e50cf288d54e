"""Checkouts of one spec, each with a HOME of its own, and the runs in them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from openstack_prep.base.errors import PrepError
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.plan import Report
from openstack_prep.spec import Spec, load_spec
from openstack_prep.verbs import api
from tests.devcloud.qcow2 import qcow2
from tests.races.stopped import Stop

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 300
PASSWORD = "a-password-of-the-race"


def spec(name: str, project: str) -> dict[str, Any]:
    """Return a spec with one of everything that OpenStack allows twice."""
    return {
        "name": name,
        "project": {"name": project},
        "users": [{"name": project, "password": {"env": "PREP_PASSWORD"}}],
        "role_assignments": [{"user": project, "role": "member"}],
        "networks": [{"name": "net"}],
        "subnets": [{"name": "nodes", "network": "net", "cidr": "10.0.0.0/24"}],
        "routers": [{"name": "out", "external_network": "external", "interfaces": ["nodes"]}],
        "security_groups": [
            {"name": "nodes", "rules": [{"protocol": "tcp", "ports": 22}]},
            {"name": "lb", "rules": [{"protocol": "tcp", "ports": 443, "remote_group": "nodes"}]},
        ],
        "floating_ips": [{"name": "api", "external_network": "external"}],
        "server_groups": [{"name": "masters", "policy": "soft-anti-affinity"}],
        "images": [{"name": "disk", "source": "disk.qcow2", "disk_format": "qcow2"}],
        "address_pools": [{"name": "lb", "subnet": "nodes", "addresses": ["10.0.0.240-10.0.0.241"]}],
    }


@dataclass
class Run:
    """One openstack-prep that was started; its output goes to a file."""

    process: subprocess.Popen[bytes]
    log: Path
    stop: Stop | None = None
    code: int | None = None

    def wait(self) -> int | None:
        """Return the exit code; None when the run does not end, which it then does by a kill."""
        try:
            self.code = self.process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        return self.code

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")


@dataclass
class Checkout:
    """A directory with the spec, and a HOME; ``proc`` stands for /proc when it is to be on a host of its own.

    ``start`` runs a command; the other verbs need no race and spare the time of a new process.
    """

    folder: Path
    project: str
    cloud: Cloud
    environment: dict[str, str]
    proc: Path | None = None
    words: tuple[str, ...] = ()
    runs: list[Run] = field(default_factory=list)

    def start(self, verb: str, *words: str, stop: Stop | None = None, counted: Path | None = None) -> Run:
        """Start a run; its verb may be ``apply`` or ``destroy``, which then need no consent."""
        number = len(self.runs)
        settings = self.folder / f"run{number}.json"
        chosen = {"stop": stop and asdict(stop), "counted": counted and str(counted)}
        settings.write_text(json.dumps(chosen | {"proc": self.proc and str(self.proc)}))
        consent = () if verb == "plan" else ("--yes", *self.words)
        command = [sys.executable, "-m", "tests.races.stopped", str(settings), verb, *consent, *words, "spec.yaml"]
        own = {"HOME": str(self.folder), "PYTHONPATH": str(ROOT)}
        log = self.folder / f"run{number}-{verb}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=os.environ | self.environment | own,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        self.runs.append(Run(process, log, stop))
        return self.runs[-1]

    def plan(self) -> str:
        """Return what a plan would do, or why there is none; nothing when all is as declared."""
        try:
            planned = api.plan(self.cloud, self._spec())
        except PrepError as error:
            return str(error)
        return str(planned) if planned or planned.refusals else ""

    def apply(self) -> Iterator[str]:
        """Apply once more; yields what fails."""
        yield from self._report("apply", api.apply)

    def destroy(self) -> Iterator[str]:
        """Destroy what the spec manages; yields what fails."""
        yield from self._report("destroy", api.destroy)

    def _report(self, name: str, verb: Callable[[Cloud, Spec], Report]) -> Iterator[str]:
        try:
            verb(self.cloud, self._spec()).raise_for_failures()
        except PrepError as error:
            yield f"{name}: {error}"

    def _spec(self) -> Spec:
        return load_spec(self.folder / "spec.yaml")


def make(
    folder: Path, name: str, cloud: Cloud, environment: dict[str, str], *, projects: int = 1, hosts: bool = False
) -> list[Checkout]:
    """Return two checkouts of a spec; with two projects each has its own, of the same spec name."""
    made = []
    os.environ["PREP_PASSWORD"] = PASSWORD
    for number in range(2):
        own = folder / f"checkout{number}"
        own.mkdir(parents=True)
        project = f"{name}-{number % projects}"
        (own / "spec.yaml").write_text(yaml.safe_dump(spec(name, project), sort_keys=False))
        (own / "disk.qcow2").write_bytes(qcow2(1))
        proc = _host(own / "proc", number) if hosts else None
        made.append(Checkout(own, project, cloud, environment, proc))
    return made


def _host(proc: Path, number: int) -> Path:
    """Return a directory that names another host, as a lease reads it."""
    boot = proc / "sys/kernel/random/boot_id"
    boot.parent.mkdir(parents=True)
    boot.write_text(f"host-{number}")
    (proc / "self/ns").mkdir(parents=True)
    (proc / "self/ns/pid").symlink_to("pid:[1]")
    return proc
