"""The address pairs of a port, and the records of the pairs that a spec manages; pure functions.

Neutron's pairs cannot carry an ownership tag, so a tag of the port records every pair that a spec adds:
``openstack-prep:SPEC~ADDRESS``, with ``_`` in place of the slash of a network, and ``~MAC`` behind it unless that is
the port's own. The tag is added before the pair and removed after it, so that the next run can complete the work of a
run that was killed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from dataclasses import asdict, dataclass, field

from openstack_prep.base.fields import block
from openstack_prep.core.model import OwnershipTag
from openstack_prep.resources.lists.neutron_records import AddressPair, PortRecord

RECORD = re.compile(r"(openstack-prep:.+?)~([0-9a-fA-F.:]+(?:_\d+)?)(?:~((?:[0-9a-f]{2}:){5}[0-9a-f]{2}))?")


def with_mac(blocks: Iterable[str], mac: str | None, port: PortRecord) -> frozenset[str]:
    """Return the pairs of addresses and networks with a MAC address on a port, as the records name them."""
    if mac is None or mac.lower() == port.mac_address.lower():
        return frozenset(blocks)
    return frozenset(f"{each} {mac.lower()}" for each in blocks)


def block_of(pair: str) -> str:
    """Return the address or network of a pair, without its MAC address."""
    return pair.partition(" ")[0]


def tag(ownership: OwnershipTag, pair: str) -> str:
    """Return the tag that records a pair."""
    return f"{ownership.tag}~{pair.replace('/', '_').replace(' ', '~')}"


def recorded_pairs(ownership: OwnershipTag, port: PortRecord) -> frozenset[str]:
    """Return the pairs that the tags of a port record for this spec."""
    return frozenset(pair for spec, pair in _records(port) if spec == ownership.tag)


def shared_pairs(ownership: OwnershipTag, port: PortRecord) -> frozenset[str]:
    """Return the pairs that the tags of a port record for other specs."""
    return frozenset(pair for spec, pair in _records(port) if spec != ownership.tag)


def named(pair: AddressPair, port: PortRecord) -> str:
    """Return a pair of a port as the records name it."""
    (found,) = with_mac([str(block(pair.ip_address))], pair.mac_address, port)
    return found


def _records(port: PortRecord) -> Iterable[tuple[str, str]]:
    """Yield the tag of the spec and the pair of each record."""
    for found in filter(None, map(RECORD.fullmatch, port.tags)):
        try:
            address = str(block(found[2].replace("_", "/")))
        except ValueError:  # a tag of another kind
            continue
        yield found[1], f"{address} {found[3]}" if found[3] else address


@dataclass(frozen=True)
class Share:
    """The work of one resource on one port: the pairs to have there (``wanted``) and to remove (``stale``).

    ``mine`` are the recorded pairs, which destroy removes; a port that is no longer selected (``meant``) may still
    have some. A pair is an address or a network, with a MAC address behind it unless that is the port's own. A pair
    that another spec records, too, stays for that spec.
    """

    port: PortRecord
    ownership: OwnershipTag
    wanted: Set[str]
    stale: Set[str] = field(default_factory=frozenset)
    mine: Set[str] = field(default_factory=frozenset)
    meant: bool = True

    @property
    def missing(self) -> list[str]:
        """The wanted pairs that the port lacks."""
        return sorted(self.wanted - self._present)

    @property
    def unrecorded(self) -> list[str]:
        """The wanted pairs that need a record: missing ones, those that the port has for other specs alone, and those
        whose record is of version 0.2, which left the MAC address out.
        """
        recorded = recorded_pairs(self.ownership, self.port)
        former = {each for each in self.wanted if block_of(each) in recorded - self._present}
        return sorted({*self.missing, *(shared_pairs(self.ownership, self.port) & self.wanted), *former} - recorded)

    @property
    def lacking(self) -> list[str]:
        """The wanted pairs that the port lacks, or may lose when another spec no longer declares them."""
        return sorted({*self.missing, *self.unrecorded})

    @property
    def right(self) -> bool:
        return not self.lacking and not self.stale

    @property
    def going(self) -> list[str]:
        """The stale pairs that the port has."""
        return sorted({named(each, self.port) for each in self.port.allowed_address_pairs if self._goes(each)})

    @property
    def staying(self) -> list[AddressPair]:
        """The pairs of the port that are not to be removed, and that the spec does not declare."""
        stays = (each for each in self.port.allowed_address_pairs if not self._goes(each))
        return [each for each in stays if named(each, self.port) not in self.wanted]

    def pairs(self) -> list[dict[str, str]]:
        """Return the desired pairs of the port; pairs of others keep their order."""
        kept = [asdict(each) for each in self.port.allowed_address_pairs if not self._goes(each)]
        new = (each.partition(" ") for each in self.missing)
        return [*kept, *({"ip_address": each} | ({"mac_address": mac} if mac else {}) for each, _, mac in new)]

    @property
    def _present(self) -> frozenset[str]:
        return frozenset(named(each, self.port) for each in self.port.allowed_address_pairs)

    def _goes(self, pair: AddressPair) -> bool:
        name = named(pair, self.port)
        return name in self.stale and name not in shared_pairs(self.ownership, self.port)


@dataclass(frozen=True)
class PortShares:
    """The work on each port that is selected or that has a record of these pairs."""

    shares: tuple[Share, ...] = ()
