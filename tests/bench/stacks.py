"""Two clusters of three servers each out of the shipped template, at the same time: by us, and by the client.

Heat itself is the floor: both stacks asked for by one plain request each, and looked at four times a second.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from tests.bench import environments
from tests.bench.scenario import BenchError, Client
from tests.bench.table import Run, met, ratio
from tests.devcloud import access
from tests.devcloud.clouds_file import ADMIN
from tests.devcloud.layout import PASSWORD, REPOSITORY, Layout
from tests.devcloud.progress import say, timed
from tests.devcloud.qcow2 import qcow2

BEGIN, END = "<!-- bench stacks: begin -->", "<!-- bench stacks: end -->"
TEMPLATE = REPOSITORY / "heat_templates" / "rke-cluster.yaml"
NAME, NODES = "stacks-of-the-bench", 3
STACKS = (f"{NAME}-1", f"{NAME}-2")
PARAMETERS = {"node_count": NODES, "image": NAME, "flavor": "m1.small", "key_name": NAME, "network": NAME}
PARAMETERS |= {"wait_timeout": 0}
MORE = 0.1  # of Heat's own time, that we take at most
PAUSE = 0.25  # seconds


class Row(StrEnum):
    """What is measured, in the table's order."""

    SHELL = "two `openstack stack create --wait` at once"
    OURS = "`openstack-prep apply`"
    FLOOR = "floor: Heat itself, two requests at once"


_GIVEN = " ".join(f"--parameter {name}={value}" for name, value in PARAMETERS.items())
SCRIPTS = {
    Row.OURS: "exec openstack-prep apply --yes spec.json",
    Row.SHELL: "".join(f"openstack stack create --wait -t {TEMPLATE} {_GIVEN} {name} &\n" for name in STACKS)
    + "wait -n && wait -n",
}


class Room:
    """The network, image and key that both clusters use; deleted at the end."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.admin = Client(layout.auth_url, "admin", PASSWORD, "admin")

    def __enter__(self) -> Room:
        with timed("made what the stacks use"):
            body: Any = {"network": {"name": NAME}}
            self.network = self.send("POST", "network", "/v2.0/networks", body)["network"]["id"]
            subnet = {"network_id": self.network, "ip_version": 4, "cidr": "10.61.0.0/24", "name": NAME}
            self.send("POST", "network", "/v2.0/subnets", {"subnet": subnet})
            self.send("POST", "compute", "/os-keypairs", {"keypair": {"name": NAME, "public_key": KEY}})
            body = {"name": NAME, "disk_format": "qcow2", "container_format": "bare"}
            self.image = self.send("POST", "image", "/v2/images", body)["id"]
            url = f"{self.admin.endpoints['image']}/v2/images/{self.image}/file"
            content = {"Content-Type": "application/octet-stream"}
            self.admin.session.put(url, data=qcow2(), headers=content, timeout=60).raise_for_status()
        return self

    def __exit__(self, *_: object) -> None:
        self.admin.send("DELETE", "image", f"/v2/images/{self.image}")
        self.admin.send("DELETE", "compute", f"/os-keypairs/{NAME}")
        self.admin.send("DELETE", "network", f"/v2.0/networks/{self.network}")

    def send(self, method: str, service: str, path: str, body: Any) -> Any:
        url = self.admin.endpoints[service] + path
        answer = self.admin.session.request(method, url, json=body, timeout=60)
        answer.raise_for_status()
        return answer.json()

    def stacks(self) -> dict[str, dict[str, Any]]:
        listed = self.admin.get("orchestration", "/stacks")["stacks"]
        return {each["stack_name"]: each for each in listed if each["stack_name"] in STACKS}

    def settled(self) -> dict[str, str]:
        """Return how the stacks are once Heat has done with them."""
        while True:
            found = {name: each["stack_status"] for name, each in self.stacks().items()}
            if all(each.endswith(("CREATE_COMPLETE", "_FAILED")) for each in found.values()):
                return found  # one that is deleted keeps its name for a moment
            time.sleep(PAUSE)

    def make(self) -> None:
        """Let Heat make both, and wait for it."""
        template = yaml.safe_load(TEMPLATE.read_text())
        for name in STACKS:
            body = {"stack_name": name, "template": template, "environment": {"parameters": PARAMETERS}}
            self.send("POST", "orchestration", "/stacks", body)
        self.settled()

    def check_and_clear(self) -> None:
        """Raise BenchError unless both stand with all their servers; delete them."""
        found = self.settled()
        names = {each["name"] for each in self.admin.get("compute", "/servers")["servers"]}
        wanted = {f"{name}-{number}" for name in STACKS for number in range(NODES)}
        if set(found.values()) != {"CREATE_COMPLETE"} or found.keys() != set(STACKS) or not wanted <= names:
            raise BenchError(f"not as it should be afterwards: {found}, {sorted(names)}")
        for name, each in self.stacks().items():
            self.admin.send("DELETE", "orchestration", f"/stacks/{name}/{each['id']}")
        if left := self.settled():
            raise BenchError(f"not deleted: {left}")


KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4nTnNLdfoTZ8Yv4AhzQkfAAn8nLSfJOnoJhq0FlqgB bench@example"


def measure(layout: Layout, rounds: int, only: Sequence[str] = ("",)) -> dict[Row, list[Run]]:
    """Let everybody run in every round, so that drift of the machine hits all alike."""
    environments.ensure("shell")
    runs: dict[Row, list[Run]] = defaultdict(list)
    with Room(layout) as room, _rehearsed(room):
        for number in range(rounds):
            for row in (each for each in Row if any(text in each for text in only)):
                runs[row].append(_run(room, row))
                room.check_and_clear()
                say(f"round {number + 1}: {row.value}: {runs[row][-1].seconds:.1f} s")
    return runs


@contextlib.contextmanager
def _rehearsed(room: Room) -> Iterator[None]:
    """What services do at their first request of a kind is nobody's merit or fault."""
    room.make()
    room.check_and_clear()
    yield


