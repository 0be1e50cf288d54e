"""Load balancers of a real Octavia with OVN's provider: who answers outside, and what cleanup takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.devcloud.data_plane import OUTSIDE, DataPlane
from tests.devcloud.layout import with_octavia
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.qcow2 import qcow2
from tests.devcloud.tenant import Tenant
from tests.functional.conftest import Prep
from tests.packets.machines import Node, boot, get, until

pytestmark = pytest.mark.skipif(not with_octavia(), reason="needs OPENSTACK_PREP_DEVCLOUD_OCTAVIA=1")
SECONDS = 60
PORT = 443


def balance(connection: Any, cluster: str, subnet: Any, nodes: list[Node]) -> tuple[Any, str]:
    """Make what the cloud provider makes for a Service ``web`` of a cluster; returns balancer and floating IP."""
    octavia, neutron = connection.load_balancer, connection.network
    name = f"kube_service_{cluster}_default_web"
    made = octavia.create_load_balancer(name=name, vip_subnet_id=subnet.id, provider="ovn")

    def settled() -> bool:
        return str(octavia.get_load_balancer(made.id).provisioning_status) == "ACTIVE"

    assert until(settled, SECONDS)
    listener = octavia.create_listener(load_balancer_id=made.id, protocol="TCP", protocol_port=PORT)
    assert until(settled, SECONDS)
    pool = octavia.create_pool(listener_id=listener.id, protocol="TCP", lb_algorithm="SOURCE_IP_PORT")
    assert until(settled, SECONDS)
    for node in nodes:
        octavia.create_member(pool, address=node.address, protocol_port=PORT, subnet_id=subnet.id)
        assert until(settled, SECONDS)
    external = neutron.find_network("external", ignore_missing=False)
    said = f"Floating IP for Kubernetes external service default/web from cluster {cluster}"
    port = octavia.get_load_balancer(made.id).vip_port_id
    floating = neutron.create_ip(floating_network_id=external.id, port_id=port, description=said)
    return made, str(floating.floating_ip_address)


def test_cleanup_takes_the_balancer_of_one_cluster(
    devcloud: Devcloud, tenant: Tenant, prep: Prep, tmp_path: Path
) -> None:
    """Requests from outside reach the members of both; of the other cluster, whose name is similar, all stays."""
    prep.environment |= {"OS_CLIENT_CONFIG_FILE": str(tenant.clouds_file), "OS_CLOUD": tenant.cloud}
    connection, plane = tenant.connect(), DataPlane(devcloud.layout)
    neutron: Any = connection.network
    octavia: Any = connection.load_balancer
    network = neutron.create_network(name="nodes")
    subnet = neutron.create_subnet(name="nodes", network_id=network.id, ip_version=4, cidr="10.9.0.0/24")
    external = neutron.find_network("external", ignore_missing=False)
    router = neutron.create_router(name="nodes", external_gateway_info={"network_id": external.id})
    neutron.add_interface_to_router(router, subnet_id=subnet.id)
    group = neutron.create_security_group(name="nodes")
    neutron.create_security_group_rule(
        security_group_id=group.id, direction="ingress", protocol="tcp", port_range_min=PORT, port_range_max=PORT
    )
    ports = [
        neutron.create_port(name=name, network_id=network.id, security_groups=[group.id]) for name in ("node1", "node2")
    ]
    image = connection.image.create_image("nodes", data=qcow2(1), disk_format="qcow2", container_format="bare")
    nodes = boot(connection, plane, ports, image.id)
    for node in nodes:
        node.answer(tmp_path, PORT)
    _, mine = balance(connection, "prod", subnet, nodes[:1])
    theirs, other = balance(connection, "prod_eu", subnet, nodes[1:])

    def answer(address: str) -> str:
        return get(plane, OUTSIDE, f"https://{address}/")

    assert until(lambda: answer(mine) == "node1", SECONDS)
    assert until(lambda: answer(other) == "node2", SECONDS)
    balancer = "load_balancer/kube_service_prod_default_web"
    refused = prep.run("cleanup", "--cluster", "prod", "--yes", code=2).stderr
    assert f"{balancer}: is not used by prod alone: it balances to {nodes[0].address}" in refused
    assert answer(mine) == "node1"

    connection.compute.delete_server(nodes[0].id)
    assert until(lambda: len(list(connection.compute.servers())) == 1, SECONDS)
    shown = json.loads(prep.run("cleanup", "--cluster", "prod", "--plan", "--format", "json").stdout)
    assert {step["resource"] for step in shown["steps"]} == {balancer, f"floating_ip/{mine}"}
    prep.run("cleanup", "--cluster", "prod", "--yes")
    plane.sync()
    assert [each.id for each in octavia.load_balancers()] == [theirs.id]
    assert [each.floating_ip_address for each in neutron.ips()] == [other]
    assert until(lambda: answer(other) == "node2", SECONDS)

    connection.compute.delete_server(nodes[1].id)
    assert until(lambda: not list(connection.compute.servers()), SECONDS)
    prep.run("cleanup", "--cluster", "prod_eu", "--yes")
    assert list(octavia.load_balancers()) == list(neutron.ips()) == []
