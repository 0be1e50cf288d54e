from __future__ import annotations

import re
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import NotAllowed, PlanRefused, SpecError
from openstack_prep.cloud.connection import Cloud
from openstack_prep.hooks import cleanup
from openstack_prep.hooks.cleanup import plan_cleanup
from openstack_prep.verbs import api
from tests.unit.conftest import ADMIN_PROJECT, ENDPOINTS, connection, default_group, failure, port_row, sent, subnet_row

NEUTRON, NOVA, GLANCE = ENDPOINTS["network"] + "/v2.0", ENDPOINTS["compute"], ENDPOINTS["image"] + "/v2"
CINDER, SWIFT = ENDPOINTS["block-storage"], ENDPOINTS["object-store"]
ID = "dev-x7k2p"
INTERFACE = "network:router_interface"
TAG = f"openshiftClusterID={ID}"

THEIRS = [{"subnet_id": "theirs", "ip_address": "10.9.0.1"}]

Lists = dict[str, list[dict[str, Any]]]

ALWAYS: dict[str, dict[str, Any]] = {
    "images": {"status": "active", "visibility": "private"},
    "routers": {"external_gateway_info": None, "routes": []},
    "subnets": subnet_row(),
    "security_groups": {"security_group_rules": []},
}
"""What each entry of a list has."""


def port(name: str, /, **more: Any) -> dict[str, Any]:
    return port_row(**{"id": f"id-of-{name}", "name": f"{ID}-{name}", "tags": [TAG], "project_id": "p"} | more)


def floating(address: str, **more: Any) -> dict[str, Any]:
    return {
        "id": f"id-of-{address}",
        "floating_ip_address": address,
        "floating_network_id": "external",
        "port_id": None,
        "description": "",
        "tags": [],
        "revision_number": 1,
    } | more


GROUP = {"name": f"{ID}-master", "project_id": ADMIN_PROJECT, "policy": "soft-anti-affinity", "rules": {}}


@pytest.fixture
def there(services: requests_mock.Mocker) -> Lists:
    """What the services list: a small cluster, that a test changes."""
    listed: Lists = {
        "servers": [{"id": "s", "name": f"{ID}-master-0", "metadata": {"openshiftClusterID": ID}}],
        "server_groups": [{"id": "sg", **GROUP}],
        "images": [{"id": "i", "name": f"{ID}-rhcos", "tags": [TAG], "protected": False}],
        "volumes": [],
        "snapshots": [],
        "floatingips": [floating("192.0.2.5", port_id="id-of-api-port")],
        "trunks": [],
        "ports": [port("api-port"), port("master-0-0", device_id="s", device_owner="compute:nova")],
        "routers": [{"id": "r", "name": f"{ID}-external-router", "tags": [TAG], "routes": []}],
        "subnets": [{"id": "sub", "name": f"{ID}-nodes", "tags": [TAG]}],
        "networks": [{"id": "net", "name": f"{ID}-openshift", "tags": [TAG], "subnets": ["sub"]}],
        "security_groups": [
            {"id": "g", "name": f"{ID}-master", "tags": [TAG]},
            {"id": "d", "name": "default", "tags": []},
        ],
    }
    places = {
        "servers": f"{NOVA}/servers/detail",
        "server_groups": f"{NOVA}/os-server-groups",
        "images": f"{GLANCE}/images",
        "volumes": f"{CINDER}/volumes/detail",
        "snapshots": f"{CINDER}/snapshots/detail",
    }

    def answer(name: str) -> Any:
        return lambda *_: {name: [ALWAYS.get(name, {}) | row for row in listed[name]]}

    for name in listed:
        services.get(places.get(name, f"{NEUTRON}/{name.replace('_', '-')}"), json=answer(name))
    services.get(f"{SWIFT}/", json=[])
    for image_id in ("i", "i2"):
        services.get(f"{GLANCE}/images/{image_id}", json={"visibility": "private"})
    for name in ("extensions", "rbac_policies", "security_group_rules"):
        services.get(f"{NEUTRON}/{name.replace('_', '-')}", json={name: []})
    links = [{"rel": "self", "href": f"{GLANCE}/"}]
    services.get(ENDPOINTS["image"], json={"versions": [{"id": "v2.0", "status": "CURRENT", "links": links}]})
    return listed


