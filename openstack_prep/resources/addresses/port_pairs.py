"""The address pairs of one port: the records of those that a spec manages, and an update beside other writers.

Neutron's pairs cannot carry an ownership tag, so a tag of the port records every pair that a spec adds:
``openstack-prep:SPEC~ADDRESS``, with ``_`` in place of the slash of a network, and ``~MAC`` behind it unless that is
the port's own. The tag is added before the pair and removed after it, so that the next run can complete the work of a
run that was killed.

Source: Networking API v2.0, "Allowed address pairs", "Standard attributes tag", and "Revisions" for
``If-Match: revision_number=N``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Set
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, Self
from urllib.parse import quote

import tenacity

from openstack_prep.base.errors import CloudError
from openstack_prep.base.fields import block
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import OwnershipTag, Resource
from openstack_prep.resources.lists.neutron_records import AddressPair, PortRecord
from openstack_prep.resources.network.port import ports_of

if TYPE_CHECKING:
    from openstack_prep.cloud.service import Service

RECORD = re.compile(r"(openstack-prep:.+?)~([0-9a-fA-F.:]+(?:_\d+)?)(?:~((?:[0-9a-f]{2}:){5}[0-9a-f]{2}))?")


class Pair(NamedTuple):
    """A pair of one port: an address or a network, and its MAC address if that is not the port's own."""

    block: str
    mac: str = ""

    @classmethod
    def of(cls, blocks: Iterable[str], mac: str | None, port: PortRecord) -> frozenset[Self]:
        """Return the pairs of addresses and networks with a MAC address, by default the port's own."""
        own = mac is None or mac.lower() == port.mac_address.lower()
        return frozenset(cls(each, "" if mac is None or own else mac.lower()) for each in blocks)

    @classmethod
    def read(cls, pair: AddressPair, port: PortRecord) -> Self:
        """Return a pair that Neutron reports of a port."""
        (found,) = cls.of([str(block(pair.ip_address))], pair.mac_address, port)
        return found

    def fields(self) -> dict[str, str]:
        """Return the pair as Neutron takes it."""
        return {"ip_address": self.block} | ({"mac_address": self.mac} if self.mac else {})

    def __str__(self) -> str:
        return f"{self.block} {self.mac}".rstrip()


def tag(ownership: OwnershipTag, pair: Pair) -> str:
    """Return the tag that records a pair."""
    return "~".join(filter(None, (ownership.tag, pair.block.replace("/", "_"), pair.mac)))


def recorded_pairs(ownership: OwnershipTag, port: PortRecord) -> frozenset[Pair]:
    """Return the pairs that the tags of a port record for this spec."""
    return frozenset(pair for spec, pair in _records(port) if spec == ownership.tag)


def has_tagged(run: CloudRun, project: Resource | None) -> bool:
    """Whether ports of a project have pairs that the spec manages."""
    return any(recorded_pairs(run.ownership, port) for port in ports_of(run, run.find_project_id(project)))


def shared_pairs(ownership: OwnershipTag, port: PortRecord) -> frozenset[Pair]:
    """Return the pairs that the tags of a port record for other specs."""
    return frozenset(pair for spec, pair in _records(port) if spec != ownership.tag)


def _records(port: PortRecord) -> Iterable[tuple[str, Pair]]:
    """Yield the tag of the spec and the pair of each record."""
    for found in filter(None, map(RECORD.fullmatch, port.tags)):
        try:
            address = str(block(found[2].replace("_", "/")))
        except ValueError:  # a tag of another kind
            continue
        yield found[1], Pair(address, found[3] or "")


