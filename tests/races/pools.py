"""Race processes for the addresses of one pool file: ``python -m tests.races.pools --racers 2 4 --rounds 100``.

One racer of each round is killed, at a random moment or at a random step of its write. No devcloud is needed. With
``--port-base`` they race for the ports of an address pool instead, in the devcloud with that base, which must be up.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from openstack_prep.exposures.register.pool import Claim, ClaimRequest, PoolSettings
from openstack_prep.exposures.register.pool_file import PoolFileRegister
from tests.devcloud.layout import Layout, default_root

SETTINGS = PoolSettings(cidr="10.0.0.0/24", gateway="10.0.0.1", addresses=("10.0.0.0/26",), exclude=("10.0.0.5",))
STEPS = ((fcntl, "flock"), (tempfile, "mkstemp"), (os, "fsync"), (os, "replace"))
"""The calls of one write at which a racer is killed."""
NAMES = ("api", "web", "dns")


def register(path: Path, spec: str) -> PoolFileRegister:
    return PoolFileRegister(path=path, name="race", settings=SETTINGS, spec=spec, project=spec)


def claims_of(path: Path, spec: str, tell: Callable[[str, Claim | None], None]) -> None:
    """Claim, release and claim again, and tell each outcome as soon as it is known."""
    mine = register(path, spec)
    mine.ensure()
    for name in NAMES:
        tell(name, mine.claim([ClaimRequest(name=name, mac=True)])[name])
    many = mine.claim([ClaimRequest(name=name) for name in (*NAMES, "a", "b")])
    for name, claim in many.items():
        tell(name, claim)
    tell("web", None)
    mine.release(["web"])
    tell("web", mine.claim([ClaimRequest(name="web", mac=True)])["web"])


def racer(path: Path, spec: str, pipe: int, dies_at: int | None) -> None:
    """Run in a process of its own; dies at the given step, counted over all writes."""
    steps = iter(range(sys.maxsize))

    def deadly(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*words: Any, **options: Any) -> Any:
            if next(steps) == dies_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*words, **options)

        return counted

    if dies_at is not None:
        for module, name in STEPS:
            setattr(module, name, deadly(getattr(module, name)))

    def tell(name: str, claim: Claim | None) -> None:
        os.write(pipe, (json.dumps([name, vars(claim) if claim else None]) + "\n").encode())

    claims_of(path, spec, tell)


def start(path: Path, spec: str, dies_at: int | None) -> tuple[int, int]:
    """Return the id of a racer's process and the pipe that it tells its claims by."""
    read, write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write)
        return pid, read
    code = 1
    try:
        os.close(read)
        racer(path, spec, write, dies_at)
        code = 0
    finally:
        os._exit(code)  # the parent's exit handlers are not for this process


def race(folder: Path, racers: int, chance: random.Random) -> Iterator[str]:
    """Run one round, and yield what is wrong then."""
    path = folder / "pool.yaml"
    victim, by_time = chance.randrange(racers), chance.random() < 0.5
    at = None if by_time else chance.randrange(45)
    runs = {f"s{each}": start(path, f"s{each}", at if each == victim else None) for each in range(racers)}
    if by_time:
        time.sleep(chance.random() * 0.04)
        os.kill(runs[f"s{victim}"][0], signal.SIGKILL)
    told: dict[str, dict[str, dict[str, str] | None]] = {}
    for number, (spec, (pid, pipe)) in enumerate(runs.items()):
        with os.fdopen(pipe) as lines:
            told[spec] = dict(json.loads(line) for line in lines)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code not in ((0, -signal.SIGKILL) if number == victim else (0,)):
            yield f"{spec} ended with {code}"
    after = register(path, "later")
    after.ensure()
    pool = after.read()  # an address or MAC address twice would be damage
    assert pool is not None
    for spec, claims in told.items():
        held = pool.of_spec(spec)
        for name, claim in claims.items():
            if claim is not None and vars(held.get(name, Claim(address=""))) != claim:
                yield f"{spec}/{name} was told {claim}, and the file has {held.get(name)}"
    if left := [each.name for each in folder.iterdir() if each != path]:
        yield f"left behind: {', '.join(left)}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.races.pools", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--racers", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port-base", type=int, help="race for ports in this devcloud")
    options = parser.parse_args(arguments)
    if options.port_base:
        from tests.races import pool_ports

        clouds_file = Layout(options.port_base, default_root()).clouds_file
        return (
            1
            if sum(pool_ports.series(clouds_file, each, options.rounds, options.seed) for each in options.racers)
            else 0
        )
    with tempfile.TemporaryDirectory() as folder:
        register(Path(folder) / "first.yaml", "first").ensure()  # what is imported late is imported before the fork
    faults = 0
    for racers in options.racers:
        started = time.monotonic()
        chance = random.Random(f"{options.seed} {racers}")
        for number in range(options.rounds):
            with tempfile.TemporaryDirectory(prefix="pools-") as folder:
                for fault in race(Path(folder), racers, chance):
                    faults += 1
                    print(f"{racers} racers, round {number}: {fault}", flush=True)
        print(
            f"{racers} racers, {options.rounds} rounds, {faults} faults, {time.monotonic() - started:.1f} s", flush=True
        )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
