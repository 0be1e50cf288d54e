"""What the checks of a plan cost: plans of this checkout and of an earlier one, in pairs, as whole processes.

    git worktree add /tmp/earlier f898a889    # before a plan compared quotas
    python -m tests.foretell.cost /tmp/earlier --port-base 13000

Prints requests, and the median of seconds and of CPU seconds, of the scenario of ``tox -e bench`` on a devcloud, before
and after it was applied, and of a fleet of tenants on the light server (tests/light), whose plans share what they read.
Both checkouts run with the libraries of this interpreter.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.bench import fleet, scenario, watched
from tests.devcloud import cloud
from tests.devcloud.layout import PASSWORD, REPOSITORY, Layout, default_root
from tests.light.running import running


@dataclass(frozen=True)
class Cost:
    """What a command took."""

    requests: int
    seconds: float
    cpu: float


@dataclass(frozen=True)
class Place:
    """A folder with a spec, and the cloud."""

    folder: Path
    environment: Mapping[str, str]
    plan: Sequence[str]

    def run(self, checkout: Path, *words: str) -> Cost:
        """Run the command of a checkout; raises CalledProcessError if it fails."""
        with tempfile.TemporaryDirectory() as state:
            environment = {
                **os.environ,
                **self.environment,
                "PYTHONPATH": str(checkout),
                "XDG_STATE_HOME": state,
                "PREP_PASSWORD": PASSWORD,
            }
            command = [sys.executable, watched.__file__, sys.executable, "-m", "openstack_prep.cli.main", *words]
            done = subprocess.run(command, cwd=self.folder, env=environment, check=True, capture_output=True)
            taken = json.loads(done.stdout)
            (log,) = Path(state, "openstack-prep").glob("requests-*.jsonl")
            requests = json.loads(log.read_text().splitlines()[-1])["requests"]
        return Cost(requests, taken["seconds"], taken["cpu"])


def compare(name: str, place: Place, earlier: Path, rounds: int) -> str:
    """Return a row of the table: each round plans with both checkouts, in turns the earlier one first."""
    before: list[Cost] = []
    now: list[Cost] = []
    for number in range(rounds + 1):
        pair = [(earlier, before), (REPOSITORY, now)]
        for checkout, costs in pair if number % 2 else reversed(pair):
            costs.append(place.run(checkout, *place.plan))
    del before[0], now[0]  # compiled modules and caches of the services
    cells = [f"{before[-1].requests}", f"{now[-1].requests}"]
    measures: tuple[Callable[[Cost], float], ...] = (lambda each: each.seconds, lambda each: each.cpu)
    for of in measures:
        ratio = median(of(new) / of(old) for old, new in zip(before, now, strict=True))
        cells += [f"{median(map(of, before)):.2f}", f"{median(map(of, now)):.2f}", f"{ratio:.2f}"]
    return f"| {name} | {' | '.join(cells)} |"


def rows(options: argparse.Namespace) -> Iterator[str]:
    layout = Layout(options.port_base, default_root())
    cloud.up(layout)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "scenario")
        scenario.lay_out(folder)
        entry = {"OS_CLIENT_CONFIG_FILE": str(layout.clouds_file), "OS_CLOUD": "devcloud-admin"}
        place = Place(folder, entry, ("plan", scenario.SPEC))
        yield compare("the scenario, nothing exists", place, options.earlier, options.rounds)
        try:
            place.run(REPOSITORY, "apply", "--yes", scenario.SPEC)
            yield compare("the scenario, nothing to do", place, options.earlier, options.rounds)
        finally:
            place.run(REPOSITORY, "destroy", "--yes", scenario.SPEC)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with running(folder, base=options.light_base, latency_ms=5) as light:
            fleet.lay_out(folder, light, options.tenants)
            entry = {"OS_CLIENT_CONFIG_FILE": str(light.clouds_file), "OS_CLOUD": light.entries[0]}
            place = Place(folder, entry, ("fleet", "plan", "fleet.yaml"))
            yield compare(f"{options.tenants} tenants, nothing exists", place, options.earlier, options.rounds)
            place.run(REPOSITORY, "fleet", "apply", "--yes", "fleet.yaml")
            yield compare(f"{options.tenants} tenants, nothing to do", place, options.earlier, options.rounds)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.foretell.cost", description=__doc__)
    parser.add_argument("earlier", type=Path, help="another checkout")
    parser.add_argument("--port-base", type=int, default=13000, help="which devcloud")
    parser.add_argument("--light-base", type=int, default=9000, help="where the light server listens")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--tenants", type=int, default=50)
    print("| plan | requests before | now | seconds before | now | ratio | CPU before | now | ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for row in rows(parser.parse_args(arguments)):
        print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
