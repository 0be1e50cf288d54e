"""Pairs for virtual machines on bridges of nodes that are servers: wanted, opened, diagnosed, fixed and removed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.exposures.cluster_fields import NodeSelection
from openstack_prep.exposures.endpoint import Exposed, ExposedPort, ExposureTarget, PlacedExposure
from openstack_prep.exposures.exposed_cluster import ExposedCluster
from openstack_prep.exposures.exposure import Exposure
from openstack_prep.exposures.pool_file import PoolFile
from openstack_prep.exposures.virtualization import (
    NodeBridge,
    OutsideNetwork,
    Virtualization,
    VisibleNodes,
    diagnose,
)
from openstack_prep.hooks.address_pairs import sync_address_pairs
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.resources.lists.neutron_records import NetworkRecord, PortRecord, R, SubnetRecord, TrunkRecord
from openstack_prep.resources.network.declared_port import Port
from openstack_prep.resources.network.network import Network
from openstack_prep.resources.network.subnet import Subnet
from openstack_prep.spec.python import spec_from
from tests.devcloud.qcow2 import qcow2
from tests.functional.client import carry_out
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
    target=ExposureTarget(virtual_machine="shop/web"),
    ports=(ExposedPort(port=80),),
    how="bridge",
)
PLACED = PlacedExposure(exposure=EXPOSED, address=ADDRESS, mac=MAC)
OUTSIDE = OutsideNetwork(name="outside", bridge="br1", cidr="192.0.2.0/24", openstack_network="provider")
PLAIN = Virtualization(bridges=(NodeBridge(name="br1", interface="eth1"),), networks=(OUTSIDE,))
TAGGED = replace(PLAIN, networks=(replace(OUTSIDE, vlan=30),))


class Servers:
    """Servers of the lab's project, and what Neutron has of them."""

    def __init__(self, lab: Lab, folder: Path) -> None:
        self.lab, self.folder = lab, folder
        self.by_fixes: list[str] = []
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
        for port_id in self.by_fixes:
            self.user.network.delete_port(port_id)
        if self.image is not None:
            self.lab.admin.image.delete_image(self.image)

    def port(self, name: str) -> Any:
        return self.user.network.find_port(name, ignore_missing=False)

    def pairs(self, name: str) -> list[tuple[str, str]]:
        return sorted((each["ip_address"], each["mac_address"]) for each in self.port(name).allowed_address_pairs)

    def read(self, kind: type[R]) -> list[R]:
        return list(map(kind.read, self.user.network.get(f"/{kind.collection}").json()[kind.collection]))

    def visible(self) -> VisibleNodes:
        return VisibleNodes(
            cloud="lab",
            servers={each.id: each.name for each in self.user.compute.servers()},
            networks=self.read(NetworkRecord),
            subnets=self.read(SubnetRecord),
            ports=self.read(PortRecord),
            trunks=self.read(TrunkRecord),
        )

    def carry_out(self, code: str, settings: Virtualization = PLAIN) -> None:
        """Run the commands of a fix as the user."""
        (found,) = (each for each in diagnose(settings, [PLACED], self.visible()) if each.code == code)
        login = {"auth_url": self.lab.cloud.auth_url, "username": self.lab.name, "password": "of-the-lab"}
        login |= {"user_domain_name": "Default", "project_id": self.lab.project_id}
        clouds = self.folder / "clouds.yaml"
        clouds.write_text(yaml.safe_dump({"clouds": {"lab": {"auth": login}}}))
        before = {port.id for port in self.read(PortRecord)}
        carry_out(found.fix, {"OS_CLIENT_CONFIG_FILE": str(clouds)})
        self.by_fixes += {port.id for port in self.read(PortRecord)} - before

    def codes(self, settings: Virtualization = PLAIN, placed: PlacedExposure = PLACED) -> list[str]:
        return [each.code for each in diagnose(settings, [placed], self.visible())]


@pytest.fixture
def servers(lab: Lab, tmp_path: Path) -> Iterator[Servers]:
    lab.apply(*BASE)
    made = Servers(lab, tmp_path)
    yield made
    made.delete()


def exposed(folder: Path, settings: Virtualization, *names: str, **nodes: Any) -> list[Any]:
    """Return exposures of virtual machines whose addresses a pool file registers, and their cluster."""
    given = {"cidr": "192.0.2.0/24", "addresses": ("192.0.2.10-192.0.2.99",)}
    pool = PoolFile(name="office", path=str(folder / "office.yaml"), **given)
    fields: dict[str, Any] = {"cluster": "c", "how": "bridge", "ports": (ExposedPort(port=80),), "pool": "office"}
    exposures = [Exposure(name=each, target=ExposureTarget(virtual_machine=f"shop/{each}"), **fields) for each in names]
    cluster = ExposedCluster(
        name="c", directory=str(folder / "c"), nodes=NodeSelection(**nodes), virtualization=settings
    )
    return [pool, *exposures, cluster]


