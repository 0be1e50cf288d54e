"""``rke check``: what RKE and RKE2 pass over in a file without a word."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.cli import AddCommand


def add(command: AddCommand) -> None:
    """Add it to the parser."""
    check = command("rke check", _check, "find unknown keys and wrong values in a cluster.yml, by line", cloud=False)
    check.add_argument("files", nargs="+", type=Path, metavar="FILE", help="cluster.yml, or RKE2's config.yaml")
    check.add_argument("--rke2", choices=("server", "agent"), help="they are config.yaml of servers or of agents")


def _check(options: argparse.Namespace) -> int:
    from openstack_prep.kubernetes import reading

    form: reading.Form = options.rke2 or "cluster.yml"
    mistakes: list[Mistake] = []
    for path in options.files:
        try:
            data, found = reading.read(path, form)
        except SpecError as error:
            mistakes += error.mistakes
            continue
        mistakes += found
        for warning in reading.warnings(data, form):
            print(f"openstack-prep: warning: {path}: {warning}", file=sys.stderr)
        if not found:
            print(f"{path}: {reading.NAMES[form]} as it should be")
    if mistakes:
        raise SpecError(mistakes)
    return 0
