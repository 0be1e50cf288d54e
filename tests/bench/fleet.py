"""A fleet of tenants on the light server: threads, workers of Dask, a loop over the command, Ansible, and rally.

The light server is a stand-in (tests/light/README.md): a devcloud writes two or three ports a second, and would be what
is measured. Each way has a server of its own; what takes too long is measured with fewer tenants.
"""

from __future__ import annotations

import argparse
import csv
import http.client
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import yaml

from tests.bench import environments, rally
from tests.bench.memory import Memory
from tests.bench.scenario import BenchError
from tests.bench.table import met
from tests.devcloud.layout import DevcloudError
from tests.devcloud.progress import say
from tests.devcloud.qcow2 import qcow2
from tests.light.running import SPEC, Light, running

BEGIN, END = "<!-- bench fleet: begin -->", "<!-- bench fleet: end -->"
PLAYBOOK = Path(__file__).with_name("tenants.yaml")
FIRST, AGAIN, BOTH = "first apply", "second apply", "create and delete"
THREADS, LOOP, ANSIBLE, RALLY = "fleet, threads", "a loop over `openstack-prep`", "Ansible", "rally's contexts"
LATENCIES = (5.0, 30.0)
"""Milliseconds."""
PLAIN = 250
"""Requests of each connection of a plain client."""
FEW = 20
"""Tenants of a loop, of Ansible, and of rally."""
SHARE, SECONDS, MEMORY, PER_WORKER = 0.9, 300.0, 300, 0.9
REQUESTS, CPU = (60, 1), 10.0


@dataclass(frozen=True)
class Taken:
    """What a run took: seconds, requests, seconds of CPU, and the most memory of all of its processes, MiB."""

    way: str
    run: str
    latency: float
    tenants: int
    at_once: int
    seconds: float
    requests: int
    cpu: float
    memory: float
    alone: float
    """Seconds that as many requests take a plain client, with as many at once."""

    @property
    def waiting(self) -> float:
        """How much of the time the latency of the requests alone takes, with so many at once."""
        return self.requests * self.latency / 1000 / self.at_once / self.seconds

    @property
    def share(self) -> float:
        """How much of the time as many requests take a plain client."""
        return self.alone / self.seconds


def variables(number: int) -> dict[str, str]:
    """Return what differs between tenants; their addresses lie below the pool of the external network."""
    return {"tenant": f"team-{number:04}", "address": f"172.16.{1 + number // 250}.{1 + number % 250}"}


