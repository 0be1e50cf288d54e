"""Command line of the benchmark: ``python -m tests.bench``."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import textwrap
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path

from openstack_prep.version import __version__
from tests.bench import environments, image, image_table, pairs, scenario, sizes, stacks, start, table
from tests.bench.contenders import Contender, contenders
from tests.bench.floor import Floor
from tests.bench.scenario import BenchError
from tests.bench.table import Row, Run
from tests.devcloud import access, cloud, ports
from tests.devcloud.layout import REPOSITORY, DevcloudError, Layout
from tests.devcloud.progress import say

PORT_BASE = 23000
DOCUMENT = REPOSITORY / "docs" / "performance.md"

Runs = dict[Row, list[Run]]


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "what", nargs="?", choices=(*MEASURES, START, FLEET, ENGINES), default="scenario", help="(scenario)"
    )
    parser.add_argument("--mib", type=int, default=1024, metavar="N", help="size of the image (default: 1024)")
    parser.add_argument("--whole", action="store_true", help="pairs: let the shell loop run over all ports")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="runs of each contender (default: 3)")
    parser.add_argument("--port-base", type=int, metavar="N", help=f"default: {PORT_BASE}, or another that is free")
    parser.add_argument("--tenants", type=int, default=1000, metavar="N", help="fleet: how many (default: 1000)")
    parser.add_argument("--jobs", type=int, default=8, metavar="N", help="fleet: requests at a time (default: 8)")
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="contenders with that in their name; writes nothing")
    parser.add_argument("--keep", action="store_true", help="leave the devcloud running")
    parser.add_argument("--no-write", action="store_true", help="print only, and write no document")
    return parser.parse_args(arguments)


def measure(layout: Layout, entered: list[Contender], rounds: int) -> Runs:
    """Let everybody run in every round, so that drift of the machine hits all alike."""
    runs: Runs = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        for number in range(rounds):
            for place, contender in enumerate(entered):
                directory = Path(scratch, f"{number}-{place}")
                for row, run in one(layout, contender, directory):
                    runs[row].append(run)
                    say(f"round {number + 1}: {row.value}: {run.seconds:.2f} s, {run.requests} requests")
    return runs


def one(layout: Layout, contender: Contender, directory: Path) -> list[tuple[Row, Run]]:
    """Let one contender do all its runs, on a cloud in its first state."""
    cloud.reset(layout)
    scenario.lay_out(directory)
    # what a service does at its first request of a kind is nobody's merit or fault
    Floor(layout.auth_url, scenario.REHEARSAL, directory / scenario.IMAGE).replay()
    done = []
    mark = access.mark(layout)
    for row, seconds in contender.runs(layout, directory):
        done.append((row, Run(seconds, len(access.read(layout, mark)))))
        scenario.check(layout, directory)
        mark = access.mark(layout)
    return done


def busy() -> str:
    """Return a warning when others use the machine, too; a run alone makes a load of about one a core."""
    load = os.getloadavg()[1]
    if load < 1.5 * (os.cpu_count() or 1):
        return ""
    return f"The machine was busy with other work (load {load:.1f}), so these figures tell little."


def caption(rounds: int, *others: str) -> str:
    """Return what was measured with what; the others are those environments of ours that took part."""
    cores = {1: "one core", 2: "two cores", 4: "four cores"}.get(os.cpu_count() or 0, f"{os.cpu_count()} cores")
    rounds_done = "One round" if rounds == 1 else f"Median of {rounds} rounds"
    mains = {"shell": ("python-openstackclient", "python-openstackclient"), "ansible": ("Ansible", "ansible")}
    mains["rally"] = ("rally-openstack", "rally-openstack")
    versions = [
        f"{name} {environments.version(other, package)} (openstacksdk {environments.version(other, 'openstacksdk')})"
        for other, (name, package) in mains.items()
        if other in others
    ]
    if "orca" in others:
        versions.append(f"orca {environments.version('orca', 'orca-openstackclient')}")
    versions.append(f"openstack_prep {__version__} (openstacksdk {version('openstacksdk')})")
    return f"{rounds_done} on {cores}, Python {platform.python_version()}; {'; '.join(versions)}. {busy()}".rstrip()


def run(options: argparse.Namespace) -> None:
    if options.what == START:
        runs = start.measure(options.rounds, options.only or [""])
        return publish(start.render(runs, caption(options.rounds, "shell")), (start.BEGIN, start.END), options)
    if options.what == ENGINES:
        from tests.bench import engines  # which needs psutil

        found = engines.measure(options.rounds, options.only or [""])
        marks = (engines.BEGIN, engines.END)
        return publish(engines.render(found, caption(options.rounds)), marks, options, engines.DOCUMENT)
    with ports.choose(options.port_base, PORT_BASE, "bench") as layout:
        if options.what == FLEET:
            from tests.bench import fleet  # which needs packages of tox -e bench-fleet

            runs = fleet.measure(options, layout.base)
            named = {"ansible": fleet.ANSIBLE, "rally": fleet.RALLY}
            others = [name for name, way in named.items() if any(each.way.startswith(way) for each in runs)]
            return publish(fleet.render(runs, caption(1, *others)), (fleet.BEGIN, fleet.END), options)
        run_on(layout, options)


def run_on(layout: Layout, options: argparse.Namespace) -> None:
    if busy():
        say(busy())
    cloud.up(layout)
    try:
        tables, marks = MEASURES[options.what](layout, options)
    finally:
        if not options.keep:
            cloud.down(layout)
    publish(tables, marks, options)


def publish(tables: str, marks: tuple[str, str], options: argparse.Namespace, document: Path = DOCUMENT) -> None:
    """Print the tables, and write them into the document unless some contenders are missing."""
    print(tables)
    lines = (each if each.startswith("|") else textwrap.fill(each, 120) for each in tables.splitlines())
    if not (options.no_write or options.only):
        document.write_text(table.insert(document.read_text(), "\n".join(lines), marks))


def of_scenario(layout: Layout, options: argparse.Namespace) -> tuple[str, tuple[str, str]]:
    entered = [each for each in contenders(layout) if each.called(options.only or [""])]
    runs = measure(layout, entered, options.rounds)
    return table.render(runs, caption(options.rounds, "shell", "ansible", "orca")), (table.BEGIN, table.END)


def of_image(layout: Layout, options: argparse.Namespace) -> tuple[str, tuple[str, str]]:
    size = options.mib * 2**20
    runs = image.measure(layout, size, options.rounds, options.only or [""])
    said = f"{options.mib} MiB. {caption(options.rounds, 'shell')}"
    return image_table.render(runs, size, said), (image_table.BEGIN, image_table.END)


def of_pairs(layout: Layout, options: argparse.Namespace) -> tuple[str, tuple[str, str]]:
    runs = pairs.measure(layout, options.rounds, options.whole, options.only or [""])
    return pairs.render(runs, caption(options.rounds, "shell"), options.whole), (pairs.BEGIN, pairs.END)


def of_stacks(layout: Layout, options: argparse.Namespace) -> tuple[str, tuple[str, str]]:
    runs = stacks.measure(layout, options.rounds, options.only or [""])
    return stacks.render(runs, caption(options.rounds, "shell")), (stacks.BEGIN, stacks.END)


def of_sizes(layout: Layout, options: argparse.Namespace) -> tuple[str, tuple[str, str]]:
    runs = sizes.measure(layout, options.only or [""])
    return sizes.render(runs, caption(1)), (sizes.BEGIN, sizes.END)


START, FLEET, ENGINES = "start", "fleet", "engines"  # those that need no devcloud
MEASURES = {"scenario": of_scenario, "image": of_image, "pairs": of_pairs, "stacks": of_stacks, "sizes": of_sizes}


def main(arguments: list[str] | None = None) -> int:
    """Exit code: 0, 1 with a message, or 130 when interrupted."""
    try:
        run(parse(arguments))
    except (BenchError, DevcloudError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