def claimed(folder: Path) -> list[tuple[str, str]]:
    claims = yaml.safe_load((folder / "office.yaml").read_text())["claims"].values()
    return sorted((each["address"], each["mac"]) for each in claims)


def test_every_node_gets_the_pairs_of_the_machines_by_itself(lab: Lab, servers: Servers, tmp_path: Path) -> None:
    """Beside the pair of somebody else; they go with their exposure, and with the spec."""
    ports = [Port(name=f"node{each}", network="provider") for each in (1, 2)]
    lab.apply(*BASE, *ports)
    servers.create("node1", "node1")
    foreign = {"ip_address": "192.0.2.99", "mac_address": MAC}
    lab.admin.network.update_port(servers.port("node2").id, allowed_address_pairs=[foreign])
    wanted = exposed(tmp_path, PLAIN, "web", "database", ports=("node1", "node2"))
    assert lab.apply(*BASE, *ports, *wanted)["address_pairs/exposures-c:machines"] == "create"
    both = claimed(tmp_path)
    assert servers.pairs("node1") == both
    assert servers.pairs("node2") == sorted([*both, (foreign["ip_address"], MAC)])
    fewer = exposed(tmp_path, PLAIN, "web", ports=("node1", "node2"))
    lab.apply(*BASE, *ports, *fewer)
    assert len(servers.pairs("node1")) == 1
    lab.destroy(*wanted)
    assert (servers.pairs("node1"), servers.pairs("node2")) == ([], [(foreign["ip_address"], MAC)])


def test_pairs_on_a_network_of_another_project_need_the_given_connection(
    lab: Lab, servers: Servers, tmp_path: Path
) -> None:
    """Neutron leaves them to the owner of the network: the project's own user may create the port, not its pairs."""
    name = f"shared-{lab.name}"
    shared = lab.admin.network.create_network(name=name, is_shared=True)
    lab.admin.network.create_subnet(network_id=shared.id, cidr="192.0.2.0/24", ip_version=4)
    port = Port(name="node1", network=name)
    settings = replace(PLAIN, networks=(replace(OUTSIDE, openstack_network=name),))
    wanted = exposed(tmp_path, settings, "web", ports=("node1",))
    try:
        lab.apply(port, *wanted)
        assert servers.pairs("node1") == claimed(tmp_path)
        lab.admin.network.update_port(servers.port("node1").id, allowed_address_pairs=[])
        (result,) = sync_address_pairs(lab.as_user(), spec_from(lab.spec(*wanted))).failed
        assert "only its owner or an administrator may" in str(result.error)
    finally:
        lab.destroy(port, *wanted)
        lab.admin.network.delete_network(shared)


def test_a_node_without_a_port_on_the_network(lab: Lab, servers: Servers) -> None:
    lab.apply(*BASE, Port(name="elsewhere", network="trunked"))
    servers.create("node1", "elsewhere")
    assert servers.codes() == ["bridge.no-port"]
    servers.carry_out("bridge.no-port")
    assert servers.codes() == ["bridge.pair-missing"]


def test_tagged_frames_pass_the_subport_of_a_trunk(lab: Lab, servers: Servers, tmp_path: Path) -> None:
    ports = (Port(name="parent", network="trunked"),)
    lab.apply(*BASE, *ports)
    servers.user.network.create_trunk(name="node1-trunk", port_id=servers.port("parent").id)
    servers.create("node1", "parent")
    assert servers.codes(TAGGED) == ["bridge.no-subport"]
    servers.carry_out("bridge.no-subport", TAGGED)
    assert servers.codes(TAGGED) == ["bridge.pair-missing"]
    lab.apply(*BASE, *ports, *exposed(tmp_path, TAGGED, "web", ports=("parent",)))
    ((address, mac),) = claimed(tmp_path)
    assert servers.pairs("node1-vlan30") == [(address, mac)]
    assert servers.codes(TAGGED, PlacedExposure(exposure=EXPOSED, address=address, mac=mac)) == []


def test_a_port_that_reserves_the_mac_address(lab: Lab, servers: Servers) -> None:
    port = Port(name="node1", network="provider")
    pairs = AddressPairs(name="web", ports=("node1",), addresses=(ADDRESS,), mac_address=MAC)
    lab.apply(*BASE, port, pairs)
    servers.create("node1", "node1")
    network = servers.user.network.find_network("provider")
    reserved = servers.user.network.create_port(network_id=network.id, name="reserved", mac_address=MAC)
    assert servers.codes() == ["bridge.mac-in-use"]
    servers.carry_out("bridge.mac-in-use")
    assert servers.user.network.find_port(reserved.id) is None
    assert servers.codes() == []
