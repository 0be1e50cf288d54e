"""One trial: apply while the cloud misbehaves until it converges, then destroy; and what must hold."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.devcloud import access, faults
from tests.devcloud.layout import Layout
from tests.faults import shipped
from tests.faults.inventory import Cloud, Thing, counts, differences
from tests.faults.schedule import Schedule
from tests.faults.shipped import Ended, Folder
from tests.races.stopped import PHASES, Stop

CODES = (0, 1, 2)
"""Of a run that no signal ends: done; something failed; wrong input or a refused plan."""
FORBIDDEN = ("Traceback (most recent call last)", "internal error", "gAAAA")
"""The last one begins each token."""
GONE_SECONDS = 20
"""How long something may still be on its way out of the cloud: ports of servers, for one."""

DURING = 0.05  # seconds after a request was sent, for a kill while the service works on it
FIRST_WRITES = (1, 2, 3)
"""At which of its writes each run of a chain is killed, in turn; the first one takes the lease."""
FURTHER = 6
"""At which write one run of each turn is killed: the first ones may change nothing, such as quotas reset again."""
CHAIN_LIMIT = 600
"""How many runs a chain may have."""


@dataclass
class Outcome:
    """How a trial went."""

    applies: int = 0
    destroys: int = 0
    hits: int = 0
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)
    runs: list[Ended] = field(default_factory=list)

    def __str__(self) -> str:
        codes = " ".join(f"{'-' if run.code is None else run.code} ({run.seconds:.0f} s)" for run in self.runs)
        words = f"{self.applies} applies, {self.destroys} destroys, {self.hits} hits, codes {codes}"
        return "\n".join([words, *(f"        WRONG: {each}" for each in self.wrong)])


@dataclass
class Ground:
    """The cloud that trials run on, one after the other."""

    layout: Layout
    cloud: Cloud
    environment: Mapping[str, str]
    limit: int = 6
    """How many applies, and how many destroys, may be needed."""

    def __post_init__(self) -> None:
        self.reference = cache(self._reference)
        shipped.preload()
        self.requests: dict[str, tuple[int, int]] = {}

    def _reference(self, name: str) -> Counter[Thing]:
        """Return what one apply that nothing disturbs creates."""
        with TemporaryDirectory(prefix="faults-") as folder:
            there, before = shipped.make(Path(folder), name, self.environment), self.cloud.inventory()
            applied = there.run("apply", "--yes")
            found = counts(self.cloud.inventory(), before)
            destroyed = there.run("destroy", "--yes")
        for run in (applied, destroyed):
            if run.code != 0:
                raise RuntimeError(f"{name}: {run.words[0]} fails without any fault:\n{run.said}")
        self.requests[name] = applied.requests, destroyed.requests
        return found

    def try_schedule(self, name: str, schedule: Schedule) -> Outcome:
        """Apply and destroy a shipped spec under a schedule, whose rules start anew for the destroy."""
        wanted = self.reference(name)
        outcome, started, mark = Outcome(), time.monotonic(), access.mark(self.layout)
        with TemporaryDirectory(prefix="faults-") as folder:
            there, before = shipped.make(Path(folder), name, self.environment), self.cloud.inventory()
            with faults.inject(self.layout, *schedule.rules):
                outcome.applies = self._until_done(there, "apply", outcome)
            outcome.wrong += self._check_applied(there, before, wanted)
            with faults.inject(self.layout, *schedule.rules):
                outcome.destroys = self._until_done(there, "destroy", outcome)
            outcome.wrong += self._check_destroyed(before)
            outcome.wrong += _endings(there)
        outcome.hits = sum(each.fault for each in access.read(self.layout, mark))
        outcome.runs, outcome.seconds = there.runs, time.monotonic() - started
        return outcome

    def try_kill(self, name: str, stop: Stop) -> Outcome:
        """Kill an apply and a destroy at one of their requests, each with the next run at once."""
        wanted = self.reference(name)
        outcome, started = Outcome(applies=2, destroys=2), time.monotonic()
        with TemporaryDirectory(prefix="faults-") as folder:
            there, before = shipped.make(Path(folder), name, self.environment), self.cloud.inventory()
            for verb in ("apply", "destroy"):
                killed = there.run(verb, "--yes", stop=stop)
                outcome.hits += killed.code == shipped.KILLED
                following = there.run(verb, "--yes")
                if following.code != 0:
                    outcome.wrong.append(f"{verb} after the killed one ends with {following.code}")
                if verb == "apply":
                    outcome.wrong += self._check_applied(there, before, wanted)
            outcome.wrong += self._check_destroyed(before)
            outcome.wrong += _endings(there, killed=True)
        outcome.runs, outcome.seconds = there.runs, time.monotonic() - started
        return outcome

    def try_destroy(self, name: str, stop: Stop, *, changed: bool) -> Outcome:
        """Kill an apply at one of its writes, and destroy at once; the first destroy has to succeed.

        With ``changed``, the apply changes what an earlier one created.
        """
        outcome, started = Outcome(applies=1 + changed, destroys=1), time.monotonic()
        with TemporaryDirectory(prefix="faults-") as folder:
            there, before = shipped.make(Path(folder), name, self.environment), self.cloud.inventory()
            if changed:
                applied = there.run("apply", "--yes")
                if applied.code != 0:
                    outcome.wrong.append(f"apply ends with {applied.code}")
                shipped.change(there)
            killed = there.run("apply", "--yes", "--allow-replace", stop=stop)
            outcome.hits = int(killed.code == shipped.KILLED)
            if killed.code not in (0, shipped.KILLED):
                outcome.wrong.append(f"the apply to be killed ends with {killed.code}")
            destroyed = there.run("destroy", "--yes")
            if destroyed.code != 0:
                outcome.wrong.append(f"destroy after the killed apply ends with {destroyed.code}")
            outcome.wrong += self._check_destroyed(before)
            outcome.wrong += _endings(there, killed=True)
        outcome.runs, outcome.seconds = there.runs, time.monotonic() - started
        return outcome

    def try_chain(self, name: str) -> Outcome:
        """Kill run after run at one of its first writes, in each phase, until one has nothing left to write.

        So nearly every write of apply and destroy is one that a run was killed at, with the next run at once.
        """
        wanted = self.reference(name)
        outcome, started = Outcome(), time.monotonic()
        with TemporaryDirectory(prefix="faults-") as folder:
            there, before = shipped.make(Path(folder), name, self.environment), self.cloud.inventory()
            outcome.applies = self._chain(there, "apply", outcome)
            outcome.wrong += self._check_applied(there, before, wanted)
            outcome.destroys = self._chain(there, "destroy", outcome)
            outcome.wrong += self._check_destroyed(before)
            outcome.wrong += _endings(there, killed=True)
        outcome.runs, outcome.seconds = there.runs, time.monotonic() - started
        return outcome

    def _chain(self, there: Folder, verb: str, outcome: Outcome) -> int:
        """Run a verb, killed each time, until a run is not; return how many runs that took."""
        stops = [Stop(write, phase, DURING, writes=True) for phase in PHASES for write in FIRST_WRITES]
        stops.append(Stop(FURTHER, "after", writes=True))
        for number, stop in enumerate(islice(cycle(stops), CHAIN_LIMIT), 1):
            code = there.run(verb, "--yes", stop=stop).code
            outcome.hits += code == shipped.KILLED
            if code == 0:
                return number
            if code != shipped.KILLED:
                outcome.wrong.append(f"{verb} number {number} ends with {code}, which was to be killed at {stop}")
                break
        else:
            outcome.wrong.append(f"{verb} has not succeeded after {CHAIN_LIMIT} runs")
        return number

    def _until_done(self, there: Folder, verb: str, outcome: Outcome) -> int:
        """Run a verb until it succeeds; return how many runs that took."""
        for number in range(1, self.limit + 1):
            if there.run(verb, "--yes").code == 0:
                return number
        outcome.wrong.append(f"{verb} has not succeeded after {self.limit} runs")
        return self.limit

    def _check_applied(self, there: Folder, before: Mapping[str, Thing], wanted: Counter[Thing]) -> Iterator[str]:
        plan = there.run("plan", "--detailed-exitcode")
        if plan.code != 0:
            yield f"the plan after apply is not empty (exit code {plan.code}): {plan.said.strip()}"
        yield from differences(counts(self.cloud.inventory(), before), wanted, "after apply")

    def _check_destroyed(self, before: Mapping[str, Thing]) -> list[str]:
        deadline = time.monotonic() + GONE_SECONDS
        while wrong := list(left_wrong(self.cloud.inventory(), before)):
            if time.monotonic() > deadline:
                break
            time.sleep(1)
        return wrong


def left_wrong(now: Mapping[str, Thing], before: Mapping[str, Thing]) -> Iterator[str]:
    yield from (f"left behind: {thing}" for id_, thing in now.items() if id_ not in before)
    yield from (f"deleted, although it was there before: {thing}" for id_, thing in before.items() if id_ not in now)
    yield from (f"renamed: {before[id_]}" for id_, thing in now.items() if id_ in before and thing != before[id_])


def _endings(there: Folder, *, killed: bool = False) -> Iterator[str]:
    """Yield what is wrong with how runs ended, and with what they said."""
    secrets = there.secrets()
    for number, run in enumerate(there.runs):
        which = f"run {number} ({run.words[0]})"
        if run.code is None:
            yield f"{which} does not end"
        elif run.code not in CODES and not (killed and run.code == shipped.KILLED):
            yield f"{which} ends with {run.code}"
        yield from (f"{which} says {word!r}: {_line(run.said, word)}" for word in FORBIDDEN if word in run.said)
        if any(secret in run.said for secret in secrets):
            yield f"{which} prints a secret"


def _line(said: str, word: str) -> str:
    return next((line for line in said.splitlines() if word in line), "")[:300]
