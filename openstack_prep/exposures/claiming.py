"""Claims of several exposures at once: the first step of a run that needs one claims for all of its pool."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from openstack_prep.base.errors import NotFound, PrepError
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.exposures.neighbours import ExposureFields, ExposureNeighbours, Pool, register_of
from openstack_prep.exposures.pool_file import PoolFile
from openstack_prep.exposures.register.claims import Claim, Outcomes, Register, Request
from openstack_prep.exposures.register.pool_file import PoolFileRegister
from openstack_prep.resources.identity.in_project import InProject
from openstack_prep.resources.network.port import ports_of


def claim_together(run: CloudRun, pool: Pool, one: ExposureFields, neighbours: ExposureNeighbours) -> Claim:
    """Return the claim of an exposure, made together with those of the pool that the run claims next; raises PrepError.

    Steps that an interrupt skips may have their claims by then; the next apply finds them.
    """
    same_pool = [
        each
        for each in neighbours.exposures
        if each.pool == pool.name and (isinstance(pool, PoolFile) or each.owner == pool.owner)
    ]
    others = [each for each in same_pool if each.key in run.pending]
    outcomes = run.read_once((claim_together, pool.key), lambda: _claim(run, pool, [one, *others], neighbours.files))
    found = outcomes.get(one.name) or _claim(run, pool, [one], neighbours.files)[one.name]
    if isinstance(found, PrepError):
        raise found
    return found


def _claim(run: CloudRun, pool: Pool, exposures: Iterable[ExposureFields], files: Sequence[PoolFile]) -> Outcomes:
    register = register_of(run, pool)
    if register is None:
        raise NotFound(f"{pool.kind}/{pool.name} records no claims")
    by_name = {each.name: each for each in exposures}
    with_macs = [each for each in by_name.values() if each.needs_mac]
    macs: Collection[str] = ()
    if with_macs and isinstance(pool, PoolFile):  # the other register reads those of the ports itself
        macs = foreign_macs(run, with_macs, [each for each in files if each.key != pool.key])
    requests = [Request(name=each.name, address=each.address, mac=each.needs_mac) for each in by_name.values()]
    return register.claim_each(requests, macs)


@dataclass
class _Releases:
    """The names to release in one register, and those that are released."""

    turn: threading.Lock = field(default_factory=threading.Lock)
    names: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)


def release_together(run: CloudRun, register: Register, name: str) -> None:
    """Release a claim; in a file, which is written as a whole, with those that other steps release at this moment."""
    if not isinstance(register, PoolFileRegister):
        register.release([name])
        return
    releases = run.read_once((release_together, register.path), _Releases)
    releases.names.add(name)
    with releases.turn:
        if name not in releases.done:
            names = {*releases.names.copy()}
            register.release(sorted(names))
            releases.done |= names


def foreign_macs(run: CloudRun, those: Iterable[InProject], files: Iterable[PoolFile]) -> frozenset[str]:
    """Return the MAC addresses of ports and their pairs in the projects of some resources, and those in other files."""
    owners = dict.fromkeys(each.owner for each in those)
    fresh = run.fresh()
    listed = [port for owner in owners for port in ports_of(fresh, run.find_project_id(owner))]
    pairs = (pair.mac_address for port in listed for pair in port.allowed_address_pairs)
    pools = [pool for each in files if (pool := each.read(fresh))]
    claimed = (claim.mac for pool in pools for claim in pool.claims.values() if claim.mac)
    return frozenset((*claimed, *(port.mac_address for port in listed), *pairs))
