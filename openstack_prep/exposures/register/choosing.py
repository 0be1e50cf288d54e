"""Which ports of an address pool names claim, judged by one reading of the project's ports: pure."""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from openstack_prep.exposures.register import macs
from openstack_prep.exposures.register.claims import Claim, ClaimRefused, Request
from openstack_prep.exposures.register.macs import DEFAULT_RANGE
from openstack_prep.resources.lists.neutron_records import PortRecord
from openstack_prep.resources.network.reserved_ports import PortClaim, claim_of, use_of


@dataclass
class Choice:
    """The ports of a pool and their claims; what one name is to get is taken for the next one."""

    pool: str
    ports: Sequence[PortRecord]
    """Those of the pool, the lowest address first."""
    all_ports: Sequence[PortRecord]
    """Those of the project, for their MAC addresses."""
    seed: Callable[[str], str]
    """Returns what the MAC address of a name is derived from."""
    foreign_macs: Collection[str] = ()
    claims: dict[str, PortClaim | None] = field(init=False)
    _mine: dict[str, list[PortRecord]] = field(init=False)
    _free: Iterator[PortRecord] = field(init=False)

    def __post_init__(self) -> None:
        self.claims = {port.id: claim_of(port) for port in self.ports}
        self._mine = defaultdict(list)
        for port in self.ports:
            if claim := self.claims[port.id]:
                self._mine[claim.exposure].append(port)
        self._free = (port for port in self.ports if not (self.claims[port.id] or use_of(port)))

    def decide(self, request: Request) -> Claim | list[tuple[PortRecord, PortClaim | None]]:
        """Return what a name holds, or the claims to write for it in their order; raises ClaimRefused."""
        mine = self._mine.get(request.name, [])
        port = self._port(request, mine)
        claim = self.claims[port.id] if port in mine else None
        if claim and (claim.mac or not request.mac) and len(mine) == 1:
            return Claim(address=address_of(port), mac=claim.mac)
        writes: list[tuple[PortRecord, PortClaim | None]] = []
        if claim is None or (request.mac and not claim.mac):
            mac = next((held.mac for each in mine if (held := self.claims[each.id]) and held.mac), None)
            if request.mac and mac is None:
                mac = self._mac(request.name)
            self.claims[port.id] = PortClaim(request.name, mac)
            writes.append((port, self.claims[port.id]))
        return [*writes, *((other, None) for other in mine if other is not port)]

    def _port(self, request: Request, mine: Sequence[PortRecord]) -> PortRecord:
        if request.address is None:
            found = next(iter(mine), None) or next(self._free, None)
            if found is None:
                raise ClaimRefused(f"{request.name}: address_pool/{self.pool} has no free address; add addresses to it")
            return found
        address = str(ipaddress.ip_address(request.address))
        found = self._by_address.get(address)
        if found is None:
            raise ClaimRefused(f"{request.name}: {address} is not in address_pool/{self.pool}; choose another")
        claim = self.claims[found.id]
        if found not in mine and (claim or use_of(found)):
            holder = f"claimed by exposure/{claim.exposure}" if claim else use_of(found)
            raise ClaimRefused(f"{request.name}: {address} of address_pool/{self.pool} is {holder}; choose another")
        return found

    @cached_property
    def _by_address(self) -> dict[str, PortRecord]:
        return {address_of(port): port for port in reversed(self.ports)}

    def _mac(self, name: str) -> str:
        """Return a MAC address that no port has, no pair and no other claim, as far as this project shows them."""
        found = macs.derive(DEFAULT_RANGE, self.seed(name), self._taken)
        assert found is not None  # a range of 2**40
        self._taken.add(found)
        return found

    @cached_property
    def _taken(self) -> set[str]:
        taken = {*self.foreign_macs}
        for port in self.all_ports:
            taken |= {port.mac_address, *(pair.mac_address for pair in port.allowed_address_pairs)}
            taken |= {claim.mac for claim in (claim_of(port),) if claim and claim.mac}
        return taken


def address_of(port: PortRecord) -> str:
    return port.fixed_ips[0].ip_address
