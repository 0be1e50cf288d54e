from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
import requests_mock

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import CloudError
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.cloud.connection import Cloud
from openstack_prep.core import executor, observation, planner
from openstack_prep.core.model import Action, Observed, OwnershipTag
from openstack_prep.core.plan import Plan
from openstack_prep.resources.lists.neutron_records import INTERFACES, PortRecord
from openstack_prep.resources.lists.queries import forwardings_to
from openstack_prep.resources.network.declared_port import Port
from openstack_prep.resources.network.port_addresses import PortAddress, PortPair
from openstack_prep.resources.network.subnet import Subnet
from tests.unit.conftest import (
    ADMIN_PROJECT,
    ENDPOINTS,
    connection,
    declared_mistakes,
    failure,
    port_row,
    resolved,
    sent,
    subnet_row,
)

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


# --- what it is compared with, and what is written ------------------------------------------

MAC = "fa:16:3e:00:00:01"
DERIVED = "2001:db8::f816:3eff:fe00:1"  # from that MAC address


@pytest.fixture
def ports(services: requests_mock.Mocker) -> list[dict[str, Any]]:
    """The ports of a project with a network, two subnets and a group; a test fills them."""
    found: list[dict[str, Any]] = []
    described = {"description": "", "revision_number": 1, "project_id": ADMIN_PROJECT}
    networks = [{"id": each, "name": name, **described} for each, name in (("n1", "net"), ("n2", "far"))]
    pools = [{"start": "10.0.0.2", "end": "10.0.0.3"}]
    subnets = [
        subnet_row(id="s1", name="nodes", ipv6_address_mode=None, project_id=ADMIN_PROJECT, allocation_pools=pools),
        subnet_row(id="s6", name="six", cidr="2001:db8::/64", ipv6_address_mode="slaac", project_id=ADMIN_PROJECT),
    ]
    group = {"id": "g1", "name": "web", "stateful": True, "security_group_rules": [], **described}

    def listed(request: Any, _: Any) -> dict[str, Any]:
        ids = request.qs.get("network_id")
        return {"ports": [each for each in found if ids in (None, [each["network_id"]])]}

    services.get(f"{NEUTRON}/extensions", json={"extensions": []})
    services.get(f"{NEUTRON}/networks", json={"networks": networks})
    services.get(f"{NEUTRON}/networks?name=elsewhere", json={"networks": []})
    services.get(f"{NEUTRON}/rbac-policies", json={"rbac_policies": []})
    services.get(f"{NEUTRON}/subnets", json={"subnets": subnets})
    services.get(f"{NEUTRON}/security-groups", json={"security_groups": [group]})
    services.get(f"{NEUTRON}/floatingips", json={"floatingips": []})
    services.get(f"{NEUTRON}/ports", json=listed)
    return found


def vip(**fields: Any) -> dict[str, Any]:
    """Return the port as Neutron stores it."""
    fixed = [{"subnet_id": "s1", "ip_address": "10.0.0.9"}, {"subnet_id": "s6", "ip_address": DERIVED}]
    ours = {"description": "[openstack-prep:lab/vip]", "project_id": ADMIN_PROJECT, "security_groups": ["g1"]}
    return port_row(id="p1", name="vip", fixed_ips=fixed, revision_number=4, **ours) | fields


def plan(run: CloudRun, port: Port) -> Plan:
    wanted = [resolved(port, [port], run.admin)]
    observed, mistakes = observation.examine(run, wanted)
    return planner.plan_apply("lab", wanted, observed, mistakes=mistakes)


def reasons(run: CloudRun, port: Port) -> list[str]:
    return [each.what for each in plan(run, port).refusals]


NINE = PortAddress(subnet="nodes", address="10.0.0.9")
WEB = replace(PORT, fixed_ips=(NINE,), security_groups=("web",))


