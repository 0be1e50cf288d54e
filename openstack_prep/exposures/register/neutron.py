"""The register of a network in OpenStack: the ports of an address pool, whose descriptions name the exposures.

Source: Networking API v2.0, "Revisions" for ``If-Match: revision_number=N``: of two writers of one port one gets a 412.
"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TypeVar, cast

import tenacity

from openstack_prep.base.errors import CloudError, NotFound, PrepError
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.exposures.register import pool as macs
from openstack_prep.exposures.register.pool import (
    DEFAULT_RANGE,
    Claim,
    ClaimRefused,
    ClaimRequest,
    Outcomes,
    in_order,
    key_of,
)
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.lists.neutron_records import PortRecord
from openstack_prep.resources.network import port as ports
from openstack_prep.resources.network.reserved_ports import JOBS, PortClaim, claim_of, of_pool, write_claim

# --- choice -----------------------------------------------------------------------------------


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
        self._free = (port for port in self.ports if not (self.claims[port.id] or ports.use_of(port)))

    def decide(self, request: ClaimRequest) -> Claim | list[tuple[PortRecord, PortClaim | None]]:
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

    def _port(self, request: ClaimRequest, mine: Sequence[PortRecord]) -> PortRecord:
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
        if found not in mine and (claim or ports.use_of(found)):
            holder = f"claimed by exposure/{claim.exposure}" if claim else ports.use_of(found)
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


# --- neutron ----------------------------------------------------------------------------------


T = TypeVar("T")
ATTEMPTS = 20
"""How often the ports are read again after somebody else has changed one, because concurrent writers are normal."""
PAUSE = 0.5
"""Maximum delay before the second attempt, in seconds; doubled before each further attempt, up to eight."""


@dataclass(frozen=True, kw_only=True)
class NeutronRegister:
    """The claims of a spec on the ports of one of its address pools."""

    run: CloudRun
    project: Project | None
    """The project of the pool; None is that of the connection."""
    pool: str
    """Name of the address pool."""

    # --- reading: as the run has read the ports -------------------------------------------

    def held(self) -> Mapping[str, Claim]:
        return {claim.exposure: _as_claim(port, claim) for port, claim in reversed(self._claimed())}

    def holders(self) -> Mapping[str, str]:
        return {address_of(port): f"exposure/{claim.exposure}" for port, claim in self._claimed()}

    def _claimed(self) -> list[tuple[PortRecord, PortClaim]]:
        pairs = ((port, claim_of(port)) for port in self._own(self._known()))
        return [(port, claim) for port, claim in pairs if claim]

    def _known(self) -> Sequence[PortRecord]:
        return ports.ports_of(self.run, self.run.find_project_id(self.project))

    def _own(self, listed: Sequence[PortRecord]) -> list[PortRecord]:
        """Return the ports of the pool, the lowest address first."""
        own = of_pool(self.run.ownership, self.pool, listed)
        return sorted(own, key=lambda port: _number(address_of(port)))

    # --- writing: the ports are read again ------------------------------------------------

    def claim(self, requests: Sequence[ClaimRequest], foreign_macs: Collection[str] = ()) -> dict[str, Claim]:
        """Claim for all names, or for none; see ``Register``. Raises ClaimRefused, CloudError."""
        before = {claim.exposure for port in self._own(self._read()) if (claim := claim_of(port))}
        outcomes = self.claim_each(requests, foreign_macs)
        claims = {name: each for name, each in outcomes.items() if isinstance(each, Claim)}
        for error in (outcome for outcome in outcomes.values() if isinstance(outcome, PrepError)):
            self.release([name for name in claims if name not in before])
            raise error
        return claims

    def claim_each(self, requests: Sequence[ClaimRequest], foreign_macs: Collection[str] = ()) -> Outcomes:
        """Claim for each name; the ports are read before the writes, after them, and again after each conflict.

        A name has its claim once the ports show exactly this. Two runs may claim ports for one name at once, and both
        succeed. Then both see both ports: the lowest is kept.
        """
        outcomes: dict[str, Claim | PrepError] = {}
        try:
            self._again(partial(self._go_on, in_order(requests), foreign_macs, outcomes))
        except CloudError as error:
            return {request.name: error for request in requests} | outcomes
        return outcomes

    def _go_on(
        self, requests: Sequence[ClaimRequest], foreign_macs: Collection[str], outcomes: dict[str, Claim | PrepError]
    ) -> bool | None:
        """Do one step towards each claim without an outcome; return None to read the ports again."""
        listed = self._read()
        choice = Choice(self.pool, self._own(listed), listed, self._seed, foreign_macs)
        writes: dict[str, Sequence[tuple[PortRecord, PortClaim | None]]] = {}
        for each in (request for request in requests if request.name not in outcomes):
            try:
                decided = choice.decide(each)
            except ClaimRefused as error:
                outcomes[each.name] = error
                continue
            if isinstance(decided, Claim):
                outcomes[each.name] = decided
            else:
                writes[each.name] = decided
        errors = self._write_all(writes)
        outcomes |= {name: error for name, error in errors.items() if not _has_moved(error)}
        for conflict in filter(_has_moved, errors.values()):
            raise conflict
        return True if len(outcomes) == len({request.name for request in requests}) else None

    def release(self, names: Sequence[str]) -> None:
        """Release claims as the run has read them; if the ports differ by now, they are read again."""
        known = self._own(self._known())
        if {*names} <= {claim.exposure for port in known if (claim := claim_of(port))}:
            try:
                self._release(known, names)
            except CloudError as error:
                if not _has_moved(error):
                    raise
            else:
                return
        self._again(lambda: self._release(self._own(self._read()), names))

    def _release(self, listed: Sequence[PortRecord], names: Collection[str]) -> bool:
        """Release the claims that these ports record; raises CloudError."""
        held = {port.id: [(port, None)] for port in listed if (claim := claim_of(port)) and claim.exposure in names}
        for error in self._write_all(held).values():
            raise error
        return True

    def _read(self) -> Sequence[PortRecord]:
        return ports.ports_of(self.run.fresh(), self.run.find_project_id(self.project))

    def _seed(self, name: str) -> str:
        return f"{self.run.find_project_id(self.project)} {key_of(self.run.ownership.spec, name)}"

    def _write_all(self, writes: Mapping[str, Sequence[tuple[PortRecord, PortClaim | None]]]) -> dict[str, CloudError]:
        """Write claims, some in parallel, those of one key one after the other; return the error of each that failed.

        A claim is written only if its port has not changed since it was read.
        """
        network = self.run.creator_of(self.project)[0].network

        def write(those: Sequence[tuple[PortRecord, PortClaim | None]]) -> CloudError | None:
            try:
                for port, claim in those:
                    write_claim(network, self.run.ownership, self.pool, port, claim)
            except CloudError as error:
                return error
            return None

        with ThreadPoolExecutor(JOBS) as pool:
            found = dict(zip(writes, pool.map(write, writes.values()), strict=True))
        return {key: error for key, error in found.items() if error}

    def _again(self, act: Callable[[], T | None]) -> T:
        """Repeat a step until it has a result; a port that somebody else has changed or deleted is read again."""
        found = tenacity.Retrying(
            retry=tenacity.retry_if_result(lambda result: result is None) | tenacity.retry_if_exception(_has_moved),
            stop=tenacity.stop_after_attempt(ATTEMPTS),
            wait=_wait,
            retry_error_callback=_give_up,
        )(act)
        return cast(T, found)


def _wait(state: tenacity.RetryCallState) -> float:
    """Return the delay before the next attempt: none after a step that worked."""
    failed = state.outcome is not None and state.outcome.failed
    return float(tenacity.wait_random_exponential(PAUSE, max=8 * PAUSE)(state)) if failed else 0.0


def _give_up(state: tenacity.RetryCallState) -> object:
    assert state.outcome is not None
    if state.outcome.failed:
        state.outcome.result()
    raise CloudError("concurrent runs claim the same addresses all the time; run the command again", retryable=True)


def _has_moved(error: BaseException) -> bool:
    return isinstance(error, NotFound) or (isinstance(error, CloudError) and error.status == 412)


def _as_claim(port: PortRecord, claim: PortClaim) -> Claim:
    return Claim(address=address_of(port), mac=claim.mac)


def _number(address: str) -> tuple[int, int]:
    found = ipaddress.ip_address(address)
    return found.version, int(found)
