"""The addresses of a network that OpenStack does not know, and who has claimed which: pure.

Sources: IEEE 802c-2017 (of locally administered addresses, those whose second digit is 2 are for administrators);
kubemacpool v0.51.1, config/release/kubemacpool.yaml (RANGE_START, RANGE_END); OVN-Kubernetes, go-controller/pkg/util/
net.go (IPAddrToHWAddr: 0a:58, then the IPv4 address); Neutron, neutron/conf/common.py (base_mac fa:16:3e:00:00:00);
QEMU and libvirt (52:54:00); Docker, libnetwork netutils/utils_linux.go (genMAC: 02:42).
"""

from __future__ import annotations

import hashlib
import ipaddress
import itertools
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, Protocol, TypeAlias
from urllib.parse import quote

from annotated_types import Len

from openstack_prep.base import ranges
from openstack_prep.base.codes import Code
from openstack_prep.base.errors import PrepError
from openstack_prep.base.fields import Address, Cidr, Reads, Strict, mac
from openstack_prep.base.invalid import InvalidValue
from openstack_prep.base.multicast import PoolRange
from openstack_prep.base.ranges import AddressRange, Net, Range
from openstack_prep.core.resource import Coherent

# --- claim ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ClaimRequest:
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


def in_order(requests: Iterable[ClaimRequest]) -> list[ClaimRequest]:
    """Return requests with explicit addresses first, so that none of them is given to a name that takes any address."""
    return sorted(requests, key=lambda request: (request.address is None, request.name))


Outcomes: TypeAlias = Mapping[str, Claim | PrepError]
"""What each of several names holds by now, or the error of its claim."""


class Register(Protocol):
    """Who has which address.  Names are those of one spec; a register knows the spec that it works for."""

    def claim(self, requests: Sequence[ClaimRequest], foreign_macs: Collection[str] = ()) -> dict[str, Claim]:
        """Claim for all names or for none of them, and return what each holds by now.

        A name keeps what it holds, unless it asks for another address. ``foreign_macs`` are in use elsewhere. Raises
        ClaimRefused, with the holder's name.
        """
        ...

    def claim_each(self, requests: Sequence[ClaimRequest], foreign_macs: Collection[str] = ()) -> Outcomes:
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


# --- mac --------------------------------------------------------------------------------------


_FORM = "use one such as d2:00:00:00:00:00-d2:ff:ff:ff:ff:ff"


@dataclass(frozen=True, slots=True)
class MacRange:
    """All MAC addresses from the first to the last."""

    first: int
    last: int

    @classmethod
    def read(cls, text: str) -> MacRange:
        """Return the range that a text describes; raises InvalidValue."""
        try:
            first, last = (number_of(str(mac(part.strip()))) for part in text.split("-"))
        except ValueError:
            raise InvalidValue("is not a range of MAC addresses", _FORM) from None
        if first > last:
            raise InvalidValue("ends before it begins", "write the lower MAC address first")
        return cls(first, last)

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    def __contains__(self, number: int) -> bool:
        return self.first <= number <= self.last

    def overlaps(self, other: MacRange) -> bool:
        return self.first <= other.last and other.first <= self.last

    def __str__(self) -> str:
        return f"{text_of(self.first)}-{text_of(self.last)}"


def number_of(text: str) -> int:
    return int(text.replace(":", ""), 16)


def text_of(number: int) -> str:
    digits = f"{number:012x}"
    return ":".join(digits[each : each + 2] for each in range(0, 12, 2))


def _prefix(text: str) -> MacRange:
    missing = 6 - len(text.split(":"))
    return MacRange(number_of(text + ":00" * missing), number_of(text + ":ff" * missing))


DEFAULT_RANGE = "d2:00:00:00:00:00-d2:ff:ff:ff:ff:ff"
KUBEMACPOOL = "02:00:00:00:00:00-02:ff:ff:ff:ff:ff"
RESERVED = {
    "OVN-Kubernetes": _prefix("0a:58"),
    "Neutron (base_mac)": _prefix("fa:16:3e"),
    "QEMU and libvirt": _prefix("52:54:00"),
    "Docker": _prefix("02:42"),
}
"""Who else assigns locally administered MAC addresses, each without asking the others."""


def mac_range(value: object) -> object:
    """Read a range of MAC addresses, first-last."""
    return str(MacRange.read(value)) if isinstance(value, str) else value