def test_it_is_created_with_ids_for_names(
    run: CloudRun, services: requests_mock.Mocker, ports: list[dict[str, Any]]
) -> None:
    pairs = (PortPair(address="10.0.0.50"), PortPair(address="10.1.0.0/16", mac_address="fa:16:3e:00:00:02"))
    own = PortAddress(address=DERIVED, subnet="six")
    wanted = replace(WEB, fixed_ips=(NINE, own), mac_address=MAC, allowed_address_pairs=pairs, tags=("a/b", "c"))
    created = services.post(f"{NEUTRON}/ports", json={"port": vip(tags=["c"])})
    tagged = services.put(re.compile(f"{NEUTRON}/ports/p1/tags/"), status_code=201)
    executor.execute(plan(run, wanted), run).raise_for_failures()
    assert created.last_request.json()["port"] == {
        "name": "vip",
        "network_id": "n1",
        "fixed_ips": [{"subnet_id": "s1", "ip_address": "10.0.0.9"}, {"subnet_id": "s6"}],  # Neutron derives it
        "security_groups": ["g1"],
        "mac_address": MAC,
        "allowed_address_pairs": [
            {"ip_address": "10.0.0.50"},
            {"ip_address": "10.1.0.0/16", "mac_address": "fa:16:3e:00:00:02"},
        ],
        "description": "[openstack-prep:lab/vip]",
    }
    assert [each.url.rpartition("/")[2] for each in tagged.request_history] == ["a%2Fb"]
    assert run.known[wanted.key].values["tags"] == {"a/b", "c"}


def test_tags_are_added_by_one_request_where_neutron_has_it(
    run: CloudRun, services: requests_mock.Mocker, ports: list[dict[str, Any]]
) -> None:
    services.get(f"{NEUTRON}/extensions", json={"extensions": [{"alias": "tag-creation"}]})
    services.post(f"{NEUTRON}/ports", json={"port": vip(tags=["c"])})
    added = services.post(f"{NEUTRON}/ports/p1/tags", status_code=200, json={"tags": []})
    executor.execute(plan(run, replace(WEB, tags=("größe", "c", "a/b"))), run).raise_for_failures()
    assert added.last_request.json() == {"tags": ["a/b", "größe"]}


RECORDED = {"ip_address": "10.0.0.60", "mac_address": MAC}
FOREIGN = {"ip_address": "10.0.0.61", "mac_address": MAC}
TAGS = ["openstack-prep:other~10.0.0.60", "blue"]


@pytest.mark.parametrize(
    "wanted",
    [
        WEB,
        replace(WEB, fixed_ips=(PortAddress(subnet="nodes"),)),
        replace(WEB, fixed_ips=(PortAddress(address="10.0.0.9"), PortAddress(subnet="six")), tags=("blue",)),
        replace(PORT, allowed_address_pairs=()),
        replace(PORT, allowed_address_pairs=(PortPair(address="10.0.0.60"),)),
    ],
)
def test_what_it_has_is_kept(run: CloudRun, ports: list[dict[str, Any]], wanted: Port) -> None:
    """Derived addresses, the choice of Neutron, pairs that the address_pairs of some spec record, and other tags."""
    ports.append(vip(allowed_address_pairs=[RECORDED], tags=TAGS))
    assert (list(plan(run, wanted).pending), reasons(run, wanted)) == ([], [])


def test_an_update_keeps_what_others_chose(
    run: CloudRun, services: requests_mock.Mocker, ports: list[dict[str, Any]]
) -> None:
    fixed = [*vip()["fixed_ips"], {"subnet_id": "s1", "ip_address": "10.0.0.8"}]
    ports.append(vip(fixed_ips=fixed, allowed_address_pairs=[RECORDED, FOREIGN], tags=TAGS))
    changed = services.put(f"{NEUTRON}/ports/p1", json={"port": vip()})
    wanted = replace(
        WEB,
        fixed_ips=(
            PortAddress(subnet="nodes"),
            PortAddress(subnet="nodes", address="10.0.0.8"),
            PortAddress(address="10.0.0.7"),
        ),
        allowed_address_pairs=(PortPair(address="10.0.0.50"),),
    )
    executor.execute(plan(run, wanted), run).raise_for_failures()
    assert changed.last_request.headers["If-Match"] == "revision_number=4"
    body = changed.last_request.json()["port"]
    assert body.keys() == {"fixed_ips", "allowed_address_pairs"}
    fixed = [*vip()["fixed_ips"], {"subnet_id": "s1", "ip_address": "10.0.0.8"}, {"ip_address": "10.0.0.7"}]
    assert sorted(map(str, body["fixed_ips"])) == sorted(map(str, fixed))
    assert body["allowed_address_pairs"] == [{"ip_address": "10.0.0.50"}, {"ip_address": "10.0.0.60"}]


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"fixed_ips": (PortAddress(address="10.0.0.10"),)}, {"fixed_ips"}),
        ({"security_groups": ()}, {"security_groups"}),
        ({"allowed_address_pairs": ()}, {"allowed_address_pairs"}),
        ({"tags": ("green",)}, {"tags"}),
    ],
)
def test_what_differs_is_updated(
    run: CloudRun, ports: list[dict[str, Any]], change: dict[str, Any], fields: set[str]
) -> None:
    ports.append(vip(allowed_address_pairs=[FOREIGN]))
    (step,) = plan(run, replace(WEB, **change))
    assert (step.action, {each.field for each in step.changes}) == (Action.UPDATE, fields)


