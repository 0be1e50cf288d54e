"""What ``exposures show`` says of an address from outside, and what a client gets there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.devcloud.data_plane import DataPlane
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.qcow2 import qcow2
from tests.functional.conftest import Prep
from tests.functional.test_exposed_clusters import SHIPPED
from tests.packets.exposed import (
    ADDRESS,
    ADDRESS6,
    EXPOSURES,
    GATEWAY6,
    HOST,
    PORTS,
    SUBNET6,
    Exposed,
    Exposure,
    other_announces_ipv6,
)
from tests.packets.machines import boot, carry_out, from_outside, until

NODES = {"metallb": ("node1", "node2"), "external-ip": ("k8s9", "k8s6")}
"""The ports of the nodes by spec; the first node is the one that carries the address."""


@contextmanager
def applied(devcloud: Devcloud, folder: Path, name: str, **more: list[dict[str, Any]]) -> Iterator[Exposed]:
    """Apply a shipped spec, with ``more`` in its sections, boot its nodes, and let the first one announce the address.

    After destroy, a client outside is answered by nobody.
    """
    environment = {"OS_CLIENT_CONFIG_FILE": str(devcloud.clouds_file), "OS_CLOUD": "devcloud-admin"}
    prep = Prep(folder, environment | {"PREP_PASSWORD": "a-password-of-the-test"})
    spec = yaml.safe_load((SHIPPED / f"exposures-{name}.yaml").read_text())
    for user in spec["users"]:
        user["password"] = {"env": "PREP_PASSWORD"}
    for section, added in more.items():
        spec[section] += added
    spec["routers"][0]["interfaces"] += [subnet["name"] for subnet in more.get("subnets", ())]
    prep.write(spec)
    prep.apply()
    admin = devcloud.admin
    project = admin.identity.find_project(spec["name"], ignore_missing=False)
    user = admin.connect_as(
        username=spec["users"][0]["name"],
        password="a-password-of-the-test",
        project_name=spec["name"],
    )
    listed = {port.name: port for port in admin.network.ports(project_id=project.id)}
    plane = DataPlane(devcloud.layout)
    formats = {"disk_format": "qcow2", "container_format": "bare", "visibility": "public"}
    image = admin.image.create_image("packets", data=qcow2(1), **formats)
    nodes = boot(user, plane, [listed[each] for each in NODES[name]], image.id)
    for node in nodes:
        node.answer(folder, *PORTS)
    world = Exposed(prep, plane, admin.network, project.id, nodes)
    outside = world.outside
    nodes[0].announce(ADDRESS)
    try:
        yield world
    finally:
        for node in nodes:
            user.compute.delete_server(node.id)
        assert until(lambda: not list(user.compute.servers()), 60)
        admin.image.delete_image(image)
        prep.destroy()
    plane.sync()
    assert from_outside(plane, HOST, outside) == ""


IPV6 = {
    "subnets": [{"name": "nodes6", "network": "nodes", "cidr": SUBNET6, "gateway_ip": GATEWAY6}],
    "address_pools": [{"name": "services6", "subnet": "nodes6", "addresses": [ADDRESS6]}],
    "exposures": [
        {
            **{"name": "shop6", "cluster": "metallb", "how": "metallb", "pool": "services6"},
            **{"target": {"service": "shop/frontend6"}, "ports": [{"port": 443}], "allowed_cidrs": ["::/0"]},
        }
    ],
}


@contextmanager
def routed(devcloud: Devcloud) -> Iterator[None]:
    """Give the external network IPv6, with the address of the namespace outside as its gateway."""
    network: Any = devcloud.admin.network
    external = network.find_network("external", ignore_missing=False)
    made = network.create_subnet(
        network_id=external.id,
        ip_version=6,
        cidr="2001:db8:122::/64",
        gateway_ip="2001:db8:122::1",
        is_dhcp_enabled=False,
    )
    try:
        yield
    finally:
        network.delete_subnet(made)


@pytest.fixture(scope="module")
def metallb(devcloud: Devcloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exposed]:
    with (
        routed(devcloud),
        applied(devcloud, tmp_path_factory.mktemp("metallb"), "metallb", **IPV6) as world,
    ):
        world.lead_to_ipv6()
        world.nodes[0].announce(ADDRESS6)
        assert until(world.answers)
        assert until(lambda: world.answers("shop6"))
        yield world


LEARNED = {
    "pairs with every address, and a router that does not know who announces it",
    "port security off on both nodes, and a router that does not know who announces it",
}
"""The router has learned OVN's own answer, and keeps it until the node announces the address, or for 300 s."""
FIXED = {
    "the node that announces without pairs",
    "pairs with a MAC address that no node uses",
    "no rule for the port",
    "the address of IPv6 with a rule for IPv4 alone",
    "the floating IP on no port",
    "the floating IP on a node's own port",
    "the port that reserves the address deleted",
    "the node that announces gone from the group",
    "a stateless group that lets no answer out",
    "the port of the node that announces disabled",
    "the router disabled",
    "the router disabled, for the address of IPv6",
    "the router without a gateway",
    "the router without a gateway, for the address of IPv6",
    "the router with an interface in another subnet",
    "the router with an interface in another subnet of IPv6, for the address of IPv6",
    *LEARNED,
}


