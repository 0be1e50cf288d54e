"""Whole manifests as kubectl gets them: data/metallb*.yaml; OPENSTACK_PREP_STORE=1 writes them anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
import yaml

from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.base.secret import HIDDEN, Secret
from openstack_prep.kubernetes.metallb import (
    MetalLB,
    MetalLBBGP,
    MetalLBLayer2,
    MetalLBPeer,
    MetalLBPool,
    document,
    mistakes,
)
from openstack_prep.kubernetes.service_pools import LabelExpression, LabelSelector
from tests.unit import kubernetes_schemas

FRONT = LabelSelector(match_labels={"tier": "front"})
NOT_OLD = LabelSelector(
    match_expressions=(
        LabelExpression(key="age", operator="NotIn", values=("old",)),
        LabelExpression(key="disk", operator="Exists"),
    )
)
ADDRESSES = {"cluster1": ["10.1.0.200-10.1.0.219"], "six": ["2001:db8::100/120", "2001:db8::fff"]}
PEER = MetalLBPeer(
    name="tor1",
    my_asn=64512,
    peer_asn=4200000000,
    peer_address="10.1.0.1",
    peer_port=1179,
    source_address="10.1.0.20",
    router_id="10.1.0.20",
    hold_time=90,
    ebgp_multi_hop=True,
    password=Secret("hush: '1'"),
    node_selectors=(NOT_OLD,),
)
PLAIN = MetalLB(pools=(MetalLBPool(pool="cluster1"),))
BOTH_ERAS = MetalLB(
    pools=(
        MetalLBPool(pool="cluster1", auto_assign=False, avoid_buggy_ips=True),
        MetalLBPool(
            name="routed",
            addresses=("198.51.100.0/28", "198.51.100.32"),
            protocol="bgp",
            bgp=MetalLBBGP(aggregation_length=32, aggregation_length_v6=124, local_pref=100, communities=("64512:1",)),
        ),
    ),
    peers=(PEER,),
    namespace="lb",
)
FULL = replace(
    BOTH_ERAS,
    pools=(
        replace(
            BOTH_ERAS.pools[0],
            namespaces=("web", "kube-system"),
            namespace_selectors=(FRONT,),
            service_selectors=(NOT_OLD,),
            priority=10,
            l2=MetalLBLayer2(interfaces=("eth1",), node_selectors=(FRONT,), service_selectors=(NOT_OLD,)),
        ),
        replace(
            BOTH_ERAS.pools[1],
            bgp=replace(
                BOTH_ERAS.pools[1].bgp,  # type: ignore[type-var]
                communities=("64512:1", "large:64512:1:2"),
                peers=("tor1",),
                node_selectors=(NOT_OLD,),
            ),
        ),
        MetalLBPool(name="v6", pool="six", protocol="bgp", bgp=MetalLBBGP(service_selectors=(FRONT,))),
    ),
)

TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}
COUNT = {"type": "integer"}
ASN = {"type": "integer", "minimum": 0, "maximum": 2**32 - 1}


def exactly(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


EXPRESSION = exactly(("key", "operator"), key=TEXT, operator=TEXT, values=TEXTS)
SELECTOR = exactly(
    matchLabels={"type": "object", "additionalProperties": TEXT},
    matchExpressions={"type": "array", "items": EXPRESSION},
)
SELECTORS = {"type": "array", "items": SELECTOR}
CRDS = {
    "IPAddressPool": exactly(
        ("addresses",),
        addresses=TEXTS,
        autoAssign={"type": "boolean"},
        avoidBuggyIPs={"type": "boolean"},
        serviceAllocation=exactly(
            priority=COUNT, namespaces=TEXTS, namespaceSelectors=SELECTORS, serviceSelectors=SELECTORS
        ),
    ),
    "L2Advertisement": exactly(
        ipAddressPools=TEXTS,
        ipAddressPoolSelectors=SELECTORS,
        nodeSelectors=SELECTORS,
        serviceSelectors=SELECTORS,
        interfaces=TEXTS,
    ),
    "BGPAdvertisement": exactly(
        aggregationLength={"type": "integer", "minimum": 1},
        aggregationLengthV6=COUNT,
        communities=TEXTS,
        localPref=COUNT,
        ipAddressPools=TEXTS,
        ipAddressPoolSelectors=SELECTORS,
        nodeSelectors=SELECTORS,
        serviceSelectors=SELECTORS,
        peers=TEXTS,
    ),
    "BGPPeer": exactly(
        ("myASN",),
        myASN=ASN,
        peerASN=ASN,
        peerAddress=TEXT,
        peerPort={"type": "integer", "minimum": 1, "maximum": 16384},
        sourceAddress=TEXT,
        routerID=TEXT,
        holdTime={"type": "string", "pattern": r"^\d+s$"},
        ebgpMultiHop={"type": "boolean"},
        passwordSecret=exactly(name=TEXT, namespace=TEXT),
        nodeSelectors=SELECTORS,
    ),
}
"""The specs of MetalLB's custom resources as far as we use them: facts of config/crd/bases of MetalLB 0.15."""

