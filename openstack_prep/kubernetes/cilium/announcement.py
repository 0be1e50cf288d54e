"""Cilium's custom resources and Helm values as a load balancer, with the names of its release: pure functions.

Source: the custom resource definitions of Cilium 1.13 to 1.19 (pkg/k8s/apis/cilium.io/client/crds).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence

from openstack_prep.base.ranges import Range
from openstack_prep.base.raw import Values
from openstack_prep.kubernetes.cilium import settings as releases
from openstack_prep.kubernetes.cilium.settings import Cilium, CiliumBGP, CiliumLayer2, CiliumPool
from openstack_prep.kubernetes.service_pools import Addresses, LabelSelector, drop_empty, ranges, selector_values

NAME = "load-balancer"
"""Name of the policy, the BGP configuration and the advertisement."""
EVERY_SERVICE = {"matchExpressions": [{"key": "openstack-prep/none", "operator": "NotIn", "values": ["none"]}]}
"""A selector that matches all; without a selector, BGP announces nothing."""
OF_NAMESPACE, OF_NAME = "io.kubernetes.service.namespace", "io.kubernetes.service.name"
"""Labels that Cilium adds to Services before it applies a selector."""
SECRETS_NAMESPACE = "kube-system"
"""Namespace of the passwords of BGP, the default of the value bgpControlPlane.secretsNamespace.name."""
WELL_KNOWN = (
    *("accept-own", "blackhole", "internet", "llgr-stale", "no-llgr", "planned-shut"),
    *("no-advertise", "no-export", "no-export-subconfed", "no-peer"),
    *(f"route-filter-{each}" for each in ("v4", "v6", "translated-v4", "translated-v6")),
)
BASE_QPS, SERVICES_PER_QUERY, MOST_QPS = 10, 5, 200
"""Basic rate of queries, Services per further query, and the limit: leaders renew a lease per Service every 5 s."""


def address_annotation(cilium: Cilium) -> str:
    """Return the annotation by which a Service requests addresses."""
    return "lbipam.cilium.io/ips" if cilium.minor >= releases.LBIPAM_ANNOTATION_SINCE else "io.cilium/lb-ipam-ips"


def leaves_services(cilium: Cilium) -> bool:
    """Whether Cilium leaves Services without a class to other load balancers."""
    off = (cilium.values or {}).get("defaultLBServiceIPAM") == "none"
    return off and cilium.minor >= releases.DEFAULT_IPAM_SINCE


def values(cilium: Cilium, addresses: Addresses) -> Values:
    """Return the Helm values that announcements need."""
    balancer = cilium.load_balancer
    found: Values = {}
    if balancer is None:
        return found
    if balancer.l2 is not None:
        found["l2announcements"] = {"enabled": True}
        if "k8sClientRateLimit" not in (cilium.values or {}):
            count = sum(each.count for pool in balancer.pools for each in ranges(pool, addresses))
            qps = min(BASE_QPS + -(-count // SERVICES_PER_QUERY), MOST_QPS)
            found["k8sClientRateLimit"] = {"qps": qps, "burst": 2 * qps}
    if balancer.bgp is not None:
        found["bgpControlPlane"] = {"enabled": True}
    return found


def documents(cilium: Cilium, addresses: Addresses) -> list[dict[str, object]]:
    """Return the manifests, with passwords as ``Secret``, which ``yaml_text.dump`` reveals."""
    balancer = cilium.load_balancer
    if balancer is None:
        return []
    found = [_pool(cilium, pool, addresses) for pool in balancer.pools]
    if balancer.l2 is not None:
        found.append(_layer2(balancer.l2))
    if balancer.bgp is not None:
        families = sorted({each.version for pool in balancer.pools for each in ranges(pool, addresses)})
        found += _passwords(balancer.bgp)
        found += (
            [_peering_policy(cilium, balancer.bgp)]
            if cilium.minor < releases.BGP_RESOURCES_SINCE
            else _bgp(cilium, balancer.bgp, families)
        )
    return found


def _resource(version: str, kind: str, name: str, spec: Mapping[str, object], **metadata: object) -> dict[str, object]:
    return {
        "apiVersion": f"cilium.io/{version}",
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": drop_empty(spec),
    }


def _version(cilium: Cilium) -> str:
    return "v2" if cilium.minor >= releases.V2_SINCE else "v2alpha1"


def _pool(cilium: Cilium, pool: CiliumPool, addresses: Addresses) -> dict[str, object]:
    held = ranges(pool, addresses)
    if cilium.minor < releases.BLOCKS_SINCE:
        blocks: dict[str, object] = {"cidrs": [{"cidr": str(each)} for one in held for each in one.networks]}
    else:  # of a cidr, 1.15 omits the first and the last address
        blocks = {"blocks": [_block(each) for each in held]}
    spec = {**blocks, "serviceSelector": pool_selector(pool)}
    return _resource(_version(cilium), "CiliumLoadBalancerIPPool", pool.kubernetes_name, spec)


def _block(held: Range) -> dict[str, str]:
    return {"start": str(held.first), "stop": str(held.last)}


def pool_selector(pool: CiliumPool) -> dict[str, object]:
    """Return the selector of the Services that may use a pool."""
    found = selector_values(pool.service_selector)
    if not pool.namespaces:
        return found
    of_namespaces = {"key": OF_NAMESPACE, "operator": "In", "values": list(pool.namespaces)}
    expressions = found.get("matchExpressions")
    return found | {"matchExpressions": [of_namespaces, *(expressions if isinstance(expressions, list) else [])]}


def _layer2(layer2: CiliumLayer2) -> dict[str, object]:
    spec = {
        "loadBalancerIPs": True,
        "interfaces": list(layer2.interfaces),
        "nodeSelector": selector_values(layer2.node_selector),
        "serviceSelector": selector_values(layer2.service_selector),
    }
    return _resource("v2alpha1", "CiliumL2AnnouncementPolicy", NAME, spec)


# --- BGP ----------------------------------------------------------------------------------


def _passwords(bgp: CiliumBGP) -> Iterator[dict[str, object]]:
    for peer in bgp.peers:
        if peer.password:
            metadata = {"name": password_name(peer.name), "namespace": SECRETS_NAMESPACE}
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"}
            yield {**secret, "stringData": {"password": peer.password}}


def password_name(peer: str) -> str:
    """Return the name of the Secret with the password of a peer."""
    return f"{peer}-password"


def _announced(selector: LabelSelector | None) -> dict[str, object]:
    return selector_values(selector) or dict(EVERY_SERVICE)


def _peering_policy(cilium: Cilium, bgp: CiliumBGP) -> dict[str, object]:
    neighbors = []
    for peer in bgp.peers:
        neighbor = {
            "peerASN": peer.peer_asn,
            "peerAddress": str(ipaddress.ip_network(peer.peer_address)),
            "peerPort": peer.peer_port,
            "holdTimeSeconds": peer.hold_time,
            "keepAliveTimeSeconds": _keepalive(peer.hold_time),
            "eBGPMultihopTTL": peer.ebgp_multi_hop,
            "authSecretRef": password_name(peer.name) if peer.password else None,
        }
        neighbors.append(drop_empty(neighbor))
    router = {"localASN": bgp.my_asn, "serviceSelector": _announced(bgp.service_selector), "neighbors": neighbors}
    spec = {"nodeSelector": selector_values(bgp.node_selector), "virtualRouters": [router]}
    return _resource("v2alpha1", "CiliumBGPPeeringPolicy", NAME, spec)


def _keepalive(hold_time: int | None) -> int | None:
    return hold_time // 3 if hold_time else None


def _bgp(cilium: Cilium, bgp: CiliumBGP, families: Sequence[int]) -> Iterator[dict[str, object]]:
    version = _version(cilium)
    peers = [
        {
            "name": each.name,
            "peerASN": each.peer_asn,
            "peerAddress": each.peer_address,
            "peerConfigRef": {"name": each.name},
        }
        for each in bgp.peers
    ]
    instances = [{"name": NAME, "localASN": bgp.my_asn, "peers": peers}]
    spec = {"nodeSelector": selector_values(bgp.node_selector), "bgpInstances": instances}
    yield _resource(version, "CiliumBGPClusterConfig", NAME, spec)
    for peer in bgp.peers:
        timers: dict[str, object] = {
            "holdTimeSeconds": peer.hold_time,
            "keepAliveTimeSeconds": _keepalive(peer.hold_time),
        }
        settings: dict[str, object] = {
            "transport": drop_empty({"peerPort": peer.peer_port}),
            "timers": drop_empty(timers),
            "ebgpMultihop": peer.ebgp_multi_hop,
            "authSecretRef": password_name(peer.name) if peer.password else None,
            "families": [
                {"afi": f"ipv{family}", "safi": "unicast", "advertisements": {"matchLabels": {"advertise": NAME}}}
                for family in families
            ],
        }
        yield _resource(version, "CiliumBGPPeerConfig", peer.name, settings)
    attributes = drop_empty({"communities": _communities(bgp), "localPreference": bgp.local_pref})
    advertisement = drop_empty(
        {
            "advertisementType": "Service",
            "service": {"addresses": ["LoadBalancerIP"]},
            "selector": _announced(bgp.service_selector),
            "attributes": attributes,
        }
    )
    spec = {"advertisements": [advertisement]}
    yield _resource(version, "CiliumBGPAdvertisement", NAME, spec, labels={"advertise": NAME})


def _communities(bgp: CiliumBGP) -> dict[str, object]:
    """Return the communities by their kinds."""
    kinds: dict[str, list[str]] = {"standard": [], "large": [], "wellKnown": []}
    for community in bgp.communities:
        kinds["wellKnown" if community in WELL_KNOWN else "large" if community.count(":") == 2 else "standard"].append(
            community
        )
    return drop_empty(kinds)
