"""What exposures add to a spec: rules, address pairs and attached floating IPs, and nothing that it declares itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import SpecError
from openstack_prep.core import planner
from openstack_prep.core.model import Key
from openstack_prep.exposures.exposed_cluster import ExposedCluster
from openstack_prep.exposures.requirements import route_mistakes
from openstack_prep.resources.addresses.address_pairs import AddressPairs
from openstack_prep.resources.addresses.floating_ip_attachment import FloatingIPAttachment
from openstack_prep.resources.network.router import Router
from openstack_prep.resources.network.security_group import SecurityGroup, SecurityGroupRules
from openstack_prep.spec.completion import derive
from openstack_prep.spec.python import spec_from
from openstack_prep.spec.spec import Spec, load_spec

POOL = {"name": "lb", "subnet": "nodes", "addresses": ["10.1.0.200-10.1.0.203"]}
CLUSTER = {"name": "one", "directory": "one", "nodes": {"stack": "k"}, "open_in": "nodes"}


def exposure(name: str, **more: Any) -> dict[str, Any]:
    given = {"cluster": "one", "how": "metallb", "target": {"service": "a/b"}, "ports": [{"port": 443}], "pool": "lb"}
    return {"name": name} | given | more


def loaded(tmp_path: Path, *exposures: dict[str, Any], **sections: Any) -> Spec:
    spec = {"name": "s", "address_pools": [POOL], "exposures": [*exposures], "exposed_clusters": [CLUSTER]}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(spec | sections))
    return load_spec(tmp_path / "s.yaml")


def of(spec: Spec, kind: type[Any]) -> list[Any]:
    return [each for each in spec.resources if isinstance(each, kind)]


def test_pairs_and_rules_of_an_exposure(tmp_path: Path) -> None:
    spec = loaded(tmp_path, exposure("a", address="10.1.0.200"), exposure("b", allowed_cidrs=["10.0.0.0/8"]))
    (pairs,) = of(spec, AddressPairs)
    addresses = tuple(f"10.1.0.{each}" for each in range(200, 204))  # one by one, for OVN
    assert (pairs.name, pairs.stack, pairs.addresses, pairs.pools) == ("exposures-one", "k", addresses, ())
    (rules,) = of(spec, SecurityGroupRules)
    assert {(each.ports, each.remote_ip_prefix) for each in rules.rules} == {
        ("443", "0.0.0.0/0"),
        ("443", "10.0.0.0/8"),
    }
    assert spec.places[pairs.key].endswith("s.yaml:" + spec.places[pairs.key].rpartition(":")[2])


def test_what_the_spec_declares_is_not_added(tmp_path: Path) -> None:
    own = [{"name": "own", "stack": "k", "pools": ["lb"]}]
    group = [
        {"name": "nodes", "rules": [{"protocol": "tcp", "ports": 443, "description": "first"}, {"protocol": "icmp"}]}
    ]
    spec = loaded(tmp_path, exposure("a", address="10.1.0.200"), address_pairs=own, security_groups=group)
    assert [each.name for each in of(spec, AddressPairs)] == ["own"]
    (found,) = of(spec, SecurityGroup)
    assert [each.protocol for each in found.rules] == ["tcp", "icmp"]  # without a prefix: from everywhere
    assert found.rules[0].description == "first"


def test_pairs_for_other_ports_do_not_count(tmp_path: Path) -> None:
    other = [{"name": "own", "stack": "other", "pools": ["lb"]}]
    spec = loaded(tmp_path, exposure("a", address="10.1.0.200"), address_pairs=other)
    assert [each.name for each in of(spec, AddressPairs)] == ["own", "exposures-one"]


def test_a_spec_may_call_its_own_pairs_like_those_of_exposures(tmp_path: Path) -> None:
    own = [{"name": "exposures-one", "stack": "other", "addresses": ["10.1.0.9"]}]
    spec = loaded(tmp_path, exposure("a", address="10.1.0.200"), address_pairs=own)
    declared, derived = of(spec, AddressPairs)
    assert (declared.name, declared.stack, declared.origin.implied_by) == ("exposures-one", "other", None)
    assert (derived.stack, derived.origin.implied_by) == ("k", Key("exposed_cluster", "one"))
    assert derived.key != declared.key
    edges = planner.dependencies(spec.resources)  # raises SpecError if anything is declared twice
    assert {declared.key, derived.key} <= edges.keys()
    assert derive(spec.resources, {}) == list(spec.resources)
    read_in_python = spec_from(replace(spec, checked=False)).resources
    assert {each.key: each for each in read_in_python} == {each.key: each for each in spec.resources}


def test_it_is_added_once(tmp_path: Path) -> None:
    spec = loaded(tmp_path, exposure("a", address="10.1.0.200"))
    assert derive(spec.resources, {}) == list(spec.resources)


@pytest.mark.parametrize("how", ["service-host", "floating-ip", "node-port"])
def test_ways_without_an_address_on_nodes_have_no_pairs(how: str, tmp_path: Path) -> None:
    spec = loaded(tmp_path, exposure("a", how=how, pool=None, ports=[{"port": 443, "node_port": 30443}]))
    assert of(spec, AddressPairs) == []
    opened = [rule.ports for each in of(spec, SecurityGroupRules) for rule in each.rules]
    assert opened == {"service-host": [], "floating-ip": ["443"], "node-port": ["30443"]}[how]


def test_carriers_alone_have_pairs(tmp_path: Path) -> None:
    nodes = [{"name": each, "addresses": [f"10.1.0.{number}"]} for number, each in enumerate(("n1", "n2"), 11)]
    cluster = CLUSTER | {"nodes": {"ports": ["n1", "n2"]}, "external_ips": {"interface": "eth0", "nodes": nodes}}
    spec = loaded(tmp_path, exposure("a", how="external-ip", address="10.1.0.200"), exposed_clusters=[cluster])
    (pairs,) = of(spec, AddressPairs)
    assert pairs.name == f"exposures-one.{pairs.ports[0]}"
    assert not pairs.prune  # the node that carried the address before keeps its pair
    cluster["external_ips"] = cluster["external_ips"] | {"carriers": "all"}  # type: ignore[operator]
    spec = loaded(tmp_path, exposure("a", how="external-ip", address="10.1.0.200"), exposed_clusters=[cluster])
    assert sorted((each.ports, each.prune) for each in of(spec, AddressPairs)) == [(("n1",), True), (("n2",), True)]


def test_pairs_of_two_clusters_have_distinct_names(tmp_path: Path) -> None:
    nodes = [{"name": "b", "addresses": ["10.1.0.11"]}]
    settings = {"nodes": {"ports": ["b"]}, "external_ips": {"interface": "eth0", "nodes": nodes}}
    clusters = [CLUSTER | settings | {"name": "a", "directory": "a"}, CLUSTER | {"name": "a-b", "directory": "a-b"}]
    one = exposure("x", cluster="a", how="external-ip", address="10.1.0.200")
    spec = loaded(tmp_path, one, exposure("y", cluster="a-b", address="10.1.0.201"), exposed_clusters=clusters)
    assert {each.name: each.addresses for each in of(spec, AddressPairs)} == {
        "exposures-a.b": ("10.1.0.200",),
        "exposures-a-b": ("10.1.0.201",),
    }


def test_the_router_gets_the_static_routes(tmp_path: Path) -> None:
    nodes = [{"name": "n1", "addresses": ["10.1.0.11"]}, {"name": "n2", "addresses": ["10.1.0.12"]}]
    settings = {"interface": "vips", "create_interface": True, "nodes": nodes, "carriers": "all", "static_routes": True}
    router = {"name": "r", "external_network": "x", "routes": [{"destination": "10.9.0.0/16", "nexthop": "10.1.0.9"}]}
    cluster = CLUSTER | {"router": "r", "external_ips": settings}
    given = exposure("a", how="external-ip", pool=None, address="200.1.1.1")
    spec = loaded(tmp_path, given, routers=[router], exposed_clusters=[cluster])
    (found,) = of(spec, Router)
    assert [(each.destination, each.nexthop) for each in found.routes] == [
        ("10.9.0.0/16", "10.1.0.9"),
        ("200.1.1.1/32", "10.1.0.11"),
        ("200.1.1.1/32", "10.1.0.12"),
    ]
    # without exposures, what the spec declares remains: [] removes the routes of exposures, None manages none
    for routes, left in (([], ()), (None, None)):
        spec = loaded(tmp_path, routers=[router | {"routes": routes}], exposed_clusters=[cluster])
        assert [each.routes for each in of(spec, Router)] == [left]


def test_a_router_without_routes_gets_none(tmp_path: Path) -> None:
    settings = {"interface": "vips", "create_interface": True, "carriers": "all", "static_routes": True}
    settings["nodes"] = [{"name": "n1", "addresses": ["10.1.0.11"]}]
    cluster = CLUSTER | {"router": "r", "external_ips": settings}
    given = exposure("a", how="external-ip", pool=None, address="200.1.1.1")
    router: dict[str, Any] = {"name": "r", "external_network": "x"}
    codes = []
    for more in ({}, {"routes": []}):
        spec = loaded(tmp_path, given, routers=[router | more], exposed_clusters=[cluster])
        (found,), (declared,) = of(spec, Router), of(spec, ExposedCluster)
        assert bool(found.routes) == bool("routes" in more)
        codes.append(
            [each.code for each in route_mistakes(declared, [found, replace(found, name="other", routes=None)])]
        )
    assert codes == [[Code.SPEC_CONTRADICTION], []]


def test_a_floating_ip_leads_to_the_reserving_port(tmp_path: Path) -> None:
    floating = [{"name": "web", "external_network": "external"}]
    spec = loaded(tmp_path, exposure("a", address="10.1.0.200", floating_ip="web"), floating_ips=floating)
    (attachment,) = of(spec, FloatingIPAttachment)
    assert (attachment.port, attachment.floating_ip) == ("lb-10.1.0.200", "web")
    own = [{"floating_ip": "web", "port": "mine"}]
    spec = loaded(
        tmp_path,
        exposure("a", address="10.1.0.200", floating_ip="web"),
        floating_ips=floating,
        floating_ip_attachments=own,
    )
    assert [each.port for each in of(spec, FloatingIPAttachment)] == ["mine"]


def test_addresses_of_a_pool_file_have_pairs(tmp_path: Path) -> None:
    """One by one if they are few, else as ranges; not again what the spec allows itself."""
    few = {
        "name": "lb",
        "path": "lb.yaml",
        "cidr": "10.1.0.0/24",
        "addresses": ["10.1.0.8/30"],
        "exclude": ["10.1.0.9"],
    }
    more = few | {"addresses": ["10.1.0.64/26"]}
    for file, expected in ((few, ("10.1.0.10", "10.1.0.11", "10.1.0.8")), (more, ("10.1.0.64-10.1.0.127",))):
        spec = loaded(tmp_path, exposure("a"), exposure("b"), address_pools=[], pool_files=[file])
        (pairs,) = of(spec, AddressPairs)
        assert (pairs.addresses, pairs.pools) == (expected, ())
        assert derive(spec.resources, {}) == list(spec.resources)
    own = [{"name": "own", "stack": "k", "addresses": ["10.1.0.0/24"]}]
    spec = loaded(tmp_path, exposure("a"), address_pools=[], pool_files=[few], address_pairs=own)
    assert [each.name for each in of(spec, AddressPairs)] == ["own"]


def test_ipv6_is_opened_for_ipv6(tmp_path: Path) -> None:
    addresses = ["2001:db8::200-2001:db8::203"]
    file = {"name": "lb", "path": "lb.yaml", "cidr": "2001:db8::/64", "addresses": addresses}
    for pools in ({"address_pools": [POOL | {"addresses": addresses}]}, {"address_pools": [], "pool_files": [file]}):
        spec = loaded(tmp_path, exposure("a"), **pools)
        (rules,) = of(spec, SecurityGroupRules)
        assert [each.remote_ip_prefix for each in rules.rules] == ["::/0"]


def test_a_group_without_a_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as raised:
        loaded(tmp_path, exposure("a"), exposed_clusters=[CLUSTER | {"nodes": {}}])
    assert "nodes" in raised.value.mistakes[0].where
