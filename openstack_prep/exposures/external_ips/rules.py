"""Checks of externalIPs: what Kubernetes, FRR or the network would refuse, or carry to nobody.

Sources: kubernetes/enhancements, KEP-5707 (deprecated in 1.36; from about 1.40, kube-proxy only serves externalIPs with
the feature gate AllowServiceExternalIPs; gone in about 1.43); kubernetes/website, feature gate AllowServiceExternalIPs
(deprecated, fromVersion 1.36); FRR, bgpd (password, ebgp-multihop). ``where`` of a mistake is a field, or the exposure.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from itertools import combinations

from openstack_prep.base.errors import Mistake
from openstack_prep.base.ranges import Range, overlaps
from openstack_prep.base.ranges import read as read_ranges
from openstack_prep.exposures.endpoint import PlacedExposure
from openstack_prep.exposures.external_ips.manifests import (
    PASSWORD_FAULT,
    PASSWORD_FIX,
    is_accepted,
    of_service,
    router_id,
)
from openstack_prep.exposures.external_ips.settings import ExternalIPBGP, ExternalIPs, addresses, chosen, hops
from openstack_prep.kubernetes.service_pools import repeated
from openstack_prep.kubernetes.versions import minor_of

DEPRECATED, GATED, GONE = 36, 40, 43
"""N of Kubernetes 1.N."""
SUCCESSOR = "openstack-prep exposures convert moves Services to MetalLB, Cilium or kube-vip"


def mistakes(
    settings: ExternalIPs, placed: Sequence[PlacedExposure], kubernetes_version: str | None = None
) -> Iterator[Mistake]:
    """Yield all mistakes."""
    yield from _nodes(settings)
    yield from _interface(settings)
    yield from _addresses(settings, placed)
    yield from _targets(placed)
    yield from _bgp(settings, placed)
    yield from _routes(settings, placed)
    if placed and (minor_of(kubernetes_version) or 0) >= GONE:
        what = f"Kubernetes {kubernetes_version} does not serve externalIPs any more (KEP-5707)"
        yield Mistake("", what, SUCCESSOR)


def warnings(
    settings: ExternalIPs, placed: Sequence[PlacedExposure], kubernetes_version: str | None = None
) -> Iterator[str]:
    """Yield warnings about valid settings."""
    version = minor_of(kubernetes_version) or 0
    if GATED <= version < GONE:
        yield (
            f"Kubernetes {kubernetes_version}: kube-proxy only serves externalIPs with the feature gate "
            f"AllowServiceExternalIPs (KEP-5707); {SUCCESSOR}"
        )
    elif version >= DEPRECATED or not version:
        which = f"Kubernetes {kubernetes_version}" if version else "Kubernetes 1.36 and later"
        yield f"externalIPs are deprecated in {which} (KEP-5707); {SUCCESSOR}"
    if settings.carriers == "one" and addresses(placed):
        yield "one node carries each address: when it fails, its addresses do not answer until they are moved by hand"
    if settings.carriers == "all" and settings.static_routes and settings.bgp is None:
        yield "static routes also lead to nodes that have failed; BGP withdraws them"


def _nodes(settings: ExternalIPs) -> Iterator[Mistake]:
    yield from repeated("nodes", [each.name for each in settings.nodes])
    first: dict[str, str] = {}
    for index, node in enumerate(settings.nodes):
        for address in node.addresses:
            if address in first:
                what = f"{address} is also an address of {first[address]}"
                yield Mistake(f"nodes[{index}].addresses", what, "give each node its own")
            first.setdefault(address, node.name)
        versions = [ipaddress.ip_address(each).version for each in node.addresses]
        if len(set(versions)) < len(versions):
            what = f"lists two IPv{versions[0]} addresses"
            yield Mistake(f"nodes[{index}].addresses", what, "list one per IP version")
        if node.router_id and ipaddress.ip_address(node.router_id).version == 6:
            what = f"{node.router_id} is an IPv6 address"
            yield Mistake(f"nodes[{index}].router_id", what, "write it in the form of an IPv4 address")


def _interface(settings: ExternalIPs) -> Iterator[Mistake]:
    if settings.create_interface and settings.interface == "lo":
        yield Mistake("create_interface", "lo exists on every node", "remove it, or name a different interface")
    if settings.configuration == "nmstate" and not settings.create_interface:
        what = "nmstate would remove all other addresses of an existing interface"
        yield Mistake("configuration", what, "write create_interface: true and a new name in interface, or script")
    if settings.carriers == "all" and not settings.is_routed:
        what = "several nodes would answer ARP for one address"
        yield Mistake("carriers", what, "set bgp or static_routes: true, or write carriers: one")


def _addresses(settings: ExternalIPs, placed: Sequence[PlacedExposure]) -> Iterator[Mistake]:
    pools = read_ranges(settings.pools)
    for one, other, both in overlaps(pools):
        yield Mistake("pools", f"{one} and {other} overlap in {both}", "list each address once")
    own = {address: node.name for node in settings.nodes for address in node.addresses}
    for exposure in chosen(placed):
        where, address = f"exposure {exposure.exposure.name}: address", exposure.address or ""
        if address in own:
            yield Mistake(where, f"{address} is the address of node {own[address]}", "choose a different one")
        if pools and not any(Range.read(address).first in pool for pool in pools):
            what = f"{address} is not in pools ({', '.join(map(str, pools))})"
            yield Mistake(where, what, "choose one of these, or add it to pools")
    for one_placed, other_placed in combinations(chosen(placed), 2):
        both_ports = {port.key for port in one_placed.exposure.ports} & {
            port.key for port in other_placed.exposure.ports
        }
        if one_placed.address == other_placed.address and both_ports:
            protocol, port = min(both_ports)
            what = f"port {port}/{protocol} of {one_placed.address} also belongs to {one_placed.exposure.name}"
            where = f"exposure {other_placed.exposure.name}: ports"
            yield Mistake(where, what, "choose a different address or port")


def _targets(placed: Sequence[PlacedExposure]) -> Iterator[Mistake]:
    for exposure in chosen(placed):
        if exposure.exposure.target.service is None:
            what = f"external-ip leads to Services, not to a {str(exposure.exposure.target).rpartition(' ')[0]}"
            yield Mistake(f"exposure {exposure.exposure.name}: target", what, "set service, or choose a different how")
    for found in of_service(placed).values():
        first, *rest = found
        for exposure in rest:
            if exposure.exposure.target.service and exposure.exposure.target.selector != first.exposure.target.selector:
                what = f"selector differs from that of {first.exposure.name}, which has the same Service"
                yield Mistake(f"exposure {exposure.exposure.name}: target.selector", what, "write the same one")
            if first.exposure.target.selector and exposure.exposure.ports != first.exposure.ports:
                what = f"ports differ from those of {first.exposure.name}, and a Service has all ports at all addresses"
                yield Mistake(
                    f"exposure {exposure.exposure.name}: ports", what, "write the same ones, or use two Services"
                )


def _bgp(settings: ExternalIPs, placed: Sequence[PlacedExposure]) -> Iterator[Mistake]:
    bgp = settings.bgp
    if bgp is None:
        return
    yield from repeated("bgp.peers", [peer.name for peer in bgp.peers])
    yield from _peers(bgp)
    versions = {ipaddress.ip_address(peer.peer_address).version for peer in bgp.peers}
    needed = {ipaddress.ip_address(address).version for address in addresses(placed)}
    for version in sorted(needed - versions):
        what = f"no peer has an IPv{version} address, and exposures have IPv{version} addresses"
        yield Mistake("bgp.peers", what, "add one: a session announces the addresses of its own IP version")
    for field, length in (("mask", 32), ("mask_v6", 128)):
        if bgp.software == "frr" and getattr(settings, field) != length:
            what = f"FRR announces an address only while the interface has it with the prefix length {length}"
            yield Mistake(field, what, "remove it")
    for index, node in enumerate(settings.nodes):
        if bgp.software == "frr" and not router_id(node):
            what = "is missing, and the node has no IPv4 address"
            yield Mistake(f"nodes[{index}].router_id", what, "write one in the form of an IPv4 address")


def _peers(bgp: ExternalIPBGP) -> Iterator[Mistake]:
    for index, peer in enumerate(bgp.peers):
        where = f"bgp.peers[{index}]"
        same = [each.name for each in bgp.peers[:index] if each.peer_address == peer.peer_address]
        if same:
            what = f"{peer.peer_address} is also the address of {same[0]}"
            yield Mistake(f"{where}.peer_address", what, "declare each router once")
        if peer.ebgp_multi_hop and peer.peer_asn == bgp.my_asn:
            what = f"only applies to eBGP, and my_asn and peer_asn are both {bgp.my_asn}"
            yield Mistake(f"{where}.ebgp_multi_hop", what, "remove it, or correct the AS numbers")
        # checks must not generate a password: one that is not ready is checked when the files are written
        if peer.password and peer.password.ready and not is_accepted(peer.password):
            yield Mistake(f"{where}.password", PASSWORD_FAULT, PASSWORD_FIX)


def _routes(settings: ExternalIPs, placed: Sequence[PlacedExposure]) -> Iterator[Mistake]:
    if not settings.static_routes:
        return
    for hop in hops(settings, placed):
        if not hop.next_hops:
            version = ipaddress.ip_address(hop.address).version
            what = f"no node that carries {hop.address} has an IPv{version} address, which its route needs"
            yield Mistake("nodes", what, f"add an IPv{version} address to addresses")
