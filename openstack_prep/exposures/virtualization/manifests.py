"""The files of virtual machines' ways outside: pure functions.

Sources: cloud-init 22.4 and 26.2 (cloudinit/net/network_state.py, sysconfig.py, network_manager.py) and netplan 0.106,
which rendered these data for NetworkManager, networkd and ifcfg files. KubeVirt 1.9, vmi-create-admitter.go: at most
2048 bytes within a VirtualMachine; pkg/network/link/address.go: the pod network's gateway in the guest.

Sources: KubeVirt 1.9 (staging/src/kubevirt.io/api/core/v1/types.go and schema.go; pkg/network/admitter;
pkg/virt-api/webhooks/validating-webhook/admitters/vms-admitter.go, vmi-create-admitter.go).

Sources: kubernetes-nmstate 0.86 (deploy/crds: nodenetworkconfigurationpolicies; pkg/bridge/bridge.go gives the ports of
Linux bridges all VLANs); nmstate 2.2.37 (rust/src/lib/ifaces/linux_bridge.rs, ovs.rs, vlan.rs, base.rs: copy-mac-from,
since 2.2.13 ovn.rs, since 2.2.14 allow-extra-patch-ports).

Sources: network-attachment-definition-client 1.7.7 (artifacts/networks-crd.yaml); CNI plugins (plugins/main/bridge);
ovn-kubernetes 1.3 (helm/ovn-kubernetes/crds/k8s.ovn.org_clusteruserdefinednetworks.yaml, and go-controller/pkg/config
/cni.go, pkg/util/multi_network.go, ValidateNetConf, for ovn-k8s-cni-overlay). The namespaced UserDefinedNetwork has no
topology Localnet there, so that networks outside are always ClusterUserDefinedNetworks.

Sources: KubeVirt's virtctl (pkg/virtctl/expose/expose.go of 0.36, 0.58, 1.5, 1.7 and 1.9), pkg/apimachinery/labels.go
(vmi.kubevirt.io/id since 1.7), pkg/virt-controller/services/template.go (vm.kubevirt.io/name since 0.51) and
pkg/util/net/dns/sanitize.go of 1.9; Kubernetes API, Service v1.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.base.raw import Raw, Values
from openstack_prep.exposures import services
from openstack_prep.exposures.endpoint import PlacedExposure, Way
from openstack_prep.exposures.services import ANNOTATIONS
from openstack_prep.exposures.virtualization.settings import (
    WORKERS,
    NodeBridge,
    OutsideNetwork,
    RenderedMachine,
    Virtualization,
    WholeMachine,
)
from openstack_prep.neutron.rules import Address, Block

# --- attachment -------------------------------------------------------------------------------


SERVICE_WAYS: tuple[Way, ...] = ("node-port", "external-ip", "metallb", "cilium", "kube-vip")
"""Ways by which a Service leads to the pod network of a virtual machine."""
WAYS: tuple[Way, ...] = ("bridge", *SERVICE_WAYS)


@dataclass(frozen=True)
class Attachment:
    """An interface of a virtual machine in a network outside."""

    placed: PlacedExposure
    network: OutsideNetwork

    @property
    def machine(self) -> str:
        """The virtual machine, as NAMESPACE/NAME."""
        return self.placed.exposure.target.virtual_machine or ""

    @property
    def namespace(self) -> str:
        return self.placed.exposure.target.namespace

    @property
    def address(self) -> str:
        """The address with the prefix length of the network."""
        return f"{self.placed.address}/{ipaddress.ip_network(self.network.cidr).prefixlen}"


def bridged(placed: Sequence[PlacedExposure]) -> list[PlacedExposure]:
    """Return the exposures that attach a virtual machine to a network outside, in the order of their names."""
    return _of_ways(placed, ("bridge",))


def served(placed: Sequence[PlacedExposure]) -> list[PlacedExposure]:
    """Return the exposures with a Service that leads to a virtual machine, in the order of their names."""
    return _of_ways(placed, SERVICE_WAYS)


def _of_ways(placed: Sequence[PlacedExposure], ways: Sequence[Way]) -> list[PlacedExposure]:
    mine = (
        exposure for exposure in placed if exposure.exposure.target.virtual_machine and exposure.exposure.how in ways
    )
    return sorted(mine, key=lambda each: each.exposure.name)


def networks_of(settings: Virtualization, placed: PlacedExposure) -> list[OutsideNetwork]:
    """Return the networks that contain the address of an exposure; exactly one if the settings are right."""
    if placed.address is None:
        return []
    address = ipaddress.ip_address(placed.address)
    return [network for network in settings.networks if address in ipaddress.ip_network(network.cidr)]


def is_host(address: Address, network: Block) -> bool:
    """Whether an address of a network is neither the network itself nor its broadcast address."""
    return network.version == 6 or network.prefixlen >= 31 or address not in (network[0], network[-1])


def attachments(settings: Virtualization, placed: Sequence[PlacedExposure]) -> list[Attachment]:
    """Return the interfaces of virtual machines in networks outside, in the order of the exposures' names."""
    return [
        Attachment(exposure, network) for exposure in bridged(placed) for network in networks_of(settings, exposure)[:1]
    ]


