"""Make many tenants, one after the other or some at a time, and plan them again: what that costs client and server.

python -m tests.light.many --tenants 1000 --latency-ms 5 --at-once 4
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openstack_prep.cloud.connection import Cloud, connect
from openstack_prep.spec import Spec
from openstack_prep.spec.loading import load_spec
from openstack_prep.verbs import api
from tests.devcloud.qcow2 import qcow2
from tests.light.running import Light, running

SPEC = Path(__file__).with_name("tenant.yaml")
BASE = 9000


def variables(number: int) -> dict[str, object]:
    """Return what differs between tenants; their addresses lie below the pool of the external network."""
    return {"tenant": f"team-{number:04}", "address": f"172.16.{1 + number // 250}.{1 + number % 250}"}


@dataclass
class Work:
    """What is done for each tenant, in a folder of its own."""

    light: Light
    folder: Path
    at_once: int

    def each(self, numbers: range, do: Callable[[Cloud, Spec], object]) -> None:
        def one(number: int) -> None:
            cloud = connect(self.light.entries[0], clouds_file=self.light.clouds_file)
            with contextlib.closing(cloud.connection):
                do(cloud, self._spec(number))

        with ThreadPoolExecutor(self.at_once) as pool:
            for _ in pool.map(one, numbers):
                pass

    def _spec(self, number: int) -> Spec:
        place = self.folder / f"{number:04}"
        if not place.exists():
            place.mkdir()
            shutil.copy(SPEC, place)
            (place / "disk.qcow2").symlink_to(self.folder / "disk.qcow2")
        return load_spec(place / SPEC.name, variables=variables(number))


def apply(cloud: Cloud, spec: Spec) -> None:
    report = api.apply(cloud, spec)
    report.raise_for_failures()


def plan_nothing(cloud: Cloud, spec: Spec) -> None:
    plan = api.plan(cloud, spec)
    plan.raise_for_refusals()
    if plan:
        raise RuntimeError(f"not empty: {plan}")


def destroy(cloud: Cloud, spec: Spec) -> None:
    report = api.destroy(cloud, spec)
    report.raise_for_failures()


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


@contextlib.contextmanager
def measured(light: Light, what: str, number: int) -> Iterator[None]:
    light.reset()
    began, before = time.monotonic(), cpu()
    yield
    seconds, client = time.monotonic() - began, cpu() - before
    print(line(what, number, seconds, client, light.counts()), flush=True)


def line(what: str, number: int, seconds: float, client: float, counts: Any) -> str:
    requests = counts["requests"]
    services = ", ".join(f"{service} {each / number:.1f}" for service, each in counts["by_service"].items())
    return (
        f"{what:8} {number} tenants: {seconds:.1f} s, {requests / number:.1f} requests each ({services}), "
        f"at once {counts['at_once']}; CPU of the client {1000 * client / number:.1f} ms per tenant, "
        f"of the server {1000 * counts['cpu_seconds'] / requests:.3f} ms per request"
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.light.many", description=__doc__.splitlines()[0])
    parser.add_argument("--tenants", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=1, help="tenants; default: 1")
    parser.add_argument("--latency-ms", type=float, default=0.0)
    parser.add_argument("--port-base", type=int, default=BASE)
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the server, too
    os.environ["PREP_PASSWORD"] = "of-the-measurement"
    numbers = range(options.tenants)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "disk.qcow2").write_bytes(qcow2(1))
        with running(folder, base=options.port_base, latency_ms=options.latency_ms) as light:
            work = Work(light, folder, options.at_once)
            for what, do in (("apply", apply), ("plan", plan_nothing), ("destroy", destroy)):
                with measured(light, what, options.tenants):
                    work.each(numbers, do)
            unknown = light.counts()["unknown"]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"memory of the client: {memory} MiB at most; requests that the server did not know: {unknown or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
