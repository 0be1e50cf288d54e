"""Pre-installation checks: what the installer's own preflight misses or gets wrong.

One file per topic; each check takes the context of a check and yields diagnostics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus, by_weight
from openstack_prep.base.errors import CloudError, NotAllowed
from openstack_prep.openshift.check import credentials, mirror, names, services
from openstack_prep.openshift.check.capacity import image, machines, quota
from openstack_prep.openshift.check.context import CheckContext
from openstack_prep.openshift.check.network import external_network, floating_ips, networks, ovn, own_subnet, vips

__all__ = ["CHECKS", "CheckContext", "Diagnostic", "check"]

Check = Callable[[CheckContext], Iterator[Diagnostic]]

CHECKS: tuple[Check, ...] = (
    credentials.credentials,
    services.services,
    services.endpoints,
    machines.flavors_of_machines,
    image.image,
    image.image_limits,
    machines.zones,
    quota.quota,
    machines.hosts,
    quota.object_store,
    external_network.external_network,
    floating_ips.floating_ips,
    networks.networks,
    own_subnet.own_subnet,
    vips.vips,
    names.names,
    ovn.ovn,
    mirror.mirror,
)


def check(context: CheckContext, *, jobs: int = 8) -> list[Diagnostic]:
    """Return all problems, errors first; a check that could not be completed is a problem, too."""
    with ThreadPoolExecutor(jobs) as pool:
        results = pool.map(lambda one: list(_run(one, context)), CHECKS)
        return by_weight(each for found in results for each in found)


def _run(one: Check, context: CheckContext) -> Iterator[Diagnostic]:
    try:
        yield from one(context)
    except CloudError as error:
        forbidden = isinstance(error, NotAllowed)
        yield Diagnostic(
            code="access.denied" if forbidden else "cloud.failed",
            where=one.__module__.rpartition(".")[2],
            what=f"could not be checked: {error}",
            why="what cannot be read cannot be checked"
            + ("" if forbidden else "; the installer needs the same service"),
            fix="give this user the right to read it, or check it yourself"
            if forbidden
            else "try again; if it persists, ask the administrator of the cloud",
            status=DiagnosticStatus.UNKNOWN if forbidden else DiagnosticStatus.ERROR,
        )
