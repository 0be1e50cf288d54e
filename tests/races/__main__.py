"""Race runs of one spec: ``python -m tests.races --racers 2 --stagger 0.3 --rounds 10``; needs a devcloud."""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import sys
import tempfile
from pathlib import Path

from tests.devcloud.layout import Layout, default_root
from tests.devcloud.tenant import connect
from tests.races.contest import Outcome, checkouts, race


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.races", description=__doc__)
    parser.add_argument("--port-base", type=int, default=20000, help="which devcloud; it must be up")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--racers", type=int, nargs="+", default=[2])
    parser.add_argument("--stagger", type=float, nargs="+", default=[0.0, 0.3], help="seconds between two starts")
    parser.add_argument("--kill", action="store_true", help="kill one of them at a random moment")
    parser.add_argument("--against-destroy", action="store_true", help="the first one destroys what stands")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    layout = Layout(options.port_base, default_root())
    clouds = layout.clouds_file
    environment = {
        "OS_CLIENT_CONFIG_FILE": str(clouds),
        "OS_CLOUD": "devcloud-admin",
        "PREP_PASSWORD": "a-password-of-the-race",
    }
    admin = connect(clouds, "devcloud-admin")
    faults = 0
    print(f"{'racers':>6} {'stagger':>7} {'round':>5} {'seconds':>7}  exit codes, twins left at once, faults")
    for racers in options.racers:
        for stagger in options.stagger:
            for number in range(options.rounds):
                name = f"race{secrets.token_hex(3)}"
                folder = Path(tempfile.mkdtemp(prefix="races-", dir=os.environ.get("TMPDIR")))
                there = checkouts(folder, name, racers, environment)
                outcome = race(
                    there,
                    admin,
                    name,
                    stagger=stagger,
                    kill=options.kill,
                    against_destroy=options.against_destroy,
                    seed=options.seed + number,
                )
                faults += bool(outcome.faults)
                print(f"{racers:>6} {stagger:>7} {number:>5} {outcome.seconds:>7.1f}  {_shown(outcome)}", flush=True)
                if outcome.faults or any(code not in (0, -9) for code in outcome.codes):
                    print("\n".join(_complaints(outcome)), flush=True)
                shutil.rmtree(folder, ignore_errors=True)
    print(f"{faults} rounds with faults")
    return 1 if faults else 0


def _shown(outcome: Outcome) -> str:
    words = [" ".join(map(str, outcome.codes)), *outcome.twins, *(f"FAULT: {each}" for each in outcome.faults)]
    return ", ".join(words)


def _complaints(outcome: Outcome) -> list[str]:
    said = (line for each in outcome.said for line in each.splitlines())
    lines = [line for line in said if line.lstrip().startswith(("!", "openstack-prep:"))]
    return [f"        {line}" for line in [*lines, *(outcome.again[1].splitlines() if outcome.faults else ())]]


if __name__ == "__main__":
    sys.exit(main())
