"""Floating IPs on ports without a machine: with OVN they work only when some port's pairs have the address.

OVN compares the address alone, so a pair with any MAC address counts here.

Source: Neutron contributor documentation, "Virtual IPs" of OVN, and neutron/common/ovn/utils.py,
get_virtual_port_parents; cloudandheat/ch-k8s-lbaas#53; Red Hat's networking guide on allowed address pairs (the
pair must be the address itself, not a network around it).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence

from openstack_prep.base.diagnostic import Diagnostic, Status
from openstack_prep.base.raw import Raw
from openstack_prep.openshift.check.context import CheckContext
from openstack_prep.openshift.check.network.topology import listed
from openstack_prep.resources.addresses.address_pairs import DISTRIBUTED
from openstack_prep.resources.lists import installer_names as naming

DHCP = "network:dhcp"
AGENTS = ("dhcp", "reserved_dhcp_port")
"""How devices of DHCP agents begin."""
_VIRTUAL = re.compile(r"(.*)-(?:api|ingress)-port")


def ovn(context: CheckContext) -> Iterator[Diagnostic]:
    """Yield the floating IPs of the project that no machine can answer for."""
    project_id = context.cloud.project_id
    ports = {port["id"]: port for port in listed(context, "ports", project_id=project_id)}
    for raw in listed(context, "floatingips", project_id=project_id):
        port = ports.get(raw["port_id"] or "")
        if port is not None and not port["device_owner"]:
            yield from _unattached(context, raw, port)


def _unattached(context: CheckContext, raw: Raw, port: Raw) -> Iterator[Diagnostic]:
    on_network = listed(context, "ports", network_id=port["network_id"])
    if _runs(on_network) is False:
        return
    address = raw["fixed_ip_address"]
    pairs = {pair["ip_address"] for each in on_network for pair in each["allowed_address_pairs"]}
    around = sorted(each for each in pairs if ipaddress.ip_address(address) in ipaddress.ip_network(each))
    if any(ipaddress.ip_network(each).num_addresses == 1 for each in around):
        return
    sure = _runs(on_network)
    what = f"{raw['floating_ip_address']} serves {address}, which no machine has and no port's pairs allow"
    what += f" (a network around it does, {', '.join(around)}: not enough)" if around else ""
    why = "OVN translates the address of an unattached port only when another port's allowed address pairs have it"
    yield Diagnostic(
        code="pairs.missing",
        where=f"port {port['name']} {port['id']}".replace("  ", " "),
        what=what,
        why=why if sure else f"if this cloud runs OVN, which these credentials do not show: {why}",
        fix=_fix(context, port, address),
        status=Status.ERROR if sure else Status.WARNING,
    )


def _runs(ports: Sequence[Raw]) -> bool | None:
    """Whether OVN runs a network, by Neutron's own ports there; None if they do not show it.

    Only administrators see agents and the bindings of ports.  Up to Ussuri OVN's own port is also one of DHCP,
    but its device is not a DHCP agent's.
    """
    agents = [port["device_id"].startswith(AGENTS) for port in ports if port["device_owner"] == DHCP]
    if any(port["device_owner"] == DISTRIBUTED for port in ports) or not all(agents):
        return True
    return False if agents else None


def _fix(context: CheckContext, port: Raw, address: str) -> str:
    infra_id = _VIRTUAL.fullmatch(port["name"])
    if infra_id and naming.is_infra_id(infra_id[1]):
        cloud = f"--os-cloud {context.cloud.name}"
        return f"openstack-prep post-ipi {cloud} --infra-id {infra_id[1]} --vip {address}"
    return (
        context.openstack("port", "set", "--allowed-address", f"ip-address={address}", "PORT") + "  # of each machine"
    )
