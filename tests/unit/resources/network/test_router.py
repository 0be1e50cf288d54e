from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.codes import Code
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.model import OwnershipTag, Resource
from openstack_prep.core.plan import Plan, Report
from openstack_prep.resources.lists.neutron_records import INTERFACES, PortRecord, RouterRecord
from openstack_prep.resources.network.declared_port import Port, PortAddress
from openstack_prep.resources.network.router import Router
from openstack_prep.resources.network.subnet import Route, Subnet
from openstack_prep.resources.network.uses import (
    attachment_id,
    blockers_of_network,
    blockers_of_port,
    blockers_of_router,
)
from tests.unit.conftest import (
    ADMIN_PROJECT,
    ENDPOINTS,
    IDENTITY,
    connection,
    declared_mistakes,
    failure,
    port_row,
    resolved,
    sent,
    subnet_row,
)
from tests.unit.texts import Wording, contains

NEUTRON = ENDPOINTS["network"] + "/v2.0"
OURS = "[openstack-prep:lab/{}]"
ROUTER = Router(name="r", external_network="external", interfaces=("a", "b"))


def interface(router: str, subnet: str) -> dict[str, Any]:
    fixed = [{"subnet_id": subnet, "ip_address": "10.0.0.1"}]
    return port_row(id=f"{router}-{subnet}", device_id=router, device_owner=INTERFACES[0], fixed_ips=fixed)


class Neutron:
    """Just as much of Neutron as routers need: two subnets of ours, one of others, interfaces that come and go."""

    def __init__(self, services: requests_mock.Mocker) -> None:
        self.routers: list[dict[str, Any]] = []
        self.joined: set[str] = set()
        marks = {"a": OURS.format("a"), "b": OURS.format("b"), "theirs": ""}
        subnets = [
            {
                "id": f"{name}-id",
                "name": name,
                "description": ownership,
                "network_id": "n",
                "cidr": f"10.0.{number}.0/24",
                "gateway_ip": f"10.0.{number}.1",
                "allocation_pools": [],
                "dns_nameservers": [],
                "host_routes": [],
            }
            for number, (name, ownership) in enumerate(marks.items())
        ]
        outside = {"id": "outside", "name": "outside", "network_id": "e1", "cidr": "192.0.2.0/24"}
        services.get(f"{NEUTRON}/subnets", json={"subnets": subnets})
        services.get(f"{NEUTRON}/subnets?network_id=e1", json={"subnets": [outside]})
        services.get(f"{NEUTRON}/networks", json={"networks": [{"id": "e1", "name": "external"}]})
        services.get(f"{NEUTRON}/routers", json=lambda *_: {"routers": self.routers})
        services.get(f"{NEUTRON}/ports", json=self.ports)
        self.made = services.post(f"{NEUTRON}/routers", json=lambda *_: {"router": self.router()})
        services.get(f"{NEUTRON}/routers/r1", json=lambda *_: {"router": self.routers[0]})
        self.changed = services.put(f"{NEUTRON}/routers/r1", json=self.change)
        services.put(f"{NEUTRON}/routers/r1/add_router_interface", json=self.join)
        services.put(f"{NEUTRON}/routers/r1/remove_router_interface", json=self.part)
        self.deleted = services.delete(f"{NEUTRON}/routers/r1", json=self.delete)

    def router(self, *joined: str, **fields: Any) -> dict[str, Any]:
        gateway = {"network_id": "e1", "enable_snat": True, "external_fixed_ips": [{"ip_address": "192.0.2.9"}]}
        made = {
            "id": "r1",
            "name": "r",
            "project_id": ADMIN_PROJECT,
            "description": OURS.format("r"),
            "external_gateway_info": gateway,
            "routes": [],
            "revision_number": 2,
        } | fields
        self.joined |= set(joined)
        self.routers.append(made)
        return made

    def ports(self, request: Any, context: Any) -> Any:
        if {"fixed_ips", "network_id"} & request.qs.keys():  # who else is in a subnet, or has an address
            return {"ports": []}
        assert "device_id" in request.qs or request.qs["device_owner"] == list(INTERFACES)
        if "device_id" in request.qs:
            return {"ports": [interface("r1", each) for each in sorted(self.joined)]}
        return {"ports": [interface("r1", each) for each in sorted(self.joined)] + [interface("r2", "a-id")]}

    def join(self, request: Any, context: Any) -> Any:
        subnet = request.json()["subnet_id"]
        if subnet in self.joined:
            context.status_code = 400
            return {"NeutronError": {"type": "BadRequest", "message": "Router already has a port", "detail": ""}}
        self.joined.add(subnet)
        self.routers[0]["revision_number"] += 1
        return {}

    def part(self, request: Any, context: Any) -> Any:
        self.joined.remove(request.json()["subnet_id"])
        self.routers[0]["revision_number"] += 1
        return {}

    def route(self, destination: str) -> None:
        """Let somebody else add a route."""
        self.routers[0]["routes"].append({"destination": destination, "nexthop": "10.0.0.8"})
        self.routers[0]["revision_number"] += 1

    def change(self, request: Any, context: Any) -> Any:
        if not self.is_as_read(request, context):
            return failure(412)["json"]
        self.routers[0]["routes"] = request.json()["router"].get("routes", self.routers[0]["routes"])
        self.routers[0]["revision_number"] += 1
        return {"router": self.routers[0]}

    def delete(self, request: Any, context: Any) -> Any:
        has_gateway = self.routers[0]["external_gateway_info"] is not None
        assert ("If-Match" in request.headers) is not has_gateway  # Neutron would compare it with its own change
        if not has_gateway and not self.is_as_read(request, context):
            return failure(412)["json"]
        context.status_code = 204
        return None

    def is_as_read(self, request: Any, context: Any) -> bool:
        if request.headers["If-Match"] == f"revision_number={self.routers[0]['revision_number']}":
            return True
        context.status_code = 412
        return False


