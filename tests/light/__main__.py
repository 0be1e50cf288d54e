"""Command line: ``python -m tests.light --port-base N --latency-ms 5 [--clouds 2]``; Ctrl-C ends it.

Keystone listens on N+5000 and so on, as in a devcloud; the second cloud lies 500 above. A clouds.yaml for the
administrator of each is written below ``--directory``, and the line that chooses it is printed when all ports answer.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shlex
import signal
import socket
import sys
from pathlib import Path

import uvicorn

from tests.devcloud import clouds_file
from tests.devcloud.layout import HIGHEST_BASE, HOST, PASSWORD, Layout
from tests.devcloud.ports import STEP
from tests.light.apis import ALL
from tests.light.app import App
from tests.light.content import crowd, fill
from tests.light.state import Cloud

REGIONS = ("RegionOne", "RegionTwo", "RegionThree", "RegionFour")
DEFAULT_BASE = 9000  # below those that a devcloud takes when nobody says
BACKLOG = 2048
KEPT = 600
"""Seconds that a connection is kept: a client's next request would race with a server that closes it."""


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.light", description="A stand-in for a cloud, for measuring the client."
    )
    parser.add_argument("--port-base", type=int, default=DEFAULT_BASE, metavar="N", help=f"default: {DEFAULT_BASE}")
    parser.add_argument("--latency-ms", type=float, default=0.0, metavar="MS", help="of each request; default: 0")
    parser.add_argument("--clouds", type=int, default=1, choices=range(1, len(REGIONS) + 1), help="default: 1")
    parser.add_argument("--region", action="append", metavar="NAME", help="of a cloud; once per cloud")
    parser.add_argument(
        "--projects", type=int, default=0, metavar="N", help="of other people, in each cloud; default: 0"
    )
    parser.add_argument("--directory", type=Path, default=Path(), help="for clouds.yaml; default: the present one")
    options = parser.parse_args(arguments)
    regions = options.region or REGIONS[: options.clouds]
    if len(regions) != max(options.clouds, len(options.region or ())):
        parser.error("--region goes with each of the clouds")
    if not 0 <= options.port_base <= HIGHEST_BASE - STEP * (len(regions) - 1):
        parser.error(f"--port-base {options.port_base}: use 0 to {HIGHEST_BASE - STEP * (len(regions) - 1)}")
    options.regions = regions
    return options


def clouds_of(options: argparse.Namespace) -> list[Cloud]:
    """Return the clouds, filled."""
    bases = range(options.port_base, options.port_base + STEP * len(options.regions), STEP)
    layouts = [Layout(base, options.directory.absolute()) for base in bases]
    pairs = zip(layouts, options.regions, strict=True)
    clouds = [fill(Cloud(layout, region, options.latency_ms / 1000)) for layout, region in pairs]
    for cloud in clouds:
        crowd(cloud, options.projects)
    return clouds


def write_clouds_file(path: Path, clouds: list[Cloud]) -> None:
    entries = (
        clouds_file.Entry(name(each), each.layout.auth_url, "admin", PASSWORD, "admin", each.region) for each in clouds
    )
    clouds_file.write(path, *entries)


def name(cloud: Cloud) -> str:
    """Return the name of a cloud's entry in clouds.yaml."""
    return f"light-{cloud.region}"


def _listen(cloud: Cloud) -> list[socket.socket]:
    sockets = []
    for api in ALL:
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((HOST, cloud.layout.port(api.process)))
        made.listen(BACKLOG)
        sockets.append(made)
    return sockets


def _config(clouds: list[Cloud]) -> uvicorn.Config:
    return uvicorn.Config(
        App(clouds),
        http="httptools",
        lifespan="off",
        log_level="warning",
        access_log=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEPT,
    )


def main(arguments: list[str] | None = None) -> int:
    """Serve until a signal; print what was counted. Exit code 0, 1 if a port is in use, 2 for wrong arguments."""
    options = parse(arguments)
    clouds = clouds_of(options)
    try:
        sockets = [each for cloud in clouds for each in _listen(cloud)]
    except OSError as error:
        print(f"light: a port above {options.port_base} is in use ({error}); choose --port-base", file=sys.stderr)
        return 1
    for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises them again after it has ended in order
        signal.signal(number, signal.default_int_handler)
    path = options.directory.absolute() / "clouds.yaml"
    write_clouds_file(path, clouds)
    print(f"export OS_CLIENT_CONFIG_FILE={shlex.quote(str(path))} OS_CLOUD={name(clouds[0])}", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(_config(clouds)).run(sockets)
    for cloud in clouds:
        print(json.dumps({cloud.region: cloud.counts.report()}, indent=1), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
