"""What MetalLB refuses: one mistake each, all at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openstack_prep.kubernetes.metallb import (
    LabelExpression,
    LabelSelector,
    MetalLB,
    MetalLBBGP,
    MetalLBLayer2,
    MetalLBPeer,
    MetalLBPool,
    mistakes,
    warnings,
)

ADDRESSES = {"lb": ["10.1.0.200-10.1.0.219"], "other": ["10.1.0.192/28"]}
GOOD = MetalLBPool(pool="lb")
PEER = MetalLBPeer(name="tor", my_asn=64512, peer_asn=64513, peer_address="10.1.0.1")
SAYS_ALL = LabelSelector()
FRONT = LabelSelector(match_labels={"tier": "front"})


def told(*pools: MetalLBPool, peers: tuple[MetalLBPeer, ...] = (PEER,), manifests: str = "crd") -> list[str]:
    return [str(each) for each in mistakes(MetalLB(pools=pools, peers=peers, manifests=manifests), ADDRESSES)]  # type: ignore[arg-type]


def bgp(**said: object) -> MetalLBPool:
    return MetalLBPool(pool="lb", protocol="bgp", bgp=MetalLBBGP(**said))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pool", "said"),
    [
        (GOOD, []),
        (bgp(aggregation_length=29, communities=("64512:1", "large:1:2:3", "no-export"), peers=("tor",)), []),
        (MetalLBPool(addresses=("10.9.0.1",)), ["pools[0].name: is missing; give it a name, or name an address pool"]),
        (
            MetalLBPool(name="My Pool", pool="lb"),
            ["pools[0].name: 'My Pool' is no DNS label; use small letters, digits and hyphens, 63 at most"],
        ),
        (MetalLBPool(name="a"), ["pools[0]: has no addresses; name an address pool with pool, or give addresses"]),
        (
            replace(GOOD, addresses=("10.9.0.1",)),
            ["pools[0]: names an address pool and gives addresses; keep one of pool and addresses"],
        ),
        (
            MetalLBPool(pool="lp"),
            ["pools[0].pool: the spec has no address pool lp; known are lb, other; declare it in address_pools"],
        ),
        (
            MetalLBPool(name="a", addresses=("10.9.0.0/24", "10.9.0.9-10.9.1.9")),
            [
                "pools[0].addresses: 10.9.0.0-10.9.0.255 and 10.9.0.9-10.9.1.9 both have 10.9.0.9-10.9.0.255;"
                " give each address once"
            ],
        ),
        (
            replace(GOOD, bgp=MetalLBBGP()),
            ["pools[0].bgp: is for bgp, and this pool is announced by layer2; keep one of them"],
        ),
        (
            replace(bgp(), l2=MetalLBLayer2()),
            ["pools[0].l2: is for layer2, and this pool is announced by bgp; keep one of them"],
        ),
        (bgp(peers=("tro",)), ["pools[0].bgp.peers: there is no peer tro; declare it in peers"]),
        (
            bgp(aggregation_length=24),
            [
                "pools[0].bgp.aggregation_length: 24 announces more than 10.1.0.200-10.1.0.219,"
                " whose largest network is a /29; make it 29 or more"
            ],
        ),
        (
            replace(GOOD, namespaces=("web", "api", "web")),
            ["pools[0].namespaces: web is there twice; name it once"],
        ),
        (
            bgp(communities=("1:2", "1:2"), peers=("tor", "tor")),
            [
                "pools[0].bgp.communities: 1:2 is there twice; name it once",
                "pools[0].bgp.peers: tor is there twice; name it once",
            ],
        ),
        (
            replace(GOOD, service_selectors=(SAYS_ALL, FRONT)),
            ["pools[0].service_selectors: a selector that says nothing selects all; leave it out"],
        ),
        (
            replace(
                GOOD,
                l2=MetalLBLayer2(
                    node_selectors=(
                        LabelSelector(
                            match_expressions=(
                                LabelExpression(key="a", operator="In"),
                                LabelExpression(key="b", operator="Exists", values=("1",)),
                            )
                        ),
                    )
                ),
            ),
            [
                "pools[0].l2.node_selectors: a In needs values; give them",
                "pools[0].l2.node_selectors: b Exists takes no values; leave them out",
            ],
        ),
    ],
)
def test_a_pool(pool: MetalLBPool, said: list[str]) -> None:
    assert told(pool) == said


def test_pools_beside_one_another() -> None:
    assert told(GOOD, MetalLBPool(pool="other"), MetalLBPool(name="lb", addresses=("10.1.0.215-10.1.0.230",))) == [
        "pools[2]: lb is the name of another; give each a name of its own",
        "pools[1].pool: 10.1.0.200-10.1.0.207 of other is in lb as well; put each address into one pool",
        "pools[2].addresses: 10.1.0.215-10.1.0.219 of lb is in lb as well; put each address into one pool",
    ]


def test_no_pool_at_all() -> None:
    assert told() == ["pools: is empty; give one at least"]


def test_nobody_to_announce_to() -> None:
    assert told(bgp(), peers=()) == ["pools[0].protocol: there is no peer to announce it to; declare one in peers"]


def test_what_a_configmap_cannot_say() -> None:
    word = "a ConfigMap has no word for it; it came with MetalLB 0.13; leave it out, or write crd"
    pool = replace(
        GOOD,
        namespaces=("web",),
        namespace_selectors=(FRONT,),
        service_selectors=(FRONT,),
        priority=5,
        l2=MetalLBLayer2(interfaces=("eth1",), node_selectors=(FRONT,)),
    )
    fields = [
        "namespaces",
        "namespace_selectors",
        "service_selectors",
        "priority",
        "l2.interfaces",
        "l2.node_selectors",
    ]
    assert told(pool, manifests="configmap") == [f"pools[0].{each}: {word}" for each in fields]
    routed = bgp(peers=("tor",), node_selectors=(FRONT,), communities=("1:2", "large:1:2:3", "70000:1"))
    assert told(routed, manifests="configmap") == [
        "pools[0].bgp.communities: 'large:1:2:3' is none that a ConfigMap takes; write one such as 64512:1234",
        "pools[0].bgp.communities: '70000:1' is none that a ConfigMap takes; write one such as 64512:1234",
        f"pools[0].bgp.peers: {word}",
        f"pools[0].bgp.node_selectors: {word}",
    ]
    assert told(bgp(aggregation_length=29), manifests="configmap") == [
        "pools[0].bgp.aggregation_length: 29 announces more than 10.1.0.200-10.1.0.219,"
        " whose largest network is a /30; make it 30 or more"
    ]


def test_peers() -> None:
    wrong = (
        PEER,
        replace(PEER, name="Tor_2", router_id="2001:db8::1", source_address="2001:db8::2", node_selectors=(SAYS_ALL,)),
        replace(PEER, peer_asn=64512, ebgp_multi_hop=True),
    )
    assert told(GOOD, peers=wrong) == [
        "peers[2]: tor is the name of another; give each a name of its own",
        "peers[1].name: 'Tor_2' is no DNS label; use small letters, digits and hyphens, 63 at most",
        "peers[1].node_selectors: a selector that says nothing selects all; leave it out",
        "peers[1].router_id: 2001:db8::1 is IPv6; write it as an IPv4 address",
        "peers[1].source_address: 2001:db8::2 cannot reach 10.1.0.1: they are of two versions of IP;"
        " give both of one version",
        "peers[2].ebgp_multi_hop: AS 64512 is on both ends; it is for another AS only",
    ]


def test_the_namespace_is_a_label() -> None:
    (found,) = mistakes(MetalLB(pools=(GOOD,), namespace="metallb.system"), ADDRESSES)
    assert str(found) == (
        "namespace: 'metallb.system' is no DNS label; use small letters, digits and hyphens, 63 at most"
    )


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({}, False),
        ({"services": {"kubeproxy": {"extra_args": {"proxy-mode": "ipvs"}}}}, True),
        ({"services": {"kubeproxy": {"extra_args": {"proxy-mode": "ipvs", "ipvs-strict-arp": True}}}}, False),
        ({"kube-proxy-arg": "proxy-mode=ipvs"}, True),
        ({"kube-proxy-arg": ["proxy-mode=ipvs", "ipvs-strict-arp=true"]}, False),
    ],
)
def test_ipvs_answers_for_nobody_else(config: dict[str, object], told: bool) -> None:
    assert len(list(warnings(MetalLB(pools=(GOOD,)), config))) == told
    assert list(warnings(MetalLB(pools=(bgp(),), peers=(PEER,)), config)) == []
