"""Flavors: they exist, and are not smaller than the installer's minima.

Source: OpenShift installer docs/user/openstack/README.md and its validation
(installconfig/openstack/validation/machinepool.go); Compute API "Flavors".
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import NamedTuple

from openstack_prep.base.diagnostic import Diagnostic, Status
from openstack_prep.base.raw import Raw
from openstack_prep.openshift.check.capacity.machines import POOLS, effective, flavors, said_in
from openstack_prep.openshift.check.context import CheckContext
from openstack_prep.openshift.install_config import Machines


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
        yield _missing(context, where, default, MINIMA["control_plane"])


def _one(context: CheckContext, where: str, pool: str, like: Machines) -> Iterator[Diagnostic]:
    assert like.flavor is not None
    flavor = flavors(context).get(like.flavor)
    if flavor is None:
        yield _missing(context, where, like.flavor, MINIMA[pool])
    elif (flavor.get("extra_specs") or {}).get("baremetal") != "true":
        yield from _too_small(context, where, MINIMA[pool], flavor)
        if like.root_volume is None:
            yield from _disk(context, where, flavor)
    if like.root_volume is not None and like.root_volume.size < GOOD_DISK:
        yield Diagnostic(
            code="root-volume.small",
            where=said_in(context, pool, "root_volume.size"),
            what=f"a {like.root_volume.size} GiB root volume is below the recommendation",
            why=f"the installer accepts {DISK} GiB and recommends {GOOD_DISK} GiB",
            fix=f"set it to {GOOD_DISK}",
            status=Status.WARNING,
        )


def _missing(context: CheckContext, where: str, name: str, least: Minimum) -> Diagnostic:
    names = ", ".join(sorted(flavors(context))[:10])
    return Diagnostic(
        code="flavor.missing",
        where=where,
        what=f"there is no flavor {name!r} for this project; it has {names or 'none'}",
        why=SKIPPED,
        fix=_create(name, least),
    )


def _create(name: str, least: Minimum) -> str:
    sizes = ["--ram", str(least.ram), "--vcpus", str(least.vcpus), "--disk", str(GOOD_DISK)]
    return f"{shlex.join(['openstack', 'flavor', 'create', *sizes, name])}  # as an administrator; or name another"


def _too_small(context: CheckContext, where: str, least: Minimum, flavor: Raw) -> Iterator[Diagnostic]:
    for name, unit in (("ram", " MiB"), ("vcpus", " vCPUs")):
        wanted = getattr(least, name)
        if flavor[name] < wanted:
            yield Diagnostic(
                code="flavor.too-small",
                where=where,
                what=f"flavor {flavor['name']!r} has {flavor[name]}{unit}, {wanted} are needed",
                why="the installer refuses it",
                fix=context.openstack("flavor", "list", "--min-ram", str(least.ram)) + "  # and name a larger one",
            )


def _disk(context: CheckContext, where: str, flavor: Raw) -> Iterator[Diagnostic]:
    if flavor["disk"] < GOOD_DISK:
        fatal = flavor["disk"] < DISK
        yield Diagnostic(
            code="flavor.small-disk",
            where=where,
            what=f"flavor {flavor['name']!r} has a disk of {flavor['disk']} GiB",
            why=f"the installer refuses less than {DISK}" if fatal else f"the installer recommends {GOOD_DISK}",
            fix=context.openstack("flavor", "list", "--min-disk", str(GOOD_DISK))
            + "  # and name a larger one, or give the machines a rootVolume",
            status=Status.ERROR if fatal else Status.WARNING,
        )
