"""The address pairs of a port, and the records of the pairs that a spec manages; pure functions.

Neutron's pairs cannot carry an ownership tag, so a tag of the port records every pair that a spec adds:
``openstack-prep:SPEC~ADDRESS``, with ``_`` in place of the slash of a network. The tag is added before the pair and
removed after it, so that the next run can complete the work of a run that was killed.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import asdict, dataclass, field

from openstack_prep.base.fields import block
from openstack_prep.core.model import OwnershipTag
from openstack_prep.resources.lists.neutron_records import AddressPair, PortRecord

PREFIX = "openstack-prep:"


def tag(ownership: OwnershipTag, address: str) -> str:
    """Return the tag that records a pair with this address or network."""
    return f"{ownership.tag}~{address.replace('/', '_')}"


def recorded_pairs(ownership: OwnershipTag, port: PortRecord) -> frozenset[str]:
    """Return the addresses and networks that the tags of a port record for this spec."""
    start = f"{ownership.tag}~"
    texts = (each.removeprefix(start).replace("_", "/") for each in port.tags if each.startswith(start))
    return frozenset(filter(None, map(_block, texts)))


def shared_pairs(ownership: OwnershipTag, port: PortRecord) -> frozenset[str]:
    """Return the addresses and networks that the tags of a port record for other specs."""
    texts = (each.rpartition("~") for each in port.tags if each.startswith(PREFIX))
    return frozenset(filter(None, (_block(text.replace("_", "/")) for spec, _, text in texts if spec != ownership.tag)))


def _block(text: str) -> str | None:
    try:
        return str(block(text))
    except ValueError:  # the tag of a spec whose name begins with our name
        return None


@dataclass(frozen=True)
class Share:
    """The work of one resource on one port: the blocks to have there (``wanted``) and to remove (``stale``).

    ``mine`` are the recorded blocks, which destroy removes; a port that is no longer selected (``meant``) may still
    have some. A block is an address or a network. A pair that another spec records, too, stays for that spec.
    """

    port: PortRecord
    ownership: OwnershipTag
    wanted: Set[str]
    mac: str | None = None
    stale: Set[str] = field(default_factory=frozenset)
    mine: Set[str] = field(default_factory=frozenset)
    meant: bool = True

    @property
    def missing(self) -> list[str]:
        """The wanted blocks that the port lacks."""
        mac = self.mac or self.port.mac_address.lower()
        present = {_pair(each) for each in self.port.allowed_address_pairs}
        return sorted(each for each in self.wanted if (each, mac) not in present)

    @property
    def unrecorded(self) -> list[str]:
        """The wanted blocks that need a record: missing ones, and those that the port has for other specs alone."""
        needed = {*self.missing, *(shared_pairs(self.ownership, self.port) & self.wanted)}
        return sorted(needed - recorded_pairs(self.ownership, self.port)) if needed else []

    @property
    def lacking(self) -> list[str]:
        """The wanted blocks that the port lacks, or may lose when another spec no longer declares them."""
        return sorted({*self.missing, *self.unrecorded})

    @property
    def right(self) -> bool:
        return not self.lacking and not self.stale

    @property
    def going(self) -> list[str]:
        """The stale blocks that the port has."""
        return sorted({_pair(each)[0] for each in self.port.allowed_address_pairs if self._goes(each)})

    def pairs(self) -> list[dict[str, str]]:
        """Return the desired pairs of the port; pairs of others keep their order."""
        kept = [asdict(each) for each in self.port.allowed_address_pairs if not self._goes(each)]
        given = {"mac_address": self.mac} if self.mac else {}
        return [*kept, *({"ip_address": each, **given} for each in self.missing)]

    def _goes(self, pair: AddressPair) -> bool:
        address, mac = _pair(pair)
        ours = address in self.stale and mac in (self.mac, self.port.mac_address.lower())
        return ours and address not in shared_pairs(self.ownership, self.port)


def _pair(pair: AddressPair) -> tuple[str, str]:
    return str(block(pair.ip_address)), pair.mac_address.lower()


@dataclass(frozen=True)
class PortShares:
    """The work on each port that is selected or that has a record of these pairs."""

    shares: tuple[Share, ...] = ()
