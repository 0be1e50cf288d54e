"""What nmstate refuses of the nodes' bridges, or applies in another way than meant.

Sources: kubernetes-nmstate 0.86 (deploy/crds); nmstate 2.2.37 (rust/src/lib/ifaces/inter_ifaces_controller.rs: one
controller per port; ovs.rs: an OVS bridge has no address; ip.rs; ovn.rs: one bridge per mapping).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator

from openstack_prep.base.errors import Mistake
from openstack_prep.exposures.model import HOST, LONGEST_NAME
from openstack_prep.exposures.virtualization.findings import (
    LONGEST_INTERFACE,
    bridge_findings,
    interface_findings,
    label_mapping_findings,
)
from openstack_prep.exposures.virtualization.model import NodeBridge, Virtualization
from openstack_prep.exposures.virtualization.policies import OVN_TYPES, port_of
from openstack_prep.kubernetes.balancing.pools import repeated

Findings = Iterable[tuple[str, str, str]]
OF_OVN = ("br-ex", "br-int")
"""Bridges of ovn-kubernetes, which nothing else may configure."""


def bridge_mistakes(settings: Virtualization) -> Iterator[Mistake]:
    """Yield all mistakes of the bridges."""
    yield from repeated("bridges", [each.name for each in settings.bridges])
    for index, bridge in enumerate(settings.bridges):
        for rule in RULES:
            for field, what, fix in rule(settings, bridge):
                yield Mistake(f"bridges[{index}].{field}", what, fix)
    yield from _shared_ports(settings)


def _names(settings: Virtualization, bridge: NodeBridge) -> Findings:
    for what, fix in bridge_findings(bridge.name):
        yield "name", what, fix
    if bridge.interface is None:
        return
    for what, fix in interface_findings(bridge.interface):
        yield "interface", what, fix
    if bridge.interface in OF_OVN:
        fix = "omit interface, and set name: br-ex and type: ovs-bridge to use it"
        yield "interface", f"{bridge.interface} is a bridge of ovn-kubernetes", fix
    elif settings.bridge(bridge.interface):
        yield "interface", f"{bridge.interface} is itself a bridge of bridges", "name an interface of the nodes"
    port = port_of(bridge) or ""
    if bridge.vlan and len(bridge.interface) <= LONGEST_INTERFACE < len(port):
        what = f"the VLAN interface {port} would have more than {LONGEST_INTERFACE} characters"
        yield "vlan", what, "set the vlan of the network instead"


def _of_linux(settings: Virtualization, bridge: NodeBridge) -> Findings:
    if bridge.type == "linux-bridge" and bridge.interface is None:
        yield "interface", "a Linux bridge without an interface leads nowhere", "name an interface of the nodes"


def _of_ovs(settings: Virtualization, bridge: NodeBridge) -> Findings:
    if bridge.type != "ovs-bridge":
        return
    if bridge.vlan:
        yield "vlan", "does not apply to an OVS bridge", "set the vlan of the network instead"
    if bridge.ipv4 != "none":
        yield "ipv4", "an OVS bridge has no address itself", "remove it, or use another interface for the nodes"
    if bridge.interface is None:
        if bridge.stp:
            yield "stp", "does not apply to a bridge that exists", "remove it"
        if not any(each.type in OVN_TYPES and each.bridge == bridge.name for each in settings.networks):
            what = "has no interface, and no network of type localnet or ovn-overlay refers to it"
            yield "name", f"{bridge.name} {what}", "set interface, or refer to it in the bridge of a network"


def _addresses(settings: Virtualization, bridge: NodeBridge) -> Findings:
    given = bridge.node_addresses or {}
    if bridge.ipv4 != "static":
        if given:
            yield "node_addresses", f"does not apply to ipv4: {bridge.ipv4}", "remove it, or set ipv4: static"
        return
    if not given:
        yield "node_addresses", "is missing for ipv4: static", "give each node its address, such as node1: 192.0.2.5/24"
    if bridge.node_selector is not None:
        yield "node_selector", "does not apply to ipv4: static", "remove it; node_addresses names the nodes"
    holders: dict[str, str] = {}
    for node, text in given.items():
        yield from _node_address(bridge, node, text)
        address = text.partition("/")[0]
        if address in holders:
            what = f"{address} of {node} is also the address of {holders[address]}"
            yield "node_addresses", what, "give each node its own address"
        holders.setdefault(address, node)


def _node_address(bridge: NodeBridge, node: str, text: str) -> Findings:
    if len(f"{bridge.name}-{node}") > LONGEST_NAME or not re.fullmatch(HOST, node):
        yield "node_addresses", f"{node!r} is not a name of a node", "use the label kubernetes.io/hostname of the node"
    fix = "write one with its prefix length, such as 192.0.2.5/24"
    try:
        found = ipaddress.IPv4Interface(text)
    except ValueError:
        yield "node_addresses", f"{text!r} of {node} is not an IPv4 address with a prefix length", fix
        return
    if not re.fullmatch(r"[0-9.]+/[0-9]{1,2}", text):
        yield "node_addresses", f"{text!r} of {node} has no prefix length", fix
    elif found.network.prefixlen < 31 and found.ip in (found.network[0], found.network[-1]):
        yield "node_addresses", f"{text} of {node} is the network or its broadcast address", fix


def _selector(settings: Virtualization, bridge: NodeBridge) -> Findings:
    for what, fix in label_mapping_findings(bridge.node_selector):
        yield "node_selector", what, fix


RULES: tuple[Callable[[Virtualization, NodeBridge], Findings], ...] = (
    _names,
    _of_linux,
    _of_ovs,
    _addresses,
    _selector,
)


def _shared_ports(settings: Virtualization) -> Iterator[Mistake]:
    """Yield interfaces that two bridges would have as ports on one node, by the labels that select nodes."""
    for index, bridge in enumerate(settings.bridges):
        for other in settings.bridges[:index]:
            if bridge.name == other.name or port_of(bridge) is None or port_of(bridge) != port_of(other):
                continue
            if bridge.ipv4 != "static" and other.ipv4 != "static" and _may_be_apart(bridge, other):
                continue
            what = f"{port_of(bridge)} is also the port of bridge {other.name}"
            yield Mistake(f"bridges[{index}].interface", what, "give each bridge its own interface or VLAN")


def _may_be_apart(bridge: NodeBridge, other: NodeBridge) -> bool:
    """Whether no node may have both bridges, which only the labels of the nodes decide."""
    return bool(bridge.node_selector and other.node_selector and bridge.node_selector != other.node_selector)
