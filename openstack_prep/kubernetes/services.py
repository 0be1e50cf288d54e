"""The addresses of Kubernetes Services, from the output of ``kubectl get services -A -o json``: pure functions.

Sources: Kubernetes API, Service v1 (type LoadBalancer of any class, externalIPs) and List; MetalLB's documentation,
"Usage" (metallb.io/loadBalancerIPs, metallb.universe.tf/loadBalancerIPs before 0.14); Cilium 1.19 (pkg/annotation) and
1.13 (operator/pkg/lbipam); kube-vip-cloud-provider 0.0.12 (pkg/provider/loadBalancer.go).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.formats.foreign_text import parse_json
from openstack_prep.base.raw import Raw

ANNOTATIONS = (
    *("metallb.io/loadBalancerIPs", "metallb.universe.tf/loadBalancerIPs"),
    *("lbipam.cilium.io/ips", "io.cilium/lb-ipam-ips"),
    "kube-vip.io/loadbalancerIPs",
)
"""Annotations by which Services request addresses, with commas between them."""
COMMAND = "kubectl get services -A -o json"
EVERYWHERE = "default/kubernetes"
"""The Service of the API server, which exists in every cluster."""
FIX = f"pass the output of {COMMAND}"

JSON_TYPES = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}

T = TypeVar("T")


@dataclass(frozen=True)
class Services:
    """``addresses``, each with the first Service (namespace/name) that has it; ``notes`` name Services without one."""

    addresses: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read(text: str) -> Services:
    """Return the addresses in a list of Services, which may be empty; raises SpecError with all mistakes.

    Any other text is refused, so that a failed kubectl does not look like a cluster without Services.
    An invalid address in a Service is only noted: it must not affect the other Services.
    """
    addresses: dict[str, str] = {}
    mistakes: list[Mistake] = []
    notes: list[str] = []
    names: set[str] = set()
    for number, item in enumerate(_items(text)):
        if not isinstance(item, dict) or item.get("kind", "Service") != "Service":
            what = f"is {_kind(item)}, not a Service"
            mistakes.append(Mistake(f"services: items[{number}]", what, FIX))
            continue
        try:
            name, values, hosts = _name(item), list(_addresses(item)), list(_hosts(item))
        except ValueError as error:
            mistakes.append(Mistake(f"services: items[{number}]", str(error), FIX))
            continue
        names.add(name)
        for value in values:
            address = _address(value)
            if address is None:
                notes.append(f"{value!r} of Service {name} is not an IP address and is ignored")
            else:
                addresses.setdefault(address, name)
        notes += [f"Service {name} has the host name {host} and no IP address" for host in hosts]
    if mistakes:
        raise SpecError(mistakes)
    if EVERYWHERE not in names:
        what = f"Service {EVERYWHERE}, which every cluster has, is not in the list"
        notes.append(f"{what}: unless the list covers all namespaces (-A), the omitted Services lose their addresses")
    return Services(addresses, tuple(notes))


@dataclass(frozen=True, kw_only=True)
class ServiceRecord:
    """A Service as its cluster has it."""

    type: str
    external_ips: tuple[str, ...] = ()
    requested: tuple[str, ...] = ()
    """Addresses that it requests of a load balancer."""
    given: tuple[str, ...] = ()
    """Addresses that a load balancer has given it."""
    ports: Mapping[tuple[str, int], int | None] = field(default_factory=dict)
    """The node port of each protocol and port; None if it has none."""


def records(text: str) -> dict[str, ServiceRecord]:
    """Return the Services in a list, by namespace/name; raises SpecError with all mistakes."""
    found: dict[str, ServiceRecord] = {}
    mistakes: list[Mistake] = []
    for number, item in enumerate(_items(text)):
        try:
            if not isinstance(item, dict):
                raise ValueError(f"is {_kind(item)}, not a Service")
            found[_name(item)] = _record(item)
        except ValueError as error:
            mistakes.append(Mistake(f"services: items[{number}]", str(error), FIX))
    if mistakes:
        raise SpecError(mistakes)
    return found


def _record(item: Raw) -> ServiceRecord:
    ports = [_at({"ports": each}, dict, "ports") for each in _at(item, list, "spec", "ports")]
    keys = [((_at(port, str, "protocol") or "TCP").lower(), _at(port, int, "port")) for port in ports]
    return ServiceRecord(
        type=_at(item, str, "spec", "type") or "ClusterIP",
        external_ips=_canonical(_at(item, list, "spec", "externalIPs")),
        requested=_canonical(_requested(item)),
        given=_canonical(each.get("ip") for each in _ingress(item)),
        ports=dict(zip(keys, (_at(port, int, "nodePort") or None for port in ports), strict=True)),
    )


def _canonical(values: Iterable[object]) -> tuple[str, ...]:
    """Return the valid addresses among some values, in the form in which they are compared."""
    return tuple(address for value in values if (address := _address(value)))


def _items(text: str) -> list[object]:
    try:
        data = parse_json(text.removeprefix("\ufeff"))  # some shells write a byte order mark into redirected output
    except ValueError as error:
        what = f"is not JSON ({error})" if text.strip() else "is empty"
        raise SpecError([Mistake("services", what, FIX)]) from None
    if isinstance(data, dict) and data.get("kind") in ("List", "ServiceList") and isinstance(data.get("items"), list):
        return cast("list[object]", data["items"])
    raise SpecError([Mistake("services", f"is {_kind(data)}, not a list of Services", FIX)])


def _kind(data: object) -> str:
    if not isinstance(data, dict):
        return _json_type(type(data))
    return str(data.get("kind") or "an object without a kind")


def _json_type(kind: type) -> str:
    return JSON_TYPES.get(kind, "a number")


def _address(value: object) -> str | None:
    try:
        return None if not isinstance(value, str) or "%" in value else str(ipaddress.ip_address(value))
    except ValueError:
        return None


def _at(item: Raw, kind: type[T], *path: str) -> T:
    """Return the value at a path, an empty one if there is none; raises ValueError for a value of a different type."""
    found: Any = item
    for number, key in enumerate(path, 1):
        expected = kind if number == len(path) else dict
        found = found.get(key)
        if found is None:
            return kind()
        if not isinstance(found, expected):
            where = ".".join(path[:number])
            raise ValueError(f"{where} is {_json_type(type(found))}, not {_json_type(expected)}")
    return cast("T", found)


def _name(item: Raw) -> str:
    return f"{_at(item, str, 'metadata', 'namespace') or 'default'}/{_at(item, str, 'metadata', 'name')}"


def _ingress(item: Raw) -> list[Raw]:
    return [_at({"ingress": each}, dict, "ingress") for each in _at(item, list, "status", "loadBalancer", "ingress")]


def _hosts(item: Raw) -> Iterator[object]:
    return (each["hostname"] for each in _ingress(item) if each.get("hostname") and not each.get("ip"))


def _addresses(item: Raw) -> Iterator[object]:
    """Yield the addresses that a Service has or requests, as written."""
    yield from _at(item, list, "spec", "externalIPs")
    if _at(item, str, "spec", "type") != "LoadBalancer":
        return
    yield from (each["ip"] for each in _ingress(item) if each.get("ip"))
    yield from _requested(item)


def _requested(item: Raw) -> Iterator[object]:
    """Yield the addresses that a Service requests of a load balancer, as written."""
    if asked := _at(item, str, "spec", "loadBalancerIP"):
        yield asked
    for name in ANNOTATIONS:
        yield from filter(None, map(str.strip, _at(item, str, "metadata", "annotations", name).split(",")))
