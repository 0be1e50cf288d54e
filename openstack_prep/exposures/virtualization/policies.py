"""Bridges of the nodes as NodeNetworkConfigurationPolicy: pure functions.

Sources: kubernetes-nmstate 0.86 (deploy/crds: nodenetworkconfigurationpolicies; pkg/bridge/bridge.go gives the ports of
Linux bridges all VLANs); nmstate 2.2.37 (rust/src/lib/ifaces/linux_bridge.rs, ovs.rs, vlan.rs, base.rs: copy-mac-from,
since 2.2.13 ovn.rs, since 2.2.14 allow-extra-patch-ports).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from openstack_prep.base.raw import Values
from openstack_prep.exposures.virtualization.model import WORKERS, NodeBridge, OutsideNetwork, Virtualization

HOSTNAME = "kubernetes.io/hostname"
OVN_TYPES = ("localnet", "ovn-overlay")
"""Types of networks that OVN connects by a bridge mapping."""


def policies(settings: Virtualization) -> list[Values]:
    """Return the policies, one per bridge, or per bridge and node if the nodes have static addresses."""
    return [each for bridge in settings.bridges for each in _policies_of(settings, bridge)]


def _policies_of(settings: Virtualization, bridge: NodeBridge) -> Iterator[Values]:
    selector = dict(WORKERS if bridge.node_selector is None else bridge.node_selector)
    if bridge.ipv4 != "static":
        yield _policy(settings, bridge, bridge.name, selector, None)
        return
    for node, address in sorted((bridge.node_addresses or {}).items()):
        yield _policy(settings, bridge, f"{bridge.name}-{node}", {HOSTNAME: node}, address)


def _policy(
    settings: Virtualization, bridge: NodeBridge, name: str, selector: Mapping[str, str], address: str | None
) -> Values:
    state: Values = {}
    if bridge.type == "linux-bridge":
        state["interfaces"] = [*_vlan_interface(bridge), _linux_bridge(bridge, address)]
    elif bridge.interface:
        state["interfaces"] = [_ovs_bridge(bridge, bridge.interface)]
    if mappings := _mappings(settings.networks, bridge):
        state["ovn"] = {"bridge-mappings": mappings}
    return {
        "apiVersion": f"nmstate.io/{settings.nmstate_version}",
        "kind": "NodeNetworkConfigurationPolicy",
        "metadata": {"name": name},
        "spec": {"nodeSelector": dict(selector), "desiredState": state},
    }


def port_of(bridge: NodeBridge) -> str | None:
    """Return the interface that is the bridge's port: the nodes' own, or a VLAN interface of it."""
    return f"{bridge.interface}.{bridge.vlan}" if bridge.interface and bridge.vlan else bridge.interface


def _vlan_interface(bridge: NodeBridge) -> Iterator[Values]:
    if bridge.interface and bridge.vlan:
        vlan = {"base-iface": bridge.interface, "id": bridge.vlan}
        yield {"name": port_of(bridge), "type": "vlan", "state": "up", "vlan": vlan}


def _linux_bridge(bridge: NodeBridge, address: str | None) -> Values:
    """Return a Linux bridge; one with an address has the interface's MAC address, which DHCP and port security know."""
    port = port_of(bridge)
    return {
        "name": bridge.name,
        "type": "linux-bridge",
        "state": "up",
        **({"copy-mac-from": bridge.interface} if bridge.interface and bridge.ipv4 != "none" else {}),
        "ipv4": _ipv4(bridge, address),
        "ipv6": {"enabled": False},
        "bridge": {"options": {"stp": {"enabled": bridge.stp}}, "port": [{"name": port}] if port else []},
    }


def _ipv4(bridge: NodeBridge, address: str | None) -> Values:
    if bridge.ipv4 == "none":
        return {"enabled": False}
    if address is None:
        return {"enabled": True, "dhcp": True}
    ip, _, length = address.partition("/")
    return {"enabled": True, "dhcp": False, "address": [{"ip": ip, "prefix-length": int(length)}]}


def _ovs_bridge(bridge: NodeBridge, interface: str) -> Values:
    """Return an OVS bridge; OVN adds ports of its own to it, which nmstate must not remove."""
    options = {"stp": bridge.stp}
    return {
        "name": bridge.name,
        "type": "ovs-bridge",
        "state": "up",
        "bridge": {"allow-extra-patch-ports": True, "options": options, "port": [{"name": interface}]},
    }


def physical_network(network: OutsideNetwork) -> str:
    """Return the name of the bridge mapping that a network uses."""
    return network.physical_network or network.name


def _mappings(networks: Sequence[OutsideNetwork], bridge: NodeBridge) -> list[Values]:
    """Return the mappings to a bridge; networks of several VLANs share one."""
    mine = [each for each in networks if each.type in OVN_TYPES and each.bridge == bridge.name]
    names = dict.fromkeys(map(physical_network, mine))
    return [{"localnet": each, "bridge": bridge.name, "state": "present"} for each in names]
