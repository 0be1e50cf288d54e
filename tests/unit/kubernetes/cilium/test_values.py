"""Whole Helm values of each release: data/cilium-*.yaml; OPENSTACK_PREP_STORE=1 writes them anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
import yaml

from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.kubernetes.cilium import Cilium, Member, document, helm_chart_config, manifests, mistakes
from openstack_prep.kubernetes.model import KubernetesCluster
from tests.unit import kubernetes_schemas

RELEASES = ("1.13.4", "1.14", "1.15", "1.16.1", "1.17", "1.18.0")

EVERYWHERE = frozenset(
    """cluster.name cluster.id ipam.mode ipam.operator.clusterPoolIPv4PodCIDRList
    ipam.operator.clusterPoolIPv6PodCIDRList ipam.operator.clusterPoolIPv6MaskSize ipv4.enabled ipv6.enabled
    k8s.requireIPv4PodCIDR k8s.requireIPv6PodCIDR kubeProxyReplacement k8sServiceHost k8sServicePort
    ipv4NativeRoutingCIDR ipv6NativeRoutingCIDR encryption.enabled encryption.type identityAllocationMode etcd.enabled
    clustermesh.useAPIServer clustermesh.config.enabled clustermesh.config.domain clustermesh.config.clusters
    clustermesh.apiserver.service.type clustermesh.apiserver.service.nodePort
    clustermesh.apiserver.service.annotations clustermesh.apiserver.service.loadBalancerIP
    clustermesh.apiserver.tls.server.extraDnsNames""".split()  # noqa: SIM905
)
MODES = {"routingMode", "tunnelProtocol"}
KNOWN = {
    "1.13": EVERYWHERE | {"tunnel", "etcd.managed"},
    "1.14": EVERYWHERE | MODES | {"tunnel", "etcd.managed"},
    "1.15": EVERYWHERE | MODES | {"etcd.managed"},
    "1.16": EVERYWHERE | MODES,
    "1.17": EVERYWHERE | MODES,
    "1.18": EVERYWHERE | MODES,
}
"""Paths of Helm values by release: facts of install/kubernetes/cilium/values.yaml, as in rancher/rke2-charts 1.13.000,
1.14.000, 1.16.000 and 1.18.000; the managed etcd by its template, which 1.15.000 still has and 1.16.000 has no more."""
OF_THE_USER = {"clustermesh.apiserver.service.annotations", "clustermesh.config.clusters"}

TEXT, COUNT, TRUTH, LIST = ({"type": each} for each in ("string", "integer", "boolean", "array"))


def exactly(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


SERVICE = exactly(
    type=TEXT, nodePort=COUNT, annotations={"type": "object"}, loadBalancerIP={"type": ["null", "string"]}
)
POOL = exactly(
    clusterPoolIPv4PodCIDRList={"type": ["array", "string"]},
    clusterPoolIPv6PodCIDRList={"type": ["array", "string"]},
    clusterPoolIPv6MaskSize=COUNT,
)
SCHEMA = exactly(
    cluster=exactly(name=TEXT, id=COUNT),
    ipam=exactly(mode=TEXT, operator=POOL),
    ipv4=exactly(enabled=TRUTH),
    ipv6=exactly(enabled=TRUTH),
    k8s=exactly(requireIPv4PodCIDR=TRUTH, requireIPv6PodCIDR=TRUTH),
    k8sServiceHost=TEXT,
    k8sServicePort={"type": ["string", "integer"]},
    kubeProxyReplacement={"type": ["string", "boolean"]},
    routingMode=TEXT,
    tunnelProtocol=TEXT,
    ipv4NativeRoutingCIDR=TEXT,
    ipv6NativeRoutingCIDR=TEXT,
    encryption=exactly(enabled=TRUTH, type=TEXT),
    clustermesh=exactly(
        useAPIServer=TRUTH,
        config=exactly(enabled=TRUTH, domain=TEXT, clusters={"type": ["object", "array"]}),
        apiserver=exactly(service=SERVICE, tls=exactly(server=exactly(extraDnsNames=LIST))),
    ),
)
"""The same by Cilium's own values.schema.json (after 1.18), as far as we use it, but strict."""

