"""The OpenStack kinds: one folder per service, and one module per kind and for the helpers that only this kind needs.

``from openstack_prep.resources import Network`` works as it always has; ``openstack_prep.kinds`` is the table.
"""

from __future__ import annotations

import importlib


def __getattr__(name: str) -> object:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("openstack_prep.kinds"), name)
