"""Rules of the installer for machines.

Source: the OpenShift installer's validation (types/validation/machinepools.go,
types/openstack/validation/machinepool.go, and ValidateForProvisioning for the number of masters).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from openstack_prep.base.errors import Mistake
from openstack_prep.base.invalid import shown
from openstack_prep.base.secret_forms import without_url_secrets
from openstack_prep.openshift.install_config import releases
from openstack_prep.openshift.install_config.model import InstallConfigFields, Machines, RootVolume

SMALLEST_ROOT_VOLUME = 25  # GiB
POOLS = ("control_plane", "compute")
IMAGE_FORMATS = ("qcow2", "raw")  # RHCOS is published as qcow2, and converted to raw for Ceph
SCHEMES = (None, "http", "https", "file")
_UUID4 = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"
UUID4 = re.compile(rf"(urn:uuid:)?{_UUID4}|.{_UUID4}.|[0-9a-f]{{12}}4[0-9a-f]{{19}}", re.IGNORECASE | re.DOTALL)
"""What github.com/google/uuid 1.6.0 parses (uuid.go, Parse), of version 4."""


def _replicas(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    masters = cluster.control_plane.replicas
    where = "control_plane.replicas"
    if masters == 2:
        what = "etcd of two machines stops with either of them, and OpenStack does not support fencing"
        yield Mistake(where, what, "set 3")
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
    for where in ("machines", *POOLS):
        pool: Machines = getattr(cluster, where)
        if pool.root_volume is not None:
            yield from _size(f"{where}.root_volume.size", pool.root_volume)
            if release in releases.VOLUME_ZONES and pool.zones and not pool.root_volume.zones:
                what = f"names no zone; {where}.zones and a root volume require one"
                yield Mistake(f"{where}.root_volume.zones", what, "give one zone of volumes for all, or one per zone")
        for name in ("additional_networks", "additional_security_groups"):
            if where != "machines" or not all(getattr(getattr(cluster, each), name) for each in POOLS):
                yield from ids(f"{where}.{name}", getattr(pool, name))  # of no pool, they are judged by nothing
    yield from dict.fromkeys(chain.from_iterable(_merged(cluster, name) for name in ("machines", *POOLS)))


def _merged(cluster: InstallConfigFields, of: str) -> Iterator[Mistake]:
    """Yield what does not match in a pool that has omitted values from all machines.

    The installer compares zones only there (types/openstack/machinepool.go, MachinePool.Set), so that the defaults may
    leave zones to the pools; where the numbers of types and zones differ in a pool, it stops later with a panic.
    """
    pool: Machines = getattr(cluster, of)
    volume, zones = pool.root_volume or cluster.machines.root_volume, pool.zones or cluster.machines.zones
    if volume is None:
        return
    where = f"{of if pool.root_volume else 'machines'}.root_volume"
    yield from _counts(where, "types", volume, zones)
    if of == "machines":
        return
    if not volume.zones and cluster.machines.root_volume:
        volume, where = cluster.machines.root_volume, "machines.root_volume"
    yield from _counts(where, "zones", volume, zones)


def _size(where: str, volume: RootVolume) -> Iterator[Mistake]:
    if volume.size < SMALLEST_ROOT_VOLUME:
        what = f"{volume.size} GiB is less than the required {SMALLEST_ROOT_VOLUME} GiB"
        yield Mistake(where, what, "set 100")


def _counts(where: str, name: str, volume: RootVolume, zones: tuple[str, ...]) -> Iterator[Mistake]:
    count = len(getattr(volume, name))
    any_number = name == "types" and len(zones) < 2
    if count > 1 and count != len(zones) and not any_number:
        what = f"{count} {name} do not match {len(zones)} zones of the machines"
        yield Mistake(f"{where}.{name}", what, "give one for all, or as many as zones")


def ids(where: str, given: Iterable[str]) -> Iterator[Mistake]:
    """Yield the IDs that the installer rejects."""
    for each in given:
        if not UUID4.fullmatch(each):
            yield Mistake(where, f"{each!r} is not a UUID of version 4, which the installer requires", "give the ID")


def _image(cluster: InstallConfigFields, release: int) -> Iterator[Mistake]:
    image = cluster.cluster_os_image
    if image and (scheme := _scheme(image)) not in SCHEMES:
        named, schemes = without_url_secrets(shown(image)), ", ".join(filter(None, SCHEMES))
        what = f"{named} is read as a URL of scheme {scheme!r}, not of {schemes}"
        yield Mistake("cluster_os_image", what, "serve it over https, or give an image whose name has no colon")
    if cluster.cluster_os_image_properties and image and "://" not in image:
        what = f"is ignored, because the installer does not upload {image!r}"
        yield Mistake("cluster_os_image_properties", what, "set the properties of that image, or leave this out")


def image_format(name: str, disk_format: str | None) -> Iterator[Mistake]:
    """Yield the format of an image from which no machine boots; of a declared image it may be unknown."""
    if disk_format not in (None, *IMAGE_FORMATS):
        what = f"image {name!r} is {disk_format}, not {' or '.join(IMAGE_FORMATS)}"
        fix = "upload the right image, for example with rhcos: in a spec"
        yield Mistake("cluster_os_image", what, fix, code="image.wrong-format")


def _scheme(image: str) -> str | None:
    """Return the scheme of what the installer takes for a URL; None for the name of an image.

    Source: CLOUD platform.go, validateClusterOSImage: Go's url.ParseRequestURI also reads name:tag, /path and *.
    """
    if re.search(r"[\x00-\x1f\x7f]", image):
        return None
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):", image)
    return found[1].lower() if found else "" if image.startswith("/") or image == "*" else None


MACHINE_RULES = (_replicas, _flavors, _machines, _image)
