"""Exposures through a services machine with BIND and HAProxy: KubeInit, OKD on libvirt and the like.  Pure.

The files are for three machines: ``bridge.sh`` for the hypervisor; ``named.conf``, zones and ``haproxy.cfg`` for the
services machine; and the others for the one that runs KubeInit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from openstack_prep.exposures.endpoint import PlacedExposure
from openstack_prep.exposures.service_host import files as bind
from openstack_prep.exposures.service_host import files as bridge
from openstack_prep.exposures.service_host import files as haproxy
from openstack_prep.exposures.service_host import files as kubeinit
from openstack_prep.exposures.service_host.rules import mistakes, warnings
from openstack_prep.exposures.service_host.settings import (
    ClusterMachine,
    ExternalInterface,
    KubeInit,
    MachineGroup,
    ServiceHost,
    machines,
)

__all__ = [
    "ClusterMachine",
    "ExternalInterface",
    "KubeInit",
    "MachineGroup",
    "ServiceHost",
    "files",
    "machines",
    "mistakes",
    "warnings",
    "without_mac",
]


def without_mac(settings: ServiceHost) -> list[str]:
    """Return the names of the machines for which a MAC address is to be reserved."""
    return [machine.name for machine in machines(settings) if not machine.mac]


def files(
    settings: ServiceHost,
    placed: Sequence[PlacedExposure],
    *,
    macs: Mapping[str, str] | None = None,
    previous: Mapping[str, str] | None = None,
    today: date,
) -> dict[str, str]:
    """Return the files by name, for exposures of this cluster and way with at least one address.

    ``macs`` are reserved MAC addresses by the machines' names. ``previous`` are the files of the last run: zones
    that did not change keep their serials, so that ``today`` matters for changed ones alone.
    """
    found = list(machines(settings, macs))
    address = next(exposure.address for exposure in placed if exposure.address)
    texts = {
        bridge.SCRIPT: bridge.bridge_script(settings.external),
        "haproxy.cfg": haproxy.config(settings, placed, found),
        **bind.bind_files(settings, placed, found, previous or {}, today),
        kubeinit.INVENTORY: kubeinit.inventory(settings, found),
    }
    if settings.kubeinit:
        mac = next((exposure.mac for exposure in placed if exposure.mac), None)
        texts[kubeinit.VARIABLES] = kubeinit.variables(settings, address, mac)
        texts[kubeinit.COMMAND] = kubeinit.script(settings, settings.kubeinit)
    return texts
