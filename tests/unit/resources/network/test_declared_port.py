from __future__ import annotations

from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import CloudError
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import Observed
from openstack_prep.resources.cascades.network import forwardings_to
from openstack_prep.resources.lists.neutron_records import PortRecord
from openstack_prep.resources.network.declared_port import Port
from openstack_prep.resources.network.uses import INTERFACES
from tests.unit.conftest import ADMIN_PROJECT, ENDPOINTS, failure, port_row

NEUTRON = ENDPOINTS["network"] + "/v2.0"
PORT = Port(name="vip", network="net")


@pytest.fixture
def forwardings(services: requests_mock.Mocker) -> list[dict[str, Any]]:
    """The port forwardings of a floating IP to the port; a test fills them."""
    found: list[dict[str, Any]] = []
    router = port_row(id="i1", network_id="n", device_id="r1", device_owner=INTERFACES[0])
    address = {"id": "f1", "floating_ip_address": "192.0.2.1", "router_id": "r1", "port_id": None}
    address |= {"floating_network_id": "e1", "fixed_ip_address": None}
    services.get(f"{NEUTRON}/extensions", json={"extensions": [{"alias": "floating-ip-port-forwarding"}]})
    services.get(f"{NEUTRON}/ports", json={"ports": [router]})
    services.get(f"{NEUTRON}/networks", json={"networks": []})
    services.get(f"{NEUTRON}/floatingips", json={"floatingips": [address | {"project_id": ADMIN_PROJECT}]})
    services.get(f"{NEUTRON}/floatingips/f1/port_forwardings", json=lambda *_: {"port_forwardings": [*found]})
    return found


def row(revision: int) -> dict[str, Any]:
    return port_row(id="p1", network_id="n", project_id=ADMIN_PROJECT, revision_number=revision)


@pytest.mark.parametrize(("revision", "late", "gone"), [(1, False, True), (2, False, True), (2, True, False)])
def test_a_port_forwarding_that_came_after_the_judgement_keeps_the_port(
    run: CloudRun,
    services: requests_mock.Mocker,
    forwardings: list[dict[str, Any]],
    revision: int,
    late: bool,
    gone: bool,
) -> None:
    record = PortRecord.read(row(1))
    assert not list(forwardings_to(run, record)), "as it was judged"
    services.get(f"{NEUTRON}/ports/p1", json={"port": row(revision)})
    deleted = services.delete(f"{NEUTRON}/ports/p1", status_code=204)
    if late:
        forwardings.append({"id": "a", "internal_port_id": "p1", "protocol": "tcp"})
        services.delete(f"{NEUTRON}/floatingips/f1/port_forwardings/a", **failure(500))
    observed = Observed(id="p1", ours=True, record=record)
    if not gone:
        with pytest.raises(CloudError) as caught:
            PORT.delete(run, observed)
        assert (caught.value.status, caught.value.retryable, deleted.called) == (412, True, False)
    else:
        PORT.delete(run, observed)
        assert deleted.last_request.headers["If-Match"] == f"revision_number={revision}"
