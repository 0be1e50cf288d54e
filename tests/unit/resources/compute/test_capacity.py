"""Servers for which Placement knows no room."""

from __future__ import annotations

from typing import Any

import pytest
import requests_mock

from openstack_prep.base.errors import NotAllowed
from openstack_prep.cloud.connection import Cloud
from openstack_prep.resources.compute import capacity
from openstack_prep.resources.compute.capacity import ServerDemand
from openstack_prep.resources.lists.nova_records import FlavorRecord
from openstack_prep.resources.orchestration.checks import new_servers, wants
from tests.unit.conftest import IDENTITY, connection, token

PLACEMENT = "http://placement"
LINKS = [{"rel": "self", "href": ""}]
SMALL = FlavorRecord(id="f1", name="small", vcpus=2, ram=4096, disk=20)


@pytest.fixture
def cloud(services: requests_mock.Mocker) -> Cloud:
    """The administrator's, with Placement in the catalogue."""
    answer = token(roles=["admin"])
    endpoint = {"id": "p", "interface": "public", "region": "one", "region_id": "one", "url": PLACEMENT}
    placement = {"id": "placement", "type": "placement", "name": "placement", "endpoints": [endpoint]}
    answer["token"]["catalog"].append(placement)
    services.post(f"{IDENTITY}/auth/tokens", json=answer, headers={"X-Subject-Token": "4f2a9c"}, status_code=201)
    versions = [{"id": "v1.0", "min_version": "1.0", "max_version": "1.39", "status": "CURRENT", "links": LINKS}]
    services.get(f"{PLACEMENT}/", json={"versions": versions})
    services.get(PLACEMENT, json={"versions": versions})
    return Cloud(connection())


def hosts(**free: tuple[int, int]) -> dict[str, Any]:
    """Return an answer: by host how many processors are free, and how many MiB."""
    names = ("VCPU", "MEMORY_MB")
    summaries = {
        host: {
            "root_provider_uuid": host,
            "resources": {name: {"capacity": amount + 1, "used": 1} for name, amount in zip(names, room, strict=True)},
        }
        for host, room in free.items()
    }
    wanted = {"VCPU": 2, "MEMORY_MB": 4096}
    requests = [{"allocations": {host: {"resources": wanted}}} for host in free]
    return {"allocation_requests": requests, "provider_summaries": summaries}


def place(services: requests_mock.Mocker, answer: Any, dedicated: Any = None) -> None:
    """Answer what is asked for servers, and whether there are processors for servers with their own."""
    services.get(f"{PLACEMENT}/allocation_candidates", json=answer)
    services.get(f"{PLACEMENT}/allocation_candidates?resources=PCPU:1", json=dedicated or hosts())


def asked(services: requests_mock.Mocker) -> list[dict[str, list[str]]]:
    """Return the questions about servers."""
    every = [each.qs for each in services.request_history if each.path == "/allocation_candidates"]
    return [each for each in every if each["resources"] != ["pcpu:1"]]


@pytest.mark.parametrize(
    ("answer", "count", "apart", "found"),
    [
        (hosts(), 1, 1, (0, 0)),
        (hosts(a=(4, 8192)), 2, 1, None),
        (hosts(a=(4, 8191)), 2, 1, (1, 1)),
        (hosts(a=(4, 8192), b=(2, 4096)), 3, 1, None),
        (hosts(a=(5, 8192), b=(3, 4096)), 4, 1, (3, 2)),
        (hosts(a=(8, 40960), b=(8, 40960)), 3, 2, None),
        (hosts(a=(8, 40960), b=(8, 40960)), 3, 3, (8, 2)),
    ],
)
def test_room_on_the_hosts(
    services: requests_mock.Mocker, cloud: Cloud, answer: Any, count: int, apart: int, found: tuple[int, int] | None
) -> None:
    place(services, answer)
    short = list(capacity.shortages(cloud, [ServerDemand(SMALL, count, apart=apart)]))
    assert [(each.room, each.hosts) for each in short] == ([found] if found else [])


@pytest.mark.parametrize(
    ("flavor", "from_volume", "resources", "required"),
    [
        ({}, False, "disk_gb:20,memory_mb:4096,vcpu:2", None),
        ({}, True, "memory_mb:4096,vcpu:2", None),
        ({"ephemeral": 5, "swap": 1025}, True, "disk_gb:7,memory_mb:4096,vcpu:2", None),
        (
            {"extra_specs": {"resources:VCPU": "0", "resources:CUSTOM_NODE": "1"}},
            True,
            "custom_node:1,memory_mb:4096",
            None,
        ),
        ({"extra_specs": {"hw:cpu_policy": "dedicated"}}, True, "memory_mb:4096", None),
        ({"extra_specs": {"hw:cpu_policy": "shared"}}, True, "memory_mb:4096,vcpu:2", None),
        (
            {"extra_specs": {"trait:HW_GPU": "required", "trait:CUSTOM_OLD": "forbidden", "quota:x": "1"}},
            True,
            "memory_mb:4096,vcpu:2",
            "!custom_old,hw_gpu",
        ),
    ],
)
def test_what_a_flavor_asks_for(
    services: requests_mock.Mocker,
    cloud: Cloud,
    flavor: dict[str, Any],
    from_volume: bool,
    resources: str,
    required: str | None,
) -> None:
    place(services, hosts())
    own = FlavorRecord(id="f", name="own", **({"vcpus": 2, "ram": 4096, "disk": 20} | flavor))
    list(capacity.shortages(cloud, [ServerDemand(own, 1, from_volume=from_volume)]))
    (query,) = asked(services)
    assert query["resources"] == [resources]
    assert query.get("required") == (None if required is None else [required])


