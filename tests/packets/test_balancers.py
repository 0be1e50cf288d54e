"""Load balancers of a real Octavia with OVN's provider: who answers outside, what is said of it, and what goes."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.demo import KEY
from tests.devcloud.data_plane import OUTSIDE, DataPlane
from tests.devcloud.layout import REPOSITORY, with_octavia
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.qcow2 import qcow2
from tests.devcloud.tenant import Tenant, connect
from tests.functional.conftest import Prep
from tests.functional.test_exposed_clusters import SHIPPED
from tests.packets.machines import Node, boot, get, until, wait_for_network
from tests.unit.clusters.test_cloud_provider_names import made

SECONDS = 60
PORT, API, JOIN = 443, 6443, 9345


@pytest.fixture(autouse=True, scope="module")
def needs_octavia() -> None:
    """Fail without Octavia, instead of after minutes of waiting."""
    assert with_octavia(), "set OPENSTACK_PREP_DEVCLOUD_OCTAVIA=1, as tox -e packets does"


def balance(connection: Any, cluster: str, subnet: Any, nodes: list[Node]) -> Any:
    """Make the load balancer that the cloud provider makes for a Service ``web`` of a cluster."""
    octavia = connection.load_balancer
    balancer = octavia.create_load_balancer(
        vip_subnet_id=subnet.id, provider="ovn", **made(cluster, "default", "web")["load_balancer"]
    )

    def settled() -> bool:
        return str(octavia.get_load_balancer(balancer.id).provisioning_status) == "ACTIVE"

    assert until(settled, SECONDS)
    listener = octavia.create_listener(load_balancer_id=balancer.id, protocol="TCP", protocol_port=PORT)
    assert until(settled, SECONDS)
    pool = octavia.create_pool(listener_id=listener.id, protocol="TCP", lb_algorithm="SOURCE_IP_PORT")
    assert until(settled, SECONDS)
    for node in nodes:
        octavia.create_member(pool, address=node.address, protocol_port=PORT, subnet_id=subnet.id)
        assert until(settled, SECONDS)
    return octavia.get_load_balancer(balancer.id)


def expose(connection: Any, cluster: str, balancer: Any) -> str:
    """Make its floating IP, group, volume and snapshot; returns the floating IP's address."""
    raws, neutron = made(cluster, "default", "web"), connection.network
    external = neutron.find_network("external", ignore_missing=False)
    neutron.create_security_group(**raws["security_group"])
    volume = connection.block_storage.create_volume(size=1, **raws["volume"])
    connection.block_storage.wait_for_status(volume, "available", interval=0.2, wait=SECONDS)
    connection.block_storage.create_snapshot(volume_id=volume.id, **raws["volume_snapshot"])
    floating = neutron.create_ip(floating_network_id=external.id, port_id=balancer.vip_port_id, **raws["floating_ip"])
    return str(floating.floating_ip_address)


