"""The register of a network in OpenStack: the ports of an address pool, whose descriptions name the exposures.

Source: Networking API v2.0, "Revisions" for ``If-Match: revision_number=N``: of two writers of one port one gets a 412.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar, cast

import tenacity

from openstack_prep.base.errors import CloudError, NotFound
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.exposures.register import macs
from openstack_prep.exposures.register.claims import Claim, ClaimRefused, Request
from openstack_prep.exposures.register.macs import DEFAULT_RANGE
from openstack_prep.exposures.register.pool import key_of
from openstack_prep.resources.identity.project import Project
from openstack_prep.resources.lists.neutron_records import PortRecord
from openstack_prep.resources.network import port as ports
from openstack_prep.resources.network.reserved_ports import PortClaim, claim_of, use_of, write_claim

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
        return {_address(port): f"exposure/{claim.exposure}" for port, claim in self._claimed()}

    def free(self) -> list[str]:
        """Return the addresses that nobody has claimed, as far as they are reserved already."""
        return [_address(port) for port in self._own(self._known()) if _is_free(port)]

    def _claimed(self) -> list[tuple[PortRecord, PortClaim]]:
        pairs = ((port, claim_of(port)) for port in self._own(self._known()))
        return [(port, claim) for port, claim in pairs if claim]

    def _known(self) -> Sequence[PortRecord]:
        return ports.ports_of(self.run, self.run.find_project_id(self.project))

    def _own(self, listed: Sequence[PortRecord]) -> list[PortRecord]:
        """Return the ports of the pool, the lowest address first."""
        own = [each for each in listed if self.run.ownership.owns(each.description, self.pool) and each.fixed_ips]
        return sorted(own, key=lambda port: _number(_address(port)))

    # --- writing: the ports are read again ------------------------------------------------

    def claim(self, requests: Sequence[Request], foreign_macs: Collection[str] = ()) -> dict[str, Claim]:
        """Claim for all names, or for none; see ``Register``. Raises ClaimRefused, CloudError."""
        before = {claim.exposure for port in self._read() if (claim := claim_of(port))}
        found: dict[str, Claim] = {}
        try:
            for each in sorted(requests, key=lambda request: (request.address is None, request.name)):
                found[each.name] = self._again(partial(self._claim, each, foreign_macs))
        except ClaimRefused:
            self.release([name for name in found if name not in before])
            raise
        return found

    def release(self, names: Sequence[str]) -> None:
        self._again(partial(self._release, frozenset(names)))

    def _read(self) -> list[PortRecord]:
        return self._own(ports.ports_of(self.run.fresh(), self.run.find_project_id(self.project)))

    def _claim(self, request: Request, foreign_macs: Collection[str]) -> Claim | None:
        """Do one step towards the claim; return it once the ports show exactly this, None to read them again.

        Two runs may claim ports for one name at once, and both succeed. Then both see both ports: the lowest is kept.
        """
        listed = self._read()
        mine = [port for port in listed if (claim := claim_of(port)) and claim.exposure == request.name]
        port = self._choose(request, listed, mine)
        claim = claim_of(port) if port in mine else None
        if claim and (claim.mac or not request.mac) and len(mine) == 1:
            return _as_claim(port, claim)
        if claim is None or (request.mac and not claim.mac):
            mac = next((each.mac for each in map(claim_of, mine) if each and each.mac), None)
            if request.mac and mac is None:
                mac = self._mac(request.name, foreign_macs)
            self._write(port, PortClaim(request.name, mac))
        for other in mine:
            if other is not port:
                self._write(other, None)
        return None

    def _choose(self, request: Request, listed: Sequence[PortRecord], mine: Sequence[PortRecord]) -> PortRecord:
        if request.address is None:
            found = next(iter(mine), None) or next(filter(_is_free, listed), None)
            if found is None:
                raise ClaimRefused(f"{request.name}: address_pool/{self.pool} has no free address; add addresses to it")
            return found
        address = str(ipaddress.ip_address(request.address))
        found = next((port for port in listed if _address(port) == address), None)
        if found is None:
            raise ClaimRefused(f"{request.name}: {address} is not in address_pool/{self.pool}; choose another")
        if found not in mine and not _is_free(found):
            claim = claim_of(found)
            holder = f"claimed by exposure/{claim.exposure}" if claim else use_of(found)
            raise ClaimRefused(f"{request.name}: {address} of address_pool/{self.pool} is {holder}; choose another")
        return found

    def _mac(self, name: str, foreign_macs: Collection[str]) -> str:
        """Return a MAC address that no port has, no pair and no other claim, as far as this project shows them."""
        project_id = self.run.find_project_id(self.project)
        taken = {*foreign_macs}
        for port in ports.ports_of(self.run.fresh(), project_id):
            taken |= {port.mac_address, *(pair.mac_address for pair in port.allowed_address_pairs)}
            taken |= {claim.mac for claim in (claim_of(port),) if claim and claim.mac}
        found = macs.derive(DEFAULT_RANGE, f"{project_id} {key_of(self.run.ownership.spec, name)}", taken)
        assert found is not None  # a range of 2**40
        return found

    def _release(self, names: Collection[str]) -> bool:
        for port in self._read():
            claim = claim_of(port)
            if claim and claim.exposure in names:
                self._write(port, None)
        return True

    def _write(self, port: PortRecord, claim: PortClaim | None) -> None:
        network = self.run.creator_of(self.project)[0].network
        write_claim(network, self.run.ownership, self.pool, port, claim)

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


def _is_free(port: PortRecord) -> bool:
    return not (claim_of(port) or use_of(port))


def _as_claim(port: PortRecord, claim: PortClaim) -> Claim:
    return Claim(address=_address(port), mac=claim.mac)


def _address(port: PortRecord) -> str:
    return port.fixed_ips[0].ip_address


def _number(address: str) -> tuple[int, int]:
    found = ipaddress.ip_address(address)
    return found.version, int(found)
