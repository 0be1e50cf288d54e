"""Settings and exposures of virtual machines for the tests."""

from __future__ import annotations

from typing import Any

from openstack_prep.exposures.endpoint import Exposed, ExposedPort, ExposureTarget, PlacedExposure
from openstack_prep.exposures.virtualization import (
    NodeBridge,
    OutsideNetwork,
    RenderedMachine,
    Virtualization,
    WholeMachine,
)

MAC = "06:00:00:00:00:01"


def placed(
    name: str,
    how: str = "bridge",
    machine: str = "shop/web",
    ports: tuple[ExposedPort, ...] = (ExposedPort(port=80),),
    address: str | None = None,
    mac: str | None = None,
    **target: Any,
) -> PlacedExposure:
    """Return an exposure of a virtual machine with its reservations."""
    given: Any = target or {"virtual_machine": machine}
    exposed = Exposed(name=name, cluster="c", target=ExposureTarget(**given), ports=ports, how=how)  # type: ignore[arg-type]
    return PlacedExposure(exposure=exposed, address=address, mac=mac)


BRIDGE = NodeBridge(name="br1", interface="eth1")
OUTSIDE = OutsideNetwork(name="outside", bridge="br1", cidr="192.0.2.0/24", gateway="192.0.2.1", dns=("192.0.2.2",))
WEB = placed("web", address="192.0.2.10", mac=MAC)
PLAIN = Virtualization(bridges=(BRIDGE,), networks=(OUTSIDE,))
"""A bridge, a network, and the patch of a machine that exists."""

FULL = Virtualization(
    bridges=(
        NodeBridge(name="br1", interface="eth1", ipv4="dhcp", stp=True, node_selector={"zone": "yes"}),
        NodeBridge(name="br-ex", type="ovs-bridge", node_selector={}),
        NodeBridge(name="ovsbr1", type="ovs-bridge", interface="eth3"),
        NodeBridge(
            name="br2",
            interface="eth2",
            vlan=20,
            ipv4="static",
            node_addresses={"node2": "10.2.0.6/24", "node1": "10.2.0.5/24"},
        ),
    ),
    networks=(
        OutsideNetwork(
            name="outside", bridge="br1", cidr="192.0.2.0/24", gateway="192.0.2.1", dns=("192.0.2.2",), vlan=5
        ),
        OutsideNetwork(
            name="vlan30",
            type="localnet",
            bridge="br-ex",
            physical_network="physnet",
            vlan=30,
            cidr="198.51.100.0/24",
            mtu=1400,
        ),
        OutsideNetwork(
            name="vlan31",
            type="localnet",
            bridge="br-ex",
            physical_network="physnet",
            cidr="10.31.0.0/24",
            namespaces=("a",),
        ),
        OutsideNetwork(
            name="old",
            type="cnv-bridge",
            bridge="br9",
            cidr="203.0.113.0/24",
            mac_spoof_check=False,
            namespaces=("a", "b"),
        ),
        OutsideNetwork(
            name="six",
            type="ovn-overlay",
            bridge="ovsbr1",
            cidr="2001:db8::/64",
            gateway="2001:db8::1",
            vlan=7,
            mtu=9000,
        ),
        OutsideNetwork(
            name="seven", type="ovn-overlay", physical_network="x;$(id)", cidr="2001:db8:7::/64", namespaces=("a",)
        ),
    ),
    machines=(
        RenderedMachine(
            name="shop/db",
            whole=WholeMachine(container_disk="quay.io/containerdisks/fedora:41", user_data_secret="db-user-data"),
            labels={"app": "yes"},
        ),
        RenderedMachine(name="shop/cache", interfaces="replace", default_route="pod"),
        RenderedMachine(name="shop/lone", whole=WholeMachine(claim="lone", cores=2, memory=512, run_strategy="Manual")),
        RenderedMachine(name="shop/bare", interfaces="replace", pod_network=False),
    ),
    nmstate_version="v1beta1",
    kubevirt_version="1.7",
    bridge_marker=True,
    cluster_networks=("10.128.0.0/14", "fd01::/48"),
)
PLACED = (
    WEB,
    placed("db6", machine="shop/db", address="2001:db8::9", mac="06:00:00:00:00:03"),
    placed("db", machine="shop/db", address="198.51.100.9", mac="06:00:00:00:00:02"),
    placed("cache", machine="shop/cache", address="192.0.2.20", mac="06:00:00:00:00:04"),
    placed("bare", machine="shop/bare", address="192.0.2.21", mac="12:34:56:10:20:30"),
    placed("lone", "metallb", machine="shop/lone", address="192.0.2.31"),
    placed(
        "ssh",
        "node-port",
        ports=(ExposedPort(port=22, node_port=30022), ExposedPort(port=53, protocol="udp", target=5353)),
    ),
    placed("old", "external-ip", machine="shop/db", address="192.0.2.30"),
    placed("six", "cilium", address="2001:db8::20"),
    placed("vip", "kube-vip", machine=f"shop/{'l' * 70}", address="192.0.2.32"),
)
"""Every kind of bridge, network, machine and Service."""
