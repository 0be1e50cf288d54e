"""A fleet: specs with variables times targets, in many projects and clouds.

from openstack_prep import fleet as fleets

fleet = fleets.load_fleet("fleet.yaml")
print([outcome.target for outcome in fleets.plan(fleet).outcomes if outcome.counts])
fleets.apply(fleet, only=["canary"], jobs=16).raise_for_failures()
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openstack_prep.fleet.api import apply, audit, destroy, plan
    from openstack_prep.fleet.engine import Event
    from openstack_prep.fleet.file.loading import load_fleet
    from openstack_prep.fleet.file.model import Fleet, Target
    from openstack_prep.fleet.order import Outcome, Status
    from openstack_prep.fleet.running import FleetFailed, Result

__all__ = [
    "Event",
    "Fleet",
    "FleetFailed",
    "Outcome",
    "Result",
    "Status",
    "Target",
    "apply",
    "audit",
    "destroy",
    "load_fleet",
    "plan",
]

_MODULES = {
    "Event": "fleet.engine",
    "Fleet": "fleet.file.model",
    "FleetFailed": "fleet.running",
    "Outcome": "fleet.order",
    "Result": "fleet.running",
    "Status": "fleet.order",
    "Target": "fleet.file.model",
    "apply": "fleet.api",
    "audit": "fleet.api",
    "destroy": "fleet.api",
    "load_fleet": "fleet.file.loading",
    "plan": "fleet.api",
}
"""The module of each name, imported when the name is first used: the package is there for its extension, too."""


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"openstack_prep.{_MODULES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
