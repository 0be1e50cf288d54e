from __future__ import annotations

from typing import Any

import pytest
import requests_mock

from openstack_prep.cloud.connection import Cloud
from openstack_prep.openshift.verify import access_path
from tests.unit.conftest import ENDPOINTS, connection, failure, sent
from tests.unit.openshift.verify.view import ID, floating, group, node, port, server, subnet

NEUTRON, NOVA = ENDPOINTS["network"] + "/v2.0", ENDPOINTS["compute"]
INTERFACE = {"device_id": "router", "device_owner": "network:router_interface"}


@pytest.fixture
def neutron(services: requests_mock.Mocker) -> requests_mock.Mocker:
    nodes = [node(f"master-{number}-0", "10.0.1.1", "master") for number in range(60)]
    ports = [port("api-port", "10.0.0.5"), *nodes, port("theirs", "10.9.0.1", tags=[], network_id="other")]

    def listed(request: Any, _: Any) -> dict[str, Any]:
        of_router = "device_owner" in request.qs
        return {"ports": [port("", "10.0.0.1", **INTERFACE)] if of_router else ports}

    services.get(f"{NEUTRON}/ports", json=listed)
    services.get(f"{NEUTRON}/floatingips", json={"floatingips": [floating("192.0.2.9", "none", router_id="another")]})
    services.get(f"{NEUTRON}/security-groups", json={"security_groups": [group("master")]})
    services.get(f"{NEUTRON}/subnets", json={"subnets": [subnet()]})
    services.get(
        f"{NEUTRON}/routers", json={"routers": [{"id": "router", "external_gateway_info": None, "routes": []}]}
    )
    services.get(f"{NOVA}/servers/detail", json={"servers": [server("master-0-0")]})
    return services


def test_a_handful_of_requests(neutron: requests_mock.Mocker) -> None:
    found = access_path.read(Cloud(connection()), ID)
    assert len(found.nodes) == 60
    assert [each.name for each in found.virtual] == [f"{ID}-api-port"]
    assert (list(found.groups or ()), list(found.servers or ())) == (["master"], ["server-master-0-0"])
    asked = sorted(each.partition(" ")[2] for each in sent(neutron))
    assert [each for each in asked if each.startswith("/v2.0/routers")] == ["/v2.0/routers?id=another&id=router"]
    assert [each.partition("?")[2] for each in asked if each.startswith("/v2.0/security-groups")] == [
        "id=master",
        f"name={ID}-worker&project_id=admin-project",  # because there are no workers
    ]
    assert len(asked) == 8


def test_what_may_not_be_read_is_left_out(neutron: requests_mock.Mocker) -> None:
    for url in (f"{NEUTRON}/floatingips", f"{NEUTRON}/routers", f"{NEUTRON}/subnets", f"{NOVA}/servers/detail"):
        neutron.get(url, **failure(403))
    found = access_path.read(Cloud(connection()), ID)
    assert (found.floating_ips, found.routers, found.subnets, found.servers) == (None, None, None, None)
    assert found.groups is not None
