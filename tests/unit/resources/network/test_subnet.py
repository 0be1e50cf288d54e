from __future__ import annotations

import json
from typing import Any

import pytest
import requests_mock
from pydantic import TypeAdapter, ValidationError

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import PlanRefused
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.no_cloud import NoCloud
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.model import Action, Context
from openstack_prep.core.plan import Plan
from openstack_prep.resources.network.subnet import Route, Subnet
from tests.unit.conftest import ADMIN_PROJECT, ENDPOINTS, declared_mistakes, sent
from tests.unit.texts import contains

NEUTRON = ENDPOINTS["network"] + "/v2.0"
NODES = Subnet(name="nodes", network="net", cidr="10.0.0.0/24")


def answer(**fields: Any) -> dict[str, Any]:
    """Return a subnet as Neutron tells it."""
    return {
        "id": "s1",
        "name": "nodes",
        "network_id": "n1",
        "cidr": "10.0.0.0/24",
        "gateway_ip": "10.0.0.1",
        "enable_dhcp": True,
        "dns_nameservers": [],
        "allocation_pools": [{"start": "10.0.0.2", "end": "10.0.0.254"}],
        "host_routes": [],
        "ipv6_ra_mode": None,
        "ipv6_address_mode": None,
        "description": "[openstack-prep:lab/nodes]",
        "revision_number": 3,
    } | fields


@pytest.fixture
def listed(services: requests_mock.Mocker) -> list[dict[str, Any]]:
    """What Neutron lists in the project; a test fills it."""
    found: list[dict[str, Any]] = []
    network = {"id": "n1", "name": "net", "description": ""}
    services.get(f"{NEUTRON}/networks", json={"networks": [network]})
    services.get(f"{NEUTRON}/subnets", json=lambda *_: {"subnets": found})
    return found


def plan(run: CloudRun, *wanted: Subnet) -> Plan:
    observed, mistakes = observation.examine(run, wanted)
    return planner.plan_apply("lab", wanted, observed, mistakes=mistakes)


def apply(run: CloudRun, *wanted: Subnet) -> None:
    made = plan(run, *wanted)
    made.raise_for_refusals()
    executor.execute(made, run).raise_for_failures()


def test_it_is_made(run: CloudRun, services: requests_mock.Mocker, listed: list[Any]) -> None:
    made = services.post(f"{NEUTRON}/subnets", json={"subnet": answer()})
    fields = {"gateway_ip": False, "allocation_pools": ("10.0.0.20-10.0.0.29", "10.0.0.10-10.0.0.19")}
    routes = (Route(destination="10.9.0.0/16", nexthop="10.0.0.9"),)
    apply(run, Subnet(name="nodes", network="net", cidr="10.0.0.0/24", host_routes=routes, **fields))  # type: ignore[arg-type]
    assert made.last_request.json()["subnet"] == {
        "name": "nodes",
        "network_id": "n1",
        "cidr": "10.0.0.0/24",
        "ip_version": 4,
        "gateway_ip": None,
        "allocation_pools": [{"start": "10.0.0.10", "end": "10.0.0.19"}, {"start": "10.0.0.20", "end": "10.0.0.29"}],
        "host_routes": [{"destination": "10.9.0.0/16", "nexthop": "10.0.0.9"}],
        "description": "[openstack-prep:lab/nodes]",
    }


def test_an_ipv6_subnet(run: CloudRun, services: requests_mock.Mocker, listed: list[Any]) -> None:
    made = services.post(f"{NEUTRON}/subnets", json={"subnet": answer()})
    apply(run, Subnet(name="six", network="net", cidr="2001:db8::/64", ipv6_ra_mode="slaac"))
    assert made.last_request.json()["subnet"]["ip_version"] == 6


def test_order_does_not_matter_but_for_name_servers(run: CloudRun, listed: list[Any]) -> None:
    pools = [{"start": "10.0.0.30", "end": "10.0.0.39"}, {"start": "10.0.0.10", "end": "10.0.0.19"}]
    routes = [
        {"destination": "10.9.0.0/16", "nexthop": "10.0.0.9"},
        {"destination": "10.8.0.0/16", "nexthop": "10.0.0.9"},
    ]
    listed.append(answer(allocation_pools=pools, host_routes=routes, dns_nameservers=["8.8.8.8", "1.1.1.1"]))
    same = Subnet(
        name="nodes",
        network="net",
        allocation_pools=("10.0.0.10-10.0.0.19", "10.0.0.30-10.0.0.39"),
        host_routes=tuple(Route(**route) for route in reversed(routes)),
    )
    assert not plan(run, same)
    (step,) = plan(run, Subnet(name="nodes", dns_nameservers=("1.1.1.1", "8.8.8.8")))
    assert step.action is Action.UPDATE


