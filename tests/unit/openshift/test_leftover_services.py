from __future__ import annotations

from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import CloudError, ResourceFailed, WaitTimeout
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core.model import OwnershipTag
from openstack_prep.openshift import leftover
from openstack_prep.openshift.leftover import NETWORK, detach, list_all, remove, remove_router
from openstack_prep.resources.lists.neutron_records import FloatingIPRecord, PortRecord, RouterRecord
from openstack_prep.resources.lists.nova_records import ServerRecord
from openstack_prep.resources.lists.volumes import VolumeRecord
from tests.unit.conftest import ENDPOINTS, connection, failure, port_row, sent, subnet_row
from tests.unit.hooks.test_cleanup import floating
from tests.unit.texts import expect_error

NEUTRON, NOVA = ENDPOINTS["network"] + "/v2.0", ENDPOINTS["compute"]
CINDER, SWIFT = ENDPOINTS["block-storage"], ENDPOINTS["object-store"]
ID = "dev-x7k2p"
SERVER = ServerRecord(id="s", name="master-0", status="ACTIVE", metadata={})
ROUTER: dict[str, Any] = {"id": "r", "external_gateway_info": None, "routes": []}
ROUTE = {"destination": "10.9.0.0/16", "nexthop": "10.0.0.9"}


def router(**fields: Any) -> RouterRecord:
    return RouterRecord.read(ROUTER | fields)


@pytest.fixture
def run(services: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch) -> CloudRun:
    monkeypatch.setattr(leftover, "PAUSE", 0.001)
    return CloudRun(Cloud(connection()), OwnershipTag(ID))


def test_a_neutron_without_trunks(run: CloudRun, services: requests_mock.Mocker) -> None:
    services.get(f"{NEUTRON}/trunks", **failure(404))
    services.get(f"{NEUTRON}/ports", **failure(404))
    assert list_all(run, "trunk", ID) == []
    with pytest.raises(CloudError):
        list_all(run, "port", ID)


def test_a_cloud_without_octavia(run: CloudRun, services: requests_mock.Mocker) -> None:
    assert list_all(run, "load_balancer", ID) == []
    assert sent(services) == []


