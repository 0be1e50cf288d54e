"""What post-ipi and its kinds do on a real Neutron, with the ports that the installer leaves."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from openstack_prep.base.errors import PlanRefused
from openstack_prep.cloud.connection import Cloud
from openstack_prep.hooks import post_ipi
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.resources.addresses.floating_ip import FloatingIP
from openstack_prep.resources.addresses.floating_ip_attachment import FloatingIPAttachment
from openstack_prep.spec import Spec
from openstack_prep.verbs import api
from tests.devcloud.faults import Fault
from tests.devcloud.pytest_devcloud import Devcloud
from tests.devcloud.tenant import Tenant
from tests.functional.cluster import VIPS, make_cluster
from tests.functional.conftest import Prep

DEV, DEV2 = "dev-x7k2p", "dev2-q9m4t"


def float_ip(connection: Any, description: str) -> Any:
    external = connection.network.find_network("external", ignore_missing=False)
    return connection.network.create_ip(floating_network_id=external.id, description=description)


def served(connection: Any, address: str) -> str | None:
    """Return the name of the port that a floating IP serves."""
    (found,) = connection.network.ips(floating_ip_address=address)
    return str(connection.network.get_port(found.port_id).name) if found.port_id else None


def test_the_command_twice_and_a_stolen_address(tenant: Tenant, prep: Prep) -> None:
    connection = tenant.connect()
    dev = make_cluster(connection, DEV, ports=("api-port", "ingress-port", "master-0-0", "worker-0-abcde"))
    dev2 = make_cluster(connection, DEV2, ports=("ingress-port", "master-0-0"))
    theirs = dev.port("worker-0-fghij", pairs=["10.9.9.9"])
    ingress, serving = float_ip(connection, "Ingress dev.example.com"), float_ip(connection, "")
    connection.network.update_ip(serving, port_id=connection.network.find_port(f"{DEV2}-ingress-port").id)
    prep.environment |= {"OS_CLIENT_CONFIG_FILE": str(tenant.clouds_file)}
    del prep.environment["OS_CLOUD"]
    identifier = {"cloud": tenant.cloud, "identifier": {"openshiftClusterID": DEV}}
    metadata = {"clusterName": "dev", "clusterID": "", "infraID": DEV, "openstack": identifier}
    (prep.folder / "metadata.json").write_text(json.dumps(metadata))
    words = ["post-ipi", "--yes", "--vip", VIPS[0], "--vip", VIPS[1]]

    said = prep.run(*words, "--ingress-ip", ingress.floating_ip_address).stdout
    assert "2 done, 0 failed" in said
    assert served(connection, ingress.floating_ip_address) == f"{DEV}-ingress-port"
    assert dev.pairs("worker-0-abcde") == dev.pairs("master-0-0") == set(VIPS)
    assert dev.pairs("worker-0-fghij") == {*VIPS, "10.9.9.9"}
    assert dev.pairs("ingress-port") == set()
    second = prep.run(*words, "--ingress-ip", ingress.floating_ip_address).stdout
    assert second == "nothing to do: 2 unchanged\n"
    assert connection.network.get_port(theirs.id).security_group_ids

    api_ip = ["post-ipi", "--yes", "--infra-id", DEV, "--os-cloud", tenant.cloud, "--api-ip"]
    refused = prep.run(*api_ip, serving.floating_ip_address, code=2).stderr
    assert f"is attached to another port: {DEV2}-ingress-port" in refused
    assert served(connection, serving.floating_ip_address) == f"{DEV2}-ingress-port"
    prep.run(*api_ip, serving.floating_ip_address, "--move")
    assert served(connection, serving.floating_ip_address) == f"{DEV}-api-port"
    assert dev2.pairs("master-0-0") == set(VIPS)


def test_a_port_that_comes_later(tenant: Tenant) -> None:
    connection = tenant.connect()
    dev = make_cluster(connection, DEV, ports=())
    address = float_ip(connection, "").floating_ip_address
    cloud = Cloud(tenant.connect())
    with pytest.raises(PlanRefused, match=f"port/{DEV}-ingress-port does not exist"):
        post_ipi(cloud, infra_id=DEV, ingress_floating_ip=address)
    timer = threading.Timer(3, lambda: dev.port("ingress-port", address=VIPS[1], tagged=False))
    timer.start()
    started = time.monotonic()
    report = post_ipi(cloud, infra_id=DEV, ingress_floating_ip=address, wait=60)
    timer.join()
    report.raise_for_failures()
    assert time.monotonic() - started > 2.5
    assert served(connection, address) == f"{DEV}-ingress-port"


def test_eight_writers_lose_nothing(tenant: Tenant) -> None:
    connection = tenant.connect()
    dev = make_cluster(connection, DEV, ports=("master-0-0", "master-1-0"))
    given = [f"10.0.9.{number}" for number in range(8)]  # with the two of the installer Neutron's ten

    def write(address: str) -> None:
        pairs = AddressPairs(name=address, infra_id=DEV, addresses=(address,))
        api.apply(Cloud(tenant.connect()), [pairs], name=f"pairs-{address}").raise_for_failures()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, given))
    assert dev.pairs("master-0-0") == dev.pairs("master-1-0") == {*VIPS, *given}


def test_kinds_from_a_spec_and_back(devcloud: Devcloud, tenant: Tenant) -> None:
    connection = tenant.connect()
    dev = make_cluster(connection, DEV, ports=("api-port", "ingress-port", "master-0-0"))
    adopted = float_ip(connection, "by hand")
    own = FloatingIP(name="api", external_network="external")
    spec = Spec(
        "lab",
        (
            own,
            FloatingIPAttachment(port=f"{DEV}-api-port", floating_ip="api"),
            FloatingIPAttachment(port=f"{DEV}-ingress-port", address=adopted.floating_ip_address),
            AddressPairs(name="more", ports=(f"{DEV}-master-0-0",), addresses=("2001:db8::5", "10.8.0.0/16")),
        ),
    )
    cloud = Cloud(tenant.connect())
    lost = (
        Fault("neutron", method="PUT", path_regex=f"/{each}/", drop_answer=True) for each in ("floatingips", "ports")
    )
    with devcloud.faults(*lost):
        report = api.apply(cloud, spec)
    report.raise_for_failures()
    assert not api.plan(cloud, spec)
    assert served(connection, report.outputs["floating_ip/api"]) == f"{DEV}-api-port"
    assert dev.pairs("master-0-0") == {*VIPS, "2001:db8::5", "10.8.0.0/16"}
    api.destroy(cloud, spec).raise_for_failures()
    assert served(connection, adopted.floating_ip_address) is None
    assert connection.network.get_ip(adopted.id).description == "by hand"
    assert dev.pairs("master-0-0") == set(VIPS)
    assert [each.id for each in connection.network.ips()] == [adopted.id]


def test_a_port_without_port_security_needs_no_pair(devcloud: Devcloud, tenant: Tenant) -> None:
    connection = tenant.connect()
    dev = make_cluster(connection, DEV, ports=("master-0-0",))
    port = dev.port("master-1-0")
    connection.network.update_port(port, security_group_ids=[], is_port_security_enabled=False)
    report = post_ipi(Cloud(tenant.connect()), infra_id=DEV, vips=VIPS)
    report.raise_for_failures()
    assert (dev.pairs("master-0-0"), dev.pairs("master-1-0")) == (set(VIPS), set())
    assert not post_ipi(Cloud(tenant.connect()), infra_id=DEV, vips=VIPS).changed
