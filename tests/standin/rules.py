"""Ingress rules of a cluster's two security groups, IPv4, as seen after a real run of 4.21."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Ports = tuple[int, int] | None
Rule = tuple[str, Ports]

BOTH: tuple[Rule, ...] = (
    ("esp", None),
    ("112", None),
    ("tcp", (22, 22)),
    ("tcp", (9000, 9999)),
    ("tcp", (10250, 10250)),
    ("tcp", (30000, 32767)),
    ("udp", (500, 500)),
    ("udp", (4500, 4500)),
    ("udp", (4789, 4789)),
    ("udp", (6081, 6081)),
    ("udp", (9000, 9999)),
    ("udp", (30000, 32767)),
)
INSIDE: dict[str, tuple[Rule, ...]] = {
    "master": (
        *BOTH,
        ("tcp", (53, 53)),
        ("tcp", (2379, 2380)),
        ("tcp", (6641, 6642)),
        ("tcp", (10257, 10257)),
        ("tcp", (10259, 10259)),
        ("tcp", (22623, 22623)),
        ("udp", (53, 53)),
    ),
    "worker": (*BOTH, ("tcp", (1936, 1936))),
}
ANYWHERE: dict[str, tuple[Rule, ...]] = {
    "master": (("icmp", None), ("tcp", (6443, 6443)), ("udp", (6443, 6443))),
    "worker": (("icmp", None), ("tcp", (80, 80)), ("tcp", (443, 443))),
}
ROUTERS: dict[str, tuple[Rule, ...]] = {
    "inside": (("tcp", (1936, 1936)),),
    "anywhere": (("tcp", (80, 80)), ("tcp", (443, 443))),
}
"""Also the masters', where they are schedulable."""
DESCRIPTION = "Created By OpenShift Installer"


def rules(role: str, group_id: str, machine_network: str, *, schedulable: bool = False) -> list[dict[str, Any]]:
    """Return the bodies of all rules of a group, for one request; ``schedulable``: of masters without workers."""
    more = ROUTERS if schedulable and role == "master" else {"inside": (), "anywhere": ()}
    inside = _bodies(INSIDE[role] + more["inside"], group_id, machine_network)
    return [*inside, *_bodies(ANYWHERE[role] + more["anywhere"], group_id, "0.0.0.0/0")]


def _bodies(of: tuple[Rule, ...], group_id: str, prefix: str) -> Iterator[dict[str, Any]]:
    for protocol, ports in of:
        low, high = ports or (None, None)
        yield {
            "security_group_id": group_id,
            "direction": "ingress",
            "ethertype": "IPv4",
            "protocol": protocol,
            "port_range_min": low,
            "port_range_max": high,
            "remote_ip_prefix": prefix,
            "description": DESCRIPTION,
        }
