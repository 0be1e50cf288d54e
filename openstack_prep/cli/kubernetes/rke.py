"""``rke check``: find what RKE2 and RKE silently ignore in a file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.cli import AddCommand


def add(command: AddCommand) -> None:
    """Add it to the parser."""
    check = command("rke check", _check, cloud=False)
    check.add_argument("files", nargs="+", type=Path, metavar="FILE", help="config.yaml (with --rke2) or cluster.yml")
    check.add_argument(
        "--rke2", choices=("server", "agent"), help="the files are config.yaml of RKE2 servers or agents"
    )


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
            print(f"{path}: valid {reading.NAMES[form]}")
    if mistakes:
        raise SpecError(mistakes)
    return 0
