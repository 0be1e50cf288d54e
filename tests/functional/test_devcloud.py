"""The devcloud itself: what other tests take for granted when they use it."""

from __future__ import annotations

import concurrent.futures
import http.client
import json
import subprocess
import time
from typing import Any

import pytest
import requests
from openstack.connection import Connection

from tests.devcloud import processes
from tests.devcloud.faults import Fault
from tests.devcloud.layout import HOST
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.qcow2 import qcow2
from tests.devcloud.tenant import Tenant

SIMPLE_STACK = {
    "heat_template_version": "2018-08-31",
    "resources": {"network": {"type": "OS::Neutron::Net"}, "value": {"type": "OS::Heat::RandomString"}},
    "outputs": {"network": {"value": {"get_resource": "network"}}},
}

PATHS = {
    "keystone": "/v3/projects",
    "glance": "/v2/images",
    "placement": "/resource_providers",
    "nova": "/v2.1/servers",
    "neutron": "/v2.0/networks",
    "cinder": "/v3/volumes",
    "heat": "/v1/stacks",
    "swift-proxy": "/v1/AUTH_somebody",
}


@pytest.fixture
def connection(tenant: Tenant) -> Connection:
    return tenant.connect()


def make_network(connection: Connection) -> tuple[Any, Any]:
    network = connection.network.create_network(name="inside")
    subnet = connection.network.create_subnet(network_id=network.id, ip_version=4, cidr="10.0.0.0/24")
    return network, subnet


def test_floating_ip_reaches_a_port_behind_a_router(connection: Connection) -> None:
    neutron = connection.network
    network, subnet = make_network(connection)
    external = neutron.find_network("external", ignore_missing=False)
    router = neutron.create_router(external_gateway_info={"network_id": external.id})
    neutron.add_interface_to_router(router, subnet_id=subnet.id)
    port = neutron.create_port(network_id=network.id)
    floating_ip = neutron.create_ip(floating_network_id=external.id, port_id=port.id)
    assert floating_ip.status == "ACTIVE"
    assert floating_ip.floating_ip_address.startswith("192.168.122.")
    assert neutron.get_router(router).status == "ACTIVE"


def test_ports_take_pairs_tags_policies_and_trunks(connection: Connection, devcloud: Devcloud) -> None:
    neutron = connection.network
    network, _subnet = make_network(connection)
    policy = devcloud.admin.network.create_qos_policy(name="slow", project_id=connection.current_project_id)
    port = neutron.create_port(network_id=network.id, allowed_address_pairs=[{"ip_address": "10.0.0.5"}])
    neutron.set_tags(port, ["openstack_prep"])
    neutron.update_port(port, qos_policy_id=policy.id)
    assert [found.id for found in neutron.ports(tags="openstack_prep")] == [port.id]
    sub_port = neutron.create_port(network_id=network.id)
    trunk = neutron.create_trunk(
        port_id=port.id,
        sub_ports=[{"port_id": sub_port.id, "segmentation_type": "vlan", "segmentation_id": 7}],
    )
    assert trunk.sub_ports[0]["port_id"] == sub_port.id


def test_update_of_a_changed_port_is_refused(connection: Connection) -> None:
    network, _subnet = make_network(connection)
    port = connection.network.create_port(network_id=network.id)
    url = f"{connection.endpoint_for('network')}/v2.0/ports/{port.id}"
    stale = {"If-Match": f"revision_number={port.revision_number}"}
    connection.network.update_port(port.id, description="moved on")
    reply = connection.session.put(url, json={"port": {"name": "mine"}}, headers=stale, raise_exc=False)
    assert reply.status_code == 412


def test_new_security_groups_let_traffic_out(connection: Connection) -> None:
    group = connection.network.create_security_group(name="open")
    directions = {rule["direction"] for rule in group.security_group_rules}
    assert directions == {"egress"}


