"""The addresses that Kubernetes Services answer by, out of ``kubectl get services -A -o json``: pure.

Source: Kubernetes API, Service v1 (type LoadBalancer, externalIPs) and List; MetalLB's documentation, "Usage"
(its annotation metallb.io/loadBalancerIPs, metallb.universe.tf/loadBalancerIPs before 0.14).
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from openstack_prep.errors import Mistake, SpecError

ANNOTATIONS = ("metallb.io/loadBalancerIPs", "metallb.universe.tf/loadBalancerIPs")
COMMAND = "kubectl get services -A -o json"
REMEDY = f"give what {COMMAND} prints"


@dataclass(frozen=True)
class Services:
    """``addresses`` with the first Service (namespace/name) that has each; ``notes`` tell of what has none."""

    addresses: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read(text: str) -> Services:
    """Return the addresses of a list of Services, which may be empty; raises SpecError that lists every mistake.

    What is no list of Services is refused, so that a failed kubectl never passes for a cluster without any.
    """
    try:
        data = json.loads(text)
    except ValueError as error:
        what = f"is not JSON ({error})" if text.strip() else "is empty"
        raise SpecError([Mistake("services", what, REMEDY)]) from None
    kind = data.get("kind") if isinstance(data, dict) else None
    if kind not in ("List", "ServiceList") or not isinstance(data.get("items"), list):
        raise SpecError([Mistake("services", f"is {_told(data, kind)}, not a list of Services", REMEDY)])
    addresses: dict[str, str] = {}
    mistakes: list[Mistake] = []
    notes: list[str] = []
    for number, item in enumerate(data["items"]):
        if not isinstance(item, dict) or item.get("kind", "Service") != "Service":
            what = f"is {_told(item, item.get('kind') if isinstance(item, dict) else None)}, not a Service"
            mistakes.append(Mistake(f"services: items[{number}]", what, REMEDY))
            continue
        name = _name(item)
        for said in _said(item):
            try:
                addresses.setdefault(str(ipaddress.ip_address(said)), name)
            except ValueError:
                mistakes.append(Mistake(f"services: {name}", f"{said!r} is no IP address", "correct the Service"))
        notes += [f"Service {name} answers by the name {host}: no address to allow" for host in _hosts(item)]
    if mistakes:
        raise SpecError(mistakes)
    return Services(addresses, tuple(notes))


def _told(data: Any, kind: Any) -> str:
    return str(kind) if kind else f"a JSON {type(data).__name__}" if not isinstance(data, dict) else "of no kind"


def _name(item: Mapping[str, Any]) -> str:
    metadata = item.get("metadata") or {}
    return f"{metadata.get('namespace', 'default')}/{metadata.get('name', '')}"


def _ingress(item: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return ((item.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []


def _hosts(item: Mapping[str, Any]) -> Iterator[str]:
    return (each["hostname"] for each in _ingress(item) if each.get("hostname") and not each.get("ip"))


def _said(item: Mapping[str, Any]) -> Iterator[str]:
    """Yield the addresses that a Service has, or asks for, as they are written."""
    spec = item.get("spec") or {}
    yield from spec.get("externalIPs") or ()
    if spec.get("type") != "LoadBalancer":
        return
    yield from (each["ip"] for each in _ingress(item) if each.get("ip"))
    if spec.get("loadBalancerIP"):
        yield spec["loadBalancerIP"]
    annotations = (item.get("metadata") or {}).get("annotations") or {}
    for name in ANNOTATIONS:
        yield from filter(None, map(str.strip, annotations.get(name, "").split(",")))
