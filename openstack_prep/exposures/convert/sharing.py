"""Services that share an address: which ones each load balancer lets share it, and the key that they need.

Sources: MetalLB 0.16.1, internal/allocator/allocator.go (sharingOK, checkSharing) and k8salloc (BackendKey); Cilium,
operator/pkg/lbipam/service_store.go (isCompatible) and pkg/annotation; kube-vip 1.2.3, pkg/services/processor.go (a
common lease requires the policy Cluster) and pkg/lease/lease.go (ServiceName).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from openstack_prep.exposures.convert.model import Carrier, OldService, Wanted, order

CILIUM_SHARES_SINCE = (1, 15)
CILIUM_SHARES_ACROSS_SINCE = (1, 16)
"""Namespaces; also the release with the annotations lbipam.cilium.io."""
COMMON_LEASE_SINCE = (1, 0)
"""kube-vip.io/leaseName: one node announces an address that Services share, also when each one elects its node."""


def obstacle(one: OldService, other: OldService, wanted: Wanted) -> str:
    """Return why two Services cannot share an address; an empty text if they can."""
    both = one.ports & other.ports
    if both:
        protocol, port = min(both)
        return f"both have port {port}/{protocol}"
    if wanted.to == "cilium":
        return _obstacle_of_cilium(one, other, wanted)
    if one.policy != other.policy:
        return "one has externalTrafficPolicy Local and the other one Cluster"
    if one.policy == "Local" and wanted.to == "kube-vip":
        return "kube-vip shares an address only between Services with externalTrafficPolicy Cluster"
    if one.policy == "Local" and one.selector != other.selector:
        return "with externalTrafficPolicy Local, MetalLB requires the same selector"
    return ""


def _obstacle_of_cilium(one: OldService, other: OldService, wanted: Wanted) -> str:
    numbers = {port for _, port in one.ports} & {port for _, port in other.ports}
    if wanted.minor < CILIUM_SHARES_SINCE:
        return f"Cilium {wanted.release} does not share addresses"
    if one.namespace != other.namespace and wanted.minor < CILIUM_SHARES_ACROSS_SINCE:
        return f"Cilium {wanted.release} does not share addresses between namespaces"
    if numbers:
        return f"both have port {min(numbers)}, and Cilium does not tell protocols from each other here"
    if one.policy != other.policy:
        return "one has externalTrafficPolicy Local and the other one Cluster"
    if one.policy == "Local" and (one.selector != other.selector or not one.selector):
        return "with externalTrafficPolicy Local, Cilium requires the same selector"
    return ""


def with_keys(carriers: Sequence[Carrier]) -> list[Carrier]:
    """Return the Services with a common key for all that share addresses, also through others."""
    group = {each.key: {each.key} for each in carriers}
    holders: dict[str, list[Carrier]] = {}
    for each in carriers:
        for address in each.addresses:
            holders.setdefault(address, []).append(each)
    for sharing in holders.values():
        merged = set().union(*(group[each.key] for each in sharing))
        group |= dict.fromkeys(merged, merged)
    by_key = {each.key: each for each in carriers}
    return [_with_key(each, [by_key[key] for key in sorted(group[each.key])]) for each in carriers]


def _with_key(carrier: Carrier, group: Sequence[Carrier]) -> Carrier:
    if len(group) == 1:
        return carrier
    lowest = min((address for each in group for address in each.addresses), key=order)
    key = f"external-ip-{ipaddress.ip_address(lowest).exploded.replace(':', '-')}"
    across = sorted({each.of.namespace for each in group} - {carrier.of.namespace})
    return replace(carrier, sharing=key, across=tuple(across))


def key_annotations(carrier: Carrier, wanted: Wanted, lease_namespace: str) -> Iterator[tuple[str, str]]:
    """Yield the annotations of a Service that shares addresses."""
    if not carrier.sharing:
        return
    if wanted.to == "metallb":
        yield f"{metallb_prefix(wanted)}/allow-shared-ip", carrier.sharing
    elif wanted.to == "kube-vip":
        if wanted.minor >= COMMON_LEASE_SINCE:
            yield "kube-vip.io/leaseName", f"{lease_namespace}/{carrier.sharing}"
    elif wanted.minor < CILIUM_SHARES_ACROSS_SINCE:
        yield "io.cilium/lb-ipam-sharing-key", carrier.sharing
    else:
        yield "lbipam.cilium.io/sharing-key", carrier.sharing
        if carrier.across:
            yield "lbipam.cilium.io/sharing-cross-namespace", ",".join(carrier.across)


def metallb_prefix(wanted: Wanted) -> str:
    """Return the prefix of MetalLB's annotations (controller/service.go of 0.14.8 and 0.14.9)."""
    return "metallb.io" if wanted.version >= (0, 14, 9) else "metallb.universe.tf"


def lease_namespaces(carriers: Sequence[Carrier]) -> Mapping[str, str]:
    """Return the namespace of the common lease by key."""
    found: dict[str, str] = {}
    for each in carriers:
        if each.sharing:
            found[each.sharing] = min([each.of.namespace, *each.across])
    return found
