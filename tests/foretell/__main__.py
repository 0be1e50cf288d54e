"""Tries all situations on a devcloud, or those whose name contains a text: ``python -m tests.foretell --only mtu``.

Prints a line per situation and the sums; ``--write`` puts the sums of all situations into docs/reliability.md, and
nothing if one of them was not tried to its end.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.bench.table import insert
from tests.devcloud import cloud
from tests.devcloud.layout import REPOSITORY, Layout, default_root
from tests.foretell.trial import Ground, Outcome, Situation, situations, timed

MARKS = ("<!-- foretell: begin -->", "<!-- foretell: end -->")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.foretell", description=__doc__)
    parser.add_argument("--port-base", type=int, default=13000, help="which devcloud")
    parser.add_argument("--only", nargs="+", default=[], help="texts in the names of situations")
    parser.add_argument("--write", action="store_true", help="write the table of docs/reliability.md")
    options = parser.parse_args(arguments)
    if options.write and options.only:
        parser.error("--write needs all situations; leave --only out")
    layout = Layout(options.port_base, default_root())
    cloud.up(layout)
    chosen = [each for each in situations() if not options.only or any(text in each.name for text in options.only)]
    outcomes = _try_out(layout, chosen)
    print("\n".join(render(outcomes)))
    if unfinished := len(chosen) - len(outcomes):
        print(f"{unfinished} of {len(chosen)} situations were not tried to their end")
    elif options.write:
        page = REPOSITORY / "docs" / "reliability.md"
        page.write_text(insert(page.read_text(), "\n".join(render(outcomes)), MARKS))
    return 0 if not unfinished and all(each.is_right for each in outcomes) else 1


def _try_out(layout: Layout, chosen: Sequence[Situation]) -> list[Outcome]:
    """Return what came of each situation that was tried to its end, and print it."""
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        ground = Ground(layout, Path(folder))
        ground.prepare()
        for situation in chosen:
            try:
                outcome, seconds = timed(ground, situation)
            except Exception as error:  # noqa: BLE001 - the other situations are tried all the same
                print(f"{situation.name}: {type(error).__name__}: {error}", flush=True)
                continue
            outcomes.append(outcome)
            state = "right" if outcome.is_right else _wrong(outcome)
            print(f"{situation.name}: {state} ({outcome.requests} requests, {seconds:.1f} s)", flush=True)
            if not outcome.is_right:
                print(
                    f"    {outcome.said}"[:600], *(f"    good: {each}" for each in outcome.false), sep="\n", flush=True
                )
    return outcomes


def _wrong(outcome: Outcome) -> str:
    faults = {
        "not named": not outcome.named,
        "not refused by a service": not outcome.refused,
        "its plan writes": outcome.writes > 0,
        "its neighbour is refused": bool(outcome.false),
    }
    return ", ".join(name for name, is_so in faults.items() if is_so)


def render(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the sums, and a row per situation that is not named."""
    refused = [each for each in outcomes if each.refused]
    named = [each for each in refused if each.named and not each.writes]
    certain = [each for each in named if not each.situation.uncertain]
    false = [each for each in outcomes if each.false]
    return [
        "| situations | refused by a service | named by the plan | of these as refusals | good neighbours refused |",
        "|---:|---:|---:|---:|---:|",
        f"| {len(outcomes)} | {len(refused)} | {len(named)} | {len(certain)} | {len(false)} |",
        "",
        "Not named: " + ("; ".join(each.situation.name for each in refused if each not in named) or "none") + ".",
    ]


if __name__ == "__main__":
    sys.exit(main())
