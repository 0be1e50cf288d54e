"""Cilium as a load balancer: the shapes of its resources in each release, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.base.secret import Secret
from openstack_prep.kubernetes.cilium import (
    Cilium,
    CiliumBGP,
    CiliumLayer2,
    CiliumLoadBalancer,
    CiliumPeer,
    CiliumPool,
    Member,
    document,
    load_balancer_documents,
    mistakes,
)
from openstack_prep.kubernetes.model import KubernetesCluster
from openstack_prep.kubernetes.service_pools import LabelExpression, LabelSelector

ADDRESSES = {"lb": ["10.1.0.200-10.1.0.206"]}
FRONT = LabelSelector(
    match_labels={"tier": "front"}, match_expressions=(LabelExpression(key="a", operator="In", values=("b",)),)
)
ALL = {"matchExpressions": [{"key": "openstack-prep/none", "operator": "NotIn", "values": ["none"]}]}
TOR = CiliumPeer(name="tor", peer_asn=64513, peer_address="10.1.0.1")
POOL = CiliumPool(pool="lb")


def of(version: str = "1.19", **said: Any) -> Cilium:
    balancer = CiliumLoadBalancer(**({"pools": (POOL,)} | said))
    return Cilium(cluster_id=1, mesh="none", version=version, kube_proxy_replacement=True, load_balancer=balancer)


def written(cilium: Cilium) -> dict[str, Any]:
    """Return the documents by kind."""
    text = dump(*load_balancer_documents(cilium, ADDRESSES))
    return {each["kind"]: each for each in yaml.safe_load_all(text)}


CIDRS = {"cidrs": [{"cidr": each} for each in ("10.1.0.200/30", "10.1.0.204/31", "10.1.0.206/32")]}
BLOCKS = {"blocks": [{"start": "10.1.0.200", "stop": "10.1.0.206"}]}


@pytest.mark.parametrize(
    ("version", "api", "spec"),
    [
        ("1.13", "v2alpha1", CIDRS),
        ("1.14.3", "v2alpha1", CIDRS),
        ("1.15", "v2alpha1", BLOCKS),
        ("1.16", "v2alpha1", BLOCKS),
        ("1.17", "v2alpha1", BLOCKS),
        ("1.18", "v2", BLOCKS),
        ("1.19.601", "v2", BLOCKS),
        ("1.20", "v2", BLOCKS),
    ],
)
def test_pools_of_each_release(version: str, api: str, spec: dict[str, Any]) -> None:
    pool = written(of(version))["CiliumLoadBalancerIPPool"]
    assert pool == {
        "apiVersion": f"cilium.io/{api}",
        "kind": "CiliumLoadBalancerIPPool",
        "metadata": {"name": "lb"},
        "spec": spec,
    }


def test_pools_of_some_services() -> None:
    pool = CiliumPool(name="x", addresses=("10.2.0.0/28",), namespaces=("shop",), service_selector=FRONT)
    assert written(of(pools=(pool,)))["CiliumLoadBalancerIPPool"]["spec"] == {
        "blocks": [{"start": "10.2.0.0", "stop": "10.2.0.15"}],
        "serviceSelector": {
            "matchLabels": {"tier": "front"},
            "matchExpressions": [
                {"key": "io.kubernetes.service.namespace", "operator": "In", "values": ["shop"]},
                {"key": "a", "operator": "In", "values": ["b"]},
            ],
        },
    }


def test_layer_2() -> None:
    layer2 = CiliumLayer2(interfaces=("^ens[0-9]+$",), node_selector=LabelSelector(match_labels={"lb": "yes"}))
    policy = written(of(l2=layer2))["CiliumL2AnnouncementPolicy"]
    assert policy["apiVersion"] == "cilium.io/v2alpha1"
    assert policy["spec"] == {
        "loadBalancerIPs": True,
        "interfaces": ["^ens[0-9]+$"],
        "nodeSelector": {"matchLabels": {"lb": "yes"}},
    }
    assert written(of(l2=CiliumLayer2()))["CiliumL2AnnouncementPolicy"]["spec"] == {"loadBalancerIPs": True}


def test_bgp_before_1_16() -> None:
    peer = CiliumPeer(
        name="tor", peer_asn=64513, peer_address="fd00::1", hold_time=30, ebgp_multi_hop=2, password=Secret("x")
    )
    found = written(of("1.15", bgp=CiliumBGP(my_asn=64512, peers=(peer,))))
    assert found["CiliumBGPPeeringPolicy"]["apiVersion"] == "cilium.io/v2alpha1"
    neighbor = {
        "peerASN": 64513,
        "peerAddress": "fd00::1/128",
        "holdTimeSeconds": 30,
        "keepAliveTimeSeconds": 10,
        "eBGPMultihopTTL": 2,
        "authSecretRef": "tor-password",
    }
    router = {"localASN": 64512, "serviceSelector": ALL, "neighbors": [neighbor]}
    assert found["CiliumBGPPeeringPolicy"]["spec"] == {"virtualRouters": [router]}
    assert found["Secret"]["metadata"] == {"name": "tor-password", "namespace": "kube-system"}
    assert found["Secret"]["stringData"] == {"password": "x"}


@pytest.mark.parametrize(
    ("version", "api"), [("1.16", "v2alpha1"), ("1.17", "v2alpha1"), ("1.18", "v2"), ("1.20", "v2")]
)
def test_bgp_since_1_16(version: str, api: str) -> None:
    peer = CiliumPeer(name="tor", peer_asn=64513, peer_address="10.1.0.1", peer_port=1790, hold_time=30)
    bgp = CiliumBGP(my_asn=64512, peers=(peer,), local_pref=200, communities=("64512:1", "1:2:3", "no-export"))
    found = written(of(version, bgp=bgp, pools=(POOL, CiliumPool(name="six", addresses=("fd00::10",)))))
    kinds = ("CiliumBGPClusterConfig", "CiliumBGPPeerConfig", "CiliumBGPAdvertisement")
    assert {found[kind]["apiVersion"] for kind in kinds} == {f"cilium.io/{api}"}
    cluster, settings, advertisement = (found[kind] for kind in kinds)
    (instance,) = cluster["spec"]["bgpInstances"]
    assert instance["localASN"] == 64512
    assert instance["peers"] == [
        {"name": "tor", "peerASN": 64513, "peerAddress": "10.1.0.1", "peerConfigRef": {"name": "tor"}}
    ]
    label = {"matchLabels": advertisement["metadata"]["labels"]}
    assert settings["metadata"] == {"name": "tor"}
    assert settings["spec"] == {
        "transport": {"peerPort": 1790},
        "timers": {"holdTimeSeconds": 30, "keepAliveTimeSeconds": 10},
        "families": [{"afi": f"ipv{each}", "safi": "unicast", "advertisements": label} for each in (4, 6)],
    }
    communities = {"standard": ["64512:1"], "large": ["1:2:3"], "wellKnown": ["no-export"]}
    assert advertisement["spec"]["advertisements"] == [
        {
            "advertisementType": "Service",
            "service": {"addresses": ["LoadBalancerIP"]},
            "selector": ALL,
            "attributes": {"communities": communities, "localPreference": 200},
        }
    ]


def test_helm_values() -> None:
    cilium = of(l2=CiliumLayer2(), bgp=CiliumBGP(my_asn=64512, peers=(TOR,)))
    member = Member(name="one", cilium=cilium, cluster=KubernetesCluster(), addresses={"lb": ["10.1.0.0/24"]})
    values = document(member, [member])
    assert values["l2announcements"] == values["bgpControlPlane"] == {"enabled": True}
    assert values["k8sClientRateLimit"] == {"qps": 62, "burst": 124}
    assert values["kubeProxyReplacement"] is True


@pytest.mark.parametrize(("version", "name"), [("1.15", "io.cilium/lb-ipam-ips"), ("1.16", "lbipam.cilium.io/ips")])
def test_the_mesh_requests_its_address_from_cilium(version: str, name: str) -> None:
    selector = LabelSelector(match_labels={"io.kubernetes.service.name": "clustermesh-apiserver"})
    balancer = CiliumLoadBalancer(pools=(CiliumPool(pool="lb", service_selector=selector),), l2=CiliumLayer2())
    cilium = Cilium(
        cluster_id=1, version=version, mesh_address="10.1.0.200", load_balancer=balancer, kube_proxy_replacement=True
    )
    member = Member(name="one", cilium=cilium, cluster=KubernetesCluster(), addresses=ADDRESSES)
    values: Any = document(member, [member])
    assert values["clustermesh"]["apiserver"]["service"]["annotations"] == {name: "10.1.0.200"}
    assert list(mistakes(member, [member], addresses=ADDRESSES)) == []


def refused(cilium: Cilium) -> list[str]:
    member = Member(name="one", cilium=cilium, cluster=KubernetesCluster())
    return [each.where.removeprefix("load_balancer.") for each in mistakes(member, [member], addresses=ADDRESSES)]


def by_bgp(**said: Any) -> dict[str, Any]:
    return {"bgp": CiliumBGP(**({"my_asn": 64512, "peers": (TOR,)} | said))}


def peer(**said: Any) -> CiliumPeer:
    return CiliumPeer(name="two", peer_asn=1, peer_address="10.1.0.2", **said)


@pytest.mark.parametrize(
    ("version", "said", "where"),
    [
        ("1.19", {"l2": CiliumLayer2()}, []),
        ("1.13", by_bgp(), []),
        ("1.19", {}, ["l2"]),
        ("1.13", {"l2": CiliumLayer2()}, ["l2"]),
        ("1.19", {"pools": (), "l2": CiliumLayer2()}, ["pools"]),
        ("1.19", {"pools": (POOL, POOL), "l2": CiliumLayer2()}, ["pools[1]", "pools[1].pool"]),
        ("1.19", {"pools": (CiliumPool(pool="none"),), "l2": CiliumLayer2()}, ["pools[0].pool"]),
        (
            "1.19",
            {"pools": (CiliumPool(pool="lb", service_selector=LabelSelector()),), "l2": CiliumLayer2()},
            ["pools[0].service_selector"],
        ),
        ("1.18", {"pools": (CiliumPool(name="a", addresses=("fd00::1",)),), "l2": CiliumLayer2()}, ["pools[0]"]),
        ("1.19", {"pools": (CiliumPool(name="a", addresses=("fd00::1",)),), "l2": CiliumLayer2()}, []),
        ("1.15", by_bgp(communities=("1:1",), local_pref=1), ["bgp.communities", "bgp.local_pref"]),
        ("1.19", by_bgp(communities=("64512:70000", "1:2:3:4", "export", "4294967296")), ["bgp.communities"] * 4),
        ("1.19", by_bgp(communities=("64512:65535", "1:2:4294967295", "no-peer", "4294967295")), []),
        ("1.13", by_bgp(peers=(peer(hold_time=9),)), ["bgp.peers[0].hold_time"]),
        ("1.14", by_bgp(peers=(peer(hold_time=9, password=Secret("x")),)), ["bgp.peers[0].password"]),
        ("1.19", by_bgp(peers=(peer(), peer())), ["bgp.peers[1].peer_address", "bgp.peers[1]"]),
    ],
)
def test_what_cilium_does_not_announce(version: str, said: dict[str, Any], where: list[str]) -> None:
    assert refused(of(version, **said)) == where


def test_layer_2_requires_the_replacement_of_kube_proxy() -> None:
    balancer = CiliumLoadBalancer(pools=(POOL,), l2=CiliumLayer2())
    assert refused(Cilium(cluster_id=1, mesh="none", load_balancer=balancer)) == ["l2"]


@pytest.mark.parametrize(
    ("pool", "where"),
    [
        (POOL, ["mesh_address"]),  # any Service might get the address
        (CiliumPool(pool="lb", namespaces=("shop",)), ["mesh_address"]),
        (CiliumPool(pool="lb", namespaces=("kube-system",)), []),
        (CiliumPool(name="a", addresses=("10.1.0.199",)), ["mesh_address"]),
    ],
)
def test_the_address_of_the_mesh_is_in_a_pool_for_it(pool: CiliumPool, where: list[str]) -> None:
    balancer = CiliumLoadBalancer(pools=(pool,), **by_bgp())
    assert refused(Cilium(cluster_id=1, mesh_address="10.1.0.200", load_balancer=balancer)) == where
