"""Race runs of one spec: ``python -m tests.races --racers 2 4 --stagger 0 0.2-5 --kill``; needs a devcloud."""

from __future__ import annotations

import argparse
import random
import secrets
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from openstack_prep.cloud.connection import Cloud
from tests.devcloud.layout import Layout, default_root
from tests.devcloud.tenant import connect
from tests.races import checkout
from tests.races.contest import KILLED, Outcome, Rules, is_held, race
from tests.races.estate import orphans


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    layout = Layout(options.port_base, default_root())
    admin = connect(layout.clouds_file, "devcloud-admin")
    environment = {"OS_CLIENT_CONFIG_FILE": str(layout.clouds_file), "OS_CLOUD": "devcloud-admin"}
    requests = _requests(environment, options) if options.kill else 0
    faults = 0
    for racers in options.racers:
        for stagger in options.stagger:
            rules = Rules(racers, stagger, requests, options.against_destroy)
            faults += _series(rules, options, environment, admin)
    return 1 if faults else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.races", description=__doc__)
    parser.add_argument("--port-base", type=int, default=20000, help="which devcloud; it must be up")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--racers", type=int, nargs="+", default=[2], help="how many runs, from two checkouts in turn")
    parser.add_argument(
        "--stagger", type=_span, nargs="+", default=[(0.0, 0.0)], help="seconds between two starts: 0.3, or 0.2-5"
    )
    parser.add_argument("--kill", action="store_true", help="kill one of them at a random request")
    parser.add_argument("--against-destroy", action="store_true", help="the first one destroys what stands")
    parser.add_argument("--projects", type=int, choices=(1, 2), default=1, help="2: each checkout has its own")
    parser.add_argument("--hosts", action="store_true", help="each checkout passes for a host of its own")
    parser.add_argument("--lock-timeout", help="of every racer and of what follows")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--debug", action="store_true", help="have the runs log their requests")
    parser.add_argument("--keep", type=Path, help="where to keep the runs' output of rounds with faults")
    return parser


def _span(text: str) -> tuple[float, float]:
    least, _, most = text.partition("-")
    return float(least), float(most or least)


def _checkouts(folder: Path, environment: dict[str, str], options: argparse.Namespace) -> list[checkout.Checkout]:
    name = f"race{secrets.token_hex(3)}"
    cloud = Cloud(connect(Path(environment["OS_CLIENT_CONFIG_FILE"]), environment["OS_CLOUD"]))
    made = checkout.make(folder, name, cloud, environment, projects=options.projects, hosts=options.hosts)
    words = ("--debug",) if options.debug else ()
    if options.lock_timeout is not None:
        words += ("--lock-timeout", options.lock_timeout)
    return [replace(each, words=words) for each in made]


def _requests(environment: dict[str, str], options: argparse.Namespace) -> int:
    """Return how many requests one apply sends that nobody races with."""
    with tempfile.TemporaryDirectory(prefix="races-") as folder:
        alone = _checkouts(Path(folder), environment, options)[0]
        counted = Path(folder) / "counted"
        alone.start("apply", counted=counted).wait()
        list(alone.destroy())
        return int(counted.read_text())


def _series(rules: Rules, options: argparse.Namespace, environment: dict[str, str], admin: Any) -> int:
    """Run the rounds of one kind, print each, and return how many have faults."""
    started, endings, faults, before = time.monotonic(), Counter[str](), 0, orphans(admin)
    print(f"# {rules}, {options.rounds} rounds", flush=True)
    for number in range(options.rounds):
        folder = Path(tempfile.mkdtemp(prefix="races-"))
        chance = random.Random(f"{options.seed} {rules} {number}")
        outcome = race(_checkouts(folder, environment, options), admin, rules, chance)
        print(f"{number:>3} {outcome.seconds:>6.1f} s  {outcome}", flush=True)
        endings.update(map(_ending, outcome.runs))
        if outcome.faults:
            faults += 1
            print("\n".join(_complaints(outcome)), flush=True)
        if outcome.faults and options.keep:
            shutil.copytree(folder, options.keep / f"{folder.name}-round{number}", symlinks=True)
        shutil.rmtree(folder, ignore_errors=True)
    for what in (what for id_, what in orphans(admin).items() if id_ not in before):
        faults += 1
        print(f"        {what} has no project", flush=True)
    shown = ", ".join(f"{count} {ending}" for ending, count in sorted(endings.items()))
    print(f"# {options.rounds} rounds, {faults} with faults, {time.monotonic() - started:.0f} s; {shown}", flush=True)
    return faults


def _ending(run: checkout.Run) -> str:
    if is_held(run):
        return "held off"
    return "killed" if run.code == KILLED else f"ended with {run.code}"


def _complaints(outcome: Outcome) -> list[str]:
    lines = (line for run in outcome.runs for line in run.said.splitlines())
    return [f"        {line}" for line in lines if line.lstrip().startswith(("!", "openstack-prep:"))]


if __name__ == "__main__":
    sys.exit(main())
