"""MetalLB's configuration, as custom resources or as a ConfigMap: pure functions.

The fields are those of MetalLB's custom resources (config/crd/bases); a pool includes its advertisement.

Sources: MetalLB's CRDs (config/crd/bases: IPAddressPool, L2Advertisement, BGPAdvertisement of metallb.io/v1beta1,
BGPPeer of v1beta2) and its parser of the ConfigMap up to 0.12 (internal/config).

Sources: MetalLB 0.13.2 to 0.16.1 (internal/config/config.go and validation.go, internal/bgp/community/community.go),
and the fields of its ConfigMap up to 0.12.
``where`` of a mistake is the name of the field, such as ``pools[0].addresses``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from itertools import combinations
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le

from openstack_prep.base.errors import Mistake
from openstack_prep.base.fields import Address, Name, Reads, Strict
from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.ranges import Range
from openstack_prep.base.raw import Raw
from openstack_prep.base.secret import Secret
from openstack_prep.kubernetes.model import Namespace
from openstack_prep.kubernetes.rke2_rules import answers_all_arp
from openstack_prep.kubernetes.service_pools import (
    Addresses,
    Asn,
    Findings,
    LabelSelector,
    ServicePool,
    address_findings,
    drop_empty,
    label_findings,
    list_mistakes,
    name_findings,
    ranges,
    repeated,
    selector_findings,
    selector_values,
)

# The releases of MetalLB: from which one on it has a field or reads an annotation, and which Kubernetes takes it.
#
# Sources: metallb/metallb, config/crd/bases of v0.13.0 to v0.16.1 (each field by the first tag that has it);
# controller/service.go of v0.14.8 and v0.14.9 (the prefix of annotations); internal/bgp/community/community.go of
# v0.13.10 (large communities); commit 2dc2b1da3 of v0.16.0 (AS numbers of BGPPeer are of the format int32 before, with
# a maximum that Kubernetes 1.36 refuses).

NEWEST = "0.16.1"
OLDEST = (0, 3)
CRD_SINCE = (0, 13, 0)
"""The first release with custom resources, and without the ConfigMap."""
SINCE: Mapping[str, tuple[int, int, int]] = {
    "avoid_buggy_ips": (0, 13, 4),
    "l2.interfaces": (0, 13, 6),
    "namespaces": (0, 13, 8),
    "namespace_selectors": (0, 13, 8),
    "service_selectors": (0, 13, 8),
    "priority": (0, 13, 8),
    "l2.service_selectors": (0, 16, 0),
    "bgp.service_selectors": (0, 16, 0),
}
"""The first release with custom resources that have each field of a pool."""
LARGE_COMMUNITIES_SINCE = (0, 13, 10)
METALLB_IO_SINCE = (0, 14, 9)
"""The first release that reads annotations with the prefix metallb.io; earlier ones only read metallb.universe.tf."""
NATIVE_IPV6_SINCE = (0, 14, 9)
"""The first release whose native mode refuses IPv6 addresses only in pools that it announces by BGP (validation.go)."""
PEERS_APART_SINCE = (0, 16, 0)
"""The first release with FRR whose peers on different nodes may differ (peersShareNode of validation.go)."""
FRR_K8S_SINCE = (0, 14, 0)
PEERS_SINCE = (0, 16, 0)
"""The first release whose BGPPeer Kubernetes accepts from this minor version on."""
PEERS_REFUSED_BY = 36
_FORM = r"v?(\d{1,4})\.(\d{1,4})(\.\d{1,6})?"


def release(value: object) -> object:
    """Validate a release of MetalLB, 0.16 or 0.16.1, with or without a v."""
    if isinstance(value, int | float) and not isinstance(value, bool):  # 0.10 without quotes is 0.1
        raise InvalidValue("is a number in YAML", 'write the release in quotes, such as "0.16"')
    if isinstance(value, str):
        found = re.fullmatch(_FORM, value)
        if not found or (int(found[1]), int(found[2])) < OLDEST:
            raise InvalidValue("is not a release of MetalLB", f"write one such as 0.16 or {NEWEST}")
        value = value.removeprefix("v")
    return value


MetalLBRelease = Annotated[Name, Reads(release, {"type": "string", "pattern": rf"^{_FORM}$"})]


def parts(version: str) -> tuple[int, ...]:
    """Return a release for comparisons; without a patch level, the newest one."""
    found = tuple(int(each) for each in version.split("."))
    return found if len(found) > 2 else (*found, 999)


def shown(since: tuple[int, ...]) -> str:
    """Return a release as text."""
    return ".".join(map(str, since))


def refused_peers(version: str, kubernetes: str | None) -> str:
    """Return why a version of Kubernetes refuses each BGPPeer of a release; empty if it does not, or is not known."""
    found = re.match(r"v?1\.(\d{1,4})", kubernetes or "")
    if found is None or int(found[1]) < PEERS_REFUSED_BY or parts(version) >= PEERS_SINCE:
        return ""
    return f"Kubernetes {kubernetes} refuses each BGPPeer of MetalLB {version}: its CRD has AS numbers of format int32"


# --- settings ---------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class MetalLBLayer2(Strict):
    """Announcement of a pool by ARP and NDP (MetalLB 0.13 and later)."""

    interfaces: tuple[Name, ...] = ()
    """Interfaces of the nodes to announce on (0.13.6 and later); default: all."""
    node_selectors: tuple[LabelSelector, ...] = ()
    """Nodes that announce; default: all."""
    service_selectors: tuple[LabelSelector, ...] = ()
    """Services that are announced (0.16 and later); default: all."""


@dataclass(frozen=True, kw_only=True)
class MetalLBBGP(Strict):
    """Announcement of a pool by BGP."""

    aggregation_length: Annotated[int, Ge(1), Le(32)] | None = None
    """Prefix length of announced IPv4 networks; default: 32."""
    aggregation_length_v6: Annotated[int, Ge(1), Le(128)] | None = None
    """Prefix length of announced IPv6 networks; default: 128."""
    local_pref: Annotated[int, Ge(0), Le(2**31 - 1)] | None = None
    """LOCAL_PREF, for peers within the same AS."""
    communities: tuple[Name, ...] = ()
    """BGP communities, such as 64512:1234, or large:64512:1:2 (0.13.10 and later)."""
    peers: tuple[Name, ...] = ()
    """Peers to announce to (0.13 and later); default: all."""
    node_selectors: tuple[LabelSelector, ...] = ()
    """Nodes that announce (0.13 and later); default: all."""
    service_selectors: tuple[LabelSelector, ...] = ()
    """Services that are announced (0.16 and later); default: all."""


@dataclass(frozen=True, kw_only=True)
class MetalLBPool(ServicePool):
    """Addresses for Services of type LoadBalancer, from an address pool of the spec or listed here."""

    protocol: Literal["layer2", "bgp"] = "layer2"
    """Protocol of the announcement."""
    auto_assign: bool = True
    """Whether Services that request no pool may get addresses of this pool."""
    avoid_buggy_ips: bool = False
    """Whether to skip IPv4 addresses that end in .0 or .255."""
    namespaces: tuple[Name, ...] = ()
    """Namespaces whose Services may use the pool (0.13.8 and later); default: all."""
    namespace_selectors: tuple[LabelSelector, ...] = ()
    """Namespaces by label (0.13.8 and later)."""
    service_selectors: tuple[LabelSelector, ...] = ()
    """Services by label (0.13.8 and later)."""
    priority: Annotated[int, Ge(1), Le(2**31 - 1)] | None = None
    """Order in which matching pools are tried, lowest first (0.13.8 and later; 0.15 for pools without selectors)."""
    l2: MetalLBLayer2 | None = None
    """Options of the protocol layer2."""
    bgp: MetalLBBGP | None = None
    """Options of the protocol bgp."""


@dataclass(frozen=True, kw_only=True)
class MetalLBPeer(Strict):
    """A BGP router."""

    name: Name
    """Name in Kubernetes, a DNS label."""
    my_asn: Asn
    """AS number of the cluster."""
    peer_asn: Asn
    """AS number of the router."""
    peer_address: Address
    """Address of the router."""
    peer_port: Annotated[int, Ge(1), Le(16384)] | None = None
    """Port of the router; default: 179."""
    source_address: Address | None = None
    """Source address of the nodes."""
    router_id: Address | None = None
    """BGP router ID, in the form of an IPv4 address."""
    hold_time: Annotated[int, Ge(3), Le(65535)] | None = None
    """Hold time in seconds."""
    ebgp_multi_hop: bool | None = None
    """Whether the router is more than one hop away."""
    password: Secret | None = dataclass_field(default=None, repr=False)
    """Password of the session (TCP MD5); the file of the manifests contains it and has mode 0600."""
    node_selectors: tuple[LabelSelector, ...] = ()
    """Nodes that connect to the router; default: all."""


@dataclass(frozen=True, kw_only=True)
class MetalLB(Strict):
    """MetalLB's configuration; install MetalLB itself by its own manifests or chart."""

    pools: tuple[MetalLBPool, ...]
    """Addresses for Services."""
    version: MetalLBRelease | None = None
    """Release of MetalLB, in quotes; which fields it has depends on it. Default: the newest one."""
    peers: tuple[MetalLBPeer, ...] = dataclass_field(default=(), repr=False)
    """BGP routers."""
    manifests: Literal["crd", "configmap"] = "crd"
    """crd for MetalLB 0.13 and later, configmap for earlier ones."""
    namespace: Namespace = "metallb-system"
    """Namespace of MetalLB."""
    bgp_mode: Literal["native", "frr", "frr-k8s"] | None = None
    """How MetalLB speaks BGP; default: frr (or frr-k8s, which has the same rules), and native with a ConfigMap."""

    @property
    def is_native(self) -> bool:
        """Whether MetalLB speaks BGP itself, without FRR."""
        return (self.bgp_mode or ("native" if self.manifests == "configmap" else "frr")) == "native"

    @property
    def contains_secrets(self) -> bool:
        """Whether the manifests contain passwords, so that their file must have mode 0600."""
        return any(peer.password for peer in self.peers)


