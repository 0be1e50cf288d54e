"""One round: several runs of one spec at once; then what is there, a further apply, and a destroy."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.races.checkout import Checkout, Run
from tests.races.estate import left
from tests.races.stopped import PHASES, Stop

KILLED = -9
HELD = re.compile(r"^openstack-prep: spec \S+ is being applied by .* \[lease\.held\]$", re.MULTILINE)
"""How a run ends that another run has kept from its work."""


@dataclass(frozen=True)
class Rules:
    """How a round goes: who starts when, and who is killed."""

    racers: int = 2
    stagger: tuple[float, float] = (0.0, 0.0)
    requests: int = 0
    """One of the racers is killed at one of so many requests; 0: none is."""
    against_destroy: bool = False
    """The first one destroys what stands."""


@dataclass
class Outcome:
    """How a round went."""

    runs: list[Run] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        words = [" ".join("held" if is_held(run) else str(run.code) for run in self.runs)]
        for number, run in enumerate(self.runs):
            if run.stop is not None:
                words.append(f"{number} {'killed at' if run.code == KILLED else 'ended before'} {run.stop}")
        return ", ".join([*words, *(f"FAULT: {each}" for each in self.faults)])


def is_held(run: Run) -> bool:
    return run.code == 1 and HELD.search(run.said) is not None


def race(there: Sequence[Checkout], admin: Any, rules: Rules, chance: random.Random) -> Outcome:
    """Let runs race from these checkouts in turn, then look what they have left, and take it away."""
    outcome, started = Outcome(), time.monotonic()
    projects = sorted({each.project for each in there})
    if rules.against_destroy:
        for checkout in there[: len(projects)]:
            outcome.faults += checkout.apply()
    unlucky = chance.randrange(rules.racers) if rules.requests else -1
    for number in range(rules.racers):
        verb = "destroy" if rules.against_destroy and not number else "apply"
        stop = _stop(rules.requests, chance) if number == unlucky else None
        outcome.runs.append(there[number % len(there)].start(verb, stop=stop))
        time.sleep(chance.uniform(*rules.stagger) if number < rules.racers - 1 else 0)
    for run in outcome.runs:
        run.wait()
    outcome.seconds = time.monotonic() - started
    outcome.faults += _endings(outcome.runs)
    killed = any(run.code == KILLED for run in outcome.runs)
    for checkout in there[: len(projects)]:
        outcome.faults += _left_by(checkout, admin, killed=killed, gone=rules.against_destroy)
        outcome.faults += _converges(checkout, admin, again=killed or rules.against_destroy)
    for checkout in there[: len(projects)]:
        outcome.faults += checkout.destroy()
    if any(admin.identity.find_project(each) or admin.identity.find_user(each) for each in projects):
        outcome.faults.append("destroy leaves the project or its user")
    return outcome


def _stop(requests: int, chance: random.Random) -> Stop:
    return Stop(chance.randint(1, requests), chance.choice(PHASES), chance.uniform(0, 0.3))


def _endings(runs: Sequence[Run]) -> Iterator[str]:
    """Yield what is wrong with how the racers ended."""
    for number, run in enumerate(runs):
        if run.code is None:
            yield f"racer {number} does not end"
        elif run.code and not is_held(run) and not (run.stop and run.code == KILLED):
            yield f"racer {number} ends with {run.code}"
    if not any(run.code in (0, KILLED) for run in runs):
        yield "nobody did the work"


def _left_by(checkout: Checkout, admin: Any, *, killed: bool, gone: bool) -> Iterator[str]:
    """Yield what the race has left more or less than once; a killed run may leave anything for the next one."""
    found = {} if killed else left(admin, checkout.project)
    if killed or (gone and not found):
        return
    if not found:
        yield "there is no project after the race"
    yield from (f"{count} of {what} after the race" for what, count in found.items() if count != 1)


def _converges(checkout: Checkout, admin: Any, *, again: bool) -> Iterator[str]:
    """Yield what a further apply leaves wrong; after runs that all ended well, the plan is empty at once."""
    if again:
        yield from checkout.apply()
        found = left(admin, checkout.project)
        yield from (f"{count} of {what} after a further apply" for what, count in found.items() if count != 1)
    if pending := checkout.plan():
        yield f"the plan is not empty: {pending}"
