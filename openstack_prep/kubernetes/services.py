"""The addresses that Kubernetes Services answer by, out of ``kubectl get services -A -o json``: pure.

Source: Kubernetes API, Service v1 (type LoadBalancer, externalIPs) and List; MetalLB's documentation, "Usage"
(its annotation metallb.io/loadBalancerIPs, metallb.universe.tf/loadBalancerIPs before 0.14).
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from openstack_prep.base.errors import Mistake, SpecError
from openstack_prep.base.raw import Raw

ANNOTATIONS = ("metallb.io/loadBalancerIPs", "metallb.universe.tf/loadBalancerIPs")
COMMAND = "kubectl get services -A -o json"
EVERYWHERE = "default/kubernetes"
"""The Service of the API server, which Kubernetes itself keeps in every cluster."""
REMEDY = f"give what {COMMAND} prints"

T = TypeVar("T")


@dataclass(frozen=True)
class Services:
    """``addresses`` with the first Service (namespace/name) that has each; ``notes`` tell of what has none."""

    addresses: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read(text: str) -> Services:
    """Return the addresses of a list of Services, which may be empty; raises SpecError that lists every mistake.

    What is no list of Services is refused, so that a failed kubectl never passes for a cluster without any.
    What somebody wrote into a Service that is no address is only noted: it must not keep the others from theirs.
    """
    addresses: dict[str, str] = {}
    mistakes: list[Mistake] = []
    notes: list[str] = []
    names: set[str] = set()
    for number, item in enumerate(_items(text)):
        if not isinstance(item, dict) or item.get("kind", "Service") != "Service":
            what = f"is {_told(item)}, not a Service"
            mistakes.append(Mistake(f"services: items[{number}]", what, REMEDY))
            continue
        try:
            name, said, hosts = _name(item), list(_said(item)), list(_hosts(item))
        except ValueError as error:
            mistakes.append(Mistake(f"services: items[{number}]", str(error), REMEDY))
            continue
        names.add(name)
        for each in said:
            address = _address(each)
            if address is None:
                notes.append(f"{each!r} of Service {name} is no IP address, and is left out")
            else:
                addresses.setdefault(address, name)
        notes += [f"Service {name} answers by the name {host}: no address to allow" for host in hosts]
    if mistakes:
        raise SpecError(mistakes)
    if EVERYWHERE not in names:
        what = f"Service {EVERYWHERE}, which every cluster has, is not in the list"
        notes.append(f"{what}: if it is not of all namespaces (-A), those left out lose their addresses")
    return Services(addresses, tuple(notes))


def _items(text: str) -> list[object]:
    try:
        data = json.loads(text.removeprefix("\ufeff"))  # as some shells begin what they redirect
    except (ValueError, RecursionError) as error:
        what = f"is not JSON ({error})" if text.strip() else "is empty"
        raise SpecError([Mistake("services", what, REMEDY)]) from None
    if isinstance(data, dict) and data.get("kind") in ("List", "ServiceList") and isinstance(data.get("items"), list):
        return cast("list[object]", data["items"])
    raise SpecError([Mistake("services", f"is {_told(data)}, not a list of Services", REMEDY)])


def _told(data: object) -> str:
    if not isinstance(data, dict):
        return f"a JSON {type(data).__name__}"
    return str(data.get("kind") or "of no kind")


def _address(said: object) -> str | None:
    try:
        return None if not isinstance(said, str) or "%" in said else str(ipaddress.ip_address(said))
    except ValueError:
        return None


def _at(item: Raw, kind: type[T], *path: str) -> T:
    """Return what an object has at a path, something empty when it has nothing; raises ValueError for another type."""
    found: Any = item
    for number, key in enumerate(path, 1):
        expected = kind if number == len(path) else dict
        found = found.get(key)
        if found is None:
            return kind()
        if not isinstance(found, expected):
            where = ".".join(path[:number])
            raise ValueError(f"has as {where} a JSON {type(found).__name__}, not a {expected.__name__}")
    return cast("T", found)


def _name(item: Raw) -> str:
    return f"{_at(item, str, 'metadata', 'namespace') or 'default'}/{_at(item, str, 'metadata', 'name')}"


def _ingress(item: Raw) -> list[Raw]:
    return [_at({"ingress": each}, dict, "ingress") for each in _at(item, list, "status", "loadBalancer", "ingress")]


def _hosts(item: Raw) -> Iterator[object]:
    return (each["hostname"] for each in _ingress(item) if each.get("hostname") and not each.get("ip"))


def _said(item: Raw) -> Iterator[object]:
    """Yield the addresses that a Service has, or asks for, as they are written."""
    yield from _at(item, list, "spec", "externalIPs")
    if _at(item, str, "spec", "type") != "LoadBalancer":
        return
    yield from (each["ip"] for each in _ingress(item) if each.get("ip"))
    if asked := _at(item, str, "spec", "loadBalancerIP"):
        yield asked
    for name in ANNOTATIONS:
        yield from filter(None, map(str.strip, _at(item, str, "metadata", "annotations", name).split(",")))