def left(connection: Any) -> dict[str, list[str]]:
    """Return what is left of clusters, by kind."""
    neutron, cinder = connection.network, connection.block_storage
    return {
        "load_balancer": [each.name for each in connection.load_balancer.load_balancers()],
        "floating_ip": [each.floating_ip_address for each in neutron.ips()],
        "security_group": [each.description for each in neutron.security_groups() if each.name.startswith("lb-sg-")],
        "volume": [str(each.metadata) for each in cinder.volumes()],
        "volume_snapshot": [str(each.metadata) for each in cinder.snapshots()],
    }


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
    balancers = {
        name: balance(connection, name, subnet, [node]) for name, node in zip(("prod", "prod_eu"), nodes, strict=True)
    }
    mine, other = (expose(connection, name, balancer) for name, balancer in balancers.items())

    def answer(address: str) -> str:
        return get(plane, OUTSIDE, f"https://{address}/")

    assert until(lambda: answer(mine) == "node1", SECONDS)
    assert until(lambda: answer(other) == "node2", SECONDS)
    balancer = "load_balancer/kube_service_prod_default_web"
    refused = prep.run("cleanup", "--cluster", "prod", "--yes", code=2).stderr
    assert f"{balancer}: is not used by prod alone: it balances to {nodes[0].address}" in refused
    assert answer(mine) == "node1"

    octavia.update_load_balancer(
        balancers["prod"], tags=["kube_service_prod_default_web", "kube_service_prod_eu_shop_web"]
    )
    connection.compute.delete_server(nodes[0].id)
    assert until(lambda: len(list(connection.compute.servers())) == 1, SECONDS)
    assert "kube_service_prod_eu_shop_web shares it" in prep.run("cleanup", "--cluster", "prod", "--yes", code=2).stderr
    octavia.update_load_balancer(balancers["prod"], tags=[])
    shown = json.loads(prep.run("cleanup", "--cluster", "prod", "--plan", "--format", "json").stdout)
    raws = made("prod", "default", "web")
    assert {step["resource"] for step in shown["steps"]} == {
        *(balancer, f"floating_ip/{mine}"),
        *(f"{kind}/{raws[kind]['name']}" for kind in ("security_group", "volume", "volume_snapshot")),
    }
    before = left(connection)
    prep.run("cleanup", "--cluster", "prod", "--yes")
    plane.sync()
    after = left(connection)
    assert {kind: len(each) for kind, each in before.items()} == dict.fromkeys(before, 2)
    assert {kind: len(each) for kind, each in after.items()} == dict.fromkeys(before, 1)
    assert "prod_eu" in str(after["load_balancer"] + after["security_group"])
    assert until(lambda: answer(other) == "node2", SECONDS)

    connection.compute.delete_server(nodes[1].id)
    assert until(lambda: not list(connection.compute.servers()), SECONDS)
    prep.run("cleanup", "--cluster", "prod_eu", "--yes")
    assert not any(left(connection).values())


@dataclass(frozen=True)
class Balanced:
    """The shipped RKE2 cluster behind a load balancer for its API, and an exposure of its spec."""

    prep: Prep
    plane: DataPlane
    connection: Any
    """Of the cluster's user."""
    server: Node
    api: str
    """The API's floating IP, of the stack."""
    web: str
    """The floating IP of the exposure."""

    def answer(self, address: str, port: int) -> str:
        return get(self.plane, OUTSIDE, f"https://{address}:{port}/")

    def shown(self) -> list[str]:
        """Return the codes of the hops that ``exposures show`` does not find right."""
        words = ("exposures", "show", self.prep.spec.name, "--format", "json")
        try:
            out = self.prep.run(*words).stdout
        except AssertionError:
            out = self.prep.run(*words, code=1).stdout
        (found,) = json.loads(out)["exposures"]
        return [hop["code"] for hop in found["hops"] if hop["status"] != "ok"]


def rke2_spec() -> dict[str, Any]:
    """Return the shipped spec with one server, a load balancer, and an exposure that leads to another one."""
    spec: dict[str, Any] = yaml.safe_load((SHIPPED / "rke2.yaml").read_text())
    spec["users"][0]["password"] = {"env": "PREP_PASSWORD"}
    spec["role_assignments"].append({"user": "rke2-user", "role": "load-balancer_member"})
    spec["images"][0]["source"] = "disk.qcow2"
    spec["keypairs"][0]["public_key"] = {"file": "id_ed25519.pub"}
    more = {"server_count": 1, "agent_count": 0, "wait_timeout": 0, "api_load_balancer": "ovn"}
    spec["stacks"][0]["parameters"] |= more
    spec["floating_ips"] = [{"name": "web", "external_network": "external"}]
    target = {"how": "floating-ip", "target": {"service": "default/web"}, "ports": [{"port": PORT}]}
    spec["exposures"] = [{"name": "web", "cluster": "web", "floating_ip": "web", **target}]
    spec["exposed_clusters"] = [{"name": "web", "directory": "web-access"}]
    return spec