def plan(**options: Any) -> dict[str, frozenset[str]]:
    """Return by step the steps that it waits for; nothing may forbid the plan."""
    made, _ = plan_cleanup(Cloud(connection()), ID, **options)
    made.raise_for_refusals()
    return {str(step.key): frozenset(map(str, step.needs)) for step in made}


def refusals() -> str:
    made, _ = plan_cleanup(Cloud(connection()), ID)
    with pytest.raises(PlanRefused) as caught:
        made.raise_for_refusals()
    return str(caught.value)


def test_what_goes_and_after_what(there: Lists) -> None:
    found = plan()
    server, master, api = f"server/{ID}-master-0", f"port/{ID}-master-0-0", f"port/{ID}-api-port"
    detached = "floating_ip_attachment/192.0.2.5"
    assert found == {
        server: frozenset(),
        detached: frozenset(),
        master: {server, detached},
        api: {server, detached},
        f"router/{ID}-external-router": {detached},
        f"subnet/{ID}-nodes": {master, api, f"router/{ID}-external-router"},
        f"network/{ID}-openshift": {master, api, f"router/{ID}-external-router", f"subnet/{ID}-nodes"},
        f"security_group/{ID}-master": {server, master, api},
        f"server_group/{ID}-master": {server},
        f"image/{ID}-rhcos": {server},
    }


def test_one_list_a_kind(there: Lists, services: requests_mock.Mocker) -> None:
    plan()
    asked = [each for each in sent(services) if each.partition("?")[0] != "GET /"]  # Glance's version document
    # fourteen lists, the lease, the ports on the cluster's network, and what others lose: rules, shares of the network
    # and of the group, the image, its servers, and the extensions, among which are no port forwardings
    assert len(asked) == 22, asked


@pytest.mark.parametrize(
    ("ip", "release", "key"),
    [
        ({"description": "[openstack-prep:lab/api]"}, "lab", "floating_ip/192.0.2.5"),
        ({"description": "edited", "tags": ["openstack-prep:lab~api"]}, "lab", "floating_ip/192.0.2.5"),
        ({"description": "edited", "tags": ["openstack-prep:other~api"]}, "lab", None),
        ({"description": "[openstack-prep:lab/api]"}, None, None),
        ({"description": "[openstack-prep:other/api]"}, "lab", None),
        ({"description": "[openstack-prep:lab/api]", "port_id": "mine"}, "lab", None),
        ({"port_id": "id-of-api-port"}, "lab", "floating_ip_attachment/192.0.2.5"),
        ({"tags": [TAG]}, None, "floating_ip/192.0.2.5"),
    ],
)
def test_floating_ips(there: Lists, ip: dict[str, Any], release: str | None, key: str | None) -> None:
    there["floatingips"] = [floating("192.0.2.5", **ip)]
    assert [each for each in plan(release=release) if each.startswith("floating")] == ([key] if key else [])


def test_port_forwardings_keep_a_floating_ip(there: Lists) -> None:
    """Neutron refuses to delete it, and they may lead to machines of others."""
    leads = {"protocol": "tcp", "external_port": 443, "internal_port": 8443, "internal_ip_address": "10.0.0.9"}
    there["floatingips"] = [floating("192.0.2.5", tags=[TAG], port_forwardings=[{"id": "f", **leads}])]
    assert "floating_ip/192.0.2.5: is not used by" in refusals()
    assert "port forwarding f (tcp 443 to 10.0.0.9:8443)" in refusals()


def test_the_users_own_network_only_loses_our_tag(there: Lists, services: requests_mock.Mocker) -> None:
    tag = f"{ID}-primaryClusterNetwork"
    there |= {name: [] for name in there}
    there["networks"] = [{"id": "net", "name": "mine", "tags": ["a", tag], "subnets": ["theirs"]}]
    gone = services.delete(f"{NEUTRON}/networks/net/tags/{tag}", status_code=204)
    report = cleanup(Cloud(connection()), infra_id=ID)
    report.raise_for_failures()
    assert [str(each.step.key) for each in report.changed] == [f"tag/{tag} on mine"]
    assert gone.called_once


def test_two_of_a_name_are_told_apart(there: Lists) -> None:
    there["server_groups"] += [{"id": "sg2", **GROUP}]
    found = sorted(each for each in plan() if each.startswith("server_group"))
    assert found == [f"server_group/{ID}-master sg", f"server_group/{ID}-master sg2"]


