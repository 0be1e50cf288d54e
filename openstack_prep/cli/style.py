"""How to print for where the output goes: colour and width on a terminal, plain text elsewhere."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from typing import TextIO

from openstack_prep.base.secret_forms import without_logins
from openstack_prep.base.style import Style, printable


def say(text: str) -> None:
    """Print a message on standard error, on one line whatever names it contains."""
    print(f"openstack-prep: {printable(text)}", file=sys.stderr)


def warn(text: str) -> None:
    """Print a warning on standard error."""
    say(f"warning: {without_logins(text)}")


def style_of(options: argparse.Namespace, out: TextIO) -> Style:
    """Return the style for a stream.  --color overrides NO_COLOR, which overrides CLICOLOR_FORCE.

    Sources: no-color.org, bixense.com/clicolors.
    """
    terminal = out.isatty()
    return Style(
        color=_has_color(getattr(options, "color", "auto"), terminal),
        width=shutil.get_terminal_size().columns if terminal else None,
        ids=getattr(options, "ids", False),
        unchanged=getattr(options, "all", False),
    )


def _has_color(wanted: str, terminal: bool) -> bool:
    if wanted != "auto":
        return wanted == "always"
    if os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("CLICOLOR_FORCE", "") not in ("", "0")
    return forced or (terminal and os.environ.get("TERM") != "dumb")
