"""Proves that each old address is kept: reads the rendered texts again, and assigns as the load balancer would.

Nothing here uses what was decided before: only the old Services, and the texts that the cluster will get, merged as
server-side apply merges them.
Sources: MetalLB 0.16.1, controller/service.go and internal/allocator/allocator.go; Cilium, operator/pkg/lbipam;
kube-vip 1.2.3, pkg/instance/instance.go (FetchServiceAddresses).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from openstack_prep.base.errors import InternalError
from openstack_prep.base.formats.foreign_text import parse_yaml_documents
from openstack_prep.base.ranges import Ip, Range
from openstack_prep.base.raw import Raw
from openstack_prep.exposures.convert import requests
from openstack_prep.exposures.convert.objects import OF, LoadBalancerOptions, Old, OldService, order

KEYS: tuple[str, ...] = ("metallb.io/allow-shared-ip", "metallb.universe.tf/allow-shared-ip", "kube-vip.io/leaseName")
KEYS += ("lbipam.cilium.io/sharing-key", "io.cilium/lb-ipam-sharing-key")
ACROSS = "lbipam.cilium.io/sharing-cross-namespace"


@dataclass(frozen=True)
class ServiceAddresses:
    """One old Service: its addresses before, those that Services get afterwards, and which remain in externalIPs."""

    service: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    by: tuple[str, ...]
    """Services that have the new addresses."""
    remaining: tuple[str, ...]


@dataclass
class _Assigned:
    """What the load balancer has assigned so far: for each address, the Services that have it."""

    holders: dict[str, list[Raw]] = field(default_factory=dict)


def prove(old: Old, pools: str, services: str, wanted: LoadBalancerOptions) -> tuple[ServiceAddresses, ...]:
    """Return what becomes of each Service that changes; raises InternalError if an address would be lost."""
    ranges = dict(_ranges(_documents(pools)))
    rendered = _documents(services)
    assigned, wrong = _Assigned(), []
    before = {each.key: each for each in old.services}
    for each in rendered:
        if requests.requested(each, wanted):  # as it will be in the cluster
            after = requests.merged(before.get(_key(each)), each)
            wrong += [f"{_key(each)}: {what}" for what in _assign(after, ranges, assigned, wanted, old)]
    kept = []
    changed = {_origin(each) for each in rendered}
    for service in old.services:
        if service.key in changed:
            found = _kept(service, [each for each in rendered if _origin(each) == service.key], wanted)
            wrong += [f"{service.key}: {what}" for what in _lost(service, found)]
            kept.append(found)
    if wrong:
        raise InternalError(f"the result would lose addresses, so nothing is written: {'; '.join(wrong)}")
    return tuple(kept)


def _documents(text: str) -> list[Raw]:
    return [yaml_document for yaml_document in parse_yaml_documents(text) if yaml_document]


def _ranges(documents: Sequence[Raw]) -> Iterator[tuple[str, list[Range]]]:
    """Yield the name and the addresses of each pool, of any kind."""
    for document in documents:
        name = document["metadata"]["name"]
        if document["kind"] == "IPAddressPool":
            yield name, list(map(Range.read, document["spec"]["addresses"]))
        elif document["kind"] == "CiliumLoadBalancerIPPool":
            blocks = [f"{block['start']}-{block['stop']}" for block in document["spec"].get("blocks", ())]
            yield name, list(map(Range.read, [*blocks, *(cidr["cidr"] for cidr in document["spec"].get("cidrs", ()))]))
        elif document["kind"] == "ConfigMap":
            for key, value in document["data"].items():
                yield key, list(map(Range.read, value.split(",")))


# --- assigning ----------------------------------------------------------------------------


def _assign(
    service: Raw, pools: Mapping[str, list[Range]], assigned: _Assigned, wanted: LoadBalancerOptions, old: Old
) -> Iterator[str]:
    """Assign the addresses that a Service requests; yield reasons for which it would not get them."""
    requested, ranges = requests.requested(service, wanted), list(pools.values())
    if service["spec"]["type"] != "LoadBalancer":
        yield "it is not of type LoadBalancer"
    pool = next((name for name, held in pools.items() if requested and _is_in(requested[0], held)), "")
    yield from requests.refusals(service, pool, wanted)
    if wanted.to == "metallb":
        versions = [ipaddress.ip_address(each).version for each in requested]
        if sorted(versions) != sorted(_versions(service, old)):
            yield f"MetalLB does not assign {', '.join(requested)} to a Service with these IP versions"
        if len(requested) == 1 and service["spec"].get("ipFamilyPolicy") == "PreferDualStack":
            yield "MetalLB adds a second address"
        if not any(all(_is_in(each, pool) for each in requested) for pool in ranges):
            yield f"MetalLB does not assign {', '.join(requested)} from several pools"
    for address in requested:
        if sum(_is_in(address, each) for each in ranges) != 1:
            yield f"{address} is not in exactly one pool"
        for other in assigned.holders.get(address, []):
            if why := _obstacle(service, other, wanted):
                yield f"{address} cannot be shared with {_key(other)}: {why}"
        assigned.holders.setdefault(address, []).append(service)


def _is_in(address: str, pool: Sequence[Range]) -> bool:
    found: Ip = ipaddress.ip_address(address)
    return any(found in each for each in pool)


def _versions(service: Raw, old: Old) -> Sequence[int]:
    named = service["spec"].get("ipFamilies")
    if named and OF in service["metadata"].get("labels", {}):
        return [int(each.removeprefix("IPv")) for each in named]
    return next(each.families for each in old.services if each.key == _key(service))


def _obstacle(one: Raw, other: Raw, wanted: LoadBalancerOptions) -> str:
    key, second = _sharing(one), _sharing(other)
    common_lease = wanted.to != "kube-vip" or wanted.version >= (1, 0)
    if common_lease and (not key or key != second):
        return f"the keys are {key!r} and {second!r}"
    ports, others = (_ports(each, with_protocol=wanted.to != "cilium") for each in (one, other))
    if ports & others:
        return "a port is the same"
    local = [each["spec"].get("externalTrafficPolicy") == "Local" for each in (one, other)]
    if local[0] != local[1] or (local[0] and one["spec"].get("selector") != other["spec"].get("selector")):
        return "externalTrafficPolicy or selector differ"
    names = [each["metadata"]["namespace"] for each in (one, other)]
    if wanted.to == "cilium" and names[0] != names[1]:
        across = [str(_annotations(each).get(ACROSS, "")).split(",") for each in (one, other)]
        if names[1] not in across[0] or names[0] not in across[1]:
            return "the namespaces do not allow it"
    return ""


def _sharing(service: Raw) -> str:
    return next((str(_annotations(service)[name]) for name in KEYS if name in _annotations(service)), "")


def _annotations(service: Raw) -> Raw:
    found: Raw = service["metadata"].get("annotations") or {}
    return found


def _ports(service: Raw, *, with_protocol: bool) -> set[tuple[str, int]]:
    return {(port["protocol"] if with_protocol else "", port["port"]) for port in service["spec"]["ports"]}


# --- comparing ----------------------------------------------------------------------------


def _key(service: Raw) -> str:
    return f"{service['metadata']['namespace']}/{service['metadata']['name']}"


def _origin(service: Raw) -> str:
    """Return the old Service whose addresses a rendered one carries."""
    origin = service["metadata"].get("labels", {}).get(OF)
    return f"{service['metadata']['namespace']}/{origin}" if origin else _key(service)


def _kept(service: OldService, rendered: Sequence[Raw], wanted: LoadBalancerOptions) -> ServiceAddresses:
    after = [requests.merged(service if _key(each) == service.key else None, each) for each in rendered]
    after = [one for one, each in zip(after, rendered, strict=True) if requests.requested(each, wanted)]
    new = tuple(address for each in after for address in requests.requested(each, wanted))
    remaining: tuple[str, ...] = ()
    for each in rendered:
        if _key(each) == service.key:
            remaining = tuple(each["spec"]["externalIPs"])
        elif _targets(each["spec"]) != _targets(service.spec):
            new = ()  # these addresses would lead to something else
    by = tuple(map(_key, after))
    return ServiceAddresses(service.key, service.addresses, new, by, remaining)


def _targets(spec: Raw) -> tuple[Any, ...]:
    """Return what decides where requests to an address go."""
    ports = [(port["protocol"], port["port"], port.get("targetPort")) for port in spec["ports"]]
    return dict(spec.get("selector") or {}), sorted(ports, key=str), spec.get("externalTrafficPolicy", "Cluster")


def _lost(service: OldService, kept: ServiceAddresses) -> Iterator[str]:
    if sorted((*kept.new, *kept.remaining), key=order) != sorted(service.addresses, key=order):
        yield f"had {', '.join(service.addresses)}, would have {', '.join((*kept.new, *kept.remaining)) or 'none'}"


def table(kept: Sequence[ServiceAddresses]) -> list[str]:
    """Return a line per Service."""
    width = max((len(addresses.service) for addresses in kept), default=0)
    return [f"  {addresses.service:<{width}}  {_shown(addresses)}" for addresses in kept]


def _shown(kept: ServiceAddresses) -> str:
    moved = sorted(set(kept.old) - set(kept.remaining), key=order)
    parts = [f"{', '.join(sorted(kept.new, key=order))} = {', '.join(moved)}"]
    parts += [f"by {', '.join(kept.by)}"] if kept.by != (kept.service,) else []
    parts += [f"remain in externalIPs: {', '.join(kept.remaining)}"] if kept.remaining else []
    return "; ".join(parts)
