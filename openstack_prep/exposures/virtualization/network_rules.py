"""What CNI plugins and ovn-kubernetes refuse of networks outside.

Sources: ovn-kubernetes 1.3 (helm/ovn-kubernetes/crds/k8s.ovn.org_clusteruserdefinednetworks.yaml with its CEL rules;
go-controller/pkg/config/cni.go, ValidateNetConfNameFields); CNI plugins 1.9 (plugins/main/bridge/bridge.go,
loadNetConf); KubeVirt 1.9 (pkg/network/admitter/netiface.go); nmstate 2.2.37 (rust/src/lib/ovn.rs).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from openstack_prep.base.errors import Mistake
from openstack_prep.exposures.model import Placed
from openstack_prep.exposures.virtualization.attaching import Attachment, attachments, is_host, namespaces_of
from openstack_prep.exposures.virtualization.bridge_rules import Findings
from openstack_prep.exposures.virtualization.findings import interface_findings, mapping_findings
from openstack_prep.exposures.virtualization.machines import POD
from openstack_prep.exposures.virtualization.model import OutsideNetwork, Virtualization
from openstack_prep.exposures.virtualization.networks import PLUGINS
from openstack_prep.exposures.virtualization.policies import OVN_TYPES, physical_network
from openstack_prep.kubernetes.balancing.pools import repeated

RESERVED = (POD, "ovn-kubernetes")
"""The pod network's name in virtual machines, and ovn-kubernetes' own names."""
LEAST_MTU_OF_IPV6 = 1280


def network_mistakes(settings: Virtualization, placed: Sequence[Placed]) -> Iterator[Mistake]:
    """Yield all mistakes of the networks."""
    yield from repeated("networks", [each.name for each in settings.networks])
    attached = attachments(settings, placed)
    for index, network in enumerate(settings.networks):
        for rule in RULES:
            for field, what, fix in rule(settings, network, attached):
                yield Mistake(f"networks[{index}].{field}", what, fix)
    yield from _overlaps(settings)
    yield from _mapped_twice(settings)


def _named(settings: Virtualization, network: OutsideNetwork, attached: Sequence[Attachment]) -> Findings:
    if network.name in RESERVED:
        yield "name", f"{network.name} is the name of a network of every cluster", "choose another name"


def _on_a_bridge(settings: Virtualization, network: OutsideNetwork, attached: Sequence[Attachment]) -> Findings:
    if network.type not in PLUGINS:
        return
    if network.bridge is None:
        yield "bridge", f"is missing for type {network.type}", "name a bridge of bridges, or one that the nodes have"
        return
    if network.physical_network:
        fix = "remove it, or set type: localnet"
        yield "physical_network", f"does not apply to type {network.type}", fix
    bridge = settings.bridge(network.bridge)
    if bridge is None:
        for what, fix in interface_findings(network.bridge):
            yield "bridge", what, fix
    elif bridge.type != "linux-bridge":
        fix = "set type: localnet, or refer to a bridge of type linux-bridge"
        yield "bridge", f"{bridge.name} is an OVS bridge, and type {network.type} requires a Linux bridge", fix
    elif bridge.vlan and network.vlan:
        what = f"the bridge has VLAN {bridge.vlan} of its interface already, and would get frames with two tags"
        yield "vlan", what, "remove it here or from the bridge"


def _by_ovn(settings: Virtualization, network: OutsideNetwork, attached: Sequence[Attachment]) -> Findings:
    if network.type not in OVN_TYPES:
        return
    for what, fix in mapping_findings(physical_network(network)):
        yield "physical_network", what, fix
    if not network.mac_spoof_check:
        yield "mac_spoof_check", f"does not apply to type {network.type}", "remove it"
    bridge = settings.bridge(network.bridge)
    if bridge is None:
        if network.bridge:
            fix = "declare it in bridges with type: ovs-bridge, or remove it if the nodes have the mapping"
            yield "bridge", f"{network.bridge} is not in bridges", fix
    elif bridge.type != "ovs-bridge":
        fix = "set type: bridge, or refer to a bridge of type ovs-bridge"
        yield "bridge", f"{bridge.name} is a Linux bridge, and type {network.type} requires an OVS bridge", fix


def _addressed(settings: Virtualization, network: OutsideNetwork, attached: Sequence[Attachment]) -> Findings:
    cidr = ipaddress.ip_network(network.cidr)
    if cidr.version == 6 and network.mtu and network.mtu < LEAST_MTU_OF_IPV6:
        yield "mtu", f"{network.mtu} is below {LEAST_MTU_OF_IPV6}, which IPv6 requires", "raise it"
    if network.gateway is None:
        return
    gateway = ipaddress.ip_address(network.gateway)
    fix = "use the router's address in this network"
    if gateway not in cidr:
        yield "gateway", f"{gateway} is not in {cidr}", fix
    elif not is_host(gateway, cidr):
        yield "gateway", f"{gateway} is the network or its broadcast address", fix


def _in_namespaces(settings: Virtualization, network: OutsideNetwork, attached: Sequence[Attachment]) -> Findings:
    theirs = namespaces_of(network, attached)
    if not theirs:
        yield "namespaces", "no exposure uses this network", "list the namespaces that get it, or remove the network"
    missing = {each.namespace for each in attached if each.network == network}.difference(theirs)
    for each in sorted(missing):
        yield "namespaces", f"{each} is missing, which has a virtual machine in this network", "add it"
    for each in sorted({each for each in network.namespaces if network.namespaces.count(each) > 1}):
        yield "namespaces", f"{each} is listed twice", "list it once"


RULES: tuple[Callable[[Virtualization, OutsideNetwork, Sequence[Attachment]], Findings], ...] = (
    _named,
    _on_a_bridge,
    _by_ovn,
    _addressed,
    _in_namespaces,
)


def _overlaps(settings: Virtualization) -> Iterator[Mistake]:
    """Yield networks that share addresses: the address of an exposure decides on its network."""
    indexed = [(index, ipaddress.ip_network(each.cidr)) for index, each in enumerate(settings.networks)]
    for (first, one), (second, other) in combinations(indexed, 2):
        if one.version == other.version and one.overlaps(other):
            what = f"{other} overlaps with {one} of {settings.networks[first].name}"
            yield Mistake(f"networks[{second}].cidr", what, "give each network its own addresses")


def _mapped_twice(settings: Virtualization) -> Iterator[Mistake]:
    """Yield mappings to two bridges, of which OVN has one only."""
    bridges: dict[str, str] = {}
    for index, network in enumerate(settings.networks):
        if network.type not in OVN_TYPES or network.bridge is None:
            continue
        name = physical_network(network)
        if bridges.setdefault(name, network.bridge) != network.bridge:
            what = f"{name} is mapped to bridge {bridges[name]} already"
            yield Mistake(f"networks[{index}].physical_network", what, "use another name for this bridge")
