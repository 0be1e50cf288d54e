"""One round: several runs of one spec, each from a checkout and with a HOME of its own."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.devcloud.qcow2 import qcow2

COMMAND = str(Path(sys.executable).with_name("openstack-prep"))
TIMEOUT = 300
KINDS = ("network", "subnet", "router", "security_group", "floating_ip", "server_group", "image")


def spec(name: str) -> dict[str, Any]:
    """Return a spec with one of everything that OpenStack allows twice."""
    return {
        "name": name,
        "project": {"name": name},
        "users": [{"name": name, "password": {"env": "PREP_PASSWORD"}}],
        "role_assignments": [{"user": name, "role": "member"}],
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
        "address_pools": [{"name": "lb", "subnet": "nodes", "addresses": ["10.0.0.240-10.0.0.243"]}],
    }


@dataclass
class Checkout:
    """A directory with the spec, and a HOME."""

    folder: Path
    environment: dict[str, str]

    def start(self, *words: str) -> subprocess.Popen[str]:
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        environment = os.environ | self.environment | {"HOME": str(self.folder)}
        return subprocess.Popen([COMMAND, *words, "spec.yaml"], cwd=self.folder, env=environment, text=True, **pipes)

    def run(self, *words: str) -> tuple[int, str]:
        process = self.start(*words)
        said, _ = process.communicate(timeout=TIMEOUT)
        return process.returncode, said


def checkouts(folder: Path, name: str, count: int, environment: dict[str, str]) -> list[Checkout]:
    made = []
    for number in range(count):
        own = folder / f"checkout{number}"
        own.mkdir(parents=True, exist_ok=True)
        (own / "spec.yaml").write_text(yaml.safe_dump(spec(name), sort_keys=False))
        (own / "disk.qcow2").write_bytes(qcow2(1))
        made.append(Checkout(own, environment))
    return made


@dataclass
class Outcome:
    """How a round went; ``twins`` and ``missing`` are what is there more than once, or not at all."""

    codes: list[int] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    left: Counter[str] = field(default_factory=Counter)
    after: Counter[str] = field(default_factory=Counter)
    again: tuple[int, str] = (0, "")
    empty: bool = True
    gone: bool = True
    seconds: float = 0.0

    @property
    def faults(self) -> list[str]:
        return list(self._faults())

    def _faults(self) -> Iterator[str]:
        if self.again[0]:
            yield f"a further apply ends with {self.again[0]}"
        yield from (f"{count} of {what} after a further apply" for what, count in self.after.items() if count != 1)
        if not self.empty:
            yield "the plan after a further apply is not empty"
        if not self.gone:
            yield "destroy leaves something"

    @property
    def twins(self) -> list[str]:
        return sorted(f"{count} {what}" for what, count in self.left.items() if count > 1)


def left(admin: Any, name: str) -> Counter[str]:
    """Return how many of each there are in the project; 0 of what is missing."""
    wanted = ["network net", "subnet nodes", "router out", "security_group nodes", "security_group lb"]
    wanted += ["floating_ip", "server_group masters", "image disk", "interface"]
    wanted += [f"port lb-10.0.0.{number}" for number in range(240, 244)]
    found: Counter[str] = Counter()
    project = admin.identity.find_project(name)
    if project is not None:
        here = {"project_id": project.id}
        network = admin.network
        found.update(f"network {each.name}" for each in network.networks(**here))
        found.update(f"subnet {each.name}" for each in network.subnets(**here))
        found.update(f"router {each.name}" for each in network.routers(**here))
        groups = network.security_groups(**here)
        found.update(f"security_group {each.name}" for each in groups if each.name != "default")
        found.update("floating_ip" for _ in network.ips(**here))
        for port in network.ports(**here):
            owned = port.device_owner == "network:router_interface"
            found.update(["interface" if owned else f"port {port.name}"])
        found.update(f"image {each.name}" for each in admin.image.images(owner=project.id))
        listed = admin.compute.server_groups(all_projects=True)
        found.update(f"server_group {each.name}" for each in listed if each.project_id == project.id)
    for what in wanted:
        found.setdefault(what, 0)
    return found


def race(
    there: Sequence[Checkout],
    admin: Any,
    name: str,
    *,
    stagger: float,
    kill: bool = False,
    against_destroy: bool = False,
    seed: int = 0,
) -> Outcome:
    """Apply from all checkouts, ``stagger`` seconds apart; then once more, look, and destroy."""
    chance = random.Random(seed)
    outcome, started = Outcome(), time.monotonic()
    if against_destroy:
        there[0].run("apply", "--yes")
    processes = []
    for number, checkout in enumerate(there):
        verb = "destroy" if against_destroy and not number else "apply"
        processes.append(checkout.start(verb, "--yes"))
        time.sleep(stagger)
    if kill:
        time.sleep(chance.uniform(0, 4))
        chance.choice(processes).send_signal(signal.SIGKILL)
    for process in processes:
        said, _ = process.communicate(timeout=TIMEOUT)
        outcome.codes.append(process.returncode)
        outcome.said.append(said)
    outcome.seconds = time.monotonic() - started
    outcome.left = left(admin, name)
    outcome.again = there[-1].run("apply", "--yes")
    outcome.after = left(admin, name)
    outcome.empty = there[-1].run("plan", "--detailed-exitcode")[0] == 0
    for _ in range(2):
        if (destroyed := there[-1].run("destroy", "--yes"))[0] == 0:
            break
    outcome.gone = destroyed[0] == 0 and admin.identity.find_project(name) is None
    if not outcome.gone:
        outcome.said.append(destroyed[1])
    return outcome
