"""A cluster with 200 Services, as ``kubectl get services,nodes -A -o json`` prints it; the same one in each run."""

from __future__ import annotations

import json
import random
from typing import Any

Item = dict[str, Any]

NAMESPACES = ("shop", "on", "null", "1e3", "123", "y")
NAMES = ("true", "no", "off", "y", "null", "n", "yes", "inf", "e1", "x0", "o17", "tilde")
SECRET = "hush-hush"
NODES = {"node-1": "192.0.2.1", "node-2": "2001:db8:ffff::1"}
CARRIED = 170
"""Services whose addresses all carry over to any of the load balancers."""


def cluster() -> list[Item]:
    """Return 200 Services and two Nodes."""
    chance = random.Random(13)
    found = [_service(chance, number) for number in range(CARRIED)]
    found += [_shared(number, port) for number in range(8) for port in (80, 443)]  # 16 that share 8 addresses
    found += [_headless(number) for number in range(4)] + [_alias(number) for number in range(3)]
    found += [_on_node(number) for number in range(2)] + [_twice(number) for number in range(2)]
    found += [_other_version(), _plain(0), _plain(1)]
    assert len(found) == 200
    return found


def text() -> str:
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "status": {
                "addresses": [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": address}]
            },
        }
        for name, address in NODES.items()
    ]
    return json.dumps({"kind": "List", "apiVersion": "v1", "items": [*cluster(), *nodes]})


def item(name: str, namespace: str = "shop", **spec: Any) -> Item:
    """Return a Service with a cluster IP of IPv4, unless ``spec`` says otherwise."""
    annotations = {
        "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"password": SECRET}),
        "example.com/token": SECRET,
    }
    whole = {
        "type": "ClusterIP",
        "clusterIP": "10.43.0.1",
        "clusterIPs": ["10.43.0.1"],
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
        "sessionAffinity": "None",
        "selector": {"app": name},
        "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080}],
        **spec,
    }
    metadata = {"name": name, "namespace": namespace, "uid": f"u-{name}", "annotations": annotations}
    status = whole.pop("status", {"loadBalancer": {}})
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": whole, "status": status}


V6 = {"clusterIP": "fd00::1", "clusterIPs": ["fd00::1"], "ipFamilies": ["IPv6"]}
DUAL = {
    "clusterIPs": ["10.43.0.1", "fd00::1"],
    "ipFamilies": ["IPv4", "IPv6"],
    "ipFamilyPolicy": "PreferDualStack",
}


def _service(chance: random.Random, number: int) -> Item:
    """Return a Service of one of the kinds that carry over."""
    four, six = f"198.51.100.{number}", f"2001:db8::{number:x}:1"
    more_four, more_six = f"203.0.113.{number}", f"2001:db8::{number:x}:2"
    spec: Item = chance.choice(
        [
            {"externalIPs": [four]},
            {"externalIPs": [six], **V6},
            {"externalIPs": [six.upper()], **V6, "ipFamilyPolicy": "PreferDualStack"},
            {"externalIPs": [four, six], **DUAL},
            {"externalIPs": [six, four, more_six, more_four], **DUAL},
            {"externalIPs": [four], **DUAL},
            {"externalIPs": [four, more_four, four]},
            {
                "externalIPs": [four],
                "type": "NodePort",
                "ports": [
                    {"name": "a", "port": 53, "protocol": "UDP", "targetPort": "dns", "nodePort": 30000 + number},
                    {"name": "b", "port": 53, "protocol": "TCP", "targetPort": "dns", "nodePort": 31000 + number},
                ],
            },
            {
                "externalIPs": [four, more_four],
                "type": "LoadBalancer",
                "status": {"loadBalancer": {"ingress": [{"ip": f"10.9.0.{number}"}]}},
            },
            {
                "externalIPs": [four],
                "type": "LoadBalancer",
                "status": {"loadBalancer": {"ingress": [{"ip": four}]}},
            },
            {"externalIPs": [four], "type": "LoadBalancer", "loadBalancerClass": "example.com/other"},
            {"externalIPs": [four], "selector": None},
            {"externalIPs": [four], "externalTrafficPolicy": "Local", "sessionAffinity": "ClientIP"},
        ]
    )
    name = NAMES[number] if number < len(NAMES) else f"web-{number}"
    return item(name, NAMESPACES[number % len(NAMESPACES)], **spec)


def _shared(number: int, port: int) -> Item:
    ports = [{"port": port, "protocol": "TCP"}]
    namespace = "shop" if number % 2 or port == 80 else "on"
    return item(f"shared-{number}-{port}", namespace, ports=ports, externalIPs=[f"192.0.2.{100 + number}"])


def _headless(number: int) -> Item:
    return item(f"headless-{number}", clusterIP="None", clusterIPs=["None"], externalIPs=[f"192.0.2.{120 + number}"])


def _alias(number: int) -> Item:
    found = item(
        f"alias-{number}", type="ExternalName", externalName="example.com", externalIPs=[f"192.0.2.{130 + number}"]
    )
    for name in ("clusterIP", "clusterIPs", "ports", "selector"):
        del found["spec"][name]
    return found


def _on_node(number: int) -> Item:
    return item(f"on-node-{number}", externalIPs=[["192.0.2.1"], ["192.0.2.1", "192.0.2.140"]][number])


def _twice(number: int) -> Item:
    return item(f"twice-{number}", externalIPs=["192.0.2.150"])


def _other_version() -> Item:
    return item("other-version", externalIPs=["2001:db8::150"])


def _plain(number: int) -> Item:
    return item(f"plain-{number}")
