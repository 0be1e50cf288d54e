"""Decides which Service carries which of the old addresses, and what does not carry over.

Sources: MetalLB 0.16.1, controller/service.go (allocateIPs: the addresses must have exactly the IP versions of the
Service) and internal/allocator/allocator.go (Assign: at most one address per IP version); kubernetes/kubernetes,
pkg/proxy/serviceport.go (headless Services, and addresses of an IP version that the Service does not have, are
ignored).

Sources: MetalLB 0.16.1, internal/allocator/allocator.go (sharingOK, checkSharing) and k8salloc (BackendKey); Cilium,
operator/pkg/lbipam/service_store.go (isCompatible) and pkg/annotation; kube-vip 1.2.3, pkg/services/processor.go (a
common lease requires the policy Cluster) and pkg/lease/lease.go (ServiceName).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, zip_longest

from openstack_prep.exposures.convert.objects import (
    Carrier,
    Decision,
    Left,
    LoadBalancerOptions,
    Old,
    OldService,
    families_of,
    order,
)
from openstack_prep.kubernetes.metallb import METALLB_IO_SINCE

# --- shared address ---------------------------------------------------------------------------


CILIUM_SHARES_SINCE = (1, 15)
CILIUM_SHARES_ACROSS_SINCE = (1, 16)
"""Namespaces; also the release with the annotations lbipam.cilium.io."""
COMMON_LEASE_SINCE = (1, 0)
"""kube-vip.io/leaseName: one node announces an address that Services share, also when each one elects its node."""


def obstacle(one: OldService, other: OldService, wanted: LoadBalancerOptions) -> str:
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


def _obstacle_of_cilium(one: OldService, other: OldService, wanted: LoadBalancerOptions) -> str:
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
    group = {carrier.key: {carrier.key} for carrier in carriers}
    holders: dict[str, list[Carrier]] = {}
    for carrier in carriers:
        for address in carrier.addresses:
            holders.setdefault(address, []).append(carrier)
    for sharing in holders.values():
        merged = set().union(*(group[carrier.key] for carrier in sharing))
        group |= dict.fromkeys(merged, merged)
    by_key = {carrier.key: carrier for carrier in carriers}
    return [_with_key(carrier, [by_key[key] for key in sorted(group[carrier.key])]) for carrier in carriers]


def _with_key(carrier: Carrier, group: Sequence[Carrier]) -> Carrier:
    if len(group) == 1:
        return carrier
    lowest = min((address for each in group for address in each.addresses), key=order)
    key = f"external-ip-{ipaddress.ip_address(lowest).exploded.replace(':', '-')}"
    across = sorted({each.of.namespace for each in group} - {carrier.of.namespace})
    return replace(carrier, sharing=key, across=tuple(across))


def key_annotations(carrier: Carrier, wanted: LoadBalancerOptions, lease_namespace: str) -> Iterator[tuple[str, str]]:
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


def metallb_prefix(wanted: LoadBalancerOptions) -> str:
    """Return the prefix of MetalLB's annotations."""
    return "metallb.io" if wanted.version >= METALLB_IO_SINCE else "metallb.universe.tf"


def lease_namespaces(carriers: Sequence[Carrier]) -> Mapping[str, str]:
    """Return the namespace of the common lease by key."""
    found: dict[str, str] = {}
    for each in carriers:
        if each.sharing:
            found[each.sharing] = min([each.of.namespace, *each.across])
    return found


# --- decision ---------------------------------------------------------------------------------


LONGEST = 63
OWN = "openstack-prep exposures convert"


def decide(old: Old, wanted: LoadBalancerOptions) -> Decision:
    """Return the new Services and what does not carry over."""
    left = [each for service in old.services for each in _left(service, old, wanted)]
    left += _conflicts(old, wanted, left)
    out = {(each.service, address) for each in left for address in each.addresses}
    carriers: list[Carrier] = []
    names = set(old.taken)
    for service in old.services:
        addresses = tuple(address for address in service.addresses if (service.key, address) not in out)
        first, *more = _groups(service, addresses, wanted)
        if first:
            carriers.append(Carrier(service, service.name, first))
        if more and not service.selector:
            why = "the Service has no selector, so an additional Service beside it has no endpoints"
            fix = f"create a Service and its EndpointSlices for each of these addresses, then run {OWN} again"
            left.append(Left(service.key, tuple(each for one in more for each in one), why, fix))
            continue
        for group in more:
            name = _free_name(service, names)
            names.add(f"{service.namespace}/{name}")
            carriers.append(Carrier(service, name, group))
    return Decision(tuple(with_keys(carriers)), tuple(sorted(left, key=lambda each: each.service)))


# --- what does not carry over -------------------------------------------------------------


