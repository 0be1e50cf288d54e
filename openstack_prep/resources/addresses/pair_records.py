"""Address pairs of a port as we find them, and the record of those that are ours: pure.

Neutron's pairs carry no mark, so a tag of the port tells of each that we put there:
``openstack-prep:SPEC~ADDRESS``, with ``_`` for the slash of a network.  The tag comes before the pair and
goes after it, so that a run that was killed in between is gone on with.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import asdict, dataclass, field

from openstack_prep.base.fields import block
from openstack_prep.core.model import Mark
from openstack_prep.resources.lists.neutron_records import AddressPair, PortRecord


def tag(mark: Mark, address: str) -> str:
    """Return the tag that says that a pair of this address or network is ours."""
    return f"{mark.tag}~{address.replace('/', '_')}"


def recorded(mark: Mark, port: PortRecord) -> frozenset[str]:
    """Return the addresses and networks that a port's tags say are ours."""
    start = f"{mark.tag}~"
    texts = (each.removeprefix(start).replace("_", "/") for each in port.tags if each.startswith(start))
    return frozenset(filter(None, map(_block, texts)))


def _block(text: str) -> str | None:
    try:
        return str(block(text))
    except ValueError:  # the tag of a spec whose name begins as ours
        return None


@dataclass(frozen=True)
class Share:
    """What one resource has to do with one port: the blocks ``wanted`` there, and those to be rid of, ``stale``.

    ``mine`` are recorded ones, which go when the resource is destroyed; a port that is not ``meant`` any more
    may bear some.  A block is an address or a network.
    """

    port: PortRecord
    wanted: Set[str]
    mac: str | None = None
    stale: Set[str] = field(default_factory=frozenset)
    mine: Set[str] = field(default_factory=frozenset)
    meant: bool = True

    @property
    def missing(self) -> list[str]:
        """The wanted blocks that are not there."""
        mac = self.mac or self.port.mac_address.lower()
        there = {_pair(each) for each in self.port.allowed_address_pairs}
        return sorted(each for each in self.wanted if (each, mac) not in there)

    @property
    def right(self) -> bool:
        return not self.missing and not self.stale

    @property
    def going(self) -> list[str]:
        """The stale blocks that are there."""
        return sorted({_pair(each)[0] for each in self.port.allowed_address_pairs if self._goes(each)})

    def pairs(self) -> list[dict[str, str]]:
        """Return the port's pairs as they should be; those of others stay, in their order."""
        kept = [asdict(each) for each in self.port.allowed_address_pairs if not self._goes(each)]
        given = {"mac_address": self.mac} if self.mac else {}
        return [*kept, *({"ip_address": each, **given} for each in self.missing)]

    def _goes(self, pair: AddressPair) -> bool:
        address, mac = _pair(pair)
        return address in self.stale and mac in (self.mac, self.port.mac_address.lower())


def _pair(pair: AddressPair) -> tuple[str, str]:
    return str(block(pair.ip_address)), pair.mac_address.lower()


@dataclass(frozen=True)
class PortShares:
    """What there is to do with each port that is meant, or that bears a record of these pairs."""

    shares: tuple[Share, ...] = ()
