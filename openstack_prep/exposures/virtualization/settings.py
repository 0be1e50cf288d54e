"""The declaration of virtual machines' ways outside: bridges of the nodes, networks, and the machines themselves.

Sources: kubernetes-nmstate 0.86 (deploy/crds), nmstate 2.2 (rust/src/lib/ifaces), ovn-kubernetes 1.3
(helm/ovn-kubernetes/crds), KubeVirt 1.9 (pkg/network/admitter), kubemacpool 0.51 (config/default/manager).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Le

from openstack_prep.base.fields import Address, Cidr, Count, Mac, Memory, Name, Strict, Text, matching
from openstack_prep.exposures.endpoint import Label, Namespaced
from openstack_prep.kubernetes.model import Namespace

VlanId = Annotated[int, Ge(1), Le(4094)]
Mtu = Annotated[int, Ge(576), Le(65536)]
WORKERS = {"node-role.kubernetes.io/worker": ""}
"""The default node selector of bridges, for OpenShift; RKE labels workers with the value "true", RKE2 not at all."""


KUBEVIRT_VERSION = matching(
    r"v?\d{1,3}\.\d{1,3}(\.\d{1,3})?",
    "is not a version of KubeVirt",
    "write one such as '1.7' or v1.7.2",
    "write it in quotes, such as '1.7'",
)


@dataclass(frozen=True, kw_only=True)
class NodeBridge(Strict):
    """A bridge on the nodes, configured by a NodeNetworkConfigurationPolicy of the same name."""

    name: Name
    """Name of the bridge, and of its policy: at most 15 lower-case letters, digits and hyphens."""
    type: Literal["linux-bridge", "ovs-bridge"] = "linux-bridge"
    """linux-bridge for networks of type bridge and cnv-bridge, ovs-bridge for localnet and ovn-overlay."""
    interface: Name | None = None
    """Interface of the nodes that joins the bridge; omit it for an OVS bridge that exists, such as br-ex."""
    vlan: VlanId | None = None
    """VLAN of the interface: the bridge gets a VLAN interface in place of the interface itself (linux-bridge)."""
    stp: bool = False
    """Whether the bridge speaks STP; a cloud or a switch may block ports that do."""
    ipv4: Literal["none", "dhcp", "static"] = "none"
    """How the nodes themselves get an address on the bridge (linux-bridge)."""
    node_addresses: Mapping[Name, Text] | None = None
    """Addresses with prefix lengths by node name, for ipv4: static; each node gets a policy of its own."""
    node_selector: Mapping[Name, Text] | None = None
    """Labels of the nodes with the bridge, {} for all nodes; default: node-role.kubernetes.io/worker with an empty
    value, as in OpenShift."""


@dataclass(frozen=True, kw_only=True)
class OutsideNetwork(Strict):
    """A network outside of the cluster that virtual machines are attached to."""

    name: Label
    """Name of the network in Kubernetes, and of the interface in virtual machines."""
    type: Literal["bridge", "cnv-bridge", "localnet", "ovn-overlay"] = "bridge"
    """bridge: CNI plugin bridge; cnv-bridge: the same one in old releases of OpenShift Virtualization; localnet:
    ClusterUserDefinedNetwork (ovn-kubernetes 1.1, OpenShift 4.19 and later); ovn-overlay: the same before it."""
    bridge: Name | None = None
    """Bridge of the nodes, from bridges or an existing one; optional for localnet and ovn-overlay, whose
    physical_network may be mapped already."""
    physical_network: Name | None = None
    """Name of the bridge mapping of OVN (localnet, ovn-overlay); default: the name of the network."""
    cidr: Cidr
    """Addresses of the network outside; exposures with an address in it are attached to this network."""
    gateway: Address | None = None
    """Gateway of the network outside; without one, virtual machines answer only within the network."""
    dns: tuple[Address, ...] = ()
    """DNS servers of the virtual machines."""
    vlan: VlanId | None = None
    """VLAN of the network on the bridge."""
    mtu: Mtu | None = None
    """MTU; default: that of the bridge, or of ovn-kubernetes."""
    mac_spoof_check: bool = True
    """Whether virtual machines may send only with their own MAC address (bridge, cnv-bridge)."""
    openstack_network: Name | None = None
    """Network in OpenStack with these addresses, by name or id, if the nodes are servers of OpenStack."""
    namespaces: tuple[Namespace, ...] = ()
    """Namespaces that get the network; default: those of the virtual machines attached to it."""


@dataclass(frozen=True, kw_only=True)
class WholeMachine(Strict):
    """What a complete VirtualMachine needs besides its interfaces."""

    memory: Memory = 2048
    """Memory."""
    cores: Count = 1
    """CPU cores."""
    container_disk: Name | None = None
    """Container image with the disk."""
    claim: Name | None = None
    """PersistentVolumeClaim with the disk, instead of container_disk."""
    run_strategy: Literal["Always", "RerunOnFailure", "Manual", "Halted", "Once"] = "Always"
    """When KubeVirt runs the machine."""
    user_data_secret: Name | None = None
    """Secret with cloud-init's user data, in its key userdata."""