def _run(room: Room, row: Row) -> Run:
    mark = access.mark(room.layout)
    started = time.monotonic()
    if row is Row.FLOOR:
        room.make()
    else:
        _call(room.layout, SCRIPTS[row])
    seconds = time.monotonic() - started
    return Run(seconds, len(access.read(room.layout, mark)))


def _call(layout: Layout, script: str) -> None:
    programs = (environments.ensure("shell"), Path(sys.executable).parent, os.environ["PATH"])
    environment = {
        "PATH": os.pathsep.join(map(str, programs)),
        "LC_ALL": "C.UTF-8",
        "HOME": os.environ["HOME"],
        "OS_CLIENT_CONFIG_FILE": str(layout.clouds_file),
        "OS_CLOUD": ADMIN,
    }
    stack = {"template": "shipped:rke-cluster.yaml", "parameters": PARAMETERS}
    spec = {"name": "bench", "stacks": [{"name": name, **stack} for name in STACKS]}
    with tempfile.TemporaryDirectory(prefix="bench-stacks-") as folder:
        Path(folder, "spec.json").write_text(json.dumps(spec))
        words = ["bash", "-euo", "pipefail", "-c", script]
        options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "check": False}
        done = subprocess.run(words, cwd=folder, env=environment, **options)
    if done.returncode:
        raise BenchError(f"{script.strip()}: exit code {done.returncode}\n{done.stdout}{done.stderr[-3000:]}")


def render(runs: Mapping[Row, Sequence[Run]], caption: str) -> str:
    """Return both tables, with medians; rows without a run are left out."""
    floor = runs.get(Row.FLOOR)
    lines = [caption, "", "| | seconds | least - most | times Heat's own | requests |", "|---|---:|---:|---:|---:|"]
    for row, done in runs.items():
        times = [run.seconds for run in done]
        floors = f"{ratio(done, floor):.2f}" if floor and row is not Row.FLOOR else ""
        requests = f"{median(run.requests for run in done):.0f}" if row is not Row.FLOOR else ""
        lines.append(
            f"| {row.value} | {median(times):.1f} | {min(times):.1f} - {max(times):.1f} | {floors} | {requests} |"
        )
    if floor and (ours := runs.get(Row.OURS)):
        times = ratio(ours, floor)
        lines += ["", "| goal | wanted | measured | met |", "|---|---:|---:|---|"]
        lines.append(f"| times Heat's own | at most {1 + MORE:.1f} | {times:.2f} | {met(times <= 1 + MORE)} |")
    return "\n".join(lines)
