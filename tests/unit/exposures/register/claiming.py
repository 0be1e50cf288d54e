"""One claim, for tests."""

from __future__ import annotations

from openstack_prep.exposures.register.pool import Claim, ClaimRequest, Register


def claim_one(register: Register, name: str, address: str | None = None, *, mac: bool = False) -> Claim:
    """Claim an address for one name, by default the one that it holds or the next free one."""
    return register.claim([ClaimRequest(name=name, address=address, mac=mac)])[name]