def namespaces_of(network: OutsideNetwork, attached: Sequence[Attachment]) -> list[str]:
    """Return the namespaces that get a network, sorted."""
    needed = {attachment.namespace for attachment in attached if attachment.network == network}
    return sorted(set(network.namespaces) or needed)


def by_machine(
    settings: Virtualization, attached: Sequence[Attachment]
) -> Iterator[tuple[RenderedMachine, tuple[Attachment, ...]]]:
    """Yield each virtual machine to render with its interfaces outside, in the order of the machines' names."""
    whole = {machine.name for machine in settings.machines if machine.whole}
    for name in sorted(whole | {attachment.machine for attachment in attached}):
        yield settings.machine(name), tuple(attachment for attachment in attached if attachment.machine == name)


# --- cloud init -------------------------------------------------------------------------------


LONGEST = 2048
"""Bytes of network data that a VirtualMachine may contain; more needs a Secret."""
POD_GATEWAY = "10.0.2.1"
"""Gateway of the pod network with masquerade: the first address of 10.0.2.0/24, KubeVirt's default vmNetworkCIDR."""
FIRST, LAST = 50, 1000
"""Metrics of default routes; cloud-init passes the first one to NetworkManager since 24.4, whose own one is 100."""
DEFAULTS = {4: "0.0.0.0/0", 6: "::/0"}


def network_data(settings: Virtualization, machine: RenderedMachine, attached: Sequence[Attachment]) -> str:
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


def _pod_interface(settings: Virtualization, machine: RenderedMachine, attached: Sequence[Attachment]) -> Values:
    found: Values = {"dhcp4": True}
    if leaves_outside(machine, attached):
        found["dhcp4-overrides"] = {"route-metric": LAST}
        routes = [
            {"to": cluster_network, "via": POD_GATEWAY}
            for cluster_network in settings.cluster_networks
            if ":" not in cluster_network
        ]
        found |= {"routes": routes} if routes else {}
    return found


def leaves_outside(machine: RenderedMachine, attached: Sequence[Attachment]) -> bool:
    """Whether the default route of IPv4 leads outside."""
    return machine.default_route == "outside" and any(_is_gateway(attachment, 4) for attachment in attached)


def _is_gateway(attached: Attachment, version: int) -> bool:
    gateway = attached.network.gateway
    return gateway is not None and ipaddress.ip_address(gateway).version == version


def _outside(machine: RenderedMachine, attached: Attachment) -> Values:
    network = attached.network
    found: Values = {"dhcp4": False, "dhcp6": False, "addresses": [attached.address]}
    if network.mtu:
        found["mtu"] = network.mtu
    if routes := [*_routes(machine, attached)]:
        found["routes"] = routes
    if network.dns:
        found["nameservers"] = {"addresses": list(network.dns)}
    return found


def _routes(machine: RenderedMachine, attached: Attachment) -> Iterator[Values]:
    gateway = attached.network.gateway
    if gateway is not None and machine.default_route == "outside":
        yield {"to": DEFAULTS[ipaddress.ip_address(gateway).version], "via": gateway, "metric": FIRST}


# --- machine ----------------------------------------------------------------------------------


POD = "default"
"""Name of the pod network and of its interface, as virtctl names them."""
TEMPLATE = "/spec/template/spec"


def append_patch(attached: Sequence[Attachment]) -> list[Values]:
    """Return a JSON patch that adds interfaces and networks to those that the machine has.

    KubeVirt refuses a second interface of the same name, so that the patch is never applied twice.
    """
    interfaces, networks = f"{TEMPLATE}/domain/devices/interfaces/-", f"{TEMPLATE}/networks/-"
    patch: list[Values] = []
    for attachment in attached:
        patch.append({"op": "add", "path": interfaces, "value": _interface(attachment)})
        patch.append({"op": "add", "path": networks, "value": _network(attachment)})
    return patch


def replace_patch(machine: RenderedMachine, attached: Sequence[Attachment]) -> Values:
    """Return a merge patch with all interfaces and networks of the machine."""
    interfaces, networks = _lists(machine, attached)
    spec = {"domain": {"devices": {"interfaces": interfaces}}, "networks": networks}
    return {"spec": {"template": {"spec": spec}}}