# --- manifest ---------------------------------------------------------------------------------


def document(metallb: MetalLB, addresses: Addresses) -> list[dict[str, object]]:
    """Return the manifests, with passwords as ``Secret``, which ``yaml_text.dump`` reveals."""
    if metallb.manifests == "configmap":
        return [_configmap(metallb, addresses)]
    found = []
    for pool in metallb.pools:
        found += [_pool(metallb, pool, addresses), _advertisement(metallb, pool)]
    for peer in metallb.peers:
        found += _peer(metallb, peer)
    return found


# --- custom resources ---------------------------------------------------------------------


def _resource(metallb: MetalLB, kind: str, version: str, name: str, spec: Mapping[str, object]) -> dict[str, object]:
    metadata = {"name": name, "namespace": metallb.namespace}
    return {"apiVersion": f"metallb.io/{version}", "kind": kind, "metadata": metadata, "spec": drop_empty(spec)}


def _pool(metallb: MetalLB, pool: MetalLBPool, addresses: Addresses) -> dict[str, object]:
    allocation = {
        "priority": pool.priority,
        "namespaces": list(pool.namespaces),
        "namespaceSelectors": _selectors(pool.namespace_selectors),
        "serviceSelectors": _selectors(pool.service_selectors),
    }
    spec = {
        "addresses": _forms(ranges(pool, addresses)),
        "autoAssign": pool.auto_assign,
        "avoidBuggyIPs": pool.avoid_buggy_ips or None,
        "serviceAllocation": drop_empty(allocation),
    }
    return _resource(metallb, "IPAddressPool", "v1beta1", pool.kubernetes_name, spec)


