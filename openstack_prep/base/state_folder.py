"""The folder of what runs of a user remember: below XDG_STATE_HOME, or ~/.local/state.

Source: XDG Base Directory Specification 0.8. Everything in it may be deleted at any time.
"""

from __future__ import annotations

import os
from pathlib import Path

SWITCH = "OPENSTACK_PREP_REQUEST_LOG"
"""The environment variable that keeps runs from writing there, by the value ``off``."""


def is_off() -> bool:
    """Whether the environment keeps runs from writing there."""
    return os.environ.get(SWITCH) == "off"


def folder() -> Path:
    """Return the folder; raises RuntimeError if there is no home."""
    state = os.environ.get("XDG_STATE_HOME", "")
    return (Path(state) if os.path.isabs(state) else Path.home() / ".local/state") / "openstack-prep"
