"""cloud-init's network data (version 2) with the fixed addresses of virtual machines: pure functions.

Sources: cloud-init 22.4 and 26.2 (cloudinit/net/network_state.py, sysconfig.py, network_manager.py) and netplan 0.106,
which rendered these data for NetworkManager, networkd and ifcfg files. KubeVirt 1.9, vmi-create-admitter.go: at most
2048 bytes within a VirtualMachine; pkg/network/link/address.go: the pod network's gateway in the guest.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.base.raw import Values
from openstack_prep.exposures.virtualization.attaching import Attachment
from openstack_prep.exposures.virtualization.model import Machine, Virtualization

LONGEST = 2048
"""Bytes of network data that a VirtualMachine may contain; more needs a Secret."""
POD_GATEWAY = "10.0.2.1"
"""Gateway of the pod network with masquerade: the first address of 10.0.2.0/24, KubeVirt's default vmNetworkCIDR."""
FIRST, LAST = 50, 1000
"""Metrics of default routes; cloud-init passes the first one to NetworkManager since 24.4, whose own one is 100."""
DEFAULTS = {4: "0.0.0.0/0", 6: "::/0"}


def network_data(settings: Virtualization, machine: Machine, attached: Sequence[Attachment]) -> str:
    """Return the network data: interfaces outside by MAC address, and the pod network's by DHCP.

    Interfaces that network data omits remain without an address; the pod network's MAC address is not known here.
    """
    ethernets: Values = {}
    if machine.pod_network:
        ethernets[machine.pod_interface] = _pod_interface(settings, machine, attached)
    for index, each in enumerate(attached):
        name = f"outside{index}"
        ethernets[name] = {"match": {"macaddress": each.placed.mac}, "set-name": name, **_outside(machine, each)}
    return dump({"version": 2, "ethernets": ethernets})


def _pod_interface(settings: Virtualization, machine: Machine, attached: Sequence[Attachment]) -> Values:
    found: Values = {"dhcp4": True}
    if leaves_outside(machine, attached):
        found["dhcp4-overrides"] = {"route-metric": LAST}
        routes = [{"to": each, "via": POD_GATEWAY} for each in settings.cluster_networks if ":" not in each]
        found |= {"routes": routes} if routes else {}
    return found


def leaves_outside(machine: Machine, attached: Sequence[Attachment]) -> bool:
    """Whether the default route of IPv4 leads outside."""
    return machine.default_route == "outside" and any(_is_gateway(each, 4) for each in attached)


def _is_gateway(attached: Attachment, version: int) -> bool:
    gateway = attached.network.gateway
    return gateway is not None and ipaddress.ip_address(gateway).version == version


def _outside(machine: Machine, attached: Attachment) -> Values:
    network = attached.network
    found: Values = {"dhcp4": False, "dhcp6": False, "addresses": [attached.address]}
    if network.mtu:
        found["mtu"] = network.mtu
    if routes := [*_routes(machine, attached)]:
        found["routes"] = routes
    if network.dns:
        found["nameservers"] = {"addresses": list(network.dns)}
    return found


def _routes(machine: Machine, attached: Attachment) -> Iterator[Values]:
    gateway = attached.network.gateway
    if gateway is not None and machine.default_route == "outside":
        yield {"to": DEFAULTS[ipaddress.ip_address(gateway).version], "via": gateway, "metric": FIRST}
