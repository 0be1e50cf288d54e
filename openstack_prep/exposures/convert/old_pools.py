"""The addresses of an IpClaimPool (Mirantis) or Eip (OpenELB).

Sources: Mirantis/k8s-externalipcontroller, pkg/extensions/types.go (AvailableIP: of a pool without ranges, the
addresses after that of its CIDR, without the last one of the network); openelb/openelb, api/v1alpha2/eip_types.go
(GetSize).
"""

from __future__ import annotations

import ipaddress
import re

from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.ranges import Range, merged
from openstack_prep.exposures.convert.fields import Fields
from openstack_prep.exposures.convert.model import OldPool
from openstack_prep.exposures.model import HOST

SYNTAX = "write it as the API server prints it"
WORD = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}"
"""Name of an interface."""


def claim_pool(item: Fields) -> OldPool | None:
    """Return an IpClaimPool of Mirantis' controller."""
    name, cidr = item.name("metadata.name", HOST), item.text("spec.cidr")
    try:
        interface = ipaddress.ip_interface(cidr)
    except ValueError:
        item.wrong("spec.cidr", f"{cidr!r} is not a network in CIDR notation", SYNTAX)
        return None
    network = interface.network
    found = []
    for index, pair in enumerate(item.items("spec.ranges", list)):
        try:
            held = Range.read(f"{pair[0]}-{pair[-1]}")
        except (InvalidValue, IndexError) as error:
            item.wrong(f"spec.ranges[{index}]", f"is not a range of addresses: {error or 'it is empty'}", SYNTAX)
            continue
        if (both := held.overlap(Range.of(network))) is None or both != held:
            item.wrong(f"spec.ranges[{index}]", f"{held} is not within {network}", "correct one of the two")
        else:
            found.append(held)
    if "ranges" not in (item.data.get("spec") or {}) and int(network[-1]) - int(interface.ip) >= 2:
        found.append(Range(interface.ip + 1, network[-1] - 1))
    return _pool(item, name, found)


def eip(item: Fields) -> OldPool | None:
    """Return an Eip of OpenELB."""
    name, text = item.name("metadata.name", HOST), item.text("spec.address")
    try:
        held = Range.of(ipaddress.ip_network(text, strict=False)) if "/" in text else Range.read(text)
    except (ValueError, InvalidValue):
        item.wrong("spec.address", f"{text!r} is not an address, a network or a range", SYNTAX)
        return None
    interface = item.text("spec.interface")
    return _pool(item, name, [held], interface if re.fullmatch(WORD, interface) else "")  # else can_reach:ADDRESS


def _pool(item: Fields, name: str, ranges: list[Range], interface: str = "") -> OldPool | None:
    """Return a pool; its name becomes a DNS label, which load balancers require."""
    if not name:
        return None
    return OldPool(item.where, name.replace(".", "-")[:63].rstrip("-"), tuple(merged(ranges)), interface)
