"""Which cluster a command is about: metadata.json or the infraID."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from openstack_prep.errors import ConfigError

if TYPE_CHECKING:
    from openstack_prep.openshift import Metadata

METADATA = Path("metadata.json")
LONGEST = 10**6  # seconds; eleven days


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--metadata", type=Path, metavar="FILE", help="the installer's metadata.json (./metadata.json)")
    which.add_argument("--infra-id", metavar="ID", help="instead of a metadata.json that is lost")


def seconds(text: str) -> float:
    """Return a time to wait, as argparse reads it."""
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= LONGEST:
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds from 0 to {LONGEST}")
    return found


def chosen_cluster(options: argparse.Namespace) -> Metadata:
    """Return the cluster that the options name; raises ConfigError, SpecError."""
    from openstack_prep.openshift import cluster

    given: Path | None = options.metadata
    if given is None and options.infra_id is None:
        if not METADATA.exists():
            raise ConfigError("there is no metadata.json here; give --metadata FILE or --infra-id ID")
        given = METADATA
    return cluster(given, options.infra_id)