@pytest.fixture
def neutron(services: requests_mock.Mocker) -> Neutron:
    return Neutron(services)


def plan(run: CloudRun, router: Router) -> Plan:
    observed, mistakes = observation.examine(run.fresh(), [router])
    return planner.plan_apply("lab", [router], observed, mistakes=mistakes)


def apply(run: CloudRun, router: Router) -> Report:
    made = plan(run, router)
    made.raise_for_refusals()
    report = executor.execute(made, run)
    report.raise_for_failures()
    return report


def writes(services: requests_mock.Mocker) -> list[str]:
    return [each.replace("/v2.0/routers", "") for each in sent(services) if not each.startswith("GET")]


def test_it_is_made_then_joined_then_routed(run: CloudRun, services: requests_mock.Mocker, neutron: Neutron) -> None:
    routes = (Route(destination="10.9.0.0/16", nexthop="10.0.0.9"),)
    report = apply(run, Router(name="r", external_network="external", interfaces=("a", "b"), routes=routes))
    assert neutron.made.last_request.json()["router"] == {
        "name": "r",
        "external_gateway_info": {"network_id": "e1"},
        "description": "[openstack-prep:lab/r]",
    }
    add = "PUT /r1/add_router_interface"
    assert writes(services) == ["POST ", add, add, "PUT /r1"]
    assert neutron.joined == {"a-id", "b-id"}
    assert neutron.changed.last_request.json() == {
        "router": {"routes": [{"destination": "10.9.0.0/16", "nexthop": "10.0.0.9"}]}
    }
    assert report.outputs == {"router/r": "192.0.2.9"}
    assert not plan(run, ROUTER)


OWN_ROUTE = (Route(destination="10.9.0.0/16", nexthop="10.0.0.9"),)


@pytest.mark.parametrize("joined", [("a-id", "b-id"), ("a-id",)])
def test_a_route_of_somebody_else_is_not_overwritten(run: CloudRun, neutron: Neutron, joined: tuple[str, ...]) -> None:
    """It comes in after the plan, also while an interface is added: the plan has not shown that it would go."""
    neutron.router(*joined)
    made = plan(run, Router(name="r", interfaces=("a", "b"), routes=OWN_ROUTE))
    neutron.route("10.8.0.0/16")
    report = executor.execute(made, run)
    assert report.failed
    assert [each["destination"] for each in neutron.routers[0]["routes"]] == ["10.8.0.0/16"]


