"""Availability zones and volume types that install-config.yaml names.

Source: Compute API and Block Storage API "os-availability-zone"; Block Storage API "types".
"""

from __future__ import annotations

from collections.abc import Iterator

from openstack_prep.base.diagnostic import Diagnostic
from openstack_prep.cloud.service import Service
from openstack_prep.core.run import query
from openstack_prep.openshift.check.capacity.machines import POOLS, effective, said_in
from openstack_prep.openshift.check.context import CheckContext

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
                fix="write one of these",
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
