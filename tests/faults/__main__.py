"""Faults by number: ``python -m tests.faults --seeds 1-200``, ``--kill-every 5``, ``--then-destroy 2``, or ``--tls``.

Takes a devcloud of its own, which it resets at the start (not with ``--no-reset``) and after a trial with something
wrong.  The same number gives the same rules.  A trial with something wrong prints the line that repeats it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count, cycle, product

from tests.devcloud import cloud
from tests.devcloud.layout import Layout, default_root
from tests.faults import schedule, shipped, tls
from tests.faults.inventory import Cloud
from tests.faults.trial import DURING, Ground, Outcome
from tests.races.stopped import PHASES, Stop


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    layout = Layout(options.port_base, default_root())
    environment = {"OS_CLIENT_CONFIG_FILE": str(layout.clouds_file), "OS_CLOUD": "devcloud-admin"}
    if options.reset:
        cloud.reset(layout)
    if options.tls:
        shipped.preload()
        wrong = tls.try_all(layout)
        print(f"# {wrong} trials with something wrong", flush=True)
        return 1 if wrong else 0
    ground = Ground(layout, Cloud(layout), environment, options.limit)
    trials = _trials(ground, options)
    counted, started = Counter[str](), time.monotonic()
    for what, repeat, outcome in trials:
        print(f"{what}  {outcome.seconds:.0f} s  {outcome}", flush=True)
        counted += _counted(outcome)
        if outcome.wrong:
            print(f"        again: python -m tests.faults {repeat}", flush=True)
        if outcome.wrong or options.verbose:
            print("\n".join(_said(outcome)), flush=True)
        if outcome.wrong:
            cloud.reset(layout)
        if time.monotonic() - started > options.seconds:
            break
    shown = ", ".join(f"{count} {what}" for what, count in sorted(counted.items()))
    print(f"# {shown}; {time.monotonic() - started:.0f} s", flush=True)
    return 1 if counted["trials with something wrong"] else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--port-base", type=int, default=20000, help="which devcloud")
    parser.add_argument("--seeds", type=_span, default=range(1, 21), metavar="1-200", help="numbers of schedules")
    specs = (*shipped.SPECS, shipped.KINDS)
    parser.add_argument("--spec", nargs="+", choices=specs, help="which shipped specs, in turn (default: all)")
    parser.add_argument("--without", nargs="+", choices=schedule.KINDS, default=(), help="kinds of faults to leave out")
    parser.add_argument("--limit", type=int, default=6, help="how many applies and destroys may be needed")
    parser.add_argument("--kill-every", type=int, metavar="N", help="kill runs at every N-th request instead")
    parser.add_argument("--kill-writes", action="store_true", help="kill run after run at its first writes instead")
    destroyed = "kill an apply at every N-th write, destroy at once"
    parser.add_argument("--then-destroy", type=int, metavar="N", help=destroyed)
    parser.add_argument("--from-request", type=int, default=1, metavar="N", help="with these two: the first one")
    parser.add_argument("--phase", nargs="+", choices=PHASES, default=PHASES, help="with --kill-every: when")
    parser.add_argument("--in-turn", action="store_true", help="with --kill-every: one phase per request, in turn")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no trial after so long")
    parser.add_argument("--no-reset", dest="reset", action="store_false", help="begin with the devcloud as it is")
    parser.add_argument("--tls", action="store_true", help="try certificates, right and wrong ones, instead")
    parser.add_argument("--verbose", action="store_true", help="print schedules, and what failing runs said")
    return parser


def _span(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _trials(ground: Ground, options: argparse.Namespace) -> Iterator[tuple[str, str, Outcome]]:
    if options.kill_writes:
        names = options.spec or shipped.BIG
        return ((f"{name}, a kill per write", f"--kill-writes --spec {name}", ground.try_chain(name)) for name in names)
    if options.then_destroy:
        return _destroys(ground, options)
    return _kills(ground, options) if options.kill_every else _schedules(ground, options)


def _destroys(ground: Ground, options: argparse.Namespace) -> Iterator[tuple[str, str, Outcome]]:
    """Yield kills at each N-th write of a first apply and of one that changes things, until it has no more writes."""
    for name, changed in product(options.spec or shipped.DESTROYED, (False, True)):
        phases = cycle(options.phase)
        for write in count(options.from_request, options.then_destroy):
            stop = Stop(write, next(phases), DURING, writes=True)
            again = f"--then-destroy 9999 --from-request {write} --phase {stop.phase} --spec {name}"
            outcome = ground.try_destroy(name, stop, changed=changed)
            yield f"{name}{', changed' if changed else ''}, {stop}, then destroy", again, outcome
            if not outcome.hits:
                break


def _schedules(ground: Ground, options: argparse.Namespace) -> Iterator[tuple[str, str, Outcome]]:
    names = options.spec or shipped.SPECS
    without = f" --without {' '.join(options.without)}" if options.without else ""
    for number in options.seeds:
        name, made = names[number % len(names)], schedule.make(number, options.without)
        outcome = ground.try_schedule(name, made)
        if outcome.wrong or options.verbose:
            print(made, flush=True)
        yield f"{number:>4} {name}", f"--seeds {number} --spec {name}{without}", outcome


def _kills(ground: Ground, options: argparse.Namespace) -> Iterator[tuple[str, str, Outcome]]:
    for name in options.spec or shipped.BIG:
        ground.reference(name)
        requests = ground.requests[name]
        print(f"# {name}: apply sends {requests[0]} requests, destroy {requests[1]}", flush=True)
        for request in range(options.from_request, max(requests) + 1, options.kill_every):
            turn = (request - options.from_request) // options.kill_every % len(options.phase)
            for phase in options.phase[turn:][:1] if options.in_turn else options.phase:
                stop = Stop(request, phase, DURING)
                again = f"--kill-every 9999 --from-request {request} --phase {phase} --spec {name}"
                yield f"{name} {stop}", again, ground.try_kill(name, stop)


def _counted(outcome: Outcome) -> Counter[str]:
    counted = Counter({"trials": 1, "trials with something wrong": int(bool(outcome.wrong)), "hits": outcome.hits})
    counted[f"took {outcome.applies} applies"] += 1
    counted[f"took {outcome.destroys} destroys"] += 1
    counted.update(f"runs ended with {run.code}" for run in outcome.runs)
    return counted


def _said(outcome: Outcome) -> Iterator[str]:
    """Yield why runs failed."""
    for number, run in enumerate(outcome.runs):
        for line in run.said.splitlines() if run.code not in (0, shipped.KILLED) else ():
            if line.lstrip().startswith(("!", "openstack-prep:", "spec.yaml:")):
                yield f"        {number} {run.words[0]}| {line}"


if __name__ == "__main__":
    sys.exit(main())