def mac_range_or_none(value: object) -> object:
    """Read a range of MAC addresses, or false for none."""
    if value is not False and not isinstance(value, str):
        raise InvalidValue("is not a range of MAC addresses", f"{_FORM}, or false for none")
    return mac_range(value)


MacRangeText = Annotated[str, Reads(mac_range)]
MacRangeOrNone = Annotated[str | Literal[False], Reads(mac_range_or_none)]


def contradictions(macs: str, kubemacpool: str) -> Iterator[InvalidValue]:
    """Yield why MAC addresses cannot be taken from a range."""
    wanted, pool = MacRange.read(macs), MacRange.read(kubemacpool)
    octets = {each >> 40 for each in (wanted.first, wanted.last)}
    if any(octet & 0b11 != 0b10 for octet in octets) or len(octets) > 1:
        what = f"macs {macs} are not all locally administered unicast addresses with the same first octet"
        yield InvalidValue(what, f"the second digit is 2, 6, a or e; {_FORM}")
    if wanted.overlaps(pool):
        yield InvalidValue(f"macs {macs} overlap the range of kubemacpool {kubemacpool}", "choose another range")
    for who, reserved in RESERVED.items():
        if wanted.overlaps(reserved):
            yield InvalidValue(f"macs {macs} overlap {reserved} of {who}", "choose another range")


def refuse(mac: str, kubemacpool: str) -> str:
    """Return why an interface on a network with kubemacpool cannot have a MAC address; empty if it can."""
    if number_of(mac) >> 40 & 1:
        return "is a multicast address"
    return f"is in the range of kubemacpool {kubemacpool}" if number_of(mac) in MacRange.read(kubemacpool) else ""


def derive(macs: str, seed: str, taken: Container[str]) -> str | None:
    """Return the MAC address for a seed: the same each time, or the next one that is not taken; None if all are."""
    within = MacRange.read(macs)
    start = int.from_bytes(hashlib.sha256(seed.encode()).digest()) % within.size
    for step in range(within.size):
        found = text_of(within.first + (start + step) % within.size)
        if found not in taken:
            return found
    return None


# --- pool -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class PoolSettings(Strict, Coherent):
    """The network of a pool file, and what may be claimed."""

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
            yield from contradictions(self.macs, self.kubemacpool)

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
class PoolContent:
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

    def claim(self, spec: str, requests: Iterable[ClaimRequest], foreign_macs: Collection[str] = ()) -> PoolContent:
        """Return the pool with all these claims added, so that names may exchange addresses; raises ClaimRefused."""
        pool, refused = self.claim_each(spec, requests, foreign_macs, together=True)
        for error in refused.values():
            raise error
        return pool

    def claim_each(
        self, spec: str, requests: Iterable[ClaimRequest], foreign_macs: Collection[str] = (), *, together: bool = False
    ) -> tuple[PoolContent, dict[str, ClaimRefused]]:
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

    def release(self, spec: str, names: Iterable[str]) -> PoolContent:
        """Return the pool without these claims."""
        gone = {key_of(spec, each) for each in names}
        return replace(self, claims={key: each for key, each in self.claims.items() if key not in gone})

    def of_spec(self, spec: str) -> dict[str, Claim]:
        """Return the claims of one spec by name."""
        start = key_of(spec, "")
        return {key.removeprefix(start): each for key, each in self.claims.items() if key.startswith(start)}

    def without_spec(self, spec: str) -> PoolContent:
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
            if each.mac and (whose := refuse(each.mac, self.settings.kubemacpool)):
                yield key, f"MAC address {each.mac} {whose}", fix.replace("address", "MAC address")
            for what, value in (("address", each.address), ("MAC address", each.mac)):
                if value and value in first:
                    yield key, f"{what} {value} is also that of {first[value]}", fix.replace("address", what)
                elif value:
                    first[value] = key

    def _address(
        self, request: ClaimRequest, key: str, before: Claim | None, holders: Mapping[str, str], free: Iterator[str]
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
        found = derive(self.settings.macs, f"{self.id} {key}", taken)
        if found is None:
            raise ClaimRefused(f"{name}: pool {self.name} has no free MAC address; enlarge macs")
        return found


def key_of(spec: str, name: str) -> str:
    """Return the key of a claim: the words of the ownership tag, encoded as there."""
    return f"{quote(spec, safe='')}/{quote(name, safe='')}"
