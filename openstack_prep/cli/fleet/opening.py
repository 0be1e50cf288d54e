"""What the commands of a fleet share: their options, and reading the fleet and its specs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from openstack_prep.cli import AddCommand
from openstack_prep.cli.running import no_garbage
from openstack_prep.cli.style import warn

if TYPE_CHECKING:
    from openstack_prep.fleet.api import Chosen
    from openstack_prep.fleet.model import Fleet

FORMS = ("text", "json")
"""Values of --format: JSON has one line per target, as soon as it has ended."""


def add_fleet(command: AddCommand, name: str, run: object, *, cloud: bool = True) -> argparse.ArgumentParser:
    """Add a command of a fleet with the options that all of them have."""
    parser = command(f"fleet {name}", run, cloud=cloud, data=True, forms=FORMS)  # type: ignore[arg-type]
    parser.add_argument("fleet", type=Path, metavar="FLEET", help="the fleet, a YAML file")
    parser.add_argument(
        "--only", action="append", default=[], metavar="GROUP", help="only this group or target; repeatable"
    )
    parser.set_defaults(lines=True)
    return parser


def open_fleet(options: argparse.Namespace) -> Fleet:
    """Return the fleet; raises SpecError."""
    with no_garbage():
        from openstack_prep.fleet.loading import load_fleet

        return load_fleet(options.fleet)


def choose(options: argparse.Namespace) -> Chosen:
    """Return the chosen targets with their specs read and warnings printed; raises SpecError, ConfigError."""
    with no_garbage():
        from openstack_prep.fleet import api

        chosen = api.choose(open_fleet(options), options.only, options.os_cloud)
    print_warnings(chosen)
    return chosen


def print_warnings(chosen: Chosen) -> None:
    """Print each warning about specs once, with the targets that it is about."""
    for warning, names in chosen.checked.warnings.items():
        warn(f"{of_targets(names)}: {warning}")


def of_targets(names: list[str]) -> str:
    """Return "target a" or "target a and 4 more"."""
    return f"target {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