def test_a_route_that_comes_in_keeps_the_router(
    run: CloudRun, services: requests_mock.Mocker, neutron: Neutron
) -> None:
    """It comes in while the interfaces are removed."""
    neutron.router("a-id")
    router = Router(name="r", interfaces=("a",))
    made = planner.plan_destroy("lab", [router], observation.observe(run, [router]))

    def part(request: Any, context: Any) -> Any:
        neutron.route("10.8.0.0/16")
        return neutron.part(request, context)

    services.put(f"{NEUTRON}/routers/r1/remove_router_interface", json=part)
    assert executor.execute(made, run).failed
    assert not neutron.deleted.called


def test_killed_between_two_interfaces(run: CloudRun, services: requests_mock.Mocker, neutron: Neutron) -> None:
    neutron.router("a-id")
    (step,) = plan(run, ROUTER)
    assert [(change.before, change.after) for change in step.changes] == [({"a"}, {"a", "b"})]
    apply(run, ROUTER)
    assert writes(services) == ["PUT /r1/add_router_interface"]
    assert run.known[ROUTER.key].values["interfaces"] == {"a", "b"}
    assert not plan(run, ROUTER)


def test_interfaces_of_others_stay(run: CloudRun, services: requests_mock.Mocker, neutron: Neutron) -> None:
    neutron.router("a-id", "b-id", "theirs-id")
    assert not plan(run, ROUTER)


def test_a_lost_answer_joins_nothing_twice(run: CloudRun, services: requests_mock.Mocker, neutron: Neutron) -> None:
    neutron.router("a-id")

    def lose(request: Any, context: Any) -> Any:
        neutron.join(request, context)
        context.status_code = 504
        return {}

    lost = services.put(f"{NEUTRON}/routers/r1/add_router_interface", json=lose)
    apply(run, ROUTER)
    assert lost.call_count == 1


def test_the_gateway_is_changed_as_a_whole(run: CloudRun, neutron: Neutron) -> None:
    neutron.router("a-id", "b-id")
    router = Router(name="r", external_network="external", enable_snat=False, external_fixed_ips=("192.0.2.7",))
    apply(run, router)
    gateway = {"network_id": "e1", "enable_snat": False, "external_fixed_ips": [{"ip_address": "192.0.2.7"}]}
    assert neutron.changed.last_request.json() == {"router": {"external_gateway_info": gateway}}
    assert neutron.changed.last_request.headers["If-Match"] == "revision_number=2"


@pytest.mark.parametrize("fields", [{"enable_snat": True}, {"external_fixed_ips": ("192.0.2.7",)}])
def test_snat_without_a_gateway_is_a_mistake(fields: dict[str, Any]) -> None:
    (mistake,) = declared_mistakes(Router(name="r", **fields))
    assert (mistake.code, mistake.field) == ("spec.contradiction", next(iter(fields)))


def test_a_subnet_that_nobody_has_is_a_mistake(run: CloudRun, neutron: Neutron, wording: Wording) -> None:
    wording(str(plan(run, Router(name="r", interfaces=("c",))).refusals[0]))


# --- what Neutron would refuse -----------------------------------------------------------------

SUBNET = Subnet(name="c", network="n", cidr="10.3.0.0/24", gateway_ip="10.3.0.1")
OTHER = Subnet(name="d", network="m", cidr="10.4.0.0/24", gateway_ip="10.4.0.1")


def refused(run: CloudRun, router: Router, *others: Resource) -> list[tuple[str, str]]:
    found = resolved(router, [SUBNET, OTHER, *others, router], run.admin)
    return [(each.code, each.field) for each in found.check(run, None)]


@pytest.mark.parametrize(
    ("hop", "external", "valid"),
    [
        ("10.3.0.9", None, True),
        ("10.3.0.1", None, False),  # the router itself
        ("10.4.0.9", None, False),
        ("10.4.0.9", "external", False),
        ("192.0.2.8", None, False),
        ("192.0.2.8", "external", True),  # its gateway reaches it
    ],
)
def test_a_new_router_reaches_its_next_hops(
    run: CloudRun, neutron: Neutron, hop: str, external: str | None, valid: bool
) -> None:
    routes = (Route(destination="10.9.0.0/16", nexthop=hop),)
    router = Router(name="r", external_network=external, interfaces=("c",), routes=routes)
    assert refused(run, router) == ([] if valid else [(Code.SPEC_CONTRADICTION, "interfaces")])
    assert refused(run, replace(router, interfaces=("c", "b"))) == refused(run, router)  # b exists, elsewhere
    assert refused(run, replace(router, interfaces=("c", "x"))) == []  # nobody knows where x is
    assert refused(run, replace(router, routes=None)) == []


