"""What ``rke mesh`` says of the shipped mesh, and which of the required packets are answered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tests.devcloud.pytest_devcloud import Devcloud
from tests.packets.machines import Node, carry_out, until
from tests.packets.meshed import API, HOST, MESHES, VXLAN, Mesh, MeshSituation, applied, outside_answers
from tests.packets.played_cluster import RESPONDER_NAME

PUBLISHED = "https://cloud-images.ubuntu.com/releases/jammy/release/ubuntu-22.04-server-cloudimg-amd64.img"
CHANGED = {
    PUBLISHED: "disk.qcow2",
    "~/.ssh/id_ed25519.pub": "id_ed25519.pub",
    "node_count: 3": "node_count: 2\n      wait_timeout: 0",
}


@pytest.fixture(scope="module")
def world(devcloud: Devcloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    with applied(devcloud, tmp_path_factory.mktemp("mesh"), "rke-mesh", CHANGED) as made:
        yield made


def test_a_client_outside(world: Mesh, devcloud: Devcloud) -> None:
    """The API of each cluster answers at a floating IP of a node, which RKE's nodes may have."""
    external = devcloud.admin.network.find_network("external", ignore_missing=False).id
    floating = {
        cluster: world.network.create_ip(
            floating_network_id=external, port_id=nodes[0].port_id, project_id=world.project_id
        )
        for cluster, nodes in world.nodes.items()
    }
    assert outside_answers(world, {name: str(each.floating_ip_address) for name, each in floating.items()})
    for each in floating.values():
        world.network.delete_ip(each)


FIXED = {
    "no rule for Cilium's tunnels in one cluster",
    "no rule for ping in one cluster",
    "no rule for clustermesh-apiserver in one cluster",
    "the router disabled",
    "no interface of the router in one network",
    "two routers without routes to each other",
    "a rule for one node of the other cluster",
    "the node with the address of the mesh without pairs",
    "a node without a group",
    "a port with the address of the mesh, which pairs allow as part of a network",
    "pairs with another MAC address as well, and a port with the address of the mesh",
    "port security off on one cluster, and a port with the address of the mesh",
}


@pytest.mark.parametrize("situation", MESHES, ids=str)
def test_mesh_and_packets(world: Mesh, situation: MeshSituation) -> None:
    """For the situations in ``FIXED``, the printed commands let packets pass."""
    with situation.brought_about(world):
        plane = world.nodes["cluster1"][0].plane
        plane.sync()
        seen = world.look()
        lost: set[str] = set()

        def as_declared() -> bool:
            lost.clear()
            lost.update(world.lost(seen["required"]))
            return lost == situation.lost

        until(as_declared)
        mended = True
        if situation.name in FIXED:
            group = world.group("cluster2").id
            carry_out(world.prep, (each["fix"].replace("GROUP", group) for each in seen["findings"]))
            mended = until(lambda: not world.lost(seen["required"]))
    plane.sync()
    assert until(lambda: not world.lost(seen["required"]))
    codes = {each["code"] for each in seen["findings"]}
    assert (codes, lost, mended) == (set(situation.codes.split()), situation.lost, True)


@contextmanager
def tunnel(world: Mesh, ends: Sequence[Node]) -> Iterator[list[str]]:
    """Connect two nodes by the kernel's own VXLAN on the port of Cilium's; yield their addresses in the tunnel."""
    addresses = [f"10.244.0.{number}" for number, _ in enumerate(ends, 1)]
    for node, other, address in zip(ends, reversed(ends), addresses, strict=True):
        assert node.plane.kill(node.id, RESPONDER_NAME)  # that of UDP has the port
        far = ("remote", other.address, "local", node.address, "dstport", str(VXLAN))
        for words in (
            ("link", "add", "pods", "type", "vxlan", "id", "1", "dev", "eth0", *far),
            ("addr", "add", f"{address}/24", "dev", "pods"),
            ("link", "set", "pods", "up"),
        ):
            ended = node.plane.run(node.id, "ip", *words)
            assert ended.returncode == 0, ended.stderr
        node.answer(world.prep.folder, API, host=HOST)
    try:
        yield addresses
    finally:
        for node in ends:
            node.plane.run(node.id, "ip", "link", "del", "pods")
            node.plane.kill(node.id, RESPONDER_NAME)
        world.serve()


def test_pods_reach_one_another_by_vxlan(world: Mesh) -> None:
    """Full packets pass in both directions, and none without the rule that ``rke mesh`` misses."""
    ends = [nodes[1] for nodes in world.nodes.values()]
    (rule,) = (each for each in MESHES if each.name == "no rule for Cilium's tunnels in one cluster")
    with tunnel(world, ends) as addresses:

        def reached() -> list[str]:
            far = zip(ends, reversed(addresses), strict=True)
            return [node.get(f"https://{address}:{API}/", seconds=3) for node, address in far]

        names = [node.name for node in reversed(ends)]
        assert until(lambda: reached() == names)
        with rule.brought_about(world):
            world.nodes["cluster1"][0].plane.sync()
            assert until(lambda: reached()[0] == "")
            group = world.group("cluster2").id
            carry_out(world.prep, (each["fix"].replace("GROUP", group) for each in world.look()["findings"]))
            assert until(lambda: reached() == names)
    assert until(lambda: not world.lost(world.look()["required"]))


def test_what_the_projects_own_user_is_told(world: Mesh) -> None:
    """By the entry that the spec has written, the printed commands work as well: that for pairs is another one."""
    (pairs,) = (each for each in MESHES if each.name == "the node with the address of the mesh without pairs")
    own = replace(world, prep=replace(world.prep, environment={"OS_CLIENT_CONFIG_FILE": "mesh/clouds.yaml"}))
    with pairs.brought_about(world):
        seen = own.look("--os-cloud", "mesh")
        assert [each["fix"] for each in seen["findings"]] == [
            f"openstack-prep address-pairs sync --os-cloud mesh {world.prep.spec.name}"
        ]
        carry_out(own.prep, (each["fix"] for each in seen["findings"]))
        assert until(lambda: not world.lost(seen["required"]))


def test_a_printed_mtu_lets_tunnels_pass(world: Mesh) -> None:
    (smaller,) = [each for each in MESHES if each.codes == "network.mtu-differs"]
    (network,) = world.network.networks(project_id=world.project_id, name="nodes1")
    before = network.mtu
    with smaller.brought_about(world):
        seen = world.look()
        (found,) = seen["findings"]
        assert seen["ok"]
        carry_out(world.prep, [found["fix"]])
        assert world.look()["findings"] == []
        passed = until(lambda: not world.lost(seen["required"]))
        world.network.update_network(network.id, mtu=before)
    assert passed
    assert until(lambda: not world.lost(seen["required"]))