def test_what_others_have_added_is_named(run: CloudRun, ports: list[dict[str, Any]]) -> None:
    """Addresses by their subnet, groups of other projects by their id."""
    fixed = [{"subnet_id": "s1", "ip_address": f"10.0.0.{number}"} for number in (9, 10)]
    ports.append(vip(fixed_ips=fixed, security_groups=["g1", "theirs"]))
    (found,) = Port.find(run, [WEB]).values()
    assert found.values["fixed_ips"] == {NINE, PortAddress(subnet="nodes", address="10.0.0.10")}
    assert found.values["security_groups"] == {"web", "theirs"}


# --- what forbids it ------------------------------------------------------------------------

SERVER = {"device_id": "i1", "device_owner": "compute:nova"}


@pytest.mark.parametrize(
    ("use", "change", "refused"),
    [
        (SERVER, {"fixed_ips": (PortAddress(address="10.0.0.10"),)}, True),
        (SERVER, {"network": "far", "fixed_ips": None}, True),
        (SERVER, {"mac_address": "fa:16:3e:00:00:02"}, True),
        (SERVER, {"security_groups": ()}, False),
        ({}, {"fixed_ips": (PortAddress(address="10.0.0.10"),)}, False),
    ],
)
def test_a_port_in_use_keeps_its_addresses(
    run: CloudRun, ports: list[dict[str, Any]], use: dict[str, Any], change: dict[str, Any], refused: bool
) -> None:
    ports.append(vip(**use))
    found = [each for each in reasons(run, replace(WEB, **change)) if "compute:nova i1 uses the port" in each]
    assert bool(found) == refused


@pytest.mark.parametrize(
    ("address", "refused"),
    [
        (PortAddress(address="10.0.1.9"), "10.0.1.9"),
        (PortAddress(address="10.0.0.9", subnet="six"), "10.0.0.9"),
        (PortAddress(address="10.0.0.8"), "compute:nova"),  # of another port
        (PortAddress(address="2001:db8::5"), "2001:db8::5"),
        (PortAddress(address=DERIVED), ""),
        (PortAddress(address="10.0.0.10"), ""),
    ],
)
def test_an_address_that_the_network_does_not_offer(
    run: CloudRun, ports: list[dict[str, Any]], address: PortAddress, refused: str
) -> None:
    fixed_ips = [{"subnet_id": "s1", "ip_address": "10.0.0.8"}]
    ports.append(vip(id="p2", name="other", fixed_ips=fixed_ips, mac_address="fa:16:3e:00:00:08", **SERVER))
    found = reasons(run, replace(PORT, fixed_ips=(address,), mac_address=MAC))
    assert len(found) == bool(refused)
    assert all(refused in each for each in found)


def test_an_address_of_another_network_is_free(run: CloudRun, ports: list[dict[str, Any]]) -> None:
    ports.append(vip(id="p2", name="other", network_id="n2", **SERVER))
    assert reasons(run, replace(PORT, fixed_ips=(NINE,))) == []


@pytest.mark.parametrize(
    ("address", "subnet", "codes"),
    [
        ("10.0.1.9", "nodes", [Code.SPEC_CONTRADICTION]),
        ("10.0.0.9", "nodes", []),
        ("10.0.1.9", None, []),  # any subnet of the network may have it
        ("10.0.1.9", "far", []),  # which is on another network, and refused for that
    ],
)
def test_an_address_outside_of_its_declared_subnet(address: str, subnet: str | None, codes: list[str]) -> None:
    subnets = [
        Subnet(name="nodes", network="net", cidr="10.0.0.0/24"),
        Subnet(name="far", network="m", cidr="10.2.0.0/24"),
    ]
    port = replace(PORT, fixed_ips=(PortAddress(subnet=subnet, address=address),))
    assert [each.code for each in declared_mistakes(port, *subnets)] == codes


