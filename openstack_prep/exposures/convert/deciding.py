"""Decides which Service carries which of the old addresses, and what does not carry over.

Sources: MetalLB 0.16.1, controller/service.go (allocateIPs: the addresses must have exactly the IP versions of the
Service) and internal/allocator/allocator.go (Assign: at most one address per IP version); kubernetes/kubernetes,
pkg/proxy/serviceport.go (headless Services, and addresses of an IP version that the Service does not have, are
ignored).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, zip_longest

from openstack_prep.exposures.convert.model import (
    Carrier,
    Decision,
    Left,
    Old,
    OldService,
    Wanted,
    families_of,
    order,
)
from openstack_prep.exposures.convert.sharing import obstacle, with_keys

LONGEST = 63
OWN = "openstack-prep exposures convert"


def decide(old: Old, wanted: Wanted) -> Decision:
    """Return the new Services and what does not carry over."""
    left = [each for service in old.services for each in _left(service, old, wanted)]
    left += _conflicts(old, wanted, left)
    out = {(each.service, address) for each in left for address in each.addresses}
    carriers: list[Carrier] = []
    names = set(old.taken)
    for service in old.services:
        addresses = tuple(each for each in service.addresses if (service.key, each) not in out)
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


def _left(service: OldService, old: Old, wanted: Wanted) -> Iterator[Left]:
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


def _whole(service: OldService, wanted: Wanted) -> Iterator[tuple[str, str]]:
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
    elif wanted.class_name and service.type == "LoadBalancer" and not (service.class_name or service.balanced):
        yield (
            "the Service is of type LoadBalancer already, and Kubernetes does not change the class of such a Service",
            "omit --load-balancer-class, or delete and create the Service",
        )


def _conflicts(old: Old, wanted: Wanted, left: Sequence[Left]) -> Iterator[Left]:
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


def _groups(service: OldService, addresses: tuple[str, ...], wanted: Wanted) -> list[tuple[str, ...]]:
    """Return the addresses of the Service itself, which may be none, and those of additional Services."""
    if not addresses:
        return [()]
    groups = list(_pairs(addresses, len(service.families))) if wanted.to == "metallb" else [addresses]
    itself = next((each for each in groups if _can_have(service, each, wanted)), ())
    return [itself, *(each for each in groups if each is not itself)]


def _can_have(service: OldService, addresses: tuple[str, ...], wanted: Wanted) -> bool:
    if service.class_name or service.balanced:
        return False
    return wanted.to != "metallb" or {*families_of(addresses)} == {*service.families}


def _pairs(addresses: Iterable[str], versions: int) -> Iterator[tuple[str, ...]]:
    """Yield pairs of an IPv4 and an IPv6 address for dual-stack Services, and single addresses."""
    of = {version: [each for each in addresses if ipaddress.ip_address(each).version == version] for version in (4, 6)}
    if versions < 2:
        yield from ((each,) for each in addresses)
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
