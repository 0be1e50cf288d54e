"""Specs of 100, 500 and 1,500 resources, and address pairs of 500 to 2,000 ports: what our process takes for each.

Most resources of a spec are cheap for the cloud (users, roles, flavors, server groups); every twentieth is a port.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from tests.bench import pairs
from tests.bench.scenario import BenchError
from tests.bench.table import met
from tests.devcloud import access, cloud
from tests.devcloud.clouds_file import ADMIN
from tests.devcloud.layout import Layout
from tests.devcloud.progress import say

BEGIN, END = "<!-- bench sizes: begin -->", "<!-- bench sizes: end -->"
RESOURCES, PORTS = (100, 500, 1500), (500, 1000, 2000)
GROUP = 20
"""Resources that belong together: a spec of any size has as many of each kind per resource."""
MOST_GROWTH = 1.25
"""How much more a further resource may take in the larger half than in the smaller one: noise, not a square."""
COMMANDS = {
    "plan, nothing exists": ("plan", "spec.yaml"),
    "apply, nothing exists": ("apply", "--yes", "spec.yaml"),
    "plan, nothing to do": ("plan", "spec.yaml"),
    "apply, nothing to do": ("apply", "--yes", "spec.yaml"),
    "plan --destroy": ("plan", "--destroy", "spec.yaml"),
    "destroy": ("destroy", "--yes", "spec.yaml"),
}
TIMES = 3
"""Runs of each command: the one with the least CPU counts, as what is more is noise."""
SYNC = ("address-pairs", "sync", "--security-group", pairs.NAME)
ADDRESSES = [word for block in pairs.BLOCKS for word in ("--address", block)]
OF_PORTS = {
    "address-pairs sync, nothing to do": (*SYNC, *ADDRESSES),
    "address-pairs sync --dry-run, one more address": (*SYNC, "--dry-run", *ADDRESSES, "--address", "10.60.8.40"),
}


@dataclass(frozen=True)
class Taken:
    """What one run took; ``memory`` is its peak, in bytes."""

    requests: int
    cpu: float
    memory: int
    seconds: float


Runs = dict[str, dict[int, Taken]]
"""By command and size."""


def spec_of(size: int) -> dict[str, Any]:
    """Return a spec of as many resources; its project and quota are among them."""
    name = f"size{size}"
    groups, rest = divmod(size - 2, GROUP)
    numbers = range(groups)
    flavors = [f"{name}-{each}" for each in range(5 * groups + rest)]
    users = [f"{name}-{each}" for each in range(4 * groups)]
    return {
        "name": name,
        "project": {"name": name},
        "quota": dict.fromkeys(("server_groups", "security_groups", "security_group_rules", "networks", "ports"), -1),
        "users": [{"name": users[0], "password": "of-the-bench"}, *({"name": each} for each in users[1:])],
        "role_assignments": [{"user": each, "role": "member"} for each in users],
        "flavors": [{"name": each, "ram": 512, "vcpus": 1, "disk": 1} for each in flavors],
        "networks": [{"name": f"n{each}"} for each in numbers],
        "subnets": [{"name": f"n{each}", "network": f"n{each}", "cidr": "10.0.0.0/24"} for each in numbers],
        "ports": [{"name": f"p{each}", "network": f"n{each}"} for each in numbers],
        "security_groups": [
            {"name": f"g{each}", "rules": [{"protocol": "tcp", "ports": 22}]} for each in range(2 * groups)
        ],
        "server_groups": [{"name": f"s{each}", "policy": "anti-affinity"} for each in range(2 * groups)],
    }


def measure(layout: Layout, only: Sequence[str] = ("",)) -> tuple[Runs, Runs]:
    """Return what specs take, and what ports take."""
    specs: Runs = {name: {} for name in COMMANDS if any(text in name for text in only)}
    ports: Runs = {name: {} for name in OF_PORTS if any(text in name for text in only)}
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        for size in RESOURCES if specs else ():
            Path(scratch, "spec.yaml").write_text(yaml.safe_dump(spec_of(size), sort_keys=False))
            for _ in range(TIMES):
                for name, words in COMMANDS.items():  # all of them, as each one finds what the one before has left
                    taken = _run(layout, scratch, words, f"{name}, {size} resources")
                    if name in specs:
                        specs[name][size] = min(specs[name].get(size, taken), taken, key=lambda each: each.cpu)
        if ports:
            cloud.reset(layout)  # of what an interrupted measurement may have left
            room = pairs.Room(layout, 0)
            room.prepare()
            for size in PORTS:
                room.grow(size)
                for name in ports:
                    runs = (_run(layout, scratch, OF_PORTS[name], f"{name}, {size} ports") for _ in range(TIMES))
                    ports[name][size] = min(runs, key=lambda each: each.cpu)
                room.check()
            cloud.reset(layout)  # to delete the ports one by one takes minutes
    return specs, ports


def _run(layout: Layout, folder: str, words: Sequence[str], what: str) -> Taken:
    ours = Path(sys.executable).parent
    environment = {
        "PATH": f"{ours}{os.pathsep}{os.environ['PATH']}",
        "HOME": folder,
        "LC_ALL": "C.UTF-8",
        "OS_CLIENT_CONFIG_FILE": str(layout.clouds_file),
        "OS_CLOUD": ADMIN,
    }
    watched = [sys.executable, str(Path(__file__).with_name("watched.py")), "openstack-prep", *words]
    mark = access.mark(layout)
    done = subprocess.run(
        watched, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BenchError(f"{what}: exit code {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    used = json.loads(done.stdout.splitlines()[-1])
    taken = Taken(len(access.read(layout, mark)), used["cpu"], used["memory"], used["seconds"])
    say(f"{what}: {taken.requests} requests, {taken.cpu:.2f} s of CPU, {taken.seconds:.1f} s")
    return taken


def render(runs: tuple[Runs, Runs], caption: str) -> str:
    """Return a table of both, and whether each grows as it may."""
    lines = [caption]
    for unit, each in zip(("resources", "ports"), runs, strict=True):
        if each:
            lines += ["", *_measured(each, unit)]
    lines += ["", "| goal | wanted | measured | met |", "|---|---:|---:|---|"]
    lines += [line for each in runs for line in _goals(each)]
    return "\n".join(lines)


def _measured(runs: Runs, unit: str) -> Iterator[str]:
    yield f"| command | {unit} | requests | seconds of CPU | peak memory, MiB | seconds | CPU per further one, ms |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for name, by_size in runs.items():
        further = dict(zip(list(by_size)[1:], slopes(by_size), strict=True))
        for size, taken in by_size.items():
            more = f"{1000 * further[size]:.2f}" if size in further else ""
            memory = taken.memory / 2**20
            yield (
                f"| `{name.partition(',')[0]}`{''.join(name.partition(',')[1:])} | {size} | {taken.requests} "
                f"| {taken.cpu:.2f} | {memory:.0f} | {taken.seconds:.1f} | {more} |"
            )


def slopes(by_size: Mapping[int, Taken]) -> list[float]:
    """Return the seconds of CPU that each further resource takes, from size to size."""
    return [(b.cpu - a.cpu) / (m - n) for (n, a), (m, b) in pairwise(by_size.items())]


def _goals(runs: Runs) -> Iterator[str]:
    for name, by_size in runs.items():
        if len(by_size) < 3:
            continue
        first, *_, last = slopes(by_size)
        growth, what = last / first, f"CPU per further one, {name}: later to earlier"
        yield f"| {what} | at most {MOST_GROWTH:g} | {growth:.2f} | {met(growth <= MOST_GROWTH)} |"
