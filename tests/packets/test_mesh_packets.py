"""What ``rke mesh`` says of the shipped mesh, and which of the required packets are answered."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources

import pytest

from tests.demo import KEY
from tests.devcloud.data_plane import DataPlane
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.qcow2 import qcow2
from tests.functional.conftest import Prep
from tests.packets.machines import Node, carry_out, until, wait_for_network
from tests.packets.meshed import MESHES, Mesh, MeshSituation

PUBLISHED = "https://cloud-images.ubuntu.com/releases/jammy/release/ubuntu-22.04-server-cloudimg-amd64.img"
CHANGED = {
    PUBLISHED: "disk.qcow2",
    "~/.ssh/id_ed25519.pub": "id_ed25519.pub",
    "node_count: 3": "node_count: 2\n      wait_timeout: 0",
}


@pytest.fixture(scope="module")
def world(devcloud: Devcloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    folder = tmp_path_factory.mktemp("mesh")
    prep = Prep(folder, {"OS_CLIENT_CONFIG_FILE": str(devcloud.clouds_file), "OS_CLOUD": "devcloud-admin"})
    text = (resources.files("openstack_prep.install_configs") / "rke-mesh.yaml").read_text()
    for old, new in CHANGED.items():
        assert old in text
        text = text.replace(old, new)
    prep.spec.write_text(text)
    (folder / "disk.qcow2").write_bytes(qcow2(1))
    (folder / "id_ed25519.pub").write_text(KEY)
    prep.apply()
    admin, plane = devcloud.admin, DataPlane(devcloud.layout)
    project = admin.identity.find_project("mesh", ignore_missing=False).id
    nodes: dict[str, list[Node]] = {"cluster1": [], "cluster2": []}
    servers = {each.id: each.name for each in admin.compute.servers(all_projects=True, project_id=project)}
    for port in admin.network.ports(project_id=project):
        if name := servers.get(port.device_id):
            nodes[name.partition("-")[0]].append(
                Node(plane, name, port.device_id, port.fixed_ips[0]["ip_address"], port.id)
            )
    wait_for_network([node for each in nodes.values() for node in each])
    made = Mesh(prep, admin.network, project, nodes)
    made.serve()
    yield made
    prep.destroy()


MENDED = {
    "no rule for Cilium's tunnels in one cluster",
    "no rule for ping in one cluster",
    "no rule for clustermesh-apiserver in one cluster",
    "the router disabled",
}


@pytest.mark.parametrize("situation", MESHES, ids=str)
def test_mesh_and_packets(world: Mesh, situation: MeshSituation) -> None:
    """For the situations in ``MENDED``, the printed commands let packets pass."""
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
        if situation.name in MENDED:
            carry_out(world.prep, (each["fix"] for each in seen["findings"]))
            mended = until(lambda: not world.lost(seen["required"]))
    plane.sync()
    assert until(lambda: not world.lost(seen["required"]))
    codes = {each["code"] for each in seen["findings"]}
    assert (codes, lost, mended) == (set(situation.codes.split()), situation.lost, True)


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
