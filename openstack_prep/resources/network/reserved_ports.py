"""Ports that reserve addresses: their form, their creation in bulk, and their deletion if nobody uses them.

Source: Networking API v2.0, "Bulk create ports" (all or none), "Revisions" for ``If-Match: revision_number=N``.
"""

from __future__ import annotations

import contextlib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openstack_prep.base.errors import NotAllowed, NotFound, ResourceFailed
from openstack_prep.cloud.cloud_run import CloudRun
from openstack_prep.core.model import OwnershipTag, Resource
from openstack_prep.resources.lists.neutron_records import AddressHolder, PortRecord
from openstack_prep.resources.network.neutron import unchanged, without_forwardings
from openstack_prep.resources.network.port import OWNER, ports_of, shown, use_of

if TYPE_CHECKING:
    from openstack_prep.cloud.service import Service

BULK = 50
"""Ports per request: Neutron needs some seconds for them."""
JOBS = 4
"""Number of ports that one step deletes in parallel."""
_CLAIM = re.compile(r"exposure ([a-z0-9-]+)(?: ((?:[0-9a-f]{2}:){5}[0-9a-f]{2}))?")


@dataclass(frozen=True)
class PoolPorts:
    """The existing ports of a pool, on all subnets."""

    ports: tuple[PortRecord, ...] = ()


def port_name(pool: str, address: str) -> str:
    """Return the name of the port that reserves an address of a pool."""
    return f"{pool}-{address}"


def of_pool(ownership: OwnershipTag, pool: str, listed: Iterable[PortRecord]) -> list[PortRecord]:
    """Return the ports that reserve addresses of a pool."""
    return [port for port in listed if ownership.owns(port.description, pool) and _is_original(port, pool)]


def _is_original(port: PortRecord, pool: str) -> bool:
    """Whether a port has the name that it got as a port of a pool: that of a copy contains another address."""
    return any(port.name == port_name(pool, fixed_ip.ip_address) for fixed_ip in port.fixed_ips)


def make(
    run: CloudRun, project: Resource | None, name: str, *, network_id: str, subnet_id: str, addresses: Sequence[str]
) -> list[PortRecord]:
    """Create one port per address, several per request, all or none of these; raises CloudError."""
    cloud, owner = run.creator_of(project)
    bodies = [
        {
            **owner,
            "network_id": network_id,
            "name": port_name(name, address),
            "description": run.ownership.describe(name),
            "fixed_ips": [{"subnet_id": subnet_id, "ip_address": address}],
            "admin_state_up": False,
            "security_groups": [],
            "device_owner": OWNER,
        }
        for address in addresses
    ]
    made: list[PortRecord] = []
    for start in range(0, len(bodies), BULK):
        try:
            answer = cloud.network.post("/ports", {"ports": bodies[start : start + BULK]})
            made += map(PortRecord.read, answer["ports"])
        except NotAllowed as error:
            fix = "you may not choose addresses on a network of another project; set reserve: outside"
            raise NotAllowed(f"{error}; {fix}", status=error.status) from error
    return made


def remove(run: CloudRun, project: Resource | None, ports: Iterable[PortRecord]) -> None:
    """Delete ports unless one was changed since it was read; then the executor reads them again."""
    cloud = run.creator_of(project)[0]
    ports = list(ports)
    if any(use_of(port) or claim_of(port) for port in ports):  # these may have ended: a server may no longer exist
        now = {port.id: port for port in ports_of(run.fresh(), run.find_project_id(project))}
        ports = [now[port.id] for port in ports if port.id in now]

    def one(port: PortRecord) -> None:
        if used := use_of(port) or (f"claimed by {claim}" if (claim := claim_of(port)) else ""):
            raise ResourceFailed(f"{shown(port)} is {used}; release it there first")
        now = without_forwardings(run, cloud, port, port)
        cloud.network.delete(f"/ports/{port.id}", headers=unchanged(now))

    with ThreadPoolExecutor(JOBS) as pool:
        removals = [pool.submit(one, port) for port in ports]  # map would cancel the remaining ports
    for removal in removals:
        with contextlib.suppress(NotFound):
            removal.result()


def has_tagged(run: CloudRun, project: Resource | None) -> bool:
    """Whether ports of a project reserve addresses for the spec."""
    pools = by_pool(ports_of(run, run.find_project_id(project)))
    return any(spec == run.ownership.spec for spec, _ in pools)


def by_pool(ports: Iterable[PortRecord]) -> dict[tuple[str, str], list[PortRecord]]:
    """Return those ports that reserve addresses, by spec and pool."""
    pools: dict[tuple[str, str], list[PortRecord]] = defaultdict(list)
    for port in ports:
        spec, name = OwnershipTag.spec_in(port.description), OwnershipTag.name_in(port.description)
        if port.device_owner == OWNER and spec and name and _is_original(port, name):
            pools[spec, name].append(port)
    return pools


@dataclass(frozen=True)
class PortClaim:
    """The exposure that uses a reserved address, and its MAC address; the port's description records both."""

    exposure: str
    mac: str | None = None

    def __str__(self) -> str:
        return " ".join(filter(None, ("exposure", self.exposure, self.mac)))


def claim_of(port: AddressHolder) -> PortClaim | None:
    """Return the claim that a port records before the ownership tag."""
    found = _CLAIM.fullmatch(OwnershipTag.strip(port.description)) if port.device_owner == OWNER else None
    return PortClaim(found[1], found[2]) if found else None


def claim_id(pool: str, address: str) -> str:
    """Return the id of a claim: the exposure that claims the address of a pool is observed with this id."""
    return f"{pool}/{address}"


def write_claim(
    network: Service, ownership: OwnershipTag, pool: str, port: PortRecord, claim: PortClaim | None
) -> None:
    """Record a claim on a port, or remove it; raises CloudError with status 412 if the port has changed since."""
    description = ownership.describe(pool, str(claim) if claim else None)
    condition = {"If-Match": f"revision_number={port.revision_number}"}
    network.put(f"/ports/{port.id}", {"port": {"description": description}}, headers=condition)


def addresses_of(port: AddressHolder, subnet_id: str | None) -> list[str]:
    """Return the addresses of a port on a subnet."""
    return [fixed_ip.ip_address for fixed_ip in port.fixed_ips if fixed_ip.subnet_id == subnet_id]