def whole_machine(
    settings: Virtualization, machine: RenderedMachine, whole: WholeMachine, attached: Sequence[Attachment]
) -> Values:
    """Return a VirtualMachine with its disk and cloud-init's network data."""
    namespace, _, name = machine.name.partition("/")
    interfaces, networks = _lists(machine, attached)
    disks = [{"name": each, "disk": {"bus": "virtio"}} for each in ("disk", "cloud-init")]
    domain = {
        "cpu": {"cores": whole.cores},
        "memory": {"guest": f"{whole.memory}Mi"},
        "devices": {"disks": disks, "interfaces": interfaces},
    }
    spec = {"domain": domain, "networks": networks, "volumes": _volumes(settings, machine, whole, attached)}
    metadata = {"metadata": {"labels": dict(machine.labels)}} if machine.labels else {}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"runStrategy": whole.run_strategy, "template": {**metadata, "spec": spec}},
    }


def _lists(machine: RenderedMachine, attached: Sequence[Attachment]) -> tuple[list[Values], list[Values]]:
    """Return the interfaces and the networks of a machine; the pod network is the first one."""
    interfaces: list[Values] = [{"name": POD, "masquerade": {}}] if machine.pod_network else []
    networks: list[Values] = [{"name": POD, "pod": {}}] if machine.pod_network else []
    return [*interfaces, *map(_interface, attached)], [*networks, *map(_network, attached)]


def _interface(attached: Attachment) -> Values:
    return {"name": attached.network.name, "bridge": {}, "macAddress": attached.placed.mac}


def _network(attached: Attachment) -> Values:
    name = attached.network.name
    return {"name": name, "multus": {"networkName": f"{attached.namespace}/{name}"}}


def _volumes(
    settings: Virtualization, machine: RenderedMachine, whole: WholeMachine, attached: Sequence[Attachment]
) -> list[Values]:
    claim = {"persistentVolumeClaim": {"claimName": whole.claim}}
    disk = claim if whole.claim else {"containerDisk": {"image": whole.container_disk}}
    cloud_init: Values = {"networkData": network_data(settings, machine, attached)}
    if whole.user_data_secret:
        cloud_init["secretRef"] = {"name": whole.user_data_secret}
    return [{"name": "disk", **disk}, {"name": "cloud-init", "cloudInitNoCloud": cloud_init}]


# --- policy -----------------------------------------------------------------------------------


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
    mine = [network for network in networks if network.type in OVN_TYPES and network.bridge == bridge.name]
    names = dict.fromkeys(map(physical_network, mine))
    return [{"localnet": name, "bridge": bridge.name, "state": "present"} for name in names]


# --- network ----------------------------------------------------------------------------------


CNI_VERSION = "0.3.1"
"""The version that all releases of Multus and of the plugins support."""
PLUGINS = {"bridge": ("bridge", "tuning"), "cnv-bridge": ("cnv-bridge", "cnv-tuning")}
MARKER = "bridge.network.kubevirt.io"
NAMESPACE_NAME = "kubernetes.io/metadata.name"


def networks(settings: Virtualization, attached: Sequence[Attachment]) -> list[Values]:
    """Return the objects of all networks, in the order of the settings."""
    found: list[Values] = []
    for network in settings.networks:
        namespaces = namespaces_of(network, attached)
        if network.type == "localnet":
            found.append(_cluster_network(network, namespaces))
        else:
            found += [_definition(settings, network, namespace) for namespace in namespaces]
    return found


def _definition(settings: Virtualization, network: OutsideNetwork, namespace: str) -> Values:
    metadata: Values = {"name": network.name, "namespace": namespace}
    if settings.bridge_marker and network.type in PLUGINS:
        metadata["annotations"] = {"k8s.v1.cni.cncf.io/resourceName": f"{MARKER}/{network.bridge}"}
    config = _bridge_config(network) if network.type in PLUGINS else _overlay_config(network, namespace)
    return {
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": metadata,
        "spec": {"config": json.dumps(config, indent=2)},
    }


def _bridge_config(network: OutsideNetwork) -> Raw:
    plugin, tuning = PLUGINS[network.type]
    bridge: Values = {"type": plugin, "bridge": network.bridge, "ipam": {}, "macspoofchk": network.mac_spoof_check}
    if network.vlan:
        bridge["vlan"] = network.vlan
    if network.mtu:
        bridge["mtu"] = network.mtu
    return {"cniVersion": CNI_VERSION, "name": network.name, "plugins": [bridge, {"type": tuning}]}


def _overlay_config(network: OutsideNetwork, namespace: str) -> Raw:
    """Return a network of ovn-kubernetes; before physicalNetworkName existed, its name was that of the mapping."""
    config: Values = {"cniVersion": CNI_VERSION, "name": network.name, "type": "ovn-k8s-cni-overlay"}
    config |= {"topology": "localnet", "netAttachDefName": f"{namespace}/{network.name}"}
    if physical_network(network) != network.name:
        config["physicalNetworkName"] = physical_network(network)
    if network.vlan:
        config["vlanID"] = network.vlan
    if network.mtu:
        config["mtu"] = network.mtu
    return config