def test_server_boots_from_an_image_and_takes_a_volume(connection: Connection) -> None:
    image = connection.image.create_image(name="empty", data=qcow2(1), disk_format="qcow2", container_format="bare")
    network, _subnet = make_network(connection)
    flavor = connection.compute.find_flavor("m1.small", ignore_missing=False)
    server = connection.compute.create_server(
        name="one", image_id=image.id, flavor_id=flavor.id, networks=[{"uuid": network.id}]
    )
    server = connection.compute.wait_for_server(server, interval=0.2, wait=60)
    assert server.status == "ACTIVE"
    volume = connection.block_storage.create_volume(size=1)
    connection.block_storage.wait_for_status(volume, "available", interval=0.2, wait=60)
    connection.compute.create_volume_attachment(server, volume_id=volume.id)
    connection.block_storage.wait_for_status(volume, "in-use", interval=0.2, wait=60)


def test_stack_completes(connection: Connection) -> None:
    stack = connection.orchestration.create_stack(name="simple", template=SIMPLE_STACK)
    stack = connection.orchestration.wait_for_status(stack, "CREATE_COMPLETE", interval=0.2, wait=60)
    (output,) = stack.outputs
    assert connection.network.get_network(output["output_value"])


def test_temporary_urls_open_what_they_sign_and_nothing_else(connection: Connection) -> None:
    swift = connection.object_store
    swift.set_account_temp_url_key("secret")
    swift.create_container("ignition")
    swift.upload_object("ignition", "bootstrap.ign", data=b"{}")
    path = f"{swift.get_endpoint()}/ignition/bootstrap.ign".partition("/v1/")[2]
    signed = swift.generate_temp_url(f"/v1/{path}", 60, "GET")
    address = swift.get_endpoint().partition("/v1/")[0]
    assert requests.get(address + signed, timeout=60).content == b"{}"
    assert requests.get(f"{address}/v1/{path}", timeout=60).status_code == 401


def test_container_quota_is_kept(connection: Connection) -> None:
    swift = connection.object_store
    url = f"{swift.get_endpoint()}/small"
    connection.session.put(url, headers={"X-Container-Meta-Quota-Count": "1"})
    codes = [connection.session.put(f"{url}/{n}", data=b"x", raise_exc=False).status_code for n in (1, 2)]
    assert codes == [201, 413]


def test_fifty_concurrent_writes_all_succeed(connection: Connection, devcloud: Devcloud) -> None:
    network, _subnet = make_network(connection)
    mark = devcloud.mark()
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        jobs = [pool.submit(connection.network.create_port, network_id=network.id) for _ in range(50)]
        assert len({job.result().id for job in jobs}) == 50
    answers = [request.status for request in devcloud.requests_since(mark) if request.method == "POST"]
    assert answers == [201] * 50


@pytest.mark.parametrize(("service", "path"), sorted(PATHS.items()))
def test_connections_are_kept_and_answers_carry_a_request_id(devcloud: Devcloud, service: str, path: str) -> None:
    connection = http.client.HTTPConnection(HOST, devcloud.layout.port(service), timeout=60)
    for _ in range(2):
        connection.request("GET", path, headers={"X-Auth-Token": devcloud.admin.auth_token})
        before = connection.sock
        reply = connection.getresponse()
        reply.read()
        assert connection.sock is before is not None
    assert reply.getheader("X-Openstack-Request-Id")


def test_log_holds_what_clients_asked_and_nothing_else(connection: Connection, devcloud: Devcloud) -> None:
    list(connection.network.networks())  # discovery happens here
    mark = devcloud.mark()
    list(connection.network.networks(name="external"))
    (request,) = devcloud.requests_since(mark)
    assert (request.service, request.method, request.path, request.query, request.status) == (
        "neutron", "GET", "/v2.0/networks", "name=external", 200,
    )  # fmt: skip
    assert request.request_id.startswith("req-")
    assert request.user_agent.startswith("openstacksdk")


def test_requests_between_services_are_told_apart(connection: Connection, devcloud: Devcloud) -> None:
    mark = devcloud.mark()
    make_network(connection)
    internal = [each for each in devcloud.requests_since(mark, internal=True) if each.internal]
    assert {each.service for each in internal} <= {"keystone", "placement", "nova"}


