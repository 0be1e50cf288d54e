"""Pairs for virtual machines on bridges of nodes that are servers: wanted, opened, diagnosed, fixed and removed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from openstack_prep.exposures.model import Exposed, ExposedPort, Placed, Target
from openstack_prep.exposures.virtualization import (
    NodeBridge,
    OutsideNetwork,
    Virtualization,
    VisibleNodes,
    diagnose,
    mistakes,
)
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.resources.network.declared_port import Port
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.subnet import Subnet
from tests.devcloud.qcow2 import qcow2
from tests.functional import client
from tests.functional.lab import Lab

MAC, ADDRESS = "06:00:00:00:00:01", "192.0.2.10"
NETWORK = Network(name="provider")
SUBNET = Subnet(name="provider", network="provider", cidr="192.0.2.0/24", allocation_pools=("192.0.2.100-192.0.2.200",))
TRUNKED = Network(name="trunked")
TRUNKED_SUBNET = Subnet(name="trunked", network="trunked", cidr="10.7.0.0/24")
BASE = (NETWORK, SUBNET, TRUNKED, TRUNKED_SUBNET)
EXPOSED = Exposed(
    name="web",
    cluster="c",
    target=Target(virtual_machine="shop/web"),
    ports=(ExposedPort(port=80),),
    how="bridge",
)
PLACED = (Placed(exposure=EXPOSED, address=ADDRESS, mac=MAC),)
OUTSIDE = OutsideNetwork(name="outside", bridge="br1", cidr="192.0.2.0/24", openstack_network="provider")
PLAIN = Virtualization(bridges=(NodeBridge(name="br1", interface="eth1"),), networks=(OUTSIDE,))
TAGGED = replace(PLAIN, networks=(replace(OUTSIDE, vlan=30),))


class Nodes:
    """Servers of the lab's project, and what Neutron has of them."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.user: Any = lab.as_user().connection
        self.image: Any = None

    def create(self, name: str, port: str) -> None:
        """Create a server with a port of the spec."""
        if self.image is None:
            given = {"disk_format": "qcow2", "container_format": "bare"}
            self.image = self.user.image.create_image(name="empty", data=qcow2(1), **given)
        flavor = self.user.compute.find_flavor("m1.small")
        networks = [{"port": self.port(port).id}]
        server = self.user.compute.create_server(
            name=name, image_id=self.image.id, flavor_id=flavor.id, networks=networks
        )
        self.user.compute.wait_for_server(server, interval=0.2, wait=60)

    def delete(self) -> None:
        for server in [*self.user.compute.servers()]:
            self.user.compute.delete_server(server)
            self.user.compute.wait_for_delete(server, interval=0.2, wait=60)
        for trunk in [*self.user.network.trunks()]:
            self.user.network.delete_trunk(trunk)
        if self.image is not None:
            self.lab.admin.image.delete_image(self.image)

    def port(self, name: str) -> Any:
        return self.user.network.find_port(name, ignore_missing=False)

    def pairs(self, name: str) -> list[dict[str, str]]:
        found: list[dict[str, str]] = self.port(name).allowed_address_pairs
        return found

    def read(self, kind: str) -> Any:
        """Return Neutron's own records."""
        return self.user.network.get(f"/{kind}").json()[kind]

    def visible(self) -> VisibleNodes:
        return VisibleNodes(
            cloud="lab",
            servers={each.id: each.name for each in self.user.compute.servers()},
            networks=self.read("networks"),
            subnets=self.read("subnets"),
            ports=self.read("ports"),
            trunks=self.read("trunks"),
        )

    def codes(self, settings: Virtualization = PLAIN) -> list[str]:
        return [each.code for each in diagnose(settings, PLACED, self.visible())]


@pytest.fixture
def nodes(lab: Lab) -> Iterator[Nodes]:
    lab.apply(*BASE)
    made = Nodes(lab)
    yield made
    made.delete()


