"""Room for the machines on the hosts of the cloud, where these credentials may ask for it."""

from __future__ import annotations

from collections.abc import Iterator

from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.base.errors import CloudError, NotAllowed
from openstack_prep.openshift.check.capacity.machines import MachineSet, flavors, groups
from openstack_prep.openshift.check.context import CheckContext
from openstack_prep.reports.codes import documented
from openstack_prep.resources.compute import capacity
from openstack_prep.resources.compute.capacity import ServerDemand

CAPACITY = "capacity"


def hosts(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield the machines for which Nova would find no valid host; nothing without the right to ask."""
    if not capacity.may_ask(context.cloud):
        return
    demands = [each for machines in groups(context.cluster) for each in _demands(context, machines)]
    try:
        for short in capacity.shortages(context.cloud, demands):
            yield documented(code="capacity.short", where=CAPACITY, what=str(short))
    except NotAllowed:
        raise  # reported like everything that may not be read
    except CloudError as error:
        yield Diagnostic(
            code="cloud.failed",
            where=CAPACITY,
            what=f"Placement could not be asked for room: {error}",
            why="the installer does not ask it, but Nova does for each machine",
            fix="try again",
            status=DiagnosticStatus.UNKNOWN,
        )


def _demands(context: CheckContext, machines: MachineSet) -> Iterator[ServerDemand]:
    """Yield the machines of a set by their zones: they are dealt out to these in turn."""
    like = machines.like
    flavor = flavors(context).get(like.flavor or "")
    if flavor is None:
        return
    zones = like.zones or (None,)
    for number, zone in enumerate(zones):
        count = len(range(number, machines.count, len(zones)))
        strict = like.server_group_policy == "anti-affinity"
        yield ServerDemand(flavor, count, zone or None, like.root_volume is not None, count if strict else 1)