def lay_out(folder: Path, light: Light, tenants: int) -> None:
    """Write the spec, the fleet, its table, and the inventory of Ansible."""
    (folder / "disk.qcow2").write_bytes(qcow2(1))
    # a file per tenant: each run that writes one reads it whole
    (folder / SPEC.name).write_text(SPEC.read_text().replace(" clouds.yaml,", ' "${tenant}.clouds.yaml",'))
    rows = [variables(number) for number in range(tenants)]
    with open(folder / "tenants.csv", "w", newline="") as table:
        writer = csv.DictWriter(table, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    fleet = {
        "name": "tenants",
        "targets": [
            {
                "for_each": {"row": {"csv": "tenants.csv"}},
                "name": "${row.tenant}",
                "spec": SPEC.name,
                "cloud": light.entries[0],
                "variables": {name: f"${{row.{name}}}" for name in rows[0]},
            }
        ],
    }
    (folder / "fleet.yaml").write_text(yaml.safe_dump(fleet, sort_keys=False))
    hosts = {row["tenant"]: {"address": row["address"]} for row in rows}
    (folder / "hosts.yaml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}))


@dataclass(frozen=True)
class Way:
    """One way to do it for so many tenants; ``commands`` are those of a run, one after the other."""

    name: str
    tenants: int
    at_once: int
    runs: Sequence[str]
    commands: Callable[[str, Light], Sequence[Sequence[str]]]
    prepare: Callable[[Path, Light], None] = lambda folder, light: None


def ways(options: argparse.Namespace) -> Iterator[Way]:
    """Yield the contenders."""
    ours = str(Path(sys.executable).with_name("openstack-prep"))

    def fleet(*more: str) -> Callable[[str, Light], Sequence[Sequence[str]]]:
        def commands(run: str, light: Light) -> Sequence[Sequence[str]]:
            return [[ours, "fleet", "apply", "--yes", "--jobs", str(options.jobs), *more, "fleet.yaml"]]

        return commands

    def loop(run: str, light: Light) -> Sequence[Sequence[str]]:
        given = [[f"--var={name}={value}" for name, value in variables(number).items()] for number in range(FEW)]
        return [[ours, "apply", "--yes", "--os-cloud", light.entries[0], *each, SPEC.name] for each in given]

    def ansible(run: str, light: Light) -> Sequence[Sequence[str]]:
        programs = environments.ensure("ansible")
        interpreter = f"ansible_python_interpreter={programs / 'python'}"
        forks = ["-i", "hosts.yaml", "-f", str(options.jobs), "-e", interpreter]
        return [[str(programs / "ansible-playbook"), *forks, str(PLAYBOOK)]]

    def prepare_rally(folder: Path, light: Light) -> None:
        rally.prepare(folder, light, FEW, options.jobs)

    def task(run: str, light: Light) -> Sequence[Sequence[str]]:
        return [rally.command("task", "start", "task.json")]

    twice = (FIRST, AGAIN)
    yield Way(THREADS, options.tenants, options.jobs, twice, fleet())
    for number in (1, 2, 4):
        name = f"fleet, {number} worker{'s' if number > 1 else ''} of Dask"
        yield Way(name, options.tenants, options.jobs, twice, fleet("--scheduler", "local", "--workers", str(number)))
    yield Way(LOOP, FEW, 8, twice, loop)
    yield Way(f"{ANSIBLE}, {options.jobs} forks", FEW, options.jobs, twice, ansible)
    yield Way(RALLY, FEW, options.jobs, (BOTH,), task, prepare_rally)


def pace(light: Light, at_once: int) -> float:
    """Return the seconds that a request takes a plain client with so many connections, and nothing to decide."""
    address = urlsplit(light.layouts[0].url("keystone"))

    def send(number: int) -> None:
        connection = http.client.HTTPConnection(str(address.hostname), address.port)
        for _ in range(number):
            connection.request("GET", "/v3")
            connection.getresponse().read()

    began = time.monotonic()
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(send, [PLAIN] * at_once))
    return (time.monotonic() - began) / (PLAIN * at_once)


def run(way: Way, what: str, light: Light, folder: Path, alone: float) -> Taken:
    """Carry out one run, whose requests alone take so many seconds each; raises BenchError if it fails."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PWD": str(folder),
        "LC_ALL": "C.UTF-8",
        "OS_CLIENT_CONFIG_FILE": str(light.clouds_file),
        "OS_CLOUD": light.entries[0],
        "PREP_PASSWORD": "of-the-measurement",
        "AUTH_URL": f"{light.layouts[0].url('keystone')}/v3",
    }
    light.reset()
    began, before, most = time.monotonic(), _cpu(), 0
    for words in way.commands(what, light):
        with open(folder / "run.log", "w+") as log:
            process = psutil.Popen(words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            memory = Memory(process)
            code = process.wait()
            memory.end()
            most = max(most, memory.most)
            if code:
                log.seek(0)
                raise BenchError(f"{way.name}, {what}: exit code {code}\n{log.read()[-3000:]}")
    seconds, counts = time.monotonic() - began, light.counts()
    if counts["unknown"]:
        raise BenchError(f"{way.name}, {what}: the light server does not know {counts['unknown']}")
    sent, used = counts["requests"], _cpu() - before
    figures = (seconds, sent, used, most / 2**20, sent * alone)
    made = Taken(way.name, what, counts["latency_ms"], way.tenants, way.at_once, *figures)
    share = f"{100 * made.share:.0f} % of it the requests alone, {100 * made.waiting:.0f} % their latency"
    say(f"{way.name}, {what}, {made.latency:g} ms: {seconds:.1f} s, {share}; {sent} requests, {used:.1f} s of CPU")
    return made


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(options: argparse.Namespace, base: int) -> list[Taken]:
    """Let each way do its runs, with each latency: first those with few tenants, to fail early."""
    found: list[Taken] = []
    entered = [each for each in ways(options) if any(text in each.name for text in options.only or [""])]
    for way in sorted(entered, key=lambda each: each.tenants):
        for latency in LATENCIES:
            with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
                folder = Path(scratch)
                try:
                    with running(folder, base=base, latency_ms=latency) as light:
                        lay_out(folder, light, way.tenants)
                        way.prepare(folder, light)
                        alone = pace(light, way.at_once)
                        found += [run(way, what, light, folder, alone) for what in way.runs]
                except RuntimeError as error:
                    raise DevcloudError(str(error)) from error
    order = [each.name for each in entered]
    return sorted(found, key=lambda each: order.index(each.way))


def render(runs: Sequence[Taken], caption: str) -> str:
    """Return a table of all runs, and which aims are met."""
    lines = [
        caption,
        "",
        "| | run | latency, ms | tenants | seconds | per tenant, ms | requests per tenant | CPU per tenant, ms "
        "| peak memory, MiB | share of the latency | share of the requests alone |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for each in runs:
        lines.append(
            f"| {each.way} | {each.run} | {each.latency:g} | {each.tenants} | {each.seconds:.1f} "
            f"| {1000 * each.seconds / each.tenants:.0f} | {each.requests / each.tenants:.1f} "
            f"| {1000 * each.cpu / each.tenants:.0f} | {each.memory:.0f} | {100 * each.waiting:.0f} % "
            f"| {100 * each.share:.0f} % |"
        )
    lines += ["", "| goal | wanted | measured | met |", "|---|---:|---:|---|", *_goals(runs)]
    return "\n".join(lines)


def _goals(runs: Sequence[Taken]) -> Iterator[str]:
    of: dict[tuple[str, str, float], Taken] = {(each.way, each.run, each.latency): each for each in runs}
    first, again = of.get((THREADS, FIRST, 30.0)), of.get((THREADS, AGAIN, 30.0))
    if first is not None:
        what, is_fast = f"{first.tenants} tenants at 30 ms", first.seconds <= SECONDS
        yield f"| first apply of {what} | at most {SECONDS:g} s | {first.seconds:.0f} s | {met(is_fast)} |"
        share, wanted = 100 * first.share, 100 * SHARE
        yield f"| the requests' share of it | at least {wanted:g} % | {share:.0f} % | {met(share >= wanted)} |"
        yield f"| its memory | at most {MEMORY} MiB | {first.memory:.0f} MiB | {met(first.memory <= MEMORY)} |"
        two = of.get(("fleet, 2 workers of Dask", FIRST, 30.0))
        if two is not None:
            pace = first.seconds / two.seconds
            is_as_fast = met(pace >= PER_WORKER)
            yield f"| pace of two workers to threads | at least {PER_WORKER:g} | {pace:.2f} | {is_as_fast} |"
    if again is not None:
        most = REQUESTS[0] + REQUESTS[1] * again.tenants
        each = 1000 * again.cpu / again.tenants
        yield f"| requests of a second apply | at most {most} | {again.requests} | {met(again.requests <= most)} |"
        yield f"| its CPU per tenant | at most {CPU:g} ms | {each:.0f} ms | {met(each <= CPU)} |"
