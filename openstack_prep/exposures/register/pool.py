"""The addresses of a network that OpenStack does not know, and who has claimed which: pure."""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar
from urllib.parse import quote

from annotated_types import Len

from openstack_prep.base import ranges
from openstack_prep.base.fields import Address, Cidr
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.multicast import PoolRange
from openstack_prep.base.ranges import AddressRange, Net, Range
from openstack_prep.core.resource import Coherent
from openstack_prep.exposures.register import macs
from openstack_prep.exposures.register.claims import Claim, ClaimRefused, Request, in_order
from openstack_prep.exposures.register.macs import DEFAULT_RANGE, KUBEMACPOOL, MacRangeOrNone, MacRangeText

STRICT = {"extra": "forbid", "strict": True}


@dataclass(frozen=True, kw_only=True)
class PoolSettings(Coherent):
    """The network of a pool file, and what may be claimed."""

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    cidr: Cidr
    """The network."""
    gateway: Address | None = None
    """The network's gateway, which nobody can claim."""
    addresses: Annotated[tuple[PoolRange, ...], Len(1)]
    """Addresses to claim: ranges such as 192.0.2.100-192.0.2.149, networks such as 192.0.2.96/28, or single addresses.
    """
    exclude: tuple[AddressRange, ...] = ()
    """Addresses of these that nobody can claim, because something else has them."""
    macs: MacRangeOrNone = DEFAULT_RANGE
    """Range of MAC addresses to claim, locally administered, with the same first octet; false: none. Use ranges that
    do not overlap for pool files of one network.
    """
    kubemacpool: MacRangeText = KUBEMACPOOL
    """The range of the kubemacpool on this network, which must not overlap; default: that of kubemacpool v0.51."""

    @property
    def network(self) -> Net:
        return ipaddress.ip_network(self.cidr)

    def contradictions(self) -> Iterator[InvalidValue]:
        whole = Range.of(self.network)
        if self.gateway and ipaddress.ip_address(self.gateway) not in whole:
            yield InvalidValue(f"gateway {self.gateway} is outside {self.cidr}", "choose an address inside")
        for name, texts in (("addresses", self.addresses), ("exclude", self.exclude)):
            for each in ranges.read(texts):
                if each.first not in whole or each.last not in whole:
                    yield InvalidValue(f"{name}: {each} is outside {self.cidr}", "choose addresses inside")
        if not any(True for _ in self.free(())):
            yield InvalidValue("addresses: none of them can be claimed", "add addresses, or exclude fewer")
        if self.macs:
            yield from macs.contradictions(self.macs, self.kubemacpool)

    def free(self, taken: Iterable[str]) -> Iterator[str]:
        """Yield the addresses that can be claimed, lowest first."""
        return map(str, itertools.chain.from_iterable(self.claimable(taken)))

    def claimable(self, taken: Iterable[str] = ()) -> list[Range]:
        """Return the ranges of addresses that can be claimed."""
        holes = [*ranges.read((*self.exclude, *taken)), *(each for each, _ in self._special())]
        return [*ranges.without(ranges.read(self.addresses), holes)]

    def refuse(self, address: str) -> str:
        """Return why nobody can claim an address; empty if it can be claimed."""
        found = ipaddress.ip_address(address)
        for special, whose in self._special():
            if found in special:
                return f"is {whose} of {self.cidr}"
        if any(found in each for each in ranges.read(self.exclude)):
            return "is excluded"
        if not any(found in each for each in ranges.read(self.addresses)):
            return f"is not one of its addresses {', '.join(self.addresses)}"
        return ""

    def _special(self) -> Iterator[tuple[Range, str]]:
        network = self.network
        if self.gateway:
            yield Range.read(self.gateway), "the gateway"
        if network.num_addresses > 2:
            yield Range(network[0], network[0]), "the network's own address"
            if network.version == 4:
                yield Range(network[-1], network[-1]), "the broadcast address"


