"""What OVN needs beyond Neutron's own rules: a floating IP on a port without a machine.

OVN translates the address of such a port only when another port's allowed address pairs have exactly this address; a
pair with a network around it is not enough.  OVN compares the address alone, so a pair with any MAC address counts.

Source: Neutron contributor documentation, "Virtual IPs" of OVN, and neutron/common/ovn/utils.py,
get_virtual_port_parents; cloudandheat/ch-k8s-lbaas#53; Red Hat's networking guide on allowed address pairs.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from openstack_prep.resources.addresses.address_pairs import DISTRIBUTED
from openstack_prep.resources.lists.neutron_records import PortRecord

DHCP = "network:dhcp"
AGENTS = ("dhcp", "reserved_dhcp_port")
"""How devices of DHCP agents begin."""
WHY = "OVN translates the address of an unattached port only when another port's allowed address pairs have it"


def runs_ovn(ports: Sequence[PortRecord]) -> bool | None:
    """Return whether OVN runs a network, by Neutron's own ports there; None if they do not show it.

    Only administrators see agents and the bindings of ports.  Up to Ussuri OVN's own port is also one of DHCP,
    but its device is not a DHCP agent's.
    """
    agents = [port.device_id.startswith(AGENTS) for port in ports if port.device_owner == DHCP]
    if any(port.device_owner == DISTRIBUTED for port in ports) or not all(agents):
        return True
    return False if agents else None


def networks_around(address: str, ports: Sequence[PortRecord]) -> list[str] | None:
    """Return the pairs of these ports with networks around an address, sorted; None if a pair has exactly it."""
    pairs = {pair.ip_address for port in ports for pair in port.allowed_address_pairs}
    around = sorted(each for each in pairs if ipaddress.ip_address(address) in ipaddress.ip_network(each))
    return None if any(ipaddress.ip_network(each).num_addresses == 1 for each in around) else around