def test_a_zone_is_that_of_its_aggregates(services: requests_mock.Mocker, cloud: Cloud) -> None:
    rows = [{"availability_zone": zone, "uuid": uuid} for zone, uuid in (("az1", "u1"), ("az1", "u2"), (None, "u3"))]
    services.get("http://nova/v2.1/os-aggregates", json={"aggregates": rows})
    place(services, hosts())
    demands = [ServerDemand(SMALL, 1, zone="az1"), ServerDemand(SMALL, 1, zone="nova")]
    assert [each.demand.zone for each in capacity.shortages(cloud, demands)] == ["az1", "nova"]
    assert [each.get("member_of") for each in asked(services)] == [["in:u1,u2"], None]


def test_servers_of_one_flavor_are_asked_for_once(services: requests_mock.Mocker, cloud: Cloud) -> None:
    place(services, hosts(a=(4, 8192)))
    (short,) = capacity.shortages(cloud, [ServerDemand(SMALL, 2), ServerDemand(SMALL, 1)])
    assert (short.demand.count, short.room, len(asked(services))) == (3, 2, 1)


def test_where_servers_may_have_processors_of_their_own_nothing_is_certain(
    services: requests_mock.Mocker, cloud: Cloud
) -> None:
    """An image may ask for these (hw_cpu_policy), on hosts that have no others."""
    place(services, hosts(), hosts(a=(4, 8192)))
    assert list(capacity.shortages(cloud, [ServerDemand(SMALL, 1)])) == []


def test_hosts_with_a_shared_disk_are_several(services: requests_mock.Mocker, cloud: Cloud) -> None:
    answer = hosts(a=(8, 40960), b=(8, 40960))
    disk = {"root_provider_uuid": "0", "resources": {"DISK_GB": {"capacity": 1000, "used": 0}}}
    answer["provider_summaries"]["0"] = disk
    for each in answer["allocation_requests"]:
        each["allocations"] = {"0": {"resources": {"DISK_GB": 20}}} | each["allocations"]
    place(services, answer)
    assert list(capacity.shortages(cloud, [ServerDemand(SMALL, 2, apart=2)])) == []
    assert [each.hosts for each in capacity.shortages(cloud, [ServerDemand(SMALL, 3, apart=3)])] == [2]


def test_who_may_not_ask(services: requests_mock.Mocker, cloud: Cloud) -> None:
    services.get(f"{PLACEMENT}/allocation_candidates", status_code=403, json={"errors": [{"detail": "no"}]})
    with pytest.raises(NotAllowed):
        list(capacity.shortages(cloud, [ServerDemand(SMALL, 1)]))


@pytest.mark.parametrize(("roles", "may"), [(["admin"], True), (["Service"], True), (["member", "reader"], False)])
def test_roles_that_may_ask(services: requests_mock.Mocker, roles: list[str], may: bool) -> None:
    answer = token(roles=roles)
    endpoint = {"id": "p", "interface": "public", "region": "one", "region_id": "one", "url": PLACEMENT}
    answer["token"]["catalog"].append({"id": "p", "type": "placement", "name": "p", "endpoints": [endpoint]})
    services.post(f"{IDENTITY}/auth/tokens", json=answer, headers={"X-Subject-Token": "4f2a9c"}, status_code=201)
    assert capacity.may_ask(Cloud(connection())) is may


def server(name: str, stack: str = "s", **properties: Any) -> dict[str, Any]:
    properties = {"flavor": "small", **properties}
    return {"resource_name": name, "resource_type": "OS::Nova::Server", "stack_name": stack, "properties": properties}


def group(name: str, policy: str) -> dict[str, Any]:
    kind = "OS::Nova::ServerGroup"
    return {"resource_name": name, "resource_type": kind, "stack_name": "s", "properties": {"policies": [policy]}}


def test_the_new_servers_of_a_stack() -> None:
    hints = {"scheduler_hints": {"group": "spread"}}
    found = wants(
        [
            group("spread", "anti-affinity"),
            *(server(str(number), "s-nodes", **hints) for number in (0, 1, 2)),
            server("one", block_device_mapping_v2=[{"image": "i", "boot_index": 0}], availability_zone="az1"),
            server("other", flavor="declared-by-the-spec"),
        ],
        "s",
        [SMALL],
    )
    assert new_servers(found, {"nodes-*": [{}]}) == [
        ServerDemand(SMALL, 1, apart=2),
        ServerDemand(SMALL, 1, apart=2),
        ServerDemand(SMALL, 1, zone="az1", from_volume=True),
    ]


def test_a_soft_policy_keeps_nobody_apart() -> None:
    found = wants(
        [group("spread", "soft-anti-affinity"), server("x", scheduler_hints={"group": "spread"})], "s", [SMALL]
    )
    assert new_servers(found, {}) == [ServerDemand(SMALL, 1)]