def test_a_host_name_needs_an_extension(
    run: CloudRun, services: requests_mock.Mocker, ports: list[dict[str, Any]]
) -> None:
    named = replace(PORT, dns_name="vip")
    assert len(reasons(run, named)) == 1
    services.get(f"{NEUTRON}/extensions", json={"extensions": [{"alias": "dns-integration"}]})
    assert reasons(CloudRun(run.admin, run.ownership), named) == []


# --- which port it is -----------------------------------------------------------------------


def test_a_port_on_a_twin_of_its_network_is_not_it(
    run: CloudRun, services: requests_mock.Mocker, ports: list[dict[str, Any]]
) -> None:
    """It is deleted together with that network."""
    ours = {"name": "net", "description": "[openstack-prep:lab/net]", "project_id": ADMIN_PROJECT}
    twins = [
        {"id": each, "revision_number": 1, "created_at": when, **ours} for each, when in (("n1", "1"), ("n2", "2"))
    ]
    services.get(f"{NEUTRON}/networks", json={"networks": twins})
    services.get(f"{NEUTRON}/subnets", json={"subnets": []})
    ports += [vip(id="p2", network_id="n2"), vip()]
    found = Port.find(run, [PORT])[PORT.key]
    assert (found.id, found.twins) == ("p1", ())


def test_a_scan_yields_what_a_spec_would_declare(run: CloudRun, ports: list[dict[str, Any]]) -> None:
    pairs = [RECORDED, FOREIGN, {"ip_address": "10.0.0.62", "mac_address": "fa:16:3e:00:00:02"}]
    ports += [
        vip(allowed_address_pairs=pairs, tags=TAGS, dns_name="vip", **SERVER),
        vip(id="p2", name="node", description="", **SERVER),
        vip(id="p3", name="bare", description="", port_security_enabled=False, fixed_ips=[]),
        vip(id="p4", name="", description="", device_owner="network:dhcp"),
    ]
    (mine, found), (bare, other) = Port.scan(run, None)
    assert (found.id, found.ours, other.id, other.ours) == ("p1", True, "p3", False)
    assert mine == Port(
        name="vip",
        network="net",
        fixed_ips=(NINE, PortAddress(subnet="six", address=DERIVED)),
        security_groups=("web",),
        port_security_enabled=True,
        allowed_address_pairs=(
            PortPair(address="10.0.0.61"),
            PortPair(address="10.0.0.62", mac_address="fa:16:3e:00:00:02"),
        ),
        dns_name="vip",
        tags=("blue",),
    )
    assert (bare.network, bare.security_groups, bare.allowed_address_pairs, bare.tags) == ("net", None, None, None)


@pytest.mark.parametrize(("chosen", "by"), [(PORT, "tenant"), (replace(PORT, port_security_enabled=True), "admin")])
def test_what_only_the_owner_of_a_network_may_choose_is_left_to_the_administrator(
    services: requests_mock.Mocker, ports: list[dict[str, Any]], chosen: Port, by: str
) -> None:
    tenant = Cloud(connection(username="tenant"))
    run = CloudRun(Cloud(connection()), OwnershipTag("lab"), tenant=tenant)
    cloud, owner = chosen.maker(run)
    assert cloud is tenant, "on a network of the project"
    cloud, owner = replace(chosen, network="elsewhere").maker(run)
    assert (cloud, owner) == ((tenant, {}) if by == "tenant" else (run.admin, {"project_id": ADMIN_PROJECT}))


def test_each_address_outside_the_subnets_is_named(run: CloudRun, ports: list[dict[str, Any]]) -> None:
    outside = tuple(PortAddress(address=each) for each in ("10.0.1.8", "10.0.0.10", "10.0.1.9"))
    named = [each for each in reasons(run, replace(PORT, fixed_ips=outside)) if "10.0.0.0/24" in each]
    assert [each.partition(" ")[0] for each in named] == ["10.0.1.8", "10.0.1.9"]


