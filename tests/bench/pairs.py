"""Address pairs of 1,000 ports that are right already: looked over by us, and by a shell loop.

The loop runs ``openstack port set`` once a port, as scripts around MetalLB do, and is given their ids.  It has to
take all pairs away in the same breath, those of others too: Neutron refuses one that is there already.  It
runs over 25 of the ports, times 40, for it would take half an hour, unless the whole is asked for.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Any

from tests.bench import environments
from tests.bench.scenario import BenchError, Client
from tests.bench.table import Run, met, ratio
from tests.devcloud import access
from tests.devcloud.clouds_file import ADMIN
from tests.devcloud.layout import PASSWORD, Layout
from tests.devcloud.progress import say, timed

BEGIN, END = "<!-- bench pairs: begin -->", "<!-- bench pairs: end -->"
PORTS, SOME, BULK = 1000, 25, 50
NAME, BLOCKS = "pairs-of-the-bench", ("10.60.8.0/27", "10.60.8.32/30")
REQUESTS = 12  # what we aim at, token and versions included


class Row(StrEnum):
    """What is measured, in the table's order."""

    SHELL = "shell loop over `openstack port set --no-allowed-address --allowed-address ...`"
    OURS = "`openstack-prep address-pairs sync`, nothing to do"


ALLOWED = " ".join(f"--allowed-address ip-address={each}" for each in BLOCKS)
SCRIPTS = {
    Row.OURS: f"exec openstack-prep address-pairs sync --security-group {NAME} "
    + " ".join(f"--address {each}" for each in BLOCKS),
    Row.SHELL: f"""
        for port in $IDS; do
            openstack port set --no-allowed-address {ALLOWED} "$port"
        done""",
}


@dataclass
class Room:
    """Ports with their pairs, made by few requests, and deleted at the end."""

    layout: Layout
    size: int = PORTS

    def __post_init__(self) -> None:
        self.admin = Client(self.layout.auth_url, "admin", PASSWORD, "admin")

    def __enter__(self) -> Room:
        with timed(f"made {self.size} ports"):
            self.prepare()
            self._fill(range(0, self.size, BULK))
        return self

    def prepare(self) -> None:
        """Make the network and the group."""
        project = self.admin.get("identity", "/projects", name="admin")["projects"][0]["id"]
        self._send("PUT", f"/quotas/{project}", {"quota": {"port": -1}})
        self.network = self._send("POST", "/networks", {"network": {"name": NAME}})["network"]["id"]
        subnet = {"network_id": self.network, "ip_version": 4, "cidr": "10.60.0.0/20", "name": NAME}
        self._send("POST", "/subnets", {"subnet": subnet})
        self.group = self._send("POST", "/security-groups", {"security_group": {"name": NAME}})["security_group"]

    def grow(self, size: int) -> None:
        """Have that many ports."""
        before, self.size = self.size, size
        with timed(f"made {size - before} ports more"):
            self._fill(range(before, size, BULK))

    def _fill(self, firsts: range) -> None:
        port = {
            "network_id": self.network,
            "security_groups": [self.group["id"]],
            "allowed_address_pairs": [{"ip_address": each} for each in BLOCKS],
        }
        for first in firsts:
            names = (f"{NAME}-{number}" for number in range(first, first + BULK))
            self._send("POST", "/ports", {"ports": [port | {"name": name} for name in names]})

    def __exit__(self, *_: object) -> None:
        for port in self.ports():
            self.admin.send("DELETE", "network", f"/v2.0/ports/{port['id']}")
        self.admin.send("DELETE", "network", f"/v2.0/networks/{self.network}")
        self.admin.send("DELETE", "network", f"/v2.0/security-groups/{self.group['id']}")

    def ports(self) -> list[dict[str, Any]]:
        return list(self.admin.get("network", "/v2.0/ports", network_id=self.network)["ports"])

    def _send(self, method: str, path: str, body: Any) -> Any:
        url = f"{self.admin.endpoints['network']}/v2.0{path}"
        answer = self.admin.session.request(method, url, json=body, timeout=300)
        if answer.status_code == 409 and path == "/ports":  # two of them had the same address; none was created
            answer = self.admin.session.request(method, url, json=body, timeout=300)
        answer.raise_for_status()
        return answer.json()

    def check(self) -> None:
        """Raise BenchError unless every port has exactly its pairs."""
        found = [sorted(each["ip_address"] for each in port["allowed_address_pairs"]) for port in self.ports()]
        if found != [sorted(BLOCKS)] * self.size:
            raise BenchError(f"not as it should be afterwards: {len(found)} ports")


def measure(layout: Layout, rounds: int, whole: bool, only: Sequence[str] = ("",)) -> dict[Row, list[Run]]:
    """Let both run in every round; a part of the loop counts as many times as it goes into the whole."""
    runs: dict[Row, list[Run]] = defaultdict(list)
    with Room(layout) as room:
        for number in range(rounds):
            for row in (each for each in Row if any(text in each for text in only)):
                times = PORTS // SOME if row is Row.SHELL and not whole else 1
                ids = [port["id"] for port in room.ports()][: PORTS // times]
                runs[row].append(_run(layout, row, ids, times))
                room.check()
                say(f"round {number + 1}: {row.value}: {runs[row][-1].seconds:.1f} s")
    return runs


def _run(layout: Layout, row: Row, ids: Sequence[str], times: int) -> Run:
    programs = (environments.ensure("shell"), os.path.dirname(sys.executable), os.environ["PATH"])
    environment = {
        "PATH": os.pathsep.join(map(str, programs)),
        "LC_ALL": "C.UTF-8",
        "HOME": os.environ["HOME"],
        "OS_CLIENT_CONFIG_FILE": str(layout.clouds_file),
        "OS_CLOUD": ADMIN,
        "IDS": " ".join(ids),
    }
    mark, started = access.mark(layout), time.monotonic()
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", SCRIPTS[row]],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - started
    if done.returncode:
        raise BenchError(f"{SCRIPTS[row].strip()}: exit code {done.returncode}\n{done.stderr[-3000:]}")
    asked = len(access.read(layout, mark))
    if row is Row.SHELL and asked < len(ids):
        raise BenchError(f"the loop over {len(ids)} ports sent {asked} requests only")
    return Run(seconds * times, asked * times)


def render(runs: Mapping[Row, Sequence[Run]], caption: str, whole: bool) -> str:
    """Return the tables; says so when the loop's figures are those of a part."""
    part = "" if whole else f" The shell loop ran over {SOME} ports; its figures are times {PORTS // SOME}."
    return "\n".join([f"{PORTS} ports. {caption}{part}", "", *_measured(runs), "", *_goals(runs)])


def _measured(runs: Mapping[Row, Sequence[Run]]) -> Iterator[str]:
    yield "| | seconds | least - most | requests |"
    yield "|---|---:|---:|---:|"
    for row, done in runs.items():
        times = [run.seconds for run in done]
        requests = round(median(run.requests for run in done))
        yield f"| {row.value} | {median(times):.1f} | {min(times):.1f} - {max(times):.1f} | {requests} |"


def _goals(runs: Mapping[Row, Sequence[Run]]) -> Iterator[str]:
    if not (ours := runs.get(Row.OURS)):
        return
    yield "| goal | wanted | measured | met |"
    yield "|---|---:|---:|---|"
    most = max(run.requests for run in ours)
    yield f"| our requests | at most {REQUESTS} | {most} | {met(most <= REQUESTS)} |"
    if Row.SHELL in runs:
        yield f"| the shell loop takes times as long as we | | {ratio(runs[Row.SHELL], ours):.0f} | |"
