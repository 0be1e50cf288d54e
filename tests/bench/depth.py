"""How deep the scenario is: its longest chain of requests of which each begins after the answer to the one before.

    python -m tests.bench.depth --port-base 13000

on a devcloud in its first state, for the floor, a first apply and a second one. Each request is delayed, by more than
the services and our own work take: what need not wait overlaps, and the chain is how many round trips to a far cloud a
run takes at least. Prints a row for each, and with --chains the requests of the chain.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

from requests.adapters import HTTPAdapter

import openstack_prep as prep
from tests.bench import scenario
from tests.bench.floor import Floor
from tests.devcloud import cloud
from tests.devcloud.clouds_file import ADMIN
from tests.devcloud.layout import Layout, default_root


@dataclass(frozen=True)
class Request:
    """A request, and when it was sent and answered."""

    name: str
    begun: float
    answered: float


def longest_chain(requests: Sequence[Request]) -> list[Request]:
    """Return a longest sequence of requests of which each begins after the one before was answered."""
    chain: list[Request] = []
    for request in sorted(requests, key=lambda each: each.answered):
        if not chain or request.begun >= chain[-1].answered:
            chain.append(request)
    return chain


@contextlib.contextmanager
def delayed(latency: float) -> Iterator[list[Request]]:
    """Delay each request of the block by so many seconds, and yield the list of them."""
    requests: list[Request] = []
    send = HTTPAdapter.send

    def sent(adapter: HTTPAdapter, prepared: Any, **options: Any) -> Any:
        begun = time.monotonic()
        time.sleep(latency)
        try:
            return send(adapter, prepared, **options)
        finally:
            address = urlsplit(str(prepared.url))
            name = f"{prepared.method} {address.port}{address.path}"
            requests.append(Request(name, begun, time.monotonic()))

    with mock.patch.object(HTTPAdapter, "send", sent):
        yield requests


def runs(layout: Layout, folder: Path, latency: float) -> Iterator[tuple[str, list[Request]]]:
    """Yield the name and the requests of each run."""

    def requests_of(does: Callable[[], object]) -> list[Request]:
        with delayed(latency) as requests:
            does()
        return requests

    def apply() -> None:
        spec = prep.load_spec(folder / scenario.SPEC)
        prep.apply(prep.connect(ADMIN), spec).raise_for_failures()

    scenario.lay_out(folder)
    cloud.reset(layout)
    floor = Floor(layout.auth_url, scenario.MEASURED, folder / scenario.IMAGE)
    yield "floor: the necessary requests alone", requests_of(floor.replay)
    cloud.reset(layout)
    yield "first apply", requests_of(apply)
    yield "second apply, nothing to do", requests_of(apply)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.depth", description=__doc__)
    parser.add_argument("--port-base", type=int, default=13000, help="which devcloud; it is reset")
    parser.add_argument("--latency", type=float, default=0.5, metavar="SECONDS", help="of each request (0.5)")
    parser.add_argument("--chains", action="store_true", help="print the requests of each chain")
    options = parser.parse_args(arguments)
    layout = Layout(options.port_base, default_root())
    cloud.up(layout)
    os.environ["OS_CLIENT_CONFIG_FILE"] = str(layout.clouds_file)
    print("| | requests | longest chain |\n|---|---:|---:|")
    with tempfile.TemporaryDirectory() as scratch:
        for name, requests in runs(layout, Path(scratch, "scenario"), options.latency):
            chain = longest_chain(requests)
            print(f"| {name} | {len(requests)} | {len(chain)} |", flush=True)
            if options.chains:
                print(*(f"    {request.name}" for request in chain), sep="\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