def test_fault_answers_in_the_services_stead(connection: Connection, devcloud: Devcloud) -> None:
    url = f"{connection.endpoint_for('network')}/v2.0/networks"
    rule = Fault("neutron", method="GET", path_regex="networks$", skip=1, times=1, status=503, body="busy",
                 headers={"Retry-After": "1"})  # fmt: skip
    with devcloud.faults(rule):
        replies = [connection.session.get(url, raise_exc=False) for _ in range(3)]
    assert [reply.status_code for reply in replies] == [200, 503, 200]
    assert (replies[1].text, replies[1].headers["Retry-After"]) == ("busy", "1")


@pytest.mark.parametrize("service", ["neutron", "swift-proxy"])
def test_dropped_answer_leaves_the_work_done(tenant: Tenant, devcloud: Devcloud, service: str) -> None:
    connection = tenant.connect()
    headers = {"X-Auth-Token": connection.auth_token}
    if service == "neutron":
        url = f"{connection.endpoint_for('network')}/v2.0/networks"
        method, body = "POST", {"network": {"name": "lost"}}
    else:
        url, method, body = f"{connection.endpoint_for('object-store')}/lost", "PUT", None
    mark = devcloud.mark()
    with (
        devcloud.faults(Fault(service, method=method, drop_answer=True)),
        pytest.raises(requests.ConnectionError),
    ):
        requests.request(method, url, json=body, headers=headers, timeout=60)
    (request,) = [each for each in devcloud.requests_since(mark) if each.service == service]
    assert (request.status, request.fault) == (201, True)
    if service == "neutron":
        assert connection.network.find_network("lost")
    else:
        assert connection.object_store.get_container_metadata("lost")


def test_delay_only_delays(connection: Connection, devcloud: Devcloud) -> None:
    list(connection.network.networks())
    with devcloud.faults(Fault("neutron", delay=0.5)):
        started = time.monotonic()
        assert list(connection.network.networks())
    assert time.monotonic() - started >= 0.5


@pytest.mark.parametrize(
    ("effect", "error"),
    [
        ("reset", requests.ConnectionError),
        ("refuse", requests.ConnectionError),
        ("cut", requests.exceptions.ChunkedEncodingError),
    ],
)
def test_connections_break_and_come_back(
    tenant: Tenant, devcloud: Devcloud, effect: str, error: type[Exception]
) -> None:
    connection = tenant.connect()
    url, headers = f"{connection.endpoint_for('compute')}/flavors", {"X-Auth-Token": connection.auth_token}
    with devcloud.faults(Fault("nova", effect=effect, delay=3)):
        with pytest.raises(error):
            requests.get(url, headers=headers, timeout=30)
        if effect == "refuse":
            with pytest.raises(requests.ConnectionError, match="Connection refused"):
                requests.get(url, headers=headers, timeout=30)
        deadline = time.monotonic() + 120
        while True:
            try:
                assert requests.get(url, headers=headers, timeout=30).ok
                break
            except requests.ConnectionError:  # it listens again a moment later
                assert effect == "refuse"
                assert time.monotonic() < deadline
                time.sleep(0.2)


def test_tuned_queries_find_what_others_find(devcloud: Devcloud) -> None:
    found = {}
    for way in ("plain", "tuned"):
        words = [devcloud.layout.venv / "bin/python", "-m", "tests.devcloud.server.orm_trial", way]
        found[way] = json.loads(subprocess.check_output(words, env=processes.environment(devcloud.layout)))
    assert found["tuned"]["found"] == found["plain"]["found"]
    assert found["tuned"]["queries"] < found["plain"]["queries"]


def test_reset_forgets(devcloud: Devcloud) -> None:
    project = devcloud.admin.identity.create_project(name="short-lived", domain_id="default")
    devcloud.reset()
    assert devcloud.admin.identity.find_project(project.id) is None
