"""What MetalLB refuses, or cannot say in the form that its release reads; all of it at once.

Source: MetalLB's internal/config (config.go, validation.go), and the fields of its ConfigMap up to 0.12.
``where`` of a mistake is our name of the field, such as ``pools[0].addresses``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from openstack_prep.base.errors import Mistake
from openstack_prep.base.ranges import Range
from openstack_prep.base.raw import Raw
from openstack_prep.kubernetes.keys.schema import value_at
from openstack_prep.kubernetes.metallb.manifests import Addresses, ranges
from openstack_prep.kubernetes.metallb.model import LabelSelector, MetalLB, MetalLBPool
from openstack_prep.kubernetes.nodes import LABEL

NOT_IN_A_CONFIGMAP = (
    "namespaces",
    "namespace_selectors",
    "service_selectors",
    "priority",
    "l2.interfaces",
    "l2.node_selectors",
    "bgp.peers",
    "bgp.node_selectors",
)


def mistakes(metallb: MetalLB, addresses: Addresses) -> Iterator[Mistake]:
    """Yield everything that is wrong; ``addresses`` are those of the spec's address pools."""
    yield from _label("namespace", metallb.namespace)
    if not metallb.pools:
        yield Mistake("pools", "is empty", "give one at least")
    for name, named in (("pools", [each.called for each in metallb.pools]), ("peers", [e.name for e in metallb.peers])):
        for index, called in enumerate(named):
            if called in named[:index]:
                yield Mistake(f"{name}[{index}]", f"{called} is the name of another", "give each a name of its own")
    for rule in POOL_RULES:
        for index, pool in enumerate(metallb.pools):
            for what, detail, remedy in rule(metallb, pool, addresses):
                yield Mistake(f"pools[{index}]{what and f'.{what}'}", detail, remedy)
    yield from _shared(metallb, addresses)
    yield from _peers(metallb)


def warnings(metallb: MetalLB, config: Raw) -> Iterator[str]:
    """Yield what works, but not as well as it could; ``config`` is RKE's or RKE2's besides our fields."""
    if not any(each.protocol == "layer2" for each in metallb.pools):
        return
    given = value_at(config, "services.kubeproxy.extra_args") or config.get("kube-proxy-arg") or ()
    said = [f"{name}={value}" for name, value in given.items()] if isinstance(given, Mapping) else given
    said = [said] if isinstance(said, str) else [str(each).lower() for each in said]
    if "proxy-mode=ipvs" in said and "ipvs-strict-arp=true" not in said:
        yield "kube-proxy's ipvs has all nodes answer for MetalLB's addresses; give it ipvs-strict-arp: true"


Said = Iterable[tuple[str, str, str]]


def _label(where: str, name: str) -> Iterator[Mistake]:
    if not re.fullmatch(LABEL, name):
        yield Mistake(where, f"{name!r} is no DNS label", "use small letters, digits and hyphens, 63 at most")


# --- pools --------------------------------------------------------------------------------


def _named(metallb: MetalLB, pool: MetalLBPool, addresses: Addresses) -> Said:
    if not pool.called:
        yield "name", "is missing", "give it a name, or name an address pool"
    elif not re.fullmatch(LABEL, pool.called):
        field = "name" if pool.name else "pool"
        remedy = "use small letters, digits and hyphens, 63 at most"
        yield field, f"{pool.called!r} is no DNS label", remedy if pool.name else "give it another name with name"


def _filled(metallb: MetalLB, pool: MetalLBPool, addresses: Addresses) -> Said:
    if pool.pool and pool.addresses:
        yield "", "names an address pool and gives addresses", "keep one of pool and addresses"
    elif not pool.pool and not pool.addresses:
        yield "", "has no addresses", "name an address pool with pool, or give addresses"
    elif pool.pool and pool.pool not in addresses:
        known = ", ".join(addresses) or "none"
        yield "pool", f"the spec has no address pool {pool.pool}", f"known are {known}; declare it in address_pools"
    within = ranges(pool, addresses)
    for one, other in combinations(within, 2):
        if both := one.overlap(other):
            yield "addresses", f"{one} and {other} both have {both}", "give each address once"


