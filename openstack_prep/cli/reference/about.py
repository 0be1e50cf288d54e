"""``help`` and ``version``."""

from __future__ import annotations

import argparse

from openstack_prep.version import __version__


def run_help(options: argparse.Namespace) -> int:
    """Print what ``COMMAND --help`` prints; raises UsageError for an unknown command."""
    words = [*options.words, "--help"]
    options.build_parser(words).parse_args(words)  # ends the process, as argparse does for --help
    return 0


def run_version(options: argparse.Namespace) -> int:
    print(f"openstack-prep {__version__}")
    return 0
