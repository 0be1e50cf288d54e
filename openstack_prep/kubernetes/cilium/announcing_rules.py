"""Checks of Cilium as a load balancer: what its release does not support, or would assign or announce wrongly.

Sources: the custom resource definitions of Cilium 1.13 to 1.19; operator/pkg/lbipam/lbipam.go (Services without a class
lose addresses of other load balancers as soon as there is a pool); Documentation/network/l2-announcements.rst.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from openstack_prep.base.errors import Mistake
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
from openstack_prep.kubernetes.cilium import releases
from openstack_prep.kubernetes.cilium.announcing import OF_NAME, OF_NAMESPACE, WELL_KNOWN, pool_selector
from openstack_prep.kubernetes.cilium.load_balancer import CiliumBGP, CiliumLoadBalancer, CiliumPool
from openstack_prep.kubernetes.cilium.model import Cilium

MESH_SERVICES = {"clustermesh-apiserver": "clustermesh-apiserver", "etcd": "cilium-etcd-external"}
"""Names of the Service of a mesh, by the kind of the mesh."""


def mistakes(cilium: Cilium, addresses: Addresses) -> Iterator[Mistake]:
    """Yield all mistakes; ``where`` is the name of a field of ``load_balancer``."""
    balancer = cilium.load_balancer
    if balancer is None:
        return
    yield from list_mistakes(balancer.pools, addresses)
    for index, pool in enumerate(balancer.pools):
        for field, what, fix in _pool(pool, addresses):
            yield Mistake(f"pools[{index}]{field and f'.{field}'}", what, fix)
    if not balancer.protocols:
        yield Mistake("l2", "neither l2 nor bgp is set, so no node announces an address", "write l2: {}, or set bgp")
    for field, what, fix in (*_layer2(cilium, balancer, addresses), *_bgp(cilium, balancer.bgp)):
        yield Mistake(field, what, fix)
    if balancer.bgp is not None:
        yield from repeated("bgp.peers", [each.name for each in balancer.bgp.peers])


def _pool(pool: CiliumPool, addresses: Addresses) -> Findings:
    yield from name_findings(pool)
    yield from address_findings(pool, addresses)
    for what, fix in selector_findings([pool.service_selector] if pool.service_selector else []):
        yield "service_selector", what, fix


def _layer2(cilium: Cilium, balancer: CiliumLoadBalancer, addresses: Addresses) -> Findings:
    if balancer.l2 is None:
        return
    if cilium.minor < releases.LAYER2_SINCE:
        yield "l2", f"Cilium {cilium.release} does not announce by ARP", "write version 1.14 or later, or use bgp"
    if not cilium.kube_proxy_replacement:
        yield "l2", "it requires kube_proxy_replacement", "write kube_proxy_replacement: true into the section cilium"
    if cilium.minor < releases.IPV6_LAYER2_SINCE and balancer.bgp is None:
        for index, pool in enumerate(balancer.pools):
            for each in ranges(pool, addresses):
                if each.version == 6:
                    what = f"Cilium {cilium.release} does not announce the IPv6 addresses {each} by layer 2"
                    yield f"pools[{index}]", what, "write version 1.19 or later, or use bgp"
    for name in ("node_selector", "service_selector"):
        selector = getattr(balancer.l2, name)
        for what, fix in selector_findings([selector] if selector else []):
            yield f"l2.{name}", what, fix


def _bgp(cilium: Cilium, bgp: CiliumBGP | None) -> Findings:
    if bgp is None:
        return
    for name in ("node_selector", "service_selector"):
        selector = getattr(bgp, name)
        for what, fix in selector_findings([selector] if selector else []):
            yield f"bgp.{name}", what, fix
    for field in ("communities", "local_pref"):
        if getattr(bgp, field) not in (None, ()) and cilium.minor < releases.BGP_RESOURCES_SINCE:
            yield f"bgp.{field}", _too_old(cilium), "remove it, or write version 1.16 or later"
    for each in bgp.communities:
        if not _is_community(each):
            fix = "write two numbers up to 65535 (64512:1234), three numbers (64512:1:2), or a name such as no-export"
            yield "bgp.communities", f"{each!r} is not a community", fix
    since = dict.fromkeys(("peer_port", "hold_time", "ebgp_multi_hop"), releases.BGP_PEER_OPTIONS_SINCE)
    since["password"] = releases.BGP_PASSWORD_SINCE
    for index, peer in enumerate(bgp.peers):
        for what, fix in label_findings(peer.name):
            yield f"bgp.peers[{index}].name", what, fix
        for field, first in since.items():
            if getattr(peer, field) is not None and cilium.minor < first:
                fix = f"remove it, or write version {'.'.join(map(str, first))} or later"
                yield f"bgp.peers[{index}].{field}", _too_old(cilium), fix
        same = [each.peer_address for each in bgp.peers[:index]]
        if peer.peer_address in same:
            what = f"{peer.peer_address} is also the address of peers[{same.index(peer.peer_address)}]"
            yield f"bgp.peers[{index}].peer_address", what, "declare each router once"


def _too_old(cilium: Cilium) -> str:
    return f"Cilium {cilium.release} does not support it"


def _is_community(text: str) -> bool:
    parts = text.split(":")
    limit = 2**16 if len(parts) == 2 else 2**32
    numbers = all(re.fullmatch(r"0|[1-9][0-9]{0,9}", each) and int(each) < limit for each in parts)
    return text in WELL_KNOWN or (len(parts) <= 3 and numbers)


# --- the address of a mesh ----------------------------------------------------------------


def mesh_address_findings(cilium: Cilium, addresses: Addresses) -> Findings:
    """Yield reasons for which Cilium would not assign the mesh's address to its Service."""
    if cilium.load_balancer is None or cilium.mesh_address is None:
        return
    address, pools = ipaddress.ip_address(cilium.mesh_address), cilium.load_balancer.pools
    holding = [each for each in pools if any(address in found for found in ranges(each, addresses))]
    if not holding:
        names = ", ".join(each.kubernetes_name for each in pools)
        yield "mesh_address", f"{address} is not in a pool of Cilium ({names})", "choose an address of a pool"
    for pool in holding:
        if pool.namespaces and cilium.namespace not in pool.namespaces:
            what = f"pool {pool.kubernetes_name} of {address} only serves the namespaces {', '.join(pool.namespaces)}"
            yield "mesh_address", what, f"add namespace {cilium.namespace}, or choose an address of a different pool"
        elif not pool_selector(pool):
            what = f"Cilium may assign {address} of pool {pool.kubernetes_name} to any other Service"
            service = f"{{{OF_NAMESPACE}: {cilium.namespace}, {OF_NAME}: {MESH_SERVICES[cilium.mesh]}}}"
            fix = f"put it into a pool of its own with service_selector: {{match_labels: {service}}}"
            yield "mesh_address", what, fix
