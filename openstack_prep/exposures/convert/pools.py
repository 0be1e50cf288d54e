"""The manifests of the pools and announcements of the new load balancer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.ranges import Range, merged, without
from openstack_prep.exposures.convert.objects import IN_POOL, POOL, Decision, LoadBalancerOptions, Old
from openstack_prep.kubernetes import kube_vip, metallb
from openstack_prep.kubernetes.cilium import Cilium, announcement, rules
from openstack_prep.kubernetes.cilium.settings import (
    CiliumBGP,
    CiliumLayer2,
    CiliumLoadBalancer,
    CiliumPeer,
    CiliumPool,
)
from openstack_prep.kubernetes.service_pools import LabelSelector


def ranges(old: Old, decision: Decision) -> dict[str, list[Range]]:
    """Return the addresses of each pool: of old ones without nodes and what does not carry over, and of all others."""
    out = {*old.nodes, *(address for each in decision.left for address in each.addresses)}
    found = _old_pools(old, out)
    while apart := _apart(found, decision):  # MetalLB takes both addresses of a Service from one pool
        out |= apart
        found = _old_pools(old, out)
    carried = merged(Range.read(address) for each in decision.carriers for address in each.addresses)
    rest = list(without(carried, [each for held in found.values() for each in held]))
    name = POOL if POOL not in found else f"{POOL}-2"
    return {name: held for name, held in ({name: rest} | found).items() if held}


def _old_pools(old: Old, out: Iterable[str]) -> dict[str, list[Range]]:
    gone = [Range.read(each) for each in out]
    return {pool.name: list(without(pool.ranges, gone)) for pool in old.pools}


def _apart(pools: Mapping[str, Sequence[Range]], decision: Decision) -> set[str]:
    """Return addresses of old pools, while another address of the same Service is not in the same pool."""
    found = set()
    for each in decision.carriers:
        homes = {address: _home(address, pools) for address in each.addresses}
        if len(set(homes.values())) > 1:
            found |= {address for address, home in homes.items() if home}
    return found


def _home(address: str, pools: Mapping[str, Sequence[Range]]) -> str:
    one = Range.read(address).first
    return next((name for name, held in pools.items() if any(one in each for each in held)), "")


def manifests(pools: Mapping[str, Sequence[Range]], wanted: LoadBalancerOptions) -> list[dict[str, object]]:
    """Return the manifests; raises SpecError if the load balancer refuses them."""
    texts = {name: tuple(map(str, held)) for name, held in pools.items()}
    if not texts:
        return []
    builders = {"metallb": _metallb, "cilium": _cilium, "kube-vip": _kube_vip}
    found, mistakes = builders[wanted.to](texts, wanted)
    if mistakes:
        raise SpecError([Mistake(f"{wanted.to}: {each.where}", each.what, each.fix) for each in mistakes])
    return found


Texts = Mapping[str, tuple[str, ...]]
Built = tuple[list[dict[str, object]], list[Mistake]]


def _metallb(pools: Texts, wanted: LoadBalancerOptions) -> Built:
    layer2 = wanted.announce == "l2"
    config = metallb.MetalLB(
        version=wanted.release,
        pools=tuple(
            metallb.MetalLBPool(
                name=name,
                addresses=held,
                auto_assign=False,
                protocol="layer2" if layer2 else "bgp",
                l2=metallb.MetalLBLayer2(interfaces=wanted.interfaces) if layer2 else None,
            )
            for name, held in pools.items()
        ),
        peers=tuple(
            metallb.MetalLBPeer(
                name=f"{POOL}-peer-{number}", my_asn=wanted.my_asn or 0, peer_asn=each.asn, peer_address=each.address
            )
            for number, each in enumerate(wanted.peers, 1)
        ),
    )
    return metallb.document(config, {}), list(metallb.mistakes(config, {}, wanted.kubernetes))


def _cilium(pools: Texts, wanted: LoadBalancerOptions) -> Built:
    mine = LabelSelector(match_labels={IN_POOL: POOL})
    routers = tuple(
        CiliumPeer(name=f"{POOL}-peer-{number}", peer_asn=each.asn, peer_address=each.address)
        for number, each in enumerate(wanted.peers, 1)
    )
    interfaces = tuple(f"^{re.escape(each)}$" for each in wanted.interfaces)
    layer2 = CiliumLayer2(interfaces=interfaces, service_selector=mine) if wanted.announce == "l2" else None
    bgp = CiliumBGP(my_asn=wanted.my_asn or 0, peers=routers, service_selector=mine) if layer2 is None else None
    config = Cilium(
        cluster_id=1,
        version=wanted.release,
        mesh="none",
        kube_proxy_replacement=True,
        load_balancer=CiliumLoadBalancer(
            pools=tuple(CiliumPool(name=name, addresses=held, service_selector=mine) for name, held in pools.items()),
            l2=layer2,
            bgp=bgp,
        ),
    )
    found = [_renamed(each) for each in announcement.documents(config, {})]
    return found, list(rules.announcement_mistakes(config, {}))


def _renamed(value: Any) -> Any:
    """Return manifests with a name that no policy of a spec has: a cluster may have one already."""
    if isinstance(value, dict):
        return {key: _renamed(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_renamed(each) for each in value]
    return POOL if value == announcement.NAME else value


def _kube_vip(pools: Texts, wanted: LoadBalancerOptions) -> Built:
    config = kube_vip.KubeVip(
        pools=tuple(kube_vip.KubeVipPool(name=name, addresses=held) for name, held in pools.items())
    )
    return kube_vip.document(config, {}), list(kube_vip.mistakes(config, {}))
