"""What the commands of a fleet share: reading the fleet and its specs, and what carries out their work."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from openstack_prep.base.errors import ConfigError
from openstack_prep.cli.running import no_garbage
from openstack_prep.cli.style import warn
from openstack_prep.fleet import running
from openstack_prep.fleet.engine import threads
from openstack_prep.fleet.file.loading import load_fleet, meant

if TYPE_CHECKING:
    from openstack_prep.fleet.file.model import Fleet
    from openstack_prep.fleet.running import Chosen


@contextmanager
def executors(options: argparse.Namespace, chosen: Chosen) -> Iterator[Callable[[int], Executor]]:
    """Yield what makes executors: threads, or the workers of a scheduler; raises ConfigError."""
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
        chosen = running.choose(open_fleet(options), options.only, options.os_cloud)
    print_warnings(chosen)
    return chosen


def refuse_unknown(names: Sequence[str], chosen: Chosen) -> None:
    """Refuse names of targets that are not chosen; raises ConfigError."""
    for name in names:
        if name not in chosen.orders:
            raise ConfigError(f"--show {name}: no such target is chosen; {meant(name, chosen.orders)}")


def print_warnings(chosen: Chosen) -> None:
    """Print each warning about specs once, with the targets that it is about."""
    for warning, names in chosen.checked.warnings.items():
        warn(f"{of_targets(names)}: {warning}")


def of_targets(names: list[str]) -> str:
    """Return "target a" or "target a and 4 more"."""
    return f"target {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