PLAIN = Cilium(cluster_id=1, mesh_address="10.1.0.200")
FULL = replace(
    PLAIN,
    encryption="wireguard",
    routing="native",
    native_routing_cidr="10.42.0.0/15",
    ipam="cluster-pool",
    kube_proxy_replacement=True,
    values={"operator": {"replicas": 1}, "clustermesh": {"apiserver": {"replicas": 2}}, "hubble": {"enabled": True}},
)
NODE_PORT = replace(
    PLAIN, mesh_service="NodePort", mesh_address="10.1.0.11", tunnel_protocol="geneve", mesh_domain="mesh.example.com"
)


def cluster(number: int) -> KubernetesCluster:
    return KubernetesCluster(cluster_cidr=f"10.4{2 * number}.0.0/16", service_cidr=f"10.4{2 * number + 1}.0.0/16")


def mesh(cilium: Cilium, count: int = 2, **more: Any) -> list[Member]:
    """Return clusters that differ in their numbers alone."""
    return [
        Member(
            name=f"cluster{number}",
            cilium=replace(
                cilium, cluster_id=number, mesh_address=(cilium.mesh_address or "").replace(".1.", f".{number}.")
            ),
            cluster=cluster(number),
            **more,
        )
        for number in range(1, count + 1)
    ]


def paths(values: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in values.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping) and path not in OF_THE_USER:
            yield from paths(value, f"{path}.")
        else:
            yield path


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("cilium", [PLAIN, replace(FULL, values=None), NODE_PORT, replace(PLAIN, mesh="etcd")])
@pytest.mark.parametrize("old_metallb", [False, True])
def test_the_release_knows_every_key(release: str, cilium: Cilium, old_metallb: bool) -> None:
    one, *_ = members = mesh(replace(cilium, version=release), old_metallb=old_metallb)
    minor = ".".join(release.split(".")[:2])
    refused = [each.where for each in mistakes(one, members)]
    assert ("mesh" in refused) == (cilium.mesh == "etcd" and minor not in ("1.13", "1.14", "1.15"))
    if "mesh" not in refused:
        assert set(paths(document(one, members))) <= KNOWN[minor]
    if "mesh" not in refused and minor > "1.15":
        jsonschema.validate(document(one, members), SCHEMA)


@pytest.mark.parametrize(
    ("name", "cilium"),
    [
        ("cilium.yaml", PLAIN),
        ("cilium-full.yaml", FULL),
        ("cilium-1.13.yaml", replace(FULL, version="1.13.4")),
        ("cilium-nodeport.yaml", NODE_PORT),
        ("cilium-etcd.yaml", replace(PLAIN, mesh="etcd", version="1.15")),
    ],
)
def test_the_values_are_what_helm_gets(name: str, cilium: Cilium, stored: Callable[[str, str], None]) -> None:
    members = mesh(cilium, 3)
    stored(f"../kubernetes/data/{name}", dump(document(members[0], members)).rstrip("\n"))


def test_the_spelling_of_1_13() -> None:
    values = document(*_alone(replace(FULL, version="1.13")))
    assert (values["tunnel"], values["kubeProxyReplacement"]) == ("disabled", "strict")
    assert document(*_alone(replace(PLAIN, version="1.13")))["tunnel"] == "vxlan"
    assert "config" not in document(*_first(mesh(replace(PLAIN, version="1.13"))))["clustermesh"]


def _alone(cilium: Cilium) -> tuple[Member, list[Member]]:
    return _first(mesh(cilium, 1))


def _first(members: list[Member]) -> tuple[Member, list[Member]]:
    return members[0], members


