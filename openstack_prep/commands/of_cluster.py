"""Which cluster a command is about: metadata.json or the infraID."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from openstack_prep.errors import ConfigError

if TYPE_CHECKING:
    from openstack_prep.openshift import Metadata

METADATA = Path("metadata.json")


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--metadata", type=Path, metavar="FILE", help="the installer's metadata.json (./metadata.json)")
    which.add_argument("--infra-id", metavar="ID", help="instead of a metadata.json that is lost")


def chosen_cluster(options: argparse.Namespace) -> Metadata:
    """Return the cluster that the options name; raises ConfigError, SpecError."""
    from openstack_prep.openshift import cluster

    given: Path | None = options.metadata
    if given is None and options.infra_id is None:
        if not METADATA.exists():
            raise ConfigError("there is no metadata.json here; give --metadata FILE or --infra-id ID")
        given = METADATA
    return cluster(given, options.infra_id)
