"""What the commands of a fleet share: its specs, what carries out their work, and the end of a run."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from openstack_prep.base.errors import ConfigError, SpecError
from openstack_prep.base.style import PLAIN, Style, visible
from openstack_prep.cli.output import FORMAT, interrupted_by, print_error, say, warn
from openstack_prep.cli.spec import no_garbage
from openstack_prep.core.text import counted
from openstack_prep.fleet import runs
from openstack_prep.fleet.commands import tables
from openstack_prep.fleet.commands.progress import FleetLines, Json
from openstack_prep.fleet.engine import threads
from openstack_prep.fleet.file.targets import load_fleet, meant
from openstack_prep.fleet.order import TargetStatus

if TYPE_CHECKING:
    from openstack_prep.fleet.file.fields import Fleet
    from openstack_prep.fleet.runs import Chosen, FleetResult


# --- begin -----------------------------------------------------------------------------------


@contextmanager
def executors(options: argparse.Namespace, chosen: Chosen) -> Iterator[Callable[[int], Executor]]:
    """Yield what makes executors: threads, or the workers of a scheduler; raises ConfigError, SpecError."""
    if options.workers and options.scheduler != "local":
        raise ConfigError("--workers only applies with --scheduler local; leave it out")
    if options.scheduler is None:
        yield threads
        return
    from openstack_prep.fleet.scheduler import is_open  # asyncio takes long to load, and few runs have a scheduler
    from openstack_prep.fleet.workers import LOCAL, on_workers  # as above

    without_entry = next((name for name, order in chosen.orders.items() if order.cloud is None), None)
    if options.scheduler != LOCAL and without_entry:
        what = f"target {without_entry} has no entry of clouds.yaml, and workers have OS_* variables of their own"
        raise ConfigError(f"--scheduler {options.scheduler}: {what}; choose an entry with --os-cloud")
    if chosen.checked.sent_secrets:
        raise SpecError(chosen.checked.sent_secrets)
    with on_workers(options.scheduler, jobs=options.jobs, processes=options.workers) as made:
        if options.scheduler != LOCAL and is_open(options.scheduler):
            what = "has no TLS: whoever reaches the scheduler, a worker, or the traffic can run programs there and here"
            warn(f"--scheduler {options.scheduler} {what}; use tls://")
        yield made


def open_fleet(options: argparse.Namespace) -> Fleet:
    """Return the fleet; raises SpecError."""
    with no_garbage():
        return load_fleet(options.fleet)


def choose(options: argparse.Namespace) -> Chosen:
    """Return the chosen targets with their specs read and warnings printed; raises SpecError, ConfigError."""
    with no_garbage():
        chosen = runs.choose(open_fleet(options), options.only, options.os_cloud)
    warn_of_targets(chosen.checked.warnings)
    return chosen


def refuse_unknown(names: Sequence[str], chosen: Chosen) -> None:
    """Refuse names of targets that are not chosen; raises ConfigError."""
    for name in names:
        if name not in chosen.orders:
            raise ConfigError(f"--show {name}: no such target is chosen; {meant(name, chosen.orders)}")


def warn_of_targets(warnings: Mapping[str, Sequence[str]]) -> None:
    """Print warnings, each with the targets that it is about, such as "target a and 4 more"."""
    for warning, names in warnings.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        warn(f"target {names[0]}{more}: {warning}")


# --- end -------------------------------------------------------------------------------------


def sizes(chosen: Chosen, verb: str = "reading") -> tuple[tuple[int, int], int, str]:
    """Return the widths of columns, the number of targets and what happens to them."""
    return tables.widths_of(chosen), len(chosen.orders), verb


def print_texts(options: argparse.Namespace, *texts: str) -> None:
    """Print texts for people, unless data is asked for."""
    if options.format == "text":
        print(visible("\n".join(filter(None, texts))))


def print_warnings(result: FleetResult) -> None:
    """Print each warning of a plan once, with the targets that it is about."""
    found: dict[str, list[str]] = {}
    for outcome in result.outcomes:
        for warning in outcome.warnings:
            found.setdefault(warning, []).append(outcome.target)
    warn_of_targets(found)


def end(options: argparse.Namespace, chosen: Chosen, result: FleetResult, verb: str) -> int:
    """Print the failures of a run, or its last line of data, and return its exit code."""
    code = result.exit_code
    if getattr(options, "detailed_exitcode", False) and result.interrupt is None:
        code = 1 if code else 2 if result.of(TargetStatus.CHANGES) else 0
    if options.format == "json":
        counts = {status.value: len(result.of(status)) for status in TargetStatus if result.of(status)}
        data = {"fleet": chosen.fleet.name, "targets": counts, "done_before": list(result.left_out)}
        print(json.dumps({"version": FORMAT, **data, "seconds": round(result.seconds, 3), "exit_code": code}))
        options.printed = True
    for line in tables.failures(result, str(options.fleet), verb):
        say(line)
    if not_begun := result.of(TargetStatus.NOT_BEGUN):
        say(f"not begun: {counted(len(not_begun), 'target')}: {tables.names(not_begun)}")
    if result.interrupt is not None:
        print_error(options, interrupted_by(result.interrupt), code)
    return code


def display(
    options: argparse.Namespace, style: Style, widths: tuple[int, int], total: int, verb: str, *, quiet: bool = False
) -> FleetLines:
    """Return the display for where the output goes; a ``quiet`` one shows only how far the run is."""
    if options.format == "json":
        return Json(sys.stdout, PLAIN, widths, total, verb, quiet)
    out = sys.stderr if quiet else sys.stdout
    if not out.isatty() or options.debug:
        return FleetLines(out, style, widths, total, verb, quiet)
    from openstack_prep.fleet.commands.live import FleetDisplay  # rich takes as long to load as pydantic

    return FleetDisplay(out, style, widths, total, verb, quiet)