@pytest.mark.parametrize("exposure", EXPOSURES, ids=str)
def test_hops_and_packets(metallb: Exposed, exposure: Exposure) -> None:
    """For the situations in ``FIXED``, the printed commands let packets pass, and leave no hop to be named."""
    with exposure.brought_about(metallb):
        metallb.plane.sync()
        broken = metallb.broken()[exposure.of]
        reached = until(lambda: metallb.answers(exposure.of) == exposure.answered)
        fixed: object = (True, [])
        if exposure.name in FIXED:
            carry_out(metallb.prep, (hop["fix"] for hop in broken))
            metallb.lead_to_ipv6()
            if exposure.name in LEARNED:
                metallb.nodes[0].announce(ADDRESS)
            fixed = until(lambda: metallb.answers(exposure.of)), metallb.broken()[exposure.of]
    metallb.renew()
    assert until(lambda: metallb.answers(exposure.of))
    codes = " ".join(sorted(hop["code"] for hop in broken))
    assert (codes, reached, fixed) == (exposure.codes, True, (True, []))


def test_an_announcement_that_ovn_ignores(metallb: Exposed) -> None:
    """That of MetalLB: OVN's router keeps the former node's MAC address.

    It looks up the address that sends in place of the one that is announced (northd/northd.c, 23.03.1 and 23.03.2;
    mended by its commit e3b798bec in 23.03.3, 23.06.3, 23.09.2 and 24.03.0).
    """
    with other_announces_ipv6(metallb, "link-local"):
        assert metallb.shown()["shop6"] == []
        assert not until(lambda: metallb.answers("shop6"), 3)
        metallb.nodes[1].announce(ADDRESS6)
        assert until(lambda: metallb.answers("shop6"))
    assert until(lambda: metallb.answers("shop6"))


def test_a_service_for_the_nodes_alone(metallb: Exposed) -> None:
    """The address without a floating IP is reached inside, and not from outside."""
    first, other = metallb.nodes
    first.announce("10.1.0.203")
    assert metallb.shown()["metrics"] == []
    assert until(lambda: other.get("https://10.1.0.203:9090/") == first.name)
    metallb.network.update_port(first.port_id, allowed_address_pairs=[{"ip_address": ADDRESS}])
    metallb.plane.sync()
    assert metallb.shown()["metrics"] == ["pairs.missing"]
    assert until(lambda: not other.get("https://10.1.0.203:9090/"))
    metallb.renew()
    assert until(lambda: other.get("https://10.1.0.203:9090/") == first.name)
    first.withdraw("10.1.0.203")


def test_a_second_apply_disturbs_nobody(metallb: Exposed) -> None:
    """A client asks ten times a second while apply runs with nothing to do, and with a change beside."""
    assert until(metallb.answers)
    metallb.network.update_port(metallb.nodes[1].port_id, allowed_address_pairs=[])
    (metallb.access() / "services.yaml").unlink()
    for _ in range(2):
        process = metallb.prep.start("apply", "--yes", metallb.prep.spec.name)
        asked = 0
        while process.poll() is None or asked < 20:
            began = time.monotonic()
            assert metallb.connects_at_once()
            asked += 1
            time.sleep(max(0, began + 0.1 - time.monotonic()))
        _, err = process.communicate()
        assert process.returncode == 0, err
    assert "pairs.missing" not in metallb.shown()["shop"]


def test_who_carries_an_external_ip(devcloud: Devcloud, tmp_path: Path) -> None:
    """One of two nodes carries the address, the other one may not announce it; without its exposure nobody may."""
    with applied(devcloud, tmp_path, "external-ip") as world:
        assert until(world.answers)
        assert world.shown() == {"frontend": []}
        carrier, other = world.nodes
        carrier.withdraw(ADDRESS)
        other.announce(ADDRESS)
        assert until(lambda: not world.answers())
        world.renew()
        assert until(world.answers)
        spec = yaml.safe_load(world.prep.spec.read_text())
        outside = world.outside
        del spec["exposures"], spec["exposed_clusters"], spec["address_pools"]
        world.prep.write(spec)
        world.prep.apply("--prune")
        world.plane.sync()
        assert until(lambda: from_outside(world.plane, HOST, outside) == "")