@dataclass(frozen=True)
class Share:
    """The work of one resource on one port: the pairs to have there (``wanted``) and to remove (``stale``).

    ``mine`` are the recorded pairs, which destroy removes; a port that is no longer selected (``meant``) may still
    have some. A pair that another spec records, too, stays for that spec.
    """

    port: PortRecord
    ownership: OwnershipTag
    wanted: Set[Pair]
    stale: Set[Pair] = field(default_factory=frozenset)
    mine: Set[Pair] = field(default_factory=frozenset)
    meant: bool = True

    @property
    def missing(self) -> list[Pair]:
        """The wanted pairs that the port lacks."""
        return sorted(self.wanted - self._present)

    @property
    def unrecorded(self) -> list[Pair]:
        """The wanted pairs that need a record: missing ones, those that the port has for other specs alone, and those
        whose record is of version 0.2, which left the MAC address out.
        """
        recorded = recorded_pairs(self.ownership, self.port)
        former = {each for each in self.wanted if Pair(each.block) in recorded - self._present}
        return sorted({*self.missing, *(shared_pairs(self.ownership, self.port) & self.wanted), *former} - recorded)

    @property
    def lacking(self) -> list[Pair]:
        """The wanted pairs that the port lacks, or may lose when another spec no longer declares them."""
        return sorted({*self.missing, *self.unrecorded})

    @property
    def right(self) -> bool:
        return not self.lacking and not self.stale

    @property
    def going(self) -> list[Pair]:
        """The stale pairs that the port has."""
        return sorted(
            {
                Pair.read(allowed_address_pair, self.port)
                for allowed_address_pair in self.port.allowed_address_pairs
                if self._goes(allowed_address_pair)
            }
        )

    @property
    def staying(self) -> list[AddressPair]:
        """The pairs of the port that are not to be removed, and that the spec does not declare."""
        stays = (
            allowed_address_pair
            for allowed_address_pair in self.port.allowed_address_pairs
            if not self._goes(allowed_address_pair)
        )
        return [each for each in stays if Pair.read(each, self.port) not in self.wanted]

    def pairs(self) -> list[dict[str, str]]:
        """Return the desired pairs of the port; pairs of others keep their order."""
        kept = [
            asdict(allowed_address_pair)
            for allowed_address_pair in self.port.allowed_address_pairs
            if not self._goes(allowed_address_pair)
        ]
        return [*kept, *(each.fields() for each in self.missing)]

    @property
    def _present(self) -> frozenset[Pair]:
        return frozenset(
            Pair.read(allowed_address_pair, self.port) for allowed_address_pair in self.port.allowed_address_pairs
        )

    def _goes(self, pair: AddressPair) -> bool:
        """Whether a pair is to be removed: of two that differ in a /32 alone, that of the record."""
        found = Pair.read(pair, self.port)
        if found not in self.stale or found in shared_pairs(self.ownership, self.port):
            return False
        alike = [
            allowed_address_pair
            for allowed_address_pair in self.port.allowed_address_pairs
            if Pair.read(allowed_address_pair, self.port) == found
        ]
        return len(alike) == 1 or pair.ip_address == found.block


@dataclass(frozen=True)
class PortShares:
    """The work on each port that is selected or that has a record of these pairs."""

    shares: tuple[Share, ...] = ()


# --- updates ----------------------------------------------------------------------------------

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
    gone = {tag(ownership, pair) for pair in share.stale} & set(share.port.tags)
    if not gone:
        return share.port
    for text in sorted(gone):
        network.delete(f"{path}/tags/{quote(text, safe='')}")
    again = replace(share, port=_read(network, path)).going
    for pair in again:
        network.put(f"{path}/tags/{quote(tag(ownership, pair), safe='')}")
    gone -= {tag(ownership, pair) for pair in again}
    return replace(share.port, tags=tuple(each for each in share.port.tags if each not in gone))


def _add_records(network: Service, ownership: OwnershipTag, path: str, share: Share) -> Share:
    """Record the pairs to be added; this counts as a change of the port, and must be the only one."""
    fresh = [tag(ownership, pair) for pair in share.unrecorded]
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
    if pairs == [asdict(allowed_address_pair) for allowed_address_pair in share.port.allowed_address_pairs]:
        return share.port
    condition = {"If-Match": f"revision_number={share.port.revision_number}"}
    try:
        answer = network.put(path, {"port": {"allowed_address_pairs": pairs}}, headers=condition)
        return PortRecord.read(answer["port"])
    except CloudError as error:
        if error.status == 400 and "maximum" in str(error):
            number = f"{len(pairs)} pair{'s' if len(pairs) > 1 else ''}"
            blocks = f"the port would have {number}, for {', '.join(map(str, sorted(share.wanted)))}"
            raise CloudError(f"{error}: {blocks}; {_fewer(share)}", status=400) from error
        raise


def _fewer(share: Share) -> str:
    """Return what helps if a port would have too many pairs."""
    if any(pair.mac for pair in share.wanted):  # one per virtual machine, on each node however few there are
        fix = "attach fewer virtual machines, disable port security on these ports, which the owner of the network may"
    else:
        fix = "align ranges with networks (such as 10.0.0.192/27), allow the whole range of the Services"
    return f"{fix}, or have max_allowed_address_pair raised in Neutron"
