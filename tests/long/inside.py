"""One process that works for long: ``python -m tests.long.inside sync TURNS SECURITY_GROUP``, or ``library TURNS``.

It prints a line per turn, with the exit code of the turn.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import openstack_prep as prep
from openstack_prep.cli.main import main

FRESH = 2
"""Every second turn of the library makes a new connection."""


def sync(turns: int, group: str) -> Iterator[int]:
    """Synchronise the pairs of ports again and again, now with one address, now with another one."""
    for turn in range(turns):
        address = f"10.1.0.{200 + turn % 4}"
        yield main(["address-pairs", "sync", "--security-group", group, "--address", address])


def library(turns: int) -> Iterator[int]:
    """Plan and apply a spec whose group has now one rule, now another one."""
    cloud = prep.connect()
    for turn in range(turns):
        cloud = prep.connect() if turn % FRESH else cloud
        rule = prep.SecurityGroupRule(protocol="tcp", ports=f"{1000 + turn % 4}")
        wanted: list[Any] = [
            prep.SecurityGroup(name="long", rules=(rule,)),
            prep.Network(name="long", mtu=1300 + turn % 3),
        ]
        plan = prep.plan(cloud, wanted, name="long")
        report = prep.apply(cloud, plan)
        if report.interrupt is not None:
            yield 128 + report.interrupt
        report.raise_for_failures()
        yield 0


def run(words: list[str]) -> int:
    """Run one of both; ends with the code of a signal."""
    turns = int(words[1])
    for number, code in enumerate(sync(turns, words[2]) if words[0] == "sync" else library(turns), 1):
        print("turn", number, code, flush=True)
        if code > 128:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
