"""Checks of MetalLB's configuration: what MetalLB refuses, or the chosen format of manifests does not support.

Sources: MetalLB 0.13.2 to 0.16.1 (internal/config/config.go and validation.go, internal/bgp/community/community.go),
and the fields of its ConfigMap up to 0.12.
``where`` of a mistake is the name of the field, such as ``pools[0].addresses``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from openstack_prep.base.errors import Mistake
from openstack_prep.base.raw import Raw
from openstack_prep.kubernetes.balancing.pools import (
    Addresses,
    Findings,
    address_findings,
    label_findings,
    list_mistakes,
    name_findings,
    ranges,
    repeated,
    selector_findings,
)
from openstack_prep.kubernetes.keys.schema import value_at
from openstack_prep.kubernetes.metallb.model import MetalLB, MetalLBPeer, MetalLBPool

FRR = "remove it, or set bgp_mode: frr"
NOT_IN_A_CONFIGMAP = (
    "namespaces",
    "namespace_selectors",
    "service_selectors",
    "priority",
    "l2.interfaces",
    "l2.node_selectors",
    "l2.service_selectors",
    "bgp.peers",
    "bgp.node_selectors",
    "bgp.service_selectors",
)


def mistakes(metallb: MetalLB, addresses: Addresses) -> Iterator[Mistake]:
    """Yield all mistakes; ``addresses`` are those of the spec's address pools."""
    for what, fix in label_findings(metallb.namespace):
        yield Mistake("namespace", what, fix)
    yield from list_mistakes(metallb.pools, addresses)
    yield from repeated("peers", [each.name for each in metallb.peers])
    for rule in POOL_RULES:
        for index, pool in enumerate(metallb.pools):
            for what, detail, fix in rule(metallb, pool, addresses):
                yield Mistake(f"pools[{index}]{what and f'.{what}'}", detail, fix)
    yield from _peers(metallb)


def warnings(metallb: MetalLB, addresses: Addresses, config: Raw) -> Iterator[str]:
    """Yield warnings about valid settings; ``config`` holds further keys of RKE2 or RKE."""
    for one, other in _pairs_of_peers(metallb):
        first, second = metallb.peers[one], metallb.peers[other]
        if _may_be_apart(first, second):
            for field, what, _ in _conflicts(first, second):
                where = f"metallb.peers[{other}].{field}"
                yield f"{where}: {what}; MetalLB before 0.16 refuses that also on different nodes"
    yield from _pool_warnings(metallb, addresses)
    if not any(each.protocol == "layer2" for each in metallb.pools):
        return
    given = value_at(config, "services.kubeproxy.extra_args") or config.get("kube-proxy-arg") or ()
    arguments = [f"{name}={value}" for name, value in given.items()] if isinstance(given, Mapping) else given
    arguments = [arguments] if isinstance(arguments, str) else [str(each).lower() for each in arguments]
    if "proxy-mode=ipvs" in arguments and "ipvs-strict-arp=true" not in arguments:
        yield "kube-proxy in mode ipvs answers ARP for MetalLB's addresses on all nodes; set ipvs-strict-arp: true"


def _pool_warnings(metallb: MetalLB, addresses: Addresses) -> Iterator[str]:
    """Yield what only works in some releases (findIPv6BGPAdvertisement of 0.13), or with a resource of the user."""
    by_bgp = any(each.protocol == "bgp" for each in metallb.pools)
    for index, pool in enumerate(metallb.pools):
        where = f"metallb.pools[{index}]"
        if by_bgp and metallb.is_native and pool.protocol == "layer2":
            for each in (each for each in ranges(pool, addresses) if each.first.version == 6):
                yield f"{where}: MetalLB 0.13 refuses the IPv6 addresses {each} beside a BGP pool in bgp_mode native"
        for community in pool.bgp.communities if pool.bgp else ():
            if ":" not in community:
                yield f"{where}.bgp.communities: MetalLB needs a Community with the alias {community!r}"


