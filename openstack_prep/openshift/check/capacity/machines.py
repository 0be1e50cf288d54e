"""The machines of a cluster: those of each pool, by its own settings and the common defaults, and bootstrap.

Source: the OpenShift installer's types (openstack/machinepool.go, Set): a pool's setting wins, per
field.  The bootstrap machine is like the control plane's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from openstack_prep.core.run import query
from openstack_prep.openshift.check.context import CheckContext
from openstack_prep.openshift.install_config import InstallConfigFields, Machines
from openstack_prep.resources.lists.nova_records import FlavorRecord, list_flavors

POOLS = ("control_plane", "compute")


@dataclass(frozen=True, kw_only=True)
class MachineSet:
    """Machines with the same settings."""

    pool: str
    """control_plane or compute: whose settings they have."""
    count: int
    """How many."""
    like: Machines
    """Their settings."""


def groups(cluster: InstallConfigFields) -> list[MachineSet]:
    """Return all machines that exist at the same time: every replica, and the bootstrap machine."""
    masters, workers = (
        MachineSet(pool=pool, count=getattr(cluster, pool).replicas, like=effective(cluster, pool)) for pool in POOLS
    )
    return [masters, workers, replace(masters, count=1)]


def effective(cluster: InstallConfigFields, pool: str) -> Machines:
    """Return the settings of a pool's machines: its own, or the defaults."""
    own = getattr(cluster, pool)
    settings = {each.name: getattr(own, each.name) or getattr(cluster.machines, each.name) for each in fields(Machines)}
    return Machines(**settings)


def said_in(context: CheckContext, pool: str, field: str) -> str:
    """Return the field that a pool's setting comes from: the pool's own, or the default of all machines."""
    inner, outer = getattr(context.cluster, pool), context.cluster.machines
    for step in field.split("."):
        inner, outer = inner and getattr(inner, step), outer and getattr(outer, step)
    return context.place(f"machines.{field}" if outer and not inner else f"{pool}.{field}")


@query
def flavors(context: CheckContext) -> Mapping[str, FlavorRecord]:
    """Return the flavors that the project may use, by name."""
    return {flavor.name: flavor for flavor in list_flavors(context.cloud)}
