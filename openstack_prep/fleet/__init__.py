"""A fleet: specs with variables times targets, in many projects and clouds.

from openstack_prep import fleet as fleets

fleet = fleets.load_fleet("fleet.yaml")
print([outcome.target for outcome in fleets.plan(fleet).outcomes if outcome.counts])
fleets.apply(fleet, only=["canary"], jobs=16).raise_for_failures()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openstack_prep import extensions

if TYPE_CHECKING:
    from openstack_prep.fleet.api import apply, audit, destroy, plan
    from openstack_prep.fleet.engine import FleetEvent as Event
    from openstack_prep.fleet.file.fields import Fleet
    from openstack_prep.fleet.file.fields import FleetTarget as Target
    from openstack_prep.fleet.file.targets import load_fleet
    from openstack_prep.fleet.order import TargetOutcome as Outcome
    from openstack_prep.fleet.order import TargetStatus as Status
    from openstack_prep.fleet.runs import FleetFailed
    from openstack_prep.fleet.runs import FleetResult as Result

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

_REFERENCES = {
    "Event": "fleet.engine:FleetEvent",
    "Fleet": "fleet.file.fields:Fleet",
    "FleetFailed": "fleet.runs:FleetFailed",
    "Outcome": "fleet.order:TargetOutcome",
    "Result": "fleet.runs:FleetResult",
    "Status": "fleet.order:TargetStatus",
    "Target": "fleet.file.fields:FleetTarget",
    "apply": "fleet.api:apply",
    "audit": "fleet.api:audit",
    "destroy": "fleet.api:destroy",
    "load_fleet": "fleet.file.targets:load_fleet",
    "plan": "fleet.api:plan",
}
"""Where each name is; it is loaded when it is first used, because the package is there for its extension, too."""


def __getattr__(name: str) -> object:
    if name not in _REFERENCES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = extensions.load(f"openstack_prep.{_REFERENCES[name]}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
