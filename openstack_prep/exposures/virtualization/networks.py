"""Networks outside, as virtual machines refer to them: pure functions.

Sources: network-attachment-definition-client 1.7.7 (artifacts/networks-crd.yaml); CNI plugins (plugins/main/bridge);
ovn-kubernetes 1.3 (helm/ovn-kubernetes/crds/k8s.ovn.org_clusteruserdefinednetworks.yaml, and go-controller/pkg/config
/cni.go, pkg/util/multi_network.go, ValidateNetConf, for ovn-k8s-cni-overlay). The namespaced UserDefinedNetwork has no
topology Localnet there, so that networks outside are always ClusterUserDefinedNetworks.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from openstack_prep.base.raw import Raw, Values
from openstack_prep.exposures.virtualization.attaching import Attachment, namespaces_of
from openstack_prep.exposures.virtualization.model import OutsideNetwork, Virtualization
from openstack_prep.exposures.virtualization.policies import physical_network

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
            found += [_definition(settings, network, each) for each in namespaces]
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
