"""Ports that keep addresses from everybody else: what they look like, made in bulk, deleted when nobody uses them.

Source: Networking API v2.0, "Bulk create ports" (all or none), "Revisions" for ``If-Match: revision_number=N``.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from openstack_prep.base.errors import NotAllowed, NotFound, ResourceFailed
from openstack_prep.cloud.site import Site
from openstack_prep.core.model import Mark, Resource
from openstack_prep.resources.lists.neutron_records import AddressHolder, PortRecord

BULK = 50
"""Ports made by one request: some seconds of Neutron's work."""
JOBS = 4
"""Ports deleted at a time, within one step."""
OWNER = "openstack-prep:reserved"
"""What such a port says it is for; "network:" and "compute:" mean something to Neutron."""


@dataclass(frozen=True)
class PoolPorts:
    """The ports that exist for a pool, wherever they are."""

    ports: tuple[PortRecord, ...] = ()


def make(
    site: Site, project: Resource | None, name: str, *, network_id: str, subnet_id: str, addresses: Sequence[str]
) -> list[PortRecord]:
    """Make a port for each address, some by one request, all or none of these; raises CloudError."""
    cloud, owner = site.worker(project)
    bodies = [
        {
            **owner,
            "network_id": network_id,
            "name": f"{name}-{address}",
            "description": site.mark.describe(name),
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
            remedy = "on a network of another project one may not choose addresses; there, choose reserve: outside"
            raise NotAllowed(f"{error}; {remedy}", status=error.status) from error
    return made


def remove(site: Site, project: Resource | None, ports: Iterable[PortRecord]) -> None:
    """Delete ports unless somebody changed one since we looked: then the executor looks again."""
    network = site.worker(project)[0].network

    def one(port: PortRecord) -> None:
        path = f"/ports/{port.id}"
        if use_of(port):  # until now, perhaps: its server may be gone
            port = PortRecord.read(network.get(path)["port"])
        if use_of(port):
            raise ResourceFailed(f"{shown(port)} is {use_of(port)}; take it away there first")
        network.delete(path, headers={"If-Match": f"revision_number={port.revision_number}"})

    with ThreadPoolExecutor(JOBS) as pool:
        removals = [pool.submit(one, port) for port in ports]  # map would call the rest off
    for each in removals:
        with contextlib.suppress(NotFound):
            each.result()


def by_pool(ports: Iterable[PortRecord]) -> dict[tuple[str, str], list[PortRecord]]:
    """Return those of some ports that keep addresses, by spec and pool."""
    pools: dict[tuple[str, str], list[PortRecord]] = defaultdict(list)
    for port in ports:
        spec, name = Mark.spec_in(port.description), Mark.name_in(port.description)
        if port.device_owner == OWNER and spec and name:
            pools[spec, name].append(port)
    return pools


def addresses_of(port: AddressHolder, subnet_id: str | None) -> list[str]:
    """Return the addresses that a port has on a subnet."""
    return [each.ip_address for each in port.fixed_ips if each.subnet_id == subnet_id]


def use_of(port: PortRecord) -> str:
    """Return what somebody uses a port for; nothing when it only keeps its address."""
    if port.device_id:
        return f"attached to {port.device_id} ({port.device_owner})"
    return "" if port.device_owner in ("", OWNER) else f"used by {port.device_owner}"


def shown(port: AddressHolder) -> str:
    return f"port {port.name}".strip() + f" {port.id}"
