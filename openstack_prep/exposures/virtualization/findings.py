"""What is wrong with single values: names of interfaces, of labels, of bridge mappings; the fixes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from openstack_prep.base.fields import Text
from openstack_prep.kubernetes.balancing.pools import LabelSelector, selector_findings

LONGEST_INTERFACE = 15
"""Characters of an interface's name (IFNAMSIZ of Linux, include/uapi/linux/if.h, with the final zero byte)."""
INTERFACE = re.compile(r"(?!\.{1,2}\Z)[!-.0-9;-~]{1,15}")
"""Names of interfaces: Linux 6.12, net/core/dev.c, dev_valid_name, refuses spaces, slashes, colons, "." and ".."."""
MAPPING = re.compile(r"[!-+\-./0-9;-~]{1,253}")
"""Names of bridge mappings: ovn-kubernetes 1.3, physicalNetworkName, refuses commas and colons."""
BRIDGE = re.compile(r"[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?")

Finding = tuple[str, str]


def interface_findings(name: str) -> Iterator[Finding]:
    """Yield what is wrong with the name of an interface."""
    if not INTERFACE.fullmatch(name):
        fix = f"use at most {LONGEST_INTERFACE} characters without spaces, slashes and colons, such as eth1"
        yield f"{name!r} is not a name of an interface", fix


def bridge_findings(name: str) -> Iterator[Finding]:
    """Yield what is wrong with the name of a bridge to configure, which is also that of its policy."""
    if not BRIDGE.fullmatch(name):
        fix = f"use at most {LONGEST_INTERFACE} lower-case letters, digits and hyphens, such as br1"
        yield f"{name!r} is not a name of a bridge and of its policy", fix


def mapping_findings(name: str) -> Iterator[Finding]:
    """Yield what is wrong with the name of a bridge mapping."""
    if not MAPPING.fullmatch(name):
        fix = "use one without spaces, commas and colons, such as physnet1"
        yield f"{name!r} is not a name of a bridge mapping", fix


def label_mapping_findings(labels: Mapping[str, Text] | None) -> Iterator[Finding]:
    """Yield what is wrong with labels and their values."""
    if labels:
        yield from selector_findings((LabelSelector(match_labels=labels),))
