"""Floating IPs that install-config.yaml names: they exist, are free, and belong to this project.

Source: Networking API v2.0, "Floating IPs"; the OpenShift installer's validation of the platform
(installconfig/openstack/validation/platform.go): found by address alone, status DOWN, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

from openstack_prep.base import shell
from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.base.fields import is_address
from openstack_prep.openshift.check.context import CheckContext
from openstack_prep.openshift.check.network.topology import external_network, listed
from openstack_prep.reports.codes import documented
from openstack_prep.resources.lists.neutron_records import FloatingIPRecord

INGRESS_SINCE = 6


def floating_ips(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield what is wrong with the floating IPs, and which ones are not set."""
    cluster = context.cluster
    places: dict[str, str] = {}
    for of in ("ingress_floating_ip", "api_floating_ip"):  # the check of the file reports that both are equal
        address: str | None = getattr(cluster, of)
        if address and is_address(address):
            places[address] = context.place(of)
    for address, where in sorted(places.items(), key=lambda each: each[1]):
        yield from _one(context, where, address)
    if cluster.external_network and cluster.load_balancer != "UserManaged":
        yield from _missing(context)


def _one(context: CheckContext, where: str, address: str) -> Iterator[Diagnostic]:
    found = listed(context, FloatingIPRecord, floating_ip_address=address)
    mine = [floating_ip for floating_ip in found if floating_ip.project_id == context.cloud.project_id]
    if not found:
        yield Diagnostic(
            code="floating-ip.missing",
            where=where,
            what=f"{address} is not a floating IP of project {context.cloud.project_id}",
            why="the installer refuses it, or, when it skips its checks, fails after minutes",
            fix=_create(context),
        )
    elif not mine:
        yield Diagnostic(
            code="floating-ip.other-project",
            where=where,
            what=f"{address} belongs to project {found[0].project_id}, not to {context.cloud.project_id}",
            why="the installer does not check the owner: it takes the address from that project, or fails to attach it",
            fix=_create(context),
        )
    else:
        yield from _mine(context, where, mine[0])


def _mine(context: CheckContext, where: str, floating_ip: FloatingIPRecord) -> Iterator[Diagnostic]:
    address, network = floating_ip.address, external_network(context)
    beyond = network.id if network else floating_ip.network_id
    if floating_ip.port_id:
        yield documented(
            code="floating-ip.in-use",
            where=where,
            what=f"{address} is in use: it serves port {floating_ip.port_id} (status {floating_ip.status})",
            fix=context.openstack("floating", "ip", "unset", "--port", address) + "  # or name another",
        )
    elif floating_ip.port_forwardings:
        yield documented(
            code="floating-ip.in-use",
            where=where,
            what=f"{address} is in use: it has port forwardings, and with these it cannot be attached to a port",
            fix=_create(context),
        )
    elif floating_ip.status != "DOWN":
        yield documented(
            code="floating-ip.not-down",
            where=where,
            what=f"{address} serves no port, yet its status is {floating_ip.status}: left behind by something deleted",
            # only an agent changes the status, which Neutron cannot be asked to do (neutron 29.0.0, db/l3_db.py)
            fix=context.openstack("floating", "ip", "delete", address)
            + f" && {_create_on(context, beyond)}, and let the names lead there",
        )
    if network is not None and floating_ip.network_id != network.id:
        what = f"{address} is of network {floating_ip.network_id}, not of {network.name!r} ({network.id})"
        why = "the router of the machines has its gateway elsewhere: attaching it fails"
        yield Diagnostic(code="floating-ip.other-network", where=where, what=what, why=why, fix=_create(context))


def _create(context: CheckContext) -> str:
    network = external_network(context)
    if network is None:  # another check reports it
        return "create a floating IP on the external network, and write its address"
    return _create_on(context, network.id)


def _create_on(context: CheckContext, network_id: str) -> str:
    return context.openstack("floating", "ip", "create", network_id) + "  # and write the address that it returns"


def _free(context: CheckContext) -> list[str]:
    """Return the floating IPs of the project that nothing uses, and that neither the file nor a description names."""
    network, named = external_network(context), (context.cluster.api_floating_ip, context.cluster.ingress_floating_ip)
    return [
        each.address
        for each in listed(context, FloatingIPRecord, project_id=context.cloud.project_id)
        if network is not None and each.network_id == network.id and each.status == "DOWN" and not each.port_id
        if not (each.port_forwardings or each.description or each.tags) and each.address not in named
    ]


def _missing(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield which floating IP is not set; neither is needed where machines are reached without NAT."""
    cluster, free = context.cluster, iter(_free(context))
    if not cluster.api_floating_ip:
        yield Diagnostic(
            code="floating-ip.api-unset",
            where=context.place("api_floating_ip"),
            what="no floating IP is set",
            why="unless the machines' network is routed here, the installer waits 20 minutes for the API, then fails",
            fix=_set(context, next(free, "")),
            status=DiagnosticStatus.WARNING,
        )
    if not cluster.ingress_floating_ip:
        address, is_early = next(free, ""), context.release < INGRESS_SINCE
        attach = f"openstack-prep post-ipi --metadata {shell.quote(str(context.path.with_name('metadata.json')))}"
        attach += f" --ingress-ip {address or 'ADDRESS'} --wait 3600"
        create = "" if address else f"{_create(context).partition('  # ')[0]}  # and "
        yield Diagnostic(
            code="floating-ip.ingress-unset",
            where="ingress" if is_early else context.place("ingress_floating_ip"),
            what="the installer attaches no floating IP before 4.6" if is_early else "no floating IP is set",
            why="the ingress port stays without a floating IP: console and routes are unreachable from outside",
            fix=f"{create}attach it during the installation: {attach}"
            if is_early
            else f"{_set(context, address)}; or, during the installation: {attach}",
            status=DiagnosticStatus.WARNING,
        )


def _set(context: CheckContext, address: str) -> str:
    return f"write {address}, a floating IP of this project that nothing uses" if address else _create(context)