def test_a_cluster_alone_is_told_of_no_other() -> None:
    assert set(document(*_alone(PLAIN))["clustermesh"]) == {"useAPIServer", "apiserver"}
    assert "clustermesh" not in document(*_alone(Cilium(cluster_id=1, mesh="none")))


def test_metallb_is_asked_for_the_address_in_one_way_only() -> None:
    new, old = (document(*_first(mesh(PLAIN, old_metallb=old)))["clustermesh"]["apiserver"] for old in (False, True))
    both = {"metallb.io/loadBalancerIPs": "10.1.0.200", "metallb.universe.tf/loadBalancerIPs": "10.1.0.200"}
    assert new == {"service": {"type": "LoadBalancer", "annotations": both}}
    assert old == {"service": {"type": "LoadBalancer", "loadBalancerIP": "10.1.0.200"}}


@pytest.mark.parametrize("old_metallb", [False, True])
@pytest.mark.parametrize("service", ["LoadBalancer", "NodePort"])
def test_the_managed_etcd_has_a_service_of_ours(old_metallb: bool, service: Any) -> None:
    cilium = replace(PLAIN, mesh="etcd", version="1.15", mesh_service=service)
    (found,) = manifests(mesh(cilium, old_metallb=old_metallb)[0])
    kubernetes_schemas.validate(found, "1.31")
    assert found["spec"]["ports"][0].get("nodePort") == (32379 if service == "NodePort" else None)
    asked = found["spec"].get("loadBalancerIP") or found["metadata"].get("annotations", {}).get(
        "metallb.io/loadBalancerIPs"
    )
    assert asked == ("10.1.0.200" if service == "LoadBalancer" else None)
    assert manifests(mesh(PLAIN)[0]) == []


def test_ipv6_is_switched_on() -> None:
    six = KubernetesCluster(cluster_cidr="fd00:42::/56", service_cidr="fd00:43::/112")
    member = Member(name="six", cilium=Cilium(cluster_id=6, mesh_address="2001:db8::200"), cluster=six)
    values = document(member, [member])
    assert values["ipv4"] == {"enabled": False}
    assert values["ipv6"] == {"enabled": True}
    assert values["k8s"] == {"requireIPv6PodCIDR": True}
    pool = document(replace(member, cilium=replace(member.cilium, ipam="cluster-pool")), [member])["ipam"]["operator"]
    assert pool == {"clusterPoolIPv6PodCIDRList": ["fd00:42::/56"], "clusterPoolIPv6MaskSize": 64}


def test_both_ip_versions_are_switched_on() -> None:
    both = KubernetesCluster(cluster_cidr="10.42.0.0/16,fd00:42::/56", service_cidr="10.43.0.0/16,fd00:43::/112")
    member = Member(name="both", cilium=Cilium(cluster_id=6, version="1.19", mesh="none"), cluster=both)
    values = document(member, [member])
    assert (values["ipv4"], values["ipv6"]) == ({"enabled": True}, {"enabled": True})
    assert values["k8s"] == {"requireIPv4PodCIDR": True, "requireIPv6PodCIDR": True}
    assert "underlayProtocol" not in values  # tunnels are between the nodes' first addresses
    pool = document(replace(member, cilium=replace(member.cilium, ipam="cluster-pool")), [member])["ipam"]["operator"]
    assert pool == {
        "clusterPoolIPv4PodCIDRList": ["10.42.0.0/16"],
        "clusterPoolIPv6PodCIDRList": ["fd00:42::/56"],
        "clusterPoolIPv6MaskSize": 64,
    }


def test_rke2_gets_the_values_in_a_manifest() -> None:
    one, members = _first(mesh(FULL))
    found = helm_chart_config(document(one, members))
    assert found["metadata"] == {"name": "rke2-cilium", "namespace": "kube-system"}
    assert yaml.safe_load(found["spec"]["valuesContent"]) == document(one, members)
