"""A fleet: specs with variables times targets, in many projects and clouds.

from openstack_prep import fleet as fleets

fleet = fleets.load_fleet("fleet.yaml")
print([outcome.target for outcome in fleets.plan(fleet).outcomes if outcome.counts])
fleets.apply(fleet, only=["canary"], jobs=16).raise_for_failures()
"""

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
