"""What others have added to the resources of a stack, as opposed to what its template declares."""

from __future__ import annotations

from typing import Any

import pytest
import requests_mock

from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.deletion_loss import Deletion, DeletionLoss
from openstack_prep.core.model import Observed
from openstack_prep.resources.cascades.row import find_losses
from openstack_prep.resources.heat.preview import MAYBE, Effect
from openstack_prep.resources.heat.stacks import HeatStack
from openstack_prep.resources.orchestration.losses import GROUP, StackLosses
from openstack_prep.resources.orchestration.record import StackRecord
from openstack_prep.resources.orchestration.stack import Stack
from openstack_prep.resources.orchestration.update_losses import taken_by_update
from tests.unit.conftest import ENDPOINTS, IDENTITY, port_row, subnet_row, token
from tests.unit.resources.heat.test_stacks import PATH, resource

NEUTRON = "http://neutron/v2.0"
BARE: dict[str, Any] = dict.fromkeys(
    ("protocol", "port_range_min", "port_range_max", "remote_ip_prefix", "remote_group_id", "remote_address_group_id")
)
PRESENT = {
    "ssh": {"protocol": "tcp", "port_range_min": 22, "port_range_max": 22},
    "ping": {"protocol": "icmp", "remote_ip_prefix": "10.1.2.3/24", "normalized_cidr": "10.1.2.0/24"},
    "own": {"remote_group_id": "g1"},
    "other": {"remote_group_id": "g2"},
    "theirs": {"protocol": "tcp", "port_range_min": 99, "port_range_max": 99},
    "egress": {"direction": "egress"},
}
DECLARED = [
    {"protocol": "tcp", "port_range_min": "22", "port_range_max": 22},
    {"protocol": "icmp", "remote_ip_prefix": "10.1.2.3/24"},
    {"remote_mode": "remote_group_id"},
    {"remote_mode": "remote_group_id", "remote_group_id": "g2"},
]


def rule(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    made = {"id": name, "direction": "ingress", "ethertype": "IPv4", "security_group_id": "g1", "project_id": "p"}
    return {**BARE, **made, **fields}


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ([{"id": "e2"}, {"id": "e1"}], {"theirs"}),
        # Heat deletes old events: then nobody knows which rules are the template's
        (None, {"ssh", "ping", "own", "other", "theirs"}),
    ],
)
@pytest.mark.usefixtures("administrator")
def test_rules_of_others_in_a_group(
    run: CloudRun, services: requests_mock.Mocker, events: list[Any] | None, found: set[str]
) -> None:
    rules = [rule(name, fields) for name, fields in PRESENT.items()]
    group = {"id": "g1", "name": "s-group", "project_id": "p", "security_group_rules": rules}
    shown = f"{PATH}/resources/group/events"
    services.get(f"{PATH}/resources", json={"resources": [resource("group", "OS::Neutron::SecurityGroup", "g1")]})
    services.get(f"{PATH}/template", json={"resources": {"group": {}}})
    error = {"code": 404, "error": {"message": "No events found for resource group", "type": "HTTPNotFound"}}
    services.get(shown, **({"json": {"events": events}} if events else {"status_code": 404, "json": error}))
    services.get(f"{shown}/e2", json={"event": {"resource_properties": {"rules": DECLARED}}})
    services.get(f"{NEUTRON}/extensions", json={"extensions": []})
    services.get(f"{NEUTRON}/security-groups?id=g1", json={"security_groups": [group]})
    services.get(f"{NEUTRON}/security-group-rules?security_group_id=g1", json={"security_group_rules": rules})
    services.get(f"{NEUTRON}/security-group-rules?remote_group_id=g1", json={"security_group_rules": []})
    services.get(f"{NEUTRON}/rbac-policies", json={"rbac_policies": []})
    stack = HeatStack(run.admin, "s", "root")
    losses = StackLosses(run, stack).find()
    assert {each.id for each in losses if isinstance(each, DeletionLoss)} == found
    for verb in ("update", "delete", "replace", MAYBE):
        taken = taken_by_update(run, stack, [Effect(verb, "group", GROUP)])
        assert {each.id for each in taken if isinstance(each, DeletionLoss)} == found
    assert not list(taken_by_update(run, stack, [Effect("add", "group", GROUP)]))