def test_an_address_of_its_own_twin_is_free(run: CloudRun, ports: list[dict[str, Any]]) -> None:
    """The twin is deleted; somebody else's port with the address is in the way."""
    eight = [{"subnet_id": "s1", "ip_address": "10.0.0.8"}]
    when = {"created_at": "2026-11-26T07:00:00Z"}
    ports += [vip(**when), vip(id="p2", fixed_ips=eight, **when)]
    wanted = replace(WEB, fixed_ips=(PortAddress(subnet="nodes", address="10.0.0.8"),))
    assert reasons(run, wanted) == []
    ports[1]["name"] = "other"
    (found,) = reasons(CloudRun(run.admin, run.ownership), wanted)
    assert found.startswith("10.0.0.8 ")


def test_a_port_is_read_again_after_its_forwardings_are_deleted(
    run: CloudRun, services: requests_mock.Mocker, forwardings: list[dict[str, Any]]
) -> None:
    """Neutron counts the deletion as a change of the port."""
    forwardings.append({"id": "a", "internal_port_id": "p1", "protocol": "tcp"})
    record = PortRecord.read(row(1))
    assert [each["id"] for _, each in forwardings_to(run, record)] == ["a"]
    services.get(f"{NEUTRON}/ports/p1", [{"json": {"port": row(1)}}, {"json": {"port": row(2)}}])
    released = services.delete(f"{NEUTRON}/floatingips/f1/port_forwardings/a", status_code=204)
    deleted = services.delete(f"{NEUTRON}/ports/p1", status_code=204)
    services.get(f"{NEUTRON}/floatingips/f1/port_forwardings", json={"port_forwardings": []})
    PORT.delete(run, Observed(id="p1", ours=True, record=record))
    assert (released.call_count, deleted.last_request.headers["If-Match"]) == (1, "revision_number=2")


@pytest.mark.parametrize(("fields", "asks"), [({}, False), ({"security_groups": ("web",)}, True)])
def test_only_what_needs_port_security_asks_for_it(
    run: CloudRun, services: requests_mock.Mocker, ports: list[dict[str, Any]], fields: dict[str, Any], asks: bool
) -> None:
    disabled = {"id": "n1", "name": "net", "port_security_enabled": False, "project_id": ADMIN_PROJECT}
    services.get(f"{NEUTRON}/networks?id=n1", json={"networks": [disabled]})
    refusals = plan(run, replace(PORT, **fields)).refusals
    assert [each.code for each in refusals] == (["spec.contradiction"] if asks else [])
    assert any("id=n1" in each for each in sent(services) if "/networks" in each) is asks


@pytest.mark.parametrize(
    ("used", "given", "refused"),
    [
        ((), (), []),
        (("10.0.0.2",), (), ["port/p2"]),
        (("10.0.0.2", "10.0.0.3"), (), ["port/p1", "port/p2"]),
        (("10.0.0.9", "10.0.0.10"), (), []),
        ((), ("10.0.0.3",), ["port/p2"]),
    ],
    ids=["room", "one left", "none left", "outside of the pools", "an address that the spec gives"],
)
def test_new_ports_need_addresses(
    run: CloudRun, ports: list[dict[str, Any]], used: tuple[str, ...], given: tuple[str, ...], refused: list[str]
) -> None:
    ports += [
        vip(id=each, name="other", fixed_ips=[{"subnet_id": "s1", "ip_address": each}], device_id="d") for each in used
    ]
    fixed = [Port(name="p0", network="net", fixed_ips=(PortAddress(address=each),)) for each in given]
    wanted = [*fixed, *(Port(name=each, network="net") for each in ("p1", "p2"))]
    found = [resolved(each, wanted, Cloud(connection())) for each in wanted]
    observed, mistakes = observation.examine(run, found)
    refusals = planner.plan_apply("lab", found, observed, mistakes=mistakes).refusals
    assert [str(key) for each in refusals for key in each.keys] == refused


def test_a_port_without_pairs_lists_no_ports(run: CloudRun, services: requests_mock.Mocker, ports: list[Any]) -> None:
    assert list(PORT.list_unchecked(run, None)) == []
    assert sent(services) == []
