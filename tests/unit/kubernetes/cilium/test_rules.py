"""What Cilium and its mesh refuse: one mistake each, all at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from openstack_prep.kubernetes.cilium import Cilium, Member, mistakes, warnings
from openstack_prep.kubernetes.metallb import MetalLB, MetalLBPool
from openstack_prep.kubernetes.model import KubernetesCluster
from tests.unit.texts import Wording, contains

CILIUM = Cilium(cluster_id=1, mesh_address="10.1.0.200")
NETWORKS = KubernetesCluster(cluster_cidr="10.42.0.0/16", service_cidr="10.43.0.0/16")
ONE = Member(name="one", cilium=CILIUM, cluster=NETWORKS)
TWO = Member(
    name="two",
    cilium=replace(CILIUM, cluster_id=2, mesh_address="10.2.0.200"),
    cluster=KubernetesCluster(cluster_cidr="10.44.0.0/16", service_cidr="10.45.0.0/16"),
)


def changed(member: Member, **said: Any) -> Member:
    return replace(member, cilium=replace(member.cilium, **said))


def told(member: Member, *others: Member, **more: Any) -> list[str]:
    return [str(each) for each in mistakes(member, [*others, member], **more)]


def test_a_mesh_that_works() -> None:
    assert (
        told(TWO, ONE)
        == told(ONE)
        == told(Member(name="x", cilium=Cilium(cluster_id=255), cluster=KubernetesCluster()))
        == []
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("default", "name: Cilium reserves default for clusters without a name; choose a different name"),
        (
            "a" * 33,
            f"name: {'a' * 33!r} is not a valid cluster name for Cilium; "
            f"use at most 32 lower-case letters, digits and hyphens",
        ),
        (
            "Dev",
            "name: 'Dev' is not a valid cluster name for Cilium; use at most 32 lower-case letters, digits and hyphens",
        ),
        (
            "a.b",
            "name: 'a.b' is not a valid cluster name for Cilium; use at most 32 lower-case letters, digits and hyphens",
        ),
    ],
)
def test_names(name: str, said: str) -> None:
    assert told(replace(ONE, name=name)) == [said]
    assert told(replace(ONE, name="a" * 32)) == []


@pytest.mark.parametrize(
    ("said", "mistakes"),
    [
        (
            {"mesh": "etcd", "version": "1.16"},
            ["mesh: Cilium 1.16 has no managed etcd (1.16 removed it); write clustermesh-apiserver"],
        ),
        ({"mesh": "etcd", "version": "1.15"}, []),
        (
            {"namespace": "kube_system"},
            ["namespace: 'kube_system' is not a DNS label; use lower-case letters, digits and hyphens"],
        ),
        ({"mesh": "none"}, ["mesh_address: only applies to clusters with a mesh; remove it, or choose a mesh"]),
        (
            {"mesh_service": "NodePort", "mesh_node_port": 2379},
            [
                "mesh_node_port: 2379 is not a node port of Kubernetes (30000-32767);"
                " choose one of these, or change the range of kube-apiserver in config"
            ],
        ),
        ({"mesh_domain": "mesh"}, ["mesh_domain: 'mesh' is not a domain; write one such as mesh.cilium.io"]),
        (
            {"mesh_address": "2001:db8::200"},
            [
                "mesh_address: 2001:db8::200 is not an IPv4 address like the Services of 10.43.0.0/16; "
                "choose an IPv4 address"
            ],
        ),
        (
            {"routing": "native"},
            [
                "native_routing_cidr: is missing, and native routing requires it; "
                "write a network that contains the pods of all clusters"
            ],
        ),
        ({"native_routing_cidr": "10.0.0.0/8"}, ["native_routing_cidr: only applies to native routing; remove it"]),
        (
            {"values": {"cluster": {"name": "x", "other": 1}, "routingMode": "native", "ipam": "kubernetes"}},
            [
                "values: cluster.name is set by a field of the section cilium; remove it, and use the field",
                "values: routingMode is set by a field of the section cilium; remove it, and use the field",
                "values: ipam is set by a field of the section cilium; remove it, and use the field",
            ],
        ),
        ({"values": {"hubble": {"enabled": True}, "clustermesh": {"apiserver": {"replicas": 2}}}}, []),
    ],
)
def test_one_cluster(said: dict[str, Any], mistakes: list[str]) -> None:
    assert told(changed(ONE, **said)) == mistakes


def test_values_of_the_peers_are_ours_too(wording: Wording) -> None:
    member = changed(TWO, values={"clustermesh": {"config": {"clusters": []}}})
    wording(told(member, ONE))
    assert told(member) == []


def test_two_clusters_that_are_too_much_alike(wording: Wording) -> None:
    twin = replace(ONE, name="twin")
    wording(told(twin, ONE))
    wording(told(ONE, twin)[0])


def test_two_clusters_that_do_not_fit(wording: Wording) -> None:
    other = changed(TWO, tunnel_protocol="geneve", encryption="wireguard", mesh_address=None)
    wording(told(other, ONE))
    assert told(changed(other, mesh="none"), ONE) == []


def test_native_routing_holds_the_pods_of_all(wording: Wording) -> None:
    native = {"routing": "native", "native_routing_cidr": "10.42.0.0/15"}
    wording(told(changed(TWO, **native), changed(ONE, **native)))


def test_one_node_port_in_two_clusters(wording: Wording) -> None:
    port = {"mesh_service": "NodePort", "kube_proxy_replacement": True}
    wording(told(changed(TWO, **port), changed(ONE, **port)))
    assert told(changed(TWO, **port, mesh_node_port=32380), changed(ONE, **port)) == []


@pytest.mark.parametrize(
    ("pool", "said"),
    [
        (MetalLBPool(pool="lb", auto_assign=False), []),
        (
            MetalLBPool(pool="lb"),
            [
                "mesh_address: MetalLB may assign 10.1.0.200 of pool lb to any other Service;"
                " put it into a pool of its own with auto_assign: false"
            ],
        ),
        (MetalLBPool(pool="lb", namespaces=("web", "kube-system")), []),
        (
            MetalLBPool(name="x", addresses=("10.9.0.0/24",)),
            ["mesh_address: 10.1.0.200 is not in a pool of MetalLB (x); choose an address of a pool"],
        ),
        (
            MetalLBPool(pool="lb", namespaces=("web", "api")),
            [
                "mesh_address: pool lb of 10.1.0.200 only serves the namespaces web, api;"
                " add namespace kube-system, or choose an address of a different pool"
            ],
        ),
    ],
)
def test_metallb_gives_out_the_address(pool: MetalLBPool, said: list[str]) -> None:
    more = {"metallb": MetalLB(pools=(pool,)), "addresses": {"lb": ["10.1.0.200-10.1.0.219"]}}
    assert told(ONE, **more) == said
    assert told(changed(ONE, mesh_service="NodePort"), **more) == []


def test_two_who_do_the_work_of_kube_proxy(wording: Wording) -> None:
    assert list(warnings(ONE)) == []
    both = changed(ONE, kube_proxy_replacement=True)
    (said,) = warnings(both)
    wording(said)
    (said,) = warnings(replace(both, cluster=replace(NETWORKS, distribution="rke2")))
    assert contains(said, "disable-kube-proxy", "true", "server_config")
    without = replace(NETWORKS, distribution="rke2", config={"disable-kube-proxy": True})
    assert list(warnings(replace(both, cluster=without))) == []


@pytest.mark.parametrize(
    ("distribution", "plugin", "said"),
    [
        ("rke", "none", []),
        ("rke", "calcio", []),  # which RKE's own rules tell
        (
            "rke",
            "calico",
            ["network_plugin: calico conflicts with cilium; remove it: Cilium requires the default, none"],
        ),
        ("rke2", "multus, cilium", []),
        ("rke2", "multus,canal", ["network_plugin: multus,canal conflicts with the section cilium; remove it"]),
    ],
)
def test_another_network_beside_cilium(distribution: Any, plugin: str, said: list[str]) -> None:
    found = told(replace(ONE, cluster=replace(NETWORKS, distribution=distribution, network_plugin=plugin)))
    assert [each.partition(", or")[0] for each in found] == said


def test_an_address_of_the_other_version_is_told_once() -> None:
    pools = MetalLB(pools=(MetalLBPool(name="p", addresses=("10.1.0.200/29",), auto_assign=False),))
    (said,) = told(changed(ONE, mesh_address="fd00::1"), metallb=pools)
    assert contains(said, "mesh_address", "fd00::1", "IPv4")


V6 = KubernetesCluster(cluster_cidr="fd00:42::/56", service_cidr="fd00:43::/112")
NATIVE = {"routing": "native", "native_routing_cidr": "fd00::/16"}


@pytest.mark.parametrize(
    ("values", "where"),
    [
        ({"version": "1.17"}, "routing"),
        ({"version": "1.18"}, None),
        ({"version": "1.17", **NATIVE}, None),
        ({"version": "1.17", "encryption": "ipsec", **NATIVE}, "encryption"),
        ({"version": "1.18", "encryption": "ipsec", **NATIVE}, None),
        ({"version": "1.18", "encryption": "wireguard"}, "encryption"),
        ({"version": "1.17", "encryption": "wireguard", **NATIVE}, None),
        ({"version": "1.19", "encryption": "wireguard"}, None),
        ({"version": "1.18", "routing": "native", "native_routing_cidr": "10.0.0.0/8"}, "native_routing_cidr"),
        ({"version": "1.18", "values": {"ipv6": {"enabled": False}}}, "values"),
        ({"version": "1.18", "values": {"ipv4": {"enabled": True}}}, "values"),
        ({"version": "1.18", "values": {"ipv4": {"enabled": True}}, "ipam": "cluster-pool"}, "values"),
    ],
)
def test_settings_with_which_the_agent_does_not_start_on_ipv6(values: dict[str, Any], where: str | None) -> None:
    alone = Member(name="one", cilium=Cilium(cluster_id=1, mesh="none", **values), cluster=V6)
    assert {each.where for each in mistakes(alone, [alone])} == ({where} if where else set())


def test_releases(wording: Wording) -> None:
    alone = replace(ONE, cilium=Cilium(cluster_id=1, mesh="none", version="1.19.601"))
    wording(told(alone))
    of_rke2 = replace(alone, cluster=replace(NETWORKS, distribution="rke2"))
    assert told(of_rke2) == list(warnings(of_rke2)) == []
    assert told(changed(of_rke2, namespace="cilium")) == ["namespace: RKE2 installs Cilium into kube-system; remove it"]
    (warning,) = warnings(changed(alone, version="1.21"))
    wording(warning)
    assert list(warnings(changed(alone, version="2.0"))) != []