def _forms(found: Sequence[Range]) -> list[str]:
    """Return ranges in MetalLB's notation: a network, or first-last; a single address is a network."""
    return [str(each.networks[0]) if len(each.networks) == 1 else str(each) for each in found]


def _advertisement(metallb: MetalLB, pool: MetalLBPool) -> dict[str, object]:
    own = {"ipAddressPools": [pool.kubernetes_name]}
    if pool.protocol == "layer2":
        l2 = pool.l2 or MetalLBLayer2()
        spec = own | {
            "interfaces": list(l2.interfaces),
            "nodeSelectors": _selectors(l2.node_selectors),
            "serviceSelectors": _selectors(l2.service_selectors),
        }
        return _resource(metallb, "L2Advertisement", "v1beta1", pool.kubernetes_name, spec)
    bgp = pool.bgp or MetalLBBGP()
    spec = own | {
        "aggregationLength": bgp.aggregation_length,
        "aggregationLengthV6": bgp.aggregation_length_v6,
        "localPref": bgp.local_pref,
        "communities": list(bgp.communities),
        "peers": list(bgp.peers),
        "nodeSelectors": _selectors(bgp.node_selectors),
        "serviceSelectors": _selectors(bgp.service_selectors),
    }
    return _resource(metallb, "BGPAdvertisement", "v1beta1", pool.kubernetes_name, spec)


