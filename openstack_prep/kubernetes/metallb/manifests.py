"""MetalLB's manifests: custom resources, or the ConfigMap of MetalLB before 0.13.

Sources: MetalLB's CRDs (config/crd/bases: IPAddressPool, L2Advertisement, BGPAdvertisement of metallb.io/v1beta1,
BGPPeer of v1beta2) and its parser of the ConfigMap up to 0.12 (internal/config).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from openstack_prep.base.formats.yaml_text import dump
from openstack_prep.base.ranges import Range
from openstack_prep.base.secret import Secret
from openstack_prep.kubernetes.balancing.pools import Addresses, LabelSelector, drop_empty, ranges, selector_values
from openstack_prep.kubernetes.metallb.model import MetalLB, MetalLBBGP, MetalLBLayer2, MetalLBPeer, MetalLBPool


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
    return [selector_values(each) for each in selectors]


# --- the ConfigMap ------------------------------------------------------------------------


def _configmap(metallb: MetalLB, addresses: Addresses) -> dict[str, object]:
    """Return the ConfigMap; its only entry is YAML text, all of which is a ``Secret`` if it contains a password."""
    config = drop_empty(
        {
            "peers": [_old_peer(each) for each in metallb.peers],
            "address-pools": [_old_pool(each, addresses) for each in metallb.pools],
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
        "node-selectors": [_old_selector(each) for each in peer.node_selectors],
    }
    return drop_empty(found)


def _old_selector(selector: LabelSelector) -> dict[str, object]:
    spellings = {"matchLabels": "match-labels", "matchExpressions": "match-expressions"}
    return {spellings[name]: value for name, value in selector_values(selector).items()}
