"""The external network: it exists, its name is unique, it is external, and it has addresses left.

Source: Networking API v2.0, "Network IP availability"; openshift/installer #3822 (4.6 can do without one),
#7411 and docs/user/openstack/known-issues.md (duplicate names).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.base.errors import NotAllowed, NotFound
from openstack_prep.base.suggestion import suggest
from openstack_prep.openshift.check.context import CheckContext
from openstack_prep.openshift.check.network.topology import listed, named_networks
from openstack_prep.reports.codes import documented
from openstack_prep.resources.lists.neutron_records import NetworkRecord

OPTIONAL_SINCE = 6
SILENT = (
    "unless exactly one network has that name, the installer skips all its checks of the cloud, including quotas, "
    "without an error"
)


def external_network(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield what is wrong with the external network."""
    where, name = context.place("external_network"), context.cluster.external_network
    if name is None:
        yield from _none(context, where)
        return
    found = named_networks(context)
    external = [network for network in found if network.external]
    if not found:
        yield Diagnostic(
            code="external-network.missing",
            where=where,
            what=f"there is no network {name!r}{_others(context)}",
            why=SILENT,
            fix=suggest(name, _external_names(context), _list_external(context)),
        )
    elif not external:
        yield documented(
            code="external-network.not-external",
            where=where,
            what=f"{name!r} is not external (router:external is false)",
            fix=_list_external(context),
        )
    elif len(found) > 1:
        yield _several(context, where, found, len(external))
    else:
        yield from _exhausted(context, where, external[0])


def _none(context: CheckContext, where: str) -> Iterator[Diagnostic]:
    fix = _list_external(context)
    if context.release < OPTIONAL_SINCE:
        what, why = f"is missing; {context.cluster.release} requires it", "the installer refuses the file"
        yield Diagnostic(code="external-network.unset", where=where, what=what, why=why, fix=fix)
    elif not context.cluster.machines_subnets:
        yield Diagnostic(
            code="external-network.unset",
            where=where,
            what=f"is missing, and so is a subnet of your own ({context.place('machines_subnets')})",
            why="the installer creates a network without a router: the machines reach nothing, and "
            "nobody reaches the API",
            fix=fix,
        )


def _list_external(context: CheckContext) -> str:
    return context.openstack("network", "list", "--external") + "  # and write one of these names"


def _external_names(context: CheckContext) -> list[str]:
    return sorted({network.name for network in listed(context, NetworkRecord, **{"router:external": True})})


def _others(context: CheckContext) -> str:
    names = _external_names(context)
    return f"; external networks: {', '.join(names)}" if names else "; these credentials see no external network"


def _several(context: CheckContext, where: str, found: Sequence[NetworkRecord], external: int) -> Diagnostic:
    kept = next(network for network in found if network.external)
    others = {network.id: network.name for network in found if network is not kept}
    own = all(network.project_id == context.cloud.project_id for network in found if network is not kept)
    ids = ", ".join(f"{network.id} of project {network.project_id}" for network in found)
    return Diagnostic(
        code="external-network.ambiguous",
        where=where,
        what=f"{len(found)} networks are called {context.cluster.external_network!r}: {ids}",
        why=SILENT if external == 1 else f"{SILENT}; then it uses any of them",
        fix=context.leave_name("network", others, kept.id, own=own),
        status=DiagnosticStatus.WARNING if external == 1 else DiagnosticStatus.ERROR,
    )


def _exhausted(context: CheckContext, where: str, network: NetworkRecord) -> Iterator[Diagnostic]:
    """Yield if the pool is exhausted; usually only administrators may read that."""
    try:
        availability = context.cloud.network.get(f"/network-ip-availabilities/{network.id}")
    except (NotAllowed, NotFound):
        return
    subnets = availability["network_ip_availability"]["subnet_ip_availability"]
    free = sum(subnet["total_ips"] - subnet["used_ips"] for subnet in subnets if subnet["ip_version"] == 4)
    needs = ["the bootstrap machine's floating IP"]
    needs += [] if context.cluster.machines_subnets else ["the router's gateway"]
    if free < len(needs):
        yield documented(
            code="external-network.full",
            where=where,
            what=f"{network.name!r} has {free} addresses left, {len(needs)} are needed for {' and '.join(needs)}",
            fix=context.openstack("floating", "ip", "list", "--status", "DOWN") + "  # and delete what nobody needs",
        )