def _peer(metallb: MetalLB, peer: MetalLBPeer) -> list[dict[str, object]]:
    """Return the peer, preceded by the Kubernetes Secret of its password, if any."""
    name = f"{peer.name}-password"
    spec = {
        "myASN": peer.my_asn,
        "peerASN": peer.peer_asn,
        "peerAddress": peer.peer_address,
        "peerPort": peer.peer_port,
        "sourceAddress": peer.source_address,
        "routerID": peer.router_id,
        "holdTime": f"{peer.hold_time}s" if peer.hold_time else None,
        "ebgpMultiHop": peer.ebgp_multi_hop,
        "passwordSecret": {"name": name} if peer.password else None,
        "nodeSelectors": _selectors(peer.node_selectors),
    }
    resource = _resource(metallb, "BGPPeer", "v1beta2", peer.name, spec)
    if peer.password is None:
        return [resource]
    metadata = {"name": name, "namespace": metallb.namespace}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/basic-auth"}
    return [{**secret, "stringData": {"password": peer.password}}, resource]


def _selectors(selectors: Sequence[LabelSelector]) -> list[dict[str, object]]:
    return [selector_values(selector) for selector in selectors]


# --- the ConfigMap ------------------------------------------------------------------------


def _configmap(metallb: MetalLB, addresses: Addresses) -> dict[str, object]:
    """Return the ConfigMap; its only entry is YAML text, all of which is a ``Secret`` if it contains a password."""
    config = drop_empty(
        {
            "peers": [_old_peer(peer) for peer in metallb.peers],
            "address-pools": [_old_pool(pool, addresses) for pool in metallb.pools],
        }
    )
    entry = dump(config)
    data = {"config": Secret(entry) if metallb.contains_secrets else entry}
    metadata = {"name": "config", "namespace": metallb.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _old_pool(pool: MetalLBPool, addresses: Addresses) -> dict[str, object]:
    bgp = pool.bgp or MetalLBBGP()
    advertisement = drop_empty(
        {
            "aggregation-length": bgp.aggregation_length,
            "aggregation-length-v6": bgp.aggregation_length_v6,
            "localpref": bgp.local_pref,
            "communities": list(bgp.communities),
        }
    )
    found = {
        "name": pool.kubernetes_name,
        "protocol": pool.protocol,
        "addresses": _forms(ranges(pool, addresses)),
        "auto-assign": None if pool.auto_assign else False,
        "avoid-buggy-ips": pool.avoid_buggy_ips or None,
        "bgp-advertisements": [advertisement] if advertisement and pool.protocol == "bgp" else None,
    }
    return drop_empty(found)


def _old_peer(peer: MetalLBPeer) -> dict[str, object]:
    found = {
        "my-asn": peer.my_asn,
        "peer-asn": peer.peer_asn,
        "peer-address": peer.peer_address,
        "peer-port": peer.peer_port,
        "source-address": peer.source_address,
        "router-id": peer.router_id,
        "hold-time": f"{peer.hold_time}s" if peer.hold_time else None,
        "ebgp-multihop": peer.ebgp_multi_hop,
        "password": peer.password,
        "node-selectors": [_old_selector(node_selector) for node_selector in peer.node_selectors],
    }
    return drop_empty(found)


def _old_selector(selector: LabelSelector) -> dict[str, object]:
    spellings = {"matchLabels": "match-labels", "matchExpressions": "match-expressions"}
    return {spellings[name]: value for name, value in selector_values(selector).items()}


# --- rule -------------------------------------------------------------------------------------


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


def mistakes(metallb: MetalLB, addresses: Addresses, kubernetes: str | None = None) -> Iterator[Mistake]:
    """Yield all mistakes; ``addresses`` are those of the spec's address pools, ``kubernetes`` is its version."""
    yield from _of_release(metallb, kubernetes)
    for what, fix in label_findings(metallb.namespace):
        yield Mistake("namespace", what, fix)
    yield from list_mistakes(metallb.pools, addresses)
    yield from repeated("peers", [peer.name for peer in metallb.peers])
    for rule in POOL_RULES:
        for index, pool in enumerate(metallb.pools):
            for what, detail, fix in rule(metallb, pool, addresses):
                yield Mistake(f"pools[{index}]{what and f'.{what}'}", detail, fix)
    yield from _peers(metallb)


def warnings(metallb: MetalLB, addresses: Addresses, config: Raw) -> Iterator[str]:
    """Yield warnings about valid settings; ``config`` holds further keys of RKE2 or RKE."""
    for one, other in _pairs_of_peers(metallb):
        first, second = metallb.peers[one], metallb.peers[other]
        if _may_be_apart(metallb, first, second):
            for field, what, _ in _conflicts(first, second):
                where = f"metallb.peers[{other}].{field}"
                yield f"{where}: {what}; MetalLB before {shown(PEERS_APART_SINCE)} refuses that also on different nodes"
    yield from _pool_warnings(metallb, addresses)
    if not any(pool.protocol == "layer2" for pool in metallb.pools):
        return
    if answers_all_arp(config):
        yield "kube-proxy in mode ipvs answers ARP for MetalLB's addresses on all nodes; set ipvs-strict-arp: true"


def _pool_warnings(metallb: MetalLB, addresses: Addresses) -> Iterator[str]:
    """Yield what only works in some releases, or with a resource of the user."""
    for index, pool in enumerate(metallb.pools):
        where = f"metallb.pools[{index}]"
        for _, what, _ in _beside_bgp(metallb, pool, addresses) if metallb.version is None else ():
            yield f"{where}: {what}"
        for community in pool.bgp.communities if pool.bgp else ():
            if ":" not in community:
                yield f"{where}.bgp.communities: MetalLB needs a Community with the alias {community!r}"


# --- release ------------------------------------------------------------------------------


def _of_release(metallb: MetalLB, kubernetes: str | None) -> Iterator[Mistake]:
    version, by_crd = metallb.version, metallb.manifests == "crd"
    if version and by_crd != (parts(version) >= CRD_SINCE):
        what = f"MetalLB {version} {'has no custom resources' if by_crd else 'reads no ConfigMap'}"
        yield Mistake("manifests", what, f"write {'configmap' if by_crd else 'crd'}, or correct version")
    if version and metallb.bgp_mode == "frr-k8s" and parts(version) < FRR_K8S_SINCE:
        what, fix = f"MetalLB {version} has no frr-k8s", f"write frr, or use {shown(FRR_K8S_SINCE)} or later"
        yield Mistake("bgp_mode", what, fix)
    why = refused_peers(version or NEWEST, kubernetes) if metallb.peers and by_crd else ""
    if why:
        fix = f"install MetalLB {shown(PEERS_SINCE)} or later and write its version, or use layer2"
        yield Mistake("version", why, fix)


# --- pools --------------------------------------------------------------------------------


def _released(metallb: MetalLB, pool: MetalLBPool, addresses: Addresses) -> Findings:
    if metallb.version is None or metallb.manifests == "configmap":
        return
    for field, since in SINCE.items():
        if _value(pool, field) not in (None, (), False) and parts(metallb.version) < since:
            yield (
                field,
                f"MetalLB {metallb.version} does not have it",
                f"remove it, or use {shown(since)} or later",
            )
    for community in pool.bgp.communities if pool.bgp else ():
        since = LARGE_COMMUNITIES_SINCE
        if _is_large(community) and parts(metallb.version) < since:
            what = f"MetalLB {metallb.version} does not support {community!r}"
            yield "bgp.communities", what, f"remove it, or use {shown(since)} or later"


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
        if name not in [peer.name for peer in metallb.peers]:
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
    return len(texts) == count and all(re.fullmatch(r"[0-9]{1,10}", text) and int(text) < end for text in texts)


def _by_bgp(metallb: MetalLB, pool: MetalLBPool, addresses: Addresses) -> Findings:
    """Yield addresses that the native mode does not announce."""
    if pool.protocol == "bgp" and metallb.is_native:
        for each in ranges(pool, addresses):
            if each.first.version == 6:
                field = "pool" if pool.pool else "addresses"
                yield field, f"the bgp_mode native does not announce the IPv6 addresses {each}", FRR
    if metallb.version and parts(metallb.version) < NATIVE_IPV6_SINCE:
        yield from _beside_bgp(metallb, pool, addresses)


def _beside_bgp(metallb: MetalLB, pool: MetalLBPool, addresses: Addresses) -> Findings:
    """Yield IPv6 addresses that the native mode refuses once there is any BGP pool."""
    by_bgp = any(each.protocol == "bgp" for each in metallb.pools)
    if metallb.manifests == "crd" and metallb.is_native and by_bgp and pool.protocol == "layer2":
        for each in (each for each in ranges(pool, addresses) if each.first.version == 6):
            release = f"MetalLB before {shown(NATIVE_IPV6_SINCE)}"
            what = f"{release} refuses the IPv6 addresses {each} beside a BGP pool in bgp_mode native"
            yield "pool" if pool.pool else "addresses", what, FRR


def _once(metallb: MetalLB, pool: MetalLBPool, addresses: Addresses) -> Findings:
    for field in ("namespaces", "bgp.communities", "bgp.peers"):
        values = _value(pool, field) or ()
        for each in sorted({value for value in values if values.count(value) > 1}):
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
    _released,
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
        for field in ("peer_address", "source_address"):
            if "%" in (getattr(peer, field) or ""):
                what = f"{getattr(peer, field)} names an interface, which MetalLB does not read"
                yield Mistake(f"{where}.{field}", what, "use an address without %")
        ends = [ipaddress.ip_address(each).version for each in (peer.peer_address, peer.source_address) if each]
        if len(set(ends)) > 1:
            what = f"{peer.source_address} and peer_address {peer.peer_address} have different IP versions"
            yield Mistake(f"{where}.source_address", what, "use one IP version for both")
        if peer.ebgp_multi_hop and peer.my_asn == peer.peer_asn:
            what = f"only applies to eBGP, and my_asn and peer_asn are both {peer.my_asn}"
            yield Mistake(f"{where}.ebgp_multi_hop", what, "remove it, or correct the AS numbers")
    for one, other in _pairs_of_peers(metallb):
        if not _may_be_apart(metallb, metallb.peers[one], metallb.peers[other]):
            for field, what, fix in _conflicts(metallb.peers[one], metallb.peers[other]):
                yield Mistake(f"peers[{other}].{field}", what, fix)


def _pairs_of_peers(metallb: MetalLB) -> Iterator[tuple[int, int]]:
    """Yield the indexes of peers that share an instance of FRR; the native mode has a session for each."""
    return iter(()) if metallb.is_native else combinations(range(len(metallb.peers)), 2)


def _may_be_apart(metallb: MetalLB, one: MetalLBPeer, other: MetalLBPeer) -> bool:
    """Whether no node may have both peers, which only the labels of the nodes decide, and the release asks for it."""
    asks = metallb.version is None or parts(metallb.version) >= PEERS_APART_SINCE
    return asks and bool(one.node_selectors and other.node_selectors and one.node_selectors != other.node_selectors)


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