@pytest.mark.usefixtures("administrator")
def test_routes_of_others(run: CloudRun, services: requests_mock.Mocker) -> None:
    """Of a router whose routes are one resource each."""
    own, theirs = ({"destination": f"10.{n}.0.0/16", "nexthop": "10.0.0.5"} for n in (1, 2))
    router = {"id": "r1", "name": "r", "project_id": "p", "external_gateway_info": None, "routes": [own, theirs]}
    listed = [resource("r", "OS::Neutron::Router", "r1"), resource("to", "OS::Neutron::ExtraRoute", "r1:to")]
    services.get(f"{PATH}/resources", json={"resources": listed})
    services.get(f"{PATH}/template", json={"resources": {"r": {}, "to": {}}})
    services.get(f"{PATH}/resources/to/events", json={"events": [{"id": "e1"}]})
    services.get(f"{PATH}/resources/to/events/e1", json={"event": {"resource_properties": {**own, "router_id": "r1"}}})
    services.get(f"{NEUTRON}/extensions", json={"extensions": []})
    services.get(f"{NEUTRON}/routers?id=r1", json={"routers": [router]})
    services.get(f"{NEUTRON}/ports", json={"ports": []})
    losses = StackLosses(run, HeatStack(run.admin, "s", "root")).find()
    assert [each.address for each in losses if isinstance(each, DeletionLoss)] == ["route/r1/10.2.0.0/16"]


@pytest.mark.usefixtures("administrator")
@pytest.mark.parametrize(
    ("definition", "found"),
    [
        ({}, {("subnet/s1", "net"), ("server/v1", "group")}),
        ({"deletion_policy": "Delete"}, {("subnet/s1", "net"), ("server/v1", "group")}),
        ({"deletion_policy": "Retain"}, set()),
        ({"external_id": "n1"}, set()),
    ],
)
def test_networks_and_server_groups_unless_heat_keeps_them(
    run: CloudRun, services: requests_mock.Mocker, definition: dict[str, str], found: set[tuple[str, str]]
) -> None:
    listed = [
        resource("net", "OS::Neutron::Net", "n1"),
        resource("group", "OS::Nova::ServerGroup", "g1"),
        resource("node", "OS::Nova::Server", "v0"),
    ]
    services.get(f"{PATH}/resources", json={"resources": listed})
    services.get(f"{PATH}/template", json={"resources": {"net": definition, "group": definition}})
    services.get(f"{NEUTRON}/networks?id=n1", json={"networks": [{"id": "n1", "name": "net", "project_id": "p"}]})
    services.get(f"{NEUTRON}/subnets?network_id=n1", json={"subnets": [subnet_row(id="s1")]})
    services.get(
        f"{ENDPOINTS['compute']}/servers/detail",
        json={"servers": [{"id": "v0", "os-extended-volumes:volumes_attached": []}]},
    )
    members: dict[str, Any] = {"name": "g", "project_id": "p", "policy": "anti-affinity", "rules": {}}
    groups = [{"id": "g1", "members": ["v0", "v1"], **members}, {"id": "g2", "members": ["v2"], **members}]
    services.get(f"{ENDPOINTS['compute']}/os-server-groups", json={"server_groups": groups})
    losses = StackLosses(run, HeatStack(run.admin, "s", "root")).find()
    places = {(each.address, each.detail.split()[-1]) for each in losses if isinstance(each, DeletionLoss)}
    assert places == found


@pytest.mark.usefixtures("administrator")
def test_floating_ips_on_ports_of_a_stack_and_of_its_servers(run: CloudRun, services: requests_mock.Mocker) -> None:
    """Those of others, unless the stack attaches them itself; and types whose losses nobody reads."""
    listed = [
        resource("port", "OS::Neutron::Port", "p1"),
        resource("node", "OS::Nova::Server", "v1"),
        resource("own", "OS::Neutron::FloatingIP", "f0"),
        resource("attach", "OS::Neutron::FloatingIPAssociation", "x"),
        resource("size", "OS::Nova::Flavor", "c1"),
    ]
    ports = [port_row(id=each, project_id="admin-project", device_id="v1") for each in ("p1", "p2")]
    on = {"f0": "p1", "f1": "p1", "f2": "p2", "f3": "p2"}
    floating_ips = [
        {"id": each, "port_id": port, "floating_ip_address": f"192.0.2.{number}", "project_id": "p"}
        for number, (each, port) in enumerate(on.items())
    ]
    services.get(f"{PATH}/resources", json={"resources": listed})
    services.get(f"{PATH}/template", json={"resources": {}})
    services.get(f"{PATH}/resources/attach/events", json={"events": [{"id": "e1"}]})
    attached = {"event": {"resource_properties": {"floatingip_id": "f3"}}}
    services.get(f"{PATH}/resources/attach/events/e1", json=attached)
    server = {"id": "v1", "name": "node", "metadata": {}, "created": "", "os-extended-volumes:volumes_attached": []}
    services.get(f"{ENDPOINTS['compute']}/servers/detail", json={"servers": [server]})
    services.get(f"{NEUTRON}/extensions", json={"extensions": []})
    services.get(f"{NEUTRON}/ports", json={"ports": ports})
    services.get(f"{NEUTRON}/ports?id=p1", json={"ports": ports[:1]})
    services.get(f"{NEUTRON}/floatingips", json={"floatingips": []})
    services.get(f"{NEUTRON}/floatingips?port_id=p1&port_id=p2", json={"floatingips": floating_ips})
    services.get("http://keystone/v3/projects/p", json={"project": {"id": "p", "name": "p"}})
    losses = StackLosses(run, HeatStack(run.admin, "s", "root")).find()
    places = {(each.address, each.detail.split()[-1]) for each in losses if isinstance(each, DeletionLoss)}
    assert places == {("floating_ip/f1", "port"), ("floating_ip/f2", "node"), ("unread/s/size", "size")}