def wanted(settings: Virtualization, *ports: str) -> AddressPairs:
    """Return the address pairs that a spec declares for the virtual machine."""
    assert [*mistakes(settings, PLACED)] == []
    (network,) = settings.networks
    given = {"name": "web", "addresses": (ADDRESS,), "mac_address": MAC, "network": network.openstack_network}
    return AddressPairs(**given, ports=ports)


def test_every_node_gets_the_pair_with_the_mac_address_of_the_machine(lab: Lab, nodes: Nodes) -> None:
    ports = tuple(Port(name=f"node{each}", network="provider") for each in (1, 2))
    lab.apply(*BASE, *ports)
    for each in ports:
        nodes.create(each.name, each.name)
    assert set(nodes.codes()) == {"bridge.pair-missing", "bridge.ovn-one-port"}
    pairs = wanted(PLAIN, "node1", "node2")
    assert lab.apply(*BASE, *ports, pairs) == {"address_pairs/web": "create"}
    for each in ports:
        assert nodes.pairs(each.name) == [{"ip_address": ADDRESS, "mac_address": MAC}]
    assert "bridge.pair-missing" not in nodes.codes()
    lab.destroy(pairs)
    assert [nodes.pairs(each.name) for each in ports] == [[], []]


def test_the_printed_command_opens_the_way(lab: Lab, nodes: Nodes) -> None:
    port = Port(name="node1", network="provider")
    lab.apply(*BASE, port)
    nodes.create("node1", "node1")
    (found,) = diagnose(PLAIN, PLACED, nodes.visible())
    assert found.code == "bridge.pair-missing"
    command = shlex.split(found.fix, comments=True)
    assert command[:3] == ["openstack", "--os-cloud", "lab"]
    client.openstack(command[3:], {**ENVIRONMENT, "OS_CLIENT_CONFIG_FILE": str(lab.devcloud.clouds_file)}, None)
    assert nodes.codes() == []


ENVIRONMENT = {"OS_CLOUD": "devcloud-admin"}


def test_a_node_without_a_port_on_the_network(lab: Lab, nodes: Nodes) -> None:
    lab.apply(*BASE, Port(name="elsewhere", network="trunked"))
    nodes.create("node1", "elsewhere")
    assert nodes.codes() == ["bridge.no-port"]


def test_tagged_frames_pass_the_subport_of_a_trunk(lab: Lab, nodes: Nodes) -> None:
    ports = (Port(name="parent", network="trunked"), Port(name="node1-vlan30", network="provider"))
    lab.apply(*BASE, *ports)
    trunk = nodes.user.network.create_trunk(name="node1-trunk", port_id=nodes.port("parent").id)
    nodes.create("node1", "parent")
    assert nodes.codes(TAGGED) == ["bridge.no-subport"]
    subport = {"port_id": nodes.port("node1-vlan30").id, "segmentation_type": "vlan", "segmentation_id": 30}
    nodes.user.network.add_trunk_subports(trunk, [subport])
    assert nodes.codes(TAGGED) == ["bridge.pair-missing"]
    lab.apply(*BASE, *ports, wanted(TAGGED, "node1-vlan30"))
    assert nodes.pairs("node1-vlan30") == [{"ip_address": ADDRESS, "mac_address": MAC}]
    assert nodes.codes(TAGGED) == []


def test_a_port_that_reserves_the_mac_address(lab: Lab, nodes: Nodes) -> None:
    port = Port(name="node1", network="provider")
    lab.apply(*BASE, port, wanted(PLAIN, "node1"))
    nodes.create("node1", "node1")
    network = nodes.user.network.find_network("provider")
    reserved = nodes.user.network.create_port(network_id=network.id, name="reserved", mac_address=MAC)
    assert nodes.codes() == ["bridge.mac-in-use"]
    nodes.user.network.delete_port(reserved)
    assert nodes.codes() == []
