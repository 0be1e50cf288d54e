"""The machines of a cluster: those of each pool, by its own settings and the common defaults, and bootstrap.

Source: the OpenShift installer's types (openstack/machinepool.go, Set): a pool's setting wins, per
field.  The bootstrap machine is like the control plane's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

from openstack_prep.base import shell
from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.base.errors import CloudError, NotAllowed
from openstack_prep.base.suggestion import suggest
from openstack_prep.cloud.service import Service
from openstack_prep.core.run import query
from openstack_prep.openshift.check.context import CheckContext
from openstack_prep.openshift.install_config import InstallConfigFields, Machines
from openstack_prep.reports.codes import documented
from openstack_prep.resources.compute import capacity
from openstack_prep.resources.compute.capacity import ServerDemand
from openstack_prep.resources.lists.nova_records import FlavorRecord, list_flavors

# Room for the machines on the hosts of the cloud, where these credentials may ask for it.

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


# Availability zones and volume types that install-config.yaml names.
#
# Source: Compute API and Block Storage API "os-availability-zone"; Block Storage API "types".

VOLUME_TYPE = "volume type"


def zones(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield the zones and volume types that do not exist."""
    reported: set[tuple[str, str]] = set()
    for where, kind, name, existing in _named(context):
        if name not in existing and (where, name) not in reported:
            reported.add((where, name))
            code = "volume-type.missing" if kind == VOLUME_TYPE else "zone.missing"
            yield Diagnostic(
                code=code,
                where=where,
                what=f"there is no {kind} {name!r} available; there is {', '.join(sorted(existing)) or 'none'}",
                why="the installer refuses it",
                fix=suggest(name, existing, "write one of these"),
            )


def _named(context: CheckContext) -> Iterator[tuple[str, str, str, set[str]]]:
    """Yield each name in the file: where it is, its kind, the name, and the names that exist."""
    for pool in POOLS:
        like = effective(context.cluster, pool)
        for name in like.zones:
            existing = _compute_zones(context)
            yield said_in(context, pool, "zones"), "availability zone of compute", name, existing
        volume = like.root_volume
        for name in volume.zones if volume else ():
            existing = _volume_zones(context)
            yield said_in(context, pool, "root_volume.zones"), "availability zone of volumes", name, existing
        for name in volume.types if volume else ():
            existing = _volume_types(context)
            yield said_in(context, pool, "root_volume.types"), VOLUME_TYPE, name, existing


@query
def _compute_zones(context: CheckContext) -> set[str]:
    return _zones(context.cloud.compute)


@query
def _volume_zones(context: CheckContext) -> set[str]:
    return _zones(context.cloud.volume)


def _zones(service: Service) -> set[str]:
    listed = service.get("/os-availability-zone")["availabilityZoneInfo"]
    return {each["zoneName"] for each in listed if each["zoneState"]["available"]}


@query
def _volume_types(context: CheckContext) -> set[str]:
    return {each["name"] for each in context.cloud.volume.list("/types", "volume_types", is_public="None")}


# Flavors: they exist, and are not smaller than the installer's minima.
#
# Source: OpenShift installer docs/user/openstack/README.md and its validation
# (installconfig/openstack/validation/machinepool.go); Compute API "Flavors".


class Minimum(NamedTuple):
    ram: int  # MiB
    vcpus: int


MINIMA = {"control_plane": Minimum(16384, 4), "compute": Minimum(8192, 2)}
DISK, GOOD_DISK = 25, 100  # GiB
SKIPPED = (
    "if a flavor does not exist, the installer skips all its checks of the cloud, including quotas, "
    "without an error; the machines then fail one by one"
)