def served(devcloud: Devcloud, prep: Prep) -> Balanced:
    """Apply that spec, and let its server answer as the API."""
    prep.write(rke2_spec())
    (prep.folder / "id_ed25519.pub").write_text(KEY)
    prep.apply()
    admin, plane = devcloud.admin, DataPlane(devcloud.layout)
    project = admin.identity.find_project("rke2", ignore_missing=False)
    words = {"username": "rke2-user", "password": prep.environment["PREP_PASSWORD"], "project_name": "rke2"}
    user: Any = admin.connect_as(**words)
    (server,) = user.compute.servers()
    (port,) = admin.network.ports(device_id=server.id)
    node = Node(plane, server.name, server.id, port.fixed_ips[0]["ip_address"], port.id)
    wait_for_network([node])
    node.answer(prep.folder, API, JOIN, PORT, host="api.rke2.example.com")
    (balancer,) = user.load_balancer.load_balancers()
    (api,) = user.network.ips(port_id=balancer.vip_port_id)
    (web,) = (each for each in user.network.ips(project_id=project.id) if each.id != api.id)
    return Balanced(prep, plane, user, node, str(api.floating_ip_address), str(web.floating_ip_address))


def test_the_api_behind_a_balancer(devcloud: Devcloud, prep: Prep) -> None:
    """Heat makes the balancer with all its parts; after destroy nothing answers, and nothing is left."""
    world = served(devcloud, prep)
    user, node = world.connection, world.server
    assert until(lambda: world.answer(world.api, API) == node.name, SECONDS)
    assert world.answer(world.api, JOIN) == ""  # only for nodes
    assert world.prep.changes() == set()
    assert world.shown() == ["floating-ip.detached"]
    assert world.answer(world.web, PORT) == ""

    subnet = user.network.find_subnet("nodes", ignore_missing=False)
    balancer = balance(user, "rke2", subnet, [node])
    (web,) = user.network.ips(floating_ip_address=world.web)
    devcloud.admin.network.update_ip(web, port_id=balancer.vip_port_id)
    assert until(lambda: world.answer(world.web, PORT) == node.name, SECONDS)
    assert world.shown() == []

    refused = world.prep.destroy(code=2).stderr
    assert f"orphan load_balancer/{balancer.id} ({balancer.name}), which" in refused
    assert world.answer(world.web, PORT) == world.answer(world.api, API) == node.name
    user.load_balancer.delete_load_balancer(balancer, cascade=True)
    assert until(lambda: len(list(user.load_balancer.load_balancers())) == 1, SECONDS)
    world.prep.destroy()
    assert [each.name for each in devcloud.admin.load_balancer.load_balancers()] == []
    assert world.answer(world.web, PORT) == world.answer(world.api, API) == ""


BALANCER = """
heat_template_version: wallaby
resources:
  api: {type: OS::Octavia::LoadBalancer, properties: {vip_subnet: nodes, provider: ovn}}
"""


def test_a_quota_of_octavia(devcloud: Devcloud, tenant: Tenant, prep: Prep) -> None:
    """A stack that exceeds it fails with Octavia's reason; with a larger one, the next apply completes it."""
    prep.environment |= {"OS_CLIENT_CONFIG_FILE": str(tenant.clouds_file), "OS_CLOUD": tenant.cloud}
    neutron: Any = tenant.connect().network
    network = neutron.create_network(name="nodes")
    neutron.create_subnet(name="nodes", network_id=network.id, ip_version=4, cidr="10.9.0.0/24")
    admin: Any = devcloud.admin.load_balancer
    admin.update_quota(tenant.project_id, load_balancers=0)
    (prep.folder / "balancer.yaml").write_text(BALANCER)
    prep.write({"name": "balanced", "stacks": [{"name": "balanced", "template": "balancer.yaml"}]})
    failed = prep.apply(code=1)["stack/balanced"]
    assert "Quota has been met for resources: Load Balancer" in failed["error"]
    admin.update_quota(tenant.project_id, load_balancers=1)
    prep.apply()
    assert prep.changes() == set()
    prep.destroy()
    prep.spec.unlink()


INFRA_ID, VIRTUAL = "example-x7k2p", "10.0.0.200"