PARTS = [
    resource("net", "OS::Neutron::Net", "n1"),
    resource("group", "OS::Neutron::SecurityGroup", "g1"),
    resource("sub", "OS::Neutron::Subnet", "s2"),
    resource("port", "OS::Neutron::Port", "p1"),
    resource("join", "OS::Neutron::RouterInterface", "r1:subnet_id=s3"),
    resource("fip", "OS::Neutron::FloatingIP", "f1"),
    resource("fip-own", "OS::Neutron::FloatingIP", "f2"),
    resource("fip-given", "OS::Neutron::FloatingIP", "f3"),
    resource("attach", "OS::Neutron::FloatingIPAssociation", "x"),
    resource("trunk", "OS::Neutron::Trunk", "t1"),
    resource("pool", "OS::Octavia::Pool", "pool1"),
    resource("box", "OS::Swift::Container", "box"),
    resource("empty", "OS::Swift::Container", "empty"),
    resource("refused", "OS::Swift::Container", "refused"),
    resource("limits", "OS::Nova::Quota", "q"),
]
PROPERTIES: dict[str, dict[str, Any]] = {
    "group": {},
    "fip": {},
    "fip-given": {"port_id": "given"},
    "attach": {"floatingip_id": "f4", "port_id": "p1"},
    "box": {"PurgeOnDelete": True},
    "empty": {"PurgeOnDelete": True},
    "refused": {"name": "refused"},
}
LISTS: dict[str, list[dict[str, Any]]] = {
    "networks?id=n1": [{"id": "n1", "name": "net", "project_id": "p"}],
    "subnets?id=s2": [subnet_row(id="s2", network_id="n2")],
    "security-groups": [{"id": "g1", "name": "g", "project_id": "p", "security_group_rules": []}],
    "routers?id=r1": [{"id": "r1", "name": "r", "project_id": "p", "external_gateway_info": None, "routes": []}],
    "ports?id=p1": [port_row(id="p1", device_id="v9", device_owner="compute:nova")],
    "ports?device_id=r1": [
        port_row(
            id="i1",
            device_id="r1",
            device_owner="network:router_interface",
            fixed_ips=[{"subnet_id": "s3", "ip_address": "10.0.3.1"}],
        )
    ],
    "ports?network_id=n1": [port_row(id="on-net"), port_row(id="p1")],
    "ports?network_id=n2": [
        port_row(id="in-sub", fixed_ips=[{"subnet_id": "s2", "ip_address": "10.0.2.9"}]),
        port_row(id="beside"),
    ],
    "ports?security_groups=g1": [port_row(id="in-group", security_groups=["g1"])],
    "ports?fixed_ips=subnet_id%3Ds3": [port_row(id="behind"), port_row(id="i1", device_id="r1")],
    "floatingips?id=f1": [
        {"id": "f1", "port_id": "of-f1", "floating_ip_address": "192.0.2.0", "floating_network_id": "ext"}
    ],
    "floatingips?id=f1&id=f2&id=f3&id=f4": [
        {"id": each, "port_id": port, "floating_ip_address": f"192.0.2.{number}", "floating_network_id": "ext"}
        for number, (each, port) in enumerate({"f1": "of-f1", "f2": "p1", "f3": "given", "f4": "of-f4"}.items())
    ],
    "trunks": [
        {
            "id": "t1",
            "name": "t",
            "port_id": "p1",
            "project_id": "p",
            "sub_ports": [{"port_id": "subport", "segmentation_id": 7, "segmentation_type": "vlan"}],
        }
    ],
}