OLD_SELECTOR = exactly(
    **{
        "match-labels": {"type": "object", "additionalProperties": TEXT},
        "match-expressions": {"type": "array", "items": EXPRESSION},
    }
)
OLD_PEER = exactly(
    ("my-asn", "peer-asn", "peer-address"),
    **{
        "my-asn": ASN,
        "peer-asn": ASN,
        "peer-address": TEXT,
        "peer-port": COUNT,
        "source-address": TEXT,
        "router-id": TEXT,
        "hold-time": TEXT,
        "ebgp-multihop": {"type": "boolean"},
        "password": TEXT,
        "node-selectors": {"type": "array", "items": OLD_SELECTOR},
    },
)
OLD_ADVERTISEMENT = exactly(
    **{"aggregation-length": COUNT, "aggregation-length-v6": COUNT, "localpref": COUNT, "communities": TEXTS}
)
OLD_POOL = exactly(
    ("name", "protocol", "addresses"),
    **{
        "name": TEXT,
        "protocol": {"enum": ["layer2", "bgp"]},
        "addresses": TEXTS,
        "auto-assign": {"type": "boolean"},
        "avoid-buggy-ips": {"type": "boolean"},
        "bgp-advertisements": {"type": "array", "items": OLD_ADVERTISEMENT},
    },
)
OLD = exactly(
    ("address-pools",),
    **{"peers": {"type": "array", "items": OLD_PEER}, "address-pools": {"type": "array", "items": OLD_POOL}},
)
"""The ConfigMap's entry: facts of the parser of MetalLB 0.12 (internal/config)."""


def checked(metallb: MetalLB) -> str:
    """Return the manifests, each of which its program would take."""
    assert list(mistakes(metallb, ADDRESSES)) == []
    written = dump(*document(metallb, ADDRESSES))
    for each in yaml.safe_load_all(written):
        if each["kind"] in CRDS:
            assert each["apiVersion"] == ("metallb.io/v1beta2" if each["kind"] == "BGPPeer" else "metallb.io/v1beta1")
            jsonschema.validate(each["spec"], CRDS[each["kind"]])
        else:
            kubernetes_schemas.validate(each, "1.31")
        if each["kind"] == "ConfigMap":
            jsonschema.validate(yaml.safe_load(each["data"]["config"]), OLD)
    return written


@pytest.mark.parametrize(
    ("name", "metallb"),
    [
        ("metallb.yaml", PLAIN),
        ("metallb-full.yaml", FULL),
        ("metallb-configmap.yaml", replace(BOTH_ERAS, manifests="configmap")),
        ("metallb-configmap-plain.yaml", replace(PLAIN, manifests="configmap")),
    ],
)
def test_the_manifests_are_what_metallb_takes(name: str, metallb: MetalLB, stored: Callable[[str, str], None]) -> None:
    stored(f"../kubernetes/data/{name}", checked(metallb).rstrip("\n"))


def test_both_eras_say_the_same_of_a_pool() -> None:
    new, _ = document(PLAIN, ADDRESSES)
    (old,) = document(replace(PLAIN, manifests="configmap"), ADDRESSES)
    pool = yaml.safe_load(old["data"]["config"])["address-pools"][0]
    assert pool["addresses"] == new["spec"]["addresses"] == ["10.1.0.200-10.1.0.219"]


def test_a_password_is_hidden_until_it_is_written() -> None:
    for metallb in (FULL, replace(BOTH_ERAS, manifests="configmap")):
        assert metallb.contains_secrets
        assert "hush" not in str(document(metallb, ADDRESSES)) + repr(metallb)
        assert HIDDEN in str(document(metallb, ADDRESSES))
        assert "hush" in dump(*document(metallb, ADDRESSES))
    assert not PLAIN.contains_secrets


def test_a_single_address_is_a_network_to_metallb() -> None:
    metallb = MetalLB(pools=(MetalLBPool(name="one", addresses=("10.1.0.7", "2001:db8::7", "10.2.0.0-10.2.0.255")),))
    assert document(metallb, {})[0]["spec"]["addresses"] == ["10.1.0.7/32", "2001:db8::7/128", "10.2.0.0/24"]
