"""The protocol of a register: a name claims an address, and perhaps a MAC address, until it is released."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from openstack_prep.base.codes import Code
from openstack_prep.base.errors import PrepError


@dataclass(frozen=True, kw_only=True)
class Request:
    """What one name asks for: an address, by default the next free one, and perhaps a MAC address."""

    name: str
    address: str | None = None
    mac: bool = False


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What one name holds."""

    address: str
    mac: str | None = None


class ClaimRefused(PrepError):
    """An address or MAC address cannot be claimed: somebody else holds it, it is not in the pool, or none is free."""

    code = Code.ADDRESS_IN_USE


def in_order(requests: Iterable[Request]) -> list[Request]:
    """Return requests with explicit addresses first, so that none of them is given to a name that takes any address."""
    return sorted(requests, key=lambda request: (request.address is None, request.name))


Outcomes: TypeAlias = Mapping[str, Claim | PrepError]
"""What each of several names holds by now, or the error of its claim."""


class Register(Protocol):
    """Who has which address.  Names are those of one spec; a register knows the spec that it works for."""

    def claim(self, requests: Sequence[Request], foreign_macs: Collection[str] = ()) -> dict[str, Claim]:
        """Claim for all names or for none of them, and return what each holds by now.

        A name keeps what it holds, unless it asks for another address. ``foreign_macs`` are in use elsewhere. Raises
        ClaimRefused, with the holder's name.
        """
        ...

    def claim_each(self, requests: Sequence[Request], foreign_macs: Collection[str] = ()) -> Outcomes:
        """Claim as ``claim`` does, but each name for itself: return its claim, or why it got none.

        The register is read a few times, however many names there are. Raises PrepError if it cannot be read.
        """
        ...

    def release(self, names: Sequence[str]) -> None:
        """Release what these names hold; names without a claim are released already."""
        ...

    def held(self) -> Mapping[str, Claim]:
        """Return what the names of this spec hold."""
        ...

    def holders(self) -> Mapping[str, str]:
        """Return who holds each address that is claimed, of all specs, as people read it."""
        ...
