"""Standard streams that the caller has closed, as by ``>&-`` of a shell."""

from __future__ import annotations

import os
import sys

MODES = {"stdin": "r", "stdout": "w", "stderr": "w"}


def open_closed() -> None:
    """Let each closed stream read nothing and print nowhere.

    Otherwise the next file that is opened gets the number of the stream, and whatever a library prints ends up in it.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) < len(MODES):
        os.set_inheritable(number, True)  # as programs that we start expect
    os.close(number)
    for name, mode in MODES.items():
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - for as long as the process runs