@dataclass(frozen=True, kw_only=True)
class Pool:
    """The content of a pool file.

    ``id`` is random and distinguishes pool files, so that a name gets a different MAC address from each. ``users`` are
    the specs that use the file, with the id of the project of each. Keys of ``claims`` are SPEC/NAME; a key without a
    slash is a claim that a person has added for something else.
    """

    name: str
    id: str
    settings: PoolSettings
    users: Mapping[str, str] = field(default_factory=dict)
    claims: Mapping[str, Claim] = field(default_factory=dict)

    def claim(self, spec: str, requests: Iterable[Request], foreign_macs: Collection[str] = ()) -> Pool:
        """Return the pool with all these claims added, so that names may exchange addresses; raises ClaimRefused."""
        pool, refused = self.claim_each(spec, requests, foreign_macs, together=True)
        for error in refused.values():
            raise error
        return pool

    def claim_each(
        self, spec: str, requests: Iterable[Request], foreign_macs: Collection[str] = (), *, together: bool = False
    ) -> tuple[Pool, dict[str, ClaimRefused]]:
        """Return the pool with the claims that are possible, and why each of the other names gets none.

        With ``together`` each name may ask for the address that another of them leaves.
        """
        requests = in_order(requests)
        claims, refused = dict(self.claims), dict[str, ClaimRefused]()
        moving = {key_of(spec, each.name) for each in requests if each.address} if together else set()
        holders = {each.address: key for key, each in claims.items() if key not in moving}
        taken = {each.mac for each in claims.values() if each.mac} | {*foreign_macs}
        free = self.settings.free(holders)
        for each in requests:
            key = key_of(spec, each.name)
            before = claims.get(key)
            try:
                address = self._address(each, key, before, holders, free)
                mac = before.mac if before else None
                mac = self._mac(key, each.name, taken) if each.mac and mac is None else mac
            except ClaimRefused as error:
                refused[each.name] = error
                continue
            if before and holders.get(before.address) == key:
                del holders[before.address]
            holders[address] = key
            taken |= {mac} if mac else set()
            claims[key] = Claim(address=address, mac=mac)
        return replace(self, claims=claims), refused

    def release(self, spec: str, names: Iterable[str]) -> Pool:
        """Return the pool without these claims."""
        gone = {key_of(spec, each) for each in names}
        return replace(self, claims={key: each for key, each in self.claims.items() if key not in gone})

    def of_spec(self, spec: str) -> dict[str, Claim]:
        """Return the claims of one spec by name."""
        start = key_of(spec, "")
        return {key.removeprefix(start): each for key, each in self.claims.items() if key.startswith(start)}

    def without_spec(self, spec: str) -> Pool:
        """Return the pool without everything of one spec."""
        users = {each: project for each, project in self.users.items() if each != spec}
        return replace(self.release(spec, self.of_spec(spec)), users=users)

    def mistakes(self) -> Iterator[tuple[str, str, str]]:
        """Yield claims that contradict the settings or one another: the key, what is wrong, and the fix."""
        first: dict[str, str] = {}
        for key, each in self.claims.items():
            fix = "remove the claim; the next apply of its spec gets another address"
            if why := self.settings.refuse(each.address):
                yield key, f"address {each.address} {why}", fix
            if each.mac and (whose := macs.refuse(each.mac, self.settings.kubemacpool)):
                yield key, f"MAC address {each.mac} {whose}", fix.replace("address", "MAC address")
            for what, value in (("address", each.address), ("MAC address", each.mac)):
                if value and value in first:
                    yield key, f"{what} {value} is also that of {first[value]}", fix.replace("address", what)
                elif value:
                    first[value] = key

    def _address(
        self, request: Request, key: str, before: Claim | None, holders: Mapping[str, str], free: Iterator[str]
    ) -> str:
        if request.address is None:
            found = before.address if before else next((each for each in free if each not in holders), None)
            if found is None:
                raise ClaimRefused(f"{request.name}: pool {self.name} has no free address; add addresses to it")
            return found
        address = str(ipaddress.ip_address(request.address))
        holder = holders.get(address, key)
        if holder != key:
            raise ClaimRefused(f"{request.name}: {address} is claimed by {holder} in pool {self.name}; choose another")
        if why := self.settings.refuse(address):
            raise ClaimRefused(f"{request.name}: {address} {why} in pool {self.name}; choose another")
        return address

    def _mac(self, key: str, name: str, taken: Collection[str]) -> str:
        if not self.settings.macs:
            raise ClaimRefused(f"{name}: pool {self.name} has no MAC addresses (macs: false); set macs to a range")
        found = macs.derive(self.settings.macs, f"{self.id} {key}", taken)
        if found is None:
            raise ClaimRefused(f"{name}: pool {self.name} has no free MAC address; enlarge macs")
        return found


def key_of(spec: str, name: str) -> str:
    """Return the key of a claim: the words of the ownership tag, encoded as there."""
    return f"{quote(spec, safe='')}/{quote(name, safe='')}"
