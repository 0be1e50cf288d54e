"""The kinds of OpenStack, a folder for each service; a file for each kind, and for what only it needs.

``from openstack_prep.resources import Network`` works as it always has; ``openstack_prep.kinds`` is the table.
"""

from __future__ import annotations

import importlib


def __getattr__(name: str) -> object:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("openstack_prep.kinds"), name)
