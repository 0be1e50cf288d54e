"""The shipped mesh of RKE2: each API at the floating IP of its stack, and the required packets between the nodes."""

from __future__ import annotations

from pathlib import Path

from tests.devcloud.pytest_devcloud import Devcloud
from tests.packets.machines import from_outside
from tests.packets.meshed import API, HOST, applied, outside_answers

PUBLISHED = "https://cloud-images.ubuntu.com/releases/noble/release/ubuntu-24.04-server-cloudimg-amd64.img"
CHANGED = {
    PUBLISHED: "disk.qcow2",
    "~/.ssh/id_ed25519.pub": "id_ed25519.pub",
    "server_count: 3": "server_count: 1\n      wait_timeout: 0",
    "agent_count: 2": "agent_count: 1",
}


def test_the_apis_from_outside(devcloud: Devcloud, tmp_path: Path) -> None:
    """The server that holds the virtual address answers at its floating IP; after destroy nobody does."""
    with applied(devcloud, tmp_path, "rke2-mesh", CHANGED) as world:
        addresses = {}
        for cluster, nodes in world.nodes.items():
            (port,) = world.network.ports(project_id=world.project_id, name=f"{cluster}-api")
            (floating,) = world.network.ips(port_id=port.id)
            addresses[cluster] = str(floating.floating_ip_address)
            server = next(node for node in nodes if "-server-" in node.name)
            server.announce(port.fixed_ips[0]["ip_address"])
        assert outside_answers(world, addresses)
        plane = world.nodes["cluster1"][0].plane
    plane.sync()
    assert not any(from_outside(plane, HOST, address, API) for address in addresses.values())
