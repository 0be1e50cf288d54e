"""What cleanup takes away of clusters that the stand-in made, on real services; and what it leaves."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.cloud.lease import held
from openstack_prep.core.model import OwnershipTag
from openstack_prep.verbs import exclusion
from tests import standin
from tests.devcloud.faults import Fault
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.qcow2 import qcow2
from tests.devcloud.tenant import Tenant
from tests.functional.conftest import Prep
from tests.functional.test_verify import float_ip
from tests.unit.clusters.test_cloud_provider_names import made

DEV, DEV2 = "dev-x7k2p", "dev-x7k2p-web-q9m4t"
"""The name of the second begins with the infraID of the first."""
GUESTS = "k8s-clusterapi-cluster-openshift-cluster-api-guests"


def inventory(connection: Any) -> set[str]:
    """Return all that a project holds, by kind, name and id."""
    network, compute, project = connection.network, connection.compute, connection.current_project_id
    lists = {
        "server": compute.servers(),
        "server group": compute.server_groups(),
        "volume": connection.block_storage.volumes(),
        "image": connection.image.images(owner=project),
        "container": connection.object_store.containers(),
    }
    for plural in ("ips", "ports", "routers", "subnets", "networks", "security_groups"):
        lists[plural] = getattr(network, plural)(project_id=project)
    return {f"{kind} {each.name} {each.id}" for kind, listed in lists.items() for each in listed}


@pytest.fixture
def here(tenant: Tenant, prep: Prep) -> Prep:
    """The command, as the tenant."""
    prep.environment |= {"OS_CLIENT_CONFIG_FILE": str(tenant.clouds_file), "OS_CLOUD": tenant.cloud}
    return prep


def store(connection: Any, infra_id: str) -> Any:
    """Make what a running cluster makes for itself: a registry's container, and a volume with a snapshot."""
    swift, cinder = connection.object_store, connection.block_storage
    name = f"{infra_id}-image-registry-abcdefghijklmnop"
    swift.put(f"/{name}", headers={"X-Container-Meta-Openshiftclusterid": infra_id}).raise_for_status()
    for number in range(3):
        swift.upload_object(name, f"docker/registry/v2/blob {number}", data=b"layer")
    metadata = {"cinder.csi.openstack.org/cluster": infra_id}
    volume = cinder.create_volume(size=1, name=f"pvc-{infra_id}", metadata=metadata)
    cinder.wait_for_status(volume, "available", interval=0.2, wait=60)
    snapshot = cinder.create_snapshot(volume_id=volume.id, name="snapshot-of-it", metadata=metadata)
    cinder.wait_for_status(snapshot, "available", interval=0.2, wait=60)
    return volume


def test_all_of_one_cluster_and_nothing_of_another(tenant: Tenant, here: Prep) -> None:
    connection = tenant.connect()
    api, ingress = float_ip(connection), float_ip(connection)
    standin.make(connection, DEV2, servers=False, masters=1, workers=0)
    store(connection, DEV2)
    before = inventory(connection)
    standin.make(connection, DEV, bootstrap=True, api_floating_ip=api, masters=1, workers=1)
    volume = store(connection, DEV)
    port = connection.network.find_port(f"{DEV}-api-port")
    connection.network.create_trunk(name=f"{DEV}-master-trunk-0", port_id=port.id, is_admin_state_up=True)
    here.run("post-ipi", "--infra-id", DEV, "--ingress-ip", ingress, "--yes")
    connection.compute.create_volume_attachment(master(connection), volume_id=volume.id)

    flavor = connection.compute.find_flavor("m1.small").id
    network = connection.network.find_network(f"{GUESTS}-{DEV}")
    bastion = connection.compute.create_server(
        name="bastion", flavor_id=flavor, networks=[{"uuid": network.id}], image_id=rhcos(connection)
    )
    connection.compute.wait_for_server(bastion, interval=0.2, wait=60)
    refused = here.run("cleanup", "--infra-id", DEV, "--yes", code=2).stderr
    assert f"network/{network.name}: is not used by {DEV} alone: server bastion {bastion.id} has port" in refused
    connection.compute.delete_server(bastion)
    connection.compute.wait_for_delete(bastion, interval=0.2, wait=60)

    listed = here.run("cleanup", "--infra-id", DEV, "--plan", "--format", "json").stdout
    steps = {step["resource"]: step["action"] for step in json.loads(listed)["steps"]}
    assert steps.keys() >= {
        f"trunk/{DEV}-master-trunk-0",
        f"floating_ip_attachment/{api}",
        f"volume/pvc-{DEV}",
        f"server/{DEV}-bootstrap",
    }
    assert len(inventory(connection) - before) > 15
    said = here.run("cleanup", "--infra-id", DEV, "--yes").stdout
    assert f"{len(steps)} done, 0 failed" in said
    assert inventory(connection) == before
    assert {(each.port_id, each.description) for each in connection.network.ips()} == {(None, "")}
    assert here.run("cleanup", "--infra-id", DEV, "--yes").stdout.startswith(f"nothing of {DEV} in project")