def workers(connection: Any, plane: DataPlane, folder: Path) -> tuple[Any, list[Node]]:
    """Make subnet and workers of a node pool, with the tag of HyperShift (platform/openstack/openstack.go)."""
    neutron = connection.network
    network = neutron.create_network(name="hosted")
    subnet = neutron.create_subnet(name="hosted", network_id=network.id, ip_version=4, cidr="10.0.0.0/24")
    external = neutron.find_network("external", ignore_missing=False)
    router = neutron.create_router(name="hosted", external_gateway_info={"network_id": external.id})
    neutron.add_interface_to_router(router, subnet_id=subnet.id)
    group = neutron.create_security_group(name="hosted")
    ingress = {"direction": "ingress", "protocol": "tcp", "port_range_min": PORT, "port_range_max": PORT}
    neutron.create_security_group_rule(security_group_id=group.id, **ingress)
    ports = [
        neutron.create_port(name=f"{INFRA_ID}-worker-{number}", network_id=network.id, security_groups=[group.id])
        for number in range(2)
    ]
    for each in (network, subnet, *ports):
        neutron.set_tags(each, [f"openshiftClusterID={INFRA_ID}"])
    image = connection.image.create_image("rhcos", data=qcow2(1), disk_format="qcow2", container_format="bare")
    nodes = boot(connection, plane, ports, image.id)
    for node in nodes:
        node.answer(folder, PORT)
    return subnet, nodes


def remove_workers(connection: Any, nodes: list[Node]) -> None:
    for node in nodes:
        connection.compute.delete_server(node.id)
    assert until(lambda: not list(connection.compute.servers()), SECONDS)
    for node in nodes:
        connection.network.delete_port(node.port_id)


def remove_network(connection: Any, subnet: Any) -> None:
    """Delete what ``workers`` made beside the workers."""
    neutron = connection.network
    router = neutron.find_router("hosted", ignore_missing=False)
    neutron.remove_interface_from_router(router, subnet_id=subnet.id)
    neutron.delete_router(router)
    neutron.delete_network(subnet.network_id)
    neutron.delete_security_group(neutron.find_security_group("hosted", ignore_missing=False))
    connection.image.delete_image(connection.image.find_image("rhcos", ignore_missing=False))


def test_what_a_hosted_control_plane_needs(devcloud: Devcloud, prep: Prep) -> None:
    """The spec of docs/openshift.md: its application credential makes workers and a load balancer, which answers."""
    page = (REPOSITORY / "docs/openshift.md").read_text().partition("## Hosted control planes")[2]
    spec = yaml.safe_load(page.partition("```yaml\n")[2].partition("```")[0])
    spec["users"][0]["password"] = {"env": "PREP_PASSWORD"}
    spec["role_assignments"].append({"user": "hosted-user", "role": "load-balancer_member"})
    prep.write(spec)
    prep.apply()
    connection, plane = connect(prep.folder / "hosted/clouds.yaml", "hosted"), DataPlane(devcloud.layout)
    (ingress,) = connection.network.ips()
    address = str(ingress.floating_ip_address)
    subnet, nodes = workers(connection, plane, prep.folder)
    balancer = balance(connection, INFRA_ID, subnet, nodes)
    connection.network.update_ip(ingress, port_id=balancer.vip_port_id)
    assert until(lambda: get(plane, OUTSIDE, f"https://{address}/") in [node.name for node in nodes], SECONDS)

    user = replace(
        prep, environment=prep.environment | {"OS_CLIENT_CONFIG_FILE": "hosted/clouds.yaml", "OS_CLOUD": "hosted"}
    )
    first, other = nodes
    first.announce(VIRTUAL)
    assert other.get(f"https://{VIRTUAL}/") == ""
    user.run("post-ipi", "--yes", "--infra-id", INFRA_ID, "--vip", VIRTUAL)
    plane.sync()
    assert until(lambda: other.get(f"https://{VIRTUAL}/") == first.name)

    assert "it balances to" in user.run("cleanup", "--cluster", INFRA_ID, "--yes", code=2).stderr
    assert get(plane, OUTSIDE, f"https://{address}/")
    remove_workers(connection, nodes)
    user.run("cleanup", "--cluster", INFRA_ID, "--yes")
    assert not list(connection.load_balancer.load_balancers())
    assert [str(each.floating_ip_address) for each in connection.network.ips()] == [address]  # of the spec
    assert get(plane, OUTSIDE, f"https://{address}/") == ""
    remove_network(connection, subnet)
