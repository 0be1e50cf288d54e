"""What is found in a whole mesh of two clusters, each of two nodes in a network of its own."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from openstack_prep.kubernetes.cilium import Cilium, Member
from openstack_prep.kubernetes.mesh.examination import Examination, MeshNodes, examine, mesh_cluster
from openstack_prep.kubernetes.model import KubernetesCluster
from openstack_prep.resources.lists.neutron_records import PortRecord, SubnetRecord
from tests.unit.kubernetes.mesh.cloud import group, interface, port, router, rule, subnet, visible

ROLES = (frozenset({"controlplane", "etcd"}), frozenset({"worker"}))
SUBNETS = {"one": subnet("one", "10.1.0.0/24"), "two": subnet("two", "10.2.0.0/24")}
ADDRESSES = {"one": "10.1.0.1", "two": "10.2.0.1"}
OPEN = [rule(), rule(ethertype="IPv6")]


def member(name: str, number: int, **cilium: Any) -> Member:
    pods = f"10.4{number}.0.0/16"
    settings = Cilium(cluster_id=number, **cilium)
    return Member(name=name, cilium=settings, cluster=KubernetesCluster(distribution="rke2", cluster_cidr=pods))


def nodes(name: str, known: int = 2) -> MeshNodes:
    """Return the nodes of a cluster, of which the roles of some are known."""
    of = SUBNETS[name]
    ports = [PortRecord.read(port(f"{name}-{n}", of, f"{ADDRESSES[name]}{n}", name)) for n in range(2)]
    roles = {f"{name}-{n}": ROLES[n] for n in range(known)}
    return MeshNodes(ports=ports, subnets=[SubnetRecord.read(of)], roles=roles)


def examined(
    joined: Collection[str] = ("one", "two"), rules: Any = OPEN, known: int = 2, networks: Any = (), **cilium: Any
) -> Examination:
    seen = visible(
        subnets=[*SUBNETS.values()],
        interfaces=[interface("r", SUBNETS[name]) for name in joined],
        routers=[router("r")],
        groups=[group("one", *rules), group("two", *OPEN)],
        networks=networks,
    )
    members = [member(name, n, **cilium) for n, name in enumerate(SUBNETS, 1)]
    return examine(seen, members, {name: nodes(name, known) for name in SUBNETS})


def codes(found: Examination) -> list[str]:
    return [each.code for each in found.findings]


def test_a_mesh_in_which_all_may_pass() -> None:
    found = examined(mesh_service="NodePort")
    assert codes(found) == []
    assert [each.name for each in found.clusters] == ["one", "two"]
    assert {(each.source, each.to) for each in found.passages} == {("one", "two"), ("two", "one")}


def test_one_command_that_serves_both_directions_is_reported_once() -> None:
    found = examined(joined=["one"], mesh_service="NodePort")
    assert "route.missing" in codes(found)
    commands = [each.fix for each in found.findings if each.fix.startswith("openstack ")]
    assert len(commands) == len({*commands}) > 0


@pytest.mark.parametrize(
    ("mtus", "where"),
    [((1450, 1400), ["one to two"]), ((1400, 1450), ["two to one"]), ((1400, 1400), []), ((1400, None), [])],
)
def test_networks_of_different_mtus(mtus: tuple[int, int | None], where: list[str]) -> None:
    networks = [{"id": f"net-{name}", "mtu": mtu} for name, mtu in zip(SUBNETS, mtus, strict=True)]
    found = examined(mesh_service="NodePort", networks=networks)
    assert [(each.code, each.where) for each in found.findings] == [("network.mtu-differs", each) for each in where]
    assert found.ok


def test_rules_that_are_missing_are_found_between_clusters_and_within_one() -> None:
    found = examined(rules=[], mesh_service="NodePort")
    assert {*codes(found)} == {"security-group.blocks"}
    assert {each.where for each in found.findings} == {"two to one", "within one"}


def test_nodes_whose_roles_are_not_known_are_left_out_of_what_roles_need() -> None:
    assert codes(examined(known=1, mesh_service="NodePort")) == []


def test_a_cluster_as_the_others_see_it() -> None:
    of = replace(nodes("one"), by_bgp=True, speakers=True)
    found = mesh_cluster(member("one", 1, mesh_service="NodePort"), of)
    assert (found.name, found.ports, found.subnets, found.roles) == ("one", of.ports, of.subnets, of.roles)
    assert (found.by_bgp, found.speakers, found.pod_networks, found.mesh_address) == (True, True, (), None)
    native = member("one", 1, mesh_service="LoadBalancer", mesh_address="10.1.0.208", routing="native")
    found = mesh_cluster(native, of)
    assert ([*map(str, found.pod_networks)], found.mesh_address) == (["10.41.0.0/16"], "10.1.0.208")
