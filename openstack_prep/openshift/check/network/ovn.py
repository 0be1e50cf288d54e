"""Floating IPs on ports without a machine: with OVN they work only when some port's pairs have the address."""

from __future__ import annotations

import re
from collections.abc import Iterator

from openstack_prep.base import shell
from openstack_prep.base.diagnostic import Diagnostic, DiagnosticStatus
from openstack_prep.clusters import installer_names as naming
from openstack_prep.neutron.rules import WHY, networks_around, runs_ovn
from openstack_prep.openshift.check.context import CheckContext
from openstack_prep.openshift.check.network.topology import listed
from openstack_prep.resources.lists.neutron_records import FloatingIPRecord, PortRecord

_VIRTUAL = re.compile(r"(.*)-(?:api|ingress)-port")


def ovn(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield the floating IPs of the project that no machine can answer for."""
    project_id = context.cloud.project_id
    ports = {port.id: port for port in listed(context, PortRecord, project_id=project_id)}
    for floating_ip in listed(context, FloatingIPRecord, project_id=project_id):
        port = ports.get(floating_ip.port_id or "")
        if port is not None and not port.device_owner:
            yield from _unattached(context, floating_ip, port)


def _unattached(context: CheckContext, floating_ip: FloatingIPRecord, port: PortRecord) -> Iterator[Diagnostic]:
    on_network = listed(context, PortRecord, network_id=port.network_id)
    address, sure = floating_ip.fixed_ip_address or "", runs_ovn(on_network)
    around = networks_around(address, on_network)
    if sure is False or around is None:
        return
    what = f"{floating_ip.address} serves {address}, which no machine has and no port's pairs allow"
    what += f" (a network around it does, {', '.join(around)}: not enough)" if around else ""
    yield Diagnostic(
        code="pairs.missing",
        where=f"port {port.name} {port.id}".replace("  ", " "),
        what=what,
        why=WHY if sure else f"if this cloud runs OVN, which these credentials do not show: {WHY}",
        fix=_fix(context, port, address),
        status=DiagnosticStatus.ERROR if sure else DiagnosticStatus.WARNING,
    )


def _fix(context: CheckContext, port: PortRecord, address: str) -> str:
    infra_id = _VIRTUAL.fullmatch(port.name)
    if infra_id and naming.is_infra_id(infra_id[1]):
        words = ["--os-cloud", context.cloud.name, "--infra-id", infra_id[1], "--vip", address]
        return shell.join(["openstack-prep", "post-ipi", *words])
    added = f"port set --allowed-address ip-address={address} ID"
    return context.openstack("port", "list", "--network", port.network_id) + f"  # and, for each machine's: {added}"
