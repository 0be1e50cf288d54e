"""A line on the terminal while the cloud is read, erased afterwards."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
from collections.abc import Iterator

from openstack_prep.cli.output import QUIET

ERASE = "\r\x1b[K"


@contextlib.contextmanager
def reading(options: argparse.Namespace) -> Iterator[None]:
    """Show a line on a terminal's stderr until the end of the block, or until something is logged."""
    if options.debug or QUIET.get() or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    handlers = logging.getLogger("openstack_prep").handlers

    def erase(record: logging.LogRecord | None = None) -> bool:
        sys.stderr.write(ERASE)
        sys.stderr.flush()
        return True

    for each in handlers:
        each.addFilter(erase)
    sys.stderr.write("reading the cloud ...")
    sys.stderr.flush()
    try:
        yield
    finally:
        for each in handlers:
            each.removeFilter(erase)
        erase()