# --- pools --------------------------------------------------------------------------------


def _named(metallb: MetalLB, pool: MetalLBPool, addresses: Addresses) -> Findings:
    return name_findings(pool)


def _filled(metallb: MetalLB, pool: MetalLBPool, addresses: Addresses) -> Findings:
    return address_findings(pool, addresses)


def _announced(metallb: MetalLB, pool: MetalLBPool, addresses: Addresses) -> Findings:
    for field, protocol in (("l2", "layer2"), ("bgp", "bgp")):
        if getattr(pool, field) and pool.protocol != protocol:
            what = f"only applies to protocol {protocol}, and this pool has protocol {pool.protocol}"
            yield field, what, f"remove it, or write protocol: {protocol}"
    if pool.protocol == "bgp" and not metallb.peers:
        yield "protocol", "bgp requires a peer", "declare one in peers"
    bgp = pool.bgp
    if bgp is None:
        return
    for name in bgp.peers:
        if name not in [each.name for each in metallb.peers]:
            yield "bgp.peers", f"peer {name} does not exist", "declare it in peers"
    for field, version, default in (("aggregation_length", 4, 32), ("aggregation_length_v6", 6, 128)):
        length = getattr(bgp, field) or default
        if length != default and bgp.service_selectors:
            yield f"bgp.{field}", "it cannot be combined with bgp.service_selectors", "remove one of them"
        for each in ranges(pool, addresses):
            prefixes = [network.prefixlen for network in each.networks if network.version == version]
            least = (max if metallb.manifests == "configmap" else min)(prefixes, default=0)
            if length < least:
                what = f"{length} announces more addresses than {each}, whose largest network is a /{least}"
                yield f"bgp.{field}", what, f"write {least} or more"


def _communities(metallb: MetalLB, pool: MetalLBPool, addresses: Addresses) -> Findings:
    for community in pool.bgp.communities if pool.bgp else ():
        if metallb.manifests == "configmap" and not _is_community(community):
            what = f"a ConfigMap does not support {community!r}"
            yield "bgp.communities", what, "write one such as 64512:1234, or set manifests: crd"
        elif ":" in community and not (_is_community(community) or _is_large(community)):  # else it may be an alias
            what = f"{community!r} is not a community"
            yield "bgp.communities", what, "write two numbers up to 65535 (64512:1234), or large:64512:1:2"
        elif metallb.is_native and _is_large(community):
            yield "bgp.communities", f"the bgp_mode native does not support {community!r}", FRR


def _is_community(text: str) -> bool:
    return _are_numbers(text.split(":"), 2, 2**16)


def _is_large(text: str) -> bool:
    marker, *numbers = text.split(":")
    return marker == "large" and _are_numbers(numbers, 3, 2**32)


def _are_numbers(texts: Sequence[str], count: int, end: int) -> bool:
    return len(texts) == count and all(re.fullmatch(r"[0-9]{1,10}", each) and int(each) < end for each in texts)


def _by_bgp(metallb: MetalLB, pool: MetalLBPool, addresses: Addresses) -> Findings:
    """Yield addresses that the native mode does not announce."""
    if pool.protocol == "bgp" and metallb.is_native:
        for each in ranges(pool, addresses):
            if each.first.version == 6:
                field = "pool" if pool.pool else "addresses"
                yield field, f"the bgp_mode native does not announce the IPv6 addresses {each}", FRR


def _once(metallb: MetalLB, pool: MetalLBPool, addresses: Addresses) -> Findings:
    for field in ("namespaces", "bgp.communities", "bgp.peers"):
        values = _value(pool, field) or ()
        for each in sorted({each for each in values if values.count(each) > 1}):
            yield field, f"{each} is listed twice", "list it once"


def _selecting(metallb: MetalLB, pool: MetalLBPool, addresses: Addresses) -> Findings:
    for field in (each for each in NOT_IN_A_CONFIGMAP if each.endswith("_selectors")):
        for what, fix in selector_findings(_value(pool, field) or ()):
            yield field, what, fix


