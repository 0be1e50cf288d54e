"""All checks of virtual machines' ways outside, and those of their exposures.

``where`` of a mistake is a field of the settings, such as ``networks[0].gateway``, or of an exposure, such as
``exposures[web].address``.

Sources: kubemacpool 0.51 (pkg/pool-manager/pool.go, virtualmachine_pool.go: a MAC address of the range is given to any
machine unless a machine has it already); KubeVirt 1.9 (pkg/network/link/mac.go; pkg/network/admitter/netiface.go: ports
are TCP or UDP); Kubernetes, pkg/apis/core/validation/validation.go (ValidateNonSpecialIP), Service v1, and the default
of --service-node-port-range; KEP 5707 (externalIPs). No Service answers at a multicast address, also beyond those.

Sources: kubernetes-nmstate 0.86 (deploy/crds); nmstate 2.2.37 (rust/src/lib/ifaces/inter_ifaces_controller.rs: one
controller per port; ovs.rs: an OVS bridge has no address; ip.rs; ovn.rs: one bridge per mapping).

Sources: KubeVirt 1.9 (pkg/network/admitter/netiface.go, binding.go; pkg/virt-api/webhooks/validating-webhook/admitters
/vmi-create-admitter.go: one source per volume, 2048 bytes of network data).

Sources: ovn-kubernetes 1.3 (helm/ovn-kubernetes/crds/k8s.ovn.org_clusteruserdefinednetworks.yaml with its CEL rules;
go-controller/pkg/config/cni.go, ValidateNetConfNameFields); CNI plugins 1.9 (plugins/main/bridge/bridge.go,
loadNetConf); KubeVirt 1.9 (pkg/network/admitter/netiface.go); nmstate 2.2.37 (rust/src/lib/ovn.rs).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from openstack_prep.base.errors import Mistake
from openstack_prep.base.fields import Text
from openstack_prep.base.multicast import is_multicast_mac
from openstack_prep.exposures.endpoint import HOST, LONGEST_NAME, ExposedPort, PlacedExposure
from openstack_prep.exposures.virtualization.manifests import (
    ID_SINCE,
    LONGEST,
    LONGEST_LABEL,
    OVN_TYPES,
    PLUGINS,
    POD,
    WAYS,
    Attachment,
    attachments,
    bridged,
    is_host,
    leaves_outside,
    namespaces_of,
    network_data,
    networks_of,
    physical_network,
    port_of,
    release,
    selector,
    served,
)
from openstack_prep.exposures.virtualization.settings import NodeBridge, OutsideNetwork, RenderedMachine, Virtualization
from openstack_prep.kubernetes.service_pools import LabelSelector, repeated, selector_findings
from openstack_prep.kubernetes.versions import minor_of

# --- finding ----------------------------------------------------------------------------------


LONGEST_INTERFACE = 15
"""Characters of an interface's name (IFNAMSIZ of Linux, include/uapi/linux/if.h, with the final zero byte)."""
INTERFACE = re.compile(r"(?!\.{1,2}\Z)[!-.0-9;-~]{1,15}")
"""Names of interfaces: Linux 6.12, net/core/dev.c, dev_valid_name, refuses spaces, slashes, colons, "." and ".."."""
MAPPING = re.compile(r"[!-+\-./0-9;-~]{1,253}")
"""Names of bridge mappings: ovn-kubernetes 1.3, physicalNetworkName, refuses commas and colons."""
BRIDGE = re.compile(r"[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?")

Finding = tuple[str, str]


def interface_findings(name: str) -> Iterator[Finding]:
    """Yield what is wrong with the name of an interface."""
    if not INTERFACE.fullmatch(name):
        fix = f"use at most {LONGEST_INTERFACE} characters without spaces, slashes and colons, such as eth1"
        yield f"{name!r} is not a name of an interface", fix


def bridge_findings(name: str) -> Iterator[Finding]:
    """Yield what is wrong with the name of a bridge to configure, which is also that of its policy."""
    if not BRIDGE.fullmatch(name):
        fix = f"use at most {LONGEST_INTERFACE} lower-case letters, digits and hyphens, such as br1"
        yield f"{name!r} is not a name of a bridge and of its policy", fix