def _left(service: OldService, old: Old, wanted: LoadBalancerOptions) -> Iterator[Left]:
    for why, fix in _whole(service, wanted):
        yield Left(service.key, service.addresses, why, fix)
        return
    for address in service.addresses:
        version = ipaddress.ip_address(address).version
        if address in old.nodes:
            why = f"it is an address of node {old.nodes[address]}, which a load balancer must not announce"
            fix = "use a node port or an ingress controller with hostNetwork, or give the Service a different address"
            yield Left(service.key, (address,), why, fix)
        elif version not in service.families:
            why = f"the Service has no IPv{version}, so kube-proxy does not serve this address"
            fix = f"set ipFamilyPolicy: PreferDualStack in the Service, then run {OWN} again"
            yield Left(service.key, (address,), why, fix)


def _whole(service: OldService, wanted: LoadBalancerOptions) -> Iterator[tuple[str, str]]:
    """Yield reasons for which no address of a Service carries over, and the fixes."""
    if service.type == "ExternalName":
        yield "an ExternalName Service is an alias in DNS and forwards nothing", "remove externalIPs from it"
    elif service.is_headless:
        yield (
            "the Service is headless (clusterIP: None), so kube-proxy does not serve its externalIPs",
            "remove externalIPs from it, or create a Service with a cluster IP and the same selector",
        )
    elif not service.spec["ports"]:
        yield "the Service has no ports", "add its ports"
    elif wanted.class_name and service.type == "LoadBalancer" and not _keeps_balancer(service):
        yield (
            "the Service is of type LoadBalancer already, and Kubernetes does not change the class of such a Service",
            "omit --load-balancer-class, or delete and create the Service",
        )


def _conflicts(old: Old, wanted: LoadBalancerOptions, left: Sequence[Left]) -> Iterator[Left]:
    """Yield addresses that several Services have and cannot share."""
    out = {(each.service, address) for each in left for address in each.addresses}
    balanced = {address: key for key, found in old.others.items() for address in found}
    balanced |= {address: each.key for each in old.services for address in each.balanced}
    holders: dict[str, list[OldService]] = {}
    for service in old.services:
        for address in service.addresses:
            if (service.key, address) not in out:
                holders.setdefault(address, []).append(service)
    for address in sorted(holders, key=order):
        found = {}
        if address in balanced:
            why = f"a load balancer has assigned it to Service {balanced[address]}"
            found = {each.key: (why, "remove it from one of the two Services") for each in holders[address]}
        for one, other in combinations(holders[address], 2):
            if why := obstacle(one, other, wanted):
                fix = "give one of them a different address or different ports, or merge the two Services"
                found[one.key] = (f"Service {other.key} also has it: {why}", fix)
                found[other.key] = (f"Service {one.key} also has it: {why}", fix)
        yield from (Left(key, (address,), why, fix) for key, (why, fix) in found.items())


# --- new Services -------------------------------------------------------------------------


def _groups(service: OldService, addresses: tuple[str, ...], wanted: LoadBalancerOptions) -> list[tuple[str, ...]]:
    """Return the addresses of the Service itself, which may be none, and those of additional Services."""
    if not addresses:
        return [()]
    groups = list(_pairs(addresses, len(service.families))) if wanted.to == "metallb" else [addresses]
    itself = next((group for group in groups if _can_have(service, group, wanted)), ())
    return [itself, *(group for group in groups if group is not itself)]


def _can_have(service: OldService, addresses: tuple[str, ...], wanted: LoadBalancerOptions) -> bool:
    if _keeps_balancer(service):
        return False
    return wanted.to != "metallb" or {*families_of(addresses)} == {*service.families}


def _keeps_balancer(service: OldService) -> bool:
    """Whether a Service stays with its own load balancer, or limits the sources of addresses that had no such limit."""
    by_cloud = service.by_cloud and service.type == "LoadBalancer"  # it has no class, and Kubernetes lets it get none
    return bool(service.class_name or service.balanced or service.source_ranges or by_cloud)


def _pairs(addresses: Iterable[str], versions: int) -> Iterator[tuple[str, ...]]:
    """Yield pairs of an IPv4 and an IPv6 address for dual-stack Services, and single addresses."""
    of = {
        version: [address for address in addresses if ipaddress.ip_address(address).version == version]
        for version in (4, 6)
    }
    if versions < 2:
        yield from ((address,) for address in addresses)
        return
    for pair in zip_longest(of[4], of[6]):
        yield tuple(each for each in pair if each)


def _free_name(service: OldService, names: set[str]) -> str:
    number = 1
    while True:
        suffix = "-external" if number == 1 else f"-external-{number}"
        name = service.name[: LONGEST - len(suffix)].rstrip("-") + suffix
        if f"{service.namespace}/{name}" not in names:
            return name
        number += 1