def _in_a_configmap(metallb: MetalLB, pool: MetalLBPool, addresses: Addresses) -> Findings:
    for field in NOT_IN_A_CONFIGMAP if metallb.manifests == "configmap" else ():
        if _value(pool, field) not in (None, ()):
            yield field, "a ConfigMap does not support it", "remove it, or set manifests: crd (MetalLB 0.13 and later)"


POOL_RULES: tuple[Callable[[MetalLB, MetalLBPool, Addresses], Findings], ...] = (
    _named,
    _filled,
    _announced,
    _communities,
    _by_bgp,
    _once,
    _selecting,
    _in_a_configmap,
)


def _value(pool: MetalLBPool, field: str) -> Any:
    """Return the value of a field by its dotted name."""
    value: object = pool
    for name in field.split("."):
        value = getattr(value, name, None)
    return value


# --- peers --------------------------------------------------------------------------------


def _peers(metallb: MetalLB) -> Iterator[Mistake]:
    for index, peer in enumerate(metallb.peers):
        where = f"peers[{index}]"
        for what, fix in label_findings(peer.name):
            yield Mistake(f"{where}.name", what, fix)
        for what, fix in selector_findings(peer.node_selectors):
            yield Mistake(f"{where}.node_selectors", what, fix)
        if peer.router_id and ipaddress.ip_address(peer.router_id).version == 6:
            yield Mistake(
                f"{where}.router_id", f"{peer.router_id} is an IPv6 address", "write it in the form of an IPv4 address"
            )
        ends = [ipaddress.ip_address(each).version for each in (peer.peer_address, peer.source_address) if each]
        if len(set(ends)) > 1:
            what = f"{peer.source_address} and peer_address {peer.peer_address} have different IP versions"
            yield Mistake(f"{where}.source_address", what, "use one IP version for both")
        if peer.ebgp_multi_hop and peer.my_asn == peer.peer_asn:
            what = f"only applies to eBGP, and my_asn and peer_asn are both {peer.my_asn}"
            yield Mistake(f"{where}.ebgp_multi_hop", what, "remove it, or correct the AS numbers")
    for one, other in _pairs_of_peers(metallb):
        if not _may_be_apart(metallb.peers[one], metallb.peers[other]):
            for field, what, fix in _conflicts(metallb.peers[one], metallb.peers[other]):
                yield Mistake(f"peers[{other}].{field}", what, fix)


def _pairs_of_peers(metallb: MetalLB) -> Iterator[tuple[int, int]]:
    """Yield the indexes of peers that share an instance of FRR; the native mode has a session for each."""
    return iter(()) if metallb.is_native else combinations(range(len(metallb.peers)), 2)


def _may_be_apart(one: MetalLBPeer, other: MetalLBPeer) -> bool:
    """Whether no node may have both peers, which only the labels of the nodes decide."""
    return bool(one.node_selectors and other.node_selectors and one.node_selectors != other.node_selectors)


def _conflicts(one: MetalLBPeer, other: MetalLBPeer) -> Iterator[tuple[str, str, str]]:
    """Yield the fields of the second peer with which FRR refuses both on one node."""
    native = "or set bgp_mode: native if MetalLB runs without FRR"
    if one.peer_address == other.peer_address:
        what = f"{other.peer_address} is also the address of peer {one.name}"
        yield "peer_address", what, f"declare each router once, {native}"
    if one.my_asn != other.my_asn:
        what = f"{other.my_asn} differs from {one.my_asn} of peer {one.name}"
        yield "my_asn", what, f"use one AS number for the cluster, {native}"
    if one.router_id != other.router_id:
        what = f"{other.router_id or 'no router_id'} differs from {one.router_id or 'none'} of peer {one.name}"
        yield "router_id", what, f"use one for all peers, {native}"
