"""Services with externalIPs: which nodes carry the addresses, and what is rendered for them; pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from openstack_prep.exposures.endpoint import PlacedExposure
from openstack_prep.exposures.external_ips import manifests
from openstack_prep.exposures.external_ips.rules import mistakes, warnings
from openstack_prep.exposures.external_ips.settings import ExternalIPBGP, ExternalIPNode, ExternalIPPeer, ExternalIPs


def files(
    settings: ExternalIPs,
    placed: Sequence[PlacedExposure],
    *,
    on_openstack: bool = False,
    openly: bool = True,
    only_ready: bool = False,
) -> dict[str, str]:
    """Return the files by name, with passwords as asterisks unless ``openly``.

    ``only_ready``: those that do not exist yet are asterisks, too; nothing is generated.
    ``on_openstack``: the router is Neutron's, which gets its routes from the spec and not by a script.
    """
    found = manifests.files(placed) | manifests.interface_files(settings, placed)
    if on_openstack:
        found.pop(manifests.ROUTES, None)
    return found | manifests.announcement_files(settings, placed, openly=openly, only_ready=only_ready)


__all__ = [
    "ExternalIPBGP",
    "ExternalIPNode",
    "ExternalIPPeer",
    "ExternalIPs",
    "files",
    "mistakes",
    "warnings",
]