@pytest.mark.parametrize(
    ("address", "hop", "valid"),
    [
        ("10.0.0.254", "10.0.0.1", True),  # of a transit network: the gateway is another router
        ("10.0.0.254", "10.0.0.254", False),
        ("10.0.0.1", "10.0.0.1", False),
        ("10.0.0.254", "10.0.1.1", False),  # the gateway of b, which it is going to get
        ("10.0.0.254", "10.0.1.9", True),
        ("10.0.0.254", "10.7.0.9", False),
    ],
)
def test_a_router_that_exists_is_no_next_hop_of_its_own(
    run: CloudRun, services: requests_mock.Mocker, neutron: Neutron, address: str, hop: str, valid: bool
) -> None:
    neutron.router("a-id")
    joined = interface("r1", "a-id") | {"fixed_ips": [{"subnet_id": "a-id", "ip_address": address}]}
    services.get(f"{NEUTRON}/ports", json=lambda asked, _: {"ports": [joined] if "device_owner" in asked.qs else []})
    routes = (Route(destination="10.9.0.0/16", nexthop=hop),)
    refusals = plan(run, Router(name="r", interfaces=("a", "b"), routes=routes)).refusals
    assert [each.field for each in refusals] == ([] if valid else ["interfaces"])


@pytest.mark.parametrize("subnets", [[], [{"id": "o", "name": "o", "network_id": "e1", "cidr": "192.0.2.0/24"}]])
def test_external_subnets_that_nobody_sees_refuse_nothing(
    run: CloudRun, services: requests_mock.Mocker, neutron: Neutron, subnets: list[dict[str, Any]]
) -> None:
    """A member sees those of a network that is shared only."""
    services.get(f"{NEUTRON}/subnets?network_id=e1", json={"subnets": subnets})
    router = Router(name="r", interfaces=("c",), external_network="external", external_fixed_ips=("198.51.100.2",))
    routes = (Route(destination="10.9.0.0/16", nexthop="198.51.100.1"),)
    expected = [(Code.SPEC_CONTRADICTION, "interfaces"), ("", "external_fixed_ips")]
    assert refused(run, replace(router, routes=routes)) == (expected if subnets else [])


def test_many_given_addresses_need_one_request(run: CloudRun, services: requests_mock.Mocker, neutron: Neutron) -> None:
    router = Router(name="r", external_network="external", external_fixed_ips=("192.0.2.7", "192.0.2.8"))
    assert refused(run, router) == []
    assert len([each for each in sent(services) if "/ports" in each]) == 1


@pytest.mark.parametrize(
    ("other", "valid"),
    [
        (Port(name="p", network="n", fixed_ips=(PortAddress(address="10.3.0.1"),)), False),
        (Port(name="p", network="n", fixed_ips=(PortAddress(address="10.3.0.2"),)), True),
        (Port(name="p", network="m", fixed_ips=(PortAddress(address="10.3.0.1"),)), True),
        (Port(name="p", network="n"), True),
        (Router(name="q", interfaces=("c",)), False),
        (Router(name="s", interfaces=("c",)), True),  # it is the one that reports it
        (Router(name="q", interfaces=("d",)), True),
    ],
)
def test_the_gateway_of_a_subnet_is_free_for_its_interface(
    run: CloudRun, neutron: Neutron, other: Resource, valid: bool
) -> None:
    router = Router(name="r", interfaces=("c",))
    assert refused(run, router, other) == ([] if valid else [(Code.SPEC_CONTRADICTION, "interfaces")])


def test_an_interface_needs_a_gateway(run: CloudRun, neutron: Neutron) -> None:
    without = replace(SUBNET, name="e", gateway_ip=False)
    assert refused(run, Router(name="r", interfaces=("e",)), without) == [(Code.SPEC_CONTRADICTION, "interfaces")]


