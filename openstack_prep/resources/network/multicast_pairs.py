"""Address pairs that Neutron refuses because they overlap multicast: those of the spec, and those of others.

Source: ``base.multicast``.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from openstack_prep.base import multicast
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.resources.lists import queries
from openstack_prep.resources.lists.neutron_records import AddressPair, PortRecord
from openstack_prep.resources.network.port_addresses import specs_of


def _rejects_multicast(run: CloudRun) -> bool:
    """Whether Neutron refuses address pairs that overlap multicast."""
    return multicast.REJECTING in queries.extensions(run)


def overlapping(run: CloudRun, addresses: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the addresses of pairs if Neutron rejects multicast, with the fix."""
    found = sorted(filter(multicast.overlaps_multicast, addresses))
    for each in found if found and _rejects_multicast(run) else ():
        what = f"{each} contains multicast addresses, and this cloud's Neutron refuses such an address pair"
        yield what, f"write the rest of it: {multicast.unicast_parts(each)}"


def obstacle(run: CloudRun, port: PortRecord, staying: Iterable[AddressPair]) -> tuple[str, str] | None:
    """Return why Neutron would refuse to update a port's pairs, with the fix; None if it would not.

    Each update sends all pairs of a port, also those that others have added before Neutron rejected multicast.
    """
    rejected = [each for each in staying if multicast.is_rejected(each.ip_address, each.mac_address)]
    if not rejected or not _rejects_multicast(run):
        return None
    shown = []
    for each in rejected:
        specs = specs_of(each.ip_address, port)
        whose = f"of spec {', '.join(specs)}" if specs else "added without openstack-prep"
        shown.append(f"{each.ip_address} {each.mac_address} ({whose})")
    words = [
        word
        for each in rejected
        for word in ("--allowed-address", f"ip-address={each.ip_address},mac-address={each.mac_address}")
    ]
    what = f"port {port.name} {port.id} has address pairs that overlap multicast, {', '.join(shown)}; "
    what += "this cloud's Neutron refuses every update of pairs that keeps them"
    return what, f"remove them: openstack port unset {shlex.join(words)} {shlex.quote(port.id)}"