def test_what_it_takes_from_others_has_to_be_allowed(tenant: Tenant, here: Prep) -> None:
    """A rule that admits the workers, a server booted from the cluster's image, a volume restored from a backup.

    And a floating IP on a port that Nova has made for a machine.
    """
    connection = tenant.connect()
    neutron, nova, cinder = connection.network, connection.compute, connection.block_storage
    standin.make(connection, DEV, masters=1, workers=0)
    group = neutron.find_security_group(f"{DEV}-worker")
    database = neutron.create_security_group(name="database")
    rule = {"direction": "ingress", "ethertype": "IPv4", "protocol": "tcp"}
    admits = neutron.create_security_group_rule(security_group_id=database.id, remote_group_id=group.id, **rule)
    copies = {"cinder.csi.openstack.org/cluster": DEV, "src_backup_id": "of-a-backup"}
    restored = cinder.create_volume(size=1, name="pvc-1", metadata=copies)
    cinder.wait_for_status(restored, "available", interval=0.2, wait=60)
    (image,) = connection.image.images(owner=tenant.project_id)
    flavor = nova.find_flavor("m1.small").id
    server = nova.create_server(name="theirs", flavor_id=flavor, image_id=image.id, networks="none")
    nova.wait_for_server(server, interval=0.2, wait=60)
    outside = neutron.find_network("external", ignore_missing=False).id
    network = neutron.create_network(name="of-the-user")
    subnet = neutron.create_subnet(network_id=network.id, ip_version=4, cidr="10.44.0.0/24")
    router = neutron.create_router(name="of-the-user", external_gateway_info={"network_id": outside})
    neutron.add_interface_to_router(router, subnet_id=subnet.id)
    place = {"networks": [{"uuid": network.id}], "metadata": {"openshiftClusterID": DEV}}
    machine = nova.create_server(name=f"{DEV}-extra", flavor_id=flavor, image_id=image.id, **place)
    nova.wait_for_server(machine, interval=0.2, wait=60)
    (port,) = neutron.ports(device_id=machine.id)
    reached = neutron.create_ip(floating_network_id=outside, port_id=port.id)

    shown = json.loads(here.run("cleanup", "--infra-id", DEV, "--plan", "--format", "json", code=2).stdout)
    losses = {loss["address"]: loss["effect"] for step in shown["steps"] for loss in step.get("losses", ())}
    taken = (f"security_group_rule/{admits.id}", f"server/{server.id}", f"floating_ip/{reached.id}")
    assert losses == dict.fromkeys(taken, "cut off")
    here.run("cleanup", "--infra-id", DEV, "--yes", "--allow-loss", f"server/{server.id}", code=2)
    assert neutron.find_security_group(f"{DEV}-worker") is not None
    allowed = [word for address in losses for word in ("--allow-loss", address)]
    here.run("cleanup", "--infra-id", DEV, "--yes", *allowed)
    assert {each.id for each in cinder.volumes()} == {restored.id}


def test_what_comes_while_it_waits_for_another_run_goes_too(tenant: Tenant, here: Prep) -> None:
    connection = tenant.connect()
    before = inventory(connection)
    connection.network.create_security_group(name=f"{DEV}-master")
    run = CloudRun(Cloud(connection), OwnershipTag(DEV))
    with held(run, exclusion.look(run, DEV, ())):
        process = here.start("cleanup", "--infra-id", DEV, "--yes")
        assert process.stderr
        while "waiting" not in process.stderr.readline():
            assert process.poll() is None
        connection.network.create_security_group(name=f"{DEV}-worker")
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "2 done, 0 failed" in out
    assert inventory(connection) == before