def test_a_change_insists_on_what_was_seen(run: CloudRun, services: requests_mock.Mocker, listed: list[Any]) -> None:
    listed.append(answer(host_routes=[{"destination": "10.9.0.0/16", "nexthop": "10.0.0.9"}]))
    changed = services.put(f"{NEUTRON}/subnets/s1", json={"subnet": answer()})
    apply(run, Subnet(name="nodes", enable_dhcp=False, gateway_ip=False, host_routes=()))
    assert changed.last_request.headers["If-Match"] == "revision_number=3"
    assert changed.last_request.json() == {"subnet": {"enable_dhcp": False, "gateway_ip": None, "host_routes": []}}


def test_name_servers_that_came_in_stay(run: CloudRun, services: requests_mock.Mocker, listed: list[Any]) -> None:
    """Neutron counts no revision for name servers, host routes and pools."""
    listed.append(answer())
    changed = services.put(f"{NEUTRON}/subnets/s1", json={"subnet": answer()})
    made = plan(run, Subnet(name="nodes", dns_nameservers=("10.0.0.53",)))
    listed[:] = [answer(dns_nameservers=["10.0.0.99"])]
    (result,) = executor.execute(made, run).results
    assert isinstance(result.error, PlanRefused)
    assert [each.code for each in result.error.mistakes] == [Code.PLAN_CHANGED]
    assert not changed.called


def test_a_subnet_on_a_twin_of_its_network_is_not_it(
    run: CloudRun, services: requests_mock.Mocker, listed: list[Any]
) -> None:
    """It is deleted together with that network."""
    ours = {"name": "net", "description": "[openstack-prep:lab/net]", "revision_number": 1, "project_id": ADMIN_PROJECT}
    services.get(f"{NEUTRON}/networks", json={"networks": [{"id": each, **ours} for each in ("n1", "n2")]})
    services.get(f"{NEUTRON}/ports", json={"ports": []})
    listed += [answer(id="s2", network_id="n2"), answer()]
    found = Subnet.find(run, [NODES])[NODES.key]
    assert (found.id, found.twins, found.values["network"], found.values["gateway_ip"]) == ("s1", (), "net", "10.0.0.1")


def test_another_range_is_a_replacement(run: CloudRun, listed: list[Any]) -> None:
    listed.append(answer(cidr="10.1.0.0/24"))
    made = plan(run, NODES)
    assert "cidr '10.1.0.0/24' -> '10.0.0.0/24'" in str(made.refusals[0])


def test_a_name_alone_must_exist(run: CloudRun, listed: list[Any]) -> None:
    assert "set both" in str(plan(run, Subnet(name="nodes")).refusals[0])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"allocation_pools": ("10.0.0.250-10.0.1.5",)}, "10.0.1.5 is outside 10.0.0.0/24"),
        ({"allocation_pools": ("10.0.0.10-10.0.0.20", "10.0.0.5-10.0.0.10")}, "overlap at 10.0.0.10"),
        ({"allocation_pools": ("10.0.0.1-10.0.0.20",), "gateway_ip": "10.0.0.1"}, "is in an allocation pool"),
    ],
)
def test_ranges_that_cannot_be(fields: dict[str, Any], message: str) -> None:
    (mistake,) = declared_mistakes(Subnet(name="nodes", network="net", cidr="10.0.0.0/24", **fields))
    assert message in mistake.what


@pytest.mark.parametrize(
    ("cidr", "gateway", "warned"),
    [
        ("10.0.0.0/24", "10.0.0.254", False),
        ("10.0.0.0/24", "10.0.1.1", True),
        ("fd00::/64", "fe80::1", False),
        ("fd00::/64", "fd01::1", True),
    ],
)
def test_a_gateway_outside(cidr: str, gateway: str, warned: bool) -> None:
    """Neutron takes it; who reaches it depends on the machines."""
    subnet = Subnet(name="nodes", network="net", cidr=cidr, gateway_ip=gateway)
    assert declared_mistakes(subnet) == []
    context = Context(resources=[subnet], cloud=NoCloud.as_cloud(), for_apply=False)
    assert [gateway in each for each in subnet.list_warnings(context)] == [True] * warned


def test_another_subnet_has_those_addresses(run: CloudRun, services: requests_mock.Mocker, listed: list[Any]) -> None:
    listed += [answer(id="s2", name="theirs", cidr="10.0.0.128/25"), answer(id="s3", name="far", network_id="n2")]
    (refusal,) = plan(run, NODES).refusals
    assert contains(str(refusal), "10.0.0.128/25", "theirs s2")
    assert len([each for each in sent(services) if "subnets" in each]) == 1


