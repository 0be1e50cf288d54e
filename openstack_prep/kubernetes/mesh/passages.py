"""Traffic that must pass between two clusters, as options of security group rules and as text."""

from __future__ import annotations

from openstack_prep.kubernetes.cilium import Passage

ECHO = {4: 8, 6: 128}
"""The type of ICMP message that asks for an echo, by IP version."""


def number(passage: Passage, version: int) -> int | None:
    """Return its destination port, or its type of ICMP message."""
    return ECHO[version] if passage.protocol == "icmp" else passage.port


def describe(passage: Passage) -> str:
    """Return its protocol and port, such as tcp 4240."""
    names = {"icmp": "ICMP echo", "any": "any protocol"}
    return names.get(passage.protocol) or " ".join(map(str, filter(None, (passage.protocol, passage.port))))


def options(passage: Passage, version: int) -> list[str]:
    """Return the client's options for a rule that lets it through."""
    if passage.protocol == "icmp":
        name = "icmp" if version == 4 else "ipv6-icmp"
        return ["--protocol", name, "--icmp-type", str(ECHO[version])]
    return ["--protocol", passage.protocol, *(["--dst-port", str(passage.port)] if passage.port else [])]


def row(passage: Passage, *, both_ways: bool) -> tuple[str, str, str, str]:
    """Return from where, to where, what and why."""
    what = "pods" if passage.target == "pods" else "nodes"
    to = f"{passage.address or 'the mesh address'} of" if passage.target == "mesh address" else f"{what} of"
    back = ", and back" if both_ways else ""
    return f"{what} of {passage.source}", f"{to} {passage.to}{back}", describe(passage), passage.why