def test_what_one_kubernetes_cluster_created_and_nothing_of_another(tenant: Tenant, here: Prep) -> None:
    """The name of the one begins the name of the other; this cloud has no Octavia."""
    connection = tenant.connect()
    for cluster in ("prod_eu", "kubernetes"):
        serve(connection, cluster)
    before = inventory(connection)
    volume, group = serve(connection, "prod")
    flavor = connection.compute.find_flavor("m1.small").id
    image = connection.image.create_image("empty", data=qcow2(1), disk_format="qcow2", container_format="bare").id
    network = connection.network.create_network(name="prod")
    connection.network.create_subnet(network_id=network.id, ip_version=4, cidr="10.0.0.0/24")
    worker = connection.compute.create_server(
        name="worker", flavor_id=flavor, image_id=image, networks=[{"uuid": network.id}]
    )
    connection.compute.wait_for_server(worker, interval=0.2, wait=60)
    (port,) = connection.network.ports(device_id=worker.id)
    connection.network.update_port(port, security_groups=[group.id])
    connection.compute.create_volume_attachment(worker, volume_id=volume.id)
    connection.block_storage.wait_for_status(volume, "in-use", interval=0.2, wait=60)

    refused = here.run("cleanup", "--cluster", "prod", "--yes", code=2).stderr
    assert f"volume/{volume.name}: is not used by prod alone: server {worker.id} has the volume attached" in refused
    assert f"security_group/{group.name}: is not used by prod alone: server worker {worker.id} has port" in refused
    connection.compute.delete_server(worker)
    connection.compute.wait_for_delete(worker, interval=0.2, wait=60)
    connection.network.delete_network(network)
    connection.image.delete_image(image)

    shown = json.loads(here.run("cleanup", "--cluster", "prod", "--plan", "--format", "json").stdout)
    assert shown["cluster"] == "prod"
    assert sorted(step["resource"].partition("/")[0] for step in shown["steps"]) == [
        "floating_ip",
        "security_group",
        "volume",
        "volume_snapshot",
    ]
    here.run("cleanup", "--cluster", "prod", "--yes")
    assert inventory(connection) == before
    assert here.run("cleanup", "--cluster", "prod", "--yes").stdout.startswith("nothing of prod in project")


def serve(connection: Any, cluster: str) -> tuple[Any, Any]:
    """Make what a cluster's Service and claim create; return the volume and the security group."""
    cinder, network = connection.block_storage, connection.network
    raws = made(cluster, "default", "web")
    network.create_ip(
        floating_network_id=network.find_network("external").id, description=raws["floating_ip"]["description"]
    )
    group = network.create_security_group(**raws["security_group"])
    volume = cinder.create_volume(size=1, **raws["volume"])
    cinder.wait_for_status(volume, "available", interval=0.2, wait=60)
    snapshot = cinder.create_snapshot(volume_id=volume.id, **raws["volume_snapshot"])
    cinder.wait_for_status(snapshot, "available", interval=0.2, wait=60)
    return volume, group


LOST = [
    Fault("nova", method="DELETE", path_regex="/os-server-groups/", drop_answer=True),
    Fault("neutron", method="DELETE", path_regex="/ports/", drop_answer=True, times=2),
    Fault("neutron", method="DELETE", path_regex="/ports/", status=403, skip=2),
    Fault("neutron", method="PUT", path_regex="/floatingips/", drop_answer=True),
    Fault("neutron", method="PUT", path_regex="/remove_router_interface", drop_answer=True),
    Fault("neutron", method="DELETE", path_regex="/routers/", status=409),
    Fault("neutron", method="DELETE", path_regex="/subnets/", status=503),
    Fault("neutron", method="DELETE", path_regex="/networks/", drop_answer=True),
    Fault("glance", method="DELETE", path_regex="/images/", status=500, times=2),
]


@pytest.mark.parametrize("trouble", ["killed", "lost"])
def test_it_converges(trouble: Literal["killed", "lost"], devcloud: Devcloud, tenant: Tenant, here: Prep) -> None:
    """Killed after its first, third ... write; or with answers lost and services that fail."""
    connection = tenant.connect()
    external = connection.network.find_network("external").id
    ours = connection.network.create_ip(floating_network_id=external, description="edited in Horizon")
    connection.network.set_tags(ours, ["openstack-prep:lab~api"])
    yours = float_ip(connection)
    before = {each for each in inventory(connection) if ours.id not in each}
    more = {"api_floating_ip": ours.floating_ip_address, "ingress_floating_ip": yours, "masters": 1, "workers": 1}
    standin.make(connection, DEV, era="terraform", **more)
    words = ["cleanup", "--infra-id", DEV, "--release", "lab", "--yes"]
    if trouble == "lost":
        with devcloud.faults(*LOST):
            here.run(*words)
    else:
        for write in (1, 3, 3):
            here.run_killed(write, *words)
        here.run(*words)
    assert inventory(connection) == before


def master(connection: Any) -> Any:
    return connection.compute.find_server(f"{DEV}-master-0", ignore_missing=False)


def rhcos(connection: Any) -> str:
    return str(connection.image.find_image(f"{DEV}-rhcos", ignore_missing=False).id)