@pytest.mark.parametrize(
    ("name", "more", "said"),
    [
        (
            "ports",
            port("", name="", id="x", tags=[]),
            f"network/{ID}-openshift: .* alone: port x exists; move or delete",
        ),
        ("ports", port("", tags=[], device_id="q", device_owner="compute:nova"), "server of project p q has port"),
        (
            "ports",
            port("", tags=[], device_id="r2", device_owner="network:router_interface"),
            r"\(network:router_interface r2\)",
        ),
        (
            "ports",
            port(
                "",
                tags=[],
                device_id="r",
                device_owner=INTERFACE,
                fixed_ips=THEIRS,
            ),
            f"router/{ID}-external-router: .*: the router has an interface in subnet theirs",
        ),
        ("ports", port("", tags=[], security_groups=["g"]), f"security_group/{ID}-master: is not used by"),
        (
            "volumes",
            {
                "id": "v",
                "name": f"{ID}-dynamic-pvc-1",
                "metadata": {},
                "attachments": [{"server_id": "mine"}],
            },
            f"volume/{ID}-dynamic-pvc-1: .*: server mine has the volume attached",
        ),
        (
            "images",
            {"id": "i2", "name": f"{ID}-ignition", "tags": [TAG], "protected": True},
            "image set --unprotected i2",
        ),
    ],
)
def test_what_others_have_on_it_forbids_it(there: Lists, name: str, more: dict[str, Any], said: str) -> None:
    there[name].append(more)
    assert re.search(said, refusals())


def test_a_port_of_a_machine_that_stays(there: Lists) -> None:
    """Machines of a user-provisioned cluster have no metadata; they would run on without their ports."""
    assert f"port/{ID}-master-0-0" in plan()
    there["servers"][0]["metadata"] = {}
    assert f"port/{ID}-master-0-0: is not used by {ID} alone: server {ID}-master-0 s has the port" in refusals()
    there["servers"] = []
    assert f"port/{ID}-master-0-0" in plan()


def test_a_snapshot_of_somebody_else(there: Lists) -> None:
    volume = {"id": "v", "name": f"{ID}-dynamic-pvc-1", "metadata": {}, "attachments": [{"server_id": "s"}]}
    there["volumes"] = [volume]
    assert f"volume/{ID}-dynamic-pvc-1" in plan()
    there["snapshots"] = [{"id": "n", "name": "backup", "metadata": {}, "volume_id": "v"}]
    assert "snapshot backup n was created from the volume" in refusals()


def test_a_volume_that_a_person_has_restored_from_a_backup_is_kept(there: Lists) -> None:
    """Cinder gives it the name and the metadata of the volume that the backup is of."""
    csi = {"cinder.csi.openstack.org/cluster": ID}
    there["volumes"] = [
        {"id": "v", "name": "pvc-1", "metadata": csi, "attachments": []},
        {"id": "w", "name": "pvc-1", "metadata": csi | {"src_backup_id": "b"}, "attachments": []},
    ]
    made, warnings = plan_cleanup(Cloud(connection()), ID)
    assert [step.observed.id for step in made if step.resource.key.kind == "volume" and step.observed] == ["v"]
    assert any("pvc-1" in each for each in warnings)


def test_what_is_no_longer_the_clusters_by_then_is_kept(there: Lists, services: requests_mock.Mocker) -> None:
    """Somebody takes the metadata off a volume between the plan and its deletion."""
    there["volumes"] = [{"id": "v", "name": f"{ID}-master-0", "metadata": {}, "attachments": []}]
    for name in (
        "servers",
        "ports",
        "images",
        "floatingips",
        "routers",
        "networks",
        "security_groups",
        "server_groups",
    ):
        there[name] = []
    there["subnets"] = []
    made, _ = plan_cleanup(Cloud(connection()), ID)
    there["volumes"] = [{"id": "v", "name": "rescued", "metadata": {}, "attachments": []}]
    before = len(sent(services))
    api.apply(Cloud(connection()), made, agreed=False).raise_for_failures()
    assert not [each for each in sent(services)[before:] if each.startswith("DELETE")]


def test_a_subnet_of_the_users_on_the_clusters_network(there: Lists) -> None:
    there["networks"][0]["subnets"] = ["sub", "theirs"]
    assert "subnet theirs is on the network" in refusals()