def read(**fields: Any) -> Subnet:
    return TypeAdapter(Subnet).validate_json(json.dumps({"name": "nodes", **fields}))


def test_as_a_spec_says_it() -> None:
    pools = [{"start": "10.0.0.5", "end": "10.0.0.9"}, "10.0.0.10 - 10.0.0.20"]
    assert read(allocation_pools=pools).allocation_pools == ("10.0.0.5-10.0.0.9", "10.0.0.10-10.0.0.20")
    assert [read(gateway_ip=value).gateway_ip for value in (False, "none", "10.0.0.1")] == [False, False, "10.0.0.1"]
    assert read(cidr="2001:DB8:0::/64").cidr == "2001:db8::/64"


@pytest.mark.parametrize(
    "fields",
    [
        {"gateway_ip": True},
        {"gateway_ip": "first"},
        {"cidr": "10.0.0.1/24"},
        {"allocation_pools": ["10.0.0.9-10.0.0.5"]},
        {"allocation_pools": ["10.0.0.9"]},
        {"allocation_pools": [{"start": "10.0.0.9"}]},
        {"host_routes": [{"destination": "10.0.0.0/8", "next_hop": "10.0.0.1"}]},
        {"ipv6_ra_mode": "static"},
    ],
)
def test_mistakes(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        read(**fields)


def test_a_plan_says_none_for_no_gateway() -> None:
    subnet = Subnet(name="nodes", network="net", cidr="10.0.0.0/24", gateway_ip=False)
    plan = planner.plan_apply("lab", [subnet], {})
    assert "gateway_ip none" in str(plan)
    assert {"field": "gateway_ip", "before": None, "after": "none"} in plan.data()[0]["changes"]


def test_a_scan_names_the_network_where_two_have_its_name(
    run: CloudRun, services: requests_mock.Mocker, listed: list[Any]
) -> None:
    described = {"description": "", "revision_number": 1, "project_id": ADMIN_PROJECT}
    rows = [{"id": each, "name": "net", **described} for each in ("n1", "n2")]
    services.get(f"{NEUTRON}/networks", json={"networks": rows})
    listed += [answer(id="s2", name="other", network_id="n2", project_id=ADMIN_PROJECT)]
    ((declared, observed),) = Subnet.scan(run, None)
    assert (declared.network, observed.id, observed.values["network"]) == ("net", "s2", "net")


def test_only_a_new_subnet_must_not_overlap(run: CloudRun, services: requests_mock.Mocker, listed: list[Any]) -> None:
    listed += [answer(), answer(id="s2", name="theirs", cidr="10.0.0.128/25")]
    assert plan(run, NODES).refusals == ()
    services.get(f"{NEUTRON}/networks", json={"networks": []})
    listed[:] = [answer(id="s2", name="theirs", cidr="10.0.0.128/25")]
    refusals = plan(CloudRun(run.admin, run.ownership), NODES).refusals
    assert [each.code for each in refusals] == ["spec.unresolved-reference"]


SIX = {"cidr": "fd00::/64", "allocation_pools": [{"start": "fd00::2", "end": "fd00::ff"}]}


@pytest.mark.parametrize(
    ("exists", "fields", "messages"),
    [
        (SIX | {"gateway_ip": "fe80::1"}, {"allocation_pools": ("fd00::10-fd00::ff",)}, []),
        ({"gateway_ip": "192.0.2.1"}, {"allocation_pools": ("10.0.0.10-10.0.0.99",)}, []),
        ({"gateway_ip": None}, {"allocation_pools": ("10.0.0.1-10.0.0.99",)}, []),
        ({}, {"allocation_pools": ("10.0.0.1-10.0.0.99",)}, ["is in an allocation pool"]),
        (SIX | {"gateway_ip": "fe80::1"}, {"allocation_pools": ("fd01::10-fd01::10",)}, ["fd01::10 is outside"] * 2),
        ({}, {"gateway_ip": "10.0.1.1"}, []),
        ({}, {"gateway_ip": "10.0.0.9"}, ["is in an allocation pool"]),
    ],
)
def test_a_change_of_the_gateway_or_the_pools(
    run: CloudRun,
    services: requests_mock.Mocker,
    listed: list[Any],
    exists: dict[str, Any],
    fields: dict[str, Any],
    messages: list[str],
) -> None:
    services.get(f"{NEUTRON}/ports", json={"ports": []})
    listed.append(answer(**exists))
    refusals = plan(run, Subnet(name="nodes", network="net", **fields)).refusals
    assert len(refusals) == len(messages)
    assert all(message in each.what for message, each in zip(messages, refusals, strict=True))
