"""Write the address pairs of one port, concurrently with other writers.

Source: Networking API v2.0, "Allowed address pairs", "Standard attributes tag", and "Revisions" for
``If-Match: revision_number=N``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from urllib.parse import quote

import tenacity

from openstack_prep.base.errors import CloudError
from openstack_prep.cloud.service import Service
from openstack_prep.core.model import OwnershipTag
from openstack_prep.resources.addresses.pair_records import Share, recorded_pairs, tag
from openstack_prep.resources.lists.neutron_records import PortRecord

ATTEMPTS = 20
"""How often one port is read again after somebody else has changed it, because concurrent writers are normal."""
PAUSE = 1.0
"""Maximum delay before the second attempt, in seconds; doubled before each further attempt, up to five."""


def update_pairs(
    network: Service, ownership: OwnershipTag, share: Share, judge: Callable[[Share], Share] | None = None
) -> Share:
    """Update a port's pairs unless the port has changed since it was read; in that case judge it again and retry.

    ``judge`` returns the work on the port as it is now: who selects the port and what is stale may have changed with
    it. By default only what is still recorded is removed. The executor would give up after a few attempts. Raises
    CloudError.
    """
    path = f"/ports/{share.port.id}"
    for attempt in tenacity.Retrying(
        retry=tenacity.retry_if_exception(lambda error: isinstance(error, CloudError) and error.status == 412),
        stop=tenacity.stop_after_attempt(ATTEMPTS),
        wait=tenacity.wait_random_exponential(PAUSE, max=5 * PAUSE),
        reraise=True,
    ):
        with attempt:
            if attempt.retry_state.attempt_number > 1:
                share = judge(share) if judge else _still_recorded(ownership, share, _read(network, path))
            share = _add_records(network, ownership, path, share)
            share = replace(share, port=_write_or_forget(network, ownership, path, share))
    left = _remove_records(network, ownership, path, share)
    return replace(share, port=left, stale=frozenset(), mine=recorded_pairs(ownership, left))


def _still_recorded(ownership: OwnershipTag, share: Share, port: PortRecord) -> Share:
    return replace(share, port=port, stale=share.stale & recorded_pairs(ownership, port))


def _read(network: Service, path: str) -> PortRecord:
    return PortRecord.read(network.get(path)["port"])


def _remove_records(network: Service, ownership: OwnershipTag, path: str, share: Share) -> PortRecord:
    """Remove the records of removed pairs, and return the port.

    A concurrent run with a different spec may have added such a pair again and relied on the record that it found; that
    pair keeps its record. If that run has only read the record so far, its request to add the pair fails, because the
    port has changed.
    """
    gone = {tag(ownership, each) for each in share.stale} & set(share.port.tags)
    if not gone:
        return share.port
    for text in sorted(gone):
        network.delete(f"{path}/tags/{quote(text, safe='')}")
    again = replace(share, port=_read(network, path)).going
    for each in again:
        network.put(f"{path}/tags/{quote(tag(ownership, each), safe='')}")
    gone -= {tag(ownership, each) for each in again}
    return replace(share.port, tags=tuple(each for each in share.port.tags if each not in gone))


def _add_records(network: Service, ownership: OwnershipTag, path: str, share: Share) -> Share:
    """Record the pairs to be added; this counts as a change of the port, and must be the only one."""
    fresh = [tag(ownership, each) for each in share.unrecorded]
    for text in fresh:
        network.put(f"{path}/tags/{quote(text, safe='')}")
    if not fresh:
        return share
    again = _read(network, path)
    others = tuple(each for each in again.tags if each not in fresh)
    if _judged_by(replace(again, tags=others)) != _judged_by(share.port):
        raise CloudError(f"PUT network{path}: the port was modified concurrently", status=412, retryable=True)
    return replace(share, port=again)


def _judged_by(port: PortRecord) -> tuple[object, ...]:
    """Return what decides who selects a port, and which pairs it must have."""
    several = (port.tags, port.security_groups, port.allowed_address_pairs)
    device = (port.device_id, port.device_owner)
    return (port.name, port.network_id, port.mac_address, device, *map(frozenset, several))


def _write_or_forget(network: Service, ownership: OwnershipTag, path: str, share: Share) -> PortRecord:
    """Update the port; if Neutron refuses the pairs, remove their records, too."""
    try:
        return _write_pairs(network, path, share)
    except CloudError as error:
        if error.status in (400, 403):
            _remove_records(network, ownership, path, replace(share, stale=frozenset(share.missing)))
        raise


def _write_pairs(network: Service, path: str, share: Share) -> PortRecord:
    """Update the port to the desired pairs and return it."""
    pairs = share.pairs()
    if pairs == [asdict(each) for each in share.port.allowed_address_pairs]:
        return share.port
    condition = {"If-Match": f"revision_number={share.port.revision_number}"}
    try:
        answer = network.put(path, {"port": {"allowed_address_pairs": pairs}}, headers=condition)
        return PortRecord.read(answer["port"])
    except CloudError as error:
        if error.status == 400 and "maximum" in str(error):
            number = f"{len(pairs)} pair{'s' if len(pairs) > 1 else ''}"
            blocks = f"the port would have {number}, for {', '.join(sorted(share.wanted))}"
            raise CloudError(f"{error}: {blocks}; {_fewer(share)}", status=400) from error
        raise


def _fewer(share: Share) -> str:
    """Return what helps if a port would have too many pairs."""
    if any(" " in each for each in share.wanted):  # one per virtual machine, on each node however few there are
        fix = "attach fewer virtual machines, disable port security on these ports, which the owner of the network may"
    else:
        fix = "align ranges with networks (such as 10.0.0.192/27), allow the whole range of the Services"
    return f"{fix}, or have max_allowed_address_pair raised in Neutron"
