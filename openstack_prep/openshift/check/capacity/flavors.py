"""Flavors: they exist, and are not smaller than the installer's minima.

Source: OpenShift installer docs/user/openstack/README.md and its validation
(installconfig/openstack/validation/machinepool.go); Compute API "Flavors".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from openstack_prep.base import shell
from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.openshift.check.capacity.machines import POOLS, effective, flavors, said_in
from openstack_prep.openshift.check.context import CheckContext
from openstack_prep.openshift.install_config import Machines
from openstack_prep.reports.codes import documented
from openstack_prep.resources.lists.nova_records import FlavorRecord


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
    return Diagnostic(
        code="flavor.missing",
        where=where,
        what=f"there is no flavor {name!r} for this project; it has {names or 'none'}",
        why=SKIPPED,
        fix=f"{_create(name, least)}  # as an administrator; if it exists, but is private: {private}; or name another",
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