def flavors_of_machines(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield what is wrong with the flavors of the pools, and with that of all machines."""
    seen: set[tuple[str, str | None]] = set()
    for pool in POOLS:
        like, where = effective(context.cluster, pool), said_in(context, pool, "flavor")
        if like.flavor is not None and (where, like.flavor) not in seen:
            yield from _one(context, where, pool, like)
        seen.add((where, like.flavor))
    default, where = context.cluster.machines.flavor, context.place("machines.flavor")
    if default is not None and default not in flavors(context) and (where, default) not in seen:
        yield _missing(context, where, default)


def _one(context: CheckContext, where: str, pool: str, like: Machines) -> Iterator[Diagnostic]:
    assert like.flavor is not None
    flavor = flavors(context).get(like.flavor)
    if flavor is None:
        yield _missing(context, where, like.flavor)
    elif flavor.extra_specs.get("baremetal") != "true":
        yield from _too_small(context, where, pool, like, flavor)
        if like.root_volume is None:
            yield from _disk(context, where, pool, like, flavor)
    if like.root_volume is not None and like.root_volume.size < GOOD_DISK:
        yield Diagnostic(
            code="root-volume.small",
            where=said_in(context, pool, "root_volume.size"),
            what=f"a {like.root_volume.size} GiB root volume is below the recommendation",
            why=f"the installer accepts {DISK} GiB and recommends {GOOD_DISK} GiB",
            fix=f"set it to {GOOD_DISK}",
            status=DiagnosticStatus.WARNING,
        )


def _missing(context: CheckContext, where: str, name: str) -> Diagnostic:
    names = ", ".join(sorted(flavors(context))[:10])
    pools = [pool for pool in POOLS if effective(context.cluster, pool).flavor == name]
    least = MINIMA[pools[0] if pools else POOLS[0]]  # the control plane's, which comes first, is the larger one
    private = shell.join(["openstack", "flavor", "set", "--project", context.cloud.project_id, name])
    fix = f"{_create(name, least)}  # as an administrator; if it exists, but is private: {private}; or name another"
    meant = suggest(name, flavors(context))
    return Diagnostic(
        code="flavor.missing",
        where=where,
        what=f"there is no flavor {name!r} for this project; it has {names or 'none'}",
        why=SKIPPED,
        fix=f"{meant} Otherwise: {fix}" if meant else fix,
    )


def _create(name: str, least: Minimum) -> str:
    sizes = ["--ram", str(least.ram), "--vcpus", str(least.vcpus), "--disk", str(GOOD_DISK)]
    return shell.join(["openstack", "flavor", "create", *sizes, name])


def _suggest_flavor(context: CheckContext, pool: str, like: Machines) -> str:
    """Return the flavor to name: the smallest one that is large enough, or else a new one."""
    least, disk = MINIMA[pool], 0 if like.root_volume else GOOD_DISK
    fitting = [
        flavor
        for flavor in flavors(context).values()
        if flavor.ram >= least.ram and flavor.vcpus >= least.vcpus and flavor.disk >= disk
        if flavor.extra_specs.get("baremetal") != "true"
    ]
    if fitting:
        found = min(fitting, key=lambda flavor: (flavor.ram, flavor.vcpus, flavor.disk, flavor.name))
        return f"write {found.name}, of {found.ram} MiB, {found.vcpus} vCPUs and {found.disk} GiB"
    name = f"{context.cluster.cluster_name}-{pool.replace('_', '-')}"
    return f"{_create(name, least)}  # as an administrator; then write {name}"


def _too_small(
    context: CheckContext, where: str, pool: str, like: Machines, flavor: FlavorRecord
) -> Iterator[Diagnostic]:
    for name, unit in (("ram", " MiB"), ("vcpus", " vCPUs")):
        wanted, size = getattr(MINIMA[pool], name), getattr(flavor, name)
        if size < wanted:
            yield documented(
                code="flavor.too-small",
                where=where,
                what=f"flavor {flavor.name!r} has {size}{unit}, {wanted} are needed",
                fix=_suggest_flavor(context, pool, like),
            )


def _disk(context: CheckContext, where: str, pool: str, like: Machines, flavor: FlavorRecord) -> Iterator[Diagnostic]:
    if flavor.disk < GOOD_DISK:
        fatal = flavor.disk < DISK
        yield Diagnostic(
            code="flavor.small-disk",
            where=where,
            what=f"flavor {flavor.name!r} has a disk of {flavor.disk} GiB",
            why=f"the installer refuses less than {DISK}" if fatal else f"the installer recommends {GOOD_DISK}",
            fix=f"{_suggest_flavor(context, pool, like)}; or give the machines a rootVolume",
            status=DiagnosticStatus.ERROR if fatal else DiagnosticStatus.WARNING,
        )


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
    settings = {
        field.name: getattr(own, field.name) or getattr(cluster.machines, field.name) for field in fields(Machines)
    }
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
