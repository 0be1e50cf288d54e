"""Rules of the installer for machines.

Source: the OpenShift installer's validation (types/validation/machinepools.go,
types/openstack/validation/machinepool.go, and ValidateForProvisioning for the number of masters).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator

from openstack_prep.base.errors import Mistake
from openstack_prep.openshift.install_config import releases
from openstack_prep.openshift.install_config.model import InstallConfigFields, Machines, RootVolume

SMALLEST_ROOT_VOLUME = 25  # GiB


def _replicas(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    masters, workers = cluster.control_plane.replicas, cluster.compute.replicas
    where = "control_plane.replicas"
    if masters == 1 and workers:
        yield Mistake(where, "one replica requires a cluster of one machine", "set compute.replicas to 0, or this to 3")
    elif masters == 2:
        yield Mistake(where, "two replicas require fencing, which OpenStack does not support", "set 3")
    elif masters > 3:
        yield Mistake(where, f"{masters} replicas are not supported", "set 3, and add machines to the cluster later")
    elif masters == 0:
        yield Mistake(where, "a cluster needs a control plane", "set 3")


def _flavors(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    pools = {"control_plane": cluster.control_plane, "compute": cluster.compute}
    if cluster.machines.flavor is not None:
        return
    if release < 7:
        yield Mistake("machines.flavor", f"{releases.name(release)} requires computeFlavor", "name a flavor")
        return
    for where, pool in pools.items():
        if pool.flavor is None:
            yield Mistake(f"{where}.flavor", "no flavor for these machines", "set it here, or in machines.flavor")


def _machines(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    for where in ("machines", "control_plane", "compute"):
        pool: Machines = getattr(cluster, where)
        if pool.root_volume is not None:
            yield from _root_volume(f"{where}.root_volume", pool.root_volume, pool.zones or cluster.machines.zones)
            if release in releases.VOLUME_ZONES and pool.zones and not pool.root_volume.zones:
                what = f"is missing; {where}.zones and a root volume require it"
                yield Mistake(f"{where}.root_volume.zones", what, "give one zone of volumes for all, or one per zone")
        for name in ("additional_networks", "additional_security_groups"):
            yield from ids(f"{where}.{name}", getattr(pool, name))


def _root_volume(where: str, volume: RootVolume, zones: tuple[str, ...]) -> Iterator[Mistake]:
    if volume.size < SMALLEST_ROOT_VOLUME:
        what = f"{volume.size} GiB is less than the required {SMALLEST_ROOT_VOLUME} GiB"
        yield Mistake(f"{where}.size", what, "set 100")
    for name, count in (("types", len(volume.types)), ("zones", len(volume.zones))):
        any_number = name == "types" and len(zones) < 2
        if count > 1 and count != len(zones) and not any_number:
            what = f"{count} {name} do not match {len(zones)} zones of the machines"
            yield Mistake(f"{where}.{name}", what, "give one for all, or as many as zones")


def ids(where: str, given: Iterable[str]) -> Iterator[Mistake]:
    """Yield the IDs that the installer rejects."""
    for each in given:
        if not _is_uuid4(each):
            yield Mistake(where, f"{each!r} is not a UUID of version 4, which the installer requires", "give the ID")


def _is_uuid4(text: str) -> bool:
    try:
        return uuid.UUID(text).version == 4
    except ValueError:
        return False


def _image(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    image = cluster.cluster_os_image
    if cluster.cluster_os_image_properties and image and "://" not in image:
        what = f"is ignored, because the installer does not upload {image!r}"
        yield Mistake("cluster_os_image_properties", what, "set the properties of that image, or leave this out")


MACHINE_RULES = (_replicas, _flavors, _machines, _image)