def mapping_findings(name: str) -> Iterator[Finding]:
    """Yield what is wrong with the name of a bridge mapping."""
    if not MAPPING.fullmatch(name):
        fix = "use one without spaces, commas and colons, such as physnet1"
        yield f"{name!r} is not a name of a bridge mapping", fix


def label_mapping_findings(labels: Mapping[str, Text] | None) -> Iterator[Finding]:
    """Yield what is wrong with labels and their values."""
    if labels:
        yield from selector_findings((LabelSelector(match_labels=labels),))


# --- bridge -----------------------------------------------------------------------------------


Findings = Iterable[tuple[str, str, str]]
OF_OVN = ("br-ex", "br-int")
"""Bridges of ovn-kubernetes, which nothing else may configure."""


def bridge_mistakes(settings: Virtualization) -> Iterator[Mistake]:
    """Yield all mistakes of the bridges."""
    yield from repeated("bridges", [each.name for each in settings.bridges])
    for index, bridge in enumerate(settings.bridges):
        for rule in BRIDGE_RULES:
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
        if not any(network.type in OVN_TYPES and network.bridge == bridge.name for network in settings.networks):
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


BRIDGE_RULES: tuple[Callable[[Virtualization, NodeBridge], Findings], ...] = (
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


# --- machine ----------------------------------------------------------------------------------


Inside = tuple[Virtualization, Sequence[PlacedExposure], Sequence[Attachment]]
"""The settings, the exposures, and the interfaces of a machine in networks outside."""


def machine_mistakes(settings: Virtualization, placed: Sequence[PlacedExposure]) -> Iterator[Mistake]:
    """Yield all mistakes of the machines."""
    yield from repeated("machines", [each.name for each in settings.machines])
    attached = attachments(settings, placed)
    for index, machine in enumerate(settings.machines):
        inside = (settings, placed, [attachment for attachment in attached if attachment.machine == machine.name])
        for rule in MACHINE_RULES:
            for field, what, fix in rule(machine, inside):
                yield Mistake(f"machines[{index}].{field}", what, fix)
    yield from _default_routes(settings, attached)


def _exposed(machine: RenderedMachine, inside: Inside) -> Findings:
    _, placed, _ = inside
    names = {exposure.exposure.target.virtual_machine for exposure in placed if exposure.exposure.how in WAYS}
    if machine.name not in names:
        fix = "correct the name, or remove the machine"
        yield "name", f"no exposure leads to virtual machine {machine.name}", fix


def _complete(machine: RenderedMachine, inside: Inside) -> Findings:
    settings, _, attached = inside
    whole = machine.whole
    if whole is None:
        return
    if (whole.container_disk is None) == (whole.claim is None):
        yield "whole", "a machine has one disk", "set exactly one of container_disk and claim"
    if whole.container_disk and not re.fullmatch(r"[!-~]+", whole.container_disk):
        yield "whole.container_disk", f"{whole.container_disk!r} is not an image", "use one such as quay.io/org/image:1"
    for field, name in (("claim", whole.claim), ("user_data_secret", whole.user_data_secret)):
        if name and not re.fullmatch(HOST, name):
            yield f"whole.{field}", f"{name!r} is not a DNS name", "use lower-case letters, digits, hyphens and dots"
    if machine.interfaces == "replace":
        yield "interfaces", "replace only applies to a patch", "remove it, or remove whole"
    if not all(attachment.placed.mac for attachment in attached):
        return
    length = len(network_data(settings, machine, attached).encode())
    if length > LONGEST:
        what = f"the network data has {length} bytes, and a VirtualMachine may contain {LONGEST}"
        yield "whole", what, "list fewer DNS servers and cluster_networks"


def _on_the_pod_network(machine: RenderedMachine, inside: Inside) -> Findings:
    _, placed, _ = inside
    for what, fix in interface_findings(machine.pod_interface):
        yield "pod_interface", what, fix
    if machine.pod_network:
        return
    names = [
        exposure.exposure.name
        for exposure in served(placed)
        if exposure.exposure.target.virtual_machine == machine.name
    ]
    if names:
        what = f"Services lead to the pod network, as exposure {names[0]} requires"
        yield "pod_network", what, "remove it, or expose the machine with how: bridge"
    if machine.default_route == "pod":
        yield "default_route", "the machine has no pod network", "remove it, or set pod_network: true"


def _labelled(machine: RenderedMachine, inside: Inside) -> Findings:
    for what, fix in label_mapping_findings(machine.labels):
        yield "labels", what, fix
    if machine.labels is not None and not machine.labels:
        yield "labels", "are empty, and a Service would select nothing", "remove it, or add a label"


MACHINE_RULES: tuple[Callable[[RenderedMachine, Inside], Findings], ...] = (
    _exposed,
    _complete,
    _on_the_pod_network,
    _labelled,
)


def _default_routes(settings: Virtualization, attached: Sequence[Attachment]) -> Iterator[Mistake]:
    """Yield exposures that give a machine a second default route."""
    seen: dict[tuple[str, int], str] = {}
    for attachment in attached:
        gateway = attachment.network.gateway
        if gateway is None or settings.machine(attachment.machine).default_route != "outside":
            continue
        key = (attachment.machine, ipaddress.ip_address(gateway).version)
        if seen.setdefault(key, attachment.network.name) != attachment.network.name:
            what = (
                f"{attachment.machine} would have default routes by networks {seen[key]} and {attachment.network.name}"
            )
            fix = "remove the gateway of one network, or set default_route: pod for the machine"
            yield Mistake(f"exposures[{attachment.placed.exposure.name}].address", what, fix)


# --- network ----------------------------------------------------------------------------------


RESERVED = (POD, "ovn-kubernetes")
"""The pod network's name in virtual machines, and ovn-kubernetes' own names."""
LEAST_MTU_OF_IPV6 = 1280


def network_mistakes(settings: Virtualization, placed: Sequence[PlacedExposure]) -> Iterator[Mistake]:
    """Yield all mistakes of the networks."""
    yield from repeated("networks", [each.name for each in settings.networks])
    attached = attachments(settings, placed)
    for index, network in enumerate(settings.networks):
        for rule in NETWORK_RULES:
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
    missing = {attachment.namespace for attachment in attached if attachment.network == network}.difference(theirs)
    for each in sorted(missing):
        yield "namespaces", f"{each} is missing, which has a virtual machine in this network", "add it"
    for each in sorted({namespace for namespace in network.namespaces if network.namespaces.count(namespace) > 1}):
        yield "namespaces", f"{each} is listed twice", "list it once"


NETWORK_RULES: tuple[Callable[[Virtualization, OutsideNetwork, Sequence[Attachment]], Findings], ...] = (
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


# --- rules ------------------------------------------------------------------------------------


SERVICE_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
"""Names of Services, RFC 1035: the rule of all releases."""
RESERVED_MAC = "02:00:00:00:00:00"
"""The MAC address of KubeVirt's bridge within pods."""
NODE_PORTS = range(30000, 32768)
DEPRECATED, GATED = 36, 40
"""Kubernetes 1.N that warns about externalIPs, and the one that is planned to disable them."""


def mistakes(settings: Virtualization, placed: Sequence[PlacedExposure]) -> Iterator[Mistake]:
    """Yield all mistakes of the settings and of the exposures that lead to virtual machines."""
    yield from bridge_mistakes(settings)
    yield from network_mistakes(settings, placed)
    yield from machine_mistakes(settings, placed)
    yield from _pool(settings)
    for exposure in sorted(placed, key=lambda one: one.exposure.name):
        for rule in RULES:
            for field, what, fix in rule(settings, exposure):
                yield Mistake(f"exposures[{exposure.exposure.name}].{field}", what, fix)
    yield from _given_twice(settings, placed)


def _pool(settings: Virtualization) -> Iterator[Mistake]:
    pool = settings.mac_pool
    if pool is None:
        return
    for field, mac in (("first", pool.first), ("last", pool.last)):
        if is_multicast_mac(mac):
            what = f"{mac} is a multicast address, which kubemacpool refuses"
            yield Mistake(f"mac_pool.{field}", what, "use an even first byte, such as 02")
    if pool.first >= pool.last:
        what = f"{pool.last} is not above first ({pool.first}), which kubemacpool requires"
        yield Mistake("mac_pool.last", what, "correct the range")


# --- each exposure ------------------------------------------------------------------------


def _possible(settings: Virtualization, placed: PlacedExposure) -> Findings:
    exposure = placed.exposure
    if exposure.target.virtual_machine and exposure.how not in WAYS:
        fix = "set how: bridge, and floating_ip for a floating IP that leads to the machine's address"
        yield "how", f"{exposure.how} does not lead to a virtual machine", fix
    if exposure.how == "bridge" and not exposure.target.virtual_machine:
        yield "how", "bridge leads to virtual machines only", "set target.virtual_machine, or another way"


def _attached(settings: Virtualization, placed: PlacedExposure) -> Findings:
    if not bridged([placed]):
        return
    if placed.mac is None and placed.exposure.pool:  # the exposure itself reports that it has no pool
        yield "how", "a virtual machine on a bridge needs a MAC address, and none is reserved", "reserve one for it"
    if placed.address is None:  # reported by the exposure, or by its pool
        return
    address = ipaddress.ip_address(placed.address)
    networks = networks_of(settings, placed)
    if not networks:
        known = ", ".join(f"{each.name} {each.cidr}" for each in settings.networks) or "none"
        what = f"{address} is in none of the networks ({known})"
        yield "address", what, "choose an address of a network, or declare its network"
    for network in networks:
        if str(address) == network.gateway:
            yield "address", f"{address} is the gateway of network {network.name}", "choose another address"
        elif not is_host(address, ipaddress.ip_network(network.cidr)):
            what = f"{address} is network {network.name} itself or its broadcast address"
            yield "address", what, "choose another address"


def _not_translated(settings: Virtualization, placed: PlacedExposure) -> Findings:
    for port in placed.exposure.ports if bridged([placed]) else ():
        if port.inner != port.port:
            what = f"port {port} cannot lead to {port.inner}: on a bridge nothing translates ports"
            yield "ports", what, "remove target, or let the machine listen on this port"
        if port.node_port:
            yield "ports", f"node_port of {port} only applies to Services", "remove it"


def _mac(settings: Virtualization, placed: PlacedExposure) -> Findings:
    mac, pool = placed.mac, settings.mac_pool
    if mac is None or not bridged([placed]):
        return
    if is_multicast_mac(mac) or mac == RESERVED_MAC:
        fix = "reserve another one, such as 06:00:00:00:00:01"
        yield "mac", f"{mac} is {'a multicast' if is_multicast_mac(mac) else 'a reserved'} address", fix
    elif pool and pool.first <= mac <= pool.last:
        what = f"{mac} is in kubemacpool's range {pool.first} to {pool.last}, and another machine may get it"
        yield "mac", what, "reserve one outside of the range, or declare the cluster's own range in mac_pool"


def _as_a_service(settings: Virtualization, placed: PlacedExposure) -> Findings:
    exposure = placed.exposure
    if not served([placed]):
        return
    if not SERVICE_NAME.fullmatch(exposure.name):
        yield "name", f"{exposure.name!r} is not a name of a Service", "begin it with a letter, and use at most 63"
    if exposure.how == "external-ip":
        yield from _external_ip(placed)
    if not selector(settings, exposure.target.virtual_machine or ""):
        what = f"KubeVirt {settings.kubevirt_version} adds no label with the name of a virtual machine"
        yield "target", what, f"declare {exposure.target.virtual_machine} in machines with the labels of its template"
    for index, port in enumerate(exposure.ports):
        yield from _service_port(placed, port, exposure.ports[:index])


def _external_ip(placed: PlacedExposure) -> Findings:
    if placed.address is None:  # reported by the exposure, or by its pool
        return
    address = ipaddress.ip_address(placed.address)
    if address.is_unspecified or address.is_loopback or address.is_link_local or address.is_multicast:
        fix = "choose an address of a network of the nodes"
        yield "address", f"{address} cannot be an external IP", fix


def _service_port(placed: PlacedExposure, port: ExposedPort, before: Sequence[ExposedPort]) -> Findings:
    if port.protocol == "sctp":
        yield "ports", f"KubeVirt does not forward {port}", "use tcp or udp, or how: bridge"
    if port.key in [each.key for each in before]:
        yield "ports", f"{port} is listed twice", "list it once"
    if port.node_port is None:
        return
    if placed.exposure.how == "external-ip":
        yield "ports", f"node_port of {port} does not apply to external-ip", "remove it"
    elif (port.protocol, port.node_port) in [(each.protocol, each.node_port) for each in before]:
        yield "ports", f"node_port {port.node_port} is used twice", "give each port its own"


RULES: tuple[Callable[[Virtualization, PlacedExposure], Findings], ...] = (
    _possible,
    _attached,
    _not_translated,
    _mac,
    _as_a_service,
)


def _given_twice(settings: Virtualization, placed: Sequence[PlacedExposure]) -> Iterator[Mistake]:
    """Yield MAC addresses and interfaces that two exposures claim."""
    macs: dict[str, str] = {}
    interfaces: dict[tuple[str, str], str] = {}
    for attachment in attachments(settings, placed):
        name, mac = attachment.placed.exposure.name, attachment.placed.mac
        if mac is not None and macs.setdefault(mac, name) != name:
            yield Mistake(f"exposures[{name}].mac", f"{mac} is also that of {macs[mac]}", "reserve another one")
        other = interfaces.setdefault((attachment.machine, attachment.network.name), name)
        if other != name:
            what = f"{attachment.machine} is attached to network {attachment.network.name} by {other} already"
            yield Mistake(f"exposures[{name}].target", what, f"add the ports to exposure {other}")


# --- warnings -----------------------------------------------------------------------------


def warnings(
    settings: Virtualization, placed: Sequence[PlacedExposure], kubernetes_version: str | None = None
) -> Iterator[str]:
    """Yield warnings about valid settings, for a version of Kubernetes such as v1.36.1+rke2r1, if it is known."""
    minor = minor_of(kubernetes_version)
    for exposure in served(placed):
        name, machine = exposure.exposure.name, exposure.exposure.target.virtual_machine or ""
        if exposure.exposure.how == "external-ip":
            yield from _about_external_ips(name, minor)
        for port in exposure.exposure.ports:
            if port.node_port and port.node_port not in NODE_PORTS:
                what = f"exposures[{name}]: node_port {port.node_port} is outside of 30000-32767, the default range"
                yield f"{what}; the API server needs service-node-port-range"
        yield from _about_names(settings, name, machine)
        attached = [one for one in attachments(settings, placed) if one.machine == machine]
        if leaves_outside(settings.machine(machine), attached) and not settings.cluster_networks:
            what = f"exposures[{name}]: {machine} answers pods by its default route outside, so that answers get lost"
            yield f"{what}; list the networks of pods, Services and nodes in cluster_networks"
    if settings.nmstate_version == "v1alpha1":
        yield "nmstate_version: kubernetes-nmstate 0.84 and later have no v1alpha1; use v1"


def _about_external_ips(name: str, minor: int | None) -> Iterator[str]:
    fix = "use how: metallb, cilium or kube-vip"
    if minor is not None and minor >= GATED:
        yield f"exposures[{name}]: Kubernetes 1.{GATED} and later are planned to ignore externalIPs; {fix}"
    elif minor is None or minor >= DEPRECATED:
        yield f"exposures[{name}]: externalIPs is deprecated since Kubernetes 1.{DEPRECATED}; {fix}"


def _about_names(settings: Virtualization, name: str, machine: str) -> Iterator[str]:
    """Yield machines whose label is not unique: before KubeVirt 1.7 it is the first part of the name."""
    known = release(settings)
    short = machine.rpartition("/")[2]
    if settings.machine(machine).labels or (known is not None and known >= ID_SINCE):
        return
    if "." in short or len(short) > LONGEST_LABEL:
        what = f"exposures[{name}]: the Service selects every virtual machine whose name begins like {short}"
        yield f"{what}; declare kubevirt_version '1.7' or later, or labels of the machine"