def test_a_server_is_waited_for(run: CloudRun, services: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"{NOVA}/servers/s"
    services.delete(path, status_code=204)
    active = {"json": {"server": {"status": "ACTIVE"}}}
    services.get(path, [active, active, failure(404)])
    remove(run, "server", SERVER)
    services.get(path, **active)
    monkeypatch.setattr(leftover, "GONE_SECONDS", 0.0)
    with expect_error(WaitTimeout, "server master-0", "0", "ACTIVE"):
        remove(run, "server", SERVER)


def test_a_volume_is_removed_when_its_server_has_let_it_go(run: CloudRun, services: requests_mock.Mocker) -> None:
    path, volume = f"{CINDER}/volumes/v", VolumeRecord(id="v", name="pvc-1", metadata={})
    said = [{"json": {"volume": {"status": each}}} for each in ("in-use", "available", "deleting")]
    services.get(path, [*said, failure(404)])
    gone = services.delete(path, status_code=202)
    remove(run, "volume", volume)
    assert gone.called_once
    services.get(path, json={"volume": {"status": "error_deleting"}})
    with expect_error(ResourceFailed, "volume pvc-1", "attached", "error_deleting"):
        remove(run, "volume", volume)
    services.get(path, **failure(404))
    remove(run, "volume", volume)  # somebody else was first


def test_what_neutron_forbids_for_a_moment_is_tried_again(run: CloudRun, services: requests_mock.Mocker) -> None:
    services.delete(f"{NEUTRON}/ports/p", **failure(403))
    with pytest.raises(CloudError) as caught:
        remove(run, "port", PortRecord.read(port_row(id="p")))
    assert caught.value.retryable


def test_a_router_loses_routes_then_interfaces(run: CloudRun, services: requests_mock.Mocker) -> None:
    path = f"{NEUTRON}/routers/r"
    written = services.put(path, json={"router": {}})
    services.put(f"{path}/remove_router_interface", [failure(404), {"json": {}}])
    services.get(path, json={"router": ROUTER | {"revision_number": 7}})
    deleted = services.delete(path, status_code=204)
    remove_router(run, router(revision_number=4, routes=[ROUTE]), ("gone", "p"))
    assert [each.split("?")[0] for each in sent(services)] == [
        "PUT /v2.0/routers/r",
        "PUT /v2.0/routers/r/remove_router_interface",
        "PUT /v2.0/routers/r/remove_router_interface",
        "GET /v2.0/routers/r",
        "DELETE /v2.0/routers/r",
    ]
    asked = [each.last_request.headers["If-Match"] for each in (written, deleted)]
    assert asked == ["revision_number=4", "revision_number=7"]


def test_a_router_with_a_new_route_is_judged_again(run: CloudRun, services: requests_mock.Mocker) -> None:
    services.get(f"{NEUTRON}/routers/r", json={"router": ROUTER | {"routes": [ROUTE]}})
    deleted = services.delete(f"{NEUTRON}/routers/r", status_code=204)
    with pytest.raises(CloudError) as caught:
        remove_router(run, router(), ())
    assert (caught.value.status, caught.value.retryable, deleted.called) == (412, True, False)


@pytest.mark.parametrize(
    ("thing", "condition"), [("network", True), ("subnet", True), ("security_group", True), ("port", False)]
)
def test_what_others_may_add_to_is_deleted_as_it_was_judged(
    run: CloudRun, services: requests_mock.Mocker, thing: str, condition: bool
) -> None:
    record = NETWORK[thing].read(port_row(id="x", revision_number=3) | subnet_row() | {"security_group_rules": []})
    deleted = services.delete(f"{NEUTRON}/{record.collection}/x", status_code=204)
    remove(run, thing, record)
    assert deleted.last_request.headers.get("If-Match") == ("revision_number=3" if condition else None)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"Ingress dev [openstack-prep:{ID}~attached/{ID}-ingress-port]", "Ingress dev"),
        ("[openstack-prep:lab/api]", "[openstack-prep:lab/api]"),
        ("by hand", "by hand"),
    ],
)
def test_a_floating_ip_keeps_its_owners_words(
    run: CloudRun, services: requests_mock.Mocker, before: str, after: str
) -> None:
    change = services.put(f"{NEUTRON}/floatingips/f", json={"floatingip": {}})
    detach(
        run.admin,
        FloatingIPRecord.read(floating("192.0.2.1", id="f", description=before, revision_number=4)),
        OwnershipTag(f"{ID}~attached"),
    )
    assert change.last_request.json() == {"floatingip": {"port_id": None, "description": after}}
    assert change.last_request.headers["If-Match"] == "revision_number=4"


def test_containers_have_metadata_and_go_after_their_objects(run: CloudRun, services: requests_mock.Mocker) -> None:
    name = f"{ID}-image-registry-abc"
    services.get(f"{SWIFT}/", json=[{"name": name}, {"name": f"{ID}-gone"}])
    services.head(f"{SWIFT}/{ID}-gone", **failure(404))
    services.head(f"{SWIFT}/{name}", headers={"X-Container-Meta-Openshiftclusterid": ID})
    (found,) = list_all(run, "container", ID)
    assert found.metadata["openshiftclusterid"] == ID
    pages: list[Any] = [[{"name": "docker/a b"}, {"name": "c?d"}], [{"name": "../b/c"}, {"name": ".."}], []]
    pages_read = services.get(f"{SWIFT}/{name}", [{"json": page} for page in pages])
    services.delete(requests_mock.ANY, status_code=204)
    remove(run, "container", found)
    gone = [each.url.partition(name)[2] for each in services.request_history if each.method == "DELETE"]
    assert sorted(gone) == ["", "/..", "/..%2Fb%2Fc", "/c%3Fd", "/docker%2Fa%20b"]
    assert gone[-1] == ""
    assert pages_read.last_request.qs["marker"] == [".."]