def _announced(metallb: MetalLB, pool: MetalLBPool, addresses: Addresses) -> Said:
    for field, protocol in (("l2", "layer2"), ("bgp", "bgp")):
        if getattr(pool, field) and pool.protocol != protocol:
            yield field, f"is for {protocol}, and this pool is announced by {pool.protocol}", "keep one of them"
    if pool.protocol == "bgp" and not metallb.peers:
        yield "protocol", "there is no peer to announce it to", "declare one in peers"
    bgp = pool.bgp
    if bgp is None:
        return
    for name in bgp.peers:
        if name not in [each.name for each in metallb.peers]:
            yield "bgp.peers", f"there is no peer {name}", "declare it in peers"
    for field, version, default in (("aggregation_length", 4, 32), ("aggregation_length_v6", 6, 128)):
        length = getattr(bgp, field) or default
        for each in ranges(pool, addresses):
            prefixes = [network.prefixlen for network in each.networks if network.version == version]
            least = (max if metallb.manifests == "configmap" else min)(prefixes, default=0)
            if length < least:
                what = f"{length} announces more than {each}, whose largest network is a /{least}"
                yield f"bgp.{field}", what, f"make it {least} or more"
    for community in bgp.communities:
        if metallb.manifests == "configmap" and not _is_community(community):
            yield "bgp.communities", f"{community!r} is none that a ConfigMap takes", "write one such as 64512:1234"


def _is_community(text: str) -> bool:
    found = re.fullmatch(r"(\d{1,5}):(\d{1,5})", text)
    return found is not None and all(int(each) < 2**16 for each in found.groups())


def _once(metallb: MetalLB, pool: MetalLBPool, addresses: Addresses) -> Said:
    for field in ("namespaces", "bgp.communities", "bgp.peers"):
        values = _value(pool, field) or ()
        for each in sorted({each for each in values if values.count(each) > 1}):
            yield field, f"{each} is there twice", "name it once"


def _selecting(metallb: MetalLB, pool: MetalLBPool, addresses: Addresses) -> Said:
    for field in ("namespace_selectors", "service_selectors", "l2.node_selectors", "bgp.node_selectors"):
        for what, remedy in _selectors(_value(pool, field) or ()):
            yield field, what, remedy


def _of_the_era(metallb: MetalLB, pool: MetalLBPool, addresses: Addresses) -> Said:
    for field in NOT_IN_A_CONFIGMAP if metallb.manifests == "configmap" else ():
        if _value(pool, field) not in (None, ()):
            yield field, "a ConfigMap has no word for it; it came with MetalLB 0.13", "leave it out, or write crd"


POOL_RULES: tuple[Callable[[MetalLB, MetalLBPool, Addresses], Said], ...] = (
    _named,
    _filled,
    _announced,
    _once,
    _selecting,
    _of_the_era,
)


def _value(pool: MetalLBPool, field: str) -> Any:
    """Return the value of a field by its dotted name."""
    value: object = pool
    for name in field.split("."):
        value = getattr(value, name, None)
    return value


def _selectors(selectors: Sequence[LabelSelector]) -> Iterator[tuple[str, str]]:
    for selector in selectors:
        if not selector.match_labels and not selector.match_expressions:
            yield "a selector that says nothing selects all", "leave it out"
        for each in selector.match_expressions:
            if each.operator in ("In", "NotIn") and not each.values:
                yield f"{each.key} {each.operator} needs values", "give them"
            elif each.operator in ("Exists", "DoesNotExist") and each.values:
                yield f"{each.key} {each.operator} takes no values", "leave them out"


def _shared(metallb: MetalLB, addresses: Addresses) -> Iterator[Mistake]:
    """Yield the ranges that two pools have."""
    held: list[tuple[int, Range]] = [
        (index, each) for index, pool in enumerate(metallb.pools) for each in ranges(pool, addresses)
    ]
    for (first, one), (second, other) in combinations(held, 2):
        if first != second and (both := one.overlap(other)):
            field = "pool" if metallb.pools[second].pool else "addresses"
            what = f"{both} of {metallb.pools[second].called} is in {metallb.pools[first].called} as well"
            yield Mistake(f"pools[{second}].{field}", what, "put each address into one pool")


# --- peers --------------------------------------------------------------------------------


def _peers(metallb: MetalLB) -> Iterator[Mistake]:
    for index, peer in enumerate(metallb.peers):
        where = f"peers[{index}]"
        yield from _label(f"{where}.name", peer.name)
        for what, remedy in _selectors(peer.node_selectors):
            yield Mistake(f"{where}.node_selectors", what, remedy)
        if peer.router_id and ipaddress.ip_address(peer.router_id).version == 6:
            yield Mistake(f"{where}.router_id", f"{peer.router_id} is IPv6", "write it as an IPv4 address")
        ends = [ipaddress.ip_address(each).version for each in (peer.peer_address, peer.source_address) if each]
        if len(set(ends)) > 1:
            what = f"{peer.source_address} cannot reach {peer.peer_address}: they are of two versions of IP"
            yield Mistake(f"{where}.source_address", what, "give both of one version")
        if peer.ebgp_multi_hop and peer.my_asn == peer.peer_asn:
            yield Mistake(f"{where}.ebgp_multi_hop", f"AS {peer.my_asn} is on both ends", "it is for another AS only")