@pytest.mark.parametrize(("fields", "by"), [({}, "tenant"), ({"ha": False}, "admin"), ({"enable_snat": True}, "admin")])
def test_only_administrators_set_some_fields(services: requests_mock.Mocker, fields: dict[str, Any], by: str) -> None:
    tenant = Cloud(connection(username="tenant"))
    run = CloudRun(Cloud(connection()), OwnershipTag("lab"), tenant=tenant)
    found = {"id": ADMIN_PROJECT, "enabled": True, "tags": []}
    services.get(f"{IDENTITY}/projects?name=lab", json={"projects": [found]})
    expected = (tenant, {}) if by == "tenant" else (run.admin, {"project_id": ADMIN_PROJECT})
    assert Router(name="r", project="lab", **fields).maker(run) == expected


# --- what exists ---------------------------------------------------------------------------


def test_of_subnets_that_share_a_name_one_is_enough(
    run: CloudRun, services: requests_mock.Mocker, neutron: Neutron
) -> None:
    """In a project that no spec has created."""
    neutron.router("a2-id")
    subnets = [subnet_row(id=f"{each}-id", name="a", project_id=ADMIN_PROJECT) for each in ("a1", "a2")]
    services.get(f"{NEUTRON}/subnets", json={"subnets": subnets})
    router = Router(name="r", interfaces=("a",))
    assert observation.observe(run, [router])[router.key].values["interfaces"] == {"a"}


def test_it_is_exported_by_names(run: CloudRun, neutron: Neutron) -> None:
    neutron.router("a-id", "theirs-id")
    record = RouterRecord.read(neutron.routers[0])
    assert Router.in_words(run, record) == {
        "external_network": "external",
        "interfaces": ("a", "theirs"),
        "routes": None,
    }


# --- destroy ------------------------------------------------------------------------------


def test_what_is_ours_goes_first(run: CloudRun, services: requests_mock.Mocker, neutron: Neutron) -> None:
    neutron.router("a-id", "b-id", routes=[{"destination": "10.9.0.0/16", "nexthop": "10.0.0.9"}])
    routes = (Route(destination="10.9.0.0/16", nexthop="10.0.0.9"),)
    router = Router(name="r", interfaces=("a",), routes=routes)  # b was declared in an earlier spec
    made = planner.plan_destroy("lab", [router], observation.observe(run, [router]))
    assert not observation.examine_deletes(run, made)
    executor.execute(made, run).raise_for_failures()
    remove = "PUT /r1/remove_router_interface"
    assert writes(services) == ["PUT /r1", remove, remove, "DELETE /r1"]
    assert neutron.changed.last_request.json() == {"router": {"routes": []}}


def test_one_without_a_gateway_goes_as_it_was_read(run: CloudRun, neutron: Neutron) -> None:
    neutron.router("a-id", external_gateway_info=None)
    router = Router(name="r", interfaces=("a",))
    made = planner.plan_destroy("lab", [router], observation.observe(run, [router]))
    executor.execute(made, run).raise_for_failures()
    assert neutron.deleted.last_request.headers["If-Match"] == "revision_number=3"


def test_an_interface_that_another_deletion_removed_counts_as_removed(
    run: CloudRun, services: requests_mock.Mocker, neutron: Neutron
) -> None:
    """The deletion of a duplicate network removes the interfaces on it as well, at the same time."""
    neutron.router("a-id")
    router = Router(name="r", interfaces=("a",))
    made = planner.plan_destroy("lab", [router], observation.observe(run, [router]))
    services.put(f"{NEUTRON}/routers/r1/remove_router_interface", **failure(404))
    executor.execute(made, run).raise_for_failures()
    assert writes(services) == ["PUT /r1/remove_router_interface", "DELETE /r1"]


def test_interfaces_of_others_keep_it(run: CloudRun, neutron: Neutron) -> None:
    neutron.router("a-id", "theirs-id")
    made = planner.plan_destroy("lab", [ROUTER], observation.observe(run, [ROUTER]))
    (mistake,) = observation.examine_deletes(run, made)
    assert mistake.code == "plan.still-used"
    assert contains(str(mistake), "router/r", "theirs-id")