@dataclass(frozen=True, kw_only=True)
class RenderedMachine(Strict):
    """How a virtual machine of the exposures is rendered."""

    name: Namespaced
    """The virtual machine, as NAMESPACE/NAME."""
    interfaces: Literal["append", "replace"] = "append"
    """append: a JSON patch that adds the interfaces to those of the machine; replace: a merge patch that sets the
    interfaces, those not declared here are lost."""
    whole: WholeMachine | None = None
    """Render the complete VirtualMachine instead of a patch."""
    labels: Mapping[Name, Text] | None = None
    """Labels of spec.template that Services select; default: the label that KubeVirt adds (0.51 and later)."""
    pod_network: bool = True
    """Whether the machine is attached to the pod network, which Services lead to."""
    pod_interface: Name = "enp1s0"
    """Name that the guest gives the interface of the pod network; default: that of KubeVirt's first one."""
    default_route: Literal["outside", "pod"] = "outside"
    """Network whose gateway is the default route of the machine."""


@dataclass(frozen=True, kw_only=True)
class MacPool(Strict):
    """The MAC addresses that kubemacpool gives to virtual machines without one (RANGE_START and RANGE_END)."""

    first: Mac = "02:00:00:00:00:00"
    """First MAC address; default: kubemacpool's own. OpenShift Virtualization chooses a range per cluster."""
    last: Mac = "02:ff:ff:ff:ff:ff"
    """Last MAC address."""


@dataclass(frozen=True, kw_only=True)
class Virtualization(Strict):
    """Ways outside for virtual machines of KubeVirt, or OpenShift Virtualization."""

    bridges: tuple[NodeBridge, ...] = ()
    """Bridges on the nodes to configure."""
    networks: tuple[OutsideNetwork, ...] = ()
    """Networks outside of the cluster."""
    machines: tuple[RenderedMachine, ...] = ()
    """Virtual machines that are not rendered by the defaults."""
    nmstate_version: Literal["v1", "v1beta1", "v1alpha1"] = "v1"
    """API version of nmstate.io: v1 since kubernetes-nmstate 0.56, v1beta1 since 0.33, v1alpha1 only up to 0.83."""
    kubevirt_version: Annotated[Name, KUBEVIRT_VERSION] | None = None
    """Version of KubeVirt, such as '1.7', which decides by which label Services select virtual machines."""
    mac_pool: MacPool | None = MacPool()
    """Range of kubemacpool; null if it is not installed."""
    bridge_marker: bool = False
    """Whether virtual machines run only on nodes that have the bridge; part of OpenShift Virtualization."""
    cluster_networks: tuple[Cidr, ...] = ()
    """Networks of pods, Services and nodes, for virtual machines whose default route leads outside: they reach these
    networks by the pod network."""

    def machine(self, name: str) -> RenderedMachine:
        """Return how a virtual machine is rendered."""
        return next((each for each in self.machines if each.name == name), RenderedMachine(name=name))

    def bridge(self, name: str | None) -> NodeBridge | None:
        """Return a declared bridge."""
        return next((each for each in self.bridges if each.name == name), None)