def test_what_others_have_at_the_parts_of_a_stack(
    run: CloudRun, services: requests_mock.Mocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heat asks nobody: it releases, detaches and empties, and services refuse the rest too late."""
    monkeypatch.setitem(ENDPOINTS, "load-balancer", "http://octavia")
    login = token(roles=["admin"])
    services.post(f"{IDENTITY}/auth/tokens", json=login, headers={"X-Subject-Token": "4f2a9c"}, status_code=201)
    links = [{"rel": "self", "href": "http://octavia/v2"}]
    services.get("http://octavia", json={"versions": [{"id": "v2.0", "status": "CURRENT", "links": links}]})
    services.get(f"{PATH}/resources", json={"resources": PARTS})
    services.get(f"{PATH}/template", json={"resources": {}})
    for name, shown in PROPERTIES.items():
        services.get(f"{PATH}/resources/{name}/events", json={"events": [{"id": "e1"}]})
        services.get(f"{PATH}/resources/{name}/events/e1", json={"event": {"resource_properties": shown}})
    empty = ("security-group-rules", "rbac-policies", "subnets", "ports", "floatingips", "extensions")
    for path, rows in {**{each: [] for each in empty}, **LISTS}.items():
        services.get(f"{NEUTRON}/{path}", json={path.partition("?")[0].replace("-", "_"): rows})
    members = [{"id": "m1", "name": "", "address": "10.0.0.8"}]
    services.get("http://octavia/v2.0/lbaas/pools/pool1/members", json={"members": members})
    for name, count in (("box", "2"), ("empty", "0")):
        services.head(f"{ENDPOINTS['object-store']}/{name}", headers={"X-Container-Object-Count": count})
    services.get("http://keystone/v3/projects/p", json={"project": {"id": "p", "name": "p"}})
    stack = HeatStack(run.admin, "s", "root")
    losses = StackLosses(run, stack).find()
    places = {(each.address, each.detail.split()[-1]) for each in losses if isinstance(each, DeletionLoss)}
    updates = [Effect("update", "fip", "OS::Neutron::FloatingIP"), Effect("update", "net", "OS::Neutron::Net")]
    taken = taken_by_update(run, stack, updates)
    assert [each.address for each in taken if isinstance(each, DeletionLoss)] == ["port/of-f1"]
    assert places == {
        ("port/on-net", "net"),
        ("port/in-group", "group"),
        ("port/in-sub", "sub"),
        ("device/v9", "port"),
        ("port/behind", "join"),
        ("port/of-f1", "fip"),
        ("port/of-f4", "attach"),
        ("port/subport", "trunk"),
        ("member/m1", "pool"),
        ("container/admin-project/box", "box"),
        ("unread/s/limits", "limits"),
    }


@pytest.mark.usefixtures("administrator")
@pytest.mark.parametrize(("status", "address"), [(200, "stack_snapshot/n1"), (503, "unread/stack_snapshot")])
def test_snapshots_of_a_stack(run: CloudRun, services: requests_mock.Mocker, status: int, address: str) -> None:
    listed = {"snapshots": [{"id": "n1", "name": "before", "status": "COMPLETE"}]}
    services.get(f"{PATH}/snapshots", status_code=status, json=listed)
    quick = run.for_deletions({}, is_patient=False)
    record = StackRecord(stack=HeatStack(quick.admin, "s", "root"), status="CREATE_COMPLETE")
    (found,) = find_losses(
        quick, [Deletion(Stack(name="s", template=""), Observed(id="s1", record=record))], frozenset()
    )
    assert isinstance(found[1], DeletionLoss)
    assert found[1].address == address


@pytest.mark.usefixtures("administrator")
@pytest.mark.parametrize(("status", "address"), [(403, ""), (503, "unread/security_group_rule")])
def test_what_nobody_can_read_of_an_update(
    run: CloudRun, services: requests_mock.Mocker, status: int, address: str
) -> None:
    group = {"id": "g1", "name": "s-group", "project_id": "p", "security_group_rules": []}
    services.get(f"{PATH}/resources", json={"resources": [resource("group", GROUP, "g1")]})
    services.get(f"{NEUTRON}/extensions", json={"extensions": []})
    services.get(f"{NEUTRON}/security-groups?id=g1", json={"security_groups": [group]})
    services.get(f"{NEUTRON}/security-group-rules", status_code=status, text="no")
    services.get(f"{NEUTRON}/rbac-policies", json={"rbac_policies": []})
    services.get(f"{PATH}/resources/group/events", json={"events": []})
    quick = run.for_deletions({}, is_patient=False)
    stack = HeatStack(quick.admin, "s", "root")
    found = list(taken_by_update(quick, stack, [Effect("delete", "group", GROUP)]))
    assert address in {each.address if isinstance(each, DeletionLoss) else "" for each in found}
    updated = list(taken_by_update(quick, stack, [Effect("update", "group", GROUP)]))
    assert {each.address for each in updated if isinstance(each, DeletionLoss)} == {address} - {""}