@pytest.mark.parametrize(
    ("alias", "path", "noun"),
    [("l3-ndp-proxy", "ndp_proxies", "NDP proxy"), ("vpnaas", "vpn/vpnservices", "VPN service")],
)
def test_what_needs_its_gateway_keeps_it(
    run: CloudRun, services: requests_mock.Mocker, neutron: Neutron, alias: str, path: str, noun: str
) -> None:
    neutron.router("a-id")
    made = planner.plan_destroy("lab", [ROUTER], observation.observe(run, [ROUTER]))
    member, row = path.rpartition("/")[2], {"id": "x1", "name": "theirs", "project_id": ""}
    services.get(f"{NEUTRON}/{path}?router_id=r1", json={member: [row]})
    assert observation.examine_deletes(CloudRun(run.admin, run.ownership), made) == []  # without the extension
    services.get(f"{NEUTRON}/extensions", json={"extensions": [{"alias": alias}]})
    (mistake,) = observation.examine_deletes(CloudRun(run.admin, run.ownership), made)
    assert mistake.what.startswith(f"{noun} theirs x1")
    assert mistake.code == Code.STILL_USED


def test_floating_ips_behind_it_keep_it_unless_they_go(
    run: CloudRun, services: requests_mock.Mocker, neutron: Neutron
) -> None:
    neutron.router("a-id")
    row = {
        "id": "f1",
        "floating_ip_address": "192.0.2.7",
        "floating_network_id": "e1",
        "project_id": "",
        "port_id": "p1",
    }
    for device in ("s1", "lb-s1"):  # of a server, and of a load balancer with this id
        row |= {"router_id": "r1", "port_details": {"device_id": device}}
        services.get(f"{NEUTRON}/floatingips?router_id=r1", json={"floatingips": [row]})
        run = CloudRun(run.admin, run.ownership)
        assert [each.split()[2] for each in blockers_of_router(run, "r1", frozenset())] == ["192.0.2.7"]
        for going in ("f1", "p1", "s1", attachment_id("f1", "p1")):
            assert not list(blockers_of_router(run, "r1", frozenset({going})))


@pytest.mark.parametrize("device", ["s1", "lb-s1", "ovn-lb-hm-s1"])
def test_ports_of_what_goes_do_not_keep_their_network(
    run: CloudRun, services: requests_mock.Mocker, device: str
) -> None:
    """Of a server, of a load balancer, and of a subnet from which OVN asks the members of one."""
    listed = [port_row(id="p1", device_id=device, device_owner="ovn-lb:vip")]
    services.get(f"{NEUTRON}/ports", json={"ports": listed})
    assert len(list(blockers_of_network(run, "n1", frozenset({"another"})))) == 1
    assert list(blockers_of_network(run, "n1", frozenset({"s1"}))) == []


@pytest.mark.parametrize("fields", [{}, {"tags": ["openstack-prep:lab~api"]}], ids=["foreign", "of the spec"])
def test_a_foreign_floating_ip_keeps_a_port_unless_it_is_detached(
    run: CloudRun, services: requests_mock.Mocker, fields: dict[str, Any]
) -> None:
    row = {"id": "f1", "floating_ip_address": "192.0.2.7", "floating_network_id": "e1", "port_id": "p1"} | fields
    services.get(f"{NEUTRON}/ports", json={"ports": [port_row(id="p1")]})
    services.get(f"{NEUTRON}/floatingips", json={"floatingips": [row]})
    port = PortRecord.read(port_row(id="p1", project_id=ADMIN_PROJECT))
    kept = [] if fields else ["floating IP 192.0.2.7"]
    assert list(blockers_of_port(run, port, frozenset())) == kept
    for going in ("f1", attachment_id("f1", "p1")):
        assert not list(blockers_of_port(run, port, frozenset({going})))


def test_local_ips_keep_a_port(run: CloudRun, services: requests_mock.Mocker) -> None:
    services.get(f"{NEUTRON}/extensions", json={"extensions": [{"alias": "local_ip"}]})
    row = {"id": "l1", "name": "", "project_id": ""}
    services.get(f"{NEUTRON}/local_ips?local_port_id=p1", json={"local_ips": [row]})
    port = PortRecord.read(port_row(id="p1", project_id=ADMIN_PROJECT))
    assert [each.split()[:3] for each in blockers_of_port(run, port, frozenset())] == [["local", "IP", "l1"]]
    assert not list(blockers_of_port(run, port, frozenset({"l1"})))
