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

CHECKS: tuple[tuple[str, Check], ...] = (
    ("credentials", credentials.credentials),
    ("services", services.services),
    ("tls", services.endpoints),
    ("flavors", machines.flavors_of_machines),
    ("image", image.image),
    ("image", image.image_limits),
    ("zones", machines.zones),
    ("quota", quota.quota),
    ("hosts", machines.hosts),
    ("object_store", quota.object_store),
    ("external_network", external_network.external_network),
    ("floating_ips", floating_ips.floating_ips),
    ("networks", networks.networks),
    ("own_subnet", own_subnet.own_subnet),
    ("vips", vips.vips),
    ("names", names.names),
    ("ovn", ovn.ovn),
    ("mirror", mirror.mirror),
)
"""The checks, each with its place in a diagnostic that it could not be completed."""


def check(context: CheckContext, *, jobs: int = 8) -> list[Diagnostic]:
    """Return all problems, errors first; a check that could not be completed is a problem, too."""
    with ThreadPoolExecutor(jobs) as pool:
        results = pool.map(lambda named: list(_run(named[0], named[1], context)), CHECKS)
        return by_weight(each for found in results for each in found)


def _run(name: str, one: Check, context: CheckContext) -> Iterator[Diagnostic]:
    try:
        yield from one(context)
    except CloudError as error:
        forbidden = isinstance(error, NotAllowed)
        yield Diagnostic(
            code="access.denied" if forbidden else "cloud.failed",
            where=name,
            what=f"could not be checked: {error}",
            why="what cannot be read cannot be checked"
            + ("" if forbidden else "; the installer needs the same service"),
            fix="give this user the right to read it, or check it yourself"
            if forbidden
            else "try again; if it persists, ask the administrator of the cloud",
            status=DiagnosticStatus.UNKNOWN if forbidden else DiagnosticStatus.ERROR,
        )
