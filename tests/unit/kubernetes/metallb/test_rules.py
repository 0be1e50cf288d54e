"""What MetalLB refuses: one mistake each, all at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from openstack_prep.kubernetes.metallb import (
    MetalLB,
    MetalLBBGP,
    MetalLBLayer2,
    MetalLBPeer,
    MetalLBPool,
    mistakes,
    warnings,
)
from openstack_prep.kubernetes.service_pools import LabelExpression, LabelSelector

ADDRESSES = {"lb": ["10.1.0.200-10.1.0.219"], "other": ["10.1.0.192/28"]}
GOOD = MetalLBPool(pool="lb")
PEER = MetalLBPeer(name="tor", my_asn=64512, peer_asn=64513, peer_address="10.1.0.1")
SAYS_ALL = LabelSelector()
FRONT = LabelSelector(match_labels={"tier": "front"})


def told(*pools: MetalLBPool, peers: tuple[MetalLBPeer, ...] = (PEER,), **more: str) -> list[str]:
    return [str(each) for each in mistakes(MetalLB(pools=pools, peers=peers, **more), ADDRESSES)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pool", "field", "refused", "accepted"),
    [
        (replace(GOOD, avoid_buggy_ips=True), "avoid_buggy_ips", "0.13.3", "0.13.4"),
        (replace(GOOD, l2=MetalLBLayer2(interfaces=("eth0",))), "l2.interfaces", "0.13.5", "0.13.6"),
        (replace(GOOD, namespaces=("shop",)), "namespaces", "0.13.7", "0.13.8"),
        (replace(GOOD, priority=5), "priority", "0.13.7", "0.13"),
        (replace(GOOD, l2=MetalLBLayer2(service_selectors=(FRONT,))), "l2.service_selectors", "0.15.3", "0.16"),
        (
            replace(GOOD, protocol="bgp", bgp=MetalLBBGP(communities=("large:1:2:3",))),
            "bgp.communities",
            "0.13.9",
            "0.13.10",
        ),
    ],
)
def test_each_release_has_its_fields(pool: MetalLBPool, field: str, refused: str, accepted: str) -> None:
    found = [each.where for each in mistakes(MetalLB(pools=(pool,), peers=(PEER,), version=refused), ADDRESSES)]
    assert found == [f"pools[0].{field}"]
    assert list(mistakes(MetalLB(pools=(pool,), peers=(PEER,), version=accepted), ADDRESSES)) == []


@pytest.mark.parametrize(
    ("version", "kubernetes", "peers", "places"),
    [
        ("0.15.3", "v1.36.2+rke2r1", (PEER,), ["version"]),
        ("0.13", "v1.40.0", (PEER,), ["version"]),
        ("0.15.3", "v1.35.7+rke2r1", (PEER,), []),
        ("0.15.3", None, (PEER,), []),
        ("0.15.3", "v1.36.2", (), []),
        ("0.16.0", "v1.36.2", (PEER,), []),
        (None, "v1.36.2", (PEER,), []),
        ("0.12", "v1.20.0", (), ["manifests"]),
    ],
)
def test_kubernetes_1_36_refuses_the_peers_of_earlier_releases(
    version: str | None, kubernetes: str | None, peers: tuple[MetalLBPeer, ...], places: list[str]
) -> None:
    config = MetalLB(pools=(GOOD,), peers=peers, version=version)
    assert [each.where for each in mistakes(config, ADDRESSES, kubernetes)] == places


def bgp(**said: object) -> MetalLBPool:
    return MetalLBPool(pool="lb", protocol="bgp", bgp=MetalLBBGP(**said))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pool", "said"),
    [
        (GOOD, []),
        (bgp(aggregation_length=29, communities=("64512:1", "large:1:2:3", "no-export"), peers=("tor",)), []),
        (MetalLBPool(addresses=("10.9.0.1",)), ["pools[0].name: is missing; set name or pool"]),
        (
            MetalLBPool(name="My Pool", pool="lb"),
            ["pools[0].name: 'My Pool' is not a DNS label; use at most 63 lower-case letters, digits and hyphens"],
        ),
        (MetalLBPool(name="a"), ["pools[0]: has no addresses; set pool or addresses"]),
        (
            replace(GOOD, addresses=("10.9.0.1",)),
            ["pools[0]: sets both pool and addresses; remove one of them"],
        ),
        (
            MetalLBPool(pool="lp"),
            [
                "pools[0].pool: the spec has no address pool lp (it has: lb, other); "
                "correct the name, or declare the pool in address_pools"
            ],
        ),
        (
            MetalLBPool(name="a", addresses=("10.9.0.0/24", "10.9.0.9-10.9.1.9")),
            [
                "pools[0].addresses: 10.9.0.0-10.9.0.255 and 10.9.0.9-10.9.1.9 overlap in 10.9.0.9-10.9.0.255;"
                " list each address once"
            ],
        ),
        (
            replace(GOOD, bgp=MetalLBBGP()),
            [
                "pools[0].bgp: only applies to protocol bgp, and this pool has protocol layer2; "
                "remove it, or write protocol: bgp"
            ],
        ),
        (
            replace(bgp(), l2=MetalLBLayer2()),
            [
                "pools[0].l2: only applies to protocol layer2, and this pool has protocol bgp; "
                "remove it, or write protocol: layer2"
            ],
        ),
        (bgp(peers=("tro",)), ["pools[0].bgp.peers: peer tro does not exist; declare it in peers"]),
        (
            bgp(aggregation_length=24),
            [
                "pools[0].bgp.aggregation_length: 24 announces more addresses than 10.1.0.200-10.1.0.219,"
                " whose largest network is a /29; write 29 or more"
            ],
        ),
        (
            replace(GOOD, namespaces=("web", "api", "web")),
            ["pools[0].namespaces: web is listed twice; list it once"],
        ),
        (
            bgp(communities=("1:2", "1:2"), peers=("tor", "tor")),
            [
                "pools[0].bgp.communities: 1:2 is listed twice; list it once",
                "pools[0].bgp.peers: tor is listed twice; list it once",
            ],
        ),
        (
            replace(GOOD, service_selectors=(SAYS_ALL, FRONT)),
            ["pools[0].service_selectors: an empty selector selects everything; remove it"],
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
                "pools[0].l2.node_selectors: In of label a requires values; add values",
                "pools[0].l2.node_selectors: Exists of label b does not take values; remove values",
            ],
        ),
    ],
)
def test_a_pool(pool: MetalLBPool, said: list[str]) -> None:
    assert told(pool) == said


BACK = LabelSelector(match_labels={"tier": "back"})


@pytest.mark.parametrize(
    ("pool", "fields"),
    [
        (bgp(service_selectors=(FRONT, BACK)), []),
        (bgp(service_selectors=(FRONT,), aggregation_length=32), []),
        (bgp(service_selectors=(FRONT,), aggregation_length=29), ["bgp.aggregation_length"]),
        (bgp(service_selectors=(FRONT,), aggregation_length_v6=127), ["bgp.aggregation_length_v6"]),
        (bgp(service_selectors=(FRONT, FRONT)), ["bgp.service_selectors"]),
        (replace(GOOD, l2=MetalLBLayer2(service_selectors=(FRONT,))), []),
        (replace(GOOD, l2=MetalLBLayer2(service_selectors=(SAYS_ALL,))), ["l2.service_selectors"]),
        (
            replace(GOOD, service_selectors=(LabelSelector(match_labels={"a b": "c", "d": "e f"}),)),
            ["service_selectors", "service_selectors"],
        ),
        *(
            (replace(GOOD, service_selectors=(LabelSelector(match_expressions=expressions),)), ["service_selectors"])
            for expressions in (
                (LabelExpression(key="a", operator="In", values=("x", "x")),),
                (LabelExpression(key="a", operator="Exists"), LabelExpression(key="a", operator="Exists")),
            )
        ),
    ],
)
def test_selectors(pool: MetalLBPool, fields: list[str]) -> None:
    assert [each.split(":")[0] for each in told(pool)] == [f"pools[0].{each}" for each in fields]


def test_pools_beside_one_another() -> None:
    assert told(GOOD, MetalLBPool(pool="other"), MetalLBPool(name="lb", addresses=("10.1.0.215-10.1.0.230",))) == [
        "pools[2]: lb is also the name of pools[0]; give each its own name",
        "pools[1].pool: 10.1.0.200-10.1.0.207 of other is also in lb; put each address into one pool only",
        "pools[2].addresses: 10.1.0.215-10.1.0.219 of lb is also in lb; put each address into one pool only",
    ]


def test_no_pool_at_all() -> None:
    assert told() == ["pools: is empty; declare at least one pool"]


def test_nobody_to_announce_to() -> None:
    assert told(bgp(), peers=()) == ["pools[0].protocol: bgp requires a peer; declare one in peers"]


def test_what_a_configmap_cannot_say() -> None:
    word = "a ConfigMap does not support it; remove it, or set manifests: crd (MetalLB 0.13 and later)"
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
        "pools[0].bgp.communities: a ConfigMap does not support 'large:1:2:3'; "
        "write one such as 64512:1234, or set manifests: crd",
        "pools[0].bgp.communities: a ConfigMap does not support '70000:1'; "
        "write one such as 64512:1234, or set manifests: crd",
        f"pools[0].bgp.peers: {word}",
        f"pools[0].bgp.node_selectors: {word}",
    ]
    assert told(bgp(aggregation_length=29), manifests="configmap") == [
        "pools[0].bgp.aggregation_length: 29 announces more addresses than 10.1.0.200-10.1.0.219,"
        " whose largest network is a /30; write 30 or more"
    ]


def test_peers() -> None:
    wrong = (
        PEER,
        replace(PEER, name="Tor_2", router_id="2001:db8::1", source_address="2001:db8::2", node_selectors=(SAYS_ALL,)),
        replace(PEER, peer_asn=64512, ebgp_multi_hop=True),
    )
    assert told(GOOD, peers=wrong, bgp_mode="native") == [
        "peers[2]: tor is also the name of peers[0]; give each its own name",
        "peers[1].name: 'Tor_2' is not a DNS label; use at most 63 lower-case letters, digits and hyphens",
        "peers[1].node_selectors: an empty selector selects everything; remove it",
        "peers[1].router_id: 2001:db8::1 is an IPv6 address; write it in the form of an IPv4 address",
        "peers[1].source_address: 2001:db8::2 and peer_address 10.1.0.1 have different IP versions;"
        " use one IP version for both",
        "peers[2].ebgp_multi_hop: only applies to eBGP, and my_asn and peer_asn are both 64512; "
        "remove it, or correct the AS numbers",
    ]


def test_the_namespace_is_a_label() -> None:
    (found,) = mistakes(MetalLB(pools=(GOOD,), namespace="metallb.system"), ADDRESSES)
    assert str(found) == (
        "namespace: 'metallb.system' is not a DNS label; use at most 63 lower-case letters, digits and hyphens"
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
    assert len(list(warnings(MetalLB(pools=(GOOD,)), {}, config))) == told
    assert list(warnings(MetalLB(pools=(bgp(),), peers=(PEER,)), {}, config)) == []


@pytest.mark.parametrize(
    ("mode", "community", "said"),
    [
        (None, "65535:65535", []),
        (None, "64512:70000", ["write two numbers up to 65535 (64512:1234), or large:64512:1:2"]),
        (None, "large:4294967295:0:1", []),
        (None, "large:4294967296:0:1", ["write two numbers up to 65535 (64512:1234), or large:64512:1:2"]),
        (None, "wide:1:2:3", ["write two numbers up to 65535 (64512:1234), or large:64512:1:2"]),
        (None, "1:2:3", ["write two numbers up to 65535 (64512:1234), or large:64512:1:2"]),
        ("frr-k8s", "large:1:2:3", []),
        ("native", "large:1:2:3", ["remove it, or set bgp_mode: frr"]),
        ("native", "alias", []),
    ],
)
def test_communities(mode: str | None, community: str, said: list[str]) -> None:
    """As internal/bgp/community and findNonLegacyCommunity of MetalLB 0.16.1."""
    metallb = MetalLB(pools=(bgp(communities=(community,)),), peers=(PEER,), bgp_mode=mode)  # type: ignore[arg-type]
    found = list(mistakes(metallb, ADDRESSES))
    assert [each.where for each in found] == ["pools[0].bgp.communities"] * len(said)
    assert [each.fix for each in found] == said


def test_ipv6_by_bgp_needs_frr() -> None:
    pool = MetalLBPool(name="six", addresses=("fd00::/120",), protocol="bgp")
    modes = {mode: MetalLB(pools=(pool,), peers=(PEER,), bgp_mode=mode) for mode in ("native", "frr", None)}  # type: ignore[arg-type]
    found = {mode: [each.where for each in mistakes(metallb, {})] for mode, metallb in modes.items()}
    assert found == {"native": ["pools[0].addresses"], "frr": [], None: []}


@pytest.mark.parametrize(
    ("second", "fields"),
    [
        ({"peer_address": "10.1.0.2"}, []),
        ({}, ["peer_address"]),
        ({"peer_address": "10.1.0.2", "my_asn": 64999}, ["my_asn"]),
        ({"peer_address": "10.1.0.2", "router_id": "10.1.0.9"}, ["router_id"]),
        ({"my_asn": 64999, "router_id": "10.1.0.9"}, ["peer_address", "my_asn", "router_id"]),
        ({"peer_address": "10.1.0.2", "my_asn": 64999, "node_selectors": (FRONT,)}, ["my_asn"]),
    ],
)
def test_two_peers_of_one_node(second: dict[str, object], fields: list[str]) -> None:
    """As checkFRRPeersCompatible of MetalLB 0.16.1 does; its native mode has a session for each peer."""
    peers = (PEER, replace(PEER, name="second", **second))
    metallb = MetalLB(pools=(GOOD,), peers=peers)
    assert [each.where for each in mistakes(metallb, ADDRESSES)] == [f"peers[1].{each}" for each in fields]
    assert list(mistakes(replace(metallb, bgp_mode="native"), ADDRESSES)) == []
    assert list(warnings(metallb, {}, {})) == []


def test_peers_of_different_nodes() -> None:
    """Only the labels of the nodes decide whether a node has both; MetalLB looks at them since 0.16."""
    back = LabelSelector(match_labels={"tier": "back"})
    peers = (replace(PEER, node_selectors=(FRONT,)), replace(PEER, name="b", my_asn=64999, node_selectors=(back,)))
    metallb = MetalLB(pools=(GOOD,), peers=peers)
    assert list(mistakes(metallb, ADDRESSES)) == []
    assert [each.partition(":")[0] for each in warnings(metallb, {}, {})] == [
        "metallb.peers[1].peer_address",
        "metallb.peers[1].my_asn",
    ]


def test_what_not_every_metallb_accepts_is_a_warning() -> None:
    """MetalLB 0.13.2 to 0.13.12 refuse the IPv6 pool, 0.14.9 to 0.16.1 accept it; all need the Community."""
    six = MetalLBPool(name="six", addresses=("fd00::/120",))
    pools = (six, bgp(communities=("64512:1", "alias")))
    (found,) = warnings(MetalLB(pools=pools, peers=(PEER,)), {}, {})
    assert found.startswith("metallb.pools[1].bgp.communities: ")
    (found,) = warnings(MetalLB(pools=(six, bgp()), peers=(PEER,), bgp_mode="native"), {}, {})
    assert found.startswith("metallb.pools[0]: MetalLB before 0.14.9 refuses the IPv6 addresses fd00::-fd00::ff ")
    assert list(warnings(MetalLB(pools=(six,), bgp_mode="native"), {}, {})) == []


@pytest.mark.parametrize(("version", "places"), [("0.14.8", ["pools[0].addresses"]), ("0.14.9", []), (None, [])])
def test_a_release_decides_on_ipv6_addresses_beside_a_bgp_pool(version: str | None, places: list[str]) -> None:
    """MetalLB 0.14.8 and 0.14.9, internal/config/validation.go: DiscardFRROnly."""
    six = MetalLBPool(name="six", addresses=("fd00::/120",))
    config = MetalLB(pools=(six, bgp()), peers=(PEER,), bgp_mode="native", version=version)
    assert [each.where for each in mistakes(config, ADDRESSES)] == places
    assert len(list(warnings(config, ADDRESSES, {}))) == (version is None)


@pytest.mark.parametrize(("version", "refused"), [("0.15.3", True), ("0.16.0", False), (None, False)])
def test_a_release_decides_on_peers_of_different_nodes(version: str | None, refused: bool) -> None:
    """MetalLB 0.16.0, internal/config/validation.go: peersShareNode; earlier ones compare all peers."""
    front = replace(PEER, node_selectors=(FRONT,))
    back = replace(front, name="b", my_asn=64999, node_selectors=(LabelSelector(match_labels={"tier": "back"}),))
    config = MetalLB(pools=(GOOD,), peers=(front, back), version=version)
    assert bool(list(mistakes(config, ADDRESSES))) == refused
    assert bool(list(warnings(config, ADDRESSES, {}))) != refused


@pytest.mark.parametrize(
    ("pool", "peer", "place"),
    [
        (MetalLBPool(name="a", addresses=("::ffff:10.1.0.5",)), PEER, "pools[0].addresses"),
        (GOOD, replace(PEER, peer_address="fe80::1%eth0"), "peers[0].peer_address"),
        (GOOD, replace(PEER, peer_address="fd00::1", source_address="fe80::2%eth0"), "peers[0].source_address"),
    ],
)
def test_addresses_that_metallb_reads_otherwise(pool: MetalLBPool, peer: MetalLBPeer, place: str) -> None:
    """Go's net.ParseIP takes no zone, and an IPv4 address in the form of IPv6 has 32 bits to it."""
    assert [each.where for each in mistakes(MetalLB(pools=(pool,), peers=(peer,)), ADDRESSES)] == [place]


def test_the_order_of_values_does_not_make_a_selector_another_one() -> None:
    """MetalLB 0.15.2, internal/config/config.go: validateLabelSelectorDuplicate sorts the values."""
    one, other = (
        LabelSelector(match_expressions=(LabelExpression(key="a", operator="In", values=values),))
        for values in (("x", "y"), ("y", "x"))
    )
    pool = replace(GOOD, service_selectors=(one, other))
    assert [each.where for each in mistakes(MetalLB(pools=(pool,)), ADDRESSES)] == ["pools[0].service_selectors"]


@pytest.mark.parametrize(("version", "places"), [("0.13.12", ["bgp_mode"]), ("0.14.0", [])])
def test_frr_k8s_came_with_a_release(version: str, places: list[str]) -> None:
    config = MetalLB(pools=(GOOD,), peers=(PEER,), bgp_mode="frr-k8s", version=version)
    assert [each.where for each in mistakes(config, ADDRESSES)] == places