def _cluster_network(network: OutsideNetwork, namespaces: Sequence[str]) -> Values:
    """Return a ClusterUserDefinedNetwork without address management: the addresses are those of the exposures."""
    localnet: Values = {"role": "Secondary", "physicalNetworkName": physical_network(network)}
    localnet["ipam"] = {"mode": "Disabled"}
    if network.vlan:
        localnet["vlan"] = {"mode": "Access", "access": {"id": network.vlan}}
    if network.mtu:
        localnet["mtu"] = network.mtu
    selector = {"matchExpressions": [{"key": NAMESPACE_NAME, "operator": "In", "values": list(namespaces)}]}
    return {
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "ClusterUserDefinedNetwork",
        "metadata": {"name": network.name},
        "spec": {"namespaceSelector": selector, "network": {"topology": "Localnet", "localnet": localnet}},
    }


# --- service ----------------------------------------------------------------------------------


ID_LABEL, NAME_LABEL = "vmi.kubevirt.io/id", "vm.kubevirt.io/name"
ID_SINCE, NAME_SINCE = (1, 7), (0, 51)
LONGEST_LABEL = 63
DIGITS = 8
"""Digits of the hash in the id of a virtual machine with a long name."""


def release(settings: Virtualization) -> tuple[int, int] | None:
    """Return the first two numbers of KubeVirt's version, if it is declared."""
    if settings.kubevirt_version is None:
        return None
    first, second, *_ = settings.kubevirt_version.removeprefix("v").split(".")
    return int(first), int(second)


def selector(settings: Virtualization, machine: str) -> dict[str, str]:
    """Return the labels by which a Service selects a virtual machine; empty if KubeVirt adds none.

    KubeVirt without a declared version is assumed to have the older label, which newer ones keep.
    """
    labels = settings.machine(machine).labels
    if labels:
        return dict(labels)
    name = machine.rpartition("/")[2]
    known = release(settings)
    if known is not None and known >= ID_SINCE:
        return {ID_LABEL: machine_id(name)}
    if known is None or known >= NAME_SINCE:
        return {NAME_LABEL: name.partition(".")[0][:LONGEST_LABEL]}
    return {}


def machine_id(name: str) -> str:
    """Return the value of the label vmi.kubevirt.io/id: the name, or its beginning and a hash of it."""
    if len(name) <= LONGEST_LABEL:
        return name
    digest = hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()
    return f"{name[: LONGEST_LABEL - DIGITS - 1]}-{digest[:DIGITS]}"


def service(settings: Virtualization, placed: PlacedExposure, annotations: Mapping[str, str] = ANNOTATIONS) -> Values:
    """Return the Service of an exposure; ``annotations`` are those by which each way requests an address."""
    exposure = placed.exposure
    machine = selector(settings, exposure.target.virtual_machine or "")
    found = services.service(placed, machine, exposure.name, annotations)
    if exposure.how == "external-ip":
        ports = services.ports(exposure.ports, with_node_ports=False)
        found["spec"] |= {"type": "ClusterIP", "externalIPs": [placed.address], "ports": ports}
    return found


# --- manifest ---------------------------------------------------------------------------------


POLICIES, NETWORKS, MACHINES = "network-policy.yaml", "networks.yaml", "virtual-machines.yaml"
SERVICES = "virtual-machine-services.yaml"


def files(
    settings: Virtualization, placed: Sequence[PlacedExposure], annotations: Mapping[str, str] = ANNOTATIONS
) -> dict[str, str]:
    """Return the texts of all files by name: manifests, a patch per existing machine, and network data per machine.

    ``annotations`` are those by which Services of each way request an address.
    """
    attached = attachments(settings, placed)
    machines = [*by_machine(settings, attached)]
    whole = [whole_machine(settings, each, each.whole, theirs) for each, theirs in machines if each.whole]
    services = [service(settings, exposure, annotations) for exposure in served(placed)]
    documents = {
        POLICIES: policies(settings),
        NETWORKS: networks(settings, attached),
        MACHINES: whole,
        SERVICES: services,
    }
    found = {name: dump(*each) for name, each in documents.items() if each}
    for machine, theirs in machines:
        if not machine.whole:
            found[f"virtual-machine-{flat(machine.name)}.patch.yaml"] = _patch(machine, theirs)
        found[f"cloud-init-{flat(machine.name)}.yaml"] = network_data(settings, machine, theirs)
    return found


def flat(name: str) -> str:
    """Return NAMESPACE_NAME for a file: neither of both contains an underscore."""
    return name.replace("/", "_")


def _patch(machine: RenderedMachine, attached: Sequence[Attachment]) -> str:
    return dump(append_patch(attached) if machine.interfaces == "append" else replace_patch(machine, attached))
