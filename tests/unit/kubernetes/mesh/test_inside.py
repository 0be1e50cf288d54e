from __future__ import annotations

from typing import Any, Literal

from openstack_prep.kubernetes.cilium import Cilium, Member, required
from openstack_prep.kubernetes.mesh.examination import inside
from openstack_prep.kubernetes.model import KubernetesCluster
from tests.unit.kubernetes.mesh.cloud import cluster, group, port, rule, subnet, visible

ONE = subnet("one", "10.1.0.0/24")
SERVER, AGENT = frozenset({"controlplane", "etcd"}), frozenset({"worker"})
SELF = {"remote_group_id": "one"}


def found(
    *roles: frozenset[str],
    rules: list[dict[str, Any]],
    distribution: Literal["rke", "rke2"] = "rke",
    speakers: bool = False,
    **cilium: Any,
) -> list[str]:
    """Return what is found in a cluster whose nodes, of one group, do these."""
    members = [
        Member(name=name, cilium=Cilium(cluster_id=n, **cilium), cluster=KubernetesCluster(distribution=distribution))
        for n, name in enumerate(("one", "two"), 1)
    ]
    ports = [port(f"one-{n}", ONE, f"10.1.0.1{n}", "one") for n in range(len(roles))]
    nodes = cluster("one", ONE, *ports, speakers=speakers, roles={f"one-{n}": each for n, each in enumerate(roles)})
    around = visible(groups=[group("one", *rules)])
    findings = list(inside(around, nodes, members[0], required(members)))
    assert all(each.where == "within one" for each in findings)
    return [each.what.removeprefix("the ports ").replace(" (groups one) do not let", ":") for each in findings]


def test_one_group_that_lets_in_itself() -> None:
    assert found(SERVER, SERVER, SERVER, AGENT, rules=[rule(**SELF)], distribution="rke2") == []


def test_what_is_missing_is_told_of_those_who_need_it() -> None:
    assert found(SERVER, AGENT, AGENT, rules=[rule(protocol="icmp", **SELF)]) == [
        "one-0: tcp 6443 in from 10.1.0.0/24",
        "one-0, one-1, one-2: tcp 10250 in from 10.1.0.0/24",
        "one-0, one-1, one-2: tcp 4240 in from 10.1.0.0/24",
        "one-0, one-1, one-2: udp 8472 in from 10.1.0.0/24",
    ]
    tcp = rule(protocol="tcp", port_range_min=1024, port_range_max=9999, **SELF)
    assert found(SERVER, SERVER, rules=[tcp, rule(protocol="icmp"), rule(protocol="udp")]) == [
        "one-0, one-1: tcp 10250 in from 10.1.0.0/24"
    ]


def test_speakers_of_metallb_hear_one_another() -> None:
    some = [rule(protocol="icmp", **SELF), rule(protocol="udp", port_range_min=8472, port_range_max=8472, **SELF)]
    some += [rule(protocol="tcp", port_range_min=1, port_range_max=65535, **SELF)]
    assert found(SERVER, AGENT, rules=some) == []
    assert found(SERVER, AGENT, rules=some, speakers=True) == ["one-0, one-1: udp 7946 in from 10.1.0.0/24"]


def test_members_of_etcd_and_nodes_that_join() -> None:
    some = [rule(protocol=each, **SELF) for each in ("icmp", "udp")]
    some += [rule(protocol="tcp", port_range_min=n, port_range_max=n, **SELF) for n in (4240, 6443, 10250)]
    assert found(SERVER, SERVER, AGENT, rules=some, distribution="rke2") == [
        "one-0, one-1: tcp 2379 in from 10.1.0.0/24",
        "one-0, one-1: tcp 2380 in from 10.1.0.0/24",
        "one-0, one-1: tcp 9345 in from 10.1.0.0/24",
    ]
    assert found(SERVER, AGENT, rules=some) == []


def test_a_node_alone_needs_nobodys_leave() -> None:
    assert found(SERVER | AGENT, rules=[]) == []


def test_the_meshs_own_port_is_for_others() -> None:
    assert found(SERVER, AGENT, rules=[rule(**SELF)], mesh_service="NodePort") == []
    only = [rule(protocol=each, **SELF) for each in ("icmp", "udp")]
    only += [rule(protocol="tcp", port_range_min=1, port_range_max=20000, **SELF)]
    assert found(SERVER, AGENT, rules=only, mesh_service="NodePort") == []