def test_what_may_not_be_read(there: Lists, services: requests_mock.Mocker, caplog: pytest.LogCaptureFixture) -> None:
    services.get(f"{SWIFT}/", **failure(403))
    made, unread = plan_cleanup(Cloud(connection()), ID)
    assert made
    unread = [each for each in unread if not each.startswith("not checked: ")]  # what others may lose
    assert len(unread) == 1
    assert unread[0].startswith("cannot list the container resources, which may remain: GET object-store: 403")
    services.delete(requests_mock.ANY, **failure(403))
    assert cleanup(Cloud(connection()), infra_id=ID).failed
    assert "cannot list the container resources" in caplog.text
    services.get(f"{NEUTRON}/ports", **failure(403))
    with pytest.raises(NotAllowed, match="has no permission to read this: choose the entry of a project member"):
        plan_cleanup(Cloud(connection()), ID)


def test_a_plan_that_was_looked_at_for_long_is_made_again(
    there: Lists, services: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else began meanwhile: what has changed is not what was consented to."""
    made, _ = plan_cleanup(Cloud(connection()), ID)
    monkeypatch.setattr(api, "FRESH", -1.0)
    for name in there:
        there[name] = there[name] if name == "subnets" else []
    with pytest.raises(
        PlanRefused, match=r"floating_ip_attachment/192\.0\.2\.5: has changed since the plan was created"
    ):
        api.apply(Cloud(connection()), made)
    again, _ = plan_cleanup(Cloud(connection()), ID)
    gone = services.delete(f"{NEUTRON}/subnets/sub", status_code=204)
    api.apply(Cloud(connection()), again).raise_for_failures()
    assert gone.called_once


def test_what_another_run_has_added_until_the_lease_is_ours_goes_too(
    there: Lists, services: requests_mock.Mocker
) -> None:
    """And what it has attached is judged by where it serves now."""
    ours = {"description": "[openstack-prep:lab/api]"}
    for name in there:
        there[name] = there[name] if name == "subnets" else []
    there["floatingips"] = [floating("192.0.2.5", **ours)]
    group = default_group(services)
    made, _ = plan_cleanup(Cloud(connection()), ID, release="lab")
    assert len(made.pending) == 2
    group["revision_number"] += 2
    there["server_groups"] = [{"id": "late", **GROUP}]
    there["floatingips"] = [floating("192.0.2.5", port_id="elsewhere", **ours)]
    services.delete(re.compile(f"^{NEUTRON}/subnets/"), status_code=204)
    services.delete(re.compile(f"^{NOVA}/os-server-groups/"), status_code=204)
    report = api.apply(Cloud(connection()), made, agreed=False)
    report.raise_for_failures()
    assert {str(each.step.key) for each in report.changed} == {f"subnet/{ID}-nodes", f"server_group/{ID}-master"}


def test_a_floating_ip_that_serves_something_else_by_now_is_not_released(
    there: Lists, services: requests_mock.Mocker
) -> None:
    there |= {name: [] for name in there}
    ours = {"description": "[openstack-prep:lab/api]"}
    there["floatingips"] = [floating("192.0.2.5", **ours)]

    def refuse(request: Any, context: Any) -> str:
        assert request.headers["If-Match"] == "revision_number=1"
        there["floatingips"] = [floating("192.0.2.5", port_id="elsewhere", **ours) | {"revision_number": 2}]
        context.status_code = 412
        return ""

    deleted = services.delete(re.compile(f"^{NEUTRON}/floatingips/"), text=refuse)
    cleanup(Cloud(connection()), infra_id=ID, release="lab").raise_for_failures()
    assert deleted.call_count == 1


def test_an_infra_id_that_is_none(services: requests_mock.Mocker) -> None:
    with pytest.raises(SpecError, match="'dev' is not a valid infraID"):
        cleanup(Cloud(connection()), infra_id="dev")
    assert sent(services) == []


def test_after_a_doubtful_answer_it_is_looked_for_again(there: Lists, services: requests_mock.Mocker) -> None:
    """The first DELETE did it, and its answer was lost."""
    for name in there:
        there[name] = there[name] if name == "subnets" else []

    def remove(request: Any, context: Any) -> str:
        there["subnets"] = []
        context.status_code = 409
        return ""

    gone = services.delete(f"{NEUTRON}/subnets/sub", text=remove)
    cleanup(Cloud(connection()), infra_id=ID).raise_for_failures()
    assert gone.called_once
